"""The functions of `blocklang.language.extra.libdevice`, under another name."""

from __future__ import annotations

from typing import Any

from blocklang.language.extra import libdevice as _library

__all__ = _library.__all__


def __getattr__(name: str) -> Any:
    return getattr(_library, name)
