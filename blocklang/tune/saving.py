"""Arrays that a kernel writes, kept as they were while it is measured.

What is kept is the memory from an array's first byte to its last, whatever its strides, so arrays of every
library are saved alike.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable

from blocklang.runtime.arrays import Array


class Saved:
    """Copies of the memory of some arrays."""

    def __init__(self) -> None:
        self._copies: dict[tuple[int, int], tuple[bytes, object]] = {}

    def add(self, arrays: Iterable[Array]) -> None:
        """Copy the memory of arrays, unless it was copied before."""
        for array in arrays:
            low, high = array.byte_range()
            if (low, high) not in self._copies and low < high and array.writable:
                self._copies[low, high] = (ctypes.string_at(low, high - low), array.owner)

    def restore(self) -> None:
        """Give every array its contents back. The last one copied is restored first.

        An array that was added later and overlaps an earlier one may hold what had been written meanwhile.
        """
        for (low, high), (contents, _) in reversed(self._copies.items()):
            ctypes.memmove(low, contents, high - low)
