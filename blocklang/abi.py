"""The one memory layout: how a launch hands arguments, grid and scratch memory to machine code.

`codegen` emits functions of this form; `runtime` and the launcher of `aot` call them. They meet here and
nowhere else.

The entry of a compiled kernel is

    void kernel(const void* arguments, const int32_t grid[3], int64_t begin, int64_t end, void* scratch)

It runs the programs with linear id begin <= id < end, in ascending order; axis 0 varies fastest: id = x +
grid[0] * (y + grid[1] * z). It keeps no state but in its arena, so any number of threads may run disjoint
ranges, each with its own arena: `scratch_bytes` from an address that is a multiple of
`SCRATCH_ALIGNMENT`, and the launch's number before them (`LAUNCH_NUMBER`).

`arguments` is an array of 8-byte slots, one per run-time argument in order. A number stands in the low
bytes of its slot (little-endian; a bool as a byte 0 or 1); a pointer is the address of the array's element
[0, ...]. Arguments that the user did not write, and that say where an array begins and ends, are among them
in a kernel that checks its accesses; they come last.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from blocklang.diagnostics import Location, UsageError
from blocklang.ir.types import PointerType, ScalarType

SLOT_BYTES = 8
SCRATCH_ALIGNMENT = 64

# A loop over lanes may read or write one whole step past the end of a buffer's row: the widest step (64
# lanes of 8 bytes) stays inside.
SLACK_BYTES = 64 * 8

# Before the scratch memory, at this offset from its address, stands a 64-bit number that no earlier launch
# had in this arena: what a program left behind is of this launch only if it bears the number.
LAUNCH_NUMBER = -SCRATCH_ALIGNMENT

# The list of events, whose address stands in the slot behind the arguments of a kernel that has any: the last
# record pushed, and how many found no memory.
EVENTS_HEAD = 0
EVENTS_LOST = 8
# A record: the address of the one pushed before it, the number of the operation in `KernelAbi.events`, the
# linear id of the program; behind them all elements of a printed value as they lie in memory, or the first
# lane for which an assertion failed, an i32, or the lane at fault and the details, each in a slot. Records
# are memory of the C library's `malloc`.
EVENT_HEADER_BYTES = 24


class BufferPlan(NamedTuple):
    """Where a buffer of the kernel lives while a program runs."""

    name: str
    space: str
    offset: int
    bytes: int
    type: str
    first_use: int
    last_use: int


@dataclass(frozen=True)
class TileTable:
    """The memory of one `memoise`: tiles that the programs of a launch share, found by keys.

    Attributes:
        keys: how many 64-bit numbers tell two tiles apart.
        tiles: how many there may be.
        tile_bytes: of the elements of one tile.

    From its start, a multiple of `SCRATCH_ALIGNMENT`:

        number   i64: the launch that the rest belongs to
        used     i64: how many tiles are filled
        hits     i64: how often one was found
        limit    i64: how many there may be, 0 once few have been found
        keys     those that are looked for
        heads    i32 per hash value: number + 1 of the first entry, 0 for none
        entries  per tile its keys, then an i64: number + 1 of the next entry with the same hash
        tiles    `pitch` apart
    """

    NUMBER = 0
    USED = 8
    HITS = 16
    LIMIT = 24
    KEYS = 32

    keys: int
    tiles: int
    tile_bytes: int

    @property
    def heads(self) -> int:
        """Hash values: a power of two, about one per tile."""
        return max(2, 1 << (self.tiles - 1).bit_length())

    @property
    def heads_at(self) -> int:
        return self.KEYS + 8 * self.keys

    @property
    def entries_at(self) -> int:
        return self.heads_at + 4 * self.heads

    @property
    def tiles_at(self) -> int:
        return aligned(self.entries_at + self.tiles * 8 * (self.keys + 1))

    @property
    def pitch(self) -> int:
        """From one tile to the next."""
        return aligned(self.tile_bytes + SLACK_BYTES)

    @property
    def bytes(self) -> int:
        return self.tiles_at + self.tiles * self.pitch


def aligned(size: int) -> int:
    """The next multiple of `SCRATCH_ALIGNMENT`."""
    return -(-size // SCRATCH_ALIGNMENT) * SCRATCH_ALIGNMENT


class FaultOperation(NamedTuple):
    """A check of a kernel: what its report says (`blocklang.ops.events.ReportFault`).

    Attributes:
        details: how many slots stand behind the lane in a record.
        places: lines that the details refer to by number (`blocklang.ops.faults.place_of`).
    """

    kind: str
    action: str
    size: int
    arrays: tuple[str, ...]
    details: int
    places: tuple[str, ...] = ()


class EventOperation(NamedTuple):
    """A print, an assertion or a check of a kernel.

    Attributes:
        is_assertion: False for a print and a check.
        text: what stands before each printed value, or the assertion's message.
        type: of the printed elements or of the failing lane; None if there is no value.
        shape: of the block; () for scalars.
        hex: show the bits.
        location: the user's line.
        fault: of a check.
    """

    is_assertion: bool
    text: str
    type: ScalarType | PointerType | None
    shape: tuple[int, ...]
    hex: bool
    location: Location
    fault: FaultOperation | None = None

    @property
    def element_bytes(self) -> int:
        """Bytes of an element in a record."""
        return 0 if self.type is None else self.type.bytes

    @property
    def payload_bytes(self) -> int:
        """Bytes of a record behind its header."""
        if self.fault is not None:
            return SLOT_BYTES * (1 + self.fault.details)
        return self.element_bytes * (1 if self.is_assertion else math.prod(self.shape))


class KernelAbi(NamedTuple):
    """What a launch must know of a compiled kernel.

    Attributes:
        name: symbol of the entry.
        argument_names, argument_types: the run-time arguments, in slot order.
        written: per argument, True if the kernel may store through it.
        scratch_bytes: size of the arena that each worker provides.
        buffers: the memory plan, for reports and the emulator.
        events: what its programs print, assert and check, by number.
        bounds: per argument that checks have and the user did not write, what it is, such as an end of an
            array (`LOW_OF`; all are in `blocklang.ops.faults`), and of which array.
    """

    name: str
    argument_names: tuple[str, ...]
    argument_types: tuple[ScalarType | PointerType, ...]
    written: tuple[bool, ...]
    scratch_bytes: int
    buffers: tuple[BufferPlan, ...] = ()
    events: tuple[EventOperation, ...] = ()
    bounds: Mapping[str, tuple[str, str]] = MappingProxyType({})

    @property
    def argument_bytes(self) -> int:
        return SLOT_BYTES * len(self.argument_types)


class CountedAccess(NamedTuple):
    """One operation of a counted kernel that moves bytes, and where its counts are.

    A counted kernel has one more argument, last: the address of an array of 64-bit counters, zero before the
    first program. Each program has a row of `AccessCounts.counters`, in the order of the grid (axis 0
    fastest). A program has moved `bytes * row[moves]` bytes by this operation, in `row[transfers]` transfers.

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


