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
RACE, UNWRITTEN, MISALIGNED, HINT = "race", "unwritten", "misaligned", "hint"
# Kind of fault: what a report says besides the lane, each an i64.
DETAILS: dict[str, tuple[str, ...]] = {
    BOUNDS: ("address",),
    OVERFLOW: ("address", "exact address"),
    NAN: (),
    RACE: ("address", "earlier access", "earlier action"),
    UNWRITTEN: ("address",),
    MISALIGNED: ("address",),
    HINT: ("value", "promise"),
}

# Attributes of the arguments of a kernel that hold where an array begins and ends, with the array's name. The
# user does not write them; they come behind the user's.
LOW_OF, HIGH_OF = "low_of", "high_of"

# And of those that `blocklang check` needs besides. An array's words have one i64 per element: the last
# store,
# the first load and the first atomic that is not ordered before the rest (`blocklang.passes.check_races`),
# and the last release; `UNWRITTEN_OF` is one byte per element, 1 until it is written. `CHECKS_STATE` is the
# address of i64: what the program is ordered behind, its releases, and how often each check failed.
STORES_OF, LOADS_OF, ATOMICS_OF, RELEASES_OF = "stores_of", "loads_of", "atomics_of", "releases_of"
UNWRITTEN_OF = "unwritten_of"
CHECKS_FIRST, CHECKS_STATE = "checks_first", "checks_state"
WORDS = (STORES_OF, LOADS_OF, ATOMICS_OF, RELEASES_OF)
SYSTEM_ARGUMENTS = (LOW_OF, HIGH_OF, *WORDS, UNWRITTEN_OF, CHECKS_FIRST, CHECKS_STATE)

# The word of an access, from its lowest bit: its place's number, how many releases of its program came before
# it, and the program, counted over all launches.
PLACE_BITS, RELEASE_BITS = 14, 18
PROGRAM_SHIFT = PLACE_BITS + RELEASE_BITS
MOST_PROGRAMS = 1 << (63 - PROGRAM_SHIFT)
# Positions in the state: whether a NaN was stored, and the first counter.
STATE_NAN, STATE_COUNTERS = 2, 3

_EARLIER = ("store", "load", "atomic")


def place_text(location: Location) -> str:
    """A location as `ReportFault.places` has it."""
    return ":".join(
        map(str, (location.file, location.line, location.column, location.end_line, location.end_column))
    )


def place_of(text: str) -> Location:
    """The location that `place_text` wrote."""
    file, *numbers = text.rsplit(":", 4)
    return Location(file, *map(int, numbers))


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
    if kind in (RACE, UNWRITTEN, MISALIGNED):
        message, help = _at_element(kind, action, where, details, size, arrays)
    elif kind == HINT:
        message, help = _broken_promise(action, where, details)
    elif kind == BOUNDS:
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


def _at_element(
    kind: str, action: str, where: str, details: Sequence[int], size: int, arrays: Sequence[NamedArray]
) -> tuple[str, str]:
    address = details[0]
    holding = [a for a in arrays if a.low <= address < a.high] or list(arrays[:1])
    place = (
        f"{_place(address, holding[0])} of {holding[0].description}" if holding else f"address {address:#x}"
    )
    colon = f"{where}:" if where else ","
    if kind == UNWRITTEN:
        return (
            f"load of what nobody has written{colon} {place}",
            "write the array before, in a launch or on the host",
        )
    if kind == MISALIGNED:
        return (
            f"misaligned {action}{colon} {place} lies at an address that is no multiple of {size}",
            f"start the array, and each row, at a multiple of its element's {size} bytes",
        )
    other = _EARLIER[details[2]]
    return (
        f"race: {action}{colon} {place} had {'an' if other == 'atomic' else 'a'} {other} by another program "
        "of this launch, and nothing orders the two",
        "let one program alone touch the element, use an atomic, or a lock around both accesses",
    )


def _broken_promise(action: str, where: str, details: Sequence[int]) -> tuple[str, str]:
    value, promise = details
    colon = f"{where}:" if where else ","
    broken = {
        "multiple_of": f"{value} is no multiple of {promise}",
        "max_contiguous": f"{value} does not follow what is before it, and runs of {promise} are promised",
        "max_constancy": f"{value} is not the element before it, and runs of {promise} are promised",
        "assume": "the condition is false",
    }[action]
    return f"`{action}` does not hold{colon} {broken}", "leave the hint out, or make it hold"


def earlier_access(
    details: Sequence[int], places: Sequence[str], grid: Sequence[int]
) -> tuple[str, Location, tuple[int, int, int]]:
    """Of a race: what the earlier access was, where it stands, and the program that made it."""
    word = details[1]
    rest, x = divmod(word >> PROGRAM_SHIFT, grid[0])
    z, y = divmod(rest, grid[1])
    return _EARLIER[details[2]], place_of(places[word & ((1 << PLACE_BITS) - 1)]), (x, y, z)
