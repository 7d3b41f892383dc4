"""Which bytes of a memory are taken: offsets alone, no memory.

Best fit: a request goes to the smallest free piece that holds it, at the piece's start; of equal ones to the
lowest. Pieces that are given back join their free neighbours at once.

Invariants: every byte is in one piece, taken or free; no two free pieces touch; offsets and sizes are
multiples of the alignment.

Not thread-safe; whoever owns it has a lock.
"""

from __future__ import annotations

from bisect import bisect_left, insort


class Allocator:
    """The bytes [0, capacity), rounded down to the alignment, all of them free at first."""

    def __init__(self, capacity: int, alignment: int) -> None:
        self.alignment = alignment
        self.capacity = capacity // alignment * alignment
        self._taken: dict[int, int] = {}  # size by offset
        self._by_offset: list[tuple[int, int]] = []  # free pieces: (offset, size)
        self._by_size: list[tuple[int, int]] = []  # the same: (size, offset)
        if self.capacity:
            self._add(0, self.capacity)

    @property
    def free_bytes(self) -> int:
        """Bytes of all free pieces."""
        return self.capacity - sum(self._taken.values())

    @property
    def largest_free(self) -> int:
        """Bytes of the largest free piece."""
        return self._by_size[-1][0] if self._by_size else 0

    def free_pieces(self) -> list[tuple[int, int]]:
        """Offset and size of every free piece, ascending."""
        return list(self._by_offset)

    def size_of(self, offset: int) -> int:
        """Bytes of a taken piece."""
        return self._taken[offset]

    def take(self, size: int) -> int | None:
        """The offset of a new piece of at least `size` bytes; None if no free piece is large enough."""
        size = max(-(-size // self.alignment), 1) * self.alignment
        index = bisect_left(self._by_size, (size, 0))
        if index == len(self._by_size):
            return None
        found, offset = self._by_size[index]
        self._remove(offset, found)
        if found > size:
            self._add(offset + size, found - size)
        self._taken[offset] = size
        return offset

    def give_back(self, offset: int) -> None:
        """Free the piece that begins at `offset`. Raises KeyError if none is taken there."""
        start, size = offset, self._taken.pop(offset)
        index = bisect_left(self._by_offset, (offset, 0))
        following = self._by_offset[index] if index < len(self._by_offset) else None
        before = self._by_offset[index - 1] if index else None
        if following is not None and following[0] == offset + size:
            self._remove(*following)
            size += following[1]
        if before is not None and sum(before) == offset:
            self._remove(*before)
            start, size = before[0], size + before[1]
        self._add(start, size)

    def _add(self, offset: int, size: int) -> None:
        insort(self._by_offset, (offset, size))
        insort(self._by_size, (size, offset))

    def _remove(self, offset: int, size: int) -> None:
        del self._by_offset[bisect_left(self._by_offset, (offset, size))]
        del self._by_size[bisect_left(self._by_size, (size, offset))]
