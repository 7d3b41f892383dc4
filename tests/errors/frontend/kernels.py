"""Kernels of newcomers from NumPy, PyTorch and Python, and of users of aggregates, that cannot be compiled.

All take the same arguments: `x` points at fp32, `p` at int32; `n` is an int32 and `s` a float32 scalar; BLOCK
is 64.
"""

# mypy: ignore-errors
# ruff: noqa
from __future__ import annotations

import math

import numpy as np

import blocklang.language as tl
from blocklang import aggregate, constexpr_function


@aggregate
class Pair:
    first: tl.tensor
    second: tl.tensor

    def __init__(self, first, second):
        self.first = first
        self.second = second


@aggregate
class Sized:
    value: tl.tensor
    size: tl.constexpr


@constexpr_function
def exact_half(n):
    if n % 2:
        raise ValueError(f"{n} is odd")
    return n // 2


def numpy_function(x, p, n, s, BLOCK: tl.constexpr):
    tl.store(x, np.exp(s))


def numpy_method(x, p, n, s, BLOCK: tl.constexpr):
    tl.store(x, n.astype(tl.float32))


def numpy_dtype(x, p, n, s, BLOCK: tl.constexpr):
    y = n.to(np.float32)


def python_mathematics(x, p, n, s, BLOCK: tl.constexpr):
    tl.store(x, math.sqrt(s))


def class_inside(x, p, n, s, BLOCK: tl.constexpr):
    class Pair:
        first: int


def yields(x, p, n, s, BLOCK: tl.constexpr):
    yield n


def matches(x, p, n, s, BLOCK: tl.constexpr):
    match n:
        case 1:
            tl.store(p, n)


def asynchronous(x, p, n, s, BLOCK: tl.constexpr):
    async def later():
        await n


def a_set(x, p, n, s, BLOCK: tl.constexpr):
    t = {1, 2}


def redeclared_constexpr(x, p, n, s, BLOCK: tl.constexpr):
    HALF: tl.constexpr = BLOCK // 2
    HALF: tl.constexpr = BLOCK // 4


def unequal_tuples_in_if(x, p, n, s, BLOCK: tl.constexpr):
    t = (n, s)
    if n > 0:
        t = (n, n)
    tl.store(p, t[1])


def changed_aggregate(x, p, n, s, BLOCK: tl.constexpr):
    pair = Pair(n, s)
    tl.store(p, pair.third)


def wrong_field(x, p, n, s, BLOCK: tl.constexpr):
    pair = Sized(n, n)


def constexpr_function_raises(x, p, n, s, BLOCK: tl.constexpr):
    HALF: tl.constexpr = exact_half(BLOCK + 1)


def breakpoint_compiled(x, p, n, s, BLOCK: tl.constexpr):
    breakpoint()
