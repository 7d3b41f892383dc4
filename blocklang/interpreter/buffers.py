"""On-chip memory of placed Tile IR: arenas of bytes, and typed, shaped buffers in them.

A buffer with an offset is a window of its space's arena, so that two buffers that the memory plan lets share
bytes do share them, and a wrong plan gives a wrong result here as it does on a device. Bytes start as a
pattern that reads as NaN, as -1 or as true: what nobody wrote is seen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from blocklang.diagnostics import InterpreterError
from blocklang.interpreter.dtypes import BOOL, Array, dtype_of
from blocklang.ir.core import Kernel
from blocklang.ir.types import BufferType, Type
from blocklang.ops.tile import BufferOp

UNWRITTEN = np.uint8(0xFF)


def unwritten(size: int) -> Array:
    return np.full(size, UNWRITTEN, np.uint8)


def make_arenas(kernel: Kernel) -> dict[str, Array]:
    """The memory of each space that the kernel's buffers have offsets in."""
    sizes: dict[str, int] = {}
    for op in kernel.walk():
        if isinstance(op, BufferOp) and op.offset >= 0:
            sizes[op.space] = max(sizes.get(op.space, 0), op.offset + op.byte_count())
    return {space: unwritten(size) for space, size in sizes.items()}


@dataclass(frozen=True)
class Buffer:
    """Memory with a type and a shape.

    Attributes:
        bytes: as many as the elements take, padding included.
        panel: columns of a panel, 0 for row-major elements (see `blocklang.ops.tile.BufferOp`).
    """

    bytes: Array
    type: BufferType
    panel: int = 0

    @property
    def elements(self) -> Array:
        """All elements in the order of memory; a bool is a byte."""
        dtype = dtype_of(self.type)
        return self.bytes.view(np.uint8 if dtype == BOOL else dtype)

    def read(self, indices: list[Array], live: Array | None) -> Array:
        """The elements at indices that broadcast together; any number where a lane is not live."""
        return self._values(self.elements[self._position(indices, live)])

    def write(self, value: Array, indices: list[Array], live: Array | None) -> None:
        """Set the elements at indices that broadcast together, in row-major order of the live lanes."""
        position = self._position(indices, live)
        masks = () if live is None else (live,)
        position, value, *masks = np.broadcast_arrays(position, value, *masks)  # type: ignore[assignment]
        if masks:
            position, value = position[masks[0]], value[masks[0]]
        self.elements[position.reshape(-1)] = value.reshape(-1)

    def matrix(self) -> Array:
        """A copy of the elements in the buffer's shape."""
        return self._values(
            self.elements[self._position(list(np.indices(self.type.shape, sparse=True)), None)]
        )

    def set_matrix(self, value: Array) -> None:
        """Set all elements from an array of the buffer's shape."""
        self.elements[self._position(list(np.indices(self.type.shape, sparse=True)), None)] = value

    def viewed(self, type_: Type) -> Buffer:
        """The same bytes under another shape; the elements must be row-major."""
        if self.panel or not isinstance(type_, BufferType):
            raise InterpreterError(f"a view of {self.type} as {type_} needs row-major elements")
        return Buffer(self.bytes, type_)

    def part(self, index: int, type_: Type) -> Buffer:
        """One of the parts that the first axis counts; the elements must be row-major."""
        count = self.type.shape[0]
        if self.panel or not isinstance(type_, BufferType) or not 0 <= index < count:
            raise InterpreterError(f"{self.type} has no part {index}")
        size = len(self.bytes) // count
        return Buffer(self.bytes[index * size : (index + 1) * size], type_)

    def _values(self, elements: Array) -> Array:
        return np.asarray(elements != 0) if dtype_of(self.type) == BOOL else np.asarray(elements)

    def _position(self, indices: list[Array], live: Array | None) -> Array:
        """Where elements stand in memory; lanes that are not live give 0.

        Raises:
            InterpreterError: the index of a live lane lies outside of the shape.
        """
        shape = self.type.shape
        inside = np.asarray(True)
        for index, extent in zip(indices, shape, strict=True):
            inside = np.asarray(inside & (index >= 0) & (index < extent))
        if not (inside if live is None else inside | ~live).all():
            raise InterpreterError(f"an index is outside of {self.type}")
        return np.where(inside, self._linear(indices), 0)

    def _linear(self, indices: list[Array]) -> Array:
        if self.panel:
            row, column = indices
            panel, within = np.divmod(column, self.panel)
            return np.asarray((panel * self.type.shape[0] + row) * self.panel + within)
        position = np.asarray(np.int64(0))
        for index, extent in zip(indices, self.type.shape, strict=True):
            position = np.asarray(position * extent + index)
        return position
