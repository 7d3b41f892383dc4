"""Blocks that are loaded along one axis and stored along another."""

from __future__ import annotations

import numpy as np
import pytest

from tests.numerics import turned_kernels as kernels
from tests.numerics.launching import Out, assert_same_bits, launch_one
from tests.numerics.values import ALL, random_numbers


@pytest.mark.parametrize("block", [(16, 16), (32, 64), (48, 80), (17, 33), (64, 20), (8, 128)])
@pytest.mark.parametrize("shape", [(50, 70), (64, 64), (1, 100), (131, 3)])
def test_transpose(shape: tuple[int, int], block: tuple[int, int]) -> None:
    x = random_numbers("fp32", shape)
    grid = tuple(-(-n // b) for n, b in zip(shape, block, strict=True))
    result = launch_one(kernels.transpose, grid, x, Out(shape[::-1], "fp32"), *shape, *block)
    assert_same_bits(result, np.ascontiguousarray(x.T), str(shape))


@pytest.mark.parametrize("name", ALL)
def test_types(name: str) -> None:
    x = random_numbers(name, (45, 75))
    result = launch_one(kernels.transpose, (2, 2), x, Out((75, 45), name), 45, 75, 32, 64)
    assert_same_bits(result, np.ascontiguousarray(x.T), name)


@pytest.mark.parametrize("shape", [(64, 64), (32, 100), (40, 16)])
@pytest.mark.parametrize("name", ["fp32", "int64", "int8"])
def test_an_array_in_columns(shape: tuple[int, int], name: str) -> None:
    rows, wide = 35, 30
    x = random_numbers(name, (rows * max(wide, shape[1]),))
    result = launch_one(kernels.columns, 1, x, Out(shape, name), rows, wide, *shape)
    expected = np.full(shape, 7, x.dtype)
    tall, wide = min(rows, shape[0]), min(wide, shape[1])
    whole = x.reshape(-1, rows).T
    expected[3:tall, 2:wide] = whole[3:tall, 2:wide]
    assert_same_bits(result, expected, str(shape))


@pytest.mark.parametrize("shape", [(3, 32, 48), (16, 5, 64), (2, 19, 21)])
def test_three_axes(shape: tuple[int, int, int]) -> None:
    x = random_numbers("fp32", shape)
    result = launch_one(kernels.batches, 1, x, Out((shape[2], *shape[:2]), "fp32"), *shape)
    assert_same_bits(result, np.ascontiguousarray(x.transpose(2, 0, 1)), str(shape))


@pytest.mark.parametrize("n", [16, 33, 64])
def test_both_ways(n: int) -> None:
    x = random_numbers("int32", (n, n))
    result = launch_one(kernels.with_its_own_transpose, 1, x, Out((n, n), "int32"), n)
    assert_same_bits(result, x - x.T * np.int32(2), str(n))


@pytest.mark.parametrize("n", [16, 33, 64])
def test_in_place(n: int) -> None:
    x = random_numbers("fp64", (n, n))
    result = launch_one(kernels.in_place, 1, Out((n, n), "fp64", x), n)
    assert_same_bits(result, np.ascontiguousarray(x.T), str(n))


def test_in_a_loop() -> None:
    x = random_numbers("fp32", (5, 32, 32))
    result = launch_one(kernels.twice, 1, x, Out((5, 32, 32), "fp32"), 5, 32)
    assert_same_bits(result, np.ascontiguousarray((x + x).transpose(0, 2, 1)), "loop")
