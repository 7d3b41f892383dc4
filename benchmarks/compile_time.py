"""Cold compile times: `python -m benchmarks.compile_time [--rounds N] [--stages] [KERNEL ...]`.

Every figure is the median over fresh processes, one thread each, of the time from the first call of a kernel
to its result. Imports are done before the clock starts and are reported apart; so are the inputs. Nothing is
read from a cache on disk. With `--stages` the medians of the compiler's own clock follow, stage by stage.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
GOALS = {"add": 50, "softmax": 80, "layer_norm": None, "matmul": 100, "attention": None, "backward": 500}


def _numbers(*shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def make_add() -> Callable[[], Any]:
    from examples.vector_add import add

    x, y, out = _numbers(5000), _numbers(5000), np.empty(5000, np.float32)
    return lambda: add[(2,)](x, y, out, x.size, BLOCK=4096)


def make_softmax() -> Callable[[], Any]:
    from examples.softmax import softmax

    x, out = _numbers(4, 1000), np.empty((4, 1000), np.float32)
    return lambda: softmax[(4,)](out, x, 1000, 1000, 1000, BLOCK=1024)


def make_layer_norm() -> Callable[[], Any]:
    from examples.layer_norm import layer_norm

    x, weight, bias = _numbers(4, 1000), _numbers(1000), _numbers(1000)
    out = np.empty_like(x)
    return lambda: layer_norm[(4,)](out, x, weight, bias, 1000, 1000, 1e-5, BLOCK=1024)


def make_matmul() -> Callable[[], Any]:
    from examples.matmul import matmul

    a, b, c = _numbers(256, 256), _numbers(256, 256), _numbers(256, 256)
    return lambda: matmul[(4,)](
        a, b, c, 256, 256, 256, 256, 1, 256, 1, 256, 1, BLOCK_M=128, BLOCK_N=128, BLOCK_K=64, GROUP_M=8
    )


def make_attention() -> Callable[[], Any]:
    from tests.programs import attention_kernels as kernels

    q, k, v = _numbers(1, 2, 128, 64), _numbers(1, 2, 128, 64), _numbers(1, 2, 128, 64)
    out, m = np.empty_like(q), np.empty((1, 2, 128), np.float32)
    strides = [s // 4 for s in q.strides]
    return lambda: kernels._attn_fwd[(1, 2, 1)](
        q, k, v, 0.5, m, out, *strides, *strides, *strides, *strides, 1, 2, N_CTX=128,
        HEAD_DIM=64, BLOCK_M=128, BLOCK_N=64, STAGE=3,
    )  # fmt: skip


def make_backward() -> Callable[[], Any]:
    from tests.programs import attention_kernels as kernels

    q, k, v, do = (_numbers(1, 2, 128, 64) for _ in range(4))
    dq, dk, dv = np.empty_like(q), np.empty_like(q), np.empty_like(q)
    m, delta = np.ones((1, 2, 128), np.float32), np.ones((1, 2, 128), np.float32)
    strides = [s // 4 for s in q.strides]
    return lambda: kernels._attn_bwd[(1, 1, 2)](
        q, k, v, 0.5, do, dq, dk, dv, m, delta, *strides, 2, 128,
        BLOCK_M1=32, BLOCK_N1=128, BLOCK_M2=128, BLOCK_N2=32, BLK_SLICE_FACTOR=2, HEAD_DIM=64, CAUSAL=True,
    )  # fmt: skip


def measure_here(name: str, modules: Sequence[str]) -> None:
    """In a fresh process: print the seconds of the import, the first call, and each stage, and what modules
    that call has imported on demand, as JSON.
    """
    started = time.perf_counter()
    for module in modules:
        importlib.import_module(module)
    import blocklang.language  # noqa: F401
    from blocklang.compiler import compile_kernel  # noqa: F401
    from blocklang.jit import record_launches

    imported = time.perf_counter() - started
    call = globals()[f"make_{name}"]()
    loaded = set(sys.modules)
    with record_launches() as launches:
        started = time.perf_counter()
        call()
        first = time.perf_counter() - started
    stages = launches[0].compiled.seconds
    late = sorted(set(sys.modules) - loaded)
    print(json.dumps({"import": imported, "first call": first, "stages": stages, "late": late}))


def _fresh(name: str, modules: Sequence[str] = ()) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as empty:
        environment = os.environ | {
            "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "BLOCKLANG_NUM_THREADS": "1",
            "BLOCKLANG_CACHE_DIR": empty, "XDG_CACHE_HOME": empty, "TRITON_CACHE_DIR": empty,
        }  # fmt: skip
        command = [sys.executable, "-m", "benchmarks.compile_time", "--here", name, *modules]
        done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True)
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kernels", nargs="*", metavar="KERNEL", help=f"of {', '.join(GOALS)}; default: all")
    parser.add_argument("--rounds", type=int, default=9, help="fresh processes per kernel")
    parser.add_argument("--stages", action="store_true", help="also the time of every stage")
    parser.add_argument("--here", metavar="KERNEL", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.here:
        measure_here(given.here, given.kernels)
        return
    names = given.kernels or list(GOALS)
    samples: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    late = {name: _fresh(name)["late"] for name in names}  # a process that is not counted
    for _ in range(given.rounds):
        for name in names:
            samples[name].append(_fresh(name, late[name]))
    print("| kernel | first call, ms: median (best) | goal | import, ms |")
    print("| --- | ---: | ---: | ---: |")
    for name, each in samples.items():
        calls = [s["first call"] * 1e3 for s in each]
        imports = statistics.median(s["import"] for s in each) * 1e3
        figures = f"{statistics.median(calls):.1f} ({min(calls):.1f}) | {GOALS[name] or ''}"
        print(f"| {name} | {figures} | {imports:.0f} |")
    if given.stages:
        for name, each in samples.items():
            print(f"\n{name}, ms")
            for stage in each[0]["stages"]:
                print(f"  {stage:40} {statistics.median(s['stages'][stage] for s in each) * 1e3:8.2f}")


if __name__ == "__main__":
    main()
