"""Scans: by groups of 16 lanes along the last axis that has lanes, else row by row (the order is published in
`blocklang.ops.scan`).

A `running` lane is scanned where it is computed: its loop carries the last result. Scans of whole buffers, in
place, are what goes backwards or along another axis. Everything about their axis is known: the lanes of the
last, partial group are a constant mask. The code is one loop and one tail, whatever the extents.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from blocklang.codegen.emitter import llvm_type, vector_of
from blocklang.codegen.floats import splat_number
from blocklang.codegen.lanes import TRUE, memory_type
from blocklang.codegen.loops import RegionEmitter
from blocklang.codegen.values import Lane
from blocklang.ir.core import Operation, Region
from blocklang.ir.types import I1, ScalarType, Type, element_type, shape_of
from blocklang.ops.elementwise import Add
from blocklang.ops.scan import GROUP, Running, ScanBuffers, is_grouped


def scan_buffers(emitter: RegionEmitter, op: Operation) -> None:
    assert isinstance(op, ScanBuffers)
    shape = shape_of(op.buffers[0].type)
    if shape[op.axis] > 1:
        (_GroupScan if is_grouped(shape, op.axis) else _RowScan)(emitter, op, shape).run()


def running_lanes(emitter: RegionEmitter, op: Operation) -> None:
    """Emit one step of a scan inside of the loop over its lanes."""
    assert isinstance(op, Running)
    lanes = emitter.lanes
    inputs = [lanes.get(v) for v in op.inputs]
    if not lanes.width:  # a row of one lane
        results = inputs
    else:
        state = lanes.running[op]
        results, state.last = RunningLanes(emitter, op, lanes.width).step(inputs, state.last, state.is_first)
    emitter.values.update(zip(op.results, results, strict=True))


class _Combining:
    """Groups of `width` lanes, and the user's function of two of them."""

    def __init__(self, emitter: RegionEmitter, combiner: Region, types: Sequence[Type], width: int) -> None:
        self.emitter = emitter.nested(width=width)
        self.emit = emitter.emit
        self.combiner = combiner
        self.width = width
        self.types = list(types)

    def combine(self, left: Sequence[Lane], right: Sequence[Lane], live: Lane) -> list[Lane]:
        """The user's function, as vectors that hold in the lanes of `live`."""
        inner = self.emitter.nested(live=None if live is TRUE else live)
        inner.values.update(zip(self.combiner.args, (*left, *right), strict=True))
        results = inner.region(self.combiner)
        return [Lane(inner.lanes.vector(r), t, self.width) for r, t in zip(results, self.types, strict=True)]

    def mask(self, lanes: Sequence[bool]) -> Lane:
        """A constant mask."""
        if all(lanes):
            return TRUE
        text = f"<{', '.join(f'i1 {str(lane).lower()}' for lane in lanes)}>"
        return Lane(text, I1, self.width)

    def choose(self, mask: Lane, new: Lane, old: Lane) -> Lane:
        text = self.emitter.lanes.context(self.width).select(
            self.emitter.lanes.vector(mask), new.type, new.text, old.text
        )
        return Lane(text, new.type, self.width)

    def shuffle(self, lane: Lane, picks: Sequence[int]) -> Lane:
        kind = llvm_type(lane.type, self.width)
        order = ", ".join(f"i32 {pick}" if pick >= 0 else "i32 poison" for pick in picks)
        text = self.emit.op(
            f"shufflevector {kind} {lane.text}, {kind} poison, {vector_of('i32', self.width)} <{order}>"
        )
        return Lane(text, lane.type, self.width)

    def rounds(self, lanes: list[Lane], count: int, *, backwards: bool) -> list[Lane]:
        """Scan the first `count` lanes of one group, without what comes before it."""
        distance = 1
        while distance < count:
            # Lane i takes what stands `distance` before it, which is after it in memory if we go backwards.
            sources = [lane + distance if backwards else lane - distance for lane in range(self.width)]
            takes = [0 <= source < count and lane < count for lane, source in enumerate(sources)]
            picks = [source if take else -1 for source, take in zip(sources, takes, strict=True)]
            moved = [self.shuffle(lane, picks) for lane in lanes]
            mask = self.mask(takes)
            new = self.combine(moved, lanes, mask)
            lanes = [self.choose(mask, n, old) for n, old in zip(new, lanes, strict=True)]
            distance *= 2
        return lanes

    def carried(self, carry: Sequence[Lane], lanes: Sequence[Lane], is_first: str) -> list[Lane]:
        """The lanes of the first group as they are, those of any other with the carry."""
        emit = self.emit
        later, join, before = emit.new_block("carry"), emit.new_block("carried"), emit.block
        emit.branch_if(is_first, join, later)
        emit.start(later)
        new = self.combine(carry, lanes, TRUE)
        end = emit.block
        emit.branch(join)
        emit.start(join)
        return [
            replace(
                lane,
                text=emit.phi(llvm_type(lane.type, self.width), [(lane.text, before), (n.text, end)]).name,
            )
            for lane, n in zip(lanes, new, strict=True)
        ]


