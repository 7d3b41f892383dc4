"""Block pointers and tensor descriptors against NumPy: what lies in the array, what does not, and where."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.numerics import window_kernels as kernels
from tests.numerics.expected import converted
from tests.numerics.launching import Array, Out, assert_same_bits, is_untouched, launch_both, launch_one
from tests.numerics.values import ALL, FLOATS, NUMPY_DTYPES, random_numbers

PLACES = [(0, 0), (3, 5), (-2, 0), (0, -7), (-100, 2), (9, 36), (50, 50), (2**31 - 1, 0), (-(2**31), -1)]


def window(x: Array, start: tuple[int, ...], shape: tuple[int, ...], padding: Any = 0) -> Array:
    """The block of `shape` at `start` of an array, lane by lane."""
    out = np.full(shape, padding, x.dtype)
    for lane in np.ndindex(*shape):
        index = tuple(s + i for s, i in zip(start, lane, strict=True))
        if all(0 <= i < n for i, n in zip(index, x.shape, strict=True)):
            out[lane] = x[index]
    return out


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("padding", ["", "zero", "nan"])
def test_a_block_at_a_place(place: tuple[int, int], padding: str) -> None:
    x = random_numbers("fp32", (10, 37))
    result = launch_one(
        kernels.copy_2d, 1, x, Out((7, 33), "fp32"), 10, 37, 37, 1, *place,
        TALL=7, WIDE=33, CHECK=(0, 1), PADDING=padding,
    )  # fmt: skip
    assert_same_bits(result, window(x, place, (7, 33), np.nan if padding == "nan" else 0), str(place))


@pytest.mark.parametrize("name", ALL)
def test_types(name: str) -> None:
    x = random_numbers(name, (5, 9))
    padding = "nan" if name in FLOATS else "zero"
    result = launch_one(
        kernels.copy_2d, 1, x, Out((4, 8), name), 5, 9, 9, 1, 3, 2,
        TALL=4, WIDE=8, CHECK=(1, 0), PADDING=padding,
    )  # fmt: skip
    assert_same_bits(result, window(x, (3, 2), (4, 8), np.nan if name in FLOATS else 0), name)


@pytest.mark.parametrize("step", [1, 2, -1])
def test_strides(step: int) -> None:
    """Rows that overlap, elements that lie apart, and an axis walked backwards."""
    x = random_numbers("int32", (200,))
    start = 150 if step < 0 else 0
    result = launch_one(
        kernels.copy_2d, 1, x, Out((6, 20), "int32"), 8, 15, 5, step, start // 5, 2,
        TALL=6, WIDE=20, CHECK=(1,), PADDING="",
    )  # fmt: skip
    expected = np.zeros((6, 20), np.int32)
    for i, j in np.ndindex(6, 13):
        expected[i, j] = x[(start // 5 + i) * 5 + (2 + j) * step]
    assert_same_bits(result, expected)


def test_only_the_named_axes_are_guarded() -> None:
    """Behind the end of a row that is not guarded lies the next row."""
    x = random_numbers("int32", (10, 8))
    result = launch_one(
        kernels.copy_2d, 1, x, Out((4, 16), "int32"), 6, 8, 8, 1, 4, 0,
        TALL=4, WIDE=16, CHECK=(0,), PADDING="",
    )  # fmt: skip
    expected = np.zeros((4, 16), np.int32)
    for i in range(2):
        expected[i] = x.reshape(-1)[(4 + i) * 8 : (4 + i) * 8 + 16]
    assert_same_bits(result, expected)


@pytest.mark.parametrize("place", PLACES)
def test_lanes_outside_are_not_written(place: tuple[int, int]) -> None:
    x = random_numbers("fp32", (7, 33))
    results = [
        launch_one(
            kernels.write_2d, 1, x, Out((10, 37), "fp32"), 10, 37, *place, TALL=7, WIDE=33, CHECK=(1, 0)
        ),
        launch_one(kernels.described_write, 1, x, Out((10, 37), "fp32"), 10, 37, *place, TALL=7, WIDE=33),
    ]
    for result in results:
        for index in np.ndindex(*result.shape):
            lane = tuple(i - s for i, s in zip(index, place, strict=True))
            if all(0 <= i < n for i, n in zip(lane, x.shape, strict=True)):
                assert result[index] == x[lane]
            else:
                assert is_untouched(result[index][None]).all()


@pytest.mark.parametrize("shape", [(1, 1), (64, 48), (50, 33)])
@pytest.mark.parametrize("name", ["fp32", "int8", "bf16"])
def test_a_transpose(shape: tuple[int, int], name: str) -> None:
    m, n = shape
    x = random_numbers(name, shape)
    grid = (-(-m // 16), -(-n // 24))
    result = launch_one(kernels.transposed, grid, x, Out((n, m), name), m, n, TALL=16, WIDE=24)
    assert_same_bits(result, np.ascontiguousarray(x.T))


@pytest.mark.parametrize("steps", [0, 1, 2, 3, 6])
@pytest.mark.parametrize("block", [4, 7])
def test_block_pointers_move_through_functions_loops_and_branches(steps: int, block: int) -> None:
    x = random_numbers("int32", (23,))
    result = launch_one(kernels.walks, 1, x, Out((6, block), "int32"), 23, steps, BLOCK=block)

    def at(start: int) -> Array:
        return window(x, (start,), (block,))

    with np.errstate(over="ignore"):
        first = sum((at(k * block) for k in range(steps)), np.zeros(block, np.int32))
        here = steps * block
        rows = [first, at(here)]
        here += -2 * block if steps > 2 else 1
        rows += [at(here), at(here if steps % 2 == 0 else here - 1)]
        total, left = np.zeros(block, np.int32), steps
        while left > 0:
            total = total + at(here)
            here, left = here + 1, left - 1
            if left == 2:
                break
    assert_same_bits(result, np.stack([*rows, total, at(here)]))


@pytest.mark.parametrize("sizes", [(64, 64, 64), (33, 50, 70), (5, 3, 1)])
@pytest.mark.parametrize("name", ["fp32", "fp16", "bf16"])
def test_matrix_products(sizes: tuple[int, int, int], name: str) -> None:
    """Block pointers, of a matrix as it is and of a transposed one, and descriptors: the same bits."""
    m, n, k = sizes
    random = np.random.default_rng(5)
    a, b = (converted(random.integers(-4, 5, s).astype(np.float32), "fp32", name) for s in ((m, k), (k, n)))
    grid = (-(-m // 32), -(-n // 16))
    blocks = {"BM": 32, "BN": 16, "BK": 16}
    flipped = np.ascontiguousarray(b.T)
    results = [
        launch_one(kernels.product, grid, a, b, Out((m, n), name), m, n, k, k, 1, n, 1, **blocks),
        launch_one(kernels.product, grid, a, flipped, Out((m, n), name), m, n, k, k, 1, 1, k, **blocks),
        launch_one(kernels.described_product, grid, a, flipped, Out((m, n), name), m, n, k, **blocks),
    ]
    exact = a.astype(np.float64) @ b.astype(np.float64)  # small integers: every order gives it
    for result in results:
        assert_same_bits(result, converted(exact.astype(np.float32), "fp32", name))


# ---- descriptors ----

CHANGES: dict[str, Any] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("padding", ["zero", "nan"])
def test_a_described_block(place: tuple[int, int], padding: str) -> None:
    x = random_numbers("fp32", (10, 40))
    result = launch_one(
        kernels.described_copy, 1, x, Out((7, 33), "fp32"), 10, 37, 40, *place,
        TALL=7, WIDE=33, PADDING=padding,
    )  # fmt: skip
    padded = np.nan if padding == "nan" else 0
    assert_same_bits(result, window(x[:, :37], place, (7, 33), padded), str(place))


@pytest.mark.parametrize("name", ALL)
def test_described_types(name: str) -> None:
    """Loads of every type; stores cast."""
    x = random_numbers(name, (4, 16))
    result = launch_one(
        kernels.described_copy, 1, x, Out((3, 16), name), 4, 16, 16, 2, -3, TALL=3, WIDE=16, PADDING="zero"
    )
    assert_same_bits(result, window(x, (2, -3), (3, 16)), name)
    stored = launch_one(kernels.described_write, 1, x, Out((4, 16), "fp32"), 4, 16, 0, 0, TALL=4, WIDE=16)
    assert_same_bits(stored, converted(x, name, "fp32"), name)


@pytest.mark.parametrize("start", [0, 1, 2, -1])
def test_ranks_from_one_to_five(start: int) -> None:
    x = random_numbers("int32", (3, 2, 5, 3, 6))
    original = x.copy()
    changed, out = launch_both(
        kernels.ranks, 1, Out(x.shape, "int32", x), Out((48,), "int32"), *x.shape, start, N=11
    )
    five = window(original, (0, start, 1, start, 1), (2, 1, 3, 2, 4)).reshape(48)
    flat = original.reshape(-1).copy()
    for lane, value in enumerate(window(original.reshape(-1), (start,), (11,)) + 1):
        if 0 <= start * 11 + lane < flat.size:
            flat[start * 11 + lane] = value
    assert_same_bits(changed.reshape(-1), flat)
    three = five[:36].reshape(3, 2, 6)
    row = window(three, (2, 1, start), (1, 1, 4))
    if 0 <= start < 3:
        three[start, 0, :4] = row[0, 0]
    assert_same_bits(out, np.concatenate([three.reshape(-1), five[36:]]))


@pytest.mark.parametrize("name", ["fp32", "int16", "fp16"])
@pytest.mark.parametrize("column", [0, 5, 30, -3])
def test_rows_gathered_and_scattered(name: str, column: int) -> None:
    m, n, width = 12, 37, 16
    x = random_numbers(name, (m, n))
    indices = np.array([3, -1, 11, 12, 0, 7, 2**31 - 1, 5, 3], np.int32)
    result = launch_one(kernels.rows_of, 1, x, Out((m, n), name), indices, m, n, column, ROWS=9, WIDE=width)
    for i, j in np.ndindex(m, n):
        if i in indices and column <= j < column + width:
            with np.errstate(all="ignore"):
                assert_same_bits(result[i, j][None], (x[i, j] * x.dtype.type(2))[None])
        else:
            assert is_untouched(result[i, j][None]).all()


@pytest.mark.parametrize("k", [0, 1, 2])
def test_descriptors_in_branches_and_loops(k: int) -> None:
    x = random_numbers("int32", (21,))
    result = launch_one(kernels.described_pick, 1, x, Out((8,), "int32"), 21, k, BLOCK=8)
    assert_same_bits(result, window(x[10:] if k == 2 else x, (1,), (8,)))


ATOMICS = [
    *((kind, name) for kind in CHANGES for name in ("int32", "uint32", "int64", "uint64")),
    *(("add", name) for name in ("fp16", "bf16", "fp32", "fp64")),
    *((kind, name) for kind in ("min", "max") for name in ("fp32", "fp64")),
]


@pytest.mark.parametrize(("kind", "name"), ATOMICS)
@pytest.mark.parametrize("place", [(0, 0), (2, -3), (-1, 30), (9, 0), (10, 5), (-7, 0), (3, 35)])
def test_described_atomics(kind: str, name: str, place: tuple[int, int]) -> None:
    """Of several programs; lanes outside of the array change nothing. Whole floats: their sums are exact."""
    rng = np.random.default_rng(3)
    tall, wide, m, n = 7, 33, 10, 37
    dtype = NUMPY_DTYPES[name]
    values = rng.integers(-20, 20, (3, tall, wide)).astype(np.int64).astype(dtype)
    start = rng.integers(-20, 20, (m, n)).astype(np.int64).astype(dtype)
    changed = launch_one(
        kernels.described_atomic, 3, values, Out((m, n), name, start), m, n, *place,
        KIND=kind, TALL=tall, WIDE=wide,
    )  # fmt: skip
    right = start.copy()
    for block, i, j in np.ndindex(3, tall, wide):
        at = (place[0] + i, place[1] + j)
        if 0 <= at[0] < m and 0 <= at[1] < n:
            with np.errstate(all="ignore"):
                right[at] = CHANGES[kind](right[at], values[block, i, j])
    assert_same_bits(changed, right, f"{kind} of {name} at {place}")
