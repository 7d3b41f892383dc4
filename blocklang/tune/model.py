"""What the model of a device that is not here says of a launch: to leave out configs unmeasured."""

from __future__ import annotations

from collections.abc import Callable

from blocklang.target import Device


def modelled_seconds(launch: Callable[[], object], device: Device) -> float | None:
    """How long one launch would take on a device; it is made here, with its results, and counted.

    Returns:
        Seconds; None if nothing was counted (in interpreter mode), or the device's description has no rates.

    Raises:
        CompilationError: the kernel's buffers do not fit the device.
    """
    from blocklang.jit.emulating import emulate  # only who asks for a device loads the models

    with emulate(device, events=0) as profile:
        launch()
    return profile.seconds if profile.launches else None
