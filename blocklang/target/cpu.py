"""The CPU that code is generated for: its feature level, as frozen data.

Features are detected, or named with a level (`x86-64-v2`, `x86-64-v3`, `x86-64-v4`, or a CPU that LLVM
knows); nothing is assumed. The numbers here steer schedules: they change time, never a result.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from dataclasses import dataclass

from blocklang.diagnostics import UsageError

# The system call by which a process asks for the tile registers (Linux, Documentation/arch/x86/xstate.rst).
ARCH_PRCTL = 158
ARCH_REQ_XCOMP_PERM = 0x1023
XFEATURE_XTILEDATA = 18

LEVELS = ("x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4")


@dataclass(frozen=True)
class Target:
    """A CPU as the schedule and the code generator see it.

    Attributes:
        name: 'host'.
        triple: LLVM's target triple.
        cpu: LLVM's CPU or level name.
        features: LLVM's feature string, "" for what the CPU name implies.
        vector_bytes: width of a vector register.
        vector_registers: how many there are.
        has_fma: fused multiply-add in hardware; without it `fma` is an exact sequence of other operations.
        has_f16c: conversion between f16 and f32 in hardware.
        has_streaming_stores: stores that bypass the caches, where it has been measured that they pay.
        cache_bytes: first-level data cache, then the second.
        byte_products: instructions that multiply bytes and add the products up, the best first: "tiles" (of
            matrices), "bytes" (four products a lane), "pairs" (two products of 16 bits a lane).
    """

    name: str
    triple: str
    cpu: str
    features: str
    vector_bytes: int
    vector_registers: int
    has_fma: bool
    has_f16c: bool
    has_streaming_stores: bool
    cache_bytes: tuple[int, int]
    byte_products: tuple[str, ...] = ()

    @property
    def has_scaling(self) -> bool:
        """Products of floats with powers of two that round once, in hardware (AVX-512)."""
        return self.vector_bytes == 64


def _from_features(triple: str, cpu: str, flags: dict[str, bool], features: str) -> Target:
    if triple.startswith(("aarch64", "arm64")):
        width, registers, fma, f16 = 16, 32, True, True
    elif flags.get("avx512f") and flags.get("avx512vl") and flags.get("avx512dq") and flags.get("avx512bw"):
        width, registers, fma, f16 = 64, 32, True, True
    elif flags.get("avx2"):
        width, registers, fma, f16 = 32, 16, bool(flags.get("fma")), bool(flags.get("f16c"))
    else:
        width, registers, fma, f16 = 16, 16, bool(flags.get("fma")), bool(flags.get("f16c"))
    products = _byte_products(flags) if triple.startswith("x86_64") else ()
    streams = triple.startswith("x86_64")
    caches = (32 << 10, 512 << 10)
    return Target("host", triple, cpu, features, width, registers, fma, f16, streams, caches, products)


def _byte_products(flags: dict[str, bool]) -> tuple[str, ...]:
    found = ["pairs"]
    if flags.get("avx512vnni") or flags.get("avxvnni"):
        found.insert(0, "bytes")
    if flags.get("amx-int8") and flags.get("amx-tile") and may_use_tiles():
        found.insert(0, "tiles")
    return tuple(found)


def may_use_tiles() -> bool:
    """Ask Linux for the tile registers, as every process must; False where it does not give them."""
    if not sys.platform.startswith("linux"):
        return False
    call = ctypes.CDLL(None).syscall
    return bool(call(ARCH_PRCTL, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0)


_LEVEL_FLAGS: dict[str, dict[str, bool]] = {
    "x86-64": {},
    "x86-64-v2": {},
    "x86-64-v3": dict.fromkeys(("avx2", "fma", "f16c"), True),
    "x86-64-v4": dict.fromkeys(("avx2", "fma", "f16c", "avx512f", "avx512vl", "avx512dq", "avx512bw"), True),
}


@functools.cache
def target_for(cpu: str) -> Target:
    """The target for a CPU level, or for this machine if `cpu` is "host".

    Raises:
        UsageError: the level is unknown.
    """
    import llvmlite.binding as llvm

    triple = llvm.get_default_triple()
    if cpu == "host":
        found = llvm.get_host_cpu_features()
        return _from_features(triple, llvm.get_host_cpu_name(), dict(found), found.flatten())
    if cpu not in LEVELS:
        raise UsageError(f"unknown CPU level {cpu!r}", help=f"choose host or one of {', '.join(LEVELS)}")
    return _from_features(
        "x86_64-unknown-linux-gnu" if "x86_64" not in triple else triple, cpu, _LEVEL_FLAGS[cpu], ""
    )


def current_target() -> Target:
    """The target of new compilations: the host, or the level that BLOCKLANG_CPU names."""
    return target_for(os.environ.get("BLOCKLANG_CPU") or "host")
