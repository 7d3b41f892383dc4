"""Kernels whose accesses are counted in different ways, for the tests of the emulator."""

# mypy: ignore-errors
from __future__ import annotations

import blocklang as bl
import blocklang.language as tl


@bl.jit
def add(x, y, out, n, BLOCK: bl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(out + offs, tl.load(x + offs, mask=mask) + tl.load(y + offs, mask=mask), mask=mask)


@bl.jit
def softmax(x, out, n, x_row, out_row, BLOCK: bl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    v = tl.load(x + row * x_row + cols, mask=mask, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(out + row * out_row + cols, e / tl.sum(e, 0), mask=mask)


@bl.jit
def matmul(a, b, c, M, N, K, BM: bl.constexpr, BN: bl.constexpr, BK: bl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    ks = tl.arange(0, BK)
    a_ptrs = a + (rows % M)[:, None] * K + ks[None, :]
    b_ptrs = b + ks[:, None] * N + (cols % N)[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(tl.cdiv(K, BK)):
        left = K - k * BK
        x = tl.load(a_ptrs, mask=ks[None, :] < left, other=0.0)
        y = tl.load(b_ptrs, mask=ks[:, None] < left, other=0.0)
        acc = tl.dot(x, y, acc)
        a_ptrs += BK
        b_ptrs += BK * N
    tl.store(c + rows[:, None] * N + cols[None, :], acc, mask=(rows[:, None] < M) & (cols[None, :] < N))


@bl.jit
def gather(x, where, out, n, limit, BLOCK: bl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = tl.load(where + offs, mask=offs < n, other=0)
    v = tl.load(x + at, mask=(offs < n) & (at < limit), other=-1.0)
    tl.store(out + offs, v, mask=offs < n)


@bl.jit
def even_lanes(x, out, BLOCK: bl.constexpr):
    offs = tl.arange(0, BLOCK)
    even = offs % 2 == 0
    tl.store(out + offs, tl.load(x + offs, mask=even, other=0.0) + 1.0, mask=even)


@bl.jit
def column_sums(x, out, rows, columns, R: bl.constexpr, C: bl.constexpr):
    r = tl.arange(0, R)
    c = tl.program_id(0) * C + tl.arange(0, C)
    v = tl.load(
        x + r[:, None] * columns + c[None, :], mask=(r[:, None] < rows) & (c[None, :] < columns), other=0.0
    )
    tl.store(out + c, tl.sum(v, 0), mask=c < columns)


@bl.jit
def positive_column_sums(x, out, columns, R: bl.constexpr, C: bl.constexpr):
    r = tl.arange(0, R)
    c = tl.arange(0, C)
    at = r[:, None] * columns + c[None, :]
    sign = tl.load(x + at, mask=c[None, :] < columns, other=-1.0)
    v = tl.load(x + at, mask=sign > 0, other=0.0)
    tl.store(out + c, tl.sum(v, 0), mask=c < columns)


@bl.jit
def rounds(x, out, start, stop, step, BLOCK: bl.constexpr):
    offs = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for i in range(start, stop, step):
        total += tl.load(x + offs + i)
    tl.store(out + offs, total)


@bl.jit
def until(x, out, limit, BLOCK: bl.constexpr):
    offs = tl.arange(0, BLOCK)
    i = 0
    v = tl.load(x + offs)
    while tl.sum(v, 0) < limit:
        v += tl.load(x + offs)
        i += 1
    if i > 2:
        tl.store(out, i)
    else:
        tl.store(out + 1 + offs, v.to(tl.int32), mask=offs < i)


@bl.jit
def product(a, b):
    return a * b


@bl.jit
def products(x, out, BLOCK: bl.constexpr):
    offs = tl.arange(0, BLOCK)
    v = tl.load(x + tl.program_id(0) * BLOCK + offs)
    tl.store(out + tl.program_id(0), tl.reduce(v, 0, product))


@bl.jit
def transpose(x, out, M: bl.constexpr, N: bl.constexpr):
    m, n = tl.arange(0, M), tl.arange(0, N)
    v = tl.load(x + m[:, None] * N + n[None, :])
    tl.store(out + n[:, None] * M + m[None, :], tl.trans(v))


@bl.jit
def sum_of_largest(x, out, n, BLOCK: bl.constexpr):
    offs = tl.arange(0, BLOCK)
    v = tl.load(x + offs, mask=offs < n, other=-1.0)
    best = tl.argmax(v, 0)
    w = tl.load(x + offs, mask=offs >= best, other=0.0)
    tl.store(out, tl.sum(w, 0))


@bl.jit
def running_sums(x, out, M: bl.constexpr, N: bl.constexpr):
    offs = tl.program_id(0) * (M * N) + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    v = tl.cumsum(tl.load(x + offs), 1)
    tl.store(out + offs, tl.cumsum(v, 0))


@bl.jit
def chase(table, start):
    """A load per round, a number of rounds per lane."""
    at = start
    rounds = start % 5
    while rounds > 0:
        if at > 0:
            at = tl.load(table + at)
        rounds -= 1
    return at


@bl.jit
def chased(table, x, out, n, BLOCK: bl.constexpr):
    offs = tl.arange(0, BLOCK)
    start = tl.load(x + offs, mask=offs < n, other=0)
    tl.store(out + offs, tl.map_elementwise(lambda s: chase(table, s), start), mask=offs < n)


@bl.jit
def order(x, out, counts, BLOCK: bl.constexpr, K: bl.constexpr):
    offs = tl.arange(0, BLOCK)
    v = tl.load(x + offs)
    best = tl.topk(v, K)
    tl.store(out + tl.arange(0, K), best)
    tl.store(counts + tl.arange(0, 8), tl.histogram(tl.sort(v).to(tl.int32), 8))
    tl.store(out + K + offs, tl.gather(v, BLOCK - 1 - offs, 0))
