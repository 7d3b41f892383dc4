"""Stub."""

from blocklang.ir.core import Kernel


def narrow_loops(kernel: Kernel) -> None:
    """Nothing yet."""
