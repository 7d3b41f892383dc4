"""Kernels whose scans meet masks, cuts, aliases and other loops."""

# mypy: ignore-errors
from __future__ import annotations

import blocklang as bl
import blocklang.language as tl


@bl.jit
def between(x, out, low, high, BLOCK: bl.constexpr):
    """Stored between two bounds only; what is before counts all the same."""
    i = tl.arange(0, BLOCK)
    sums = tl.cumsum(tl.load(x + i), 0)
    tl.store(out + i, sums, mask=(i >= low) & (i < high))


@bl.jit
def masked_rows(x, out, rows, columns, TALL: bl.constexpr, WIDE: bl.constexpr):
    i, j = tl.arange(0, TALL)[:, None], tl.arange(0, WIDE)[None, :]
    mask = (i < rows) & (j < columns)
    sums = tl.cumsum(tl.load(x + i * columns + j, mask=mask, other=0), 1)
    tl.store(out + i * columns + j, sums * 2, mask=mask)


@bl.jit
def in_place(x, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.cumsum(tl.load(x + i), 0))


@bl.jit
def of_a_scan(x, out, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.cumsum(tl.cumsum(tl.load(x + i), 0) - i, 0))


@bl.jit
def of_equal_lanes(out, value, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.cumsum(tl.full((BLOCK,), value, tl.int32), 0))


@bl.jit
def read_twice(x, out, last, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    sums = tl.cumsum(tl.load(x + i), 0)
    tl.store(out + i, sums)
    tl.store(last, tl.max(sums, 0))


@bl.jit
def read_backwards(x, out, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.flip(tl.cumsum(tl.load(x + i), 0)))


@bl.jit
def stored_across(x, out, TALL: bl.constexpr, WIDE: bl.constexpr):
    i, j = tl.arange(0, TALL)[:, None], tl.arange(0, WIDE)[None, :]
    tl.store(out + j * TALL + i, tl.cumsum(tl.load(x + i * WIDE + j), 1))


@bl.jit
def of_two_halves(x, y, out, HALF: bl.constexpr):
    i = tl.arange(0, HALF)
    both = tl.cat(tl.load(x + i), tl.load(y + i), can_reorder=True)
    tl.store(out + tl.arange(0, 2 * HALF), tl.cumsum(both, 0))


@bl.jit
def of_a_wrapped_array(x, out, n, first, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.cumsum(tl.load(x + (first + i) % n), 0))


@bl.jit
def larger(a, at, b, bt):
    takes = b > a
    return tl.where(takes, b, a), tl.where(takes, bt, at)


@bl.jit
def pairs(x, out, places, BLOCK: bl.constexpr):
    """The largest so far, and where it stands."""
    i = tl.arange(0, BLOCK)
    top, at = tl.associative_scan((tl.load(x + i), i), 0, larger)
    tl.store(out + i, top)
    tl.store(places + i, at)


@bl.jit
def only_places(x, places, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    _, at = tl.associative_scan((tl.load(x + i), i), 0, larger)
    tl.store(places + i, at)


@bl.jit
def carried(x, out, steps, BLOCK: bl.constexpr):
    """Chunks of one long row, one after another."""
    total = tl.zeros((), tl.int32)
    for step in range(steps):
        i = step * BLOCK + tl.arange(0, BLOCK)
        values = tl.load(x + i)
        tl.store(out + i, tl.cumsum(values, 0) + total)
        total += tl.sum(values, 0)


@bl.jit
def carried_block(x, out, steps, BLOCK: bl.constexpr):
    """A block that each round replaces by its running sums."""
    i = tl.arange(0, BLOCK)
    values = tl.load(x + i)
    for _ in range(steps):
        values = tl.cumsum(values, 0)
    tl.store(out + i, values)
