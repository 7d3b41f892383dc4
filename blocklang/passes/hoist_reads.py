"""Read once before a loop over lanes what every lane reads from one place, of a buffer or of memory.

    placed @k(%p: ptr<f32>, %row: i64) {
      %b = buffer : buffer<4xf32>
      %c0 = constant value=0 : i64
      %c64 = constant value=64 : i64
      lanes %c0, %c64, width=64 {
        (%i: i64):
        %q = offset %p, %i : ptr<f32>
        %m = read %b, %row : f32
        store %q, %m
        yield
      }
      return
    }

becomes

    placed @k(%p: ptr<f32>, %row: i64) {
      %b = buffer : buffer<4xf32>
      %c0 = constant value=0 : i64
      %c64 = constant value=64 : i64
      %m = read %b, %row : f32
      lanes %c0, %c64, width=64 {
        (%i: i64):
        %q = offset %p, %i : ptr<f32>
        store %q, %m
        yield
      }
      return
    }

and so does a load whose address is the same in all lanes, if the loop has lanes and stores to no array that
may be the same.

The maximum of a row, kept in a buffer because there are several rows, is one number in the loop over the
row: what is computed from it alone can leave the loop too, and the padding of a sum over `exp(x - maximum)`
is known before the loop (`narrow_loops`). Where a row of a sparse matrix begins is loaded; as a number that
stands before the loop it can be tested (`guard_accesses`). A read never fails, so it may stand before a loop
without lanes; a load may not.

Requires: level placed; indices and addresses that lanes share stand outside of their loops
(`hoist_loop_invariants`).
Keeps: all results; every effect and its order.
"""

from __future__ import annotations

from blocklang.analysis.memory_hazards import base_pointer
from blocklang.ir.builder import Builder
from blocklang.ir.core import Kernel, Operation, Value
from blocklang.ir.declaration import Effect
from blocklang.ops.creation import Constant
from blocklang.ops.memory import Load, Store
from blocklang.ops.tile import Lanes, Read, View

_HARMLESS = frozenset({Effect.READ, Effect.READ_BUFFER, Effect.WRITE_BUFFER})


def hoist_reads(kernel: Kernel) -> None:
    """Move reads before the `lanes` that repeats them, in place."""
    assert kernel.level == "placed"
    is_disjoint = kernel.attributes.get("alias", "unknown") == "disjoint"
    for loop in [op for op in kernel.walk() if isinstance(op, Lanes)]:
        _hoist(loop, is_disjoint=is_disjoint)


def _hoist(loop: Lanes, *, is_disjoint: bool) -> None:
    inside = list(loop.body.walk())
    made = {*loop.body.args, *(result for op in inside for result in op.results)}
    written = {_whole(v) for op in inside if Effect.WRITE_BUFFER in op.effects for v in op.operands}
    for op in [op for op in loop.body.ops if isinstance(op, (Load, Read)) and made.isdisjoint(op.operands)]:
        if isinstance(op, Load):
            may_move = _has_lanes(loop) and _stays_loaded(op, inside, is_disjoint=is_disjoint)
        else:
            may_move = _whole(op.buffer) not in written
        if may_move:
            op.detach()
            Builder.before_op(loop).insert(op)
            made.discard(op.result)


def _has_lanes(loop: Lanes) -> bool:
    low, high = loop.low.defining_op, loop.high.defining_op
    return isinstance(low, Constant) and isinstance(high, Constant) and bool(low.value < high.value)


def _stays_loaded(load: Load, inside: list[Operation], *, is_disjoint: bool) -> bool:
    """True if the loop neither writes what is loaded nor orders accesses."""
    base = base_pointer(load.pointer)
    for op in inside:
        if isinstance(op, Store):
            stored = base_pointer(op.pointer)
            if not is_disjoint or None in (base, stored) or base is stored:
                return False
        elif not op.effects <= _HARMLESS or (isinstance(op, Load) and op.volatile):
            return False
    return True


def _whole(buffer: Value) -> Value:
    """The buffer that a value is a view or a part of."""
    while isinstance(op := buffer.defining_op, View):
        buffer = op.buffer
    return buffer
