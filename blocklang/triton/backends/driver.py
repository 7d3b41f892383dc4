"""`triton.backends.driver`: the base of drivers, for sources that name it."""

from __future__ import annotations


class DriverBase:
    """What `triton.runtime.driver.active` is."""


class GPUDriver(DriverBase):
    """The driver of a GPU; there is none."""
