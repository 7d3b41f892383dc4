"""The CPU that code is generated for: its feature level, as frozen data.

Features are detected, or named with a level: `x86-64` and its levels v2 to v4, as the System V ABI defines
them, or `aarch64`, which is what every 64-bit ARM has, NEON included. Code can be made and read for each of
them; it runs where the host has all of the level's features. The numbers here steer schedules: they change
time, never a result.
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

# What a level adds to the one before it, in LLVM's names.
_ADDED = {
    "x86-64": (),
    "x86-64-v2": ("cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3"),
    "x86-64-v3": ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"),
    "x86-64-v4": ("avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"),
}
AARCH64 = "aarch64"
X86_LEVELS = tuple(_ADDED)
LEVELS = (*X86_LEVELS, AARCH64)


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
        has_rounding: floats rounded to integral values in hardware (SSE4.1).
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
    has_rounding: bool
    has_f16c: bool
    has_streaming_stores: bool
    cache_bytes: tuple[int, int]
    byte_products: tuple[str, ...] = ()

    @property
    def spare_registers(self) -> int:
        """Vector registers that a matrix product leaves for what it reads ahead. x86-64 multiplies by numbers
        in memory; for AArch64, LLVM loads numbers of A in pairs, and tiles of 24 accumulators did not fit
        beside them.
        """
        return 6 if _is_arm(self.triple) else 0

    @property
    def has_scaling(self) -> bool:
        """Products of floats with powers of two that round once, in hardware (AVX-512)."""
        return self.vector_bytes == 64


def _from_features(triple: str, cpu: str, flags: dict[str, bool], features: str) -> Target:
    fma, rounding, f16 = (bool(flags.get(name)) for name in ("fma", "sse4.1", "f16c"))
    if _is_arm(triple):
        width, registers, fma, rounding, f16 = 16, 32, True, True, True
    elif flags.get("avx512f") and flags.get("avx512vl") and flags.get("avx512dq") and flags.get("avx512bw"):
        width, registers, fma, f16 = 64, 32, True, True
    elif flags.get("avx2"):
        width, registers = 32, 16
    else:
        width, registers = 16, 16
    products = _byte_products(flags) if triple.startswith("x86_64") else ()
    streams = triple.startswith("x86_64")
    caches = (32 << 10, 512 << 10)
    return Target(
        "host", triple, cpu, features, width, registers, fma, rounding, f16, streams, caches, products
    )


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


def _required(level: str) -> tuple[str, ...]:
    """The features of an x86-64 level, those of the lower ones included."""
    levels = tuple(_ADDED)
    return tuple(name for lower in levels[: levels.index(level) + 1] for name in _ADDED[lower])


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
    if cpu == AARCH64:
        return _from_features(triple if _is_arm(triple) else "aarch64-unknown-linux-gnu", "generic", {}, "")
    if not triple.startswith("x86_64"):
        triple = "x86_64-unknown-linux-gnu"
    return _from_features(triple, cpu, dict.fromkeys(_required(cpu), True), "")


def _is_arm(triple: str) -> bool:
    return triple.startswith(("aarch64", "arm64"))


def current_target() -> Target:
    """The target of new compilations: the host, or the level that BLOCKLANG_CPU names."""
    return target_for(os.environ.get("BLOCKLANG_CPU") or "host")


def is_runnable(target: Target) -> bool:
    """True if this machine runs the target's code."""
    try:
        require_runnable(target)
    except UsageError:
        return False
    return True


def require_runnable(target: Target) -> None:
    """Raise UsageError if this machine cannot run the target's code."""
    host = target_for("host")
    if target == host:
        return
    machine, ours = (t.triple.partition("-")[0] for t in (target, host))
    is_ours = machine == ours or (_is_arm(machine) and _is_arm(ours))
    if not is_ours:
        what = f"this machine is {ours}"
    else:
        missing = _missing(target.cpu)
        if not missing:
            return
        what = f"this CPU lacks {', '.join(missing)}"
    level = AARCH64 if _is_arm(machine) else target.cpu
    levels = ", ".join(("host", *runnable_levels()))
    raise UsageError(
        f"code for {level} cannot run here: {what}",
        help=f"set BLOCKLANG_CPU to one of {levels}; `blocklang asm` writes code for every level",
    )


def _missing(level: str) -> list[str]:
    """The features of an x86-64 level that this CPU does not show."""
    import llvmlite.binding as llvm

    found = llvm.get_host_cpu_features()
    return [name for name in (_required(level) if level in _ADDED else ()) if not found.get(name)]


def runnable_levels() -> list[str]:
    """The levels whose code this machine runs."""
    if _is_arm(target_for("host").triple):
        return [AARCH64]
    return [level for level in _ADDED if not _missing(level)]
