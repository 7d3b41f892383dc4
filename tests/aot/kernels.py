"""Kernels of which the answer depends on what an ahead-of-time build must get right."""

from __future__ import annotations

from typing import Any

import blocklang as bl
import blocklang.language as tl


@bl.jit
def shift(x: Any, out: Any, n: Any, BLOCK: bl.constexpr) -> None:
    """Twice the square of x, read twice, with stores between: arrays that overlap show."""
    lanes = tl.arange(0, BLOCK)
    for start in range(0, n, BLOCK):
        mask = start + lanes < n
        value = tl.load(x + start + lanes, mask, other=0.0)
        tl.store(out + start + lanes, value * value, mask)
        again = tl.load(x + start + lanes, mask, other=0.0)
        tl.store(out + start + lanes, value * value + again * again, mask)


@bl.jit
def kinds(
    out: Any, flag: Any, small: Any, word: Any, wide: Any, half: Any, brain: Any, x: Any, y: Any
) -> None:
    """One number of each kind of argument, as float64."""
    tl.store(out, tl.where(flag, 1.0, 0.0))
    tl.store(out + 1, small.to(tl.float64))
    tl.store(out + 2, word.to(tl.float64))
    tl.store(out + 3, wide.to(tl.float64))
    tl.store(out + 4, half.to(tl.float64))
    tl.store(out + 5, brain.to(tl.float64))
    tl.store(out + 6, x.to(tl.float64))
    tl.store(out + 7, y)


@bl.jit
def scaled(x: Any, factor: Any = 2.0, n: Any = 16, BLOCK: bl.constexpr = 32) -> None:  # type: ignore[assignment]
    """x times factor, n elements."""
    lanes = tl.arange(0, BLOCK)
    tl.store(x + lanes, factor * tl.load(x + lanes, lanes < n), lanes < n)


@bl.jit
def doubled(x: Any, n: Any, BLOCK: bl.constexpr) -> None:
    """2 x, in place."""
    lanes = tl.arange(0, BLOCK)
    tl.store(x + lanes, 2 * tl.load(x + lanes, lanes < n), lanes < n)


@bl.jit
def spread(linux: Any, memcpy: Any, np: bl.constexpr, Kernel: bl.constexpr) -> None:
    """Its names are those of functions, macros and imports of what is generated around it."""
    tl.store(linux, memcpy * np + Kernel)


@bl.jit
def count_up(total: Any, lock: Any, n: Any) -> None:
    """Every program adds n to a sum, by an atomic and under a lock."""
    tl.atomic_add(total, n)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(total + 1, tl.load(total + 1) + n)
    tl.atomic_xchg(lock, 0)
