"""Make one loop of loops over the same lanes that read the same memory.

    placed @k(%p: ptr<f32>, %q: ptr<f32>, %n: i64) alias="disjoint" {
      %zero = constant value=0 : i64
      %one = constant value=1.0 : f32
      %s = lanes %zero, %n, width=32, combines=["sum"] : f32 {
        (%i: i64):
        %a = offset %p, %i : ptr<f32>
        %x = load %a : f32
        yield %x
      }
      store %q, %s
      %t = lanes %zero, %n, width=32, combines=["sum"] : f32 {
        (%j: i64):
        %b = offset %p, %j : ptr<f32>
        %y = load %b : f32
        %z = sub %y, %one : f32
        yield %z
      }
      %c = offset %q, %n : ptr<f32>
      store %c, %t
      return
    }

becomes

    placed @k(%p: ptr<f32>, %q: ptr<f32>, %n: i64) alias="disjoint" {
      %zero = constant value=0 : i64
      %one = constant value=1.0 : f32
      %s, %t = lanes %zero, %n, width=32, combines=["sum", "sum"] : f32, f32 {
        (%i: i64):
        %a = offset %p, %i : ptr<f32>
        %x = load %a : f32
        %z = sub %x, %one : f32
        yield %x, %z
      }
      store %q, %s
      %c = offset %q, %n : ptr<f32>
      store %c, %t
      return
    }

Every reduction and every store is placed in a loop of its own, which computes what it needs anew. Loops that
need the same lanes read them once so, and share what they compute from them. The later loop moves up to the
earlier one, so nothing between both may make what it needs or touch what it touches. Inside of a buffer the
loops may follow each other lane by lane: what the first writes at its own index the second may read there.

Extrema of floats, and places of extrema, keep loops of their own: those first run with plain comparisons, and
once more in doubt (`codegen/lanes_loop.py`), which a loop that does more than read cannot.

Requires: level placed; equal bounds and addresses are equal values. Keeps: all results; every effect; the
order of effects that touch the same memory.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from blocklang.analysis.memory_hazards import base_pointer
from blocklang.ir.builder import Builder
from blocklang.ir.core import Kernel, Operation, Region, Value
from blocklang.ir.declaration import Effect
from blocklang.ir.rewriting import clone_operation
from blocklang.ir.types import BufferType, ScalarType
from blocklang.ops.control import Yield
from blocklang.ops.memory import Load, Store
from blocklang.ops.scan import Running
from blocklang.ops.tile import ARG_COMBINES, Lanes, Read, View, Write
from blocklang.passes.eliminate_common_subexpressions import attribute_key

_ACCESSES = frozenset({Effect.READ, Effect.WRITE, Effect.READ_BUFFER, Effect.WRITE_BUFFER})
# Memory streams of one loop: each is an address that a register holds and that a prefetcher follows.
MOST_STREAMS = 8
MOST_FOLDS = 4  # partial results of each take two registers or more
MOST_PASSED = 32  # operations that a loop moves up past: compile time stays linear


def fuse_loops(kernel: Kernel) -> None:
    """Fuse the loops over lanes of a placed kernel, in place."""
    assert kernel.level == "placed"
    is_disjoint = kernel.attributes.get("alias", "unknown") == "disjoint"
    holders = [op for op in kernel.walk() if op.regions and not isinstance(op, Lanes)]
    for region in [kernel.body, *(region for op in holders for region in op.regions)]:
        _Fuser(region, is_disjoint=is_disjoint).run()


# ---- what operations touch ----


@dataclass
class _Touched:
    """What an operation reads and writes: arrays by the argument that they begin at (None: any), and
    buffers. `is_fence` if it does anything else.
    """

    read: set[Value | None] = field(default_factory=set)
    written: set[Value | None] = field(default_factory=set)
    buffers_read: set[Value] = field(default_factory=set)
    buffers_written: set[Value] = field(default_factory=set)
    is_fence: bool = False

    def add(self, op: Operation) -> None:
        if not op.effects:
            return
        if isinstance(op, (Load, Store)) and not (isinstance(op, Load) and op.volatile):
            (self.read if isinstance(op, Load) else self.written).add(base_pointer(op.pointer))
        elif isinstance(op, Read):
            self.buffers_read.add(whole_buffer(op.buffer))
        elif isinstance(op, Write):
            self.buffers_written.add(whole_buffer(op.buffer))
        elif op.effects <= {Effect.READ_BUFFER, Effect.WRITE_BUFFER} and not isinstance(op, Running):
            buffers = {whole_buffer(v) for v in op.operands if isinstance(v.type, BufferType)}
            self.buffers_read |= buffers
            self.buffers_written |= buffers
        else:
            self.is_fence = True

    def meets(self, other: _Touched, *, is_disjoint: bool) -> bool:
        """True if the order of both may show in memory."""
        return (
            self.is_fence
            or other.is_fence
            or _overlap(self.written, other.written | other.read, is_disjoint=is_disjoint)
            or _overlap(other.written, self.read, is_disjoint=is_disjoint)
            or not self.buffers_written.isdisjoint(other.buffers_written | other.buffers_read)
            or not other.buffers_written.isdisjoint(self.buffers_read)
        )


def whole_buffer(value: Value) -> Value:
    """The buffer that a value is a view or a part of."""
    while isinstance(op := value.defining_op, View):
        value = op.buffer
    return value


def _overlap(one: set[Value | None], other: set[Value | None], *, is_disjoint: bool) -> bool:
    if not one or not other:
        return False
    return not is_disjoint or None in one or None in other or not one.isdisjoint(other)


def _touched(op: Operation) -> _Touched:
    found = _Touched()
    found.add(op)
    for region in op.regions:
        for inner in region.walk():
            found.add(inner)
    return found


# ---- one pair of loops ----


class _Numbers:
    """Equal numbers for values that two bodies compute alike from the same values outside."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}

    def of_body(self, loop: Lanes) -> dict[Value, int]:
        """The numbers of a body's values; the loop's index is number 0."""
        known = {loop.body.args[0]: 0}
        for op in loop.body.ops:
            if op.results:
                known[op.result] = self._number(self._key(op, known))
        return known

    def operands(self, op: Operation, known: dict[Value, int]) -> tuple[int, ...]:
        return tuple(known[v] if v in known else self._number(v) for v in op.operands)

    def _key(self, op: Operation, known: dict[Value, int]) -> Hashable:
        attributes = tuple((name, attribute_key(value)) for name, value in sorted(op.attributes.items()))
        segments = tuple(count for _, count in op.segments.values())
        return type(op), segments, self.operands(op, known), attributes, op.result.type

    def _number(self, key: Hashable) -> int:
        return self._numbers.setdefault(key, len(self._numbers) + 1)


