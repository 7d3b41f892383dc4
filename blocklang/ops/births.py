"""Which operations may make a NaN of numbers, and which lanes count: the rules of both modes.

A lane that a mask has kept from being loaded is padding, and so is what is computed from it lane by lane,
until `select` puts something in its place. A NaN that is made in padding is nobody's, unless a sum takes it
in: then the sum is where it is made.
"""

from __future__ import annotations

from blocklang.ir.core import Operation
from blocklang.ir.types import ScalarType, element_type
from blocklang.ops.elementwise import Add, Div, FloatFunction, FloatUnary, Fma, Mul, Rem, Sub
from blocklang.ops.reduction import Dot, Reduce

_LANE_WISE = (Add, Sub, Mul, Div, Rem, Fma, FloatUnary, FloatFunction)


def may_make_nan(op: Operation) -> bool:
    """True if a NaN in a result may be made of operands that hold none."""
    if len(op.results) != 1:
        return False
    element = element_type(op.results[0].type)
    if not isinstance(element, ScalarType) or not element.is_float:
        return False
    return isinstance(op, (*_LANE_WISE, Dot)) or (isinstance(op, Reduce) and op.combine == "sum")


def action_of(op: Operation) -> str:
    """What the operation is called in a message."""
    return str(op.combine) if isinstance(op, Reduce) else op.name
