"""What code is generated for, and what is emulated: CPUs and devices, as frozen data.

    cpu       the feature level that machine code is generated for
    host      what tells this CPU from another
    device    accelerators from description files, for the emulator
    devices/  the descriptions that are shipped

Not here: what is done with these figures. A CPU steers schedules, a device what the emulator counts and
checks; neither changes a result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from blocklang.lazy import on_demand
from blocklang.target.cpu import (
    LEVELS,
    Target,
    current_target,
    is_runnable,
    require_runnable,
    runnable_levels,
    target_for,
)

if TYPE_CHECKING:
    from blocklang.target.device import (
        Device,
        Figure,
        MemorySpace,
        device_names,
        find_device,
        format_size,
        read_device,
    )

__all__ = [
    "LEVELS",
    "Device",
    "Figure",
    "MemorySpace",
    "Target",
    "current_target",
    "device_names",
    "find_device",
    "format_size",
    "is_runnable",
    "read_device",
    "require_runnable",
    "runnable_levels",
    "target_for",
]

_DEVICES = ("Device", "Figure", "MemorySpace", "device_names", "find_device", "format_size", "read_device")
__getattr__ = on_demand(__name__, dict.fromkeys(_DEVICES, "blocklang.target.device"))  # launches need none
