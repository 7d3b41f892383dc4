"""Scans and mapped functions against Python and NumPy, over types, axes, odd extents and masks.

The order of scans is that of `blocklang.ops.scan`, done again here element by element.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.numerics import scan_kernels as kernels
from tests.numerics.expected import exact, wrapped
from tests.numerics.launching import Out, assert_same_bits, launch_both, launch_one
from tests.numerics.values import (
    ALL,
    INTEGERS,
    NUMPY_DTYPES,
    SIGNED,
    TYPES,
    bits_of,
    random_numbers,
)

Array = npt.NDArray[Any]
State = tuple[Any, ...]
Combine = Callable[[State, State], State]

EXTENTS = (1, 2, 5, 15, 16, 17, 31, 32, 33, 100, 257, 1000)


def scan_row(combine: Combine, row: Sequence[State], *, grouped: bool) -> list[State]:
    """The published order, one element at a time."""
    if not grouped:
        return list(itertools.accumulate(row, combine))
    results: list[State] = []
    for start in range(0, len(row), 16):
        t = list(row[start : start + 16])
        for d in (1, 2, 4, 8):
            t = [combine(t[i - d], t[i]) if i >= d else t[i] for i in range(len(t))]
        results += [combine(results[start - 1], x) for x in t] if start else t
    return results


def scanned(combine: Combine, blocks: Sequence[Array], axis: int, *, reverse: bool = False) -> list[Array]:
    """Scan blocks of one shape together."""
    grouped = math.prod(blocks[0].shape[axis + 1 :]) == 1
    moved = [np.moveaxis(b, axis, -1) for b in blocks]
    results = [np.empty_like(m) for m in moved]
    order = slice(None, None, -1) if reverse else slice(None)
    for place in np.ndindex(moved[0].shape[:-1]):
        row = list(zip(*(m[place][order] for m in moved), strict=True))
        with np.errstate(all="ignore"):
            columns = zip(*scan_row(combine, row, grouped=grouped), strict=True)
        for result, column in zip(results, columns, strict=True):
            result[place] = np.array(column, result.dtype)[order]
    return [np.moveaxis(r, -1, axis) for r in results]


def small_to_32(name: str) -> str:
    if name == "bf16":
        return "fp32"
    return ("int32" if name in SIGNED else "uint32") if name in INTEGERS and bits_of(name) < 32 else name


def total(x: Array, operation: Any, name: str, *, reverse: bool) -> Array:
    """A running sum or product in the type `name`."""
    if name in INTEGERS:
        rows = list(itertools.accumulate(exact(x)[::-1] if reverse else exact(x), operation))
        return wrapped(np.array(rows[::-1] if reverse else rows, object), name)
    dtype = NUMPY_DTYPES[name]

    def combine(a: State, b: State) -> State:
        if name == "fp16":  # computed in fp32, rounded each time
            return (dtype.type(operation(np.float32(a[0]), np.float32(b[0]))),)
        return (operation(a[0], b[0]),)

    return scanned(combine, [x.astype(dtype)], 0, reverse=reverse)[0]


# ---- sums and products ----


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", ALL)
def test_sums_of_every_type(name: str, reverse: bool) -> None:
    result = small_to_32(name)
    for extent in EXTENTS[:9]:
        x = random_numbers(name, (extent,), extent)
        actual = launch_one(
            kernels.sums,
            1,
            x,
            Out((extent,), result),
            extent,
            N=extent,
            REVERSE=reverse,
            RESULT=TYPES[result],
        )
        expected = total(x, lambda a, b: a + b, result, reverse=reverse)
        assert_same_bits(actual, expected, f"{name} {extent}")


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", ALL)
def test_products_of_every_type(name: str, reverse: bool) -> None:
    result = "fp32" if name == "bf16" else name
    for extent in (1, 17, 40):
        x = random_numbers(name, (extent,), extent)
        actual = launch_one(
            kernels.products,
            1,
            x,
            Out((extent,), result),
            extent,
            N=extent,
            REVERSE=reverse,
            RESULT=TYPES[result],
        )
        if name == "int1":
            continue  # the modes agree; a product of bits is no Python product
        expected = total(x, lambda a, b: a * b, result, reverse=reverse)
        assert_same_bits(actual, expected, f"{name} {extent}")


@pytest.mark.parametrize(("block", "live"), [(64, 64), (64, 0), (100, 37), (33, 32), (1000, 999)])
@pytest.mark.parametrize("reverse", [False, True])
def test_masks(block: int, live: int, reverse: bool) -> None:
    x = random_numbers("fp32", (block,))
    out = launch_one(
        kernels.sums,
        1,
        x,
        Out((block,), "fp32"),
        live,
        N=block,
        REVERSE=reverse,
        RESULT=TYPES["fp32"],
    )
    held = np.where(np.arange(block) < live, x, np.float32(0))
    expected = total(held, lambda a, b: a + b, "fp32", reverse=reverse)
    assert_same_bits(out[:live], expected[:live])


@pytest.mark.parametrize(
    ("name", "added"),
    [("int8", "int64"), ("uint8", "int8"), ("int1", "fp32"), ("fp16", "fp32"), ("bf16", "fp64")],
)
def test_sums_in_another_type(name: str, added: str) -> None:
    x = random_numbers(name, (70,))
    actual = launch_one(kernels.sums_as, 1, x, Out((70,), added), N=70, TYPE=TYPES[added])
    wide = x.astype(NUMPY_DTYPES[added])
    assert_same_bits(actual, total(wide, lambda a, b: a + b, added, reverse=False))


def test_bf16_sums_are_fp32() -> None:
    x = np.full(1000, 1, NUMPY_DTYPES["bf16"])
    out = launch_one(
        kernels.sums, 1, x, Out((1000,), "fp32"), 1000, N=1000, REVERSE=False, RESULT=TYPES["fp32"]
    )
    assert out.tolist() == list(range(1, 1001))


# ---- any axis, any function ----


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    "shape",
    [
        *((n,) for n in EXTENTS),
        *((5, 37), (37, 5), (1, 9), (9, 1), (64, 16), (3, 100)),
        *((2, 3, 5), (17, 1, 1), (4, 1, 33), (3, 19, 1)),
        *((2, 3, 2, 5), (2, 1, 17, 3), (3, 2, 18, 1)),
    ],
)
def test_every_axis(shape: tuple[int, ...], reverse: bool) -> None:
    for name in ("int32", "fp32"):
        x = random_numbers(name, shape)
        if name == "fp32":
            x = np.clip(x, -1, 1)  # digits grow by a factor of 31 each
        for axis in (-1, *range(len(shape) - 1)):
            actual = launch_one(
                kernels.along, 1, x, Out(shape, name), SHAPE=shape, AXIS=axis, REVERSE=reverse
            )
            where = axis % len(shape)
            if name == "int32":
                (big,) = scanned(
                    lambda a, b: (a[0] * 31 + b[0] * 17 + 1,), [exact(x)], where, reverse=reverse
                )
                expected = wrapped(big, name)
            else:
                (expected,) = scanned(
                    lambda a, b: (a[0] * np.float32(31) + b[0] * np.float32(17) + np.float32(1),),
                    [x],
                    where,
                    reverse=reverse,
                )
            assert_same_bits(actual, expected, f"{name} {shape} axis {axis}")


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("reverse", [False, True])
def test_composed_maps(axis: int, reverse: bool) -> None:
    shape = (19, 35)
    x, y = random_numbers("int32", shape, 1), random_numbers("int64", shape, 2)
    scale, shift = launch_both(
        kernels.composed,
        1,
        x,
        y,
        Out(shape, "int32"),
        Out(shape, "int64"),
        M=19,
        N=35,
        AXIS=axis,
        REVERSE=reverse,
    )

    def combine(a: State, b: State) -> State:
        return wrapped(np.asarray(a[0] * b[0]), "int32").item(), a[1] * b[0] + b[1]

    # Any association gives the same: composition is associative, modulo 2 to the 32 and 64 apart.
    a = np.moveaxis(exact(x), axis, 0)
    a = a[::-1] if reverse else a
    scales = np.array(list(itertools.accumulate(a, lambda p, q: p * q)), object)
    expected = np.moveaxis(scales[::-1] if reverse else scales, 0, axis)
    assert_same_bits(scale, wrapped(expected, "int32"))
    _, shifts = scanned(combine, [exact(x), exact(y)], axis, reverse=reverse)
    assert_same_bits(shift, wrapped(shifts, "int64"))


@pytest.mark.parametrize("extent", [1, 16, 33, 300])
def test_segmented_sums(extent: int) -> None:
    x = random_numbers("int32", (extent,))
    starts = (np.random.default_rng(extent).integers(0, 5, extent) == 0).astype(np.int8)
    result = launch_one(kernels.segmented, 1, x, starts, Out((extent,), "int32"), N=extent)
    expected, running = [], 0
    for value, begins in zip(x.tolist(), starts.tolist(), strict=True):
        running = value if begins else running + value
        expected.append(running)
    assert_same_bits(result, wrapped(np.array(expected, object), "int32"))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("extent", [1, 7, 16, 40, 257])
def test_the_best_so_far(extent: int, reverse: bool) -> None:
    """Each lane takes its own branch."""
    x = np.random.default_rng(extent).integers(-9, 9, extent).astype(np.float32)
    values, indices = launch_both(
        kernels.best_so_far,
        1,
        x,
        Out((extent,), "fp32"),
        Out((extent,), "int32"),
        N=extent,
        REVERSE=reverse,
    )
    order = range(extent - 1, -1, -1) if reverse else range(extent)
    top = None
    for i in order:
        top = i if top is None or x[i] > x[top] else top
        assert (values[i], indices[i]) == (x[top], top)


def steps_after(n: int) -> int:
    steps = 0
    while n > 1 and steps < 40:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


@pytest.mark.parametrize("extent", [3, 16, 50, 100])
def test_functions_that_loop(extent: int) -> None:
    x = np.random.default_rng(extent).integers(0, 500, extent).astype(np.int32)
    scan, fold = launch_both(kernels.looped, 1, x, Out((extent,), "int32"), Out((1,), "int32"), N=extent)

    def combine(a: State, b: State) -> State:
        return (a[0] + b[0] + steps_after(abs(a[0] + b[0]) % 1000 + 1),)

    assert scan.tolist() == scanned(combine, [exact(x)], 0)[0].tolist()
    items = [(v,) for v in x.tolist()]
    while len(items) > 1:
        pairs = [combine(items[i], items[i + 1]) for i in range(0, len(items) - 1, 2)]
        items = pairs + items[2 * len(pairs) :]
    assert fold.tolist() == [items[0][0]]


@pytest.mark.parametrize("shape", [(5, 37), (16, 64), (1, 3)])
def test_scans_of_scans(shape: tuple[int, int]) -> None:
    x = random_numbers("int32", shape)
    m, n = shape
    result = launch_one(kernels.twice, 1, x, Out(shape, "int32"), M=m, N=n)
    inner = wrapped(np.cumsum(exact(x), 1), "int32")
    outer = np.flip(np.cumsum(np.flip(exact(inner), 0), 0), 0)
    expected = outer - exact(inner.max(1))[:, None] + exact(x)
    assert_same_bits(result, wrapped(expected, "int32"))


@pytest.mark.parametrize("rounds", [0, 1, 2, 5])
def test_scans_in_loops(rounds: int) -> None:
    x = random_numbers("int32", (75,))
    result = launch_one(kernels.carried, 1, x, Out((75,), "int32"), rounds, N=75)
    a = exact(x)
    before = np.cumsum(a)
    for k in range(rounds):
        a = np.cumsum(a[::-1])[::-1] + before * k
        if k % 2 == 1:
            a = np.cumsum(a - 1)
    assert_same_bits(result, wrapped(a, "int32"))


# ---- mapped functions ----


@pytest.mark.parametrize("limit", [0, 1, 30])
def test_mandelbrot(limit: int) -> None:
    re, im = np.linspace(-2, 1, 37, dtype=np.float32), np.linspace(-1.2, 1.2, 11, dtype=np.float32)
    result = launch_one(kernels.mandelbrot, 1, re, im, Out((11, 37), "int32"), limit, M=11, N=37)
    two, four = np.float32(2), np.float32(4)
    for (i, j), steps in np.ndenumerate(result):
        z = np.zeros(2, np.float32)
        count = 0
        while z[0] * z[0] + z[1] * z[1] <= four and count < limit:
            z[:] = z[0] * z[0] - z[1] * z[1] + re[j], two * z[0] * z[1] + im[i]
            count += 1
        assert steps == count


@pytest.mark.parametrize("name", ["int32", "int64", "uint32"])
def test_ranges_of_every_lane(name: str) -> None:
    rng = np.random.default_rng(3)
    low = -25 if name in SIGNED else 0
    starts, stops = (rng.integers(low, 25, 133).astype(NUMPY_DTYPES[name]) for _ in range(2))
    steps = rng.integers(-4 if name in SIGNED else 1, 5, 133).astype(NUMPY_DTYPES[name])
    steps[steps == 0] = 3
    edge = np.iinfo(NUMPY_DTYPES[name])
    starts[:3], stops[:3], steps[:3] = edge.max - 5, edge.max, 4  # the index wraps behind the last round
    totals, lasts = launch_both(
        kernels.ranges, 1, starts, stops, steps, Out((133,), name), Out((133,), name), N=133
    )
    for i, bounds in enumerate(zip(starts.tolist(), stops.tolist(), steps.tolist(), strict=True)):
        total, last = 0, bounds[0]
        for k in range(*bounds):
            total, last = total * 3 + k, k
        assert totals[i] == wrapped(np.asarray(total, object), name)
        assert lasts[i] == last


@pytest.mark.parametrize("extent", [1, 7, 64, 300])
def test_loops_in_branches(extent: int) -> None:
    rng = np.random.default_rng(extent)
    x, y = (rng.integers(-60, 60, extent).astype(np.int32) for _ in range(2))
    x, positive = np.where(x == 0, 5, x).astype(np.int32), np.abs(y) + 1
    gcds, depths = launch_both(
        kernels.divisors,
        1,
        np.abs(x),
        positive.astype(np.int32),
        *(Out((extent,), "int32") for _ in "ab"),
        N=extent,
    )
    assert gcds.tolist() == np.gcd(np.abs(x), positive).tolist()
    for n, depth in zip(np.abs(x).tolist(), depths.tolist(), strict=True):
        expected = sum(k for i in range(n % 5) for k in range(i, 0, -1) if (k + n) % 3 == 0)
        assert depth == expected


@pytest.mark.parametrize("limit", [0, 7, 100])
@pytest.mark.parametrize("extent", [1, 9, 77, 200])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rounds_that_lanes_have_in_common(extent: int, limit: int, dtype: str) -> None:
    rng = np.random.default_rng(extent)
    x = rng.integers(0, 90, extent).astype(np.int32)
    y = (2.0 ** rng.uniform(-1, 20, extent)).astype(dtype)
    outs = [Out((extent,), "int32") for _ in range(3)]
    counts, sums, halved = launch_both(kernels.rounds, 1, x, y, *outs, limit, N=extent)
    triangles = np.cumsum(np.arange(101))
    expected = np.minimum(np.searchsorted(triangles, x), limit)
    assert counts.tolist() == expected.tolist()
    assert sums.tolist() == triangles[expected].tolist()
    assert halved.tolist() == np.minimum(np.ceil(np.log2(np.maximum(y, 1))), limit).tolist()


@pytest.mark.parametrize("shape", [(1, 3), (5, 33), (4, 96)])
def test_packs(shape: tuple[int, int]) -> None:
    x, w = random_numbers("int32", shape, 1), random_numbers("int32", shape, 2)
    m, n = shape
    rotated, scaled = launch_both(kernels.packs, 1, x, w, Out(shape, "int32"), Out(shape, "int32"), M=m, N=n)
    assert_same_bits(rotated, np.roll(x.reshape(m, n // 3, 3), -1, 2).reshape(shape))
    assert_same_bits(scaled, wrapped(exact(x) * exact(w), "int32"))


@pytest.mark.parametrize("extent", [1, 9, 100])
def test_loads_in_a_function(extent: int) -> None:
    table = np.random.default_rng(0).permutation(64).astype(np.int32)
    x = np.random.default_rng(1).integers(0, 64, extent).astype(np.int32)
    result = launch_one(kernels.chased, 1, table, x, Out((extent,), "int32"), N=extent)
    assert result.tolist() == table[table[table[x]]].tolist()


def test_a_result_with_several_readers() -> None:
    x = np.arange(1, 78, dtype=np.int32)
    result = launch_one(kernels.several_readers, 1, x, Out((154,), "int32"), N=77)
    a = np.array(
        [sum(k for i in range(n % 5) for k in range(i, 0, -1) if (k + n) % 3 == 0) for n in x.tolist()]
    )
    assert result.tolist() == [*(a - a.sum()).tolist(), *np.cumsum(a).tolist()]


# ---- what functions may hold ----


@pytest.mark.parametrize("s", [1, 3])
def test_functions_that_call_and_capture(s: int) -> None:
    x = random_numbers("int32", (50,))
    result = launch_one(kernels.captured, 1, x, Out((151,), "int32"), s, N=50)
    numbers = exact(x)
    (first,) = scanned(lambda a, b: (a[0] * s + b[0] + numbers[0],), [numbers], 0)
    (second,) = scanned(lambda a, b: (a[0] * b[0] + b[0] * b[0],), [numbers], 0)
    items = list(numbers)
    while len(items) > 1:
        pairs = [items[i] * s - items[i + 1] for i in range(0, len(items) - 1, 2)]
        items = pairs + items[2 * len(pairs) :]
    last = itertools.accumulate(numbers, (lambda a, b: a + b) if s > 2 else (lambda a, b: a * b))
    assert_same_bits(result, wrapped(np.array([*first, *second, *items, *last], object), "int32"))


@pytest.mark.parametrize("extent", [1, 40, 77])
def test_functions_that_return_early(extent: int) -> None:
    x = np.arange(-20, extent - 20, dtype=np.int32)
    result = launch_one(kernels.returning, 1, x, Out((extent,), "int32"), N=extent)

    def early(n: int) -> int:
        if n < 0:
            return 0
        while n > 5:
            if n == 17:
                return n
            n -= 3
        return -n

    assert result.tolist() == [early(n) for n in x.tolist()]


def test_scans_and_maps_of_pointers() -> None:
    x = random_numbers("int32", (50,))
    result = launch_one(kernels.pointers, 1, x, Out((100,), "int32"), N=50)
    assert_same_bits(result, np.concatenate([x + 1, x * 2]).astype(np.int32))
