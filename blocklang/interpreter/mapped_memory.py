"""The memory of the process that belongs to no array of a launch, as the operating system knows it.

A kernel may make a pointer of an integer, as a grouped matrix product does that reads where its operands lie.
What such a pointer leads to is an array that the launch has not seen. It is read and written by address,
where the process has memory. Where the system does not say what there is (no /proc/self/maps), it is nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_MAPS = Path("/proc/self/maps")


@dataclass(frozen=True)
class Mapping:
    """The addresses [low, high), readable all of them."""

    low: int
    high: int
    writable: bool


def mapped_memory() -> list[Mapping]:
    """What the process can read now, ascending; neighbours with the same rights are one."""
    try:
        lines = _MAPS.read_text().splitlines()
    except OSError:
        return []
    found: list[Mapping] = []
    for line in lines:
        addresses, rights, *rest = line.split(maxsplit=5)
        low, high = (int(a, 16) for a in addresses.split("-"))
        name = rest[-1] if len(rest) == 4 else ""
        if rights[0] != "r" or name.startswith("[v"):  # the kernel's own: [vvar], [vdso], [vsyscall]
            continue
        writable = rights[1] == "w"
        if found and found[-1].high == low and found[-1].writable == writable:
            low = found.pop().low
        found.append(Mapping(low, high, writable))
    return found
