"""What blocklang found on this machine: versions, the CPU, threads, a self-test; what to do about it.

Each section is a function that returns lines; the command prints them. Nothing is changed on the machine.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from blocklang.cli.cache import list_cache_facts
from blocklang.diagnostics import UsageError
from blocklang.runtime.threads import available_cpus, get_num_threads
from blocklang.target import Target, current_target, is_runnable, runnable_levels, target_for

PACKAGES = ("blocklang", "llvmlite", "numpy", "ml_dtypes", "click")
# What steers code and schedules; a CPU reports a hundred more.
SHOWN_FEATURES = (
    *("sse4.2", "avx", "avx2", "fma", "f16c", "neon", "sve"),
    *("avx512f", "avx512vl", "avx512bw", "avx512dq", "avx512vnni", "avx512bf16", "avx512fp16", "amx-tile"),
)
VARIABLES = (
    "BLOCKLANG_CACHE",
    "BLOCKLANG_CACHE_DIR",
    "BLOCKLANG_CACHE_SIZE",
    "BLOCKLANG_CPU",
    "BLOCKLANG_INTERPRET",
    "BLOCKLANG_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_CORETYPE",
    "OPENBLAS_NUM_THREADS",
)


def version_of(package: str) -> str:
    """The installed version of a package; says so where it runs from a bare checkout."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed (running from a checkout)" if package == "blocklang" else "missing"


def list_versions() -> Iterator[str]:
    """Python, the platform, the packages, and LLVM's version."""
    import llvmlite.binding as llvm

    yield f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    for package in PACKAGES:
        extra = f", with LLVM {'.'.join(map(str, llvm.llvm_version_info))}" if package == "llvmlite" else ""
        yield f"{package} {version_of(package)}{extra}"


def list_cpu_facts(target: Target) -> Iterator[str]:
    """What LLVM calls the CPU, its features, the vector width that kernels are compiled for, the caches."""
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    yield f"this machine: {model_name()}, which LLVM calls {llvm.get_host_cpu_name()}"
    yield f"features: {' '.join(name for name in SHOWN_FEATURES if features.get(name)) or 'none in use'}"
    width, lanes = target.vector_bytes, target.vector_bytes // 4
    yield f"compiled for: {target.cpu}, {target.vector_registers} vectors of {width} bytes ({lanes} float32)"
    yield f"fused multiply-add: {_yes(target.has_fma)}; float16 conversion: {_yes(target.has_f16c)}"
    caches = ", ".join(f"{name} {_size(size)}" for name, size in cpu_caches())
    yield f"caches: {caches or 'not reported by the system'}"
    first, second = target.cache_bytes
    yield f"caches that schedules count on: L1d {_size(first)}, L2 {_size(second)}"


def _yes(answer: bool) -> str:
    return "in hardware" if answer else "by other instructions"


def _size(size: int) -> str:
    return f"{size >> 20} MiB" if size >= 1 << 20 and size % (1 << 20) == 0 else f"{size >> 10} KiB"


def model_name() -> str:
    """What the CPU calls itself."""
    for line in _read(Path("/proc/cpuinfo")).splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            return value.strip()
    return platform.processor() or platform.machine()


