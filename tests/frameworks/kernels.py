"""Kernels that the tests of PyTorch's and JAX's operators share."""

from __future__ import annotations

from typing import Any

import blocklang as bl
import blocklang.language as tl


@bl.jit
def add(x: Any, y: Any, out: Any, n: Any, BLOCK: bl.constexpr) -> None:
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n) + tl.load(y + i, i < n), i < n)


@bl.jit
def multiply(x: Any, out: Any, n: Any, factor: Any, BLOCK: bl.constexpr) -> None:
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n) * factor, i < n)


@bl.jit
def softmax(out: Any, x: Any, n: Any, stride: Any, BLOCK: bl.constexpr) -> None:
    i = tl.arange(0, BLOCK)
    row = tl.load(x + tl.program_id(0) * stride + i, i < n, other=-float("inf"))
    e = tl.exp(row - tl.max(row, 0))
    tl.store(out + tl.program_id(0) * n + i, e / tl.sum(e, 0), i < n)


@bl.jit
def softmax_gradient(out: Any, grad: Any, y: Any, n: Any, BLOCK: bl.constexpr) -> None:
    i = tl.arange(0, BLOCK)
    at = tl.program_id(0) * n + i
    g, p = tl.load(grad + at, i < n), tl.load(y + at, i < n)
    tl.store(out + at, p * (g - tl.sum(g * p, 0)), i < n)


@bl.jit
def increment(x: Any, n: Any, by: Any, BLOCK: bl.constexpr) -> None:
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, i < n) + by, i < n)


@bl.jit
def sum_and_maximum(x: Any, total: Any, largest: Any, n: Any, BLOCK: bl.constexpr) -> None:
    i = tl.arange(0, BLOCK)
    row = tl.program_id(0)
    v = tl.load(x + row * n + i, i < n, other=0)
    tl.store(total + row, tl.sum(v, 0))
    tl.store(largest + row, tl.max(tl.where(i < n, v, -float("inf")), 0))
