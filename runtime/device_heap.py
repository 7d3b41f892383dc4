"""The global memory of an emulated device: address space, pieces for arrays, and guards around them.

As much address space as the device has memory is reserved when the heap is made; only pages that are touched
cost memory of this machine. Each piece has `GUARD_BYTES` of a pattern before and at least as many behind it.
A byte of a guard that has changed is an `Overrun`; it is found when the array is freed and by `overruns`, and
said once: the pattern is renewed.

Threads may use a heap at once. A process that is forked has a copy of the heap as of all its memory. Pieces
end in finalisers, which may run at any time, also while the same thread holds the lock: they put the piece on
a list, which whoever takes the lock next empties.
"""

from __future__ import annotations

import errno
import gc
import mmap
import os
import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from blocklang.diagnostics import Location, OutOfDeviceMemory
from blocklang.runtime.allocator import Allocator
from blocklang.runtime.leases import Lease, Piece, place_of
from blocklang.target import Device, format_size

GUARD_BYTES = 1024
LEAST_ALIGNMENT, MOST_ALIGNMENT = 64, 256
_LISTED = 8  # arrays that an error lists
_RETURNED_PAGES_BYTES = 1 << 20  # from so many bytes on, the pages of a freed array go back to the system
_NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)

# Its period is the 256 bytes: no value that is stored again and again looks like it.
_PATTERN = bytes((index * 167 + 89) % 256 for index in range(GUARD_BYTES + MOST_ALIGNMENT))

_lock = threading.Lock()  # one for all heaps: what it guards takes microseconds


