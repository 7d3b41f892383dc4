"""Blocks that loop until no lane is alive, against loops over numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.numerics import alive_kernels as kernels
from tests.numerics.launching import Array, Out, assert_same_bits, launch_both, launch_one

SIZES = [1, 7, 32, 100, 1000]


def numbers(n: int, high: int = 200) -> Array:
    return np.random.default_rng(n).integers(-5, high, n).astype(np.int32)


def each(function: Callable[[int], int], x: Array) -> Array:
    return np.array([function(int(n)) for n in x.ravel()], np.int32).reshape(x.shape)


def collatz_steps(n: int) -> int:
    steps = 0
    while n > 1:
        n, steps = n // 2 if n % 2 == 0 else 3 * n + 1, steps + 1
    return steps


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("limit", [0, 1, 50])
def test_escape(n: int, limit: int) -> None:
    x = np.random.default_rng(n).uniform(-3, 1, n).astype(np.float32)
    z, rounds = np.zeros(n, np.float32), np.zeros(n, np.int32)
    for lane in range(n):
        while rounds[lane] < limit and z[lane] * z[lane] <= 4:
            z[lane] = z[lane] * z[lane] + x[lane]
            rounds[lane] += 1
    found = launch_both(kernels.escape, 1, x, Out((n,), "int32"), Out((n,), "fp32"), LIMIT=limit, BLOCK=n)
    assert_same_bits(found[0], rounds, str(n))
    assert_same_bits(found[1], z, str(n))


@pytest.mark.parametrize("n", SIZES)
def test_collatz(n: int) -> None:
    x = numbers(n)
    result = launch_one(kernels.collatz, 1, x, Out((n,), "int32"), BLOCK=n)
    assert_same_bits(result, each(collatz_steps, x), str(n))


@pytest.mark.parametrize("shape", [(1, 16), (3, 50), (16, 16)])
def test_collatz_in_rows(shape: tuple[int, int]) -> None:
    x = numbers(shape[0] * shape[1]).reshape(shape)
    result = launch_one(kernels.collatz_rows, 1, x, Out(shape, "int32"), *shape)
    assert_same_bits(result, each(collatz_steps, x), str(shape))


@pytest.mark.parametrize("n", SIZES)
def test_rounds_of_all(n: int) -> None:
    x = numbers(n)
    found = launch_both(kernels.how_many_rounds, 1, x, Out((n,), "int32"), Out((1,), "int32"), BLOCK=n)
    assert_same_bits(found[0], each(lambda v: v if v <= 0 else (v % 3 or 3) - 3, x), str(n))
    assert_same_bits(found[1], np.array([-(-max(int(x.max()), 0) // 3)], np.int32), str(n))


@pytest.mark.parametrize("n", SIZES)
def test_dead_lanes_that_move(n: int) -> None:
    x = numbers(n)
    rounds = -(-max(int(x.max()), 0) // 3)
    result = launch_one(kernels.dead_lanes_move, 1, x, Out((n,), "int32"), BLOCK=n)
    assert_same_bits(result, x - np.int32(3 * rounds), str(n))


@pytest.mark.parametrize("n", SIZES)
def test_lanes_that_depend_on_the_round(n: int) -> None:
    def one(value: int) -> int:
        for t in range(9):
            value -= t % 4 if value > 0 else 0
        return value

    x = numbers(n, 20)
    result = launch_one(kernels.revived, 1, x, Out((n,), "int32"), BLOCK=n)
    assert_same_bits(result, each(one, x), str(n))


@pytest.mark.parametrize("n", SIZES)
def test_another_mask(n: int) -> None:
    x = numbers(n)
    rounds = -(-max(int(x.max()), 0) // 2)
    result = launch_one(kernels.under_another_mask, 1, x, Out((n,), "int32"), BLOCK=n)
    assert_same_bits(result, np.full(n, rounds, np.int32), str(n))


@pytest.mark.parametrize("n", SIZES)
def test_in_a_loop(n: int) -> None:
    def one(value: int) -> int:
        return sum(
            (step + 1) * max((value + step).bit_length() - 1, 0) if value + step > 1 else 0
            for step in range(4)
        )

    x = numbers(n)
    result = launch_one(kernels.in_a_loop, 1, x, Out((n,), "int32"), 4, BLOCK=n)
    assert_same_bits(result, each(one, x), str(n))


@pytest.mark.parametrize("n", SIZES)
def test_conditions_on_numbers(n: int) -> None:
    x = numbers(n)
    result = launch_one(kernels.number_of_rounds, 1, x, Out((n,), "int32"), 50, BLOCK=n)
    assert_same_bits(result, np.where(x > 0, np.maximum(x - 50, 0), x).astype(np.int32), str(n))
    wanted = (n + 1) // 2
    expected = x.copy()
    while (expected <= 0).sum() < wanted:
        expected[expected > 0] -= 3
    result = launch_one(kernels.until_many_are_done, 1, x, Out((n,), "int32"), wanted, BLOCK=n)
    assert_same_bits(result, expected, str(n))
