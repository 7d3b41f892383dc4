"""Which loops store past the caches, and from what size of a launch (part of the schedule).

An ordinary store reads the line that it overwrites. A streaming (non-temporal) one does not, and what it
writes leaves the caches. It pays where a launch writes so much that the caches would lose it in any case;
how much that is, is known at run time: programs of the grid times the bytes of one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from blocklang.analysis.memory_hazards import MemoryHazards, base_pointer
from blocklang.ir.core import Operation, Value
from blocklang.ops.creation import ProgramId
from blocklang.ops.memory import Store, pointee
from blocklang.ops.tile import Iterate
from blocklang.target import Target

# Bytes of one array that a launch writes, from which on its stores bypass the caches. Adding two arrays with
# one thread on a server (2 MiB of second cache a core) is 1.3 times as fast so from 4 MiB on, and 1.2 times
# with a reader of the result behind it. A desktop's last cache of 32 MiB would still hold such results, but
# not more than this beside what the kernel reads.
LAUNCH_BYTES = 16 << 20
ROW_BYTES = 1 << 10  # shorter rows leave too many lines half written at their ends
REGISTER_BYTES = 16  # what a streaming store writes at least


@dataclass(frozen=True)
class Stream:
    """A loop's stores stream if the extents of the grid along `axes` multiply to `programs` or more."""

    programs: int
    axes: tuple[int, ...]

    def __str__(self) -> str:
        if self.programs == 1:
            return "streamed"
        return f"streamed from {self.programs} programs of axis {', '.join(map(str, self.axes))}"


def choose_stream(
    op: Iterate, lane_axis: int, width: int, hazards: MemoryHazards, target: Target
) -> Stream | None:
    """When the stores of `op`, whose lanes run along `lane_axis`, are to be streaming ones; None for never.

    The user's wish (`cache_modifier=".cs"`, `eviction_policy="evict_first"`) is followed. Else the kernel
    must read nothing that may be the same array, and a program must write whole lines.
    """
    stores = [inner for inner in op.body.walk() if isinstance(inner, Store)]
    if not target.has_streaming_stores or op.results or len(stores) != 1:
        return None
    (store,) = stores
    size = pointee(store.pointer.type).bytes
    if width * size % REGISTER_BYTES:
        return None
    if store.cache_modifier == ".cs" or store.eviction_policy == "evict_first":
        return Stream(1, ())
    if (
        op.space[lane_axis] * size < ROW_BYTES
        or base_pointer(store.pointer) is None
        or hazards.is_read(store)
    ):
        return None
    axes = tuple(sorted(grid_axes(store.pointer)))
    programs = -(-LAUNCH_BYTES // (math.prod(op.space) * size))
    return Stream(programs, axes) if axes or programs == 1 else None


def grid_axes(pointer: Value) -> set[int]:
    """The axes of the grid along which an address may differ."""
    axes: set[int] = set()
    seen: set[Value] = set()
    stack = [pointer]
    while stack:
        value = stack.pop()
        if value in seen:
            continue
        seen.add(value)
        op = value.defining_op
        if isinstance(op, ProgramId):
            axes.add(op.axis)
            continue
        around = op if op is not None else value.owner.parent  # a region's arguments come from all around it
        if isinstance(around, Operation):
            stack += around.operands
            stack += [v for region in around.regions if region.terminator for v in region.terminator.operands]
    return axes
