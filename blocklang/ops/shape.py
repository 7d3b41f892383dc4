"""Operations that rename lanes: they move no data by themselves and lower to index maps.

`cat` is the one with two operands: each of its lanes is a lane of one of them, chosen by the lane's index.
"""

from __future__ import annotations

import math
from typing import Any

from blocklang.ir.core import Operation
from blocklang.ir.declaration import attribute, operand, operation, result
from blocklang.ir.index_map import Const, Dim, IndexExpr, IndexMap, add, modulo, reshape_map, scale
from blocklang.ir.types import BlockType, Type, shape_of
from blocklang.ops.constraints import Block


class ShapeOperation(Operation):
    """Base of shape operations; `index_map` says which operand lane each result lane is."""

    source = operand(Block)

    def index_map(self) -> IndexMap:
        """From an index of the result to an index of the operand."""
        raise AssertionError(f"{self.name} must define its index map")


def _expanded(op: Any) -> Type:
    source = op.source.type
    if not 0 <= op.axis <= source.rank:
        raise ValueError(f"axis {op.axis} is out of range for rank {source.rank}")
    return BlockType(source.element, (*source.shape[: op.axis], 1, *source.shape[op.axis :]))


@operation("expand_dims")
class ExpandDims(ShapeOperation):
    """A new axis of extent 1 at position `axis`.

    %b = expand_dims %a, axis=1 : block<128x1xf32>
    """

    axis = attribute(int)
    output = result(_expanded)

    def index_map(self) -> IndexMap:
        rank = len(shape_of(self.result.type))
        return IndexMap(rank, tuple(Dim(i) for i in range(rank) if i != self.axis))


def _broadcast(op: Any) -> Type:
    source = op.source.type
    if len(op.shape) != source.rank or any(
        s not in (1, t) for s, t in zip(source.shape, op.shape, strict=True)
    ):
        raise ValueError(f"cannot broadcast {source.shape} to {op.shape}")
    return BlockType(source.element, op.shape)


@operation("broadcast")
class Broadcast(ShapeOperation):
    """Axes of extent 1 repeated to the extents of `shape`, which has the same rank.

    %b = broadcast %a, shape=[128, 64] : block<128x64xf32>
    """

    shape = attribute(tuple)
    output = result(_broadcast)

    def index_map(self) -> IndexMap:
        source = self.source.type.shape
        return IndexMap(len(source), tuple(Dim(i) if n != 1 else Const(0) for i, n in enumerate(source)))


def _reshaped(op: Any) -> Type:
    if math.prod(op.shape) != op.source.type.numel or not op.shape:
        raise ValueError(f"cannot reshape {op.source.type.shape} to {op.shape}")
    return BlockType(op.source.type.element, op.shape)


@operation("reshape")
class Reshape(ShapeOperation):
    """The same lanes in row-major order under another shape.

    %b = reshape %a, shape=[32, 4] : block<32x4xf32>
    """

    shape = attribute(tuple)
    output = result(_reshaped)

    def index_map(self) -> IndexMap:
        return reshape_map(self.source.type.shape, self.shape)


def _transposed(op: Any) -> Type:
    source = op.source.type
    if sorted(op.order) != list(range(source.rank)):
        raise ValueError(f"{op.order} is not an order of {source.rank} axes")
    return BlockType(source.element, tuple(source.shape[i] for i in op.order))


@operation("trans")
class Trans(ShapeOperation):
    """Axes in another order: axis k of the result is axis `order[k]` of the operand.

    %b = trans %a, order=[1, 0] : block<64x128xf32>
    """

    order = attribute(tuple)
    output = result(_transposed)

    def index_map(self) -> IndexMap:
        rank = len(self.order)
        return IndexMap(rank, tuple(Dim(self.order.index(i)) for i in range(rank)))


def _sliced(op: Any) -> Type:
    source = op.source.type
    if not 0 <= op.axis < source.rank:
        raise ValueError(f"axis {op.axis} is out of range for rank {source.rank}")
    last = op.start + (op.extent - 1) * op.step
    if op.extent < 1 or op.step == 0 or not all(0 <= i < source.shape[op.axis] for i in (op.start, last)):
        raise ValueError(
            f"{op.extent} lanes from {op.start} by {op.step} leave the extent {source.shape[op.axis]}"
        )
    return BlockType(source.element, (*source.shape[: op.axis], op.extent, *source.shape[op.axis + 1 :]))


@operation("slice")
class Slice(ShapeOperation):
    """Some lanes of an axis: lane k of the result is lane `start + k * step` of the operand.

    A negative step walks the axis backwards. Every lane must lie in the operand.

    %b = slice %a, axis=0, start=3, step=-1, extent=4 : block<4xf32>
    """

    axis = attribute(int)
    start = attribute(int, default=0)
    step = attribute(int, default=1)
    extent = attribute(int)
    output = result(_sliced)

    def index_map(self) -> IndexMap:
        dims: list[IndexExpr] = [Dim(i) for i in range(len(shape_of(self.result.type)))]
        walk = Const(0) if self.extent == 1 else scale(dims[self.axis], self.step)
        dims[self.axis] = add(walk, Const(self.start))
        return IndexMap(len(dims), tuple(dims))


def _joined(op: Any) -> Type:
    first, second = op.first.type, op.second.type
    if not 0 <= op.axis < first.rank:
        raise ValueError(f"axis {op.axis} is out of range for rank {first.rank}")
    others = [s[: op.axis] + s[op.axis + 1 :] for s in (first.shape, second.shape)]
    if first.element != second.element or first.rank != second.rank or others[0] != others[1]:
        raise ValueError(f"cannot join {first} and {second} along axis {op.axis}")
    extent = first.shape[op.axis] + second.shape[op.axis]
    return BlockType(first.element, (*first.shape[: op.axis], extent, *first.shape[op.axis + 1 :]))


@operation("cat")
class Cat(Operation):
    """The lanes of two blocks behind each other along an axis: first those of the first operand.

    All other extents are equal.

    %b = cat %x, %y, axis=0 : block<256xf32>
    """

    first = operand(Block)
    second = operand(Block)
    axis = attribute(int)
    output = result(_joined)

    def index_maps(self) -> tuple[IndexMap, IndexMap]:
        """Where each operand is read for a lane of the result.

        Both maps stay inside of their operand at every lane; one that does not show the operand reads
        another lane of it, modulo its extent.
        """
        shape = shape_of(self.result.type)
        front, back = (v.type.shape[self.axis] for v in (self.first, self.second))
        maps = []
        for shift, extent in ((0, front), (-front % back, back)):
            dims: list[IndexExpr] = [Dim(i) for i in range(len(shape))]
            dims[self.axis] = modulo(add(Dim(self.axis), Const(shift)), extent, shape)
            maps.append(IndexMap(len(shape), tuple(dims)))
        return maps[0], maps[1]
