"""Where kernels written for CUDA look for `libdevice`: the same functions, compiled for the CPU."""

from __future__ import annotations

from blocklang.language.extra.cuda import libdevice

__all__ = ["libdevice"]
