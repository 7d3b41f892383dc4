"""Blocks from nothing, and lanes renamed, against NumPy's functions of the same names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import blocklang as bl
from tests.numerics import shape_kernels
from tests.numerics.expected import as_float
from tests.numerics.launching import Array, Out, assert_same_bits, is_untouched, launch_one
from tests.numerics.values import (
    ALL,
    FLOATS,
    NUMPY_DTYPES,
    SHAPES_2D,
    SHAPES_3D,
    TYPES,
    limits,
    numbers,
    random_numbers,
)


@pytest.mark.parametrize(
    ("start", "end"),
    [(0, 1), (0, 3), (0, 257), (-5, 2), (1000, 2000), (-(2**31), 3 - 2**31), (2**31 - 4, 2**31 - 1)],
)
def test_arange(start: int, end: int) -> None:
    result = launch_one(shape_kernels.aranges, 1, Out((end - start,), "int32"), START=start, END=end)
    assert result.tolist() == list(range(start, end))


def constants_of(name: str) -> tuple[Any, ...]:
    if name in FLOATS:
        return (0, 1, -2.5, 0.1, 1e30, -0.0, float("inf"), float("-inf"), float("nan"), 1e-42)
    low, high = limits(name)
    return (True, False) if name == "int1" else (0, 1, low, high, high // 3, True)


@pytest.mark.parametrize("name", ALL)
def test_full(name: str) -> None:
    """Every element of the type's constants, rounded once to it."""
    values = constants_of(name)
    for shape in ((5, 37), (3, 1)):
        result = launch_one(
            shape_kernels.constants, 1, Out((len(values), *shape), name),
            VALUES=values, TYPE=TYPES[name], M=shape[0], N=shape[1],
        )  # fmt: skip
        plain = (
            np.array([float(v) for v in values]) if name in FLOATS else np.array(values, NUMPY_DTYPES[name])
        )
        each = as_float(plain, name) if name in FLOATS else plain
        assert_same_bits(result, np.broadcast_to(each[:, None, None], result.shape), name)


@pytest.mark.parametrize("name", ALL)
def test_zeros_and_scalars(name: str) -> None:
    x = numbers(name)[-1:]
    result = launch_one(
        shape_kernels.zeros_and_splats, 1, Out((4, 7, 9), name), x, 1, TYPE=TYPES[name], M=7, N=9
    )
    one, zero = np.ones((7, 9), NUMPY_DTYPES[name]), np.zeros((7, 9), NUMPY_DTYPES[name])
    assert_same_bits(result, np.stack([zero, zero, one, np.full((7, 9), x[0])]), name)


@pytest.mark.parametrize(("start", "end"), [(3, 3), (4, 2), (0, 2**31 + 1)])
def test_an_arange_has_elements_of_int32(start: int, end: int) -> None:
    with pytest.raises(bl.CompilationError, match="arange"):
        launch_one(shape_kernels.aranges, 1, Out((1,), "int32"), START=start, END=end)


# ---- shapes ----


def stored(blocks: list[Array]) -> Array:
    """Blocks as the kernels lay them out: one flat row each."""
    return np.stack([np.ascontiguousarray(b).reshape(-1) for b in blocks])


@pytest.mark.parametrize(
    ("shape", "name"),
    [
        *((s, "fp32") for s in (*SHAPES_2D, (7, 100))),
        *(((5, 37), t) for t in ("int1", "int8", "fp16", "int64")),
    ],
)
def test_two_axes(shape: tuple[int, int], name: str) -> None:
    m, n = shape
    a = random_numbers(name, shape)
    result = launch_one(shape_kernels.shapes_2d, 1, a, Out((10, m * n), name), M=m, N=n)
    b = np.ascontiguousarray(a.T).reshape(m, n)
    twice = (a ^ a) if name == "int1" else a + a
    blocks = [a.T, a.T, twice.T, a, a, a.reshape(n, m), b, b.T, a, twice]
    assert_same_bits(result, stored(blocks), f"{name} {shape}")


@pytest.mark.parametrize("shape", [*SHAPES_2D, (33, 100)])
def test_broadcasting(shape: tuple[int, int]) -> None:
    m, n = shape
    x, y = random_numbers("int32", (m,), 1), random_numbers("int32", (n,), 2)
    result = launch_one(shape_kernels.broadcasts, 1, x, y, Out((8, m * n), "int32"), M=m, N=n)
    column, row, all_ones = x[:, None], y[None, :], np.ones(shape, np.int32)
    difference = column - row
    blocks = [
        *(difference, difference, column * all_ones, row * all_ones, column - all_ones, x[0] * all_ones),
        *(2 * all_ones - row, (y[0] - row) * all_ones),
    ]
    assert_same_bits(result, stored(blocks), str(shape))


