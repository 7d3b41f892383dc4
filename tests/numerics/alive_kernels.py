"""Loops over blocks that run until no lane is alive."""

# mypy: ignore-errors
from __future__ import annotations

import blocklang as bl
import blocklang.language as tl


@bl.jit
def escape(x, out, last, LIMIT: bl.constexpr, BLOCK: bl.constexpr):
    """Rounds until z * z + c leaves a circle."""
    i = tl.arange(0, BLOCK)
    c = tl.load(x + i)
    z = tl.zeros((BLOCK,), tl.float32)
    rounds = tl.zeros((BLOCK,), tl.int32)
    alive = z <= 4.0
    t = 0
    while (t < LIMIT) & (tl.max(alive.to(tl.int32), 0) > 0):
        following = z * z + c
        rounds = tl.where(alive, rounds + 1, rounds)
        z = tl.where(alive, following, z)
        alive = alive & (z * z <= 4.0)
        t += 1
    tl.store(out + i, rounds)
    tl.store(last + i, z)


@bl.jit
def collatz(x, out, BLOCK: bl.constexpr):
    """What is alive is computed from what lanes carry, once more in the body."""
    i = tl.arange(0, BLOCK)
    n = tl.load(x + i)
    steps = tl.zeros((BLOCK,), tl.int32)
    while tl.sum((n > 1).to(tl.int32), 0) > 0:
        following = tl.where(n % 2 == 0, n // 2, 3 * n + 1)
        steps = tl.where(n > 1, steps + 1, steps)
        n = tl.where(n > 1, following, n)
    tl.store(out + i, steps)


@bl.jit
def collatz_rows(x, out, TALL: bl.constexpr, WIDE: bl.constexpr):
    i = tl.arange(0, TALL)[:, None] * WIDE + tl.arange(0, WIDE)[None, :]
    n = tl.load(x + i)
    steps = n * 0
    alive = n > 1
    while tl.max(tl.max(alive.to(tl.int32), 1), 0) != 0:
        n = tl.where(alive, tl.where(n % 2 == 0, n // 2, 3 * n + 1), n)
        steps = tl.where(alive, steps + 1, steps)
        alive = alive & (n > 1)
    tl.store(out + i, steps)


@bl.jit
def how_many_rounds(x, out, rounds, BLOCK: bl.constexpr):
    """Somebody asks for the rounds of all together."""
    i = tl.arange(0, BLOCK)
    n = tl.load(x + i)
    t = 0
    while tl.max((n > 0).to(tl.int32), 0) > 0:
        n = tl.where(n > 0, n - 3, n)
        t += 1
    tl.store(out + i, n)
    tl.store(rounds, t)


@bl.jit
def dead_lanes_move(x, out, BLOCK: bl.constexpr):
    """Lanes that are not alive change all the same."""
    i = tl.arange(0, BLOCK)
    n = tl.load(x + i)
    while tl.max((n > 0).to(tl.int32), 0) > 0:
        n = n - 3
    tl.store(out + i, n)


@bl.jit
def revived(x, out, BLOCK: bl.constexpr):
    """What is alive depends on the round, too: a lane may come back."""
    i = tl.arange(0, BLOCK)
    n = tl.load(x + i)
    t = 0
    while tl.max(((n > 0) & (t < 9)).to(tl.int32), 0) > 0:
        takes = (n > 0) & (t < 9)
        n = tl.where(takes, n - (t % 4), n)
        t += 1
    tl.store(out + i, n)


@bl.jit
def under_another_mask(x, out, BLOCK: bl.constexpr):
    """Lanes keep what they carry where another mask is false."""
    i = tl.arange(0, BLOCK)
    n = tl.load(x + i)
    count = tl.zeros((BLOCK,), tl.int32)
    while tl.max((n > 0).to(tl.int32), 0) > 0:
        count = tl.where(n > -10, count + 1, count)
        n = tl.where(n > 0, n - 2, n)
    tl.store(out + i, count)


@bl.jit
def in_a_loop(x, out, steps, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.int32)
    for step in range(steps):
        n = tl.load(x + i) + step
        alive = n > 1
        while tl.max(alive.to(tl.int32), 0) > 0:
            n = tl.where(alive, n // 2, n)
            total = tl.where(alive, total + step + 1, total)
            alive = alive & (n > 1)
    tl.store(out + i, total)


@bl.jit
def number_of_rounds(x, out, n, BLOCK: bl.constexpr):
    """A condition that asks no lane."""
    i = tl.arange(0, BLOCK)
    values = tl.load(x + i)
    while n > 0:
        values = tl.where(values > 0, values - 1, values)
        n -= 1
    tl.store(out + i, values)


@bl.jit
def until_many_are_done(x, out, n, BLOCK: bl.constexpr):
    """A condition on how many lanes are done."""
    i = tl.arange(0, BLOCK)
    values = tl.load(x + i)
    while tl.sum((values <= 0).to(tl.int32), 0) < n:
        values = tl.where(values <= 0, values, values - 3)
    tl.store(out + i, values)
