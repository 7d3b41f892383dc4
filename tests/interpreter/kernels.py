# mypy: ignore-errors
"""Kernels for the tests of the interpreter, as users write them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import blocklang.language as tl

CALLABLE: list[Callable[..., Any]] = []
SCALE = np.float32(3)
WIDTH = 4
"""A global number, read when a kernel runs."""


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function that other kernels may call."""
    CALLABLE.append(function)
    return function


def add_kernel(out: Any, x: Any, y: Any, n: Any, BLOCK: tl.constexpr) -> None:
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(out + offs, tl.load(x + offs, mask=mask) + tl.load(y + offs, mask=mask), mask=mask)


def softmax_kernel(out: Any, x: Any, n: Any, stride: Any, BLOCK: tl.constexpr) -> None:
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    v = tl.load(x + row * stride + cols, mask=mask, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(out + row * stride + cols, e / tl.sum(e, 0), mask=mask)


def matmul_kernel(
    c: Any, a: Any, b: Any, K: Any, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
) -> None:
    rm, rn, rk = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    a_ptrs = a + rm[:, None] * K + rk[None, :]
    b_ptrs = b + rk[:, None] * BN + rn[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(tl.cdiv(K, BK)):
        left = tl.load(a_ptrs, mask=rk[None, :] < K - k * BK, other=0.0)
        right = tl.load(b_ptrs, mask=rk[:, None] < K - k * BK, other=0.0)
        acc = tl.dot(left, right, acc)
        a_ptrs += BK
        b_ptrs += BK * BN
    tl.store(c + rm[:, None] * BN + rn[None, :], acc)


def assigned_numbers(out: Any, x: Any) -> None:
    s = 2
    v = tl.load(x)
    tl.static_assert((v * 2).dtype == tl.int8)
    tl.static_assert((v * s).dtype == tl.int32)
    a, (b, c) = 1, (2.5, True)
    tl.static_assert(a.dtype == tl.int32)
    tl.static_assert(b.dtype == tl.float32)
    tl.static_assert(c.dtype == tl.int1)
    s += 3
    tl.store(out, s + a)
    N: tl.constexpr = WIDTH * 2
    tl.store(out + tl.arange(0, N), tl.arange(0, N) + s)


def division(out: Any, a: Any, b: Any, A: tl.constexpr, B: tl.constexpr) -> None:
    tl.store(out, a // b)
    tl.store(out + 1, a % b)
    tl.store(out + 2, A // B)
    tl.store(out + 3, A % B)


def scalar_logic(out: Any, n: Any, x: Any) -> None:
    # The right side would read outside of x if it were evaluated.
    if n > 0 and tl.load(x + n) > 5:
        tl.store(out, 1)
    if n == 0 or tl.load(x + n) > 5:
        tl.store(out + 1, 1)
    if not n:
        tl.store(out + 2, 1)
    tl.store(out + 3, (n == 0) or (n == 7))
    if 0 <= n < 4 != 9:
        tl.store(out + 4, 1)
    tl.store(out + 5, 10 if n else 20)


def deciding_operands(out: Any, n: Any, x: Any) -> None:
    small = tl.load(x)
    both = n and small
    tl.static_assert(both.dtype == tl.int32)
    tl.store(out, both)
    either = small or n + 1
    tl.static_assert(either.dtype == tl.int32)
    tl.store(out + 1, either)
    # The side that is not taken reads outside of x when it is evaluated.
    chosen = tl.load(x) if n > 0 else 7
    tl.static_assert(chosen.dtype == tl.int8)
    tl.store(out + 2, chosen)
    chosen = tl.load(x + 1000) if n < 0 else 9
    tl.static_assert(chosen.dtype == tl.int8)
    tl.store(out + 3, chosen + SCALE)
    chosen = 1 if n > 0 else 2
    tl.static_assert((small * chosen).dtype == tl.int32)
    tl.store(out + 4, -5 if SCALE == 3 else n)


def block_logic(out: Any) -> None:
    i = tl.arange(0, 8)
    tl.store(out + i, tl.where((i > 2) and (i < 6), 1, 0))
    tl.store(out + 8 + i, tl.where(not (i > 2), 1, 0))


def loops(out: Any, n: Any, step: Any, wide: Any) -> None:
    total = 0
    for i in range(n):
        if i == 2:
            continue
        if i == 5:
            break
        total += i
    else:
        total += 100
    tl.store(out, total)
    count = 0
    for j in range(10, 0, step):
        tl.static_assert(j.dtype == tl.int32)
        count = count * 10 + j % 10
    tl.store(out + 1, count)
    for k in range(wide):
        tl.static_assert(k.dtype == tl.int64)
    for m in tl.static_range(3):
        tl.static_assert(m < 3)
        tl.store(out + 2 + m, m)
    while total > 3:
        total = total // 2
    else:
        tl.store(out + 5, total)
    for p in tl.range(2, 8, 3, num_stages=2):
        tl.store(out + p + 4, p)


@kernel
def helper(x: Any, k: tl.constexpr, y: Any = 3) -> Any:
    tl.static_assert(k == 2)
    if x > 10:
        return x, y
    return x + y, y


def calls(out: Any, n: Any) -> None:
    a, b = helper(n, 2)
    c, _ = helper(n, k=2, y=n)
    tl.store(out, a)
    tl.store(out + 1, c + b)

    def nested(v: Any) -> Any:
        v = v * n
        return v

    double = lambda v: v + v  # noqa: E731
    tl.store(out + 2, double(nested(4)))
    tl.store(out + 3, min(n, 3) + max(n, 1, 5))
    tl.store(out + 4, abs(0 - n))


def make_closure(scale: int) -> Callable[..., Any]:
    def closing(out: Any) -> None:
        tl.store(out, tl.program_id(0) + scale)

    return closing


def reductions(out: Any, x: Any, BLOCK: tl.constexpr) -> None:
    v = tl.load(x + tl.arange(0, BLOCK))
    tl.store(out, tl.reduce(v, 0, lambda a, b: a * 3 + b))
    tl.store(out + 1, tl.reduce(v, 0, branching))
    low, high = tl.reduce((v, v), 0, lambda a, b, c, d: (tl.minimum(a, c), tl.maximum(b, d)))
    tl.store(out + 2, low)
    tl.store(out + 3, high)
    columns = v.reshape(BLOCK // 5, 5).reduce(0, branching)
    tl.store(out + 4 + tl.arange(0, 5), columns)


@kernel
def branching(a: Any, b: Any) -> Any:
    while b > 4:
        b = b // 2
    if a % 2 == 0:
        return a + b
    return a - b


def printing(x: Any) -> None:
    v = tl.load(x + tl.arange(0, 3))
    print(v)
    print("sum", tl.sum(v, 0))


def stopping(x: Any) -> None:
    v = tl.load(x + tl.arange(0, 3))
    breakpoint()  # noqa: T100
    tl.store(x + tl.arange(0, 3), v * 2)


def failing_load(x: Any) -> None:
    i = tl.arange(0, 8)
    v = tl.load(x + i, mask=i != 1)
    tl.store(x + i, v)


def failing_shapes(x: Any) -> None:
    tl.store(x, tl.arange(0, 4) + tl.arange(0, 5))


def failing_condition(x: Any) -> None:
    if tl.arange(0, 4) > 2:
        tl.store(x, 1)


def failing_assertion(x: Any, n: Any) -> None:
    assert n > 3, "n is too small"


def failing_in_helper(x: Any) -> None:
    tl.store(x, helper2(tl.load(x)))


@kernel
def helper2(v: Any) -> Any:
    return v << 1.5


def failing_static(x: Any, N: tl.constexpr) -> None:
    tl.static_assert(N > 3, "N is too small")


def failing_python(x: Any) -> None:
    {}["missing"]
