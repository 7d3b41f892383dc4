"""Operations that order, count and pick lanes: sort, topk, histogram, gather.

`sort`, `topk`, `histogram` and `gather` are the same in Block IR and in abstract Tile IR: they take whole
blocks. Placed Tile IR has `sort_buffer` and `histogram_buffer`; a gather is reads of its source's buffer.

The order of elements is total, so that every mode gives the same bits: integers by value; floats by value,
-0.0 before +0.0, and every NaN behind +inf.
"""

from __future__ import annotations

from typing import Any

from blocklang.ir.core import Operation
from blocklang.ir.declaration import Effect, attribute, operand, operation, result
from blocklang.ir.float8 import FLOAT8
from blocklang.ir.types import I1, I8, I16, I32, I64, BlockType, BufferType, PointerType, ScalarType, Type
from blocklang.ops.constraints import Block, Buffer
from blocklang.ops.tile import PLACED, TileOperation

_KEYS = {8: I8, 16: I16, 32: I32, 64: I64}

_INFINITIES = {"f16": 0x7C00, "bf16": 0x7F80, "f32": 0x7F800000, "f64": 0x7FF0000000000000}


class WholeBlock(Operation):
    """Base of operations that take and give whole blocks in Block IR and in abstract Tile IR."""

    levels = frozenset({"block", "tile"})
    block_levels = frozenset({"block", "tile"})


def _top(type_: BlockType, k: int) -> BlockType:
    return BlockType(type_.element, (*type_.shape[:-1], k))


def _check_numbers(type_: BlockType) -> None:
    if isinstance(type_.element, PointerType):
        raise ValueError("pointers have no order")


@operation("sort")
class Sort(WholeBlock):
    """The elements of every row (along the last axis) in ascending or descending order. NaN comes last, with
    descending=true first; -0.0 is less than +0.0.

    %y = sort %x, descending=true : block<4x128xf32>
    """

    source = operand(Block)
    descending = attribute(bool, default=False)
    output = result(lambda op: op.source.type)

    def verify_op(self) -> None:
        _check_numbers(self.source.type)


@operation("topk")
class TopK(WholeBlock):
    """The first k elements of every row (along the last axis) in descending order: NaN first, then the
    largest.

    %y = topk %x, k=5 : block<4x5xf32>
    """

    source = operand(Block)
    k = attribute(int)
    output = result(lambda op: _top(op.source.type, op.k))

    def verify_op(self) -> None:
        _check_numbers(self.source.type)
        if not 1 <= self.k <= self.source.type.shape[-1]:
            raise ValueError(f"k is {self.k}, and a row has {self.source.type.shape[-1]} elements")


@operation("gather")
class Gather(WholeBlock):
    """Per lane of the index the element of the source at that index along the axis, and at the lane's own
    place along all others. An index out of range is clamped into it.

    %y = gather %x, %index, axis=1 : block<4x16xf32>
    """

    source = operand(Block)
    index = operand(Block)
    axis = attribute(int)
    output = result(lambda op: op.index.type.with_element(op.source.type.element))

    def verify_op(self) -> None:
        source, index = self.source.type, self.index.type
        if not isinstance(index.element, ScalarType) or not index.element.is_integer or index.element == I1:
            raise ValueError("a gather needs integers as indices")
        if source.rank != index.rank or not 0 <= self.axis < source.rank:
            raise ValueError(f"cannot gather from {source} by {index} along axis {self.axis}")
        others = [a for a in range(source.rank) if a != self.axis]
        if any(source.shape[a] != index.shape[a] for a in others):
            raise ValueError("source and index must agree in every axis but the gathered one")