class CountedRegion(NamedTuple):
    """A region of a counted kernel's control flow; a program has run it `row[runs]` times.

    Attributes:
        operation: name of the operation that has the region.
        region: which of its regions.
        runs: index of the counter.
        location: of the operation. Passes copy control flow: several regions may be one of the user's.
    """

    operation: str
    region: int
    runs: int
    location: Location


class AccessCounts(NamedTuple):
    """All that a kernel counts; `counters` is how many counters a program has."""

    accesses: tuple[CountedAccess, ...]
    counters: int
    regions: tuple[CountedRegion, ...] = ()


class SpaceUsage(NamedTuple):
    """How full a program makes an on-chip space: the most bytes that its plan has in use at once."""

    space: str
    peak_bytes: int
    capacity_bytes: int


# From one partition's end to the next one's start: a pitch that is a power of two would put the same offset
# of every partition into one set of the host's caches.
PARTITION_GAP_BYTES = 4096 + 64  # a page and a cache line


class SpaceLayout(NamedTuple):
    """How a memory space of a device lies in this machine's memory.

    Attributes:
        name: of the space, for messages.
        base: the host address of its first byte.
        partitions: how many there are; 1 for a space that is one piece.
        partition_bytes: bytes of each.
    """

    name: str
    base: int
    partitions: int
    partition_bytes: int

    @property
    def pitch(self) -> int:
        """Bytes from the start of one partition to the start of the next, in this machine's memory."""
        return self.partition_bytes + PARTITION_GAP_BYTES

    @property
    def host_bytes(self) -> int:
        """Bytes of this machine's memory that the space takes."""
        return self.partitions * self.pitch


def address_of(space: SpaceLayout, partition: int, offset: int) -> int:
    """The host address of a place of a device: base + partition * pitch + offset.

    A place is (space, partition, offset): the offset is in bytes from the partition's start, the same for
    every device and host. This is the one function that turns places into addresses.

    Raises:
        UsageError: the space has no such place.
    """
    if not 0 <= partition < space.partitions:
        raise UsageError(
            f"{space.name} has no partition {partition}", help=f"partitions are 0 to {space.partitions - 1}"
        )
    if not 0 <= offset < space.partition_bytes:
        raise UsageError(
            f"offset {offset} is outside of a partition of {space.name}",
            help=f"a partition has {space.partition_bytes} bytes, offsets from 0 on",
        )
    return space.base + partition * space.pitch + offset
