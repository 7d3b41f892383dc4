"""Functions beside the language: `from blocklang.language.extra import libdevice`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from blocklang.lazy import on_demand

if TYPE_CHECKING:
    from blocklang.language.extra import cuda, hip, libdevice

__all__ = ["cuda", "hip", "libdevice"]

__getattr__ = on_demand(__name__, {name: f"{__name__}.{name}" for name in __all__})  # few kernels use them
