"""A compiled kernel's description in JSON's types, for the disk cache, and back.

Places in the user's files are kept as the number of a function and lines counted from its first one: the same
text elsewhere in a file, or in another file, is the same kernel, and says its own lines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from blocklang.abi import BufferPlan, EventOperation, FaultOperation, KernelAbi
from blocklang.diagnostics import Location
from blocklang.ir.types import PointerType, ScalarType, parse_type
from blocklang.jit.capture import Captured
from blocklang.jit.identity import source_text


class Unstorable(Exception):
    """A place in no function that the kernel is made of."""


class Extent(NamedTuple):
    """The lines of a function in its file."""

    file: str
    first: int
    lines: int


def extents_of(captured: Captured) -> tuple[Extent, ...]:
    """The lines of the functions that a kernel is made of, in their fixed order."""
    found = []
    for reads in captured.reads:
        code = reads.function.__code__
        lines = source_text(reads.function).count("\n")
        found.append(Extent(code.co_filename, code.co_firstlineno, max(lines, 1)))
    return tuple(found)


def describe_abi(abi: KernelAbi, captured: Captured) -> dict[str, Any]:
    """An interface in JSON's types.

    Raises:
        Unstorable: an event is at a place that cannot be described.
    """
    extents = extents_of(captured) if abi.events else ()
    return {
        "name": abi.name,
        "argument_names": abi.argument_names,
        "argument_types": [str(type_) for type_ in abi.argument_types],
        "written": abi.written,
        "scratch_bytes": abi.scratch_bytes,
        "buffers": abi.buffers,
        "events": [_describe_event(event, extents) for event in abi.events],
        "bounds": dict(abi.bounds),
    }


def abi_from(description: Mapping[str, Any], captured: Captured) -> KernelAbi:
    """The interface that was described."""
    extents = extents_of(captured) if description["events"] else ()
    return KernelAbi(
        name=description["name"],
        argument_names=tuple(description["argument_names"]),
        argument_types=tuple(map(_type_from, description["argument_types"])),
        written=tuple(description["written"]),
        scratch_bytes=description["scratch_bytes"],
        buffers=tuple(BufferPlan(*fields) for fields in description["buffers"]),
        events=tuple(_event_from(event, extents) for event in description["events"]),
        bounds={name: (end, array) for name, (end, array) in description["bounds"].items()},
    )


def _describe_event(event: EventOperation, extents: Sequence[Extent]) -> dict[str, Any]:
    place = event.location
    within = [
        (extent.first, number)
        for number, extent in enumerate(extents)
        if extent.file == place.file and extent.first <= place.line < extent.first + extent.lines
    ]
    if not within:
        raise Unstorable
    first, number = max(within)
    end = place.end_line - first if place.end_line else None
    return {
        "is_assertion": event.is_assertion,
        "text": event.text,
        "type": None if event.type is None else str(event.type),
        "shape": event.shape,
        "hex": event.hex,
        "place": [number, place.line - first, place.column, end, place.end_column],
        "fault": event.fault,
    }


def _event_from(description: Mapping[str, Any], extents: Sequence[Extent]) -> EventOperation:
    number, line, column, end, end_column = description["place"]
    extent = extents[number]
    end_line = 0 if end is None else extent.first + end
    return EventOperation(
        is_assertion=description["is_assertion"],
        text=description["text"],
        type=None if description["type"] is None else _type_from(description["type"]),
        shape=tuple(description["shape"]),
        hex=description["hex"],
        location=Location(extent.file, extent.first + line, column, end_line, end_column),
        fault=None if description["fault"] is None else _fault_from(description["fault"]),
    )


def _fault_from(fields: Sequence[Any]) -> FaultOperation:
    fault = FaultOperation(*fields)
    return fault._replace(arrays=tuple(fault.arrays), places=tuple(fault.places))


def _type_from(text: str) -> ScalarType | PointerType:
    type_ = parse_type(text)
    assert isinstance(type_, (ScalarType, PointerType))
    return type_
