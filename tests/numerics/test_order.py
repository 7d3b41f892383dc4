"""Sorts, topk, gathers and histograms over types, extents and masks, against NumPy.

The order of floats is written here as three keys: is it NaN, its number, has it no sign.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import blocklang.language as tl
from blocklang.ir.float8 import FLOAT8 as FORMATS
from tests.numerics import order_kernels as kernels
from tests.numerics.launching import Array, Out, assert_same_bits, is_untouched, launch_both, launch_one
from tests.numerics.values import ALL, INTEGERS, NUMPY_DTYPES, numbers, random_numbers


def in_order(x: Array, *, descending: bool = False) -> Array:
    """Rows along the last axis in the published order."""
    if x.dtype.kind in "biu":
        ordered = np.sort(x, axis=-1)
    else:
        wide = x.astype(np.float64)
        is_nan = np.isnan(wide)
        places = np.lexsort((~np.signbit(wide) | is_nan, np.where(is_nan, 0, wide), is_nan), axis=-1)
        ordered = np.take_along_axis(x, places, axis=-1)
    return np.ascontiguousarray(ordered[..., ::-1] if descending else ordered)


def mixed(name: str, shape: tuple[int, ...], seed: int = 0) -> Array:
    """Random numbers, one in three of them an edge of its type: NaN and zeros of both signs too."""
    generator = np.random.default_rng([seed, *shape])
    plain = random_numbers(name, shape, seed)
    special = generator.choice(numbers(name), shape)
    return np.where(generator.integers(0, 3, shape) == 0, special, plain)


def sort_rows(x: Array, name: str, *, descending: bool) -> Array:
    rows, extent = x.shape
    return launch_one(
        kernels.sorted_rows, (1,), x, Out(x.shape, name), M=rows, N=extent, DESCENDING=descending
    )


# ---- sort ----


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("shape", [(2, 1), (3, 2), (3, 7), (4, 16), (2, 100), (3, 257), (2, 1000)], ids=str)
def test_rows_are_sorted(name: str, shape: tuple[int, int]) -> None:
    x = mixed(name, shape)
    descending = shape[0] == 2
    assert_same_bits(sort_rows(x, name, descending=descending), in_order(x, descending=descending))


@pytest.mark.parametrize("kind", ["e5", "e4nv", "e4b8", "e5b16", "e4b15"])
@pytest.mark.parametrize("descending", [False, True])
def test_codes_of_8_bit_floats_are_sorted(kind: str, descending: bool) -> None:
    form = FORMATS[f"f8{kind}"]
    codes = np.random.default_rng(6).permutation(256).astype(np.uint8)
    out = launch_one(
        kernels.sorted_kind,
        (1,),
        codes,
        Out((259,), "uint8"),
        KIND=getattr(tl, f"float8{kind}"),
        N=256,
        DESCENDING=descending,
    )

    def place(code: int) -> tuple[bool, float, bool]:
        number = form.decode(code)
        return (True, 0.0, False) if math.isnan(number) else (False, number, code < 0x80)

    ordered = sorted(map(place, range(256)), reverse=descending)
    assert [place(int(c)) for c in out[:256]] == ordered
    assert [place(int(c)) for c in out[256:]] == sorted(ordered, reverse=True)[:3]


@pytest.mark.parametrize("name", ["int8", "fp16", "fp32", "fp64", "uint64"])
@pytest.mark.parametrize("extent", [4095, 8192, 20000, 65537])
def test_long_rows_are_sorted_block_by_block(name: str, extent: int) -> None:
    x = mixed(name, (1, extent))
    assert_same_bits(sort_rows(x, name, descending=False), in_order(x))


def test_a_sort_is_a_network_that_sorts_zeros_and_ones() -> None:
    # A network of comparisons that sorts every row of zeros and ones sorts every row (Knuth).
    for extent in (5, 8):
        rows = (np.arange(1 << extent)[:, None] >> np.arange(extent) & 1).astype(np.int32)
        assert_same_bits(sort_rows(rows, "int32", descending=False), np.sort(rows, axis=-1))
    ones = np.arange(301)[:, None]
    rows = np.random.default_rng(0).permuted(np.arange(300) < ones, axis=1).astype(np.int16)
    assert_same_bits(sort_rows(rows, "int16", descending=True), np.sort(rows, axis=-1)[:, ::-1].copy())


@pytest.mark.parametrize("pattern", ["rising", "falling", "equal", "peak", "valley"])
def test_patterns(pattern: str) -> None:
    ramp = np.arange(1000, dtype=np.float32)
    x = {
        "rising": ramp,
        "falling": -ramp,
        "equal": 0 * ramp,
        "peak": -np.abs(ramp - 400),
        "valley": np.abs(ramp - 400),
    }[pattern]
    assert_same_bits(sort_rows(x[None], "fp32", descending=False)[0], in_order(x))


@pytest.mark.parametrize("n", [0, 1, 37, 100])
@pytest.mark.parametrize("m", [0, 13, 100])
def test_masks(n: int, m: int) -> None:
    x = mixed("fp32", (100,))
    out = launch_one(kernels.sorted_where, (1,), x, Out((100,), "fp32"), n, m, BLOCK=100, OTHER=math.inf)
    whole = in_order(np.where(np.arange(100) < n, x, np.float32(np.inf)))
    assert_same_bits(out[:m], whole[:m])
    assert is_untouched(out[m:]).all()


@pytest.mark.parametrize("shape", [(5, 37), (16, 8), (1, 9)], ids=str)
def test_views(shape: tuple[int, int]) -> None:
    x = mixed("fp32", shape)
    out = launch_one(kernels.sorted_view, (1,), x, Out(shape, "fp32"), M=shape[0], N=shape[1])
    columns = np.ascontiguousarray(in_order(np.ascontiguousarray(x.T)).T)
    assert_same_bits(out, in_order(columns, descending=True))


def test_three_axes() -> None:
    x = mixed("int16", (2, 3, 33))
    out = launch_one(kernels.sorted_3d, (1,), x, Out(x.shape, "int16"), L=2, M=3, N=33)
    assert_same_bits(out, in_order(x))


@pytest.mark.parametrize("n", [0, 1, 5])
def test_sorts_in_control_flow(n: int) -> None:
    x = random_numbers("fp32", (3, 37))
    out = launch_one(kernels.sorted_in_loop, (1,), x, Out(x.shape, "fp32"), n, M=3, N=37)
    a, total = x, np.zeros_like(x)
    for k in range(n):
        a = np.sort(a, -1) * np.float32(0.5) if k % 2 == 0 else a + np.sort(a, -1)[:, ::-1]
        total = total + a
    assert_same_bits(out, np.ascontiguousarray(total))


def test_a_sort_reads_before_its_result_is_stored() -> None:
    x = random_numbers("int32", (200,))
    (out,) = launch_both(kernels.sorted_in_place, (1,), Out((200,), "int32", x), BLOCK=100)
    assert_same_bits(out, np.concatenate([np.sort(x[:100]), x[:100]]))


def test_a_sort_between_other_loops() -> None:
    x = random_numbers("fp32", (101,))
    out = launch_one(kernels.median_deviation, (1,), x, Out((101,), "fp32"), N=101)
    assert_same_bits(out, np.sort(np.abs(x - np.sort(x)[50])))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.floats(width=32), min_size=96, max_size=96), st.booleans())
def test_laws(row: list[float], descending: bool) -> None:
    x = np.array(row, np.float32).reshape(2, 48)
    out = sort_rows(x, "fp32", descending=descending)
    assert_same_bits(out, in_order(x, descending=descending))  # the same elements, in the order
    assert_same_bits(sort_rows(out, "fp32", descending=descending), out)
    top = launch_one(kernels.largest, (1,), x, Out((2, 6), "fp32"), M=2, N=48, K=6)
    assert_same_bits(top, in_order(x, descending=True)[:, :6].copy())


# ---- topk ----


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(("extent", "k"), [(1, 1), (33, 5), (257, 257), (1000, 10)])
def test_the_largest_are_the_head_of_the_sorted_row(name: str, extent: int, k: int) -> None:
    x = mixed(name, (3, extent))
    out = launch_one(kernels.largest, (1,), x, Out((3, k), name), M=3, N=extent, K=k)
    assert_same_bits(out, in_order(x, descending=True)[:, :k].copy())


@pytest.mark.parametrize("k", [1, 2, 3, 8, 9, 16, 31, 64, 100, 600, 1023])
@pytest.mark.parametrize("name", ["fp32", "int8"])
def test_every_number_of_largest(name: str, k: int) -> None:
    x = mixed(name, (2, 1024))
    out = launch_one(kernels.largest, (1,), x, Out((2, k), name), M=2, N=1024, K=k)
    assert_same_bits(out, in_order(x, descending=True)[:, :k].copy())


@pytest.mark.parametrize("k", [1, 16, 600, 3000])
def test_the_largest_of_a_long_row(k: int) -> None:
    x = mixed("fp32", (1, 50001))
    out = launch_one(kernels.largest, (1,), x, Out((1, k), "fp32"), M=1, N=50001, K=k)
    assert_same_bits(out, in_order(x, descending=True)[:, :k].copy())


# ---- gather ----


def gather_reference(source: Array, index: Array, axis: int) -> Array:
    last = source.shape[axis] - 1
    inside = np.array([min(max(int(i), 0), last) for i in index.reshape(-1)]).reshape(index.shape)
    return np.take_along_axis(source, inside, axis)


def gather(source: Array, name: str, index: Array, axis: int) -> Array:
    shape = index.shape
    return launch_one(
        kernels.picked,
        (1,),
        source,
        index,
        Out(shape, name),
        **dict(zip("LMN", shape, strict=True)),
        S=source.shape[axis],
        AXIS=axis,
    )


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("extent", [1, 5, 40])
@pytest.mark.parametrize("kind", ["inside", "anywhere"])
def test_gathers_along_every_axis(axis: int, extent: int, kind: str) -> None:
    shape = [3, 7, 33]
    generator = np.random.default_rng(axis)
    index = (
        generator.integers(0, extent, shape, np.int32)
        if kind == "inside"
        else random_numbers("int32", tuple(shape))
    )
    shape[axis] = extent
    source = random_numbers("fp32", tuple(shape))
    assert_same_bits(gather(source, "fp32", index, axis), gather_reference(source, index, axis))


@pytest.mark.parametrize("name", ALL)
def test_gathers_of_every_type(name: str) -> None:
    source, index = mixed(name, (2, 3, 100)), np.random.default_rng(1).integers(-9, 110, (2, 3, 65))
    assert_same_bits(gather(source, name, index, 2), gather_reference(source, index, 2))


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("extent", [3, 300])
def test_indices_of_every_type(name: str, extent: int) -> None:
    index = mixed(name, (1, 2, 100))
    source = random_numbers("int16", (1, 2, extent))
    assert_same_bits(gather(source, "int16", index, 2), gather_reference(source, index, 2))


@pytest.mark.parametrize("n", [0, 50, 100])
def test_a_gather_of_a_gather(n: int) -> None:
    x = np.zeros(100, np.float32)
    x[::3] = 1.0
    index = np.random.default_rng(2).integers(0, 100, 100, np.int32)
    out = launch_one(kernels.picked_twice, (1,), x, index, Out((100,), "fp32"), n, N=100)
    inside = np.arange(100) < n
    at = np.where(inside, index, 0)
    one = launch_one(
        kernels.picked_twice, (1,), np.ones_like(x), np.zeros_like(index), Out((100,), "fp32"), 100, N=100
    )[0]  # 3 times exp(1)
    chosen = np.where(inside, x, 0)[at]
    counts = sum((chosen[(at + k) % 100] == 1).astype(np.int64) for k in range(3))
    e = np.float32(math.e)
    assert one == e + e + e
    expected = np.array([[3, 2 + e, e + 1 + e, e + e + e][c] for c in counts], np.float32)
    np.testing.assert_allclose(out[:n], expected[:n], rtol=1e-6)


# ---- histogram ----


def histogram_reference(x: Array, bins: int, mask: Any = True) -> Array:
    kept = x[np.broadcast_to(mask, x.shape)]
    return np.array([int((kept.astype(object) == b).sum()) for b in range(bins)], np.int32)


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize(("extent", "bins"), [(1, 1), (7, 3), (100, 100), (1000, 17), (257, 300)])
def test_numbers_are_counted(name: str, extent: int, bins: int) -> None:
    x = mixed(name, (extent,))
    inside = np.random.default_rng(3).integers(0, bins, extent).astype(NUMPY_DTYPES[name])
    x = np.where(np.arange(extent) % 3 == 0, x, inside)
    out = launch_one(kernels.counted, (1,), x, Out((bins,), "int32"), N=extent, BINS=bins)
    assert_same_bits(out, histogram_reference(x, bins))


@pytest.mark.parametrize("bins", [1, 2, 1000, 5000, 65535, 65536])  # of 16 bits, and of more
def test_equal_numbers_are_counted(bins: int) -> None:
    x = np.full(5000, bins - 1, np.int32)
    out = launch_one(kernels.counted, (1,), x, Out((bins,), "int32"), N=5000, BINS=bins)
    assert out[-1] == 5000
    assert not out[:-1].any()


@pytest.mark.parametrize("n", [0, 1, 99, 100])
def test_masked_lanes_are_not_counted(n: int) -> None:
    x = np.random.default_rng(4).integers(-3, 12, 100, np.int8)
    keep = np.random.default_rng(5).integers(0, 2, 100).astype(np.bool_)
    out = launch_one(kernels.counted_where, (1,), x, keep, Out((9,), "int32"), n, N=100, BINS=9)
    assert_same_bits(out, histogram_reference(x, 9, keep & (np.arange(100) < n)))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(-5, 20), min_size=50, max_size=50))
def test_counts_add_up(row: list[int]) -> None:
    x = np.array(row, np.int32)
    out = launch_one(kernels.counted, (1,), x, Out((16,), "int32"), N=50, BINS=16)
    assert out.sum() == sum(0 <= v < 16 for v in row)
