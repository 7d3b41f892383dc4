"""The reference of maths functions, from `blocklang.maths`."""

from __future__ import annotations

from blocklang.maths.__main__ import render

__all__ = ["render"]
