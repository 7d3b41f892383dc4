"""Make a kernel count what each of its accesses to memory moves.

    placed @k(%x: ptr<f32>, %n: i64) {
      %zero = constant value=0 : i64
      lanes %zero, %n, width=8 {
        (%i: i64):
        %p = offset %x, %i : ptr<f32>
        %v = load %p : f32
        store %p, %v
        yield
      }
      return
    }

becomes (both accesses move a lane in every round of the loop, so they share their counters)

    placed @k(%x: ptr<f32>, %n: i64, %counters: ptr<i64>) {
      %v0 = program_id axis=0 : i32
      ...                                       # the program's place in the grid, times its two counters
      %row = offset %counters, %v9 : ptr<i64>
      %zero = constant value=0 : i64
      lanes %zero, %n, width=8 {
        (%i: i64):
        %p = offset %x, %i : ptr<f32>
        %v = load %p : f32
        store %p, %v
        yield
      }
      %v10 = constant value=0 : i64
      %v11 = sub %n, %zero : i64
      %moves = maximum %v11, %v10 : i64
      %v12 = constant value=0 : i64
      %v13 = offset %row, %v12 : ptr<i64>
      %v14 = load %v13 : i64
      %v15 = add %v14, %moves : i64
      store %v13, %v15
      %v16 = cmp %n, %zero, predicate="gt" : i1
      %transfers = cast %v16 : i64
      %v17 = constant value=1 : i64
      %v18 = offset %row, %v17 : ptr<i64>
      %v19 = load %v18 : i64
      %v20 = add %v19, %transfers : i64
      store %v18, %v20
      return
    }

A move is one lane of a load, store, read or write whose mask holds, or one execution of a matrix product, of
a fold, a sort or a histogram of buffers. Moves are a product of loop extents wherever that is exact: an
access is counted behind the outermost loop in which its bounds are known, masks that are ranges of a loop's
index cut the extent, and masks that are the same in all lanes are tested once. Only other masks are counted
lane by lane, by one more fold of the `lanes` loop.

Global memory also counts transfers: one for each run over lanes (a row, say) if addresses grow steadily along
it; one for each lane if addresses or mask are irregular, and for accesses outside of lanes.

The regions of the user's loops and branches count how often they run, by the same rules.

Each program has counters of its own, so programs may run on several threads.

Requires: level placed; nothing may move code afterwards (counters are ordinary memory).
Keeps: everything that was there, and so every result.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from blocklang.abi import AccessCounts, CountedAccess, CountedRegion
from blocklang.ir.builder import Builder
from blocklang.ir.core import Kernel, Operation, Region, Value
from blocklang.ir.types import I32, I64, PointerType, ScalarType
from blocklang.ops.atomics import Atomic, AtomicRmw
from blocklang.ops.control import Condition, For, If, While, Yield
from blocklang.ops.creation import Constant, NumPrograms, ProgramId
from blocklang.ops.elementwise import Add, And, Cast, Compare, Maximum, Minimum, Mul, Sub
from blocklang.ops.memory import Load, Offset, Store, pointee
from blocklang.ops.order import HistogramBuffer, SortBuffer
from blocklang.ops.scan import ScanBuffers
from blocklang.ops.tile import ContractBuffers, Group, InBounds, Lanes, Read, TreeReduce, Write
from blocklang.passes.assign_spaces import buffer_behind

# ---- how often ----


@dataclass(frozen=True)
class _Range:
    """A mask that is a range of an index."""

    index: Value
    low: Value
    high: Value


@dataclass(frozen=True)
class _Extent:
    """How many rounds of a loop have what is counted: from the largest low to the smallest high."""

    lows: tuple[Value, ...]
    highs: tuple[Value, ...]
    is_lanes: bool


@dataclass(frozen=True)
class _Count:
    """How often something happens whenever the program has just passed `anchor`: the product of the extents,
    if all masks hold; times `folded`, if lanes were counted one by one.
    """

    anchor: Operation
    extents: tuple[_Extent, ...] = ()
    ranges: tuple[_Range, ...] = ()
    flags: tuple[Value, ...] = ()
    folded: Value | None = None

    def values(self) -> Iterator[Value]:
        """Everything that the count depends on."""
        for extent in self.extents:
            yield from (*extent.lows, *extent.highs)
        for mask in self.ranges:
            yield from (mask.index, mask.low, mask.high)
        yield from self.flags
        if self.folded is not None:
            yield self.folded


def _is_inside(value: Value, region: Region) -> bool:
    """True if `value` is defined in `region`, at any depth."""
    owner = value.owner
    while True:
        if owner is region:
            return True
        parent = owner.parent
        if parent is None or isinstance(parent, Kernel):
            return False
        owner = parent


def _counted_loop(op: Operation | None) -> tuple[Value, Value, Value] | None:
    """Index, low and high of a loop whose index takes every value of [low, high)."""
    if isinstance(op, (Group, Lanes)):
        return op.body.args[0], op.low, op.high
    if isinstance(op, For) and isinstance(op.start.type, ScalarType) and op.start.type.is_signed:
        step = op.step.defining_op
        if isinstance(step, Constant) and step.value == 1:
            return op.body.args[0], op.start, op.stop
    return None


def _climb(count: _Count) -> _Count | None:
    """The same count, taken behind the loop around its anchor; None if the loop's rounds may differ otherwise
    than by ranges of its index.
    """
    loop = count.anchor.parent_op
    bounds = _counted_loop(loop)
    if loop is None or bounds is None:
        return None
    index, low, high = bounds
    own = [r for r in count.ranges if r.index is index]
    extent = _Extent(
        (low, *(r.low for r in own if r.low is not low)),
        (high, *(r.high for r in own if r.high is not high)),
        isinstance(loop, Lanes),
    )
    others = tuple(r for r in count.ranges if r.index is not index)
    climbed = replace(count, anchor=loop, extents=(*count.extents, extent), ranges=others)
    if any(_is_inside(value, loop.regions[0]) for value in climbed.values()):
        return None
    return climbed


def _enclosing_lanes(op: Operation) -> Lanes | None:
    parent = op.parent_op
    while parent is not None and not isinstance(parent, Lanes):
        parent = parent.parent_op
    return parent


def _mask_of(op: Operation) -> Value | None:
    return op.mask if isinstance(op, (Load, Store, AtomicRmw)) else None


def _split_mask(op: Operation) -> tuple[tuple[_Range, ...], tuple[Value, ...]]:
    """The mask of an access as ranges of indices and other conditions."""
    ranges: list[_Range] = []
    flags: list[Value] = []
    mask = _mask_of(op)
    pending = [mask] if mask is not None else []
    while pending:
        mask = pending.pop()
        producer = mask.defining_op
        if isinstance(producer, And):
            pending += producer.operands
        elif isinstance(producer, InBounds):
            ranges.append(_Range(producer.index, producer.low, producer.high))
        elif not (isinstance(producer, Constant) and producer.value):
            flags.append(mask)
    return tuple(dict.fromkeys(ranges)), tuple(dict.fromkeys(flags))


# ---- steady addresses ----


def _is_steady(value: Value, body: Region) -> bool:
    """True if a number or address grows by the same step from each lane to the next."""
    if not _is_inside(value, body) or value is body.args[0]:
        return True
    op = value.defining_op
    match op:
        case Add() | Sub() | Offset():
            return all(_is_steady(v, body) for v in op.operands)
        case Cast() if isinstance(op.source.type, ScalarType) and not op.source.type.is_float:
            return _is_steady(op.source, body)
        case Mul():
            steady = all(_is_steady(v, body) for v in op.operands)
            return steady and any(_is_same_in_all(v, body) for v in op.operands)
    return _is_same_in_all(value, body)


def _is_same_in_all(value: Value, body: Region) -> bool:
    """True if a value is the same in every lane: computed from nothing but values from outside."""
    if value in body.args:
        return False
    if not _is_inside(value, body):
        return True
    op = value.defining_op
    if op is None:  # the index of a loop inside; what such a loop carries differs between lanes
        loop = value.owner.parent if isinstance(value.owner, Region) else None
        return isinstance(loop, For) and value is loop.body.args[0]
    if op.regions or isinstance(op, (Load, Read, Atomic)):
        return False
    return all(_is_same_in_all(v, body) for v in op.operands)


# ---- what is counted ----


@dataclass(frozen=True)
class _Moved:
    """Bytes that each execution of an operation moves."""

    operation: Operation
    space: str
    writes: bool
    bytes: int


def _moved_by(op: Operation) -> Iterator[_Moved]:
    match op:
        case Load() | Store():
            yield _Moved(op, "global", isinstance(op, Store), pointee(op.pointer.type).bytes)
        case Atomic():
            size = pointee(op.segment("pointer")[0].type).bytes
            yield _Moved(op, "global", False, size)
            yield _Moved(op, "global", True, size)
        case Read() | Write():
            yield _Moved(op, _space_of(op.buffer), isinstance(op, Write), op.buffer.type.element.bytes)
        case TreeReduce():
            reads, writes = _accesses_of_tree(op.extent)
            for row in op.buffers:
                size = row.type.element.bytes
                yield _Moved(op, _space_of(row), False, reads * size)
                yield _Moved(op, _space_of(row), True, writes * size)
        case ScanBuffers():
            for buffer in op.buffers:
                yield _Moved(op, _space_of(buffer), False, _bytes_of(buffer))
                yield _Moved(op, _space_of(buffer), True, _bytes_of(buffer))
        case ContractBuffers():
            for operand in (op.a, op.b) if op.start == "zero" else (op.a, op.b, op.acc):
                yield _Moved(op, _space_of(operand), False, _bytes_of(operand))
            yield _Moved(op, _space_of(op.acc), True, _bytes_of(op.acc))
        case SortBuffer() | HistogramBuffer():  # each buffer once; what goes on in between is the device's
            yield _Moved(op, _space_of(op.source), False, _bytes_of(op.source))
            yield _Moved(op, _space_of(op.output), True, _bytes_of(op.output))


def _space_of(value: Value) -> str:
    return str(buffer_behind(value).space)


def _bytes_of(value: Value) -> int:
    """Bytes of a matrix, padding left out."""
    return int(value.type.numel * value.type.element.bytes)  # type: ignore[attr-defined]


def _accesses_of_tree(extent: int) -> tuple[int, int]:
    """Elements that a fold over neighbours reads and writes in a row: two reads and a write per pair, one of
    each for an odd last element, and one read of the result.
    """
    reads, writes = 1, 0
    while extent > 1:
        pairs, odd = divmod(extent, 2)
        reads, writes = reads + 2 * pairs + odd, writes + pairs + odd
        extent = pairs + odd
    return reads, writes


# ---- lanes counted one by one ----


def _fold_lanes(op: Operation, lanes: Lanes) -> Value:
    """Make `lanes` fold how often `op` moves; its new result, as an i64 behind the loop."""
    moves = _thread(op, lanes)
    lanes.body.terminator.set_segment("values", [*lanes.body.terminator.operands, moves])
    if lanes.pads:
        zero = Builder.before_op(lanes).value(Constant, value=0, result_types=[I32])
        lanes.set_segment("pads", [*lanes.pads, zero])
    lanes.attributes["combines"] = (*lanes.combines, "sum")
    lanes.results.append(Value(I32, lanes, "lanes_moved"))
    return Builder.after_op(lanes).value(Cast, lanes.results[-1], result_types=[I64])


def _thread(op: Operation, lanes: Lanes) -> Value:
    """Per lane how often `op` moves, at the end of the body of `lanes`: carried through what lies between."""
    builder = Builder.after_op(op)
    mask = _mask_of(op)
    if mask is None:
        moves = builder.value(Constant, value=1, result_types=[I32])
    else:
        moves = builder.value(Cast, mask, result_types=[I32])
    region = op.parent
    assert region is not None
    while region is not lanes.body:
        outer = region.parent
        assert isinstance(outer, Operation)
        moves = _carry_out(outer, region, moves)
        region = outer.parent
        assert region is not None
    return moves


def _carry_out(op: Operation, region: Region, moves: Value) -> Value:
    """A new result of control flow: the sum of `moves`, a value of its region `region`."""
    zero = Builder.before_op(op).value(Constant, value=0, result_types=[I32])
    match op:
        case If():
            if op.else_region is None:
                other = Region()
                Builder(other).create(Yield)
                other.parent = op
                op.regions.append(other)
            for branch in op.regions:
                _yield_also(branch, moves if branch is region else zero)
        case For():
            op.set_segment("inits", [*op.inits, zero])
            _yield_also(region, _added(region, moves))
        case While():
            _carry_through_while(op, region, moves, zero)
        case _:
            raise AssertionError(f"{op.name} does not lie inside of lanes")
    op.results.append(Value(I32, op, "moves"))
    return op.results[-1]


def _carry_through_while(op: While, region: Region, moves: Value, zero: Value) -> None:
    op.set_segment("inits", [*op.inits, zero])
    before = _added(op.before, moves) if region is op.before else op.before.add_argument(I32, "moves")
    end = op.before.terminator
    assert isinstance(end, Condition)
    end.set_segment("values", [*end.values, before])
    after = _added(op.after, moves) if region is op.after else op.after.add_argument(I32, "moves")
    _yield_also(op.after, after)


def _added(region: Region, moves: Value) -> Value:
    """The region's new carried argument plus `moves`, at the region's end."""
    carried = region.add_argument(I32, "moves")
    assert region.terminator is not None
    return Builder.before_op(region.terminator).value(Add, carried, moves)


def _yield_also(region: Region, value: Value) -> None:
    end = region.terminator
    assert isinstance(end, Yield)
    end.set_segment("values", [*end.values, value])


# ---- the counters ----


@dataclass
class _Counting:
    """The counters of one kernel, and the code that is still to be written behind the anchors."""

    kernel: Kernel
    counters: Value
    accesses: list[CountedAccess] = field(default_factory=list)
    regions: list[CountedRegion] = field(default_factory=list)
    indices: dict[tuple[_Count, bool], int] = field(default_factory=dict)

    def run(self) -> AccessCounts:
        for op in list(self.kernel.walk()):
            if isinstance(op, (If, For, While)) and _enclosing_lanes(op) is None:
                self.count_regions(op)
            moved = list(_moved_by(op))
            if moved:
                self.count(op, moved)
        row = self.row()
        for (count, is_transfers), index in reversed(self.indices.items()):
            self.emit(row, count, is_transfers, index)
        return AccessCounts(tuple(self.accesses), len(self.indices), tuple(self.regions))

    def row(self) -> Value:
        """Where the counters of the running program are."""
        builder = Builder.before_op(self.kernel.body.ops[0])

        def wide(cls: type[Operation], axis: int) -> Value:
            return builder.value(Cast, builder.value(cls, axis=axis, result_types=[I32]), result_types=[I64])

        program = wide(ProgramId, 2)
        for axis in (1, 0):
            rows = builder.value(Mul, program, wide(NumPrograms, axis))
            program = builder.value(Add, rows, wide(ProgramId, axis))
        length = builder.value(Constant, value=len(self.indices), result_types=[I64])
        return builder.value(Offset, self.counters, builder.value(Mul, program, length))

    def count_regions(self, op: If | For | While) -> None:
        for number, region in enumerate(op.regions):
            if isinstance(op, While) and region is op.before:  # runs once more than the other
                continue
            assert region.terminator is not None
            count = self.formula(region.terminator)
            runs = self.index(count, is_transfers=False)
            self.regions.append(CountedRegion(op.name, number, runs, op.location))

    def count(self, op: Operation, moved: list[_Moved]) -> None:
        count = self.formula(op)
        moves = self.index(count, is_transfers=False)
        transfers = None
        if moved[0].space == "global":
            is_row = count.folded is None and any(e.is_lanes for e in count.extents) and _is_row(op)
            transfers = self.index(count, is_transfers=True) if is_row else moves
        for one in moved:
            self.accesses.append(
                CountedAccess(op.name, one.space, one.writes, one.bytes, moves, transfers, op.location)
            )

    def formula(self, op: Operation) -> _Count:
        """How often `op` moves, taken behind as many loops as possible."""
        ranges, flags = _split_mask(op)
        count = _Count(op, ranges=ranges, flags=flags)
        while (climbed := _climb(count)) is not None:
            count = climbed
        lanes = _enclosing_lanes(count.anchor)
        if lanes is None:
            return count
        folded = _fold_lanes(op, lanes)
        return _Count(folded.defining_op or lanes, folded=folded)

    def index(self, count: _Count, *, is_transfers: bool) -> int:
        return self.indices.setdefault((count, is_transfers), len(self.indices))

    # ---- emission ----

    def emit(self, row: Value, count: _Count, is_transfers: bool, index: int) -> None:
        """Add a count to its counter, behind the anchor."""
        is_end = isinstance(count.anchor, (Yield, Condition))
        builder = Builder.before_op(count.anchor) if is_end else Builder.after_op(count.anchor)
        factors = [self.mask(builder, r) for r in count.ranges] + list(count.flags)
        numbers = [builder.value(Cast, self.all_of(builder, factors), result_types=[I64])] if factors else []
        numbers += [self.extent(builder, e, is_transfers) for e in count.extents]
        numbers += [count.folded] if count.folded is not None else []
        total = numbers[0] if numbers else builder.value(Constant, value=1, result_types=[I64])
        for number in numbers[1:]:
            total = builder.value(Mul, total, number)
        total.name = total.name or ("transfers" if is_transfers else "moves")
        place = builder.value(Offset, row, builder.value(Constant, value=index, result_types=[I64]))
        builder.create(Store, place, builder.value(Add, builder.value(Load, place), total))

    def mask(self, builder: Builder, mask: _Range) -> Value:
        return builder.value(InBounds, mask.index, mask.low, mask.high)

    def all_of(self, builder: Builder, masks: list[Value]) -> Value:
        both = masks[0]
        for mask in masks[1:]:
            both = builder.value(And, both, mask)
        return both

    def extent(self, builder: Builder, extent: _Extent, is_transfers: bool) -> Value:
        """Rounds of a loop; for transfers a loop over lanes is one, or none if it is empty."""
        low = self.bound(builder, extent.lows, Maximum)
        high = self.bound(builder, extent.highs, Minimum)
        if is_transfers and extent.is_lanes:
            return builder.value(Cast, builder.value(Compare, high, low, predicate="gt"), result_types=[I64])
        zero = builder.value(Constant, value=0, result_types=[I64])
        return builder.value(Maximum, builder.value(Sub, high, low), zero)

    def bound(self, builder: Builder, values: tuple[Value, ...], pick: type[Operation]) -> Value:
        wide = [v if v.type == I64 else builder.value(Cast, v, result_types=[I64]) for v in values]
        bound = wide[0]
        for other in wide[1:]:
            bound = builder.value(pick, bound, other)
        return bound


def _is_row(op: Operation) -> bool:
    """True if the lanes of an access to global memory lie at steady distances."""
    lanes = _enclosing_lanes(op)
    return lanes is not None and _is_steady(op.pointer, lanes.body)  # type: ignore[attr-defined]


def count_accesses(kernel: Kernel) -> AccessCounts:
    """Add the argument `%counters` and the code that counts. Returns what each counter counts."""
    assert kernel.level == "placed"
    counters = kernel.body.add_argument(PointerType(I64), "counters")
    kernel.argument_attributes.append({})
    return _Counting(kernel, counters).run()