class _Scan(_Combining):
    """What scans of buffers share: elements by their number."""

    def __init__(self, emitter: RegionEmitter, op: ScanBuffers, shape: tuple[int, ...], width: int) -> None:
        super().__init__(emitter, op.combiner, [element_type(b.type) for b in op.buffers], width)
        self.op = op
        self.extent = shape[op.axis]
        self.outer = math.prod(shape[: op.axis])
        self.inner = math.prod(shape[op.axis + 1 :])

    def pointers(self, index: str) -> list[Lane]:
        """The addresses of element `index`, in row-major order, and of those after it, in every buffer."""
        pointers = []
        for buffer in self.op.buffers:
            size, base = memory_type(buffer.type).bytes, self.emitter.values[buffer]
            place = self.emit.offset(base.text, self.emit.mul(index, size))
            pointers.append(Lane(place, base.type, 0, str(size)))
        return pointers

    def load(self, index: str, mask: Lane = TRUE) -> list[Lane]:
        lanes = self.emitter.lanes
        return [
            lanes.load_lanes(p, t, mask, None) for p, t in zip(self.pointers(index), self.types, strict=True)
        ]

    def store(self, index: str, values: Sequence[Lane], mask: Lane = TRUE) -> None:
        for pointer, value in zip(self.pointers(index), values, strict=True):
            self.emitter.lanes.store(pointer, value, mask, self.op)


class RunningLanes(_Combining):
    """One `running` operation in its loop, which takes `width` lanes a step: one group."""

    def __init__(self, emitter: RegionEmitter, op: Running, width: int) -> None:
        super().__init__(emitter, op.combiner, [r.type for r in op.results], width)
        self.is_sum = _is_sum(op.combiner)

    def start(self) -> list[str]:
        """What the first group starts from; for sums it is what changes nothing."""
        if self.is_sum:
            (type,) = self.types
            assert isinstance(type, ScalarType)
            return [splat_number(type, -0.0 if type.is_float else 0, self.width)]
        return ["zeroinitializer" for _ in self.types]

    def step(
        self, inputs: Sequence[Lane], before: Sequence[str], is_first: str
    ) -> tuple[list[Lane], list[str]]:
        """The results of the next group, and its last result in every lane.

        Args:
            before: the last result before it, in every lane.
            is_first: the condition that there is none.
        """
        vectors = [
            Lane(self.emitter.lanes.vector(x), t, self.width) for x, t in zip(inputs, self.types, strict=True)
        ]
        lanes = self.rounds(vectors, self.width, backwards=False)
        carry = [Lane(text, t, self.width) for text, t in zip(before, self.types, strict=True)]
        if self.is_sum:  # what the next group waits for is one addition, if the last result is added up again
            following = self.combine(carry, self.last(lanes), TRUE)
            return self.combine(carry, lanes, TRUE), [lane.text for lane in following]
        if is_first != "true":
            lanes = self.carried(carry, lanes, is_first)
        return lanes, [lane.text for lane in self.last(lanes)]

    def last(self, lanes: Sequence[Lane]) -> list[Lane]:
        return [self.shuffle(lane, [self.width - 1] * self.width) for lane in lanes]


def _is_sum(combiner: Region) -> bool:
    """True for the sum of both arguments, of a type with a zero that changes nothing: -0.0 for floats."""
    add, *others = combiner.ops
    type = combiner.args[0].type
    return (
        isinstance(add, Add)
        and len(others) == 1
        and add.operands == combiner.args
        and isinstance(type, ScalarType)
        and not type.is_float8
        and type.bits > 1
    )


