"""Report every access that would leave its array, and every address that 32-bit arithmetic has wrapped.

    kernel @k(%x: ptr<f32>, %v: f32) {
      %i = arange start=0, end=8 : block<8xi32>
      %p = offset %x, %i : block<8xptr<f32>>
      store %p, %v
      return
    }

becomes

    kernel @k(%x: ptr<f32>, %v: f32, %x.low: i64 low_of="x", %x.high: i64 high_of="x") {
      %i = arange start=0, end=8 : block<8xi32>
      %p = offset %x, %i : block<8xptr<f32>>
      %v0 = cast %x : i64
      %v1 = sub %v0, %x.low : i64
      %v2 = sub %x.high, %x.low : i64
      %v3 = constant value=28 : i64
      %v4 = add %v1, %v3 : i64
      %v5 = constant value=0 : i64
      %v6 = cmp %v1, %v5, predicate="ge" : i1
      %v7 = constant value=4 : i64
      %v8 = sub %v2, %v7 : i64
      %v9 = cmp %v8, %v4, predicate="ge" : i1
      %v10 = and %v6, %v9 : i1
      %v11 = constant value=true : i1
      %v12 = xor %v10, %v11 : i1
      if %v12 {
        %v13 = cast %p : block<8xu64>
        %v14 = sub %x.high, %x.low : i64
        %v15 = constant value=3 : i64
        %v16 = sub %v14, %v15 : i64
        %v17 = constant value=0 : i64
        %v18 = maximum %v16, %v17 : i64
        %v19 = cast %x.low : u64
        %v20 = cast %v18 : u64
        %v21 = splat %v19 : block<8xu64>
        %v22 = sub %v13, %v21 : block<8xu64>
        %v23 = splat %v20 : block<8xu64>
        %v24 = cmp %v22, %v23, predicate="ge" : block<8xi1>
        %v25 = arange start=0, end=8 : block<8xi32>
        %v26 = constant value=8 : block<8xi32>
        %v27 = select %v24, %v25, %v26 : block<8xi32>
        %v28 = reduce %v27, combine="min", axis=0 : i32
        %v29 = constant value=8 : i32
        %v30 = cmp %v28, %v29, predicate="lt" : i1
        if %v30 {
          %v31 = splat %v28 : block<8xi32>
          %v32 = cmp %v25, %v31, predicate="eq" : block<8xi1>
          %v33 = cast %p : block<8xi64>
          %v34 = constant value=-9223372036854775808 : block<8xi64>
          %v35 = select %v32, %v33, %v34 : block<8xi64>
          %v36 = reduce %v35, combine="max", axis=0 : i64
          report_fault %v28, %v36, kind="bounds", action="store", shape=[8], size=4, arrays=["x"]
          yield
        }
        yield
      }
      store %p, %v
      return
    }

The lowest address of an array and the one behind its highest are arguments that the user did not write, last
among all. A program ends at its first fault, so an access that follows the test touches nothing that it must
not; masks and addresses stay as they are, and so does what later passes make of them.

An address belongs to the pointer arguments that it may come from (`analysis.pointer_origins`). One that was
made of an integer may lie anywhere, and is not checked; nor are loads inside of a function that
`map_elementwise` calls for every lane, where nothing can be reported.

The test is scalar where the interval of the live lanes is known (`checking.intervals`); only where that
interval does not prove the access right is every lane looked at, in an arm that hardly ever runs.

Requires: level block; loops carry scalars where they can (`split_pointers`).
Keeps: all results of programs without a fault; every effect and its order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from blocklang.analysis.run_time_bounds import Bound, constant_bound
from blocklang.ir.builder import Builder
from blocklang.ir.core import Kernel, Operation, Value
from blocklang.ir.types import I1, I64, U64, shape_of, with_element
from blocklang.ops.elementwise import Add, And, Cast, Compare, Maximum, Sub, Xor
from blocklang.ops.events import ReportFault
from blocklang.ops.faults import BOUNDS, HIGH_OF, LOW_OF, OVERFLOW
from blocklang.ops.memory import pointee
from blocklang.passes.checking.accesses import accesses_of, action_of, arrays_behind, mask_of, pointer_of
from blocklang.passes.checking.exact import ExactArithmetic
from blocklang.passes.checking.intervals import LiveIntervals, Unbounded
from blocklang.passes.checking.reports import all_of, among, any_of, as_word, at_first, only_if, shaped
from blocklang.passes.uniform import make_constant


def insert_checks(kernel: Kernel) -> None:
    """Put a check before every load, store and atomic operation."""
    assert kernel.level == "block"
    _Checks(kernel).run()


@dataclass(frozen=True)
class _Ends:
    """The addresses [low, high) of an array, as i64 scalars."""

    low: Value
    high: Value


class _Checks:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.exact = ExactArithmetic()
        self._ends: dict[Value, _Ends] = {}

    def run(self) -> None:
        for op in list(accesses_of(self.kernel.body)):
            self.check(op)

    def ends(self, array: Value) -> _Ends:
        """The arguments with the ends of an array, made when they are first asked for."""
        if array not in self._ends:
            self._ends[array] = _Ends(*(self._argument(array, end) for end in (LOW_OF, HIGH_OF)))
        return self._ends[array]

    def _argument(self, array: Value, end: str) -> Value:
        argument = self.kernel.body.add_argument(I64, f"{array.name}.{end.removesuffix('_of')}")
        self.kernel.argument_attributes.append({end: array.name})
        return argument

    def check(self, op: Operation) -> None:
        """Put the check of one access before it."""
        pointer, mask = pointer_of(op), mask_of(op)
        arrays = arrays_behind(self.kernel, pointer)
        if arrays is None and not self.exact.may_wrap(pointer):
            return
        builder = Builder.before_op(op)
        safe = self._is_safe(builder, pointer, mask, arrays)
        if safe is None:
            self._check_lanes(builder, op, pointer, mask, arrays)
            return
        with only_if(builder, builder.value(Xor, safe, make_constant(builder, True, I1))):
            self._check_lanes(builder, op, pointer, mask, arrays)

    # ---- all lanes at once ----

    def _is_safe(
        self, builder: Builder, pointer: Value, mask: Value | None, arrays: Sequence[Value] | None
    ) -> Value | None:
        """A scalar that is true only if no live lane is at fault; None if none is known."""
        intervals = LiveIntervals(builder, shape_of(pointer.type), mask, self.exact)
        try:
            base, offset = intervals.of_pointer(pointer)
            conditions = list(intervals.conditions)
            if arrays is not None:
                bounds = intervals.bounds
                word = builder.value(Cast, base, result_types=[I64])
                inside: list[Value] = []
                for array in arrays:
                    ends = self.ends(array)
                    # Addresses count modulo 2^64, and so does their distance.
                    distance = builder.value(Sub, word, ends.low)
                    near = [] if base is array else _near(builder, distance)
                    start = Bound(-_NEAR, _NEAR, distance)
                    size = constant_bound(pointee(pointer.type).bytes)
                    room = Bound(-_NEAR, _NEAR, builder.value(Sub, ends.high, ends.low))
                    first, last = bounds.add(start, offset.low), bounds.add(start, offset.high)
                    tests = [
                        bounds.at_least(first, constant_bound(0)),
                        bounds.at_least(bounds.sub(room, size), last),
                    ]
                    inside.append(all_of(builder, [*near, *(t for t in tests if isinstance(t, Value))]))
                if not inside:
                    return None
                conditions.append(any_of(builder, inside))
        except (Unbounded, OverflowError):
            return None
        return all_of(builder, conditions)

    # ---- lane by lane ----

    def _check_lanes(
        self,
        builder: Builder,
        op: Operation,
        pointer: Value,
        mask: Value | None,
        arrays: Sequence[Value] | None,
    ) -> None:
        shape = shape_of(pointer.type)
        excess = self.exact.excess(builder, pointer)
        bad = [] if arrays is None else [self._outside(builder, pointer, arrays)]
        blocks = [lambda: as_word(builder, pointer)]
        if excess is not None:
            above = shaped(builder, excess, shape)
            bad.append(builder.value(Compare, above, make_constant(builder, 0, above.type), predicate="ne"))
            blocks.append(lambda: above)
        facts: dict[str, Any] = {
            "action": action_of(op),
            "shape": shape,
            "size": pointee(pointer.type).bytes,
            "arrays": tuple(a.name for a in arrays or ()),
        }

        def report(lane: Value, words: list[Value]) -> None:
            address = words[0]
            if excess is not None:
                wraps = builder.value(Compare, words[1], make_constant(builder, 0, I64), predicate="ne")
                with only_if(builder, wraps):
                    exact = builder.value(Add, address, words[1])
                    builder.create(ReportFault, lane, [address, exact], kind=OVERFLOW, **facts)
            if arrays is not None:
                builder.create(ReportFault, lane, [address], kind=BOUNDS, **facts)

        at_first(builder, among(builder, any_of(builder, bad), mask), blocks, report)

    def _outside(self, builder: Builder, pointer: Value, arrays: Sequence[Value]) -> Value:
        """The lanes whose element does not lie in any of the arrays."""
        shape = shape_of(pointer.type)
        address = builder.value(Cast, pointer, result_types=[with_element(pointer.type, U64)])
        outside: Value | None = None
        for array in arrays:
            low, places = self._places(builder, array, pointee(pointer.type).bytes)
            distance = builder.value(Sub, address, shaped(builder, low, shape))
            beyond = builder.value(Compare, distance, shaped(builder, places, shape), predicate="ge")
            outside = beyond if outside is None else builder.value(And, outside, beyond)
        return make_constant(builder, True, with_element(pointer.type, I1)) if outside is None else outside

    def _places(self, builder: Builder, array: Value, size: int) -> tuple[Value, Value]:
        """The lowest address of an array, and at how many addresses an element of `size` bytes may start."""
        ends = self.ends(array)
        room = builder.value(Sub, ends.high, ends.low)
        places = builder.value(Sub, room, make_constant(builder, size - 1, I64))
        places = builder.value(Maximum, places, make_constant(builder, 0, I64))
        low, count = (builder.value(Cast, v, result_types=[U64]) for v in (ends.low, places))
        return low, count


_NEAR = 1 << 61


def _near(builder: Builder, distance: Value) -> list[Value]:
    """That a distance is one which can be added to without leaving 64 bits."""
    low, high = (make_constant(builder, n, I64) for n in (-_NEAR, _NEAR))
    return [
        builder.value(Compare, distance, low, predicate="ge"),
        builder.value(Compare, distance, high, predicate="le"),
    ]
