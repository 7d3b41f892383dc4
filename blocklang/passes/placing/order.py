"""Place sorts, histograms and gathers: operands lie in buffers, and results in buffers of their own."""

from __future__ import annotations

from blocklang.ir.builder import Builder
from blocklang.ir.core import Operation, Value
from blocklang.ir.types import I32, I64, SCALARS, U16, BlockType, BufferType, ScalarType
from blocklang.ops.creation import Constant
from blocklang.ops.elementwise import And, Bitcast, Cast, Compare, Maximum, Minimum, Select
from blocklang.ops.order import Gather, Histogram, HistogramBuffer, Sort, SortBuffer, TopK, sorted_key_buffer
from blocklang.ops.tile import Read, Write
from blocklang.passes.placing.nests import Nests, identity_indices

# Private histograms: equal neighbours do not wait for each other's addition. A byte costs 0.26 ns with 4
# tables and 0.30 with 8; 0.25 and 0.21 where all bytes are alike.
TABLES = 4
TABLE_ENTRIES = 8192  # of all tables together: they stay in the first cache


def place_whole_block(p: Nests, op: Operation) -> None:
    match op:
        case Sort():
            _sort(p, op, op.descending)
        case TopK():
            _sort(p, op, True)
        case Histogram():
            _histogram(p, op)
        case Gather():
            _gather(p, op)
        case _:
            raise AssertionError(f"{op.name} has no place")


def _in_buffer(p: Nests, value: Value) -> Value:
    """A buffer that holds the lanes of a value: its own, or one that is filled now."""
    if value in p.buffers:
        return p.buffers[value]
    assert isinstance(value.type, BlockType)
    target = p.buffer(value.type, value.name or "operand")
    p.write_blocks([(target, value)])
    return target


def _sort(p: Nests, op: Sort | TopK, descending: bool) -> None:
    source = _in_buffer(p, op.source)
    keys = p.buffer(sorted_key_buffer(op.source.type), "keys")
    output = p.buffer(op.output.type, op.output.name or "sorted")
    p.builder.create(SortBuffer, source, keys, output, descending=descending)
    p.buffers[op.output] = output


def _histogram(p: Nests, op: Histogram) -> None:
    """The lanes become numbers of bins first, `op.bins` for what is not counted."""
    shape, bins = op.source.type.shape, op.bins
    kind = U16 if bins <= U16.maximum else I32  # less to write and to read again
    numbers = p.buffer(BufferType(kind, shape), "bins")
    p.materialise_unaligned([v for v in (op.source, op.mask) if v is not None], shape)
    with p.nest(shape, p.copy_loop(op.source, shape)) as (nest, builder):
        at = identity_indices(1)
        lane = p.lane(builder, nest, op.source, at)
        counted = _is_below(builder, lane, bins)
        if op.mask is not None:
            counted = builder.value(And, counted, p.lane(builder, nest, op.mask, at))
        number = lane if lane.type == kind else builder.value(Cast, lane, result_types=[kind])
        none = builder.value(Constant, value=bins, result_types=[kind])
        builder.create(Write, numbers, builder.value(Select, counted, number, none), p.ssa(builder, nest, at))
    tables = p.buffer(BufferType(I32, (_table_count(shape[0], bins), bins + 1)), "tables")
    output = p.buffer(op.output.type, op.output.name or "histogram")
    p.builder.create(HistogramBuffer, numbers, tables, output)
    p.buffers[op.output] = output


def _table_count(lanes: int, bins: int) -> int:
    """Private histograms, as many as are small and cost less than the counting itself."""
    count = TABLES
    while count > 1 and count * bins > min(max(lanes, TABLES), TABLE_ENTRIES):
        count //= 2
    return count


def _is_below(builder: Builder, lane: Value, bins: int) -> Value:
    """True if an integer is one of 0, 1, ... bins - 1. A negative one is large when read as unsigned."""
    element = lane.type
    assert isinstance(element, ScalarType)
    limit = bins
    if element.is_signed:
        limit = min(bins, element.maximum + 1)
        element = SCALARS[f"u{element.bits}"]
        lane = builder.value(Bitcast, lane, result_types=[element])
    last = min(limit - 1, element.maximum)
    bound = builder.value(Constant, value=bool(last) if element.bits == 1 else last, result_types=[element])
    return builder.value(Compare, lane, bound, predicate="le")


def _gather(p: Nests, op: Gather) -> None:
    if op.source not in p.buffers:
        p.materialise(op.source)  # the schedule keeps it
    source, shape = p.buffers[op.source], op.index.type.shape
    target = p.buffer(op.output.type, op.output.name or "gathered")
    p.materialise_unaligned([op.index], shape)
    with p.nest(shape, p.copy_loop(op.index, shape)) as (nest, builder):
        at = identity_indices(len(shape))
        places = p.ssa(builder, nest, at)
        index = p.lane(builder, nest, op.index, at)
        inside = _clamped(builder, index, op.source.type.shape[op.axis] - 1)
        picked = [inside if axis == op.axis else place for axis, place in enumerate(places)]
        builder.create(Write, target, builder.value(Read, source, picked), places)
    p.buffers[op.output] = target


def _clamped(builder: Builder, index: Value, last: int) -> Value:
    """An index of any integer type as an i64 in [0, last], clamped in its own type."""
    element = index.type
    assert isinstance(element, ScalarType)
    if element.is_signed:
        index = builder.value(Maximum, index, builder.value(Constant, value=0, result_types=[element]))
    if last < element.maximum:
        index = builder.value(Minimum, index, builder.value(Constant, value=last, result_types=[element]))
    return index if element == I64 else builder.value(Cast, index, result_types=[I64])
