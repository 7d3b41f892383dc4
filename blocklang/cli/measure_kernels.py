"""The kernels of `blocklang doctor --measure`."""

from __future__ import annotations

from typing import Any

import blocklang as bl
import blocklang.language as tl


@bl.jit
def multiply_add(x: Any, times: Any, DEEP: bl.constexpr, BLOCK: bl.constexpr) -> None:
    """A block of values that stays in registers: `times * DEEP` multiply-adds each."""
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + lanes)
    factor = tl.load(x + lanes * 0)
    for _ in range(times):
        for _ in tl.static_range(DEEP):
            value = tl.fma(value, factor, factor)
    tl.store(x + lanes, value)


@bl.jit
def walk(x: Any, n: Any, times: Any, BLOCK: bl.constexpr) -> None:
    """Add one to the program's `n` values, `times` times; `n` is a multiple of BLOCK."""
    start = tl.program_id(0).to(tl.int64) * n
    for _ in range(times):
        for first in range(0, n, BLOCK):
            at = x + start + first + tl.arange(0, BLOCK)
            tl.store(at, tl.load(at) + 1.0)


@bl.jit
def chain(x: Any, times: Any) -> None:
    """`times` pairs of dependent integer operations of one cycle each: exclusive or, then a sum."""
    value = tl.load(x)
    step = tl.load(x + 1)
    for index in range(times):
        value = (value ^ index) + step
    tl.store(x, value)
