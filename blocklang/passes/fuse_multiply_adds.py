"""Make a float product and the sum that reads it one fused multiply-add.

    kernel @k(%p: ptr<f32>, %a: f32, %b: f32, %c: f32) {
      %v0 = mul %a, %b : f32
      %v1 = sub %c, %v0 : f32
      store %p, %v1
      return
    }

becomes

    kernel @k(%p: ptr<f32>, %a: f32, %b: f32, %c: f32) {
      %v0 = neg %a : f32
      %v1 = fma %v0, %b, %c : f32
      store %p, %v1
      return
    }

The result is rounded once instead of twice, so this runs only if the launch asks for it (`enable_fp_fusion`),
and then decides what the kernel means: it comes before all other passes, looks at the program as the frontend
wrote it, and the interpreter runs its result. The rules, for floats of every width:

    a * b + c    fma(a, b, c)         a * b - c    fma(a, b, -c)
    c + a * b    fma(a, b, c)         c - a * b    fma(-a, b, c)

A product is fused if the sum is its only reader and stands in the same region (not inside a loop after it);
a cast, a broadcast or any other operation between them keeps them apart. Of two products the left one is
fused and the right one added.

Requires: level block. Keeps: everything but the bits of sums of products.
"""

from __future__ import annotations

from blocklang.ir.builder import Builder
from blocklang.ir.core import Kernel, Operation, Value
from blocklang.ir.types import ScalarType, element_type
from blocklang.ops.elementwise import Add, Fma, Mul, Neg, Sub


def fuse_multiply_adds(kernel: Kernel) -> None:
    """Fuse every product that the rules name."""
    assert kernel.level == "block"
    for op in list(kernel.walk()):
        if isinstance(op, (Add, Sub)):
            _fuse(op)


def _fuse(op: Add | Sub) -> None:
    builder = Builder.before_op(op)
    if product := _product_for(op.lhs, op):
        a, b, c = product.lhs, product.rhs, op.rhs
        if isinstance(op, Sub):
            c = builder.value(Neg, c)
    elif product := _product_for(op.rhs, op):
        a, b, c = product.lhs, product.rhs, op.lhs
        if isinstance(op, Sub):
            a = builder.value(Neg, a)
    else:
        return
    fused = builder.value(Fma, a, b, c, name=op.results[0].name)
    op.replace_with(fused)
    product.erase()


def _product_for(value: Value, reader: Operation) -> Mul | None:
    """The product that `value` is, if it may become a part of `reader`."""
    product, element = value.defining_op, element_type(value.type)
    if not isinstance(product, Mul) or not isinstance(element, ScalarType) or not element.is_float:
        return None
    return product if len(value.uses) == 1 and product.parent is reader.parent else None
