"""Reductions and contraction, whose order of evaluation is fixed (docs/semantics.md).

The published orders:
- `sum` of floats along axis k of extent n, where the axes after k have extent 1 altogether: 32 partial
  results, all +0.0 at first; element i is added to partial i mod 32, i ascending; then partials i and i + 16,
  then 8, 4, 2, 1 apart, are added. Along any other axis: one partial, +0.0 at first, elements added in
  ascending order. f16 and bf16 are accumulated in f32 and rounded once at the end.
- max, min, argmax, argmin and integer combines do not depend on order.
- A user's function: a tree over neighbours. Each round combines elements 2i and 2i + 1, in operand order;
  an odd last one is
  carried over unchanged; rounds repeat until one is left.
- `dot`: for each element a chain of fused multiply-adds, k ascending, that starts from the accumulator.
"""

from __future__ import annotations

from typing import Any

from blocklang.ir.core import Operation
from blocklang.ir.declaration import attribute, operand, operation, region, result
from blocklang.ir.types import F16, F32, F64, I8, I32, BlockType, Type, element_type, with_shape
from blocklang.ops.constraints import Block

COMBINES = ("sum", "max", "min", "xor", "and", "or")


def reduced_type(type_: BlockType, axis: int) -> Type:
    """The type of a block after its axis is reduced: a scalar if no axis is left."""
    if not 0 <= axis < type_.rank:
        raise ValueError(f"axis {axis} is out of range for rank {type_.rank}")
    return with_shape(type_.element, type_.shape[:axis] + type_.shape[axis + 1 :])


@operation("reduce")
class Reduce(Operation):
    """Combine the lanes along an axis: sum, max, min (NaN ignored unless all are NaN; -0.0 < +0.0), xor,
    and, or.

    %s = reduce %x, combine="sum", axis=1 : block<64xf32>
    """

    source = operand(Block)
    combine = attribute(str, choices=COMBINES)
    axis = attribute(int)
    output = result(lambda op: reduced_type(op.source.type, op.axis))

    def verify_op(self) -> None:
        if self.combine in ("xor", "and", "or") and self.source.type.element.is_float:
            raise ValueError(f"{self.combine} needs integers")


@operation("arg_reduce")
class ArgReduce(Operation):
    """The largest or smallest element along an axis, and the first index where it stands. NaN is skipped
    unless all are NaN, which gives NaN and index 0; -0.0 and +0.0 tie.

    %v, %i = arg_reduce %x, combine="max", axis=1 : block<64xf32>, block<64xi32>
    """

    source = operand(Block)
    combine = attribute(str, choices=("max", "min"))
    axis = attribute(int)
    value = result(lambda op: reduced_type(op.source.type, op.axis))
    index = result(lambda op: reduced_type(op.source.type.with_element(I32), op.axis))


@operation("reduce_with")
class ReduceWith(Operation):
    """Combine lanes along an axis with a user's function of 2k scalars (k of the left, then k of the right
    operand) to k.

    %r = reduce_with %x, axis=0 : f32 {
      (%a: f32, %b: f32):
      %c = mul %a, %b : f32
      yield %c
    }
    """

    inputs = operand(Block, variadic=True)
    axis = attribute(int)
    outputs = result(variadic=True)
    combiner = region()

    def verify_op(self) -> None:
        expected = [reduced_type(v.type, self.axis) for v in self.inputs]
        if [r.type for r in self.results] != expected:
            raise ValueError(f"results must be {', '.join(map(str, expected))}")
        elements = [element_type(v.type) for v in self.inputs]
        if [a.type for a in self.combiner.args] != elements * 2:
            raise ValueError("the combiner takes the elements of the left, then of the right operand")
        if [v.type for v in self.combiner.terminator.operands] != elements:
            raise ValueError("the combiner yields one scalar per input")


def accumulator_element(op: Any) -> Type:
    """What `dot` computes in: f64 and i32 as they are, every narrower float in f32."""
    element = op.a.type.element
    return F64 if element == F64 else I32 if element == I8 else F32


@operation("dot")
class Dot(Operation):
    """Matrix product plus accumulator, of matrices or of two equally long rows of matrices. Computed in f32
    (f64 for f64, i32 for i8); an f16 accumulator is widened first and the result rounded once. The operands
    have one element type, or are 8-bit floats of two kinds. input_precision="tf32" rounds f32 operands to
    tf32 first. The chain of fused multiply-adds starts from the accumulator, or, with start="add", from 0 and
    the accumulator is added at its end (what `acc += dot(a, b)` means).

    %c = dot %a, %b, %acc : block<64x32xf32>
    """

    a = operand(Block)
    b = operand(Block)
    acc = operand(Block)
    input_precision = attribute(str, default="ieee", choices=("ieee", "tf32"))
    start = attribute(str, default="acc", choices=("acc", "add"))
    output = result(lambda op: op.acc.type)

    def verify_op(self) -> None:
        a, b, acc = self.a.type, self.b.type, self.acc.type
        fits = a.rank in (2, 3) and a.rank == b.rank and a.shape[:-2] == b.shape[:-2]
        if not fits or a.shape[-1] != b.shape[-2] or acc.shape != (*a.shape[:-1], b.shape[-1]):
            raise ValueError(f"cannot multiply {a.shape} by {b.shape} into {acc.shape}")
        both_float8 = a.element.is_float8 and b.element.is_float8
        if a.element != b.element and not both_float8:
            raise ValueError("both operands must have one element type")
        half = (a.element == F16 or both_float8) and acc.element == F16
        if acc.element != accumulator_element(self) and not half:
            raise ValueError(f"an accumulator of {acc.element} does not fit operands of {a.element}")