@pytest.mark.parametrize("shape", [*SHAPES_3D, (3, 16, 8), (1, 7, 1)])
def test_three_axes(shape: tuple[int, int, int]) -> None:
    l, m, n = shape  # noqa: E741 - the kernel's names
    a = random_numbers("fp32", shape)
    result = launch_one(shape_kernels.shapes_3d, 1, a, Out((8, a.size), "fp32"), L=l, M=m, N=n)
    blocks = [
        *(a, a.transpose(0, 2, 1), a.transpose(2, 0, 1), a.transpose(1, 2, 0), a),
        *(a.transpose(1, 0, 2), a.transpose(2, 1, 0), a.reshape(l, m * n).T),
    ]
    assert_same_bits(result, stored(blocks), str(shape))


def test_items() -> None:
    x = np.array([np.nan, -0.0], np.float32)
    result = launch_one(shape_kernels.items, 1, x, Out((3,), "fp32"))
    assert_same_bits(result, x[[0, 0, 1]])


# ---- joined, taken apart and reversed ----


@pytest.mark.parametrize(
    ("n", "name"), [*((n, "fp32") for n in (1, 2, 7, 64, 100, 257)), *((37, t) for t in ALL)]
)
def test_pairs(n: int, name: str) -> None:
    x, y = random_numbers(name, (2 * n,), 1), random_numbers(name, (n,), 2)
    result = launch_one(shape_kernels.pairs, 1, x, y, Out((8, 2 * n), name), N=n)
    a = x[:n]
    joined = np.stack([a, y], 1)
    rows = [
        *(joined, joined, np.concatenate([a, y]), np.concatenate([a, y])[::-1]),
        *(np.concatenate([x[::2], x[1::2]]), np.concatenate([y, a])),
        *(np.stack([a, np.full_like(a, y[0])], 1), joined[::-1]),
    ]
    assert_same_bits(result, stored(rows), f"{name} {n}")


@pytest.mark.parametrize(
    ("shape", "name"),
    [*((s, "fp32") for s in SHAPES_2D), *(((5, 33), t) for t in ("int1", "uint8", "bf16", "fp64"))],
)
def test_pairs_of_two_axes(shape: tuple[int, int], name: str) -> None:
    m, n = shape
    a, b = random_numbers(name, shape, 1), random_numbers(name, shape, 2)
    result = launch_one(shape_kernels.pairs_2d, 1, a, b, Out((8, 2 * m * n), name), M=m, N=n)
    joined = np.stack([a, b], -1)
    mixed = joined.reshape(m, 2 * n)
    rows = [
        *(joined, mixed, np.concatenate([a, b]), np.concatenate([a, b], 1), np.stack([b, a])),
        *(np.stack([a, np.broadcast_to(b[0], shape)], -1), mixed[::-1, ::-1], mixed[::-1].T[:, ::-1]),
    ]
    assert_same_bits(result, stored(rows), f"{name} {shape}")


@pytest.mark.parametrize("name", ["fp32", "int64", "int1", "fp16"])
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 5, 7), (5, 3, 64), (1, 40, 3), (33, 2, 16)])
def test_cat_of_uneven_blocks(shape: tuple[int, int, int], name: str) -> None:
    l, m, n = shape  # noqa: E741 - the kernel's names
    a, b = random_numbers(name, (l, n), 1), random_numbers(name, (m, n), 2)
    result = launch_one(shape_kernels.uneven, 1, a, b, Out((3 * (l + m) * n + n,), name), L=l, M=m, N=n)
    both = np.concatenate([a, b])
    other = np.concatenate([b, a]).T[:, ::-1]
    blocks = [both, both.T, other, both.max(0)]
    assert_same_bits(result, np.concatenate([np.ascontiguousarray(x).reshape(-1) for x in blocks]), name)


def test_pairs_of_scalars() -> None:
    x = np.array([np.nan, -0.0], np.float32)
    result = launch_one(shape_kernels.scalar_pairs, 1, x, Out((8,), "fp32"))
    assert_same_bits(result, x[[0, 1, 1, 0, 1, 0, 0, 1]])


@pytest.mark.parametrize(("n", "extent"), [(0, 8), (5, 8), (8, 8), (30, 66), (66, 66)])
def test_renamed_blocks_in_loops_and_masks(n: int, extent: int) -> None:
    x = random_numbers("fp32", (extent,))
    result = launch_one(shape_kernels.rotations, 1, x, Out((2, extent), "fp32"), n, N=extent)
    a = x
    for _ in range(3):
        a = np.concatenate([a[1::2], a[::2][::-1]])
    shown = np.arange(extent)[::-1] < n
    assert_same_bits(result[0][shown], a[shown])
    assert is_untouched(result[0][~shown]).all()
    assert_same_bits(result[1], np.where(shown, x[::-1], np.float32(0)))
