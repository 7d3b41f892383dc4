"""Type constraints and result rules that operation declarations share."""

from __future__ import annotations

from typing import Any

from blocklang.ir.core import Operation
from blocklang.ir.declaration import Constraint, TypeRule
from blocklang.ir.types import (
    I1,
    BlockType,
    BufferType,
    PointerType,
    ScalarType,
    ShapedType,
    Type,
    element_type,
    with_element,
    with_shape,
)


def _lanes(description: str, accepts: Any) -> Constraint:
    """A scalar or block whose element meets `accepts`."""

    def check(type_: Type) -> bool:
        return not isinstance(type_, BufferType) and accepts(element_type(type_))

    return Constraint(description, check)


AnyLanes = _lanes("a scalar, pointer or block", lambda e: True)
Arithmetic = _lanes("numbers", lambda e: isinstance(e, ScalarType))
Integer = _lanes("integers", lambda e: isinstance(e, ScalarType) and e.is_integer)
Float = _lanes("floats", lambda e: isinstance(e, ScalarType) and e.is_float)
Bool = _lanes("bools", lambda e: e == I1)
Pointer = _lanes("pointers", lambda e: isinstance(e, PointerType))
Scalar = Constraint("a scalar", lambda t: isinstance(t, ScalarType))
ScalarInteger = Constraint("an integer scalar", lambda t: isinstance(t, ScalarType) and t.is_integer)
ScalarBool = Constraint("a bool scalar", lambda t: t == I1)
ScalarOrPointer = Constraint("a scalar or pointer", lambda t: isinstance(t, (ScalarType, PointerType)))
Index = Constraint("an i64 scalar", lambda t: str(t) == "i64")
Block = Constraint("a block", lambda t: isinstance(t, BlockType))
Buffer = Constraint("a buffer", lambda t: isinstance(t, BufferType))
Anything = Constraint("a value", lambda t: True)


def common_shape(op: Operation) -> tuple[int, ...]:
    """The one shape of the block operands; scalars fit any. Raises ValueError if blocks differ in shape."""
    shapes = {type_.shape for v in op.operands if isinstance(type_ := v.type, ShapedType)}
    if not shapes:
        return ()
    if len(shapes) > 1:
        raise ValueError(f"{op.name} needs blocks of one shape, got {' and '.join(map(str, sorted(shapes)))}")
    return shapes.pop()


def common_element(op: Operation, *names: str) -> ScalarType | PointerType:
    """The one element type of the named operands. Raises ValueError if they differ."""
    first = element_type(op.operands[op.segments[names[0]][0]].type)
    for name in names[1:]:
        other = element_type(op.operands[op.segments[name][0]].type)
        if other is not first and other != first:
            texts = sorted({str(element_type(op.segment(n)[0].type)) for n in names})
            raise ValueError(f"{op.name} needs equal element types, got {' and '.join(texts)}")
    return first


def lanes_like(*names: str) -> TypeRule:
    """Result rule: the named operands share an element type; scalars spread over the blocks."""
    return lambda op: with_shape(common_element(op, *names), common_shape(op))


def bool_lanes(*names: str) -> TypeRule:
    """Result rule: as `lanes_like`, with element i1."""

    def rule(op: Any) -> Type:
        common_element(op, *names)
        return with_shape(I1, common_shape(op))

    return rule


def same_shape_as(name: str, element: ScalarType) -> TypeRule:
    """Result rule: the shape of one operand with another element."""
    return lambda op: with_element(op.segment(name)[0].type, element)
