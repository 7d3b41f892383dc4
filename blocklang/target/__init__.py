"""What code is generated for, and what is emulated: CPUs and devices, as frozen data.

    cpu            the feature level that machine code is generated for
    host           what tells this CPU from another
    device         accelerators as data, for the emulator: figures, and what follows from them
    figures        numbers with their sources, and the names that formulas may use
    formulas       the expression language of instruction costs
    units          "24 MiB", "2.4 GHz" and the like
    device_tables  tables of a description file, with the place of what is wrong in them
    device_file    description files: what must be in them
    device_search  where a name finds one
    host_device    this machine as a device
    devices/       the descriptions that are shipped

Not here: what is done with these figures. A CPU steers schedules, a device what the emulator counts and
checks; neither changes a result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from blocklang.lazy import on_demand
from blocklang.target.cpu import (
    LEVELS,
    X86_LEVELS,
    Target,
    current_target,
    is_runnable,
    require_runnable,
    runnable_levels,
    target_for,
)

if TYPE_CHECKING:
    from blocklang.target.device import Device, MemorySpace
    from blocklang.target.device_file import device_of
    from blocklang.target.device_search import (
        device_given,
        device_names,
        device_text,
        find_device,
        read_device,
    )
    from blocklang.target.figures import Figure
    from blocklang.target.units import format_size

__all__ = [
    "LEVELS",
    "X86_LEVELS",
    "Device",
    "Figure",
    "MemorySpace",
    "Target",
    "current_target",
    "device_given",
    "device_names",
    "device_of",
    "device_text",
    "find_device",
    "format_size",
    "is_runnable",
    "read_device",
    "require_runnable",
    "runnable_levels",
    "target_for",
]

# Launches need none of these.
_PLACES = {
    **dict.fromkeys(("Device", "MemorySpace"), "blocklang.target.device"),
    "device_of": "blocklang.target.device_file",
    **dict.fromkeys(
        ("device_given", "device_names", "device_text", "find_device", "read_device"),
        "blocklang.target.device_search",
    ),
    "Figure": "blocklang.target.figures",
    "format_size": "blocklang.target.units",
}
__getattr__ = on_demand(__name__, _PLACES)
