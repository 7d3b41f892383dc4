"""Report loads of elements that nobody has written, of arrays whose elements are watched.

    kernel @k(%x: ptr<f32> watched=true, %out: ptr<f32>) {
      %v = load %x : f32
      store %out, %v
      return
    }

becomes

    kernel @k(%x: ptr<f32> watched=true, %out: ptr<f32>, %x.unwritten: ptr<i1> unwritten_of="x") {
      %v0 = load %x.unwritten : i1
      if %v0 {
        %v1 = constant value=0 : i32
        %v2 = cast %x : i64
        report_fault %v1, %v2, kind="unwritten", action="load", size=4, arrays=["x"]
        yield
      }
      %v = load %x : f32
      store %out, %v
      return
    }

A watched array has a flag per element, in memory: true until it is written. Stores and atomics clear it.
Where a store or an atomic may go anywhere (its address was made of an integer), nothing is checked.

Requires: level block; accesses have been checked (`insert_checks`). Keeps: all results; every effect and its
order.
"""

from __future__ import annotations

from blocklang.ir.builder import Builder
from blocklang.ir.core import Kernel, Operation, Value
from blocklang.ir.types import I1, shape_of
from blocklang.ops.events import ReportFault
from blocklang.ops.faults import UNWRITTEN, UNWRITTEN_OF
from blocklang.ops.memory import Load, Store, pointee
from blocklang.passes.checking.accesses import accesses_of, action_of, arrays_behind, mask_of, pointer_of
from blocklang.passes.checking.reports import among, as_word, at_first
from blocklang.passes.checking.words import Elements, SystemArguments, elements_of
from blocklang.passes.uniform import make_constant

WATCHED = "watched"  # attribute of an argument


def check_unwritten(kernel: Kernel) -> None:
    """Put a check before every load of a watched array, and clear the flags of what is stored."""
    assert kernel.level == "block"
    pairs = zip(kernel.args, kernel.argument_attributes, strict=True)
    watched = {argument for argument, attributes in pairs if attributes.get(WATCHED)}
    accesses = [(op, arrays_behind(kernel, pointer_of(op))) for op in accesses_of(kernel.body)]
    if not watched or any(arrays is None and not isinstance(op, Load) for op, arrays in accesses):
        return
    arguments = SystemArguments(kernel)
    for op, arrays in accesses:
        if watched.isdisjoint(arrays or ()):
            continue
        builder = Builder.before_op(op)
        for elements in elements_of(arguments, builder, pointer_of(op), mask_of(op), arrays or ()):
            if elements.array in watched:
                flags = elements.words(arguments.flags(UNWRITTEN_OF, elements.array))
                _check(op, elements, flags)


def _check(op: Operation, elements: Elements, flags: Value) -> None:
    builder, pointer = elements.builder, elements.pointer
    if not isinstance(op, Store):
        bad = among(builder, elements.load(flags), elements.live)

        def report(lane: Value, found: list[Value]) -> None:
            builder.create(
                ReportFault,
                lane,
                found,
                kind=UNWRITTEN,
                action=action_of(op),
                shape=shape_of(pointer.type),
                size=pointee(pointer.type).bytes,
                arrays=(elements.array.name,),
            )

        at_first(builder, bad, [lambda: as_word(builder, pointer)], report)
    if not isinstance(op, Load):
        elements.store(flags, make_constant(builder, False, I1))
