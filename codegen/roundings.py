"""Floats rounded to integral values, without a call where the CPU has no instruction for it (before SSE4.1).

With p bits in its fraction, a float from 2^p on is integral. Adding 2^p to a smaller size rounds it to
nearest even, and taking it away again is exact. The other roundings differ from that by one at most.
"""

from __future__ import annotations

from typing import Literal

from blocklang.codegen.context import Context
from blocklang.ir.types import F32, ScalarType

Rounding = Literal["floor", "ceil", "trunc", "roundeven"]


def round_to_integral(c: Context, type: ScalarType, rounding: Rounding, text: str) -> str:
    """Lanes of f32 or f64 rounded to integral values; infinities, NaN and the signs of zeros stay."""
    if c.target.has_rounding:
        return c.intrinsic(rounding, type, text)
    kind = c.type(type)
    size = c.intrinsic("fabs", type, text)
    magic, one, zero = (c.number(type, v) for v in (2.0 ** (23 if type == F32 else 52), 1.0, 0.0))
    whole = c.emit.op(f"fsub {kind} {c.emit.op(f'fadd {kind} {size}, {magic}')}, {magic}")
    if rounding == "trunc":
        beyond = c.emit.op(f"fcmp ogt {kind} {whole}, {size}")
        whole = c.emit.op(f"fsub {kind} {whole}, {c.select(beyond, type, one, zero)}")
    signed = c.intrinsic("copysign", type, whole, text)
    if rounding in ("floor", "ceil"):
        order, opcode = ("ogt", "fsub") if rounding == "floor" else ("olt", "fadd")
        beyond = c.emit.op(f"fcmp {order} {kind} {signed}, {text}")
        moved = c.emit.op(f"{opcode} {kind} {signed}, {c.select(beyond, type, one, zero)}")
        signed = c.intrinsic("copysign", type, moved, text)
    has_fraction = c.emit.op(f"fcmp olt {kind} {size}, {magic}")
    return c.select(has_fraction, type, signed, text)