class _Pair:
    """An earlier loop and a later one that could become one."""

    def __init__(self, first: Lanes, second: Lanes) -> None:
        self.first, self.second = first, second
        numbers = _Numbers()
        self.known = {**numbers.of_body(first), **numbers.of_body(second)}
        self.numbers = numbers
        self.touched = (_touched(first), _touched(second))

    def may_fuse(self, *, is_disjoint: bool) -> bool:
        """True if lane by lane is as good as one loop after the other, and saves reading something."""
        one, other = self._streams(self.first), self._streams(self.second)
        if one.isdisjoint(other) or len(one | other) > MOST_STREAMS:
            return False
        return self._may_interleave(is_disjoint=is_disjoint)

    def _may_interleave(self, *, is_disjoint: bool) -> bool:
        one, other = self.touched
        if _overlap(one.written, other.written | other.read, is_disjoint=is_disjoint):
            return False
        if _overlap(other.written, one.read, is_disjoint=is_disjoint):
            return False
        return all(self.is_read_in_place(buffer) for buffer in self._written_by_one())

    def _written_by_one(self) -> set[Value]:
        """The buffers that both touch and one writes."""
        one, other = self.touched
        return (one.buffers_written & (other.buffers_read | other.buffers_written)) | (
            other.buffers_written & one.buffers_read
        )

    def is_read_in_place(self, buffer: Value) -> bool:
        """True if each lane of both loops touches one place of the buffer, which is no other lane's."""
        places = set()
        for loop in (self.first, self.second):
            for op in loop.body.ops:
                if not isinstance(op, (Read, Write)) or whole_buffer(op.buffer) is not buffer:
                    continue
                if op.buffer is not buffer or loop.body.args[0] not in op.indices:
                    return False
                places.add(self._place(op))
        return len(places) == 1

    def _place(self, op: Read | Write) -> tuple[int, ...]:
        return self.numbers.operands(op, self.known)[-len(op.indices) :]

    def _streams(self, loop: Lanes) -> set[Hashable]:
        """The memory that a loop goes through, lane by lane."""
        found: set[Hashable] = set()
        for op in loop.body.ops:
            if isinstance(op, (Load, Store)):
                found.add(self.numbers.operands(op, self.known)[0])
            elif isinstance(op, (Read, Write)) and loop.body.args[0] in op.indices:
                found.add((whole_buffer(op.buffer), self._place(op)))
        return found

    # ---- the change ----

    def fuse(self) -> Lanes:
        """Put the second body behind the first; the loops are replaced by one."""
        first, second = self.first, self.second
        made = {self.known[op.result]: op.result for op in first.body.ops if op.results and not op.effects}
        made |= {self.known[op.result]: op.result for op in first.body.ops if isinstance(op, Load)}
        held: dict[Hashable, Value] = {}  # what buffers hold at a lane's place
        for op in first.body.ops:
            self._note_place(op, op, held)
        own = first.body.terminator
        assert own is not None
        yielded = list(own.operands)
        own.erase()
        builder = Builder(first.body)
        mapping = {second.body.args[0]: first.body.args[0]}
        for op in second.body.ops[:-1]:
            kept = self._held(op, held) if isinstance(op, Read) else None
            if kept is None and op.results and not isinstance(op, Read):
                kept = made.get(self.known[op.result])
            if kept is not None:
                mapping[op.result] = kept
                continue
            builder.location = op.location
            copy = builder.insert(clone_operation(op, mapping))
            self._note_place(op, copy, held)
        yielded += [mapping.get(v, v) for v in second.body.ops[-1].operands]
        builder.create(Yield, *yielded)
        return self._replace(first.body)

    def _note_place(self, op: Operation, copy: Operation, held: dict[Hashable, Value]) -> None:
        """Remember what a buffer holds after `op`, of which `copy` is in the fused body."""
        if isinstance(op, (Read, Write)) and self._is_known(op):
            assert isinstance(copy, (Read, Write))
            held[(op.buffer, self._place(op))] = copy.result if isinstance(copy, Read) else copy.value

    def _held(self, op: Read, held: dict[Hashable, Value]) -> Value | None:
        return held.get((op.buffer, self._place(op))) if self._is_known(op) else None

    def _is_known(self, op: Read | Write) -> bool:
        """True if only lanes themselves change what they find at a place of their own."""
        written = self.touched[0].buffers_written | self.touched[1].buffers_written
        return whole_buffer(op.buffer) not in written or self.is_read_in_place(whole_buffer(op.buffer))

    def _replace(self, body: Region) -> Lanes:
        first, second = self.first, self.second
        body.parent = None
        stores = first if first.stream else second
        fused = Lanes(
            {"low": first.low, "high": first.high, "pads": [*first.pads, *second.pads]},
            {
                "width": max(first.width, second.width),
                **_given(
                    combines=(*first.combines, *second.combines),
                    extent=max(first.extent, second.extent),
                    stream=stores.stream,
                    stream_axes=stores.stream_axes,
                    prefetch=max(first.prefetch, second.prefetch),
                ),
            },
            [r.type for r in (*first.results, *second.results)],
            [body],
            first.location,
        )
        Builder.before_op(first).insert(fused)
        for old, new in zip((*first.results, *second.results), fused.results, strict=True):
            old.replace_all_uses_with(new)
            new.name = old.name
        first.regions = []
        first.erase()
        second.erase()
        return fused