@operation("histogram")
class Histogram(WholeBlock):
    """How often each of the numbers 0, 1, ... bins - 1 occurs in a block of integers, as i32. Other numbers,
    and lanes whose mask is false, are not counted.

    %h = histogram %x, bins=16 : block<16xi32>
    """

    source = operand(Block)
    mask = operand(Block, optional=True)
    bins = attribute(int)
    output = result(lambda op: BlockType(I32, (op.bins,)))

    def verify_op(self) -> None:
        source = self.source.type
        if source.rank != 1 or not isinstance(source.element, ScalarType) or not source.element.is_integer:
            raise ValueError("a histogram needs a block of integers of rank 1")
        if self.mask is not None and self.mask.type != source.with_element(I1):
            raise ValueError("the mask of a histogram is a block of bools of the same shape")
        if self.bins < 1:
            raise ValueError("a histogram needs at least one bin")


# ---- placed ----


def key_type(element: ScalarType) -> ScalarType:
    """The integer type whose order stands for the order of an element type while a row is sorted."""
    return _KEYS[max(element.bits, 8)]


def top_bits(element: ScalarType) -> int:
    """The largest bits without a sign that are no NaN: infinity, if the float type has one."""
    if element.name in FLOAT8:
        return FLOAT8[element.name].top
    return _INFINITIES[element.name]


def nan_bits(element: ScalarType) -> int:
    """The bits that stand for every NaN of a float type."""
    if element.name in FLOAT8:
        return FLOAT8[element.name].nan
    infinity = _INFINITIES[element.name]
    return infinity | (infinity & -infinity) >> 1


def has_negative_zero(element: ScalarType) -> bool:
    """False for the 8-bit floats whose only NaN has the bits that are -0 elsewhere."""
    return element.name not in FLOAT8 or FLOAT8[element.name].has_negative_zero


def padded_row(extent: int) -> int:
    """Elements of a row while it is sorted: a power of two."""
    return 1 << (extent - 1).bit_length()


def sorted_key_buffer(source: Any) -> BufferType:
    """The type of the scratch row in which `sort_buffer` works."""
    return BufferType(key_type(source.element), (padded_row(source.shape[-1]),))


@operation("sort_buffer")
class SortBuffer(TileOperation):
    """Sort every row of `source` and write as many of its first elements as a row of `output` has. `keys` is
    room to work in, whose contents are lost. `output` is another buffer than `source`.

    sort_buffer %x, %keys, %y, descending=true
    """

    source = operand(Buffer)
    keys = operand(Buffer)
    output = operand(Buffer)
    descending = attribute(bool, default=False)
    effects = frozenset({Effect.READ_BUFFER, Effect.WRITE_BUFFER})
    levels = PLACED

    def verify_op(self) -> None:
        source, output = self.source.type, self.output.type
        rows: Type = BufferType(source.element, (*source.shape[:-1], output.shape[-1]))
        if output != rows or not 1 <= output.shape[-1] <= source.shape[-1]:
            raise ValueError("the output has the rows of the source, or their first elements")
        if self.keys.type != sorted_key_buffer(source):
            raise ValueError(f"a row of {source} needs keys in a {sorted_key_buffer(source)}")


@operation("histogram_buffer")
class HistogramBuffer(TileOperation):
    """Count the bins 0, 1, ... of `source` into `output`; a number equal to the length of `output` is not
    counted, and there are no others. Each row of `tables` is a histogram of some of the lanes, with one more
    bin at its end; its contents are lost.

    histogram_buffer %bins, %tables, %h
    """

    source = operand(Buffer)
    tables = operand(Buffer)
    output = operand(Buffer)
    effects = frozenset({Effect.READ_BUFFER, Effect.WRITE_BUFFER})
    levels = PLACED

    def verify_op(self) -> None:
        source, tables, output = self.source.type, self.tables.type, self.output.type
        if {str(b.element) for b in (tables, output)} != {"i32"} or output.rank != 1:
            raise ValueError("counts are i32")
        if str(source.element) not in ("u16", "i32"):
            raise ValueError("bins are u16 or i32")
        if source.rank != 1 or tables.rank != 2 or tables.shape[1] != output.shape[0] + 1:
            raise ValueError("a table has one bin more than the output")
