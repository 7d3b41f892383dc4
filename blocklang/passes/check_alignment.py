"""Report accesses at addresses that are no multiple of their element's size.

    kernel @k(%x: ptr<f32>, %v: f32) {
      store %x, %v
      return
    }

becomes

    kernel @k(%x: ptr<f32>, %v: f32) {
      %v0 = cast %x : i64
      %v1 = constant value=3 : i64
      %v2 = and %v0, %v1 : i64
      %v3 = constant value=0 : i64
      %v4 = cmp %v2, %v3, predicate="ne" : i1
      if %v4 {
        %v5 = constant value=0 : i32
        %v6 = cast %x : i64
        report_fault %v5, %v6, kind="misaligned", action="store", size=4, arrays=["x"]
        yield
      }
      store %x, %v
      return
    }

A CPU takes such addresses; other devices fault. Where every operation behind an address counts in elements of
that size, only the pointer that it starts at is looked at, once; lanes are looked at where a pointer was
cast.

Requires: level block. Keeps: all results; every effect and its order.
"""

from __future__ import annotations

from blocklang.ir.builder import Builder
from blocklang.ir.core import Kernel, Operation, Value
from blocklang.ir.types import PointerType, element_type, shape_of
from blocklang.ops.creation import Splat
from blocklang.ops.elementwise import And, Compare
from blocklang.ops.events import ReportFault
from blocklang.ops.faults import MISALIGNED
from blocklang.ops.memory import Offset, pointee
from blocklang.ops.shape import ShapeOperation
from blocklang.passes.checking.accesses import accesses_of, action_of, arrays_behind, mask_of, pointer_of
from blocklang.passes.checking.reports import among, as_word, at_first, only_if
from blocklang.passes.uniform import make_constant


def check_alignment(kernel: Kernel) -> None:
    """Put a check before every access to elements of more than one byte."""
    assert kernel.level == "block"
    for op in list(accesses_of(kernel.body)):
        if pointee(pointer_of(op).type).bytes > 1:
            _check(kernel, op)


def _check(kernel: Kernel, op: Operation) -> None:
    pointer = pointer_of(op)
    builder, size = Builder.before_op(op), pointee(pointer.type).bytes
    start = _start(pointer, size)
    if start is pointer or shape_of(start.type):
        _check_lanes(kernel, builder, op)
        return
    with only_if(builder, _is_off(builder, start, size)):
        _check_lanes(kernel, builder, op)


def _is_off(builder: Builder, pointer: Value, size: int) -> Value:
    address = as_word(builder, pointer)
    rest = builder.value(And, address, make_constant(builder, size - 1, address.type))
    return builder.value(Compare, rest, make_constant(builder, 0, rest.type), predicate="ne")


def _check_lanes(kernel: Kernel, builder: Builder, op: Operation) -> None:
    pointer, mask = pointer_of(op), mask_of(op)
    size = pointee(pointer.type).bytes

    def report(lane: Value, found: list[Value]) -> None:
        builder.create(
            ReportFault,
            lane,
            found,
            kind=MISALIGNED,
            action=action_of(op),
            shape=shape_of(pointer.type),
            size=size,
            arrays=tuple(a.name for a in arrays_behind(kernel, pointer) or ()),
        )

    bad = among(builder, _is_off(builder, pointer, size), mask)
    at_first(builder, bad, [lambda: as_word(builder, pointer)], report)


def _start(pointer: Value, size: int) -> Value:
    """What a pointer is whole elements of a size away from."""
    owner = pointer.owner
    match owner:
        case Offset() if pointee(owner.pointer.type).bytes % size == 0:
            return _start(owner.pointer, size)
        case Splat() | ShapeOperation() if isinstance(element_type(pointer.type), PointerType):
            return _start(owner.source, size) if len(owner.operands) == 1 else pointer
    return pointer
