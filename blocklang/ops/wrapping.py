"""Which operations wrap, and behind which an overflow is looked for: the rules of both modes.

An integer of at most 32 bits is followed in 64 bits through signed arithmetic, to see whether an address is
what it would be without wrapping. Unsigned arithmetic wraps on purpose and is taken as it is, and so are
bitcasts and changes of sign at one width.
"""

from __future__ import annotations

from blocklang.ir.core import Operation, Value
from blocklang.ir.types import PointerType, ScalarType, element_type
from blocklang.ops.creation import Splat
from blocklang.ops.elementwise import (
    Add,
    And,
    Cast,
    IntegerDiv,
    Maximum,
    Minimum,
    Mul,
    Neg,
    Or,
    Rem,
    Select,
    Shl,
    Shr,
    Sub,
    Xor,
)
from blocklang.ops.memory import Offset
from blocklang.ops.shape import Cat, ShapeOperation

MOVES = (Splat, ShapeOperation, Cat)  # each lane of the result is a lane of an operand
_WRAP = (Add, Sub, Mul, Neg, Shl)
_FOLLOWED = (*_WRAP, IntegerDiv, Rem, Minimum, Maximum, And, Or, Xor, Shr)


def may_wrap(op: Operation) -> bool:
    """True if a result of the operation may differ from that of exact arithmetic on its operands."""
    type_ = element_type(op.results[0].type) if op.results else None
    if not isinstance(type_, ScalarType) or not type_.is_signed or type_.bits == 64:
        return False
    if isinstance(op, Cast):
        source = element_type(op.source.type)
        return isinstance(source, ScalarType) and source.is_signed and source.bits > type_.bits
    return isinstance(op, _WRAP)


def followed_operands(op: Operation) -> list[Value]:
    """The operands, integers or pointers, whose exact values make the exact value of the result."""
    type_ = element_type(op.results[0].type) if op.results else None
    if isinstance(op, MOVES):
        return list(op.operands)
    if isinstance(type_, PointerType):
        if isinstance(op, Select):
            return [op.if_true, op.if_false]
        return list(op.operands) if isinstance(op, Offset) else []
    if not isinstance(type_, ScalarType) or not type_.is_signed:
        return []
    match op:
        case Cast():
            source = element_type(op.source.type)
            return [op.source] if isinstance(source, ScalarType) and source.is_signed else []
        case Select():
            return [op.if_true, op.if_false]
        case _ if isinstance(op, _FOLLOWED):
            return list(op.operands)
    return []
