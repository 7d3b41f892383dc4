"""Constants, the place in the grid, and operations that rename lanes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from blocklang.interpreter.dtypes import DTYPES
from blocklang.ir import Builder, Region
from blocklang.ir.index_map import (
    Binary,
    Const,
    Dim,
    IndexExpr,
    IndexMap,
    coefficient,
    compose,
    linearise,
    parse_index_map,
    range_of,
    reshape_map,
)
from blocklang.ir.types import F32, I32, SCALARS, BlockType, PointerType, with_shape
from blocklang.ops import creation, shape
from tests.interpreter.harness import apply


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("i1", True),
        ("i8", -128),
        ("u64", 2**64 - 1),
        ("f16", 1.0001),
        ("bf16", 1e39),
        ("f32", 1e39),
        ("f64", 0.1),
    ],
)
@pytest.mark.parametrize("extents", [(), (3,), (2, 1)])
def test_constant(name: str, value: Any, extents: tuple[int, ...]) -> None:
    data = apply(creation.Constant, value=value, result_types=[with_shape(SCALARS[name], extents)])
    assert data.dtype == DTYPES[name]
    rounded = {1.0001: 1.0, 1e39: np.inf}.get(value, value) if name != "f64" else value
    assert (data == np.array(rounded, DTYPES[name])).all()


def test_null_pointer() -> None:
    assert apply(creation.Constant, value=0, result_types=[PointerType(F32)]) == 0


def test_place_in_the_grid() -> None:
    assert [int(apply(creation.ProgramId, axis=k)) for k in range(3)] == [3, 1, 2]
    assert [int(apply(creation.NumPrograms, axis=k)) for k in range(3)] == [5, 6, 7]


def test_arange_to_the_end_of_int32() -> None:
    assert apply(creation.Arange, start=-2, end=3).tolist() == [-2, -1, 0, 1, 2]
    assert apply(creation.Arange, start=2**31 - 2, end=2**31).tolist() == [2**31 - 2, 2**31 - 1]


def test_splat() -> None:
    data = apply(creation.Splat, np.array(7, np.int32), result_types=[BlockType(I32, (2, 3))])
    assert data.tolist() == [[7, 7, 7], [7, 7, 7]]


def at(expr: IndexExpr, point: tuple[int, ...]) -> int:
    match expr:
        case Dim(position):
            return point[position]
        case Const(value):
            return value
        case Binary(op, lhs, rhs):
            a, b = at(lhs, point), at(rhs, point)
            return {"+": a + b, "*": a * b, "//": a // (b or 1), "%": a % (b or 1)}[op]


@pytest.mark.parametrize(
    ("cls", "source", "attributes"),
    [
        (shape.ExpandDims, (2, 3), {"axis": 0}),
        (shape.ExpandDims, (2, 3), {"axis": 2}),
        (shape.Broadcast, (2, 1), {"shape": (2, 5)}),
        (shape.Broadcast, (1, 1), {"shape": (3, 2)}),
        (shape.Reshape, (6, 4), {"shape": (3, 8)}),
        (shape.Reshape, (6,), {"shape": (1, 2, 3)}),
        (shape.Reshape, (5, 3, 2), {"shape": (30,)}),
        (shape.Trans, (2, 3, 4), {"order": (2, 0, 1)}),
        (shape.Trans, (2, 3), {"order": (1, 0)}),
        (shape.Slice, (7,), {"axis": 0, "extent": 7, "start": 6, "step": -1}),
        (shape.Slice, (3, 7), {"axis": 1, "extent": 1, "start": 4}),
        (shape.Slice, (9, 2), {"axis": 0, "extent": 3, "start": 7, "step": -3}),
        (shape.Slice, (9, 2), {"axis": 0, "extent": 4, "start": 1, "step": 2}),
    ],
)
def test_shape_operations_read_at_their_index_map(
    cls: Any, source: tuple[int, ...], attributes: dict[str, Any]
) -> None:
    data = np.arange(np.prod(source), dtype=np.int32).reshape(source)
    actual = apply(cls, data, **attributes)
    region = Region([BlockType(I32, source)])
    index_map = Builder(region).create(cls, region.args[0], **attributes).index_map()  # type: ignore[attr-defined]
    for point in itertools.product(*map(range, actual.shape)):
        assert actual[point] == data[tuple(at(e, point) for e in index_map.exprs)]


@pytest.mark.parametrize(
    ("first", "second", "axis"),
    [((3,), (5,), 0), ((5,), (3,), 0), ((4, 1), (4, 1), 1), ((1, 2), (6, 2), 0), ((2, 7, 3), (2, 1, 3), 1)],
)
def test_cat_takes_each_lane_from_one_operand(
    first: tuple[int, ...], second: tuple[int, ...], axis: int
) -> None:
    a = np.arange(np.prod(first), dtype=np.int32).reshape(first)
    b = -1 - np.arange(np.prod(second), dtype=np.int32).reshape(second)
    actual = apply(shape.Cat, a, b, axis=axis)
    assert (actual == np.concatenate([a, b], axis)).all()
    region = Region([BlockType(I32, first), BlockType(I32, second)])
    maps = Builder(region).create(shape.Cat, *region.args, axis=axis).index_maps()  # type: ignore[attr-defined]
    for point in itertools.product(*map(range, actual.shape)):
        read = [data[tuple(at(e, point) for e in m.exprs)] for data, m in zip((a, b), maps, strict=True)]
        assert actual[point] == read[point[axis] >= first[axis]]


@pytest.mark.parametrize(
    ("cls", "types", "attributes"),
    [
        (shape.Slice, [(4,)], {"axis": 0, "extent": 5}),
        (shape.Slice, [(4,)], {"axis": 0, "extent": 2, "start": 0, "step": -1}),
        (shape.Slice, [(4,)], {"axis": 1, "extent": 1}),
        (shape.Slice, [(4,)], {"axis": 0, "extent": 2, "step": 0}),
        (shape.Cat, [(4,), (4, 1)], {"axis": 0}),
        (shape.Cat, [(4, 2), (4, 3)], {"axis": 0}),
        (shape.Cat, [(4,), (4,)], {"axis": 1}),
    ],
)
def test_wrong_shapes_are_refused(cls: Any, types: list[tuple[int, ...]], attributes: dict[str, Any]) -> None:
    region = Region([BlockType(I32, t) for t in types])
    with pytest.raises(ValueError, match=r"axis|lanes"):
        Builder(region).create(cls, *region.args, **attributes)


# ---- index maps: chains of renamings ----


def chains(random: np.random.Generator) -> tuple[tuple[int, ...], list[tuple[Any, dict[str, Any]]]]:
    """A shape, and renamings that follow each other."""
    start = tuple(int(n) for n in random.choice([1, 2, 3, 4, 6, 8], random.integers(1, 4)))
    own = start
    chain: list[tuple[Any, dict[str, Any]]] = []
    for _ in range(5):
        axis = int(random.integers(len(own)))
        kind = random.integers(4)
        if kind == 0:
            chain.append(
                (shape.Slice, {"axis": axis, "extent": own[axis], "start": own[axis] - 1, "step": -1})
            )
            if own[axis] == 1:
                chain[-1][1].update(start=0, step=1)
        elif kind == 1:
            total = int(np.prod(own))
            inner = int(random.choice([n for n in range(1, total + 1) if total % n == 0]))
            chain.append((shape.Reshape, {"shape": (total // inner, inner)}))
            own = (total // inner, inner)
        elif kind == 2:
            order = tuple(int(i) for i in random.permutation(len(own)))
            chain.append((shape.Trans, {"order": order}))
            own = tuple(own[i] for i in order)
        else:
            extent = (own[axis] + 1) // 2
            chain.append(
                (shape.Slice, {"axis": axis, "extent": extent, "start": 0, "step": 2 if extent > 1 else 1})
            )
            own = (*own[:axis], extent, *own[axis + 1 :])
    return start, chain


@pytest.mark.parametrize("seed", range(40))
def test_composed_maps_read_what_the_chain_gives(seed: int) -> None:
    """Composition with its simplifications, text and coefficients agree with NumPy and with the points."""
    start, chain = chains(np.random.default_rng(seed))
    data = np.arange(np.prod(start), dtype=np.int32).reshape(start)
    actual, total = data, IndexMap(len(start), tuple(Dim(i) for i in range(len(start))))
    for cls, attributes in chain:
        region = Region([BlockType(I32, actual.shape)])
        step = Builder(region).create(cls, region.args[0], **attributes).index_map()  # type: ignore[attr-defined]
        actual = apply(cls, actual, **attributes)
        total = compose(total, step, actual.shape)
    flat = linearise(total.exprs, start)
    assert str(parse_index_map(str(total))) == str(total)
    for point in itertools.product(*map(range, actual.shape)):
        index = tuple(at(e, point) for e in total.exprs)
        assert actual[point] == data[index]
        assert at(flat, point) == actual[point]
        for expr in (*total.exprs, flat):
            low, high = range_of(expr, actual.shape)
            assert low <= at(expr, point) <= high
            for axis in range(len(point)):
                growth = coefficient(expr, axis)
                if growth is not None and point[axis] > 0:
                    before = (*point[:axis], point[axis] - 1, *point[axis + 1 :])
                    assert at(expr, point) - at(expr, before) == growth


def test_reversed_axes_are_split_exactly() -> None:
    """A reversed axis that is cut into equal parts needs no division."""
    walk = IndexMap(1, parse_index_map("map<1: d0 * -1 + 23>").exprs)
    assert str(compose(walk, reshape_map((24,), (4, 6)), (4, 6))) == "map<2: d0 * -6 + d1 * -1 + 23>"
    back = compose(reshape_map((4, 6), (24,)), walk, (24,))
    cut = compose(back, reshape_map((24,), (4, 6)), (4, 6))
    assert str(cut) == "map<2: d0 * -1 + 3, d1 * -1 + 5>"
