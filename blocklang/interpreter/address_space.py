"""Global memory during an interpreted launch: the byte ranges of its arrays, read and written by address.

Every access is checked: an address that belongs to no array of the launch is an error that names the nearest
one. The arrays are used in place. Any strides are right; an address need not be aligned. It is not a
sanitizer of strides: the gaps of a strided array belong to its range.

A kernel may get a table of addresses and make pointers of them. How far the memory behind such an address
reaches nobody knows, so once a pointer was made of an integer that lies in no array of the launch, what lies in
none is read and written as it is, unchecked, as compiled code does. (Read-only arrays stay so, and the lowest page
is nobody's.)
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.lib.array_utils import byte_bounds

from blocklang.diagnostics import InterpreterError, Location
from blocklang.interpreter.dtypes import Array, dtype_of
from blocklang.ir.types import ScalarType

# No system gives out the first page: an address there is an integer that nobody meant as one.
_LOWEST = np.uint64(4096)


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
        description: the array in words.
        start: the address of element [0, ...].
    """

    description: str
    start: int
    element_size: int
    low: int
    high: int
    writable: bool
    bytes: Array

    @classmethod
    def of(cls, name: str, array: Array | GlobalArray) -> Extent:
        if isinstance(array, np.ndarray):
            low, high = byte_bounds(array) if array.size else (address_of(array), address_of(array))
            dtype, writable = array.dtype, bool(array.flags.writeable)
        else:
            (low, high), dtype, writable = array.byte_range(), dtype_of(array.element), array.writable
        words = f"{name!r} ({dtype} of shape {tuple(array.shape)})"
        return cls(words, address_of(array), dtype.itemsize, low, high, writable, _bytes_at(low, high))

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


def _read(addresses: Array, dtype: np.dtype[Any]) -> Array:
    raw = b"".join(ctypes.string_at(address, dtype.itemsize) for address in addresses.tolist())
    return np.frombuffer(raw, np.uint8).view(dtype)


def _write(addresses: Array, data: Array) -> None:
    size = data.dtype.itemsize
    raw = np.ascontiguousarray(data).tobytes()
    for lane, address in enumerate(addresses.tolist()):
        ctypes.memmove(address, raw[lane * size : (lane + 1) * size], size)


def address_of(array: Array | GlobalArray) -> int:
    """The address of element [0, ...]."""
    if isinstance(array, np.ndarray):
        return int(array.__array_interface__["data"][0])
    return array.address


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


class AddressSpace:
    """The arrays of a launch.

    Args:
        arrays: name and array of every argument that is one. They must outlive this object.

    Attributes:
        is_open: the kernel knows addresses of memory beside the arrays.
    """

    def __init__(self, arrays: Iterable[tuple[str, Array | GlobalArray]]) -> None:
        self.extents = [Extent.of(name, array) for name, array in arrays]
        self.is_open = False

    def admit(self, addresses: Array) -> None:
        """Note that pointers were made of these integers."""
        if not self.is_open:
            flat = np.asarray(addresses).reshape(-1)
            self.is_open = bool(np.any(flat[_locate(flat, 1, self.extents)[1]] >= _LOWEST))

    def load(self, addresses: Array, live: Array | None, dtype: np.dtype[Any], location: Location) -> Array:
        """Read one element per address; lanes that are not live give 0 and touch nothing.

        Raises:
            InterpreterError: the address of a live lane lies in no array.
        """
        if live is not None:
            addresses, live = np.broadcast_arrays(addresses, live)
        flat = (addresses if live is None else addresses[live]).reshape(-1)
        places, outside = _locate(flat, dtype.itemsize, self.extents)
        outside, foreign = self._foreign(flat, outside)
        if outside.size:
            raise self._fault("load", addresses, live, outside, dtype.itemsize, location)
        loaded = np.zeros(flat.shape, dtype)
        if foreign.size:
            loaded[foreign] = _read(flat[foreign], dtype)
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
        writable = [extent for extent in self.extents if extent.writable]
        places, outside = _locate(flat, data.dtype.itemsize, writable)
        outside, foreign = self._foreign(flat, outside)
        if outside.size:
            raise self._fault("store", addresses, live, outside, data.dtype.itemsize, location)
        if foreign.size:
            _write(flat[foreign], data[foreign])
        for extent, lanes in places:
            view, index = extent.elements(flat[lanes], data.dtype)
            part = np.ascontiguousarray(data[lanes])
            view[index] = part if index.ndim == 1 else part.view(np.uint8).reshape(index.shape)

    def _foreign(self, flat: Array, outside: Array) -> tuple[Array, Array]:
        """Of the lanes outside of the arrays, those at fault, and those that are somebody else's memory."""
        if not (self.is_open and outside.size):
            return outside, outside[:0]
        addresses = flat[outside]
        is_foreign = addresses >= _LOWEST
        is_foreign[np.any([extent.holds(addresses, 1) for extent in self.extents], axis=0)] = False
        return outside[~is_foreign], outside[is_foreign]

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
        address = int(addresses[lane])
        where = f"lane [{', '.join(map(str, lane))}]: " if lane else ""
        if not self.extents:
            return InterpreterError(f"{action}, {where}the launch has no array", location=location)
        nearest = min(self.extents, key=lambda e: max(e.low - address, address + size - e.high, 0))
        if nearest.low <= address and address + size <= nearest.high:
            return InterpreterError(
                f"{action}, {where}the array {nearest.description} is read-only",
                location=location,
                help="pass a writable array",
            )
        element, rest = divmod(address - nearest.start, nearest.element_size)
        place = f"element offset {element}" + (f" and {rest} bytes" if rest else "")
        is_past = address + size > nearest.high
        beyond = address + size - nearest.high if is_past else nearest.low - address
        side = "past the end" if is_past else "before the start"
        return InterpreterError(
            f"{action} out of bounds, {where}{place} from the start of {nearest.description}: "
            f"{beyond} bytes {side}",
            location=location,
            help="mask the lanes that are outside of the array",
        )
