"""Stub."""

from blocklang.ir.core import Kernel


def guard_accesses(kernel: Kernel) -> None:
    """Nothing yet."""
