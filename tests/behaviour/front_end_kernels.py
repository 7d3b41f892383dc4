"""Kernels for the rows about the front end that are not written as text."""

# mypy: ignore-errors
from __future__ import annotations

import blocklang as bl
import blocklang.language as tl


@bl.jit
def as_argument(out, s, BLOCK: bl.constexpr):
    """Every method of a run-time scalar, whatever its value."""
    i = tl.arange(0, BLOCK)
    tl.store(out, s)
    tl.store(out + 1, s.to(tl.int64) * 3)
    tl.store(out + 2, s + 5)
    tl.store(out + 3, -s)
    tl.store(out + 4, s // 2)
    tl.store(out + 5, tl.where(s > 0, s, 7))
    tl.store(out + 6, tl.sum(i * s))
    tl.store(out + 7, s.to(tl.float32) * 0.5)
    x = s
    for _ in range(3):
        x += s
    tl.store(out + 8, x)
    n = 0
    for _ in range(s):
        n += 1
    tl.store(out + 9, n)
    if s == 1:
        tl.store(out + 10, 100)
    elif s:
        tl.store(out + 10, 200)
    else:
        tl.store(out + 10, 300)
    tl.store(out + 11, s.to(tl.uint8) + (s << 1) + (s & 1) + (~s))


@bl.jit
def of_bool(out, flag, x):
    tl.store(out, flag)
    if flag:
        tl.store(out + 1, 10)
    else:
        tl.store(out + 1, 20)
    tl.store(out + 2, 1 if flag and x > 2 else 0)
    tl.store(out + 3, tl.where(flag, x, -x))
    tl.store(out + 4, flag.to(tl.int32) + 5)
    tl.store(out + 5, 1 if not flag else 2)


@bl.jit
def of_none(x, bias, out, n, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    if bias is not None:
        v += tl.load(bias + i, mask=i < n)
    tl.store(out + i, v, mask=i < n)


@bl.jit
def printing(x, n, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.device_print("v", tl.load(x + i, mask=i < n), n)
    print("n", n)


@bl.jit
def asserting(x, n, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.device_assert(v >= 0, "negative", mask=i < n)
    tl.store(x + i, v + 1, mask=i < n)
