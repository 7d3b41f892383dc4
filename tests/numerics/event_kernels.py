"""Kernels that print and assert."""

# mypy: ignore-errors
from __future__ import annotations

import blocklang as bl
import blocklang.language as tl


@bl.jit
def values(x, BLOCK: bl.constexpr):
    """A block of the array's type, as it is and as bits."""
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    tl.device_print("v", v)
    tl.device_print("bits ", v, hex=True)
    tl.store(x + i, v)


@bl.jit
def forms(x, n, BLOCK: bl.constexpr):
    """Scalars, numbers, several operands, axes, no operand, no prefix."""
    i = tl.arange(0, BLOCK)
    pid = tl.program_id(0) + 10 * tl.program_id(1)
    print("pid", pid, n, BLOCK, 1.5, True)
    tl.device_print("block", i * 2 + pid, i[:, None] < i[None, :])
    print("nothing")
    print(i > 0)
    print("computed", tl.exp(tl.zeros((1, 2), tl.float32)) + pid, hex=True)
    tl.device_print("sum", tl.sum(tl.load(x + i, mask=i < n), 0))


@bl.jit
def around_effects(x, n, BLOCK: bl.constexpr):
    """What is printed is what stood in memory at that point; control flow decides what is printed."""
    i = tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n)
    tl.store(x + i, a + 1, mask=i < n)
    print("before", a)
    for k in range(3):
        if k != tl.program_id(0):
            a += tl.load(x + i, mask=i < n)
            print("k", k, a)
    while tl.atomic_add(x, 1) < 3:
        print("again")
    old = tl.atomic_add(x + i, 5, mask=i < n)
    print("old", old)


@bl.jit
def many(out, BLOCK: bl.constexpr):
    pid = tl.program_id(0)
    print("pid", pid)
    if pid % 7 == 3:
        print("block", pid + tl.arange(0, BLOCK))
    tl.atomic_add(out, 1)


@bl.jit
def asserts(x, out, n, LAST: bl.constexpr, BLOCK: bl.constexpr):
    pid = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + pid * BLOCK + i, mask=i < n)
    print("starts", pid)
    assert pid < LAST, f"no program may be {LAST}"
    tl.device_assert(v >= 0, "negative", mask=i < n - 1)
    tl.store(out + pid, 1)
    print("ends", pid)


@bl.jit
def assert_of_two_axes(x, M: bl.constexpr, N: bl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    for step in range(4):
        tl.device_assert(tl.load(x + at) + step, mask=tl.arange(0, M)[:, None] > 0)
    tl.store(x, 7)


@bl.jit
def no_message(x):
    assert tl.load(x)


@bl.jit
def compile_time(x, N: bl.constexpr):
    assert N > 3, "N is too small"
    tl.store(x, 1)