class _GroupScan(_Scan):
    """Along the axis that lanes are neighbours on."""

    def __init__(self, emitter: RegionEmitter, op: ScanBuffers, shape: tuple[int, ...]) -> None:
        extent = shape[op.axis]
        super().__init__(emitter, op, shape, min(GROUP, 1 << (extent - 1).bit_length()))

    def run(self) -> None:
        if self.outer == 1:
            self.row("0")
            return
        self.emitter.counted("0", str(self.outer), 1, lambda i: self.row(self.emit.mul(i, self.extent)))

    def row(self, start: str) -> None:
        """Scan `extent` elements from `start` on: whole groups in a loop, then the rest."""
        emit, width = self.emit, self.width
        groups, rest = divmod(self.extent, width)
        kinds = [llvm_type(t, width) for t in self.types]
        carry = [Lane("zeroinitializer", t, width) for t in self.types]
        if groups:
            before = emit.block
            header, body, done = emit.new_block("groups"), emit.new_block("group"), emit.new_block("done")
            emit.branch(header)
            emit.start(header)
            count = emit.phi("i64", [("0", before)])
            phis = [emit.phi(kind, [("zeroinitializer", before)]) for kind in kinds]
            carry = [Lane(phi.name, t, width) for phi, t in zip(phis, self.types, strict=True)]
            emit.branch_if(emit.op(f"icmp ult i64 {count.name}, {groups}"), body, done)
            emit.start(body)
            # Positions from the end of the row, if the scan goes backwards.
            offset = emit.mul(count.name, width)
            if self.op.reverse:
                offset = emit.op(f"sub i64 {self.extent - width}, {offset}")
            index = emit.add(start, offset)
            is_first = emit.op(f"icmp eq i64 {count.name}, 0") if groups > 1 else "true"
            following = self.group(index, width, carry, is_first)
            for phi, lane in zip(phis, following, strict=True):
                phi.add(lane.text, emit.block)
            count.add(emit.op(f"add i64 {count.name}, 1"), emit.block)
            emit.branch(header)
            emit.start(done)
        if rest:
            index = start if self.op.reverse else emit.add(start, groups * width)
            self.group(index, rest, carry, "false" if groups else "true")

    def group(self, index: str, count: int, carry: Sequence[Lane], is_first: str) -> list[Lane]:
        """Scan `count` elements from `index` on; returns their last result in every lane."""
        width, backwards = self.width, self.op.reverse
        exist = self.mask([lane < count for lane in range(width)])
        lanes = self.rounds(self.load(index), count, backwards=backwards)
        if is_first == "false":
            lanes = self.combine(carry, lanes, exist)
        elif is_first != "true":
            lanes = self.carried(carry, lanes, is_first)
        self.store(index, lanes, exist)
        last = 0 if backwards else count - 1
        return [self.shuffle(lane, [last] * width) for lane in lanes]


class _RowScan(_Scan):
    """Along an axis with lanes after it: each row takes the row before; lanes are independent."""

    def __init__(self, emitter: RegionEmitter, op: ScanBuffers, shape: tuple[int, ...]) -> None:
        inner = math.prod(shape[op.axis + 1 :])
        widest = max(4, *(t.bytes for b in op.buffers if isinstance(t := element_type(b.type), ScalarType)))
        width = 2 * emitter.lanes.target.vector_bytes // widest
        super().__init__(emitter, op, shape, min(width, 1 << (inner - 1).bit_length()))

    def run(self) -> None:
        if self.outer == 1:
            self.rows("0")
            return
        size = self.extent * self.inner
        self.emitter.counted("0", str(self.outer), 1, lambda i: self.rows(self.emit.mul(i, size)))

    def rows(self, start: str) -> None:
        emit = self.emit

        def row(count: str) -> None:
            if self.op.reverse:
                number = emit.op(f"sub i64 {self.extent - 1}, {count}")
                before = self.inner
            else:
                number, before = count, -self.inner
            first = emit.add(start, emit.mul(number, self.inner))
            whole = self.inner // self.width * self.width
            self.emitter.counted(
                "0", str(whole), self.width, lambda i: self.step(emit.add(first, i), before, TRUE)
            )
            if rest := self.inner - whole:
                exist = self.mask([lane < rest for lane in range(self.width)])
                self.step(emit.add(first, whole), before, exist)

        self.emitter.counted("1", str(self.extent), 1, row)

    def step(self, index: str, before: int, exist: Lane) -> None:
        scanned = self.load(self.emit.add(index, before))
        self.store(index, self.combine(scanned, self.load(index), exist), exist)
