"""Where kernels written for HIP look for `libdevice`: the same functions, compiled for the CPU."""

from __future__ import annotations

from blocklang.language.extra.hip import libdevice

__all__ = ["libdevice"]
