"""Does a kernel's memory plan fit a device? Measures how full each space gets, and refuses what overflows.

A buffer lies in a space of partitions with its rows on the partitions, rows being all axes but the last; a
buffer of one axis is a column of one element a row. Rows that are more than the partitions go round, so that
a buffer takes

    ceil(rows / partitions) * bytes of a row

of each partition, the same in all of them. In a space of one piece it takes its bytes. Padding to banks, and
moves and transposes that the device would need, are not in it.

What lives at once is what the memory plan says (`plan_memory.lifetimes`); the sum over it, at its largest, is
the peak. A space that cannot be filled without holes is not found here: offsets are the host's.

Requires: level placed, spaces assigned. Changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from blocklang.abi import SpaceUsage
from blocklang.diagnostics import CompilationError
from blocklang.ir.core import Kernel, Operation, Value
from blocklang.ops.control import For, While
from blocklang.ops.tile import BufferOp, View
from blocklang.passes.plan_memory import lifetimes
from blocklang.target import Device, MemorySpace, format_size

# What the passes append to the name of the user's value.
_SUFFIXES = {
    "_packed": "laid out for the product",
    "_next": "its next value",
    "_row": "a row that is folded",
}


@dataclass(frozen=True)
class _Peak:
    """The fullest moment of a space: bytes per partition (or of the whole), and the buffers alive then."""

    bytes: int
    buffers: tuple[BufferOp, ...]


def bytes_in(buffer: BufferOp, space: MemorySpace) -> int:
    """Bytes that a buffer takes of each partition of a space, or of the space if it is one piece."""
    if space.partitions is None:
        return buffer.byte_count()
    elements = buffer.element_count()
    shape = buffer.output.type.shape
    rows = shape[0] if len(shape) == 1 else buffer.output.type.numel // shape[-1]
    row_bytes = elements // rows * buffer.output.type.element.bytes
    return int(-(-rows // space.partitions.value) * row_bytes)


def _peak_of(kernel: Kernel, space: MemorySpace) -> _Peak:
    spans = {op: span for op, span in lifetimes(kernel).items() if op.space == space.name}
    fullest = _Peak(0, ())
    for moment in sorted({first for first, _ in spans.values()}):
        live = tuple(op for op, (first, last) in spans.items() if first <= moment <= last)
        size = sum(bytes_in(op, space) for op in live)
        if size > fullest.bytes:
            fullest = _Peak(size, live)
    return fullest


def space_usage(kernel: Kernel, device: Device) -> tuple[SpaceUsage, ...]:
    """The peak of every on-chip space of a device, all partitions together."""
    usages: list[SpaceUsage] = []
    for name in device.on_chip:
        space = device.memory[name]
        parts = 1 if space.partitions is None else space.partitions.value
        usages.append(SpaceUsage(name, _peak_of(kernel, space).bytes * parts, space.capacity_bytes))
    return tuple(usages)


def check_capacity(kernel: Kernel, device: Device) -> None:
    """Refuse a kernel whose buffers do not fit a space of the device.

    Raises:
        CompilationError: a space overflows; the help lists what fills it.
    """
    assert kernel.level == "placed"
    for name in device.on_chip:
        space = device.memory[name]
        peak = _peak_of(kernel, space)
        limit = space.capacity_bytes if space.partition_bytes is None else space.partition_bytes.value
        if peak.bytes > limit:
            raise _overflow(kernel, device, space, peak, limit)


def _overflow(
    kernel: Kernel, device: Device, space: MemorySpace, peak: _Peak, limit: int
) -> CompilationError:
    largest = sorted(peak.buffers, key=lambda op: -bytes_in(op, space))
    where = "" if space.partitions is None else f" in each of {space.partitions.value} partitions"
    rows = [" | ".join(row) for row in _table(largest, space)]
    return CompilationError(
        f"{kernel.name} does not fit {device.name}: {space.name} ({space.hardware}) holds "
        f"{format_size(limit)}{where}, and {format_size(peak.bytes)} are in use at once, "
        f"{format_size(peak.bytes - limit)} too many",
        location=largest[0].location,
        help="make the blocks smaller; this is what fills it:\n" + "\n".join(f"    {row}" for row in rows),
    )


def _table(buffers: list[BufferOp], space: MemorySpace) -> Iterator[tuple[str, ...]]:
    """A row per buffer, padded to columns: value, type, bytes, line, lifetime."""
    rows = [
        (
            value_name(op),
            str(op.output.type).removeprefix("buffer"),
            format_size(bytes_in(op, space)),
            f"line {op.location.line}",
            _lifetime(op),
        )
        for op in buffers
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield tuple(f"{text:<{width}}" for text, width in zip(row, widths, strict=True))


def _lifetime(buffer: BufferOp) -> str:
    """The lines that use a buffer; where a loop does, all of its lines, as the buffer lives through it."""
    lines: set[int] = set()
    for user in _users(buffer.output):
        lines.add(user.location.line)
        loop = _outermost_loop(user)
        if loop is not None:
            lines |= {inner.location.line for region in loop.regions for inner in region.walk()}
            lines.add(loop.location.line)
    lines.discard(0)  # an operation that no line of the user's stands for
    return f"lives in lines {min(lines)} to {max(lines)}" if lines else "lives throughout"


def _users(value: Value) -> Iterator[Operation]:
    for user in value.users:
        if isinstance(user, View):
            yield from _users(user.output)
        else:
            yield user


def _outermost_loop(op: Operation) -> Operation | None:
    """The outermost loop of the user's around an operation."""
    found = None
    parent = op.parent_op
    while parent is not None:
        found = parent if isinstance(parent, (For, While)) else found
        parent = parent.parent_op
    return found


def value_name(buffer: BufferOp) -> str:
    """What the user calls the value in a buffer."""
    name = buffer.result.name.removesuffix("_buf")
    for suffix, meaning in _SUFFIXES.items():
        if name.endswith(suffix):
            return f"{name.removesuffix(suffix)} ({meaning})"
    return name or "a value without a name"
