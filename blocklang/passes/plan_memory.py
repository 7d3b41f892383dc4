"""Give every buffer its place in the scratch arena.

    placed @k(%p: ptr<f32>) {
      %a = buffer : buffer<64xf32>
      %b = buffer : buffer<64xf32>
      %c0 = constant value=0 : i64
      %c64 = constant value=64 : i64
      lanes %c0, %c64, width=16 {
        (%i: i64):
        %v = load %p : f32
        write %a, %v, %i
        yield
      }
      %x = read %a, %c0 : f32
      lanes %c0, %c64, width=16 {
        (%j: i64):
        write %b, %x, %j
        yield
      }
      %y = read %b, %c0 : f32
      store %p, %y
      return
    }

becomes

    placed @k(%p: ptr<f32>) {
      %a = buffer offset=0 : buffer<64xf32>
      %b = buffer offset=0 : buffer<64xf32>
      %c0 = constant value=0 : i64
      %c64 = constant value=64 : i64
      lanes %c0, %c64, width=16 {
        (%i: i64):
        %v = load %p : f32
        write %a, %v, %i
        yield
      }
      %x = read %a, %c0 : f32
      lanes %c0, %c64, width=16 {
        (%j: i64):
        write %b, %x, %j
        yield
      }
      %y = read %b, %c0 : f32
      store %p, %y
      return
    }

A buffer lives from the first to the last operation of the kernel's body that mentions it, at whatever depth
(a loop counts as one operation, so what is carried by it lives through all of it). Buffers that live at the
same time do not overlap. What programs share (`memoise`) lies behind all of them, as it lives from program to
program.

Requires: level placed. Keeps: everything but offsets.
"""

from __future__ import annotations

from blocklang.abi import SLACK_BYTES, BufferPlan, TileTable, aligned
from blocklang.ir.core import Kernel, Operation, Value
from blocklang.ops.tile import BufferOp, Memoise, View


def lifetimes(kernel: Kernel) -> dict[BufferOp, tuple[int, int]]:
    """Per buffer the positions in the kernel's body of the first and last operation that uses it."""
    position = {op: i for i, op in enumerate(kernel.body.ops)}

    def outermost(op: Operation) -> Operation:
        while op.parent is not kernel.body:
            parent = op.parent_op
            assert parent is not None
            op = parent
        return op

    def users(value: Value) -> list[Operation]:
        found: list[Operation] = []
        for user in value.users:
            found += users(user.results[0]) if isinstance(user, View) else [user]
        return found

    spans: dict[BufferOp, tuple[int, int]] = {}
    for op in kernel.body.ops:
        if isinstance(op, BufferOp):
            places = [position[outermost(u)] for u in users(op.result)]
            if places:
                spans[op] = (min(places), max(places))
    return spans


def plan_memory(kernel: Kernel) -> None:
    """Set the offset of every buffer of the scratch space: first fit, larger buffers first."""
    assert kernel.level == "placed"
    spans = lifetimes(kernel)
    placed: list[tuple[int, int, tuple[int, int]]] = []  # offset, end, lifetime
    for op in sorted(spans, key=lambda o: (-o.byte_count(), spans[o])):
        first, last = spans[op]
        size = aligned(op.byte_count() + SLACK_BYTES)
        offset = 0
        for start, end, (other_first, other_last) in sorted(placed):
            if other_last < first or last < other_first:
                continue
            if offset + size <= start:
                break
            offset = max(offset, end)
        op.attributes["offset"] = offset
        placed.append((offset, offset + size, (first, last)))
    unused = [op for op in kernel.body.ops if isinstance(op, BufferOp) and not op.result.uses]
    for op in unused:
        op.erase()
    end = _buffer_bytes(kernel)
    for shared in _memoised(kernel):
        shared.attributes["offset"] = end
        end += _table(shared).bytes


def memory_plan(kernel: Kernel) -> tuple[BufferPlan, ...]:
    """The plan as data, for the runtime, reports and the emulator."""
    spans = lifetimes(kernel)
    buffers = [
        BufferPlan(op.result.name, op.space, op.offset, op.byte_count(), str(op.result.type), *spans[op])
        for op in spans
    ]
    whole = (0, len(kernel.body.ops))
    shared = [
        BufferPlan(
            op.result.name, "scratch", op.offset, _table(op).bytes, f"{op.tiles} x {op.result.type}", *whole
        )
        for op in _memoised(kernel)
    ]
    return (*buffers, *shared)


def _memoised(kernel: Kernel) -> list[Memoise]:
    return [op for op in kernel.walk() if isinstance(op, Memoise)]


def _table(op: Memoise) -> TileTable:
    return TileTable(len(op.keys), op.tiles, op.byte_count())


def _buffer_bytes(kernel: Kernel) -> int:
    ends = [op.offset + aligned(op.byte_count() + SLACK_BYTES) for op in lifetimes(kernel)]
    return max(ends, default=0)


def scratch_bytes(kernel: Kernel) -> int:
    """Size of the arena that the plan needs."""
    return _buffer_bytes(kernel) + sum(_table(op).bytes for op in _memoised(kernel))
