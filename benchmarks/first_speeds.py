"""First speeds of blocklang beside NumPy: `python -m benchmarks.first_speeds [--json] [--turns N] [ROW ...]`.

Needs the examples' packages. Medians and bests over interleaved samples, one process a peer, one thread
(two where the row says so); every output is checked before it is timed. Prints Markdown, or JSON with every
sample's figures.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.side_by_side import Sample, Worker, measure_in_turns, serve

Array = NDArray[np.float32]
SPIN_SECONDS = 0.2  # longer than OpenBLAS's threads wait for more work before they sleep
MODULE = "benchmarks.first_speeds"  # its name when it runs as __main__, too


@dataclass(frozen=True)
class Row:
    """One line of the table: a workload at a number of threads, and the ratio to NumPy that is the goal."""

    workload: str
    threads: int
    goal: float | None = None


ROWS = {
    "add": Row("vector add 2^24", 1, 0.9),
    "softmax": Row("softmax 4096x1024", 1, 3.0),
    "layer_norm": Row("layer norm 4096x1024", 1, 3.0),
    "matmul": Row("matmul 1024, fp32", 1, 0.6),
    "matmul2": Row("matmul 1024, fp32", 2, 0.6),
    "launch": Row("1000 warm launches of 64 numbers", 1),
}


@dataclass(frozen=True)
class Peer:
    """A call to time, where it leaves its result, the exact result and the largest allowed error."""

    call: Callable[[], object]
    output: Array
    exact: NDArray[np.float64]
    allowed: float

    def check(self) -> None:
        """Run once and compare. Raises AssertionError if the result is wrong."""
        self.call()
        error = np.abs(self.output - self.exact).max()
        assert error <= self.allowed, f"error {error}, allowed {self.allowed}"


def make_add(peer: str) -> Peer:
    from examples.vector_add import launch

    x, y = _random(2**24), _random(2**24)
    out = np.empty_like(x)
    calls = {"blocklang": lambda: launch(x, y, out), "numpy": lambda: np.add(x, y, out=out)}
    return Peer(calls[peer], out, x.astype(np.float64) + y, 2.0**-24)


def make_softmax(peer: str) -> Peer:
    from examples.softmax import launch, softmax_in_numpy

    x = _random(4096, 1024)
    out = np.empty_like(x)

    def numpy_softmax() -> None:
        np.subtract(x, x.max(axis=1, keepdims=True), out=out)
        np.exp(out, out=out)
        np.divide(out, out.sum(axis=1, keepdims=True), out=out)

    calls = {"blocklang": lambda: launch(x, out), "numpy": numpy_softmax}
    return Peer(calls[peer], out, softmax_in_numpy(x.astype(np.float64)), 1e-7)


def make_layer_norm(peer: str) -> Peer:
    from examples.layer_norm import launch, layer_norm_in_numpy

    x, weight, bias = _random(4096, 1024), _random(1024), _random(1024)
    out = np.empty_like(x)

    def numpy_layer_norm() -> None:
        np.subtract(x, x.mean(axis=1, keepdims=True), out=out)
        variance = np.einsum("ij,ij->i", out, out)[:, None] / np.float32(x.shape[1])
        np.divide(out, np.sqrt(variance + np.float32(1e-5)), out=out)
        np.multiply(out, weight, out=out)
        np.add(out, bias, out=out)

    calls = {"blocklang": lambda: launch(x, weight, bias, out), "numpy": numpy_layer_norm}
    return Peer(calls[peer], out, layer_norm_in_numpy(x.astype(np.float64), weight, bias), 1e-5)


def make_matmul(peer: str) -> Peer:
    from examples.matmul import launch

    a, b = _random(1024, 1024), _random(1024, 1024)
    c = np.empty_like(a)
    calls = {"blocklang": lambda: launch(a, b, c), "numpy": lambda: np.matmul(a, b, out=c)}
    return Peer(calls[peer], c, a.astype(np.float64) @ b.astype(np.float64), 1024 * 2.0**-24 * 1024)


def make_launch(peer: str) -> Peer:
    """Three arrays, one scalar, one constexpr, so little work that the launch is what counts."""
    from examples.vector_add import add

    x, y = _random(64), _random(64)
    out = np.empty_like(x)

    def launches() -> None:
        for _ in range(1000):
            add[(1,)](x, y, out, 64, BLOCK=64)

    def additions() -> None:
        for _ in range(1000):
            np.add(x, y, out=out)

    calls: dict[str, Callable[[], object]] = {"blocklang": launches, "numpy": additions}
    return Peer(calls[peer], out, x.astype(np.float64) + y, 2.0**-24)


MAKERS: dict[str, Callable[[str], Peer]] = {
    "add": make_add,
    "softmax": make_softmax,
    "layer_norm": make_layer_norm,
    "matmul": make_matmul,
    "matmul2": make_matmul,
    "launch": make_launch,
}


def _random(*shape: int) -> Array:
    return np.random.default_rng(len(shape)).random(shape, dtype=np.float32)


def measure_row(name: str, turns: int) -> dict[str, Sample]:
    """The samples of both peers."""
    threads = ROWS[name].threads
    with (
        Worker(MODULE, f"{name}:blocklang", threads) as ours,
        Worker(MODULE, f"{name}:numpy", threads) as theirs,
    ):
        pause = 0.0 if threads == 1 else SPIN_SECONDS
        return measure_in_turns({"blocklang": ours, "numpy": theirs}, turns, pause=pause)


def run_worker(name: str) -> None:
    row, _, peer = name.partition(":")
    made = MAKERS[row](peer)
    made.check()
    serve(made.call, {"error checked": True})


BLOCKS = (256, 1024, 4096, 16384, 65536)
# Kernel: the types of its arguments, its module and its name.
KERNELS = {
    "vector add": ("*fp32:16,*fp32:16,*fp32:16,i32:16", "examples.vector_add", "add"),
    "softmax": ("*fp32:16,*fp32:16,i32,i32,i32", "examples.softmax", "softmax"),
}


def measure_compile_times(repeats: int) -> dict[str, dict[int, float]]:
    """Seconds from source to machine code, by kernel and BLOCK: medians, the sizes in turns."""
    times: dict[str, dict[int, float]] = {}
    for name in KERNELS:
        _time_compilation(name, BLOCKS[0])  # loads LLVM
        samples = [{block: _time_compilation(name, block) for block in BLOCKS} for _ in range(repeats)]
        times[name] = {block: statistics.median(sample[block] for sample in samples) for block in BLOCKS}
    return times


def _time_compilation(name: str, block: int) -> float:
    from blocklang.compiler import compile_kernel

    signature, module, kernel = KERNELS[name]
    function = getattr(importlib.import_module(module), kernel)
    start = time.perf_counter()
    compile_kernel(function.block_ir(function.specialise(signature, {"BLOCK": block})))
    return time.perf_counter() - start


def describe_machine() -> str:
    """The CPU and the versions that the figures hold for."""
    from blocklang.cli.doctor import model_name, version_of
    from blocklang.target import current_target

    target = current_target()
    packages = ", ".join(f"{name} {version_of(name)}" for name in ("numpy", "llvmlite"))
    return (
        f"{model_name()} ({target.cpu}, {target.vector_bytes}-byte vectors, {os.cpu_count()} CPUs), "
        f"Python {platform.python_version()}, {packages}"
    )


@dataclass(frozen=True)
class Report:
    """Everything that one run measured."""

    machine: str
    command: str
    samples: dict[str, dict[str, Sample]]
    compile_times: dict[str, dict[int, float]]

    def as_json(self) -> str:
        return json.dumps(asdict(self), indent=1)

    def as_markdown(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"{self.machine}\n"
        yield f"`{self.command}`; milliseconds, median (best) of interleaved samples\n"
        yield "| workload | threads | blocklang | NumPy | NumPy / blocklang: medians (bests) | goal |"
        yield "| --- | --- | --- | --- | --- | --- |"
        for name, peers in self.samples.items():
            row, ours, theirs = ROWS[name], peers["blocklang"], peers["numpy"]
            goal = f">= {row.goal}" if row.goal else ""
            ratio = f"{theirs.median / ours.median:.2f} ({theirs.best / ours.best:.2f})"
            yield f"| {row.workload} | {row.threads} | {ours} | {theirs} | {ratio} | {goal} |"
        if {"matmul", "matmul2"} <= self.samples.keys():
            one, two = (self.samples[name]["blocklang"].median for name in ("matmul", "matmul2"))
            yield f"\nTwo threads run matmul {one / two:.2f} times as fast as one (goal: 1.6)."
        if "launch" in self.samples:
            launch = self.samples["launch"]["blocklang"].median / 1000
            yield f"\nA warm launch (3 arrays, 1 scalar, 1 constexpr) takes {launch * 1e6:.2f} µs (goal: 5)."
        yield from self._compile_lines()

    def _compile_lines(self) -> Iterator[str]:
        if not self.compile_times:
            return
        yield (
            "\n| compile, ms, at BLOCK = | "
            + " | ".join(map(str, BLOCKS))
            + " | largest / smallest (goal: 1.5) |"
        )
        yield "| --- " * (len(BLOCKS) + 2) + "|"
        for name, times in self.compile_times.items():
            cells = " | ".join(f"{times[block] * 1e3:.1f}" for block in BLOCKS)
            yield f"| {name} | {cells} | {max(times.values()) / min(times.values()):.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.first_speeds", description=__doc__)
    parser.add_argument(
        "rows", nargs="*", metavar="ROW", help=f"what to measure: {', '.join([*ROWS, 'compile'])}"
    )
    parser.add_argument("--turns", type=int, default=15, help="samples of each peer")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        run_worker(options.worker)
        return
    unknown = set(options.rows) - {*ROWS, "compile"}
    if unknown:
        parser.error(
            f"no such row: {', '.join(sorted(unknown))}; choose from {', '.join([*ROWS, 'compile'])}"
        )
    wanted = options.rows or [*ROWS, "compile"]
    report = Report(
        describe_machine(),
        " ".join(["python -m benchmarks.first_speeds", *sys.argv[1:]]),
        {name: measure_row(name, options.turns) for name in ROWS if name in wanted},
        measure_compile_times(5) if "compile" in wanted else {},
    )
    print(report.as_json() if options.json else report.as_markdown())


if __name__ == "__main__":
    main()
