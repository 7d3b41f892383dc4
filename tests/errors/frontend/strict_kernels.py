"""Kernels that break one rule of strict mode each; a usual kernel may do all of it.

All take the same arguments: `x` points at fp16, `p` at int32; `n` is an int32 scalar; BLOCK is 64.
"""

# mypy: ignore-errors
# ruff: noqa
from __future__ import annotations

import blocklang.language as tl

LIMIT = 3


def break_(x, p, n, BLOCK: tl.constexpr):
    for i in range(n):
        if i == 3:
            break
        tl.store(p, i)


def continue_(x, p, n, BLOCK: tl.constexpr):
    for i in range(n):
        if i == 3:
            continue
        tl.store(p, i)


def for_else(x, p, n, BLOCK: tl.constexpr):
    for i in range(n):
        tl.store(p, i)
    else:
        tl.store(p, n)


def while_else(x, p, n, BLOCK: tl.constexpr):
    while n > 0:
        n -= 1
    else:
        tl.store(p, n)


def chained_comparison(x, p, n, BLOCK: tl.constexpr):
    if 0 < n < 5:
        tl.store(p, n)


def in_(x, p, n, BLOCK: tl.constexpr):
    if BLOCK in (32, 64):
        tl.store(p, n)


def inner_function(x, p, n, BLOCK: tl.constexpr):
    def double(a):
        return a + a

    tl.store(p, double(n))


def lambda_(x, p, n, BLOCK: tl.constexpr):
    double = lambda a: a + a
    tl.store(p, double(n))


def generator(x, p, n, BLOCK: tl.constexpr):
    tl.store(p, min(i for i in (1, n)))


def loop_target(x, p, n, BLOCK: tl.constexpr):
    for a, b in ((1, 2), (3, 4)):
        tl.store(p + a, b)


def loop_over_values(x, p, n, BLOCK: tl.constexpr):
    for a in (1, 2):
        tl.store(p + a, n)


def comprehension_over_range(x, p, n, BLOCK: tl.constexpr):
    t = [i + n for i in range(3)]
    tl.store(p, t[2])


def several_targets(x, p, n, BLOCK: tl.constexpr):
    a = b = n + 1
    tl.store(p + a, b)


def list_target(x, p, n, BLOCK: tl.constexpr):
    [a, b] = (1, n)
    tl.store(p + a, b)


def starred(x, p, n, BLOCK: tl.constexpr):
    t = (*(1, 2), n)
    tl.store(p, t[2])


def return_in_loop(x, p, n, BLOCK: tl.constexpr):
    for i in range(n):
        if i == 3:
            return
        tl.store(p, i)


def static_while(x, p, n, BLOCK: tl.constexpr):
    while BLOCK < 64:
        tl.store(p, n)


def unary_plus(x, p, n, BLOCK: tl.constexpr):
    tl.store(p, +n)


def python_name(x, p, n, BLOCK: tl.constexpr):
    tl.store(p, abs(n))


def global_(x, p, n, BLOCK: tl.constexpr):
    tl.store(p, LIMIT)


def arange(x, p, n, BLOCK: tl.constexpr):
    tl.store(p + tl.arange(0, 3), n)


def extent(x, p, n, BLOCK: tl.constexpr):
    y = tl.zeros((4, 3), tl.int32)
    tl.store(p, tl.sum(y))


def numel(x, p, n, BLOCK: tl.constexpr):
    y = tl.zeros((2048, 1024), tl.int32)


def and_of_integers(x, p, n, BLOCK: tl.constexpr):
    if n and n > 3:
        tl.store(p, n)


def or_of_integers(x, p, n, BLOCK: tl.constexpr):
    if n > 3 or n:
        tl.store(p, n)


def not_of_integer(x, p, n, BLOCK: tl.constexpr):
    if not n:
        tl.store(p, 1)


def ternary(x, p, n, BLOCK: tl.constexpr):
    a, b = (1, n) if n > 3 else (n, 1)
    tl.store(p + a, b)


def ternary_of_none(x, p, n, BLOCK: tl.constexpr):
    tl.store(p, n) if n > 3 else tl.store(p, 1)


def compared_tuples(x, p, n, BLOCK: tl.constexpr):
    if (n, n) == (1, 2):
        tl.store(p, n)


def small_float(x, p, n, BLOCK: tl.constexpr):
    tl.store(x, tl.exp(tl.load(x)))


def small_float_method(x, p, n, BLOCK: tl.constexpr):
    tl.store(x, tl.load(x).sqrt())


def redeclared_in_unrolled_loop(x, p, n, BLOCK: tl.constexpr):
    for i in tl.static_range(2):
        TWICE: tl.constexpr = 2 * i
        tl.store(p + i, TWICE)