def _agree(first: Lanes, second: Lanes) -> bool:
    """True if both loops visit the same lanes, and fold and store them in ways that one loop can."""
    if first.low is not second.low or first.high is not second.high:
        return False
    if len(first.results) + len(second.results) > MOST_FOLDS:
        return False
    folds = [loop for loop in (first, second) if loop.combines]
    if len(folds) == 2 and (first.extent != second.extent or bool(first.pads) != bool(second.pads)):
        return False
    return not (first.stream or second.stream) or not (_stores(first) and _stores(second))


def _given(**attributes: object) -> dict[str, object]:
    """The attributes that are not as by default."""
    return {name: value for name, value in attributes.items() if value}


def _stores(loop: Lanes) -> bool:
    return any(isinstance(op, Store) for op in loop.body.ops)


def _is_fusible(op: Operation) -> bool:
    """True for a loop that only computes, reads and writes, and is not run twice in doubt."""
    if not isinstance(op, Lanes) or op.general:
        return False
    if any(inner.regions or isinstance(inner, Running) for inner in op.body.ops):
        return False
    for combine, result in zip(op.combines, op.results, strict=False):
        is_float = isinstance(result.type, ScalarType) and result.type.is_float
        if combine in ARG_COMBINES or (combine in ("max", "min") and is_float):
            return False
    return not _touched(op).is_fence


