"""Note whether a launch stores a NaN, where it is asked about NaN that are made.

    kernel @k(%x: ptr<f32>, %v: f32) {
      %zero = constant value=0 : i32
      report_fault %zero, kind="nan", action="log"
      store %x, %v
      return
    }

becomes

    kernel @k(%x: ptr<f32>, %v: f32, %checks_state: ptr<i64> checks_state="") {
      %zero = constant value=0 : i32
      report_fault %zero, kind="nan", action="log"
      %v0 = cmp %v, %v, predicate="ne" : i1
      if %v0 {
        %v1 = constant value=2 : i64
        %v2 = offset %checks_state, %v1 : ptr<i64>
        %v3 = constant value=1 : i64
        store %v2, %v3
        yield
      }
      store %x, %v
      return
    }

Padding often makes NaN that go nowhere: only those of a launch that stores one, or adds one by an atomic, are
worth saying.

Requires: level block; all checks have been inserted. Keeps: all results; every effect and its order.
"""

from __future__ import annotations

from blocklang.ir.builder import Builder
from blocklang.ir.core import Kernel, Value
from blocklang.ir.types import I1, I64, ScalarType, ShapedType, element_type, shape_of
from blocklang.ops.creation import Constant
from blocklang.ops.events import ReportFault
from blocklang.ops.faults import NAN, STATE_NAN
from blocklang.ops.memory import Load, Offset, Store
from blocklang.ops.reduction import Reduce
from blocklang.ops.shape import Reshape
from blocklang.passes.check_nan import is_nan
from blocklang.passes.checking.accesses import accesses_of, mask_of
from blocklang.passes.checking.reports import among, only_if
from blocklang.passes.checking.words import SystemArguments
from blocklang.passes.uniform import make_constant


def note_stored_nan(kernel: Kernel) -> None:
    """Set a flag in the state of the checks before every store of a NaN."""
    assert kernel.level == "block"
    if not any(isinstance(op, ReportFault) and op.kind == NAN for op in kernel.walk()):
        return
    arguments = SystemArguments(kernel)
    for op in list(accesses_of(kernel.body)):
        if isinstance(op, Load):
            continue
        value = op.segment("value")[0]
        element = element_type(value.type)
        if isinstance(value.owner, Constant) or not isinstance(element, ScalarType) or not element.is_float:
            continue
        builder, mask = Builder.before_op(op), mask_of(op)
        bad = is_nan(builder, value)
        if mask is not None and shape_of(mask.type) == shape_of(bad.type):
            bad = among(builder, bad, mask)
        with only_if(builder, _some(builder, bad)):
            place = builder.value(Offset, arguments.state, make_constant(builder, STATE_NAN, I64))
            builder.create(Store, place, make_constant(builder, 1, I64))


def _some(builder: Builder, lanes: Value) -> Value:
    """True if any lane holds."""
    if not isinstance(lanes.type, ShapedType):
        return lanes
    assert lanes.type.element == I1
    flat = lanes
    if len(lanes.type.shape) > 1:
        flat = builder.value(Reshape, lanes, shape=(lanes.type.numel,))
    return builder.value(Reduce, flat, combine="or", axis=0)
