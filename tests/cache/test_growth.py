"""Memory stays bounded: per compiled kernel that is kept, per one that is dropped, and over launches."""

from __future__ import annotations

import gc
import linecache
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/statm").exists(), reason="reads the memory use from /proc"
)

_SOURCE = """
import blocklang as bl
import blocklang.language as tl

@bl.jit
def kernel(out, x, n, BLOCK: tl.constexpr):
    cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + cols, mask=cols < n)
    tl.store(out + cols, v * {number} + tl.exp(v), mask=cols < n)
"""


def resident_kib() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def launch_a_new_kernel(number: int) -> Any:
    file = f"<growth {number}>"
    text = _SOURCE.format(number=number)
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    namespace: dict[str, Any] = {}
    exec(compile(text, file, "exec"), namespace)
    x, out = np.ones(100, np.float32), np.zeros(100, np.float32)
    namespace["kernel"][(2,)](out, x, 100, BLOCK=64)
    np.testing.assert_allclose(out, number + np.e, rtol=1e-6)
    return namespace["kernel"]


@pytest.mark.parametrize("cached", [False, True])
def test_growth_per_kernel(cached: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if cached:
        monkeypatch.setenv("BLOCKLANG_CACHE", "1")
        monkeypatch.setenv("BLOCKLANG_CACHE_DIR", str(tmp_path))
    kept = [launch_a_new_kernel(number) for number in range(30)]
    before = resident_kib()
    kept += [launch_a_new_kernel(number) for number in range(30, 130)]
    assert resident_kib() - before < 100 * 150  # measured: 80 KiB each, machine code, IR and source text
    if cached:
        assert (
            len(list((tmp_path / "kernels").iterdir())) >= 130
        )  # the launcher and the pool have entries too


def test_growth_per_kernel_from_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLOCKLANG_CACHE", "1")
    monkeypatch.setenv("BLOCKLANG_CACHE_DIR", str(tmp_path))
    for number in range(100):
        launch_a_new_kernel(number)
    kept = [launch_a_new_kernel(number) for number in range(20)]
    before = resident_kib()
    kept += [launch_a_new_kernel(number) for number in range(20, 100)]
    assert resident_kib() - before < 80 * 100
    assert all(kernel._versions for kernel in kept)


def test_launches_do_not_grow() -> None:
    kernel = launch_a_new_kernel(1)
    x, out = np.ones(100, np.float32), np.zeros(100, np.float32)

    def launch(times: int) -> None:
        for _ in range(times):
            kernel[(2,)](out, x, 100, BLOCK=64)
            kernel[lambda meta: (2,)](out, x, n=100, BLOCK=64)
            kernel[(2,)](out, np.ones(100, np.float32), 100, BLOCK=64, num_threads=2)  # through Python

    launch(1000)
    before = resident_kib()
    launch(5000)
    assert resident_kib() - before < 1024