# ---- a region ----


class _Fuser:
    """Fuses the loops that stand in one region."""

    def __init__(self, region: Region, *, is_disjoint: bool) -> None:
        self.region = region
        self.is_disjoint = is_disjoint
        self.fusible: dict[Operation, bool] = {}
        self.touches: dict[Operation, _Touched] = {}

    def run(self) -> None:
        for op in list(self.region.ops):
            if isinstance(op, Lanes) and self.is_fusible(op):
                self.move_up(op)

    def move_up(self, loop: Lanes) -> None:
        """Fuse a loop with the nearest one above that shares what it reads, if it may move there."""
        needed = set(_operands_from_outside(loop))
        moving: list[Operation] = []  # what the loop needs, from the last to the first
        touched = self.touched(loop)
        position = self.region.index_of(loop)
        for op in reversed(self.region.ops[max(position - MOST_PASSED, 0) : position]):
            if (
                isinstance(op, Lanes)
                and _agree(op, loop)
                and needed.isdisjoint(op.results)
                and self.is_fusible(op)
            ):
                pair = _Pair(op, loop)
                if pair.may_fuse(is_disjoint=self.is_disjoint):
                    for needs in reversed(moving):
                        Builder.before_op(op).insert(needs.detach())
                    pair.fuse()
                    return
            if not needed.isdisjoint(op.results):
                if op.effects or op.regions:
                    return
                moving.append(op)
                needed |= set(op.operands)
            elif (op.effects or op.regions) and self.touched(op).meets(touched, is_disjoint=self.is_disjoint):
                return

    def is_fusible(self, op: Operation) -> bool:
        if op not in self.fusible:
            self.fusible[op] = _is_fusible(op)
        return self.fusible[op]

    def touched(self, op: Operation) -> _Touched:
        if op not in self.touches:
            self.touches[op] = _touched(op)
        return self.touches[op]


def _operands_from_outside(loop: Lanes) -> list[Value]:
    inside = {loop.body.args[0], *(r for op in loop.body.ops for r in op.results)}
    return [*loop.operands, *(v for op in loop.body.ops for v in op.operands if v not in inside)]
