"""Rules of `canonicalise` for shapes: what moves no lane disappears, two moves become one, a uniform block
needs none.

    %a = trans %x, order=[1, 0] : block<4x8xf32>
    %b = trans %a, order=[1, 0] : block<8x4xf32>
    %c = splat %s : block<8xf32>
    %d = expand_dims %c, axis=0 : block<1x8xf32>

becomes %x in the place of %b, and

    %d = splat %s : block<1x8xf32>
"""

from __future__ import annotations

from blocklang.ir.builder import Builder
from blocklang.ir.core import Operation, Value
from blocklang.ops.creation import Arange, Splat
from blocklang.ops.shape import Broadcast, ExpandDims, Reshape, ShapeOperation, Slice, Trans
from blocklang.passes.uniform import constant_of, make_constant, replace, scalar_of

SHAPES = (ShapeOperation, Splat, Arange)


def simplify_shapes(op: Operation) -> bool:
    """Apply the first rule that fits a shape operation, a splat or an arange. True if one did."""
    match op:
        case ShapeOperation():
            replacement = _of_uniform(op) or _identity(op) or _composed(op)
        case Splat() | Arange():
            replacement = _constant_block(op)
        case _:
            return False
    if replacement is None:
        return False
    replace(op, replacement)
    return True


def _of_uniform(op: ShapeOperation) -> Value | None:
    """Uniform lanes are the same in any order; `replace` spreads them."""
    return scalar_of(op.source, Builder.before_op(op))


def _identity(op: ShapeOperation) -> Value | None:
    source: Value = op.source
    if isinstance(op, Trans):
        return source if list(op.order) == sorted(op.order) else None
    if isinstance(op, Slice) and op.step < 0 and op.extent > 1:
        return None
    return source if source.type == op.result.type else None


def _composed(op: ShapeOperation) -> Value | None:
    inner, builder = op.source.owner, Builder.before_op(op)
    match op, inner:
        case Reshape(), Reshape() | ExpandDims():
            return builder.value(Reshape, inner.source, shape=op.shape)
        case Broadcast(), Broadcast():
            return builder.value(Broadcast, inner.source, shape=op.shape)
        case Trans(), Trans():
            order = tuple(inner.order[axis] for axis in op.order)
            return builder.value(Trans, inner.source, order=order)
        case Slice(), Slice() if op.axis == inner.axis:
            start, step = inner.start + op.start * inner.step, inner.step * op.step
            return builder.value(Slice, inner.source, axis=op.axis, start=start, step=step, extent=op.extent)
    return None


def _constant_block(op: Splat | Arange) -> Value | None:
    if isinstance(op, Arange):
        number = op.start if op.end == op.start + 1 else None
    else:
        number = constant_of(op.source)
    if number is None:
        return None
    return make_constant(Builder.before_op(op), number, op.result.type)
