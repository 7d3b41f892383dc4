"""Calls a library that `blocklang build` made, on NumPy arrays.

A wheel has a copy of this file: it imports NumPy and the standard library alone. Arrays are passed in place,
as the address of their element [0, ...]; a kernel that needs strides has arguments for them.
"""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

Grid = int | tuple[int] | tuple[int, int] | tuple[int, int, int]

_MEMORY = 4  # BLOCKLANG_ERROR_MEMORY
_CPU = 5  # BLOCKLANG_ERROR_CPU
_INTEGERS = {
    f"{sign}int{bits}": getattr(ctypes, f"c_{sign}int{bits}")
    for sign in ("", "u")
    for bits in (8, 16, 32, 64)
}
_LIMITS = {name: (int(np.iinfo(name).min), int(np.iinfo(name).max)) for name in _INTEGERS}
_CTYPES: dict[str, Any] = _INTEGERS | {
    "bool": ctypes.c_bool,
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
}


class Argument(NamedTuple):
    """An argument of the C function.

    Attributes:
        name: for messages.
        dtype: NumPy's name of the type of the number, or of the array's elements.
        is_array: an array is passed.
        is_written: the kernel may write to it.
        multiple: what its address, or the number, is a multiple of.
    """

    name: str
    dtype: str
    is_array: bool
    is_written: bool
    multiple: int


class Kernel:
    """One function of a library.

    Args:
        library: the shared library.
        name: of the function.
        arguments: in order.
        has_restrict: there is a second function, for arrays that do not overlap.

    Raises:
        OSError: the library cannot be loaded here.
    """

    def __init__(self, library: Path, name: str, arguments: Sequence[Argument], has_restrict: bool) -> None:
        self.name = name
        self.arguments = tuple(arguments)
        self._library = ctypes.CDLL(str(library))
        self._anywhere = self._function(name)
        self._apart = self._function(f"{name}_restrict") if has_restrict else None
        for text in ("strerror", "cpu_level"):
            self._text(text).restype = ctypes.c_char_p

    def _function(self, symbol: str) -> Any:
        function = self._library[symbol]
        function.restype = ctypes.c_int
        types = [ctypes.c_void_p if each.is_array else c_type(each.dtype) for each in self.arguments]
        function.argtypes = [*[ctypes.c_int32] * 3, *types, ctypes.c_int32]
        return function

    def _text(self, name: str) -> Any:
        return getattr(self._library, f"{self.name}_{name}")

    @property
    def cpu_level(self) -> str | None:
        """The CPU level whose code runs; None if the library has none for this CPU."""
        level = self._text("cpu_level")()
        return None if level is None else str(level.decode())

    def launch(self, values: Sequence[Any], grid: Grid, num_threads: int | None) -> None:
        """Run every program of the grid and return when all have ended.

        Raises:
            TypeError: an argument is not of its type.
            ValueError: an array cannot be written or is not aligned, a number or the grid is out of range.
            MemoryError: the blocks of one program do not fit into memory.
            RuntimeError: the library has no code for this CPU.
        """
        extents = self._extents(grid)
        passed = [self._passed(each, value) for each, value in zip(self.arguments, values, strict=True)]
        threads = 0 if num_threads is None else self._integer("num_threads", num_threads, 1, 2**31 - 1)
        function = self._anywhere if self._apart is None or self._overlap(values) else self._apart
        status = function(*extents, *passed, threads)
        if status:
            text = f"{self.name}(): {self._text('strerror')(status).decode()}"
            kinds: dict[int, type[Exception]] = {_MEMORY: MemoryError, _CPU: RuntimeError}
            raise kinds.get(status, ValueError)(text)

    def _extents(self, grid: Grid) -> list[int]:
        given = grid if isinstance(grid, (tuple, list)) else (grid,)
        if not 1 <= len(given) <= 3:
            raise ValueError(f"{self.name}(): expected a grid of one to three extents, got {grid!r}")
        extents = [self._integer("grid", extent, 0, 2**31 - 1) for extent in given]
        return [*extents, 1, 1][:3]

    def _overlap(self, values: Sequence[Any]) -> bool:
        """Some array that is written may share bytes with another; by their ranges of addresses."""
        arrays = [(value, each) for each, value in zip(self.arguments, values, strict=True) if each.is_array]
        return any(
            (one.is_written or other.is_written) and np.may_share_memory(array, beside)
            for position, (array, one) in enumerate(arrays)
            for beside, other in arrays[position + 1 :]
        )

    def _passed(self, argument: Argument, value: Any) -> Any:
        if argument.is_array:
            return self._address(argument, value)
        if argument.dtype == "bool":
            if not isinstance(value, (bool, np.bool_)):
                raise self._wrong_type(argument.name, "a bool", value)
            return bool(value)
        if argument.dtype in _INTEGERS:
            whole = self._integer(argument.name, value, *_LIMITS[argument.dtype])
            if whole % argument.multiple:
                raise ValueError(
                    f"{self.name}() argument {argument.name!r}: expected a multiple of {argument.multiple}, "
                    f"as the function was built for, got {whole}"
                )
            return whole
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise self._wrong_type(argument.name, "a number", value) from None
        if argument.dtype in _CTYPES:
            return number
        rounded = np.array(number, dtype_of(argument.dtype))
        return int.from_bytes(rounded.tobytes(), "little")

    def _address(self, argument: Argument, value: Any) -> int:
        expected = f"an array of {argument.dtype}"
        if not isinstance(value, np.ndarray):
            raise self._wrong_type(argument.name, expected, value, "pass a NumPy array")
        if isinstance(value, np.ma.MaskedArray):
            raise self._wrong_type(argument.name, expected, value, "a kernel sees no mask: pass x.data")
        place = f"{self.name}() argument {argument.name!r}"
        if value.dtype.name != argument.dtype or not value.dtype.isnative:
            raise TypeError(
                f"{place}: expected {expected}, got one of {value.dtype}; convert it, "
                f"for instance with x.astype({argument.dtype!r})"
            )
        if argument.is_written and not value.flags.writeable:
            raise ValueError(
                f"{place}: expected an array that can be written, got a read-only one; pass a copy"
            )
        address = int(value.__array_interface__["data"][0])
        if address % argument.multiple:
            promised = argument.multiple > value.itemsize
            raise ValueError(
                f"{place}: expected an address that is a multiple of {argument.multiple}, got "
                f"{address % argument.multiple} more than one; pass a copy"
                + (", or build the function without :16" if promised else "")
            )
        return address

    def _integer(self, name: str, value: Any, low: int, high: int) -> int:
        try:
            number = operator.index(value)
        except TypeError:
            raise self._wrong_type(name, "an integer", value) from None
        if not low <= number <= high:
            raise ValueError(f"{self.name}() argument {name!r}: expected {low} to {high}, got {number}")
        return number

    def _wrong_type(self, name: str, expected: str, value: Any, remedy: str = "") -> TypeError:
        tail = f"; {remedy}" if remedy else ""
        got = type(value).__name__
        return TypeError(f"{self.name}() argument {name!r}: expected {expected}, got {got}{tail}")


def c_type(dtype: str) -> Any:
    """The ctypes type of a number; one that C has no type for goes as its bits."""
    return _CTYPES.get(dtype) or _CTYPES[f"uint{8 * dtype_of(dtype).itemsize}"]


def dtype_of(name: str) -> np.dtype[Any]:
    """The NumPy dtype of a name, those of the package ml_dtypes included."""
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes

        known: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return known
