"""Scans in the loops around them: bounds, cuts, aliases, several readers."""

from __future__ import annotations

import numpy as np
import pytest

from tests.numerics import running_kernels as kernels
from tests.numerics.launching import Out, assert_same_bits, launch_both, launch_one
from tests.numerics.values import random_numbers

SIZES = [1, 2, 5, 16, 17, 64, 100, 1000]


def cumsum(x: np.ndarray, axis: int = 0) -> np.ndarray:
    return np.cumsum(x, axis=axis, dtype=x.dtype)


@pytest.mark.parametrize("bounds", [(0, 100), (3, 77), (16, 32), (33, 34), (50, 50), (-5, 200), (90, 10)])
def test_stores_between_bounds(bounds: tuple[int, int]) -> None:
    x = random_numbers("int32", (100,))
    before = random_numbers("int32", (100,))
    result = launch_one(kernels.between, 1, x, Out((100,), "int32", before), *bounds, BLOCK=100)
    places = np.arange(100)
    inside = (places >= bounds[0]) & (places < bounds[1])
    assert_same_bits(result, np.where(inside, cumsum(x), before), str(bounds))


@pytest.mark.parametrize("shape", [(3, 50), (4, 64), (1, 7), (4, 1), (2, 16)])
def test_rows_with_masks(shape: tuple[int, int]) -> None:
    x = random_numbers("int32", shape)
    result = launch_one(kernels.masked_rows, 1, x, Out(shape, "int32"), *shape, TALL=4, WIDE=64)
    assert_same_bits(result, cumsum(x, 1) * np.int32(2), str(shape))


@pytest.mark.parametrize("n", SIZES)
def test_in_place(n: int) -> None:
    x = random_numbers("int64", (n,))
    assert_same_bits(launch_one(kernels.in_place, 1, Out((n,), "int64", x), BLOCK=n), cumsum(x), str(n))


@pytest.mark.parametrize("n", SIZES)
def test_a_scan_of_a_scan(n: int) -> None:
    x = random_numbers("int32", (n,))
    expected = cumsum(cumsum(x) - np.arange(n, dtype=np.int32))
    assert_same_bits(launch_one(kernels.of_a_scan, 1, x, Out((n,), "int32"), BLOCK=n), expected, str(n))


@pytest.mark.parametrize("n", SIZES)
def test_equal_lanes(n: int) -> None:
    expected = np.arange(1, n + 1, dtype=np.int32) * np.int32(7)
    assert_same_bits(launch_one(kernels.of_equal_lanes, 1, Out((n,), "int32"), 7, BLOCK=n), expected, str(n))


@pytest.mark.parametrize("n", SIZES)
def test_two_readers(n: int) -> None:
    x = random_numbers("int32", (n,))
    sums, last = launch_both(kernels.read_twice, 1, x, Out((n,), "int32"), Out((1,), "int32"), BLOCK=n)
    assert_same_bits(sums, cumsum(x), str(n))
    assert_same_bits(last, cumsum(x).max(keepdims=True), str(n))


@pytest.mark.parametrize("n", [16, 64, 1024])
def test_read_backwards(n: int) -> None:
    x = random_numbers("int32", (n,))
    result = launch_one(kernels.read_backwards, 1, x, Out((n,), "int32"), BLOCK=n)
    assert_same_bits(result, cumsum(x)[::-1].copy(), str(n))


@pytest.mark.parametrize("shape", [(32, 64), (5, 40), (40, 5)])
def test_stored_across(shape: tuple[int, int]) -> None:
    x = random_numbers("int32", shape)
    result = launch_one(kernels.stored_across, 1, x, Out(shape[::-1], "int32"), *shape)
    assert_same_bits(result, np.ascontiguousarray(cumsum(x, 1).T), str(shape))


@pytest.mark.parametrize("half", [8, 64, 256])
def test_two_halves(half: int) -> None:
    x, y = random_numbers("int32", (half,)), random_numbers("int32", (half,))[::-1].copy()
    result = launch_one(kernels.of_two_halves, 1, x, y, Out((2 * half,), "int32"), HALF=half)
    assert_same_bits(result, cumsum(np.concatenate([x, y])), str(half))


@pytest.mark.parametrize("first", [0, 5, 99])
def test_a_wrapped_array(first: int) -> None:
    x = random_numbers("int32", (100,))
    result = launch_one(kernels.of_a_wrapped_array, 1, x, Out((90,), "int32"), 100, first, BLOCK=90)
    assert_same_bits(result, cumsum(x[(first + np.arange(90)) % 100]), str(first))


@pytest.mark.parametrize("n", SIZES)
def test_pairs(n: int) -> None:
    x = random_numbers("int32", (n,))
    expected = np.maximum.accumulate(x)
    places = np.array([int(np.argmax(x[: i + 1])) for i in range(n)], np.int32)
    top, at = launch_both(kernels.pairs, 1, x, Out((n,), "int32"), Out((n,), "int32"), BLOCK=n)
    assert_same_bits(top, expected, str(n))
    assert_same_bits(at, places, str(n))
    assert_same_bits(launch_one(kernels.only_places, 1, x, Out((n,), "int32"), BLOCK=n), places, str(n))


@pytest.mark.parametrize("n", [16, 50])
def test_chunks_of_a_row(n: int) -> None:
    x = random_numbers("int32", (4 * n,))
    assert_same_bits(launch_one(kernels.carried, 1, x, Out((4 * n,), "int32"), 4, BLOCK=n), cumsum(x), str(n))


@pytest.mark.parametrize("n", SIZES)
def test_a_carried_block(n: int) -> None:
    x = random_numbers("int32", (n,))
    result = launch_one(kernels.carried_block, 1, x, Out((n,), "int32"), 3, BLOCK=n)
    assert_same_bits(result, cumsum(cumsum(cumsum(x))), str(n))
