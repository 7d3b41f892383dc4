"""Kernels for the rows about memory."""

# mypy: ignore-errors
from __future__ import annotations

import blocklang as bl
import blocklang.language as tl


@bl.jit
def copy(x, out, n, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)


@bl.jit
def copy_backwards(x, out, n, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + n - 1 - i, tl.load(x + n - 1 - i, mask=i < n), mask=i < n)


@bl.jit
def copy_every_second(x, out, n, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + 2 * i, tl.load(x + 2 * i, mask=2 * i < n), mask=2 * i < n)


@bl.jit
def copy_gathered(x, out, indices, n, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    at = tl.load(indices + i)
    live = (at >= 0) & (at < n)
    tl.store(out + at, tl.load(x + at, mask=live), mask=live)


@bl.jit
def copy_rows(x, out, rows, columns, M: bl.constexpr, N: bl.constexpr):
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    live = (i < rows) & (j < columns)
    tl.store(out + i * columns + j, tl.load(x + i * columns + j, mask=live), mask=live)


@bl.jit
def far_away(x, out, distance, BLOCK: bl.constexpr):
    """Nothing is live: by a run-time mask, a constant one and a scalar one."""
    i = tl.arange(0, BLOCK)
    a = tl.load(x + distance + i, mask=distance == 0)
    b = tl.load(x + distance + i, mask=i > BLOCK, other=0)
    c = tl.load(x + distance + i * distance, mask=False, other=7)
    tl.store(out + distance + i, a, mask=i < 0)
    tl.store(out + distance, tl.sum(a), mask=distance == 0)
    tl.store(out + i, a)
    tl.store(out + BLOCK + i, b)
    tl.store(out + 2 * BLOCK + i, c)


@bl.jit
def others(x, out, n, BLOCK: bl.constexpr, OTHER: bl.constexpr):
    """Rows: no `other`, 0, a number, a block."""
    i = tl.arange(0, BLOCK)
    live = (i < n) & (i % 2 == 0)
    tl.store(out + i, tl.load(x + i, mask=live), mask=i < n)
    tl.store(out + n + i, tl.load(x + i, mask=live, other=0), mask=i < n)
    tl.store(out + 2 * n + i, tl.load(x + i, mask=live, other=OTHER), mask=i < n)
    tl.store(out + 3 * n + i, tl.load(x + i, mask=live, other=tl.load(x + n - 1 - i, mask=i < n)), mask=i < n)


@bl.jit
def moved(x, out, n, BLOCK: bl.constexpr):
    """A whole block is loaded before it is stored: through one name or two, one step to the right
    and back."""
    i = tl.arange(0, BLOCK)
    tl.store(out + i + 1, tl.load(x + i, mask=i < n), mask=i < n)
    tl.store(out + i, tl.load(x + i + 2, mask=i < n - 1), mask=i < n - 1)


@bl.jit
def reversed_in_place(x, n, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + n - 1 - i, mask=i < n), mask=i < n)


@bl.jit
def transposed_in_place(x, N: bl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    tl.store(x + i * N + j, tl.load(x + j * N + i))


@bl.jit
def added_in_place(x, y, out, n, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    a, b = tl.load(x + i, mask=i < n), tl.load(y + i, mask=i < n)
    tl.store(out + i, a + b, mask=i < n)
    tl.store(x + i, a - b, mask=i < n)


@bl.jit
def read_back(x, out, n, BLOCK: bl.constexpr):
    """A load after a store of the same program sees it, through another name too."""
    i = tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n)
    tl.store(x + n - 1 - i, a * 2, mask=i < n)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)


@bl.jit
def strided(x, out, m, n, x_row, x_column, M: bl.constexpr, N: bl.constexpr):
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    live = (i < m) & (j < n)
    tl.store(out + i * n + j, tl.load(x + i * x_row + j * x_column, mask=live), mask=live)


@bl.jit
def into_strided(x, out, m, n, row, column, M: bl.constexpr, N: bl.constexpr):
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    live = (i < m) & (j < n)
    tl.store(out + i * row + j * column, tl.load(x + i * n + j, mask=live), mask=live)


@bl.jit
def double_scalar(x, out):
    tl.store(out, tl.load(x) + tl.load(x))


@bl.jit
def slow_sum(x, out, n, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float64)
    for start in range(0, n, BLOCK):
        total += tl.load(x + start + i, mask=start + i < n)
    tl.store(out, tl.sum(total))


@bl.jit
def chain_of_gathers(x, indices, out, n, BLOCK: bl.constexpr, DEPTH: bl.constexpr):
    i = tl.arange(0, BLOCK)
    at = i
    for _ in tl.static_range(DEPTH):
        at = tl.load(indices + at, mask=i < n)
    tl.store(out + i, tl.load(x + at, mask=i < n), mask=i < n)


@bl.jit
def scatter_of_a_gather(x, indices, out, n, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    at = tl.load(indices + i, mask=i < n)
    tl.store(out + at, tl.load(x + at, mask=i < n) + i, mask=i < n)


@bl.jit
def modulo_offsets(x, out, n, period, BLOCK: bl.constexpr, PERIOD: bl.constexpr):
    """Rows: by a run-time period, a constant one, quotients, and a period that starts elsewhere."""
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i % period, mask=i < n), mask=i < n)
    tl.store(out + n + i, tl.load(x + i % PERIOD, mask=i < n), mask=i < n)
    tl.store(out + 2 * n + i, tl.load(x + i // period, mask=i < n), mask=i < n)
    tl.store(out + 3 * n + i, tl.load(x + (i + 3) % period * PERIOD // PERIOD, mask=i < n), mask=i < n)


@bl.jit
def ones(x, out, n, A: bl.constexpr, B: bl.constexpr):
    """Axes of extent 1: broadcast, folded, transposed, loaded and stored."""
    i, j = tl.arange(0, A)[:, None], tl.arange(0, B)[None, :]
    a = tl.load(x + i * B + j, mask=(i < n) & (j >= 0))
    tl.store(out + i * B + j, a + tl.sum(a, 1, keep_dims=True) + tl.max(a, 0, keep_dims=True))
    tl.store(out + A * B + j * A + i, tl.trans(a).T)
    tl.store(
        out + 2 * A * B + tl.arange(0, A)[:, None, None] * B + tl.arange(0, B)[None, None, :], a[:, None, :]
    )


@bl.jit
def out_of_bounds(x, out, n, BLOCK: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i), mask=i < n)


@bl.jit
def stores_out_of_bounds(x, n, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, i, mask=i <= n)


@bl.jit
def walking_pointer(x, out, n, BLOCK: bl.constexpr):
    """The pointer is carried from round to round and stands beyond the array when the loop ends."""
    i = tl.arange(0, BLOCK)
    at = x + i
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        total += tl.load(at, mask=start + i < n, other=0.0)
        at += BLOCK
    tl.store(out + i, total)
