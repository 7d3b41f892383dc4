"""Kernels with atomics."""

# mypy: ignore-errors
from __future__ import annotations

import blocklang as bl
import blocklang.language as tl


@bl.jit
def rmw(x, values, places, out, old, n, KIND: bl.constexpr, BLOCK: bl.constexpr):
    """Every lane at its place, with the result read; some lanes are masked off."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = (i < n) & (i % 5 != 3)
    where = out + tl.load(places + i, mask=live)
    value = tl.load(values + i, mask=live)
    if KIND == "add":
        found = tl.atomic_add(where, value, mask=live)
    elif KIND == "max":
        found = tl.atomic_max(where, value, mask=live, sem="relaxed")
    elif KIND == "min":
        found = tl.atomic_min(where, value, mask=live, sem="acquire", scope="cta")
    elif KIND == "and":
        found = tl.atomic_and(where, value, mask=live, sem="release", scope="sys")
    elif KIND == "or":
        found = tl.atomic_or(where, value, mask=live)
    elif KIND == "xor":
        found = tl.atomic_xor(where, value, mask=live)
    else:
        found = tl.atomic_xchg(where, value, mask=live)
    tl.store(old + i, found, mask=i < n)


@bl.jit
def swap(compare, values, places, out, old, n, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    live = i < n
    where = out + tl.load(places + i, mask=live)  # masked lanes swap element 0 for 0, if that is 0
    found = tl.atomic_cas(where, tl.load(compare + i, mask=live), tl.load(values + i, mask=live))
    tl.store(old + i, found, mask=live)


@bl.jit
def unused(x, out, n, BLOCK: bl.constexpr):
    """Without a result: one sum of all, by lanes and as one number; rows of two axes."""
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.atomic_add(out + i * 0, v, mask=i < n)
    tl.atomic_add(out + 1, tl.sum(v, 0))
    row, column = tl.arange(0, 3)[:, None], tl.arange(0, BLOCK)[None, :]
    tl.atomic_add(out + 2 + row + column * 0, v[None, :], mask=column < n)
    tl.atomic_max(out + 5 + row, v[None, 0:1] if False else 3)


@bl.jit
def shapes(out, old, M: bl.constexpr, N: bl.constexpr):
    """Values and masks that are broadcast; results that are transposed, reduced and carried."""
    row, column = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    first = tl.atomic_add(out + row * 0 + column * 0, 1)
    second = tl.atomic_add(out + column + row * N, row + 1, mask=column > 0)
    third = tl.zeros((M, N), tl.int32)
    for _ in range(3):
        third += tl.atomic_add(out + row * N + column, column)
    at = row * N + column
    tl.store(old + at, first)
    tl.store(old + M * N + tl.trans(at), tl.trans(second))
    tl.store(old + 2 * M * N + at, third)
    tl.store(old + 3 * M * N + at, tl.sum(second, 1)[:, None] + first * 0)


@bl.jit
def computed(x, out, old, n, BLOCK: bl.constexpr):
    """Loads and functions inside of the atomic's loop, before and behind it."""
    i = tl.arange(0, BLOCK)
    live = i < n
    before = tl.load(out + i, mask=live)
    found = tl.atomic_add(out + (i + 1) % n, tl.exp(tl.load(x + i, mask=live)), mask=live)
    after = tl.load(out + i, mask=live)
    tl.store(old + i, before, mask=live)
    tl.store(old + n + i, found, mask=live)
    tl.store(old + 2 * n + i, after, mask=live)


@bl.jit
def in_place(out, old, n, BLOCK: bl.constexpr):
    """The value is loaded where it is added; then where the lane before adds."""
    i = tl.arange(0, BLOCK)
    live = i < n
    tl.atomic_add(out + i, tl.load(out + i, mask=live), mask=live)
    near = tl.load(out + (i + 1) % n, mask=live)
    tl.store(old + i, tl.atomic_add(out + i, near, mask=live), mask=live)


@bl.jit
def weak(out, old, BLOCK: bl.constexpr):
    """Numbers, bools and other types as values; methods."""
    i = tl.arange(0, BLOCK)
    tl.store(old + i, tl.atomic_add(out + i, True))
    tl.store(old + BLOCK + i, (out + i).atomic_max(2, mask=i > 0))
    tl.store(old + 2 * BLOCK + i, tl.atomic_xchg(out + i, i.to(tl.int64)))
    tl.store(old + 3 * BLOCK + i, (out + i).atomic_cas(1, 5))
    tl.atomic_min(out, 1, mask=False)
    tl.atomic_min(out + 1, -7, mask=True)


@bl.jit
def fences(out, old, n, BLOCK: bl.constexpr):
    """What is loaded before a fence is what stood there before it."""
    i = tl.arange(0, BLOCK)
    live = i < n
    a = tl.load(out + i, mask=live)
    tl.debug_barrier()
    tl.store(out + i, a + 1, mask=live)
    tl.debug_barrier()
    b = tl.load(out + i, mask=live, volatile=True)
    tl.atomic_add(out + (n - 1 - i), 10, mask=live)
    c = tl.load(out + i, mask=live)
    tl.store(out + i, 0, mask=live)
    tl.store(old + i, a, mask=live)
    tl.store(old + n + i, b, mask=live)
    tl.store(old + 2 * n + i, c, mask=live)


@bl.jit
def counter(out, order, BLOCK: bl.constexpr):
    """Each program takes a number of its own."""
    ticket = tl.atomic_add(out, 1)
    tl.atomic_add(order + ticket, 1)
    tl.atomic_add(out + 1 + tl.arange(0, BLOCK) % 3, 1)


@bl.jit
def locked(lock, total, n, BLOCK: bl.constexpr):
    """A sum that is not atomic, under a lock."""
    i = tl.arange(0, BLOCK)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    sums = tl.load(total + i, mask=i < n)
    tl.store(total + i, sums + tl.program_id(0) + i, mask=i < n)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@bl.jit
def grouped(partial, locks, counts, GROUPS: bl.constexpr, BLOCK: bl.constexpr):
    """As the backward pass of layer norm: groups with a lock, whose first program stores and others add."""
    i = tl.arange(0, BLOCK)
    group = tl.program_id(0) % GROUPS
    value = tl.program_id(0) + i * 0.5
    partial += group * BLOCK + i
    while tl.atomic_cas(locks + group, 0, 1) == 1:
        pass
    count = tl.load(counts + group)
    if count == 0:
        tl.atomic_xchg(counts + group, 1)
    else:
        value += tl.load(partial)
    tl.store(partial, value)
    tl.debug_barrier()
    tl.atomic_xchg(locks + group, 0)


@bl.jit
def chain(flags, data, n, BLOCK: bl.constexpr):
    """Program i waits for program i - 1 and adds to what that stored."""
    pid = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    while tl.load(flags + pid, volatile=True) == 0:
        pass
    before = tl.load(data + pid * n + i, mask=i < n)
    tl.store(data + (pid + 1) * n + i, before + i, mask=i < n)
    tl.debug_barrier()
    tl.atomic_xchg(flags + pid + 1, 1)


@bl.jit
def many_sums(x, out, BLOCK: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out + i % 3, tl.load(x + i))
