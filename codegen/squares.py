"""Squares of lanes, turned in registers: buffers whose rows run across the lanes that write them.

What is loaded along one axis and used along another goes through a buffer with rows of the second (the
schedule says so). The loop nest that writes it

    group %g { lanes %l { ...; write %buffer, %v, %l, %g } }

would scatter every vector. Instead as many rows as a vector has lanes are computed together, and turned: each
lane's elements become a vector that is written whole. Rows and lanes that fill no square are written lane by
lane.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from blocklang.codegen.emitter import Emitter, llvm_scalar, vector_of
from blocklang.codegen.lanes import memory_type
from blocklang.codegen.lanes_loop import LanesLoop
from blocklang.codegen.loops import RegionEmitter
from blocklang.codegen.values import Lane
from blocklang.ir.core import Operation, Region, Value
from blocklang.ir.types import I1, I64
from blocklang.ops.creation import Constant
from blocklang.ops.elementwise import Elementwise
from blocklang.ops.memory import Load, Offset
from blocklang.ops.tile import BufferOp, Group, InBounds, Lanes, Memory, Read, Write
from blocklang.target import Target

MAXIMUM_OPERATIONS = 48  # of a lane: each row of a square has code of its own


def transposed(emit: Emitter, kind: str, vectors: Sequence[str]) -> list[str]:
    """The columns of a square of lanes: blocks off the diagonal change places, ever smaller ones."""
    count = len(vectors)
    current = list(vectors)
    distance = count // 2
    while distance:
        for i in range(count):
            if i & distance:
                continue
            a, b = current[i], current[i + distance]
            upper = [count + lane - distance if lane & distance else lane for lane in range(count)]
            lower = [count + lane if lane & distance else lane + distance for lane in range(count)]
            current[i], current[i + distance] = (_picked(emit, kind, a, b, p) for p in (upper, lower))
        distance //= 2
    return current


def _picked(emit: Emitter, kind: str, a: str, b: str, picks: Sequence[int]) -> str:
    lanes = ", ".join(f"i32 {pick}" for pick in picks)
    return emit.op(f"shufflevector {kind} {a}, {kind} {b}, <{len(picks)} x i32> <{lanes}>")


@dataclass(frozen=True)
class TurnedNest:
    """A group of rows whose lanes write across the rows of a buffer."""

    group: Group
    loop: Lanes
    write: Write
    side: int  # of a square

    @property
    def row(self) -> Value:
        index: Value = self.group.body.args[0]
        return index

    @property
    def lane(self) -> Value:
        index: Value = self.loop.body.args[0]
        return index


def find_turned_nest(op: Group, buffers: dict[Value, Memory], target: Target) -> TurnedNest | None:
    """The nest that `op` is the outer loop of, if it is of this kind."""
    loops = [inner for inner in op.body.ops if isinstance(inner, Lanes)]
    if len(loops) != 1 or loops[0].combines or loops[0].width < 2:
        return None
    (loop,) = loops
    writes = [inner for inner in loop.body.ops if isinstance(inner, Write)]
    others = [o for o in (*op.body.ops, *loop.body.ops) if o is not loop and o not in writes]
    allowed = (Constant, Elementwise, InBounds, Load, Offset, Read)
    if len(writes) != 1 or not all(o.is_terminator or isinstance(o, allowed) for o in others):
        return None
    if len(others) > MAXIMUM_OPERATIONS:
        return None
    if any(_is_inside(v, op.body) for v in (loop.low, loop.high)):
        return None
    (write,) = writes
    *outer, last = write.indices
    buffer = buffers.get(write.buffer)
    row, lane = op.body.args[0], loop.body.args[0]
    if not isinstance(buffer, BufferOp) or buffer.panel or last is not row or outer.count(lane) != 1:
        return None
    if any(index is not lane and _is_inside(index, op.body) for index in outer):
        return None
    size = memory_type(write.buffer.type).bytes
    side = min(target.vector_bytes // size, target.vector_registers // 2)
    return TurnedNest(op, loop, write, side) if side > 1 else None


def _is_inside(value: Value, region: Region) -> bool:
    owner = value.owner
    return owner is region or (isinstance(owner, Operation) and region.encloses(owner))


def turned_nest(emitter: RegionEmitter, nest: TurnedNest) -> None:
    """Emit whole squares, then all that is left."""
    _TurnedNest(emitter, nest).run()


class _TurnedNest:
    def __init__(self, emitter: RegionEmitter, nest: TurnedNest) -> None:
        self.emitter = emitter
        self.emit = emitter.emit
        self.nest = nest
        self.rows = self._range(nest.group.low, nest.group.high)
        self.lanes = self._range(nest.loop.low, nest.loop.high)
        masks = self._masks()
        self.masks = frozenset(masks)
        self.square_rows = self._whole(self.rows, [m for m in masks if m.index is nest.row])
        self.square_lanes = self._whole(self.lanes, [m for m in masks if m.index is nest.lane])

    def _range(self, low: Value, high: Value) -> tuple[str, str]:
        return self.emitter.text(low), self.emitter.text(high)

    def _masks(self) -> list[InBounds]:
        """The masks that are ranges of a row or a lane, with bounds from outside of the nest."""
        body = self.nest.group.body
        return [
            op
            for op in (*body.ops, *self.nest.loop.body.ops)
            if isinstance(op, InBounds)
            and (op.index is self.nest.row or op.index is self.nest.lane)
            and not any(_is_inside(v, body) for v in (op.low, op.high))
        ]

    def _whole(self, range_: tuple[str, str], masks: Sequence[InBounds]) -> tuple[str, str]:
        """The part of a range where the masks hold, ended after its last whole square."""
        emit, (low, high), side = self.emit, range_, self.nest.side
        for text in dict.fromkeys(self.emitter.text(m.low) for m in masks):
            if text != low:
                low = emit.call("i64", "llvm.smax.i64", [("i64", low), ("i64", text)])
        for text in dict.fromkeys(self.emitter.text(m.high) for m in masks):
            if text != high:
                high = emit.call("i64", "llvm.smin.i64", [("i64", high), ("i64", text)])
        if _is_number(low) and _is_number(high):
            return low, str(int(low) + max(int(high) - int(low), 0) // side * side)
        # A range may be empty, and then start behind its end.
        low = emit.call("i64", "llvm.smin.i64", [("i64", low), ("i64", range_[1])])
        count = emit.call("i64", "llvm.smax.i64", [("i64", emit.op(f"sub i64 {high}, {low}")), ("i64", "0")])
        return low, emit.add(low, emit.op(f"and i64 {count}, {-side}"))

    def run(self) -> None:
        self.emitter.counted(
            *self.square_rows,
            self.nest.side,
            lambda row: self.emitter.counted(
                *self.square_lanes, self.nest.side, lambda lane: self.square(row, lane)
            ),
        )
        if (self.square_rows, self.square_lanes) != (self.rows, self.lanes):
            self.emitter.counted(*self.rows, 1, self.rest_of_row)

    # ---- squares ----

    def square(self, row: str, lane: str) -> None:
        emit, element = self.emit, llvm_scalar(memory_type(self.nest.write.buffer.type))
        kind = vector_of(element, self.nest.side)
        vectors = [self.vector(emit.add(row, i), lane) for i in range(self.nest.side)]
        for i, text in enumerate(transposed(emit, kind, vectors)):
            place = self.place(row, emit.add(lane, i))
            emit.do(f"store {kind} {text}, ptr {place}, align 1")

    def vector(self, row: str, lane: str) -> str:
        """What is written in one row of a square."""
        side, nest = self.nest.side, self.nest
        values = {**self.emitter.values, nest.row: Lane(row, I64)}
        assumed = self.emitter.lanes.assumed | self.masks
        outside = self.emitter.nested(values=values, assumed=assumed)
        for op in nest.group.body.ops:
            if not isinstance(op, Lanes) and not op.is_terminator:
                outside.operation(op)
        inside = outside.nested(width=side, live=None, splats={})
        inside.values[nest.lane] = Lane(lane, I64, 0, "1")
        for op in nest.loop.body.ops:
            if op is not nest.write and not op.is_terminator:
                inside.operation(op)
        value = inside.values[nest.write.value]
        text = inside.lanes.vector(value)
        if value.type == I1:
            text = self.emit.op(f"zext {vector_of('i1', side)} {text} to {vector_of('i8', side)}")
        return text

    def place(self, row: str, lane: str) -> str:
        """Where a lane's elements of the rows from `row` on lie in the buffer."""
        values = {**self.emitter.values, self.nest.row: Lane(row, I64), self.nest.lane: Lane(lane, I64)}
        lanes = replace(self.emitter.lanes, values=values)
        return lanes.buffer_pointer(self.nest.write.buffer, self.nest.write.indices).text

    # ---- what is left ----

    def rest_of_row(self, row: str) -> None:
        """The lanes of a row that are in no square."""
        emit, nest = self.emit, self.nest
        self.emitter.values[nest.row] = Lane(row, I64)
        for op in nest.group.body.ops:
            if not isinstance(op, Lanes) and not op.is_terminator:
                self.emitter.operation(op)
        above = emit.op(f"icmp sge i64 {row}, {self.square_rows[0]}")
        below = emit.op(f"icmp slt i64 {row}, {self.square_rows[1]}")
        in_square = emit.op(f"and i1 {above}, {below}")
        (low, high), (first, last) = self.lanes, self.square_lanes
        if first != low:
            end = emit.op(f"select i1 {in_square}, i64 {first}, i64 {low}")
            self.run_lanes(low, end)
        if last != low:
            low = emit.op(f"select i1 {in_square}, i64 {last}, i64 {low}")
        self.run_lanes(low, high)

    def run_lanes(self, low: str, high: str) -> None:
        loop = LanesLoop(self.emitter, self.nest.loop)
        loop.low, loop.high = low, high
        loop.run()


def _is_number(text: str) -> bool:
    return text.lstrip("-").isdigit()
