"""What the emulator says of published measurements: `python -m benchmarks.published [--json] [NAME ...]`.

Each row is a kernel in the published shape, run on this machine with its full size (about a minute and 1.5 GB
in all) and timed on the described device. The figures to compare with are `[[published]]` of the device file,
where their sources are. Prints Markdown, or JSON.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

import blocklang as bl
import blocklang.language as tl
from blocklang.target import find_device


@dataclass(frozen=True)
class Found:
    """A model's time beside a published one."""

    device: str
    name: str
    published_us: float
    model_us: float
    error_percent: float
    bottleneck: str
    active: dict[str, float]


# ---- trn2: fp32, 4096x8192 @ 8192x8192, the first operand transposed in memory ----


@bl.jit
def load_both(at, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Both tiles are loaded for every product."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        left = tl.load(at + (k + inner)[:, None] * M + rows[None, :])
        right = tl.load(b + (k + inner)[:, None] * N + cols[None, :])
        acc = tl.dot(tl.trans(left), right, acc)
    tl.store(c + rows[:, None] * N + cols[None, :], acc)


@bl.jit
def hoist_columns(at, b, c, M, N, K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """A program keeps its columns of the second operand on the chip."""
    cols = tl.program_id(0) * BN + tl.arange(0, BN)
    inner = tl.arange(0, K)
    right = tl.load(b + inner[:, None] * N + cols[None, :])
    for m in range(0, M, BM):
        rows = m + tl.arange(0, BM)
        left = tl.load(at + inner[:, None] * M + rows[None, :])
        acc = tl.dot(tl.trans(left), right)
        tl.store(c + rows[:, None] * N + cols[None, :], acc)


def run_load_both() -> None:
    m, n, k, at, b, c = _trainium()
    load_both[(m // 128, n // 512)](at, b, c, m, n, k, BM=128, BN=512, BK=128)


def run_hoist_columns() -> None:
    m, n, k, at, b, c = _trainium()
    hoist_columns[(n // 512,)](at, b, c, m, n, k, BM=128, BN=512)


def _trainium() -> tuple[Any, ...]:
    m, n, k = 4096, 8192, 8192
    return m, n, k, *(np.ones(shape, np.float32) for shape in ((k, m), (k, n), (m, n)))


# ---- h100: bf16 with fp32 sums, 8192^3 ----


@bl.jit
def naive_tile(a, b, c, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Tiles in shared memory, multiplied by the ordinary lanes."""
    rows = tl.program_id(1) * BM + tl.arange(0, BM)
    cols = tl.program_id(0) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        left = tl.load(a + rows[:, None] * K + (k + inner)[None, :]).to(tl.float32)
        right = tl.load(b + (k + inner)[:, None] * N + cols[None, :]).to(tl.float32)
        acc = tl.dot(left, right, acc, input_precision="ieee")
    tl.store(c + rows[:, None] * N + cols[None, :], acc.to(tl.bfloat16))


@bl.jit
def place_of(tile, M, N, BM: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr):
    """Tiles in groups of rows, so that neighbours share operands."""
    across = tl.cdiv(N, BN)
    group = tile // (GROUP * across)
    height = min(tl.cdiv(M, BM) - group * GROUP, GROUP)
    within = tile % (GROUP * across)
    return group * GROUP + within % height, within // height


@bl.jit
def product(a, b, c, m, n, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = m * BM + tl.arange(0, BM)
    cols = n * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        left = tl.load(a + rows[:, None] * K + (k + inner)[None, :])
        right = tl.load(b + (k + inner)[:, None] * N + cols[None, :])
        acc = tl.dot(left, right, acc)
    tl.store(c + rows[:, None] * N + cols[None, :], acc.to(tl.bfloat16))


@bl.jit
def pipelined(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    """Tensor cores, tiles on their way while others are multiplied."""
    m, n = place_of(tl.program_id(0), M, N, BM, BN, GROUP)
    product(a, b, c, m, n, N, K, BM, BN, BK)


@bl.jit
def persistent(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    """As many programs as multiprocessors, each with many tiles."""
    for tile in range(tl.program_id(0), tl.cdiv(M, BM) * tl.cdiv(N, BN), tl.num_programs(0)):
        m, n = place_of(tile, M, N, BM, BN, GROUP)
        product(a, b, c, m, n, N, K, BM, BN, BK)


def _hopper() -> tuple[Any, ...]:
    import ml_dtypes

    size = 8192
    return size, *(np.ones((size, size), ml_dtypes.bfloat16) for _ in range(3))


def run_naive() -> None:
    s, a, b, c = _hopper()
    naive_tile[(s // 128, s // 128)](a, b, c, s, s, BM=128, BN=128, BK=32, num_stages=1, num_warps=8)


def run_pipelined() -> None:
    s, a, b, c = _hopper()
    grid = ((s // 128) ** 2,)
    pipelined[grid](a, b, c, s, s, s, BM=128, BN=128, BK=64, GROUP=8, num_stages=3, num_warps=8)


def run_persistent() -> None:
    s, a, b, c = _hopper()
    persistent[(132,)](a, b, c, s, s, s, BM=128, BN=256, BK=64, GROUP=8, num_stages=3, num_warps=8)


OPERATIONS = 2.0 * 8192**3
ROWS: dict[tuple[str, str], Callable[[], None]] = {
    ("trn2", "matmul, tiles loaded for every product"): run_load_both,
    ("trn2", "matmul, column loads hoisted"): run_hoist_columns,
    ("h100", "naive tile"): run_naive,
    ("h100", "pipelined"): run_pipelined,
    ("h100", "persistent"): run_persistent,
}


def compare(device: str, name: str) -> Found:
    """Run one row and time it on its device."""
    described = find_device(device)
    published = next(p for p in described.published if p.name == name)
    with bl.emulate(described, events=0) as run:
        ROWS[device, name]()
    report = run.to_dict()
    seconds = published.seconds or OPERATIONS / (published.rate or math.nan)
    error = 100 * (report["time_us"] / (seconds * 1e6) - 1)
    active = {engine: row["active_percent"] for engine, row in report["engines"].items()}
    return Found(device, name, seconds * 1e6, report["time_us"], error, report["bottleneck"], active)


def as_markdown(found: list[Found]) -> str:
    """The table."""
    lines = [
        "| device | published | published time | model | error | waits for | active |",
        "| --- | --- | ---: | ---: | ---: | --- | --- |",
    ]
    for row in found:
        active = ", ".join(f"{n} {p:.0f} %" for n, p in row.active.items() if p >= 0.5)
        lines.append(
            f"| {row.device} | {row.name} | {row.published_us / 1e3:.2f} ms | {row.model_us / 1e3:.2f} ms | "
            f"{row.error_percent:+.1f} % | {row.bottleneck} | {active} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.published", description=__doc__)
    parser.add_argument("names", nargs="*", help="only devices of these names")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = [row for row in ROWS if not options.names or row[0] in options.names]
    found = [compare(*row) for row in rows]
    print(json.dumps([asdict(row) for row in found], indent=2) if options.json else as_markdown(found))


if __name__ == "__main__":
    main()
