"""Move out of a loop what it computes anew in every round though nothing in it changes.

    kernel @k(%p: ptr<i32>, %n: i32, %m: i32) {
      %zero = constant value=0 : i32
      %one = constant value=1 : i32
      for %zero, %n, %one {
        (%i: i32):
        %square = mul %m, %m : i32
        %value = add %square, %i : i32
        store %p, %value
        yield
      }
      return
    }

becomes

    kernel @k(%p: ptr<i32>, %n: i32, %m: i32) {
      %zero = constant value=0 : i32
      %one = constant value=1 : i32
      %square = mul %m, %m : i32
      for %zero, %n, %one {
        (%i: i32):
        %value = add %square, %i : i32
        store %p, %value
        yield
      }
      return
    }

The loops are `for`, both regions of `while`, `group` and `lanes`. What moves is pure, and may then run
though the loop has no round: every operation is total, so that costs time at most. It may hold regions, but
no `while`, which need not end. Loads, reads and buffers do not move, nor does anything out of an `if`.

Requires: nothing.
Keeps: every bit of every result; the order of what moves; every level.
"""

from __future__ import annotations

from blocklang.ir.core import Kernel, Operation, Region, Value
from blocklang.ops.control import For, While
from blocklang.ops.tile import BufferOp, Group, Lanes

_LOOPS = (For, While, Group, Lanes)


def hoist_loop_invariants(kernel: Kernel) -> None:
    """Move invariant operations before their loop, innermost loops first."""
    _visit(kernel.body)


def _visit(region: Region) -> None:
    for op in list(region.ops):
        for inner in op.regions:
            _visit(inner)
        if isinstance(op, _LOOPS):
            invariants = [moved for inner in op.regions for moved in _take_invariants(inner)]
            position = region.ops.index(op)
            region.ops[position:position] = invariants
            for moved in invariants:
                moved.parent = region


def _take_invariants(region: Region) -> list[Operation]:
    """Remove from a loop's region what depends on nothing in it."""
    inside: set[Value] = set(region.args)
    invariants: list[Operation] = []
    remaining: list[Operation] = []
    for op in region.ops:
        if _may_move(op) and not _reads(op, inside):
            invariants.append(op)
        else:
            remaining.append(op)
            inside.update(op.results)
    region.ops[:] = remaining
    return invariants


def _may_move(op: Operation) -> bool:
    if op.is_terminator or op.effects or isinstance(op, (BufferOp, While)):
        return False
    held = [inner for region in op.regions for inner in region.walk()]
    return not any(inner.effects or isinstance(inner, (BufferOp, While)) for inner in held)


def _reads(op: Operation, values: set[Value]) -> bool:
    """True if `op`, or anything it holds, reads one of the values."""
    if not values.isdisjoint(op.operands):
        return True
    return any(_reads(inner, values) for region in op.regions for inner in region.ops)
