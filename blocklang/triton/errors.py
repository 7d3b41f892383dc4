"""The base of every error, under Triton's name."""

from __future__ import annotations

from blocklang.diagnostics import BlocklangError

TritonError = BlocklangError

__all__ = ["TritonError"]
