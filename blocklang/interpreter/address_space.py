"""Global memory during an interpreted launch: the byte ranges of its arrays, read and written by address.

Every access is checked: an address that belongs to no array of the launch is an error that names the nearest
one. The arrays are used in place. Any strides are right; an address need not be aligned. It is not a
sanitizer of strides: the gaps of a strided array belong to its range.

Once a kernel has made a pointer of an integer, the launch does not know all the arrays any more, and every
address is right that leads to memory of the process.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.lib.array_utils import byte_bounds

from blocklang.diagnostics import InterpretedCheckError, InterpreterError, Location
from blocklang.interpreter.dtypes import Array, dtype_of
from blocklang.interpreter.mapped_memory import Mapping, mapped_memory
from blocklang.ir.types import ScalarType
from blocklang.ops.faults import BOUNDS, fault_error


class GlobalArray(Protocol):
    """An array by its description, whatever library owns it."""

    @property
    def address(self) -> int:
        """Of element [0, ...]."""
        ...

    @property
    def element(self) -> ScalarType: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def writable(self) -> bool: ...
    def byte_range(self) -> tuple[int, int]:
        """The addresses [low, high) that hold elements."""
        ...


@dataclass(frozen=True)
class Extent:
    """The bytes of one array, from its lowest address to the end of its highest element.

    Attributes:
        name: of the argument.
        description: the array in words.
        start: the address of element [0, ...].
    """

    name: str
    description: str
    start: int
    element_size: int
    low: int
    high: int
    writable: bool
    bytes: Array

    @classmethod
    def of(cls, name: str, array: Array | GlobalArray) -> Extent:
        low, high = byte_range_of(array)
        if isinstance(array, np.ndarray):
            dtype, writable = array.dtype, bool(array.flags.writeable)
        else:
            dtype, writable = dtype_of(array.element), array.writable
        words = f"{name!r} ({dtype} of shape {tuple(array.shape)})"
        return cls(name, words, address_of(array), dtype.itemsize, low, high, writable, _bytes_at(low, high))

    @classmethod
    def of_mapping(cls, mapping: Mapping) -> Extent:
        low, high = mapping.low, mapping.high
        return cls("", "memory of the process", low, 1, low, high, mapping.writable, _bytes_at(low, high))

    def holds(self, addresses: Array, size: int) -> Array:
        """Which addresses start an element of `size` bytes that lies wholly inside."""
        if self.high - self.low < size:
            return np.zeros(addresses.shape, np.bool_)
        return np.asarray((addresses >= np.uint64(self.low)) & (addresses <= np.uint64(self.high - size)))

    def elements(self, addresses: Array, dtype: np.dtype[Any]) -> tuple[Array, Array]:
        """A view of the bytes as `dtype`, or as bytes, and the indices of the addressed elements in it."""
        offsets = (addresses - np.uint64(self.low)).astype(np.int64)
        size = dtype.itemsize
        phase = int(offsets[0]) % size if offsets.size else 0
        if bool(np.all(offsets % size == phase)):
            count = (len(self.bytes) - phase) // size
            return self.bytes[phase : phase + count * size].view(dtype), offsets // size
        return self.bytes, offsets[:, None] + np.arange(size)


def _bytes_at(low: int, high: int) -> Array:
    if low == high:
        return np.empty(0, np.uint8)
    raw = (ctypes.c_uint8 * (high - low)).from_address(low)
    return np.frombuffer(memoryview(raw), np.uint8)


def address_of(array: Array | GlobalArray) -> int:
    """The address of element [0, ...]."""
    if isinstance(array, np.ndarray):
        return int(array.__array_interface__["data"][0])
    return array.address


def byte_range_of(array: Array | GlobalArray) -> tuple[int, int]:
    """The addresses [low, high) that hold elements; empty if there are none."""
    if not isinstance(array, np.ndarray):
        return array.byte_range()
    return byte_bounds(array) if array.size else (address_of(array), address_of(array))


def _locate(flat: Array, size: int, extents: list[Extent]) -> tuple[list[tuple[Extent, Any]], Array]:
    """Each array that is addressed with the lanes that address it, and the lanes that address none."""
    places: list[tuple[Extent, Any]] = []
    waiting = np.ones(flat.shape, np.bool_)
    for extent in extents:
        inside = extent.holds(flat, size) & waiting
        if inside.all():
            return ([(extent, slice(None))] if inside.size else []), np.empty(0, np.intp)
        if inside.any():
            places.append((extent, inside))
            waiting &= ~inside
    return places, np.flatnonzero(waiting)


def _mapped_extents(addresses: Array) -> list[Extent]:
    """The pieces of the process's memory in which addresses lie, of which there are few."""
    mappings = mapped_memory()
    starts = np.array([mapping.low for mapping in mappings], np.uint64)
    following = np.unique(np.searchsorted(starts, addresses, side="right"))
    return [Extent.of_mapping(mappings[i - 1]) for i in following.tolist() if i > 0]


