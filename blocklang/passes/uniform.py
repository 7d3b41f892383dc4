"""Values that are the same in every lane: constants, splats, scalars. Read and made here for the passes
around.

Invariant: a constant of f32 or f64 is read as the number it is rounded to, one of f16 or bf16 as it is
written.
"""

from __future__ import annotations

import numpy as np

from blocklang.ir.builder import Builder
from blocklang.ir.core import Operation, Value
from blocklang.ir.types import F32, F64, PointerType, ScalarType, ShapedType, Type, element_type
from blocklang.ops.creation import Constant, Splat

Number = bool | int | float

NUMPY_FLOATS: dict[ScalarType, type[np.float32] | type[np.float64]] = {F32: np.float32, F64: np.float64}


def constant_of(value: Value) -> Number | None:
    """The number that stands in every lane of a constant; None for any other value."""
    op = value.owner
    if not isinstance(op, Constant):
        return None
    number: Number = op.value
    element = element_type(value.type)
    if not isinstance(element, ScalarType) or element not in NUMPY_FLOATS:
        return number
    with np.errstate(over="ignore"):
        return float(NUMPY_FLOATS[element](number))


def wrap(number: int, element: ScalarType) -> bool | int:
    """An integer modulo 2 to the width, in the range of an integer type."""
    if element.bits == 1:
        return bool(number & 1)
    low = number & ((1 << element.bits) - 1)
    return low - (1 << element.bits) if low > element.maximum else low


def as_number(number: Number, element: ScalarType | PointerType) -> Number:
    """A number in the Python type that constants of `element` have."""
    if isinstance(element, PointerType):
        return int(number)
    if element.is_float:
        return float(number)
    return wrap(int(number), element)


def make_constant(builder: Builder, number: Number, type_: Type) -> Value:
    """A constant; integers wrap."""
    return builder.value(Constant, value=as_number(number, element_type(type_)), result_types=[type_])


def is_uniform(value: Value) -> bool:
    """True if every lane of `value` is visibly the same scalar."""
    return not isinstance(value.type, ShapedType) or isinstance(value.owner, (Splat, Constant))


def scalar_of(value: Value, builder: Builder) -> Value | None:
    """The scalar in every lane of `value`, made by `builder` for a constant; None if lanes may differ."""
    if not isinstance(value.type, ShapedType):
        return value
    match value.owner:
        case Splat() as splat:
            source: Value = splat.source
            return source
        case Constant() as constant:
            return make_constant(builder, constant.value, element_type(value.type))
    return None


def spread(value: Value, type_: Type, builder: Builder) -> Value:
    """`value` as it is if it has the type, else in every lane of a block of that type."""
    if value.type == type_:
        return value
    number = constant_of(value)
    if number is not None:
        return make_constant(builder, number, type_)
    return builder.value(Splat, value, result_types=[type_])


def replace(op: Operation, value: Value) -> None:
    """Put `value`, spread to the lanes of the only result, in the place of `op`."""
    op.replace_with(spread(value, op.result.type, Builder.before_op(op)))
