"""This machine as a device: what can be detected, and what was measured.

Detected are cores, caches, memory and the registers of a core. Rates are not: `blocklang doctor --measure`
finds them and writes the whole description as `host.toml` into the user's directory of devices.

Not here: the measuring kernels (`blocklang.cli.measure`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
UNMEASURED = "Rates are not measured: `blocklang doctor --measure` measures them and writes host.toml."


@dataclass(frozen=True)
class Measured:
    """Rates of this machine, each of one core unless it says otherwise.

    Attributes:
        clock: hertz at which a core ran while it was measured, estimated from dependent additions.
        throughput: float32 operations per second of one core; a multiply-add is two.
        cache_bandwidth: bytes per second by cache, read and written together.
        memory_bandwidth: of all cores together.
        source: how and when.
    """

    clock: float
    throughput: float
    cache_bandwidth: Mapping[str, float]
    memory_bandwidth: float
    source: str


def detected_caches(directory: Path = CACHES) -> dict[str, tuple[int, int, int]]:
    """Data caches of the first CPU by name ('l1', 'l2', 'l3'): bytes, bytes of a line, CPUs that share it."""
    found: dict[str, tuple[int, int, int]] = {}
    for index in sorted(directory.glob("index*")):
        level, kind, size = (_read(index / name) for name in ("level", "type", "size"))
        line = _read(index / "coherency_line_size")
        if kind in ("Data", "Unified") and size[:-1].isdecimal():
            unit = {"K": 1 << 10, "M": 1 << 20}.get(size[-1], 1)
            shared = len(_cpus(_read(index / "shared_cpu_list")))
            found[f"l{level}"] = (int(size[:-1]) * unit, int(line) if line.isdecimal() else 64, shared)
    return found


def _cpus(text: str) -> set[int]:
    """The CPUs of a list such as 0-3,8."""
    cpus: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        cpus |= set(range(int(first), int(last or first) + 1))
    return cpus


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def detected_text(measured: Measured | None = None, directory: Path = CACHES) -> str:
    """A device file of this machine; with rates if they were measured."""
    return "\n".join(_lines(measured, detected_caches(directory))) + "\n"


def _lines(measured: Measured | None, caches: Mapping[str, tuple[int, int, int]]) -> Iterator[str]:
    from blocklang.target.cpu import target_for

    yield 'name = "host"'
    yield 'title = "this machine"'
    yield 'kind = "cpu"'
    if measured is None:
        yield f'note = "{UNMEASURED}"'
    yield ""
    yield "[chip]"
    yield f"cores = {_figure(_cpu_count(), 'the CPUs that this process may use')}"
    if measured:
        yield f"clock = {_figure(_giga(measured.clock, 'GHz'), measured.source)}"
    yield ""
    yield "[memory.global]"
    yield 'hardware = "DRAM"'
    yield 'aliases = ["dram"]'
    size, source = _memory_bytes()
    yield f"bytes = {_figure(size, source, unverified=source == _GUESSED)}"
    if measured:
        yield f"bandwidth = {_figure(_giga(measured.memory_bandwidth, 'GB/s'), measured.source)}"
    target = target_for("host")
    largest = "l2" if "l2" in caches else next(iter(caches), None)
    scratch, source = (caches[largest][0], _SYSTEM) if largest else (target.cache_bytes[1], _GUESSED)
    yield ""
    yield "[memory.scratch]"
    yield f'hardware = "{(largest or "L2").upper()} cache"'
    yield f"bytes = {_figure(scratch, source, unverified=source == _GUESSED)}"
    yield ""
    yield "[memory.accumulator]"
    yield 'hardware = "vector registers"'
    registers = target.vector_registers * target.vector_bytes
    yield f"bytes = {_figure(registers, 'LLVM: features of this CPU')}"
    for name, (size, line, shared) in caches.items():
        yield from _cache(name, size, line, shared, measured)
    if measured:
        yield ""
        yield "[engines.simd]"
        yield 'hardware = "vector units of one core"'
        yield f"clock = {_figure(_giga(measured.clock, 'GHz'), measured.source)}"
        yield f"lanes = {_figure(target.vector_bytes // 4, 'LLVM: float32 lanes of a vector')}"
        yield ""
        yield "[engines.simd.throughput]"
        yield f"f32 = {_figure(_giga(measured.throughput, 'GFLOPS'), measured.source)}"


def _cache(name: str, size: int, line: int, shared: int, measured: Measured | None) -> Iterator[str]:
    yield ""
    yield f"[caches.{name}]"
    yield f'per = "{"core" if shared <= 2 and name != "l3" else "chip"}"'
    yield f"bytes = {_figure(size, _SYSTEM)}"
    yield f"line_bytes = {_figure(line, _SYSTEM)}"
    if measured and name in measured.cache_bandwidth:
        yield f"bandwidth = {_figure(_giga(measured.cache_bandwidth[name], 'GB/s'), measured.source)}"


_SYSTEM = "the system: /sys/devices/system/cpu/cpu0/cache"
_GUESSED = "assumed, as the system does not say"


def _figure(value: int | str, source: str, *, unverified: bool = False) -> str:
    shown = f'"{value}"' if isinstance(value, str) else value
    extra = ", unverified = true" if unverified else ""
    return f'{{ value = {shown}, source = "{source}"{extra} }}'


def _giga(value: float, unit: str) -> str:
    return f"{value / 1e9:.3f} {unit}"


def _cpu_count() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _memory_bytes() -> tuple[int, str]:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), "the system: physical memory"
    except (ValueError, OSError, AttributeError):
        return 1 << 32, _GUESSED
