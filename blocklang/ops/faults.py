"""Faults of a running program, and how they are said to people: one text for both modes.

A fault is what the debug mode looks for: an access outside of its array, an address that 32-bit arithmetic
has wrapped, a NaN that an operation makes. The first lane at fault, in row-major order, is named.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol, TypeVar

from blocklang.diagnostics import CheckError, Location
from blocklang.ir.types import ScalarType

BOUNDS, OVERFLOW, NAN = "bounds", "overflow", "nan"
# Kind of fault: what a report says besides the lane, each an i64.
DETAILS: dict[str, tuple[str, ...]] = {
    BOUNDS: ("address",),
    OVERFLOW: ("address", "exact address"),
    NAN: (),
}

# Attributes of the arguments of a kernel that hold where an array begins and ends, with the array's name. The
# user does not write them; they come behind the user's.
LOW_OF, HIGH_OF = "low_of", "high_of"


_POISON = 0xDEAD_BEEF_DEAD_BEEF


def poison(element: ScalarType) -> bool | int | float:
    """What poisoned lanes hold: NaN, True, or the low bits of 0xDEADBEEFDEADBEEF."""
    if element.is_float:
        return math.nan
    if element.bits == 1:
        return True
    bits = _POISON & ((1 << element.bits) - 1)
    return bits - (1 << element.bits) if bits > element.maximum else bits


class NamedArray(Protocol):
    """An array of a launch, for a message.

    Attributes:
        description: its name, dtype and shape in words.
        start: the address of element [0, ...].
        low, high: the addresses [low, high) hold its elements.
    """

    @property
    def description(self) -> str: ...
    @property
    def start(self) -> int: ...
    @property
    def element_size(self) -> int: ...
    @property
    def low(self) -> int: ...
    @property
    def high(self) -> int: ...


def program_note(program: Sequence[int]) -> str:
    """Which program is at fault, as a note of its error."""
    return f"in program [{', '.join(map(str, program))}]"


ErrorT = TypeVar("ErrorT", bound=CheckError)


def fault_error(
    error: type[ErrorT],
    kind: str,
    action: str,
    lane: Sequence[int],
    size: int,
    details: Sequence[int],
    arrays: Sequence[NamedArray],
    location: Location,
) -> ErrorT:
    """The error for a fault.

    Args:
        error: its class.
        kind: of the fault.
        action: name of the operation at fault.
        lane: its index in the block; () of a scalar.
        size: bytes of the element that is accessed.
        details: what `DETAILS` names.
        arrays: those that the address may belong to.
    """
    where = f", lane [{', '.join(map(str, lane))}]" if lane else ""
    if kind == BOUNDS:
        message, help = _out_of_bounds(action, where, details[0], size, arrays)
    elif kind == OVERFLOW:
        message, help = _overflow(action, where, details[0], details[1], arrays)
    else:
        message, help = _born_nan(action, where)
    return error(message, location=location, help=help)


def _out_of_bounds(
    action: str, where: str, address: int, size: int, arrays: Sequence[NamedArray]
) -> tuple[str, str]:
    if not arrays:
        return f"{action} out of bounds{where}: the launch has no array", "pass the array to the kernel"
    nearest = min(arrays, key=lambda a: max(a.low - address, address + size - a.high, 0))
    is_past = address + size > nearest.high
    beyond = address + size - nearest.high if is_past else nearest.low - address
    side = "past the end" if is_past else "before the start"
    return (
        f"{action} out of bounds{where}{':' if where else ','} {_place(address, nearest)} "
        f"from the start of {nearest.description}: {beyond} bytes {side}",
        "mask the lanes that are outside of the array",
    )


def _place(address: int, array: NamedArray) -> str:
    element, rest = divmod(address - array.start, array.element_size)
    return f"element offset {element}" + (f" and {rest} bytes" if rest else "")


def _overflow(
    action: str, where: str, address: int, exact: int, arrays: Sequence[NamedArray]
) -> tuple[str, str]:
    help = "compute the offset in 64 bits: `.to(tl.int64)` on what is multiplied"
    if len(arrays) == 1:
        (array,) = arrays
        return (
            f"int32 overflow in the address of a {action}{where}: {_place(exact, array)} "
            f"from the start of {array.description} has wrapped to {_place(address, array)}",
            help,
        )
    return (
        f"int32 overflow in the address of a {action}{where}: it is {exact - address} bytes "
        "below what it is in exact arithmetic",
        help,
    )


def _born_nan(action: str, where: str) -> tuple[str, str]:
    return (
        f"`{action}` makes a NaN of numbers{where}",
        "look at its operands; what computes with NaN on purpose runs without this check",
    )
