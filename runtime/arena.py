"""Scratch memory of one worker: zero at creation, aligned, grown on demand.

Each thread that runs programs has one arena for all kernels, as a program keeps nothing in it after its end.
"""

from __future__ import annotations

import sys
import threading

import numpy as np

from blocklang.abi import SCRATCH_ALIGNMENT


class Arena:
    """At least `size` zeroed bytes at `address`, a multiple of SCRATCH_ALIGNMENT.

    Raises:
        MemoryError: the system does not have them.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        # np.zeros takes fresh pages from the system where the size is large: only touched ones cost memory.
        if size > sys.maxsize - SCRATCH_ALIGNMENT:
            raise MemoryError(size)  # NumPy would call it a wrong shape
        self._memory = np.zeros(size + SCRATCH_ALIGNMENT, np.uint8)
        start = int(self._memory.ctypes.data)
        self.address = start + -start % SCRATCH_ALIGNMENT


class _Local(threading.local):
    arena: Arena | None = None


_local = _Local()


def scratch_address(size: int) -> int:
    """The address of this thread's arena of at least `size` bytes; valid until the thread asks for more."""
    arena = _local.arena
    if arena is None or arena.size < size:
        _local.arena = None  # give the old one back before the larger one is taken
        arena = _local.arena = Arena(max(size, SCRATCH_ALIGNMENT))
    return arena.address
