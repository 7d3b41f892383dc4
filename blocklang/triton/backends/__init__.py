"""`triton.backends`: the one target there is, the CPU."""

from __future__ import annotations

from types import SimpleNamespace

from blocklang.triton.backends import compiler, driver

backends: dict[str, SimpleNamespace] = {"cpu": SimpleNamespace(compiler=None, driver=None)}

__all__ = ["backends", "compiler", "driver"]