class AddressSpace:
    """The arrays of a launch.

    Args:
        arrays: name and array of every argument that is one. They must outlive this object.
    """

    def __init__(self, arrays: Iterable[tuple[str, Array | GlobalArray]]) -> None:
        self.extents = [Extent.of(name, array) for name, array in arrays]
        self._is_open = False
        self._foreign: list[Extent] = []

    def open(self) -> None:
        """Let addresses in that belong to no array of the launch, as a pointer made of an integer may."""
        self._is_open = True

    def _locate(
        self, flat: Array, size: int, is_store: bool = False
    ) -> tuple[list[tuple[Extent, Any]], Array]:
        """Each piece of memory that is addressed with the lanes that address it, and the lanes left over."""
        known = [extent for extent in self.extents if extent.writable or not is_store]
        places, outside = _locate(flat, size, known)
        if not outside.size or not self._is_open:
            return places, outside
        if _locate(flat[outside], size, self._foreign)[1].size:  # memory comes and goes
            self._foreign += _mapped_extents(flat[outside])
        # An array that may not be written lies in memory that may.
        protected = [extent for extent in self.extents if not extent.writable] if is_store else []
        _, unprotected = _locate(flat[outside], size, protected)
        foreign = [extent for extent in self._foreign if extent.writable or not is_store]
        if len(unprotected) < len(outside):
            return places, np.delete(outside, unprotected)
        return _locate(flat, size, known + foreign)

    @staticmethod
    def holds(addresses: Array, size: int, extents: Iterable[Extent]) -> Array:
        """Which addresses start an element of `size` bytes that lies wholly in one of some arrays."""
        held = np.zeros(addresses.shape, np.bool_)
        for extent in extents:
            held |= extent.holds(addresses, size)
        return held

    def load(self, addresses: Array, live: Array | None, dtype: np.dtype[Any], location: Location) -> Array:
        """Read one element per address; lanes that are not live give 0 and touch nothing.

        Raises:
            InterpreterError: the address of a live lane lies in no array.
        """
        if live is not None:
            addresses, live = np.broadcast_arrays(addresses, live)
        flat = (addresses if live is None else addresses[live]).reshape(-1)
        places, outside = self._locate(flat, dtype.itemsize)
        if outside.size:
            raise self._fault("load", addresses, live, outside, dtype.itemsize, location)
        loaded = np.zeros(flat.shape, dtype)
        for extent, lanes in places:
            view, index = extent.elements(flat[lanes], dtype)
            loaded[lanes] = np.ascontiguousarray(view[index]).view(dtype).reshape(-1)
        if live is None:
            return loaded.reshape(addresses.shape)
        result = np.zeros(addresses.shape, dtype)
        result[live] = loaded
        return result

    def store(self, addresses: Array, values: Array, live: Array | None, location: Location) -> None:
        """Write one element per address in row-major order of the lanes; only live lanes touch memory.

        Nothing is written if any live lane is at fault.

        Raises:
            InterpreterError: the address of a live lane lies in no array, or in one that is read-only.
        """
        if live is None:
            addresses, values = np.broadcast_arrays(addresses, values)
            flat, data = addresses.reshape(-1), values.reshape(-1)
        else:
            addresses, values, live = np.broadcast_arrays(addresses, values, live)
            flat, data = addresses[live], values[live]
        places, outside = self._locate(flat, data.dtype.itemsize, is_store=True)
        if outside.size:
            raise self._fault("store", addresses, live, outside, data.dtype.itemsize, location)
        for extent, lanes in places:
            view, index = extent.elements(flat[lanes], data.dtype)
            part = np.ascontiguousarray(data[lanes])
            view[index] = part if index.ndim == 1 else part.view(np.uint8).reshape(index.shape)

    def _fault(
        self,
        action: str,
        addresses: Array,
        live: Array | None,
        outside: Array,
        size: int,
        location: Location,
    ) -> InterpreterError:
        """The error for the first faulty access; `outside` counts the live lanes in row-major order."""
        lanes = np.argwhere(np.ones(addresses.shape, np.bool_) if live is None else live)
        lane = tuple(int(i) for i in lanes[outside[0]])
        address = int(addresses[lane].astype(np.int64))
        protected = [extent for extent in self.extents if extent.low <= address <= extent.high - size]
        if protected:
            where = f"lane [{', '.join(map(str, lane))}]: " if lane else ""
            return InterpreterError(
                f"{action}, {where}the array {protected[0].description} is read-only",
                location=location,
                help="pass a writable array",
            )
        return fault_error(
            InterpretedCheckError, BOUNDS, action, lane, size, [address], self.extents, location
        )
