"""Who uses a piece of a device's memory, and until when.

A `Piece` is what was allocated for one array. The `Lease` of it lives as long as anything may still use its
bytes: the array and its views, a launch in flight, what DLPack gave out. When the last of them lets go the
bytes go back to the heap; `free()` only lets go of the array's own hold. So memory that someone can still
reach is never given to another array.

Small on purpose: launches import it to know device arrays, and nothing else of device memory.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from blocklang.diagnostics import Location

if TYPE_CHECKING:
    from blocklang.runtime.device_heap import Heap


def place_of(location: Location) -> str:
    """A line of the user's program, for the middle of a sentence."""
    return f"{os.path.basename(location.file)}:{location.line}"


class Piece:
    """What was allocated for an array.

    Attributes:
        start: offset of its first byte in the heap.
        bytes: of its elements.
        words: dtype and shape, for people.
        element_bytes: of one element.
        name: what the user calls it, or the last argument that it was; "" if neither is known.
        made: where the user's program allocated it.
        freed: where it freed it; None as long as it has not.
    """

    __slots__ = ("bytes", "element_bytes", "freed", "made", "name", "start", "words")

    def __init__(self, start: int, bytes: int, words: str, element_bytes: int, name: str, made: Location):
        self.start = start
        self.bytes = bytes
        self.words = words
        self.element_bytes = element_bytes
        self.name = name
        self.made = made
        self.freed: Location | None = None

    def __str__(self) -> str:
        return f"{self.name!r} ({self.words})" if self.name else self.words


class Lease:
    """A hold on a piece; NumPy's views of it keep it alive."""

    __slots__ = ("__weakref__", "heap", "piece")

    def __init__(self, heap: Heap, piece: Piece) -> None:
        self.heap = heap
        self.piece = piece

    def __del__(self) -> None:
        self.heap.end(self.piece)

    @property
    def device(self) -> str:
        """The name of the device whose memory it is."""
        return self.heap.name

    @property
    def address(self) -> int:
        """The host address of the piece's first byte."""
        return self.heap.base + self.piece.start

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """The bytes of the piece, for `numpy.asarray`, whose arrays keep their source."""
        return {
            "version": 3,
            "data": (self.address, False),
            "shape": (self.piece.bytes,),
            "typestr": "|u1",
        }
