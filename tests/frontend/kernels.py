"""Kernels whose Block IR stands in golden files, each with the types of its arguments."""

# mypy: ignore-errors

from __future__ import annotations

from collections import namedtuple
from typing import Any

import blocklang.language as tl
from blocklang.jit import jit

SCALE = 2.0
Pair = namedtuple("Pair", ["first", "second"])


def vector_add(x, y, out, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    a = tl.load(x + offs, mask=mask)
    b = tl.load(y + offs, mask=mask)
    tl.store(out + offs, a + b, mask=mask)


def softmax(out, x, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    mask = offs < n
    v = tl.load(x + row * stride + offs, mask=mask, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(out + row * stride + offs, e / tl.sum(e, axis=0), mask=mask)


def matmul(a, b, c, k, stride, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a_ptrs = a + i[:, None] * stride + i[None, :]
    b_ptrs = b + i[:, None] * stride + i[None, :]
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for _ in tl.range(0, k, BLOCK, num_stages=3):
        acc = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs), acc)
        a_ptrs += BLOCK
        b_ptrs += BLOCK * stride
    tl.store(c + i[:, None] * stride + i[None, :], acc)


@jit
def clipped(value, limit):
    if value > limit:
        return limit
    return value


def early_return(out, n):
    if n < 0:
        return
    tl.store(out, clipped(n, 7))


def early_return_in_loop(out, n):
    for i in range(n):
        if tl.load(out + i) == 0:
            tl.store(out + i, 1)
            return
    tl.store(out, 2)


def continue_without_flags(out, n):
    total = 0
    for i in range(n):
        if i % 2 == 0:
            continue
        total += i
    tl.store(out, total)


def break_with_else(out, n):
    for i in range(n):
        if tl.load(out + i) > 3:
            break
    else:
        tl.store(out, -1)


def while_loop(out, n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    tl.store(out, steps)


def short_circuit_with_load(out, n):
    i = 0
    while i < n and tl.load(out + i) != 0:
        i += 1
    tl.store(out, i)


def short_circuit_of_bools(out, n):
    if 0 < n < 10 and not (n == 5 or n == 7):
        tl.store(out, n)


def branch_with_results(out, n):
    if n > 0:
        a, b = n, 1
    elif n < 0:
        a, b = -n, 2
    else:
        a, b = 0, 3
    tl.store(out, a)
    tl.store(out + 1, b)


def constexpr_branches(out, n, KIND: tl.constexpr, scale=None):
    if KIND == "square":
        y = n * n
    elif KIND == "broken":
        y = n + "text"
    else:
        y = n
    if scale is not None:
        y = y * scale
    tl.store(out, y)
    if KIND == "square":
        return
    undefined_name()  # noqa: F821


def unrolled(out, n):
    for i in tl.static_range(3):
        if i == n:
            break
        tl.store(out + i, i)


def carried_tuple(out, n):
    state = (0, 1)
    for _ in range(n):
        state = (state[1], state[0] + state[1])
    tl.store(out, state[0])


def unchanged_names_are_not_carried(out, n, FLIP: tl.constexpr):
    a = n + 1
    b = 0
    for _ in range(n):
        if FLIP:
            a = a * 2
        b += a
    tl.store(out, b)


def closures(out, n):
    offset = n + 3

    def shifted(value, by=1):
        return value + offset * by

    double = lambda value: value * 2  # noqa: E731
    tl.store(out, tl.reduce(shifted(tl.arange(0, 4)), 0, lambda a, b: double(a) + b))


def named_tuple(out, n):
    pair = Pair(n, 2)
    tl.store(out, pair.first + pair.second * SCALE)


def comprehension(out, n):
    squares = [i * i for i in (1, 2, 3) if i != 2]
    tl.store(out, n + sum(squares) + len(squares))


def specialised_one(out, n, stride):
    if stride == 1:
        tl.store(out + n, stride.to(tl.int64) + stride)


def negative_step(out, n, step):
    for i in range(n, 0, step):
        if tl.load(out + i) == 0:
            break
        tl.store(out, i)


I32 = "ptr<i32>"
F32 = "ptr<f32>"
CASES: dict[str, tuple[Any, tuple[str, ...], dict[str, Any]]] = {
    "vector_add": (vector_add, (F32, F32, F32, "i32"), {"BLOCK": 128}),
    "softmax": (softmax, (F32, F32, "i32", "i32"), {"BLOCK": 64}),
    "matmul": (matmul, (F32, F32, F32, "i32", "i32"), {"BLOCK": 16}),
    "early_return": (early_return, (I32, "i32"), {}),
    "early_return_in_loop": (early_return_in_loop, (I32, "i32"), {}),
    "continue_without_flags": (continue_without_flags, (I32, "i32"), {}),
    "break_with_else": (break_with_else, (I32, "i32"), {}),
    "while_loop": (while_loop, (I32, "i32"), {}),
    "short_circuit_with_load": (short_circuit_with_load, (I32, "i32"), {}),
    "short_circuit_of_bools": (short_circuit_of_bools, (I32, "i32"), {}),
    "branch_with_results": (branch_with_results, (I32, "i32"), {}),
    "constexpr_branches": (constexpr_branches, (I32, "i32"), {"KIND": "square", "scale": None}),
    "unrolled": (unrolled, (I32, "i32"), {}),
    "carried_tuple": (carried_tuple, (I32, "i32"), {}),
    "unchanged_names": (unchanged_names_are_not_carried, (I32, "i32"), {"FLIP": False}),
    "closures": (closures, (I32, "i32"), {}),
    "named_tuple": (named_tuple, (F32, "i32"), {}),
    "comprehension": (comprehension, (I32, "i32"), {}),
    "specialised_one": (specialised_one, (I32, "i32"), {"stride": 1}),
    "negative_step": (negative_step, (I32, "i32"), {"step": -2}),
}