def cpu_caches(directory: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> list[tuple[str, int]]:
    """Name and bytes of each data cache that the first CPU sees, from the fastest to the largest."""
    caches: list[tuple[str, int]] = []
    for index in sorted(directory.glob("index*")):
        level, kind, size = (_read(index / name).strip() for name in ("level", "type", "size"))
        if kind != "Instruction" and size[:-1].isdecimal():
            unit = {"K": 1 << 10, "M": 1 << 20}.get(size[-1], 1)
            caches.append((f"L{level}{'d' if kind == 'Data' else ''}", int(size[:-1]) * unit))
    return caches


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""


def list_thread_facts() -> Iterator[str]:
    """How many threads a launch uses, and what decides it."""
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    available = available_cpus()
    yield f"a launch uses up to {get_num_threads()} threads"
    yield f"CPUs: {os.cpu_count()} in the machine, {affinity} for this process, {available} by its quota"
    for name in ("BLOCKLANG_NUM_THREADS", "OMP_NUM_THREADS"):
        if os.environ.get(name):
            yield f"{name}={os.environ[name]} is set"


def list_environment() -> Iterator[str]:
    """The variables that change how kernels run."""
    for name in VARIABLES:
        if os.environ.get(name):
            yield f"{name}={os.environ[name]}"


def list_suggestions(target: Target) -> Iterator[str]:
    """What the user might want to change."""
    host = target_for("host")
    wanted = os.environ.get("BLOCKLANG_CPU")
    if not is_runnable(target):
        levels = ", ".join(runnable_levels())
        yield f"this machine runs no code for BLOCKLANG_CPU={wanted}: unset it, or choose one of {levels}"
    elif target.vector_bytes < host.vector_bytes:
        yield f"BLOCKLANG_CPU={wanted} gives up half or more of the vector width: unset it for full speed"
    elif host.vector_bytes < 32 and host.triple.startswith("x86_64"):
        yield "this CPU, or what the virtual machine shows of it, has no AVX2: kernels will be slow"
    if os.environ.get("BLOCKLANG_INTERPRET", "0") not in ("", "0"):
        yield "BLOCKLANG_INTERPRET is set: kernels run in the interpreter, about a thousand times slower"
    if os.environ.get("OPENBLAS_CORETYPE"):
        yield "OPENBLAS_CORETYPE is set: unset it before you compare with NumPy's matrix product"
    if get_num_threads() < available_cpus():
        yield f"launches use {get_num_threads()} of {available_cpus()} CPUs; bl.set_num_threads changes it"
    if sys.maxsize < 2**32:
        yield "this Python is a 32-bit one: kernels need a 64-bit Python"


def self_test() -> str:
    """Compile a tiny kernel anew and run it; what was done, in words. Raises what goes wrong."""
    import time
    import timeit

    import numpy as np

    import blocklang as bl
    from blocklang.cache.store import cache_paused
    from blocklang.cli.doctor_kernel import add_one

    x = np.arange(1000, dtype=np.float32)
    start = time.perf_counter()
    with cache_paused():
        add_one[(bl.cdiv(x.size, 256),)](x, x.size, BLOCK=256)
    first = time.perf_counter() - start
    if not np.array_equal(x, np.arange(1, 1001)):
        raise RuntimeError("the kernel computed wrong numbers")
    again = min(
        timeit.repeat(lambda: add_one[(bl.cdiv(x.size, 256),)](x, x.size, BLOCK=256), number=1, repeat=20)
    )
    return f"compiled and ran a kernel in {first * 1e3:.0f} ms, ran it again in {again * 1e6:.1f} µs: OK"


def examine() -> None:
    """Print every section; exit with status 1 if the self-test fails."""
    target = current_target()
    sections = {
        "Versions": list_versions(),
        "CPU": list_cpu_facts(target),
        "Threads": list_thread_facts(),
        "Cache": (f"{name}: {value}" for name, value in list_cache_facts()),
        "Environment": list_environment(),
    }
    for title, lines in sections.items():
        _print_section(title, lines)
    try:
        result = self_test()
    except UsageError as error:  # a level that this machine does not run
        _print_section("Self-test", ["FAILED", *str(error).splitlines()])
        _print_section("Suggestions", list_suggestions(target))
        raise SystemExit(1) from error
    except Exception as error:  # whatever it is: it is shown, with what to do
        _print_section("Self-test", ["FAILED", *traceback.format_exception(error)])
        _print_section(
            "Suggestions", ["report the self-test's failure with everything above", *list_suggestions(target)]
        )
        raise SystemExit(1) from error
    _print_section("Self-test", [result])
    _print_section("Suggestions", list_suggestions(target))


def _print_section(title: str, lines: Iterable[str]) -> None:
    """A title and indented lines; nothing for a section without lines."""
    texts = list(lines)
    if texts:
        click.secho(title, bold=True)
        for text in texts:
            click.echo(f"  {text}")
