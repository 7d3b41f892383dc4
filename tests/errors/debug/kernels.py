"""Kernels that the debug mode stops."""

# mypy: ignore-errors
from __future__ import annotations

import blocklang as bl
import blocklang.language as tl


@bl.jit
def tail(x, out, n, BLOCK: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, 2 * tl.load(x + i), mask=i < n)


@bl.jit
def transposed(x, out, n, BLOCK: bl.constexpr):
    i, j = tl.arange(0, BLOCK)[:, None], tl.arange(0, BLOCK)[None, :]
    v = tl.load(x + j * BLOCK + i)
    tl.atomic_add(out + i + 0 * j, v, mask=j > i)


@bl.jit
def either(x, out, n, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(tl.where(i < n, out + i, x + i), 0.0)


@bl.jit
def rows(x, out, stride, BLOCK: bl.constexpr):
    row = tl.program_id(0) * stride
    v = tl.load(x + row + tl.arange(0, BLOCK))
    tl.store(out + tl.arange(0, BLOCK), v)


@bl.jit
def pages(x, out, page, BLOCK: bl.constexpr):
    start = tl.program_id(0) * page * 64
    v = tl.load(x + start + tl.arange(0, BLOCK))
    tl.store(out + tl.arange(0, BLOCK), v)


@bl.jit
def mean(x, out, n, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(out, tl.sum(v) / n)


@bl.jit
def variance(x, out, n, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(out + i, tl.sqrt(v - 3), mask=i < n)


@bl.jit
def tripled(x, out, n, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, i * n * 3)
