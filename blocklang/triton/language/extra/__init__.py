"""`triton.language.extra`: functions beside the language proper."""

from __future__ import annotations

from blocklang.triton.language.extra import cuda, hip, libdevice

__all__ = ["cuda", "hip", "libdevice"]