def hold_while_forking(lock: threading.Lock) -> None:
    """Let no process be forked while another thread holds the lock: what it guards is whole in the child."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)


hold_while_forking(_lock)


@dataclass(frozen=True)
class Overrun:
    """Bytes beside an array that something has written.

    Attributes:
        device: whose memory it is.
        array: the array, in words.
        side: 'before' or 'after' it.
        offset: of the first changed byte, from the array's first byte; negative before it.
        element: the same in elements, rounded down.
        bytes: from the first changed byte of the guard to its last.
        made: where the array was allocated.
    """

    device: str
    array: str
    side: str
    offset: int
    element: int
    bytes: int
    made: Location

    def __str__(self) -> str:
        count = "1 byte was" if self.bytes == 1 else f"{self.bytes} bytes were"
        return (
            f"{count} overwritten {self.side} {self.array}, allocated at {place_of(self.made)}; the first is "
            f"where element {self.element} would be (byte {self.offset})"
        )


@dataclass(frozen=True)
class MemoryUse:
    """How full a device's memory is.

    Attributes:
        capacity_bytes: of the device.
        bytes_in_use: of all arrays, without guards.
        reserved_bytes: with guards and alignment.
        peak_bytes: the most that `bytes_in_use` has been.
        largest_free_bytes: of the largest array that there is room for.
        arrays: how many there are.
        allocations: how many there have been.
    """

    capacity_bytes: int
    bytes_in_use: int
    reserved_bytes: int
    peak_bytes: int
    largest_free_bytes: int
    arrays: int
    allocations: int


class Heap:
    """The global memory of a device.

    Attributes:
        name: of the device.
        base: host address of its first byte.

    Raises:
        OutOfDeviceMemory: this machine does not have so much address space.
    """

    def __init__(self, device: Device) -> None:
        space = device.memory["global"]
        self.name = device.name
        self.capacity_bytes = space.capacity_bytes
        access = LEAST_ALIGNMENT if space.access_bytes is None else space.access_bytes.value
        alignment = min(max(1 << (access - 1).bit_length(), LEAST_ALIGNMENT), MOST_ALIGNMENT)
        self._memory = _reserve(device.name, self.capacity_bytes)
        self.base = int(np.frombuffer(self._memory, np.uint8).__array_interface__["data"][0])
        self._allocator = Allocator(self.capacity_bytes, alignment)
        self._pieces: dict[int, Piece] = {}
        self._ended: deque[Piece] = deque()
        self._found: list[Overrun] = []
        self._in_use = self._peak = self._allocations = 0

    @property
    def alignment(self) -> int:
        """Every array's address is a multiple of it."""
        return self._allocator.alignment

    def lease(self, bytes: int, words: str, element_bytes: int, name: str, made: Location) -> Lease:
        """Memory for an array.

        Raises:
            OutOfDeviceMemory: no free piece is large enough; says what there is and what fills it.
        """
        found = self._take(bytes, words, element_bytes, name, made)
        if found is None:
            gc.collect()  # arrays in cycles
            found = self._take(bytes, words, element_bytes, name, made)
        if found is None:
            raise self._full(bytes, words, made)
        return Lease(self, found)

    def _take(self, bytes: int, words: str, element_bytes: int, name: str, made: Location) -> Piece | None:
        with self._locked():
            offset = self._allocator.take(bytes + 2 * GUARD_BYTES)
            if offset is None:
                return None
            piece = Piece(offset + GUARD_BYTES, bytes, words, element_bytes, name, made)
            self._pieces[offset] = piece
            self._in_use += bytes
            self._peak = max(self._peak, self._in_use)
            self._allocations += 1
            for _, start, end in self._guards(piece):
                self._memory[start:end] = _PATTERN[: end - start]
            return piece

    def end(self, piece: Piece) -> None:
        """Nobody uses a piece any more; called by finalisers."""
        if sys.is_finalizing():
            return
        self._ended.append(piece)
        if _lock.acquire(blocking=False):
            try:
                self._give_back()
            finally:
                _lock.release()

    def overruns(self, piece: Piece | None = None) -> list[Overrun]:
        """What was written beside the arrays, or beside one, and not said before: it will not be again."""
        with self._locked():
            if piece is not None:
                return self._look_at(piece)
            found, self._found = self._found, []
            for each in self._pieces.values():
                found += self._look_at(each)
            return found

    def use(self) -> MemoryUse:
        """How full the memory is."""
        with self._locked():
            return MemoryUse(
                self.capacity_bytes,
                self._in_use,
                self._allocator.capacity - self._allocator.free_bytes,
                self._peak,
                max(self._allocator.largest_free - 2 * GUARD_BYTES, 0),
                len(self._pieces),
                self._allocations,
            )

    # ---- with the lock held ----

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with _lock:
            self._give_back()
            yield
            self._give_back()

    def _give_back(self) -> None:
        while self._ended:
            piece = self._ended.popleft()
            self._found += self._look_at(piece)
            offset = piece.start - GUARD_BYTES
            del self._pieces[offset]
            self._in_use -= piece.bytes
            self._return_pages(piece)
            self._allocator.give_back(offset)

    def _return_pages(self, piece: Piece) -> None:
        if piece.bytes < _RETURNED_PAGES_BYTES or not hasattr(self._memory, "madvise"):
            return
        page = mmap.PAGESIZE
        first = -(-piece.start // page) * page
        length = (piece.start + piece.bytes) // page * page - first
        self._memory.madvise(mmap.MADV_DONTNEED, first, length)

    def _guards(self, piece: Piece) -> tuple[tuple[str, int, int], ...]:
        """The guards of a piece: side, and where each begins and ends in the heap."""
        offset = piece.start - GUARD_BYTES
        end = piece.start + piece.bytes
        return (
            ("before", offset, piece.start),
            ("after", end, offset + self._allocator.size_of(offset)),
        )

    def _look_at(self, piece: Piece) -> list[Overrun]:
        found: list[Overrun] = []
        for side, start, end in self._guards(piece):
            now, pattern = self._memory[start:end], _PATTERN[: end - start]
            if now == pattern:
                continue
            changed = [
                index for index, pair in enumerate(zip(now, pattern, strict=True)) if pair[0] != pair[1]
            ]
            offset = start - piece.start + changed[0]
            element = offset // piece.element_bytes
            span = changed[-1] - changed[0] + 1
            found.append(Overrun(self.name, str(piece), side, offset, element, span, piece.made))
            self._memory[start:end] = pattern
        return found

    def _full(self, bytes: int, words: str, made: Location) -> OutOfDeviceMemory:
        use = self.use()
        with self._locked():
            largest = sorted(self._pieces.values(), key=lambda piece: -piece.bytes)[:_LISTED]
        lines = [
            f"\n    {piece} | {format_size(piece.bytes)} | allocated at {place_of(piece.made)}"
            for piece in largest
        ]
        listed = f"; the largest are{''.join(lines)}" if lines else ""
        return OutOfDeviceMemory(
            f"{self.name} has no room for {format_size(bytes)} ({words}): it holds "
            f"{format_size(use.capacity_bytes)}, {format_size(use.bytes_in_use)} are in use by "
            f"{use.arrays} array{'' if use.arrays == 1 else 's'}, and the largest free piece is "
            f"{format_size(use.largest_free_bytes)}",
            location=made,
            help=f"free arrays that are not needed any more, or make this one smaller{listed}",
        )


def _reserve(name: str, size: int) -> mmap.mmap:
    """Address space of which only touched pages cost memory."""
    try:
        if not hasattr(mmap, "MAP_PRIVATE"):
            return mmap.mmap(-1, size)
        return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE)
    except (OSError, OverflowError) as reason:
        if isinstance(reason, OSError) and reason.errno not in (errno.ENOMEM, errno.EINVAL, errno.EAGAIN):
            raise
        raise OutOfDeviceMemory(
            f"this machine has no {format_size(size)} of address space for the memory of {name}: {reason}",
            help="raise the limit (`ulimit -v unlimited`, vm.overcommit_memory), or describe a device with "
            f"less: `blocklang devices show {name}` prints a file to change memory.global.bytes in",
        ) from reason
