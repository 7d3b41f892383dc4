"""Functions beside the language: `from blocklang.language.extra import libdevice`."""

from __future__ import annotations

from blocklang.language.extra import cuda, hip, libdevice

__all__ = ["cuda", "hip", "libdevice"]
