"""What tells this CPU from another, without asking LLVM.

On Linux it is what the system says of the first CPU: maker, model and features; and whether it lets this
process use the tile registers, which a container may be refused. Elsewhere it is LLVM's answer.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

from blocklang.target.cpu import may_use_tiles, target_for

_TELLING = (
    *("vendor_id", "cpu family", "model", "stepping", "flags"),  # x86-64
    *("Features", "CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision"),
    *("isa", "mmu", "uarch", "cpu", "machine"),
)


def host_identity(path: str = "/proc/cpuinfo") -> str:
    """A text that two machines have in common only if LLVM compiles the same for both."""
    if sys.platform.startswith("linux"):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                found = list(_telling_lines(file))
        except OSError:
            found = []
        if any("amx_tile" in line for line in found):
            found.append(f"tiles: {may_use_tiles()}")
        if found:
            return "\n".join(found)

    return repr(target_for("host"))


def _telling_lines(lines: Iterable[str]) -> Iterator[str]:
    """The lines of the first CPU that say what it is."""
    for line in lines:
        if not line.strip():
            return
        if line.partition(":")[0].strip() in _TELLING:
            yield line.strip()
