"""Events: what a program tells the thread that launched it, while it runs, and how that is said to people.

Events are recorded, not printed, by a running program; they are said after the launch, in ascending order of
programs and, within one, in program order. The first failed assertion, or fault, ends what is said: it is
raised.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence

from blocklang.diagnostics import DeviceAssertionError, Location
from blocklang.ir.core import Operation
from blocklang.ir.declaration import Effect, attribute, operand, operation
from blocklang.ir.float8 import FLOAT8
from blocklang.ir.types import BF16, PointerType, ScalarType
from blocklang.ops.constraints import Anything, Index, ScalarInteger
from blocklang.ops.faults import DETAILS


class Event(Operation):
    """Base of the operations that record an event."""

    effects = frozenset({Effect.RECORD})


@operation("device_print")
class DevicePrint(Event):
    """Say every lane of a value, one line each, in row-major order; without a value, one line. At level
    placed a block is in a buffer.

    `title` stands between index and value; with `hex` the bits are shown.

    device_print value=%v, title=" x: "
    """

    value = operand(Anything, optional=True)
    title = attribute(str)
    hex = attribute(bool, default=False)


@operation("device_assert")
class DeviceAssert(Event):
    """Stop the program, and let the launch fail after its end, unless `failing` is the number of lanes.

    `failing` is the first lane of a block of `shape`, in row-major order, for which the assertion does not
    hold, or the number of lanes if it holds for all.

    device_assert %lane, message="x is negative", shape=[128]
    """

    failing = operand(ScalarInteger)
    message = attribute(str, default="")
    shape = attribute(tuple, default=())

    @property
    def lanes(self) -> int:
        """The number of lanes."""
        return math.prod(self.shape)


@operation("report_fault")
class ReportFault(Event):
    """Stop the program, and let the launch fail after its end: lane `failing` of a block of `shape` is at
    fault (`blocklang.ops.faults`).

    `details` are what the `kind` of fault says, `action` is the operation at fault, which accesses elements
    of `size` bytes in one of `arrays`, arguments of the kernel. `places` are lines that the details refer to
    by number. With `goes_on` the program does not stop.

    report_fault %lane, %address, kind="bounds", action="load", shape=[128], size=4, arrays=["x"]
    """

    failing = operand(ScalarInteger)
    details = operand(Index, variadic=True)
    kind = attribute(str, choices=tuple(DETAILS))
    action = attribute(str)
    shape = attribute(tuple, default=())
    size = attribute(int, default=0)
    arrays = attribute(tuple, default=())
    places = attribute(tuple, default=())
    goes_on = attribute(bool, default=False)

    def verify_op(self) -> None:
        if len(self.details) != len(DETAILS[self.kind]):
            raise ValueError(f"a fault of {self.kind} says {', '.join(DETAILS[self.kind]) or 'nothing'}")


def index_of(lane: int, shape: Sequence[int]) -> tuple[int, ...]:
    """The index of a lane in a block, from its number in row-major order."""
    index: list[int] = []
    for extent in reversed(shape):
        lane, place = divmod(lane, extent)
        index.insert(0, place)
    return tuple(index)


def text_of(bits: int, type: ScalarType | PointerType, *, hex: bool) -> str:
    """One element as it is printed, from its bits in memory."""
    if isinstance(type, PointerType):
        return f"0x{bits:016x}"
    if hex:
        return f"0x{bits:0{max(type.bits // 4, 1)}x}"
    if type.is_float:
        return f"{_float_of(bits, type):f}"
    return str(
        bits - (1 << type.bits) if type.is_signed and type.bits > 1 and bits >> (type.bits - 1) else bits
    )


def _float_of(bits: int, type: ScalarType) -> float:
    if type.is_float8:
        return FLOAT8[type.name].decode(bits)
    if type == BF16:
        bits, size = bits << 16, 4
    else:
        size = type.bytes
    raw = bits.to_bytes(size, "little")
    number: float = struct.unpack({2: "<e", 4: "<f", 8: "<d"}[size], raw)[0]
    return abs(number) if math.isnan(number) else number  # the sign of a NaN is nobody's


def lines_of(
    program: Sequence[int],
    title: str,
    type: ScalarType | PointerType | None,
    shape: Sequence[int],
    elements: Sequence[int],
    *,
    hex: bool,
) -> Iterator[str]:
    """The lines of one print, from the bits of its elements; `type` is None without a value."""
    place = f"pid ({', '.join(map(str, program))})"
    if type is None:
        yield f"{place} idx (){title}"
        return
    for lane, bits in enumerate(elements):
        index = ", ".join(map(str, index_of(lane, shape)))
        yield f"{place} idx ({index}){title}{text_of(bits, type, hex=hex)}"


def assertion_failure(
    message: str, location: Location, program: Sequence[int], lane: int, shape: Sequence[int]
) -> DeviceAssertionError:
    """The error for an assertion that did not hold."""
    index = f", lane [{', '.join(map(str, index_of(lane, shape)))}]" if shape else ""
    where = f"in program [{', '.join(map(str, program))}]{index}"
    text = f": {message}" if message else ""
    return DeviceAssertionError(f"the assertion does not hold {where}{text}", location=location)
