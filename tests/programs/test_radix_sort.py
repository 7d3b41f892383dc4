"""Radix sort of 32-bit keys with their places: histogram, scan and scatter passes, four bits at a time.

Two ways as GPU libraries have them. Three kernels per digit: counts per block, a scan of the counts, the
scatter. Or one kernel per digit, in which each program waits for the sums of the programs before it
(decoupled look-back).
"""

# mypy: ignore-errors
from __future__ import annotations

import numpy as np
import pytest

import blocklang.triton as triton
import blocklang.triton.language as tl
from tests.programs.running import compiled, in_both_modes

BITS = 4
BINS = 1 << BITS


@triton.jit
def sortable(x, DESCENDING: tl.constexpr):
    """Unsigned keys in the order of the values: floats with their sign and the rest turned around."""
    if x.dtype.is_floating():
        bits = x.to(tl.uint32, bitcast=True)
        key = bits ^ tl.where(bits >> 31 != 0, 0xFFFFFFFF, 0x80000000).to(tl.uint32)
    elif x.dtype.is_int_signed():
        key = x.to(tl.uint32, bitcast=True) ^ 0x80000000
    else:
        key = x
    if DESCENDING:
        key = ~key
    return key


@triton.jit
def prepare_kernel(x_ptr, key_ptr, place_ptr, n, DESCENDING: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(key_ptr + i, sortable(x, DESCENDING), mask=i < n)
    tl.store(place_ptr + i, i, mask=i < n)


@triton.jit
def global_histogram_kernel(
    key_ptr, histogram_ptr, n, NUM_PASSES: tl.constexpr, BITS: tl.constexpr, BLOCK: tl.constexpr
):
    """The counts of every digit of all passes at once."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    key = tl.load(key_ptr + i, mask=i < n)
    BINS: tl.constexpr = 1 << BITS
    bins = tl.arange(0, BINS)
    for p in tl.static_range(NUM_PASSES):
        digit = ((key >> (p * BITS)) & (BINS - 1)).to(tl.int32)
        counts = tl.histogram(digit, BINS, mask=i < n)
        tl.atomic_add(histogram_ptr + p * BINS + bins, counts, mask=counts > 0, sem="relaxed")


@triton.jit
def exclusive_rows_kernel(counts_ptr, n, BLOCK: tl.constexpr):
    """Exclusive sums of each row in place, carried from chunk to chunk."""
    row = tl.program_id(0)
    carry = 0
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        counts = tl.load(counts_ptr + row * n + i, mask=i < n, other=0)
        sums = tl.cumsum(counts, axis=0)
        tl.store(counts_ptr + row * n + i, sums - counts + carry, mask=i < n)
        carry += tl.sum(counts, axis=0)


@triton.jit
def count_kernel(key_ptr, counts_ptr, n, shift, BITS: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    blocks = tl.num_programs(0)
    i = pid * BLOCK + tl.arange(0, BLOCK)
    BINS: tl.constexpr = 1 << BITS
    digit = ((tl.load(key_ptr + i, mask=i < n) >> shift) & (BINS - 1)).to(tl.int32)
    counts = tl.histogram(digit, BINS, mask=i < n)
    tl.store(counts_ptr + tl.arange(0, BINS) * blocks + pid, counts)


@triton.jit
def scatter_kernel(
    key_in, place_in, key_out, place_out, starts_ptr, n, shift, BITS: tl.constexpr, BLOCK: tl.constexpr
):
    pid = tl.program_id(0)
    blocks = tl.num_programs(0)
    i = pid * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    key = tl.load(key_in + i, mask=mask)
    place = tl.load(place_in + i, mask=mask)
    BINS: tl.constexpr = 1 << BITS
    bins = tl.arange(0, BINS)
    digit = ((key >> shift) & (BINS - 1)).to(tl.int32)
    is_mine = (digit[:, None] == bins[None, :]) & mask[:, None]
    rank = tl.cumsum(is_mine.to(tl.int32), axis=0) - 1
    start = tl.load(starts_ptr + bins * blocks + pid)
    target = tl.sum(tl.where(is_mine, rank + start[None, :], 0), axis=1)
    tl.store(key_out + target, key, mask=mask)
    tl.store(place_out + target, place, mask=mask)


@triton.jit
def one_sweep_kernel(
    key_in,
    place_in,
    key_out,
    place_out,
    starts_ptr,
    status_ptr,
    n,
    shift,
    BITS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Per program and bin one status word: the count in 30 bits; above, 1: mine alone, 2: all before too."""
    pid = tl.program_id(0)
    i = pid * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    key = tl.load(key_in + i, mask=mask)
    place = tl.load(place_in + i, mask=mask)
    BINS: tl.constexpr = 1 << BITS
    MINE: tl.constexpr = 1 << 30
    ALL: tl.constexpr = 2 << 30
    digit = ((key >> shift) & (BINS - 1)).to(tl.int32)
    for b in range(BINS):
        is_mine = (digit == b) & mask
        rank = tl.cumsum(is_mine.to(tl.int32), axis=0) - 1
        count = tl.sum(is_mine.to(tl.uint32), axis=0)
        tl.atomic_xchg(status_ptr + pid * BINS + b, count | MINE, sem="release")
        before = tl.zeros((), dtype=tl.uint32)
        other = pid - 1
        while other >= 0:
            status = tl.atomic_or(status_ptr + other * BINS + b, 0, sem="acquire")
            while status == 0:
                status = tl.atomic_or(status_ptr + other * BINS + b, 0, sem="acquire")
            before += status & (MINE - 1)
            if (status & ALL) != 0:
                other = -1
            else:
                other -= 1
        tl.atomic_xchg(status_ptr + pid * BINS + b, (before + count) | ALL, sem="release")
        target = tl.load(starts_ptr + b) + before.to(tl.int32) + rank
        tl.store(key_out + target, key, mask=is_mine)
        tl.store(place_out + target, place, mask=is_mine)


def radix_sort(mode, x, descending, block, one_sweep):
    n = x.size
    blocks = triton.cdiv(n, block)
    passes = 32 // BITS
    key, place = np.zeros(n, np.uint32), np.zeros(n, np.int32)
    mode(prepare_kernel)[(blocks,)](x, key, place, n, DESCENDING=descending, BLOCK=block)
    histogram = np.zeros((passes, BINS), np.int32)
    mode(global_histogram_kernel)[(blocks,)](key, histogram, n, NUM_PASSES=passes, BITS=BITS, BLOCK=block)
    counted = histogram.copy()
    mode(exclusive_rows_kernel)[(passes,)](histogram, BINS, BLOCK=BINS)
    for p in range(passes):
        key_out, place_out = np.zeros_like(key), np.zeros_like(place)
        if one_sweep:
            status = np.zeros((blocks, BINS), np.uint32)
            mode(one_sweep_kernel)[(blocks,)](
                key, place, key_out, place_out, histogram[p], status, n, p * BITS, BITS=BITS, BLOCK=block
            )
        else:
            starts = np.zeros(BINS * blocks, np.int32)
            mode(count_kernel)[(blocks,)](key, starts, n, p * BITS, BITS=BITS, BLOCK=block)
            mode(exclusive_rows_kernel)[(1,)](starts, BINS * blocks, BLOCK=128)
            mode(scatter_kernel)[(blocks,)](
                key, place, key_out, place_out, starts, n, p * BITS, BITS=BITS, BLOCK=block
            )
        key, place = key_out, place_out
    return key, place, counted


def check(x, found, descending):
    key, place, counted = found
    assert np.array_equal(np.sort(place), np.arange(x.size))
    ordered = x[place]
    if descending:
        np.testing.assert_array_equal(ordered, np.sort(x)[::-1])
        # Equal values keep their order.
        np.testing.assert_array_equal(place, x.size - 1 - np.argsort(x[::-1], kind="stable")[::-1])
    else:
        np.testing.assert_array_equal(ordered, np.sort(x))
        np.testing.assert_array_equal(place, np.argsort(x, kind="stable"))
    for p in range(32 // BITS):
        digits = (key >> np.uint32(p * BITS)) & np.uint32(BINS - 1)
        np.testing.assert_array_equal(counted[p], np.bincount(digits, minlength=BINS))


def keys(n, dtype):
    random = np.random.default_rng(n)
    if dtype is np.float32:
        return random.standard_normal(n).astype(np.float32)
    info = np.iinfo(dtype)
    return random.integers(info.min, info.max, n, dtype=dtype, endpoint=True)


@pytest.mark.parametrize("one_sweep", [False, True])
def test_ten_thousand_keys(one_sweep):
    x = keys(10_000, np.uint32)
    check(x, radix_sort(compiled, x, False, 256, one_sweep), False)


@pytest.mark.parametrize("one_sweep", [False, True])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", [np.uint32, np.int32, np.float32])
def test_types_and_orders(dtype, descending, one_sweep):
    x = keys(777, dtype)
    x[100:300] = x[0]
    check(x, radix_sort(compiled, x, descending, 128, one_sweep), descending)


@pytest.mark.parametrize("one_sweep", [False, True])
@pytest.mark.parametrize("n", [1, 31, 70])
def test_both_modes(n, one_sweep):
    x = keys(n, np.int32)
    check(x, in_both_modes(lambda mode: radix_sort(mode, x, False, 32, one_sweep)), False)
