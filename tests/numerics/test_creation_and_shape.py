"""Blocks from nothing, and lanes renamed, against NumPy's functions of the same names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import blocklang as bl
from tests.numerics import shape_kernels
from tests.numerics.expected import as_float
from tests.numerics.launching import Array, Out, assert_same_bits, launch_one
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
