"""Operations that rename lanes: they move no data by themselves and lower to index maps."""

from __future__ import annotations

import math
from typing import Any

from blocklang.ir.core import Operation
from blocklang.ir.declaration import attribute, operand, operation, result
from blocklang.ir.index_map import Const, Dim, IndexMap, reshape_map
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
