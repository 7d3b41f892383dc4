"""The one memory layout: how a launch hands arguments, grid and scratch memory to machine code.

`codegen` emits functions of this form and `runtime` calls them; they meet here and nowhere else.

The entry of a compiled kernel is

    void kernel(const void* arguments, const int32_t grid[3], int64_t begin, int64_t end, void* scratch)

It runs the programs with linear id begin <= id < end, in ascending order; axis 0 varies fastest: id = x +
grid[0] * (y + grid[1] * z). It keeps no state, so any number of threads may run disjoint ranges, each with
its own scratch arena of `scratch_bytes`, aligned to `SCRATCH_ALIGNMENT`.

`arguments` is an array of 8-byte slots, one per run-time argument in order. A number stands in the low
bytes of its slot (little-endian; a bool as a byte 0 or 1); a pointer is the address of the array's element
[0, ...].
"""

from __future__ import annotations

from dataclasses import dataclass, field

from blocklang.diagnostics import Location
from blocklang.ir.types import PointerType, ScalarType

SLOT_BYTES = 8
SCRATCH_ALIGNMENT = 64


@dataclass(frozen=True)
class BufferPlan:
    """Where a buffer of the kernel lives while a program runs."""

    name: str
    space: str
    offset: int
    bytes: int
    type: str
    first_use: int
    last_use: int


@dataclass(frozen=True)
class KernelAbi:
    """What a launch must know of a compiled kernel.

    Attributes:
        name: symbol of the entry.
        argument_names, argument_types: the run-time arguments, in slot order.
        written: per argument, True if the kernel may store through it.
        scratch_bytes: size of the arena that each worker provides.
        buffers: the memory plan, for reports and the emulator.
    """

    name: str
    argument_names: tuple[str, ...]
    argument_types: tuple[ScalarType | PointerType, ...]
    written: tuple[bool, ...]
    scratch_bytes: int
    buffers: tuple[BufferPlan, ...] = field(default=())

    @property
    def argument_bytes(self) -> int:
        return SLOT_BYTES * len(self.argument_types)


@dataclass(frozen=True)
class CountedAccess:
    """One operation of a counted kernel that moves bytes, and where its counts are.

    A counted kernel has one more argument, last: the address of an array of 64-bit counters, zero before the
    first program. `bytes * counters[moves]` bytes have been moved by this operation, in
    `counters[transfers]` transfers.

    Attributes:
        operation: name of the operation.
        space: the memory space of the bytes.
        writes: True if the bytes are written, False if they are read.
        bytes: bytes of one move: an element, or all that a matrix product or a fold touches.
        moves: index of the counter of moves.
        transfers: index of the counter of transfers; None on chip, where none are counted.
        location: the user's line.
    """

    operation: str
    space: str
    writes: bool
    bytes: int
    moves: int
    transfers: int | None
    location: Location


@dataclass(frozen=True)
class AccessCounts:
    """All counted operations of a kernel; `counters` is the length of the array."""

    accesses: tuple[CountedAccess, ...]
    counters: int


@dataclass(frozen=True)
class SpaceUsage:
    """How full a program makes an on-chip space: the most bytes that its plan has in use at once."""

    space: str
    peak_bytes: int
    capacity_bytes: int
