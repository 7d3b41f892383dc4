"""What checked launches found, as data: for the terminal, for JSON, for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from blocklang.diagnostics import UNKNOWN_LOCATION, BlocklangError, Location
from blocklang.ops.faults import HINT, NAN, RACE, earlier_access
from blocklang.runtime.arrays import Array, numpy_dtype
from blocklang.runtime.events import Fault

ASSERTION, CAPACITY = "assertion", "capacity"


@dataclass
class Finding:
    """One thing that is wrong with a kernel.

    Attributes:
        kind: "race", "bounds", "overflow", "unwritten", "misaligned", "hint", "nan", "assertion" or
        "capacity". error: what is said about it.
        kernel, launch: the kernel's name, and the number of its launch among all, from 1.
        program, lane: the first at fault; lane is () of a scalar. None of a finding about all programs.
        array: name, dtype, shape and element offset of the element; None if none is at fault.
        earlier: of a race, the other access: action, file, line, program.
        count: how often it was seen.
    """

    kind: str
    error: BlocklangError
    kernel: str
    launch: int
    program: tuple[int, ...] | None = None
    lane: tuple[int, ...] | None = None
    shape: tuple[int, ...] | None = None
    array: dict[str, Any] | None = None
    earlier: dict[str, Any] | None = None
    count: int = 1

    @property
    def location(self) -> Location:
        """The line at fault."""
        return self.error.location or UNKNOWN_LOCATION

    def to_dict(self) -> dict[str, Any]:
        """In JSON's types."""
        place = self.location
        return {
            "kind": self.kind,
            "message": self.error.message,
            "help": self.error.help,
            "file": place.file,
            "line": place.line,
            "column": place.column + 1,
            "kernel": self.kernel,
            "launch": self.launch,
            "program": self.program,
            "lane": self.lane,
            "block": self.shape,
            "array": self.array,
            "earlier": self.earlier,
            "count": self.count,
        }


@dataclass
class Findings:
    """All findings of a run, one per line and kind, in the order in which they were found.

    Attributes:
        launches: how many launches were checked.
        kernels: of how many kernels.
    """

    items: list[Finding] = field(default_factory=list)
    launches: int = 0
    kernels: set[Location] = field(default_factory=set)

    def add(self, finding: Finding) -> None:
        """Note a finding, or that one was made again."""
        for known in self.items:
            if (known.kind, known.location) == (finding.kind, finding.location):
                known.count += finding.count
                return
        self.items.append(finding)

    def to_dict(self) -> dict[str, Any]:
        """In JSON's types."""
        return {
            "launches": self.launches,
            "kernels": len(self.kernels),
            "findings": [finding.to_dict() for finding in self.items],
        }


def finding_of(
    fault: Fault, kernel: str, launch: int, grid: Sequence[int], arrays: Mapping[str, Array], count: int
) -> Finding:
    """The finding that a fault of a launch is."""
    checked = fault.operation.fault
    kind = ASSERTION if checked is None else checked.kind
    finding = Finding(
        kind, fault.error, kernel, launch, fault.program, fault.lane, fault.operation.shape, count=count
    )
    if checked is None or kind in (NAN, HINT):
        return finding
    finding.array = _element(fault.details[0], [(n, arrays[n]) for n in checked.arrays if n in arrays])
    if kind == RACE:
        action, location, program = earlier_access(fault.details, checked.places, grid)
        finding.earlier = {
            "action": action,
            "file": location.file,
            "line": location.line,
            "column": location.column + 1,
            "program": program,
        }
    return finding


def _element(address: int, arrays: Sequence[tuple[str, Array]]) -> dict[str, Any] | None:
    """The array that an address is in, or nearest to."""
    if not arrays:
        return None

    def distance(item: tuple[str, Array]) -> int:
        low, high = item[1].byte_range()
        return max(low - address, address - high + 1, 0)

    name, array = min(arrays, key=distance)
    return {
        "name": name,
        "dtype": str(numpy_dtype(array.element)),
        "shape": tuple(array.shape),
        "offset": (address - array.address) // array.element.bytes,
    }
