"""Scratch memory of one worker: zero at creation, aligned, grown on demand.

Each thread that runs programs has one arena for all kernels, as a program keeps nothing in it after its end.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading

import numpy as np

from blocklang.abi import LAUNCH_NUMBER, SCRATCH_ALIGNMENT


class Arena:
    """At least `size` zeroed bytes at `address`, a multiple of SCRATCH_ALIGNMENT, and before them the number
    of the launch that uses them (`blocklang.abi.LAUNCH_NUMBER`).

    Raises:
        MemoryError: the system does not have them.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        # np.zeros takes fresh pages from the system where the size is large: only touched ones cost memory.
        if size > sys.maxsize - 2 * SCRATCH_ALIGNMENT:
            raise MemoryError(size)  # NumPy would call it a wrong shape
        self._memory = np.zeros(size + 2 * SCRATCH_ALIGNMENT, np.uint8)
        start = int(self._memory.ctypes.data) - LAUNCH_NUMBER
        self.address = start + -start % SCRATCH_ALIGNMENT
        self._number = ctypes.c_int64.from_address(self.address + LAUNCH_NUMBER)
        # Any start does, but one that other bytes of an arena are unlikely to look like.
        self._number.value = int.from_bytes(os.urandom(8), "little") >> 2

    def begin_launch(self) -> None:
        """Another number: nothing in the arena is of the launch that begins."""
        self._number.value += 1


class _Local(threading.local):
    arena: Arena | None = None


_local = _Local()


def scratch_address(size: int) -> int:
    """The address of this thread's arena of at least `size` bytes, for a launch that begins; valid until the
    thread asks for more.
    """
    arena = _local.arena
    if arena is None or arena.size < size:
        _local.arena = None  # give the old one back before the larger one is taken
        arena = _local.arena = Arena(max(size, SCRATCH_ALIGNMENT))
    arena.begin_launch()
    return arena.address
