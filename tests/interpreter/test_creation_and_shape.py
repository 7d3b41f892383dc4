"""Constants, the place in the grid, and operations that rename lanes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from blocklang.interpreter.dtypes import DTYPES
from blocklang.ir.index_map import Binary, Const, Dim, IndexExpr
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
    ],
)
def test_shape_operations_read_at_their_index_map(
    cls: Any, source: tuple[int, ...], attributes: dict[str, Any]
) -> None:
    data = np.arange(np.prod(source), dtype=np.int32).reshape(source)
    actual = apply(cls, data, **attributes)
    from blocklang.ir import Builder, Region

    region = Region([BlockType(I32, source)])
    index_map = Builder(region).create(cls, region.args[0], **attributes).index_map()  # type: ignore[attr-defined]
    for point in itertools.product(*map(range, actual.shape)):
        assert actual[point] == data[tuple(at(e, point) for e in index_map.exprs)]
