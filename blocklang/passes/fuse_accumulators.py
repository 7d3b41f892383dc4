"""Make `acc + dot(a, b)` one matrix product.

    kernel @k(%p: ptr<f32>, %a: ptr<f32>) {
      %i = arange start=0, end=4 : block<4xi32>
      %q = offset %a, %i : block<4xptr<f32>>
      %v = load %q : block<4xf32>
      %m = reshape %v, shape=[2, 2] : block<2x2xf32>
      %z = constant value=0.0 : block<2x2xf32>
      %d = dot %m, %m, %z : block<2x2xf32>
      %c = add %m, %d : block<2x2xf32>
      %r = reshape %c, shape=[4] : block<4xf32>
      %o = offset %p, %i : block<4xptr<f32>>
      store %o, %r
      return
    }

becomes

    kernel @k(%p: ptr<f32>, %a: ptr<f32>) {
      %i = arange start=0, end=4 : block<4xi32>
      %q = offset %a, %i : block<4xptr<f32>>
      %v = load %q : block<4xf32>
      %m = reshape %v, shape=[2, 2] : block<2x2xf32>
      %z = constant value=0.0 : block<2x2xf32>
      %c = dot %m, %m, %m, start="add" : block<2x2xf32>
      %r = reshape %c, shape=[4] : block<4xf32>
      %o = offset %p, %i : block<4xptr<f32>>
      store %o, %r
      return
    }

That means the same to the bit: the chain of multiply-adds starts from 0 and the accumulator is added at
its end (addition of two values does not depend on their order). It saves a block of memory and two passes
over it.

Requires: level block; the product has no other use. Keeps: everything else.
"""

from __future__ import annotations

import math

from blocklang.ir.builder import Builder
from blocklang.ir.core import Kernel, Operation, Value
from blocklang.ops.creation import Constant, Splat
from blocklang.ops.elementwise import Add
from blocklang.ops.reduction import Dot, accumulator_element


def _is_plain_zero(value: Value) -> bool:
    """True for a block of +0 (a negative zero would turn a chain of negative zeros)."""
    op = value.defining_op
    if isinstance(op, Splat):
        op = op.source.defining_op
    return isinstance(op, Constant) and op.value == 0 and math.copysign(1.0, op.value) > 0


def _product_in(op: Add) -> tuple[Dot, Value] | None:
    """The product and the accumulator that `op` adds, if they can be fused."""
    for value, other in ((op.rhs, op.lhs), (op.lhs, op.rhs)):
        dot = value.defining_op
        if (
            isinstance(dot, Dot)
            and len(value.uses) == 1
            and dot.parent is op.parent
            and dot.start == "acc"
            and _is_plain_zero(dot.acc)
            and other.type == value.type
            and value.type.element == accumulator_element(dot)
        ):
            return dot, other
    return None


def _fuse(op: Operation) -> None:
    found = _product_in(op) if isinstance(op, Add) else None
    if found is None:
        return
    dot, acc = found
    builder = Builder.before_op(op)
    fused = builder.value(
        Dot, dot.a, dot.b, acc, input_precision=dot.input_precision, start="add", name=op.results[0].name
    )
    op.replace_with(fused)
    dot.erase()


def fuse_accumulators(kernel: Kernel) -> None:
    """Fuse every addition of a product into the product."""
    assert kernel.level == "block"
    for op in list(kernel.walk()):
        _fuse(op)
