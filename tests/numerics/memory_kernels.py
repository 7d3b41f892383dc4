"""Kernels that load and store under masks, gather and scatter."""

# mypy: ignore-errors
from __future__ import annotations

import blocklang as bl
import blocklang.language as tl


@bl.jit
def masked_copy(x, out, n, BLOCK: bl.constexpr):
    """Rows: no `other`, a number, a scalar and a block as `other`; every cache hint once."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside, some = i < n, (i < n) & (i % 3 != 0)
    a = tl.load(x + i, mask=some)
    b = tl.load(x + i, mask=some, other=1, cache_modifier=".ca", eviction_policy="evict_last")
    c = tl.load(x + i, mask=some, other=tl.load(x), cache_modifier=".cg", eviction_policy="evict_first")
    d = tl.load(x + i, mask=some, other=a + b, cache_modifier=".cv", eviction_policy="evict_normal")
    e = tl.load(x + i, mask=inside, volatile=True)
    tl.store(out + i, a, mask=inside)
    tl.store(out + n + i, b, mask=inside, cache_modifier=".wb")
    tl.store(out + 2 * n + i, c, mask=inside, cache_modifier=".cs", eviction_policy="evict_first")
    tl.store(out + 3 * n + i, d, mask=inside, cache_modifier=".wt")
    tl.store(out + 4 * n + i, e, mask=some, cache_modifier=".cg")


@bl.jit
def masks_of_2d(x, out, m, n, M: bl.constexpr, N: bl.constexpr):
    """Rows times columns, a row mask that is broadcast, a mask that is one scalar, and a causal one."""
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    at = i * n + j
    rectangle = (i < m) & (j < n)
    a = tl.load(x + at, mask=rectangle)
    tl.store(out + at, a, mask=rectangle)
    tl.store(out + m * n + at, a, mask=rectangle & (j <= i))
    tl.store(out + 2 * m * n + at, a, mask=rectangle & (m > 3))
    tl.store(out + 3 * m * n + at, tl.load(x + j, mask=j < n), mask=rectangle)
    tl.store(out + 4 * m * n + at, tl.load(x + at, mask=rectangle & (j % 2 == 1), other=7), mask=rectangle)


@bl.jit
def masked_by_array(x, masks, out, n, BLOCK: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = tl.load(masks + i, mask=i < n)
    tl.store(out + i, tl.load(x + i, mask=live), mask=live)


@bl.jit
def constant_masks(x, out, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=True)
    b = tl.load(x + i, mask=False, other=5)
    tl.store(out + i, a, mask=False)
    tl.store(out + BLOCK + i, b, mask=True)
    tl.store(out + 2 * BLOCK + i, tl.load(x + i + 1000000, mask=False), mask=i >= 0)


@bl.jit
def gather(x, indices, out, n, BLOCK: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    where = tl.load(indices + i, mask=i < n)
    tl.store(out + i, tl.load(x + where, mask=i < n), mask=i < n)


@bl.jit
def gather_of_a_gather(x, indices, out, n, BLOCK: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    once = tl.load(indices + i, mask=i < n)
    twice = tl.load(indices + once, mask=i < n)
    tl.store(out + i, tl.load(x + twice, mask=i < n), mask=i < n)


@bl.jit
def scatter(x, indices, out, n, BLOCK: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    where = tl.load(indices + i, mask=i < n)
    tl.store(out + where, tl.load(x + i, mask=i < n), mask=(i < n) & (where % 2 == 0))


@bl.jit
def through_strides(x, out, m, n, x_row, x_column, out_row, out_column, M: bl.constexpr, N: bl.constexpr):
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    mask = (i < m) & (j < n)
    tl.store(out + i * out_row + j * out_column, tl.load(x + i * x_row + j * x_column, mask=mask), mask=mask)


@bl.jit
def offsets_of_type(x, offsets, out, n, CENTRE: bl.constexpr, BLOCK: bl.constexpr):
    """Pointer + offsets, offsets + pointer, and pointer - offsets: signed ones extend their sign."""
    i = tl.arange(0, BLOCK)
    by = tl.load(offsets + i, mask=i < n)
    middle = x + CENTRE
    tl.store(out + i, tl.load(middle + by, mask=i < n), mask=i < n)
    tl.store(out + n + i, tl.load(by + middle, mask=i < n), mask=i < n)
    tl.store(out + 2 * n + i, tl.load(middle - by, mask=i < n), mask=i < n)


@bl.jit
def shift_in_place(x, n, BLOCK: bl.constexpr):
    """A block is loaded before a later store of the program: x[i + 1] = x[i], then x[i] = x[n - 1 - i]."""
    i = tl.arange(0, BLOCK)
    tl.store(x + i + 1, tl.load(x + i, mask=i < n - 1), mask=i < n - 1)
    tl.store(x + i, tl.load(x + n - 1 - i, mask=i < n), mask=i < n)


@bl.jit
def swap_through_two_names(x, y, n, BLOCK: bl.constexpr):
    """`x` and `y` may overlap: both blocks are loaded first."""
    i = tl.arange(0, BLOCK)
    a, b = tl.load(x + i, mask=i < n), tl.load(y + i, mask=i < n)
    tl.store(x + i, b, mask=i < n)
    tl.store(y + i, a, mask=i < n)


@bl.jit
def move_through_addresses(table, n, BLOCK: bl.constexpr):
    """All that is known of the two arrays is where they begin; they may overlap."""
    i = tl.arange(0, BLOCK)
    source = tl.load(table).to(tl.pointer_type(tl.float32))
    target = tl.load(table + 1).to(tl.pointer_type(tl.float32))
    tl.store(target + i, tl.load(source + i, mask=i < n), mask=i < n)


@bl.jit
def move_between_chosen(x, is_up, n, BLOCK: bl.constexpr):
    """From one of two places of `x` to the other, decided at run time."""
    i = tl.arange(0, BLOCK)
    source, target = tl.where(is_up, x, x + 1), tl.where(is_up, x + 1, x)
    tl.store(target + i, tl.load(source + i, mask=i < n), mask=i < n)


@bl.jit
def scalars(x, out, n):
    """One element at a time, at run-time and constant places, under a scalar mask."""
    tl.store(out, tl.load(x + n - 1))
    tl.store(out + 1, tl.load(x + 1, mask=n > 2, other=9))
    tl.store(out + 2, tl.load(x, mask=n < 2))
    tl.store(out + 3, 3, mask=n < 2)
    tl.store(out + 4, tl.load(x) + tl.load(x + 1))


@bl.jit
def spread_values(x, out, n, M: bl.constexpr, N: bl.constexpr):
    """A scalar, a row and a column are stored through blocks of pointers."""
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    at = out + i * N + j
    tl.store(at, tl.load(x))
    tl.store(at + M * N, tl.load(x + tl.arange(0, N)))
    tl.store(at + 2 * M * N, tl.load(x + i))
    tl.store(at + 3 * M * N, 1)


@bl.jit
def copy_const(x: tl.const, out, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i))


@bl.jit
def store_const(x: tl.const, BLOCK: bl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), 0)


@bl.jit
def compare_pointers(x, out, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, (x + i) < (x + 3))
    tl.store(out + BLOCK + i, (x + i) == (x + 3))
    tl.store(out + 2 * BLOCK + i, (x + (i - i)) != x)
    tl.store(out + 3 * BLOCK + i, ((x + i).to(tl.int64) - x.to(tl.int64)) == 4 * i)
    address = (x + i).to(tl.uint64)
    tl.store(out + 4 * BLOCK + i, tl.load(address.to(tl.pointer_type(tl.int32))) == tl.load(x + i))
