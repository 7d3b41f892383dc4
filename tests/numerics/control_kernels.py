"""Kernels whose blocks pass through loops and branches, and kernels that ask where they are."""

# mypy: ignore-errors
from __future__ import annotations

import blocklang as bl
import blocklang.language as tl


@bl.jit
def where_am_i(out):
    """Six int32 a program: its three indices and the three extents of the grid."""
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    nx, ny, nz = tl.num_programs(0), tl.num_programs(1), tl.num_programs(2)
    tl.static_assert(x.dtype == tl.int32)
    tl.static_assert(nz.dtype == tl.int32)
    here = out + 6 * (x + nx * (y + ny * z))
    tl.store(here, x)
    tl.store(here + 1, y)
    tl.store(here + 2, z)
    tl.store(here + 3, nx)
    tl.store(here + 4, ny)
    tl.store(here + 5, nz)


@bl.jit
def carried(x, out, other, rounds, BLOCK: bl.constexpr):
    """Two blocks that change places in every round, one that grows, and a scalar."""
    i = tl.arange(0, BLOCK)
    a, b, total = tl.load(x + i), tl.load(x + BLOCK + i), tl.zeros((BLOCK,), tl.int32)
    count = 0
    for k in range(rounds):
        a, b = b, a + k
        total += a * k
        count += k
    tl.store(out + i, a)
    tl.store(out + BLOCK + i, b)
    tl.store(out + 2 * BLOCK + i, total)
    tl.store(other, count)


@bl.jit
def strided_range(x, out, start, stop, step, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    a = tl.load(x + i)
    for k in range(start, stop, step):
        a = a * 3 + k
    tl.store(out + i, a)


@bl.jit
def collatz(x, out, BLOCK: bl.constexpr):
    """A while on a whole block: lanes that have arrived stay as they are."""
    i = tl.arange(0, BLOCK)
    n, steps = tl.load(x + i), tl.zeros((BLOCK,), tl.int32)
    while tl.max((n > 1).to(tl.int32), 0) > 0:
        live = n > 1
        n = tl.where(live, tl.where(n % 2 == 0, n // 2, 3 * n + 1), n)
        steps += live.to(tl.int32)
    tl.store(out + i, steps)


@bl.jit
def branches(x, out, a, b, BLOCK: bl.constexpr):
    """Blocks from scalar conditions: if, elif, else, a conditional expression, `and` and `or`."""
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    if a > b:
        r = v + 1
    elif a == b:
        r = v * 2
    else:
        r = -v
    tl.store(out + i, r)
    tl.store(out + BLOCK + i, v if a < b else r)
    if a > 0 and b > 0:
        tl.store(out + 2 * BLOCK + i, v)
    if a > 0 or b > 0:
        tl.store(out + 3 * BLOCK + i, v)
    if not a > 0:
        tl.store(out + 4 * BLOCK + i, v, mask=i % 2 == 0)


@bl.jit
def leaves(x, out, n, BLOCK: bl.constexpr):
    """break, continue, and a return that ends some programs early."""
    program = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    if program >= n:
        return
    for k in range(10):
        if k == program:
            continue
        if k > 2 * program + 1:
            break
        v = v * 2 + k
    tl.store(out + program * BLOCK + i, v)


@bl.jit
def nested(x, out, m, n, BLOCK: bl.constexpr):
    """A triangle of rounds, with a branch on both indices inside."""
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    for r in range(m):
        row = v + r
        for s in range(r, n):
            if (r + s) % 2 == 0:
                row = row * 2 + s
            else:
                row = row - s
        v = row
    tl.store(out + i, v)


@bl.jit
def unrolled(x, out, BLOCK: bl.constexpr, ROUNDS: bl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    for k in tl.static_range(ROUNDS):
        if k % 2 == 0:
            v = v + k
        else:
            v = v * k
    for k in tl.static_range(5, 0, -2):
        v = v * 7 + k
    tl.store(out + i, v)


@bl.jit
def rows_of_a_loop(x, out, n, STEP: bl.constexpr):
    """Blocks of one row after another, up to a run-time length; the pointers are carried."""
    row = tl.program_id(0)
    i = tl.arange(0, STEP)
    source, target = x + row * n + i, out + row * n + i
    total = tl.zeros((STEP,), tl.float32)
    for start in range(0, n, STEP):
        v = tl.load(source, mask=start + i < n, other=0.0)
        total += v
        tl.store(target, v * 2.0, mask=start + i < n)
        source += STEP
        target += STEP
    tl.store(out + tl.num_programs(0) * n + row * STEP + i, total)


@bl.jit
def newton(x, out, BLOCK: bl.constexpr):
    """A while with a scalar condition on floats: square roots of positive numbers."""
    i = tl.arange(0, BLOCK)
    a = tl.load(x + i)
    r = a + 1.0
    change = 1.0
    rounds = 0
    while change > 0.0 and rounds < 50:
        better = (r + a / r) * 0.5
        change = tl.max(tl.abs(better - r), 0)
        r = better
        rounds += 1
    tl.store(out + i, r)
