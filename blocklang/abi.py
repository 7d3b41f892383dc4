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

import math
from dataclasses import dataclass, field

from blocklang.diagnostics import Location
from blocklang.ir.types import PointerType, ScalarType

SLOT_BYTES = 8
SCRATCH_ALIGNMENT = 64

# The list of events, whose address stands in the slot behind the arguments of a kernel that has any: the last
# record pushed, and how many found no memory.
EVENTS_HEAD = 0
EVENTS_LOST = 8
# A record: the address of the one pushed before it, the number of the operation in `KernelAbi.events`, the
# linear id of the program; behind them all elements of a printed value as they lie in memory, or the first
# lane for which an assertion failed, an i32. Records are memory of the C library's `malloc`.
EVENT_HEADER_BYTES = 24


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
class EventOperation:
    """A print or an assertion of a kernel.

    Attributes:
        is_assertion: False for a print.
        text: what stands before each printed value, or the assertion's message.
        type: of the printed elements; None if there is no value.
        shape: of the block; () for scalars.
        hex: show the bits.
        location: the user's line.
    """

    is_assertion: bool
    text: str
    type: ScalarType | PointerType | None
    shape: tuple[int, ...]
    hex: bool
    location: Location

    @property
    def element_bytes(self) -> int:
        """Bytes of an element in a record."""
        return 0 if self.type is None else self.type.bytes

    @property
    def payload_bytes(self) -> int:
        """Bytes of a record behind its header."""
        return self.element_bytes * (1 if self.is_assertion else math.prod(self.shape))


@dataclass(frozen=True)
class KernelAbi:
    """What a launch must know of a compiled kernel.

    Attributes:
        name: symbol of the entry.
        argument_names, argument_types: the run-time arguments, in slot order.
        written: per argument, True if the kernel may store through it.
        scratch_bytes: size of the arena that each worker provides.
        buffers: the memory plan, for reports and the emulator.
        events: what its programs print and assert, by number.
    """

    name: str
    argument_names: tuple[str, ...]
    argument_types: tuple[ScalarType | PointerType, ...]
    written: tuple[bool, ...]
    scratch_bytes: int
    buffers: tuple[BufferPlan, ...] = field(default=())
    events: tuple[EventOperation, ...] = field(default=())

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
