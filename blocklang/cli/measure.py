"""`blocklang doctor --measure`: rates of this machine, by our own kernels, as the device `host`.

    clock              dependent integer operations of one cycle
    throughput         float32 multiply-adds on values in registers, one core
    cache bandwidth    read, add, write back in half of each cache, one core
    memory bandwidth   the same in an array several times the last cache, all cores

Each figure is the best of several runs, as whatever else the machine does only makes them
slower. It takes a few seconds.

The bandwidths are what a compiled loop reaches, not what the hardware could do: in the first caches the
loop, with one vector a step, is the limit.

Not here: the file's form (`target.host_device`), the kernels (`measure_kernels`).
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable
from pathlib import Path

import click
import numpy as np

from blocklang.diagnostics import UsageError
from blocklang.runtime.threads import get_num_threads
from blocklang.target.cpu import target_for
from blocklang.target.device_search import user_directory
from blocklang.target.host_device import Measured, detected_caches, detected_text
from blocklang.target.units import format_quantity

RUNS = 7
RUN_SECONDS = 0.04  # one run of a kernel, about
LARGEST = 1 << 29  # bytes of the array that stands for memory
SMALLEST = 1 << 26
STEPS = 12  # vectors of a block that stays in registers: enough to hide the latency of two units
DEEP = 16  # multiply-adds between two visits of the loop, which may keep the block in memory
WALKED = 1024  # values in a step of `walk`


def measure() -> Measured:
    """Measure; the numbers are of now, with whatever else is running."""
    caches = detected_caches()
    bandwidths = {name: _walk(size // 2, 1) for name, (size, _, _) in caches.items()}
    largest = max((size for size, _, _ in caches.values()), default=0)
    memory = _walk(min(max(4 * largest, SMALLEST), LARGEST), get_num_threads())
    today = datetime.datetime.now(tz=datetime.UTC).date()
    source = f"measured by blocklang doctor --measure on {today}: what its loops reach"
    return Measured(_clock(), _multiply_adds(), bandwidths, memory, source)


def measure_host() -> None:
    """Measure, write the device `host`, and print the rates."""
    measured = measure()
    path = write_host(measured)
    click.echo(f"a core runs at {format_quantity(measured.clock, 'frequency')}")
    click.echo(f"float32 multiply-adds: {format_quantity(measured.throughput, 'rate')} of one core")
    for name, rate in measured.cache_bandwidth.items():
        click.echo(f"{name.upper()}: {format_quantity(rate, 'bandwidth')} of one core, read and written")
    click.echo(f"memory: {format_quantity(measured.memory_bandwidth, 'bandwidth')} of all cores")
    click.echo(f"wrote {path}")


def write_host(measured: Measured) -> Path:
    """Write the description where `host` is found; return its path. Raises UsageError if that fails."""
    path = user_directory() / "host.toml"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(detected_text(measured), encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"cannot write {path}: {error.strerror}", help="set BLOCKLANG_CONFIG_DIR to a directory of yours"
        ) from error
    return path


def _best(run: Callable[[int], object]) -> tuple[int, float]:
    """Repetitions inside the kernel that take about RUN_SECONDS, and the best time of so many."""
    times = 1
    run(times)  # compile: also below, as a count of 1 and one that 16 divides are kernels of their own
    while (spent := min(_seconds(run, times), _seconds(run, times))) < RUN_SECONDS / 4:
        times *= 4
    times = max(1, int(times * RUN_SECONDS / spent))
    run(times)
    return times, min(_seconds(run, times) for _ in range(RUNS))


def _seconds(run: Callable[[int], object], times: int) -> float:
    start = time.perf_counter()
    run(times)
    return time.perf_counter() - start


def _clock() -> float:
    """Cycles per second of a core."""
    from blocklang.cli.measure_kernels import chain

    x = np.array([1, 12345], dtype=np.int64)
    times, seconds = _best(lambda times: chain[(1,)](x, times))
    return 2 * times / seconds


def _multiply_adds() -> float:
    """Float32 operations per second of a core."""
    from blocklang.cli.measure_kernels import multiply_add

    block = STEPS * target_for("host").vector_bytes // 4
    x = np.full(block, 0.5, dtype=np.float32)
    times, seconds = _best(lambda times: multiply_add[(1,)](x, times, DEEP=DEEP, BLOCK=block))
    return 2 * block * DEEP * times / seconds


def _walk(size: int, programs: int) -> float:
    """Bytes per second, read and written together, over an array of about `size` bytes."""
    from blocklang.cli.measure_kernels import walk

    block = min(WALKED, size // 4)
    each = max(1, size // 4 // programs // block) * block
    x = np.zeros(each * programs, dtype=np.float32)
    times, seconds = _best(lambda times: walk[(programs,)](x, each, times, BLOCK=block))
    return 2 * x.nbytes * times / seconds
