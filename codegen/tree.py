"""A user's function, folded as a tree over neighbours in rows of scratch.

A tree is folded round by round. Several rounds of a stretch of `SPAN` steps are taken at once, in registers,
since what they combine are neighbours; what is left of a row behind the last whole stretch, and rows that are
shorter, go through memory. The code is the same for every extent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from blocklang.codegen.emitter import llvm_type
from blocklang.codegen.lanes import memory_type
from blocklang.codegen.loops import RegionEmitter
from blocklang.codegen.values import Lane
from blocklang.ir.core import Operation, Value
from blocklang.ir.types import I1, element_type
from blocklang.ops.tile import TreeReduce

ROUNDS = 3  # that a stretch is taken through at once
SPAN = 1 << ROUNDS


def tree_reduce(emitter: RegionEmitter, op: Operation) -> None:
    assert isinstance(op, TreeReduce)
    _Tree(emitter, op).run()


class _Tree:
    """Emits one fold: element i becomes combine(2i, 2i + 1), an odd last one moves down, until one is left.

    Attributes:
        width: lanes per step; 0 for rows so short that most of their rounds have no whole step.
    """

    def __init__(self, emitter: RegionEmitter, op: TreeReduce) -> None:
        self.emitter = emitter
        self.emit = emitter.emit
        self.op = op
        widest = max(4, *(element_type(row.type).bytes for row in op.buffers))
        self.width = emitter.lanes.target.vector_bytes // widest if op.extent >= 32 else 0

    def run(self) -> None:
        if self.width and self.op.extent >= SPAN * self.width:
            count = self.passes()
        else:
            count = str(self.op.extent)
        self.rounds(count)
        for row, result in zip(self.op.buffers, self.op.outputs, strict=True):
            lane = self.emitter.lanes.load_uniform(
                self.emitter.values[row], result.type, Lane("true", I1), None
            )
            self.emitter.values[result] = lane

    def passes(self) -> str:
        """While there are whole stretches: all rounds of a stretch at once. How many elements remain."""
        emit, width = self.emit, self.width
        header, body, done = emit.new_block("passes"), emit.new_block("pass"), emit.new_block("passed")
        before = emit.block
        emit.branch(header)
        emit.start(header)
        count = emit.phi("i64", [(str(self.op.extent), before)])
        emit.branch_if(emit.op(f"icmp sge i64 {count.name}, {SPAN * width}"), body, done)
        emit.start(body)
        folded = emit.op(f"and i64 {emit.op(f'lshr i64 {count.name}, {ROUNDS}')}, {-width}")
        self.emitter.counted("0", folded, width, self.stretch)
        start = emit.op(f"shl i64 {folded}, {ROUNDS}")
        rest = emit.op(f"sub i64 {count.name}, {start}")
        for _ in range(ROUNDS):
            rest = self.round(start, rest)
        self.emitter.counted("0", rest, 1, lambda i: self.move(emit.add(start, i), emit.add(folded, i)))
        count.add(emit.add(folded, rest), emit.block)
        emit.branch(header)
        emit.start(done)
        return count.name

    def stretch(self, index: str) -> None:
        """Elements SPAN * i and those after it become the `width` elements from i = `index` on."""
        lanes = self.width * SPAN
        first = self.emit.op(f"shl i64 {index}, {ROUNDS}")
        values = [self.load(row, first, lanes) for row in self.op.buffers]
        while lanes > self.width:
            lanes //= 2
            left = [self.every_other(v, lanes, 0) for v in values]
            right = [self.every_other(v, lanes, 1) for v in values]
            values = self.combine(left, right, lanes)
        for row, value in zip(self.op.buffers, values, strict=True):
            self.store(row, index, value, self.width)

    def rounds(self, extent: str) -> None:
        """Round after round in memory until one element is left."""
        emit = self.emit
        header, body, done = emit.new_block("rounds"), emit.new_block("round"), emit.new_block("done")
        before = emit.block
        emit.branch(header)
        emit.start(header)
        count = emit.phi("i64", [(extent, before)])
        emit.branch_if(emit.op(f"icmp sgt i64 {count.name}, 1"), body, done)
        emit.start(body)
        count.add(self.round("0", count.name), emit.block)
        emit.branch(header)
        emit.start(done)

    def round(self, start: str, count: str) -> str:
        """One round of the `count` elements from `start` on, in place. How many remain."""
        emit = self.emit
        half = emit.op(f"lshr i64 {count}, 1")
        whole = "0"
        if self.width:
            whole = emit.op(f"and i64 {half}, {-self.width}")
            self.emitter.counted("0", whole, self.width, lambda i: self.pairs(start, i, self.width))
        self.emitter.counted(whole, half, 1, lambda i: self.pairs(start, i, 0))
        odd = emit.op(f"and i64 {count}, 1")

        def move_last() -> None:
            self.move(emit.add(start, emit.op(f"sub i64 {count}, 1")), emit.add(start, half))

        self.emitter.lanes.when(emit.op(f"icmp eq i64 {odd}, 1"), move_last)
        return emit.add(half, odd)

    def pairs(self, start: str, index: str, width: int) -> None:
        """Combine elements 2i and 2i + 1 into element i, for `width` consecutive i (one if 0)."""
        emit = self.emit
        first = emit.add(start, emit.op(f"shl i64 {index}, 1"))
        if width:
            values = [self.load(row, first, 2 * width) for row in self.op.buffers]
            left = [self.every_other(v, width, 0) for v in values]
            right = [self.every_other(v, width, 1) for v in values]
        else:
            left = [self.load(row, first, 0) for row in self.op.buffers]
            right = [self.load(row, emit.add(first, 1), 0) for row in self.op.buffers]
        target = emit.add(start, index)
        for row, value in zip(self.op.buffers, self.combine(left, right, width), strict=True):
            self.store(row, target, value, width)

    def move(self, source: str, target: str) -> None:
        for row in self.op.buffers:
            self.store(row, target, self.load(row, source, 0), 0)

    def combine(self, left: Sequence[Lane], right: Sequence[Lane], width: int) -> list[Lane]:
        """The user's function on `width` lanes."""
        inner = self.emitter.nested(width=width)
        inner.values.update(zip(self.op.combiner.args, (*left, *right), strict=True))
        results = inner.region(self.op.combiner)
        return [Lane(inner.lanes.vector(r), r.type, width) for r in results]

    # ---- elements ----

    def pointer(self, row: Value, index: str) -> Lane:
        base = self.emitter.values[row]
        size = memory_type(row.type).bytes
        return Lane(self.emit.offset(base.text, self.emit.mul(index, size)), base.type, 0, str(size))

    def load(self, row: Value, index: str, width: int) -> Lane:
        """`width` elements from `index` on, or one."""
        element = element_type(row.type)
        lanes = self.emitter.nested(width=width).lanes
        pointer = self.pointer(row, index)
        if not width:
            return lanes.load_uniform(replace(pointer, step=""), element, Lane("true", I1), None)
        return lanes.load_lanes(pointer, element, Lane("true", I1), None)

    def store(self, row: Value, index: str, value: Lane, width: int) -> None:
        pointer = self.pointer(row, index)
        lanes = self.emitter.nested(width=width).lanes
        lanes.store(pointer if width else replace(pointer, step=""), value, Lane("true", I1), self.op)

    def every_other(self, lane: Lane, width: int, first: int) -> Lane:
        """Every second of 2 * `width` lanes."""
        kind = llvm_type(lane.type, 2 * width)
        picks = ", ".join(f"i32 {2 * i + first}" for i in range(width))
        text = self.emit.op(f"shufflevector {kind} {lane.text}, {kind} poison, <{width} x i32> <{picks}>")
        return Lane(text, lane.type, width)
