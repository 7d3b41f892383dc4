"""Blocks in loops and branches, and the place of a program in its grid, against the same lines in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from tests.numerics import control_kernels as kernels
from tests.numerics.launching import Array, Out, assert_same_bits, is_untouched, launch_both, launch_one
from tests.numerics.values import random_numbers

EXTENTS = (1, 7, 33, 100)


@pytest.mark.parametrize("grid", [(1,), (7,), (3, 4), (2, 3, 5), (1, 1, 9), (1, 8, 1), (5, 1, 2)])
def test_the_place_in_a_grid(grid: tuple[int, ...]) -> None:
    x, y, z = (*grid, 1, 1)[:3]
    result = launch_one(kernels.where_am_i, grid, Out((z, y, x, 6), "int32"))
    k, j, i = np.mgrid[:z, :y, :x]
    expected = np.stack([i, j, k, *(np.full_like(i, n) for n in (x, y, z))], axis=-1)
    assert_same_bits(result, expected.astype(np.int32))


def test_an_empty_grid_touches_nothing() -> None:
    for grid in ((0,), (3, 0), (2, 2, 0)):
        assert is_untouched(launch_one(kernels.where_am_i, grid, Out((6,), "int32"))).all()


def integers(extent: int, seed: int = 0) -> Array:
    return random_numbers("int32", (extent,), seed)


@pytest.mark.parametrize("extent", EXTENTS)
@pytest.mark.parametrize("rounds", [0, 1, 2, 9])
def test_carried_blocks(rounds: int, extent: int) -> None:
    x = integers(2 * extent)
    blocks, count = launch_both(
        kernels.carried, 1, x, Out((3, extent), "int32"), Out((1,), "int32"), rounds, BLOCK=extent
    )
    a, b, total = x[:extent], x[extent:], np.zeros_like(x[:extent])
    for k in range(rounds):
        a, b = b, a + np.int32(k)
        total = total + a * np.int32(k)
    assert_same_bits(blocks, np.stack([a, b, total]))
    assert count[0] == sum(range(rounds))


@pytest.mark.parametrize(
    ("start", "stop", "step"),
    [(0, 5, 1), (5, 0, -1), (3, 3, 1), (7, -8, -3), (0, 10, 4), (5, 0, 1), (-3, 4, 2)],
)
def test_ranges(start: int, stop: int, step: int) -> None:
    x = integers(33)
    expected = x
    for k in range(start, stop, step):
        expected = expected * np.int32(3) + np.int32(k)
    assert_same_bits(
        launch_one(kernels.strided_range, 1, x, Out((33,), "int32"), start, stop, step, BLOCK=33), expected
    )


@pytest.mark.parametrize("extent", EXTENTS)
def test_a_while_on_a_block(extent: int) -> None:
    x = np.arange(1, extent + 1, dtype=np.int32)
    expected = []
    for number in x.tolist():
        n, steps = number, 0
        while n > 1:
            n, steps = (n // 2 if n % 2 == 0 else 3 * n + 1), steps + 1
        expected.append(steps)
    assert launch_one(kernels.collatz, 1, x, Out((extent,), "int32"), BLOCK=extent).tolist() == expected


@pytest.mark.parametrize(("a", "b"), [(2, 1), (1, 1), (1, 2), (0, 5), (-3, -4), (3, -1)])
def test_branches(a: int, b: int) -> None:
    x = integers(33)
    result = launch_one(kernels.branches, 1, x, Out((5, 33), "int32"), a, b, BLOCK=33)
    first = x + np.int32(1) if a > b else x * np.int32(2) if a == b else -x
    assert_same_bits(result[0], first)
    assert_same_bits(result[1], x if a < b else first)
    for row, taken in zip(result[2:4], (a > 0 and b > 0, a > 0 or b > 0), strict=True):
        assert_same_bits(row, x) if taken else check_untouched(row)
    even = np.arange(33) % 2 == 0
    check_untouched(result[4] if a > 0 else result[4][~even])
    if a <= 0:
        assert_same_bits(result[4][even], x[even])


def check_untouched(row: Array) -> None:
    assert is_untouched(row).all()


@pytest.mark.parametrize("n", [0, 1, 3, 5])
def test_leaving_early(n: int) -> None:
    x = integers(33)
    result = launch_one(kernels.leaves, 5, x, Out((5, 33), "int32"), n, BLOCK=33)
    for program in range(5):
        if program >= n:
            check_untouched(result[program])
            continue
        v = x
        for k in range(10):
            if k == program:
                continue
            if k > 2 * program + 1:
                break
            v = v * np.int32(2) + np.int32(k)
        assert_same_bits(result[program], v)


@pytest.mark.parametrize(("m", "n"), [(0, 3), (1, 1), (4, 6), (6, 3)])
def test_nested_loops(m: int, n: int) -> None:
    x = integers(100)
    v = x
    for r in range(m):
        row = v + np.int32(r)
        for s in range(r, n):
            row = row * np.int32(2) + np.int32(s) if (r + s) % 2 == 0 else row - np.int32(s)
        v = row
    assert_same_bits(launch_one(kernels.nested, 1, x, Out((100,), "int32"), m, n, BLOCK=100), v)


@pytest.mark.parametrize("rounds", [0, 1, 6])
def test_unrolled_loops(rounds: int) -> None:
    x = integers(33)
    v = x
    for k in range(rounds):
        v = v + np.int32(k) if k % 2 == 0 else v * np.int32(k)
    for k in range(5, 0, -2):
        v = v * np.int32(7) + np.int32(k)
    assert_same_bits(launch_one(kernels.unrolled, 1, x, Out((33,), "int32"), BLOCK=33, ROUNDS=rounds), v)


@pytest.mark.parametrize("step", [7, 16, 100])
@pytest.mark.parametrize("n", [1, 7, 50, 100, 101])
def test_pointers_carried_along_rows(n: int, step: int) -> None:
    rows = 3
    x = random_numbers("fp32", (rows, n))
    result = launch_one(kernels.rows_of_a_loop, rows, x, Out((rows * (n + step),), "fp32"), n, STEP=step)
    assert_same_bits(result[: rows * n].reshape(rows, n), x * np.float32(2))
    total = np.zeros((rows, step), np.float32)
    for start in range(0, n, step):
        part = x[:, start : start + step]
        padded = np.zeros((rows, step), np.float32)
        padded[:, : part.shape[1]] = part
        total = total + padded
    assert_same_bits(result[rows * n :].reshape(rows, step), total)


@pytest.mark.parametrize("extent", EXTENTS)
def test_a_while_on_floats(extent: int) -> None:
    """The same rounds in NumPy's fp32, to the bit; every operation rounds once."""
    x = np.abs(random_numbers("fp32", (extent,))) + np.float32(0.1)
    r, change, rounds = x + np.float32(1), np.float32(1), 0
    while change > 0 and rounds < 50:
        better = (r + x / r) * np.float32(0.5)
        change, r, rounds = np.abs(better - r).max(), better, rounds + 1
    result = launch_one(kernels.newton, 1, x, Out((extent,), "fp32"), BLOCK=extent)
    assert_same_bits(result, r)
    exact = np.sqrt(x.astype(np.float64))
    assert (np.abs(result - exact) <= 2.0**-23 * exact).all()  # a last sum and quotient, half a unit each
