"""Report the first operation that makes a NaN of numbers.

    kernel @k(%p: ptr<f32>, %a: f32, %b: f32) {
      %v = div %a, %b : f32
      store %p, %v
      return
    }

becomes

    kernel @k(%p: ptr<f32>, %a: f32, %b: f32) {
      %v = div %a, %b : f32
      %v0 = constant value=1 : i32
      %v1 = constant value=0 : i32
      %v2 = constant value=0 : i32
      %v3 = add %v1, %v2 : i32
      %v4 = cmp %v, %v, predicate="ne" : i1
      %v5 = cmp %a, %a, predicate="ne" : i1
      %v6 = constant value=true : i1
      %v7 = xor %v5, %v6 : i1
      %v8 = and %v4, %v7 : i1
      %v9 = cmp %b, %b, predicate="ne" : i1
      %v10 = constant value=true : i1
      %v11 = xor %v9, %v10 : i1
      %v12 = and %v8, %v11 : i1
      %v13 = select %v12, %v3, %v0 : i32
      %v14 = constant value=1 : i32
      %v15 = cmp %v13, %v14, predicate="lt" : i1
      if %v15 {
        %v16 = constant value=1 : i32
        %v17 = rem %v13, %v16 : i32
        %v18 = idiv %v13, %v16 : i32
        %v19 = constant value=0 : i32
        %v20 = cmp %v18, %v19, predicate="eq" : i1
        if %v20 {
          report_fault %v17, kind="nan", action="div"
          yield
        }
        yield
      }
      store %p, %v
      return
    }

What counts is in `blocklang.ops.births`. The operations of one shape between two effects are looked at
together, in one loop: each lane gives the number of its first operation at fault. Functions that fold, scan
or are called for every lane are not looked into.

Kernels compute with NaN on purpose, so this runs only if a launch asks for it.

Requires: level block; sums of products are fused already, where they are (`fuse_multiply_adds`).
Keeps: all results of programs without a fault; every effect and its order.
"""

from __future__ import annotations

from blocklang.ir.builder import Builder
from blocklang.ir.core import Kernel, Operation, Region, Value
from blocklang.ir.types import (
    I1,
    I32,
    I64,
    ShapedType,
    Type,
    shape_of,
    with_element,
    with_shape,
)
from blocklang.ops.births import action_of, may_make_nan
from blocklang.ops.control import For, If, While
from blocklang.ops.creation import Arange, Splat
from blocklang.ops.elementwise import Add, And, Cast, Compare, Elementwise, IntegerDiv, Rem, Select, Xor
from blocklang.ops.events import ReportFault
from blocklang.ops.faults import NAN
from blocklang.ops.memory import Load
from blocklang.ops.reduction import Dot, Reduce
from blocklang.ops.shape import Cat, Reshape, ShapeOperation
from blocklang.passes.checking.reports import only_if, shaped
from blocklang.passes.uniform import make_constant


def check_nan(kernel: Kernel) -> None:
    """Put a check behind what may make a NaN."""
    assert kernel.level == "block"
    _Births().region(kernel.body)


