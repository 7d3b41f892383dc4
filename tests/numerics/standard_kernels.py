"""Kernels of functions that are made of others, of methods, and of hints."""

# mypy: ignore-errors
from __future__ import annotations

import blocklang as bl
import blocklang.language as tl


@bl.jit
def ceiling_division(x, y, out, n, BLOCK: bl.constexpr, CONSTANT: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    a, b = tl.load(x + i, mask=mask), tl.load(y + i, mask=mask, other=1)
    tl.store(out + i, tl.cdiv(a, b), mask=mask)
    tl.store(out + n + i, tl.cdiv(a, CONSTANT), mask=mask)
    tl.store(out + 2 * n + i, a * 0 + tl.cdiv(CONSTANT, 3) + tl.next_power_of_2(CONSTANT), mask=mask)


@bl.jit
def swizzled(out, rows, columns, group, N: bl.constexpr, GROUP: bl.constexpr):
    at = tl.arange(0, N)
    i, j = at // columns, at % columns
    row, column = tl.swizzle2d(i, j, rows, columns, group)
    tl.static_assert(row.dtype == tl.int32 and column.dtype == tl.int32)
    tl.store(out + at, row * columns + column)
    row, column = tl.swizzle2d(i, j, rows, columns, size_g=GROUP)
    tl.store(out + N + at, row * columns + column)
    for place in range(N):
        r, c = tl.swizzle2d(place // columns, place % columns, rows, columns, GROUP)
        tl.store(out + 2 * N + place, r * columns + c)


@bl.jit
def methods(x, out, n, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    mask = i < n
    a = tl.load(x + i, mask=mask)
    at = out + i
    tl.store(at, a.exp(), mask=mask)
    tl.store(at + n, a.exp2(), mask=mask)
    tl.store(at + 2 * n, a.log(), mask=mask)
    tl.store(at + 3 * n, a.log2(), mask=mask)
    tl.store(at + 4 * n, a.sin(), mask=mask)
    tl.store(at + 5 * n, a.cos(), mask=mask)
    tl.store(at + 6 * n, a.sqrt(), mask=mask)
    tl.store(at + 7 * n, a.sqrt_rn(), mask=mask)
    tl.store(at + 8 * n, a.rsqrt(), mask=mask)
    tl.store(at + 9 * n, a.erf(), mask=mask)
    tl.store(at + 10 * n, a.floor(), mask=mask)
    tl.store(at + 11 * n, a.ceil(), mask=mask)
    tl.store(at + 12 * n, a.abs(), mask=mask)
    tl.store(at + 13 * n, a.sigmoid(), mask=mask)


@bl.jit
def functions(x, out, n, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    mask = i < n
    a = tl.load(x + i, mask=mask)
    at = out + i
    tl.store(at, tl.exp(a), mask=mask)
    tl.store(at + n, tl.exp2(a), mask=mask)
    tl.store(at + 2 * n, tl.log(a), mask=mask)
    tl.store(at + 3 * n, tl.log2(a), mask=mask)
    tl.store(at + 4 * n, tl.sin(a), mask=mask)
    tl.store(at + 5 * n, tl.cos(a), mask=mask)
    tl.store(at + 6 * n, tl.sqrt(a), mask=mask)
    tl.store(at + 7 * n, tl.sqrt(a), mask=mask)
    tl.store(at + 8 * n, tl.rsqrt(a), mask=mask)
    tl.store(at + 9 * n, tl.erf(a), mask=mask)
    tl.store(at + 10 * n, tl.floor(a), mask=mask)
    tl.store(at + 11 * n, tl.ceil(a), mask=mask)
    tl.store(at + 12 * n, tl.abs(a), mask=mask)
    tl.store(at + 13 * n, tl.sigmoid(a), mask=mask)


@bl.jit
def hints(x, out, n, BLOCK: bl.constexpr):
    """Hints change nothing, false ones neither."""
    i = tl.max_contiguous(tl.multiple_of(tl.arange(0, BLOCK), 8), 4)
    offsets = tl.max_constancy(tl.multiple_of(i * 3 + 1, 16), 16)
    tl.assume(n > 0)
    tl.debug_barrier()
    for k in tl.range(0, n, num_stages=3):
        tl.store(out + k * BLOCK + i, tl.load(x + offsets) + k)
    tl.static_assert(BLOCK > 0, "no lanes")
