"""Read once before a loop over lanes what every lane reads from a buffer.

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

The maximum of a row, kept in a buffer because there are several rows, is one number in the loop over the
row: what is computed from it alone can leave the loop too, and the padding of a sum over `exp(x - maximum)`
is known before the loop (`narrow_loops`). A read never fails, so it may stand before a loop without lanes.

Requires: level placed; indices that lanes share stand outside of their loops (`hoist_loop_invariants`).
Keeps: all results; every effect and its order.
"""

from __future__ import annotations

from blocklang.ir.builder import Builder
from blocklang.ir.core import Kernel, Value
from blocklang.ir.declaration import Effect
from blocklang.ops.tile import Lanes, Read, View


def hoist_reads(kernel: Kernel) -> None:
    """Move reads before the `lanes` that repeats them, in place."""
    assert kernel.level == "placed"
    for loop in [op for op in kernel.walk() if isinstance(op, Lanes)]:
        _hoist(loop)


def _hoist(loop: Lanes) -> None:
    inside = list(loop.body.walk())
    made = {*loop.body.args, *(result for op in inside for result in op.results)}
    written = {_whole(v) for op in inside if Effect.WRITE_BUFFER in op.effects for v in op.operands}
    for op in [op for op in loop.body.ops if isinstance(op, Read)]:
        if made.isdisjoint(op.operands) and _whole(op.buffer) not in written:
            op.detach()
            Builder.before_op(loop).insert(op)


def _whole(buffer: Value) -> Value:
    """The buffer that a value is a view or a part of."""
    while isinstance(op := buffer.defining_op, View):
        buffer = op.buffer
    return buffer
