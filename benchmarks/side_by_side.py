"""Two peers in processes of their own, measured in turns: A B A B.

A process of its own keeps thread pools apart, and lets each have a fixed number of threads from its first
import on. The parent says `run`, the worker runs one sample and answers with its time in seconds; nothing
else runs meanwhile. A worker checks its output before it says that it is ready.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType

# Some machines set these to make OpenBLAS choose other kernels: the peers run as NumPy ships them.
_UNSET = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "BLOCKLANG_INTERPRET", "BLOCKLANG_CPU")
_THREAD_COUNTS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLOCKLANG_NUM_THREADS")


@dataclass(frozen=True)
class Sample:
    """Times of one peer, in seconds."""

    times: tuple[float, ...]

    def __str__(self) -> str:
        return f"{self.median * 1e3:.2f} ({self.best * 1e3:.2f})"

    @property
    def median(self) -> float:
        return statistics.median(self.times)

    @property
    def best(self) -> float:
        return min(self.times)


class Worker:
    """A process that runs one peer of one workload.

    Args:
        module: a module whose command line understands `--worker NAME`, and serves with `serve`.
        name: what to run.
        threads: how many threads its libraries may use.
    """

    def __init__(self, module: str, name: str, threads: int) -> None:
        environment = {k: v for k, v in os.environ.items() if k not in _UNSET}
        environment |= dict.fromkeys(_THREAD_COUNTS, str(threads))
        command = [sys.executable, "-m", module, "--worker", name]
        self._process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._name = name
        self.facts: dict[str, object] = json.loads(self._read())

    def _read(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the process of {self._name} ended with status {self._process.wait()}")
        return line

    def run(self) -> float:
        """Run one sample; its time in seconds."""
        assert self._process.stdin is not None
        self._process.stdin.write("run\n")
        self._process.stdin.flush()
        return float(self._read())

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def serve(call: Callable[[], object], facts: Mapping[str, object]) -> None:
    """In the worker: say that the checked `call` is ready, then run it as often as the parent asks."""
    call()
    print(json.dumps(dict(facts)), flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        call()
        print(time.perf_counter() - start, flush=True)


def measure_in_turns(workers: Mapping[str, Worker], turns: int, *, pause: float = 0.0) -> dict[str, Sample]:
    """Every peer's times, one sample of each in turn; the first turn warms up and is not counted.

    Args:
        pause: seconds before each sample. The threads of a library may spin for a while after its call, and
            would take a core from the next peer if both run on all of them.
    """

    def sample(worker: Worker) -> float:
        time.sleep(pause)
        return worker.run()

    samples = [{name: sample(worker) for name, worker in workers.items()} for _ in range(turns + 1)]
    return {name: Sample(tuple(sample[name] for sample in samples[1:])) for name in workers}
