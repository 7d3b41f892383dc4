"""Kernels of random numbers."""

# mypy: ignore-errors
from __future__ import annotations

import blocklang as bl
import blocklang.language as tl


@bl.jit
def words(out, offsets, seed, n, BLOCK: bl.constexpr, ROUNDS: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    offset = tl.load(offsets + i, mask=mask)
    results = tl.randint4x(seed, offset, ROUNDS)
    for k in tl.static_range(4):
        tl.static_assert(results[k].dtype == tl.uint32)
        tl.store(out + k * n + i, results[k], mask=mask)


@bl.jit
def wide_words(out, uniform, counters, seed, n, BLOCK: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(counters + i, mask=mask)
    results = tl.philox(seed, x, x + 1, x * 3, x - x)
    for k in tl.static_range(4):
        tl.static_assert(results[k].dtype == tl.uint64)
        tl.store(out + k * n + i, results[k], mask=mask)
    tl.store(uniform + i, tl.uint_to_uniform_float(results[0]), mask=mask)


@bl.jit
def numbers(uniform, normal, offsets, seed, n, BLOCK: bl.constexpr):
    """Four rows of each; the first are also what `rand` and `randn` give, and `randint`'s."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    offset = tl.load(offsets + i, mask=mask)
    us, ns = tl.rand4x(seed, offset), tl.randn4x(seed, offset)
    for k in tl.static_range(4):
        tl.store(uniform + k * n + i, us[k], mask=mask)
        tl.store(normal + k * n + i, ns[k], mask=mask)
    tl.store(uniform + 4 * n + i, tl.rand(seed, offset), mask=mask)
    tl.store(normal + 4 * n + i, tl.random.randn(seed, offset), mask=mask)
    tl.store(uniform + 5 * n + i, tl.uint_to_uniform_float(tl.randint(seed, offset)), mask=mask)


@bl.jit
def dropout(x, out, seed, n, p, BLOCK: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    keep = tl.rand(seed, i) > p
    tl.store(out + i, tl.where(keep, tl.load(x + i, mask=mask) / (1 - p), 0.0), mask=mask)


@bl.jit
def by_hand(out, normal, seed, n, BLOCK: bl.constexpr):
    """`randint4x` and `randn`, put together from the functions that they are made of."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    zero = tl.full((BLOCK,), 0, tl.uint32)
    key = seed.to(tl.uint64)
    low, high = key.to(tl.uint32), (key >> 32).to(tl.uint32)
    a, b, _, _ = tl.philox_impl(i.to(tl.uint32), zero, zero, zero, low, high)
    tl.store(out + i, a, mask=mask)
    tl.store(out + n + i, b, mask=mask)
    first, _ = tl.pair_uniform_to_normal(tl.uint_to_uniform_float(a), tl.uint_to_uniform_float(b))
    tl.store(normal + i, first - tl.randn(seed, i), mask=mask)
