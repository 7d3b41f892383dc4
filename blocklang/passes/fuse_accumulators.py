"""Stub."""

from blocklang.ir.core import Kernel


def fuse_accumulators(kernel: Kernel) -> None:
    """Nothing yet."""