class _Births:
    def __init__(self) -> None:
        self._live: dict[Value, Value | None] = {}

    def region(self, region: Region) -> None:
        """Check what a region holds, before its effects, its control flow and its end."""
        waiting: list[Operation] = []
        for op in list(region.ops):
            if isinstance(op, (For, If, While)):
                for inner in op.regions:
                    self.region(inner)
            if op.effects - Load.effects or op.regions or op.is_terminator:
                self.check(waiting, op)
                waiting = []
            if may_make_nan(op):
                waiting.append(op)

    def check(self, operations: list[Operation], before: Operation) -> None:
        """Look for a NaN in the results of some operations, shape by shape."""
        builder = Builder.before_op(before)
        shapes = dict.fromkeys(shape_of(op.results[0].type) for op in operations)
        for shape in shapes:
            self.check_shape(builder, [op for op in operations if shape_of(op.results[0].type) == shape])

    def check_shape(self, builder: Builder, operations: list[Operation]) -> None:
        """One loop over the lanes: the least of number * lanes + lane over all that is at fault."""
        type_ = operations[0].results[0].type
        lanes = type_.numel if isinstance(type_, ShapedType) else 1
        end = len(operations) * lanes
        key = I32 if end <= I32.maximum else I64
        first = make_constant(builder, end, with_element(type_, key))
        place = self._places(builder, type_, key)
        for number, op in reversed(list(enumerate(operations))):
            builder.location = op.location
            start = make_constant(builder, number * lanes, first.type)
            here = builder.value(Add, place, start)
            first = builder.value(Select, self.births(builder, op), here, first)
        least = first
        if shape_of(type_):
            flat = builder.value(Reshape, first, shape=(lanes,)) if len(shape_of(type_)) > 1 else first
            least = builder.value(Reduce, flat, combine="min", axis=0)
        some = builder.value(Compare, least, make_constant(builder, end, key), predicate="lt")
        with only_if(builder, some):
            count = make_constant(builder, lanes, key)
            lane, chosen = builder.value(Rem, least, count), builder.value(IntegerDiv, least, count)
            for number, op in enumerate(operations):
                builder.location = op.location
                this = make_constant(builder, number, key)
                with only_if(builder, builder.value(Compare, chosen, this, predicate="eq")):
                    action, shape = action_of(op), shape_of(type_)
                    builder.create(ReportFault, lane, [], kind=NAN, action=action, shape=shape)

    @staticmethod
    def _places(builder: Builder, type_: Type, key: Type) -> Value:
        """The number of each lane, in row-major order."""
        shape = shape_of(type_)
        if not shape:
            return make_constant(builder, 0, key)
        assert isinstance(type_, ShapedType)
        flat = builder.value(Arange, start=0, end=type_.numel)
        if key != I32:
            flat = builder.value(Cast, flat, result_types=[with_element(flat.type, I64)])
        return builder.value(Reshape, flat, shape=shape) if len(shape) > 1 else flat

    # ---- one operation ----

    def births(self, builder: Builder, op: Operation) -> Value:
        """The lanes in which an operation makes a NaN that counts."""
        result = op.results[0]
        bad = is_nan(builder, result)
        if isinstance(op, Reduce):
            known = self._alive(builder, op.source, is_nan(builder, op.source))
            taken = builder.value(Reduce, known, combine="or", axis=op.axis)
            return _without(builder, bad, taken)
        if isinstance(op, Dot):
            bad = _without(builder, bad, is_nan(builder, op.acc))
            for side in (op.a, op.b):
                bad = _without(builder, bad, _any(builder, is_nan(builder, side)))
            return bad
        for operand in dict.fromkeys(op.operands):
            bad = _without(builder, bad, is_nan(builder, operand))
        return self._alive(builder, result, bad)

    def _alive(self, builder: Builder, value: Value, lanes: Value) -> Value:
        """Those of some lanes of a value that are no padding."""
        live = self.live(value)
        if live is None:
            return lanes
        return builder.value(And, lanes, shaped(builder, live, shape_of(lanes.type)))

    def live(self, value: Value) -> Value | None:
        """The lanes of a value that are no padding; None if none is."""
        if value not in self._live:
            self._live[value] = self._find_live(value)
        return self._live[value]

    def _find_live(self, value: Value) -> Value | None:
        op = value.defining_op
        if op is None:
            return None
        builder = Builder.after_op(op)
        shape = shape_of(value.type)
        match op:
            case Load():
                return None if op.mask is None else shaped(builder, op.mask, shape)
            case Select():
                arms = [self.live(v) for v in (op.if_true, op.if_false)]
                if arms == [None, None]:
                    return None
                chosen = [_filled(builder, live, shape) for live in arms]
                return builder.value(Select, op.condition, *chosen)
            case Cat():
                parts = [self.live(v) for v in (op.first, op.second)]
                if parts == [None, None]:
                    return None
                joined = [
                    _filled(builder, live, shape_of(v.type))
                    for live, v in zip(parts, (op.first, op.second), strict=True)
                ]
                return builder.value(Cat, *joined, axis=op.axis)
            case ShapeOperation():
                inner = self.live(op.source)
                return None if inner is None else builder.value(type(op), inner, **op.attributes)
            case Splat():
                inner = self.live(op.source)
                return None if inner is None else shaped(builder, inner, shape)
            case Elementwise():
                result: Value | None = None
                for live in dict.fromkeys(self.live(v) for v in op.operands):
                    if live is not None:
                        live = shaped(builder, live, shape)
                        result = live if result is None else builder.value(And, result, live)
                return result
        return None


def is_nan(builder: Builder, value: Value) -> Value:
    return builder.value(Compare, value, value, predicate="ne")


def _without(builder: Builder, lanes: Value, others: Value) -> Value:
    others = shaped(builder, others, shape_of(lanes.type))
    return builder.value(And, lanes, builder.value(Xor, others, make_constant(builder, True, others.type)))


def _any(builder: Builder, lanes: Value) -> Value:
    while shape := shape_of(lanes.type):
        lanes = builder.value(Reduce, lanes, combine="or", axis=len(shape) - 1)
    return lanes


def _filled(builder: Builder, live: Value | None, shape: tuple[int, ...]) -> Value:
    type_ = with_shape(I1, shape)
    return make_constant(builder, True, type_) if live is None else shaped(builder, live, shape)
