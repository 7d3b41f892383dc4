"""What a warm launch costs, what many kernels cost in memory, and launches in child processes."""

from __future__ import annotations

import gc
import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import blocklang as bl
from blocklang.jit.native import WARM_LAUNCHES
from tests.architecture.rooms import ROOT
from tests.jit import kernels


def microseconds(call: Callable[[], object]) -> float:
    """The best of several means, in microseconds."""
    for _ in range(WARM_LAUNCHES + 100):
        call()
    best = float("inf")
    for _ in range(20):
        start = time.perf_counter()
        for _ in range(500):
            call()
        best = min(best, (time.perf_counter() - start) / 500 * 1e6)
    return best


@pytest.mark.slow
def test_a_warm_launch_of_vector_add_takes_microseconds() -> None:
    n = 1024
    x, y, out = (np.ones(n, np.float32) for _ in range(3))
    with_tuple = microseconds(lambda: kernels.add[(1,)](x, y, out, n, BLOCK=1024))
    with_lambda = microseconds(
        lambda: kernels.add[lambda meta: (bl.cdiv(n, meta["BLOCK"]),)](x, y, out, n, BLOCK=1024)
    )
    assert with_tuple < 5
    assert with_lambda < 8  # `bl.cdiv` is a Python function of its own cost


_SOURCE = """
import blocklang as bl
import blocklang.language as tl

@bl.jit
def kernel(out, BLOCK: bl.constexpr):
    tl.store(out + tl.arange(0, BLOCK), {number})
"""


def resident_kib() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads the memory use from /proc")
def test_memory_stays_bounded_over_many_kernels(tmp_path: Path) -> None:
    out = np.zeros(4, np.int32)

    def launch_a_new_kernel(number: int) -> None:
        path = tmp_path / f"kernel_{number}.py"
        path.write_text(_SOURCE.format(number=number))
        namespace: dict[str, Any] = {}
        exec(compile(path.read_text(), str(path), "exec"), namespace)
        namespace["kernel"][(1,)](out, BLOCK=4)
        assert (out == number).all()
        path.unlink()

    for number in range(50):
        launch_a_new_kernel(number)
    gc.collect()
    before = resident_kib()
    for number in range(50, 550):
        launch_a_new_kernel(number)
    gc.collect()
    assert resident_kib() - before < 20_000


def _launch_in_child(connection: Any) -> None:
    x = np.arange(3000, dtype=np.float32)
    results = []
    for n in (100, 3000):
        out = np.zeros(n, np.float32)
        for _ in range(WARM_LAUNCHES + 5):
            out[:] = 0
            kernels.add[(bl.cdiv(n, 50),)](x, x, out, n, BLOCK=50)
        results.append(bool((out == 2 * x[:n]).all()))
    connection.send(results)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_children_launch(method: str) -> None:
    x = np.arange(100, dtype=np.float32)
    for _ in range(WARM_LAUNCHES + 5):
        kernels.add[(1,)](x, x, np.zeros_like(x), 100, BLOCK=100)
    context: Any = multiprocessing.get_context(method)
    here, there = context.Pipe()
    process = context.Process(target=_launch_in_child, args=(there,))
    process.start()
    assert here.poll(120), "the child does not answer"
    assert here.recv() == [True, True]
    process.join(10)
    assert process.exitcode == 0


def test_importing_is_light() -> None:
    """llvmlite comes with the first compilation, the interpreter with the first interpreted launch."""
    check = (
        "import sys, blocklang; sys.exit(bool({'llvmlite', 'blocklang.interpreter'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", check], cwd=ROOT).returncode == 0
