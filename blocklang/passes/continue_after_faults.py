"""Let programs go on after faults that do no harm, and report each check's first one.

    kernel @k(%lane: i32, %bad: i1) {
      if %bad {
        report_fault %lane, kind="nan", action="log", shape=[8]
        yield
      }
      return
    }

becomes

    kernel @k(%lane: i32, %bad: i1, %checks_state: ptr<i64> checks_state="") {
      if %bad {
        %v0 = constant value=3 : i64
        %v1 = offset %checks_state, %v0 : ptr<i64>
        %v2 = load %v1 : i64
        %v3 = constant value=1 : i64
        %v4 = add %v2, %v3 : i64
        store %v1, %v4
        %v5 = constant value=0 : i64
        %v6 = cmp %v2, %v5, predicate="eq" : i1
        if %v6 {
          report_fault %lane, kind="nan", action="log", shape=[8], goes_on=true
          yield
        }
        yield
      }
      return
    }

The results are then those of a launch that checks nothing. How often a check has failed is counted in the
state of the
launch's checks. An access outside of its array, or at an address that has wrapped, still ends its program.

Requires: level block, one thread; all checks have been inserted. Keeps: all results of programs without such
a fault.
"""

from __future__ import annotations

from blocklang.ir.builder import Builder
from blocklang.ir.core import Kernel
from blocklang.ir.rewriting import clone_operation
from blocklang.ir.types import I64
from blocklang.ops.elementwise import Add, Compare
from blocklang.ops.events import ReportFault
from blocklang.ops.faults import BOUNDS, OVERFLOW, STATE_COUNTERS
from blocklang.ops.memory import Load, Offset, Store
from blocklang.passes.checking.reports import only_if
from blocklang.passes.checking.words import SystemArguments
from blocklang.passes.uniform import make_constant


def continue_after_faults(kernel: Kernel) -> None:
    """Count the faults of each check, and report the first."""
    assert kernel.level == "block"
    faults = [op for op in kernel.walk() if isinstance(op, ReportFault) and op.kind not in (BOUNDS, OVERFLOW)]
    arguments = SystemArguments(kernel)
    for number, op in enumerate(faults):
        builder = Builder.before_op(op)
        place = make_constant(builder, STATE_COUNTERS + number, I64)
        counter = builder.value(Offset, arguments.state, place)
        count = builder.value(Load, counter)
        builder.create(Store, counter, builder.value(Add, count, make_constant(builder, 1, I64)))
        zero = make_constant(builder, 0, I64)
        with only_if(builder, builder.value(Compare, count, zero, predicate="eq")):
            again = clone_operation(op, {})
            again.attributes["goes_on"] = True
            builder.insert(again)
        op.erase()
