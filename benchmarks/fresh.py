"""What only a fresh process shows: import times, and the first result with and without a cache on disk.

The process is `python -m benchmarks.first_result NAME PEER`; it prints seconds. Directories of caches are new
for every measurement, but for the rows that are about a cache: there one process fills it first.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from benchmarks.peers import OURS, ROOT, environment_for
from benchmarks.pool import PeerFailure
from benchmarks.workload import Workload
from benchmarks.workloads.products import UntunedMatmul
from benchmarks.workloads.rows import Softmax

_PATIENCE = 120.0
CACHE_VARIABLES = (
    "XDG_CACHE_HOME",
    "BLOCKLANG_CACHE_DIR",
    "TRITON_CACHE_DIR",
    "NUMBA_CACHE_DIR",
    "JAX_COMPILATION_CACHE_DIR",
    "TORCHINDUCTOR_CACHE_DIR",
)


@dataclass(frozen=True)
class FreshEntry:
    """One row of the table that is measured in fresh processes.

    Attributes:
        name, title: as of `workload.Entry`.
        peers: who takes part.
        make: the workload whose first result is measured; None for the import alone.
        sizes: keyword arguments of it.
        is_cached: whether an earlier process has filled the caches.
    """

    name: str
    title: str
    peers: tuple[str, ...]
    make: Callable[..., Workload] | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)
    is_cached: bool = False


_COMPILING = (OURS, "numba", "jax")
_CACHING = (OURS, "numba", "jax")
_SOFTMAX = MappingProxyType({"rows": 16, "cols": 1024})
_MATMUL = MappingProxyType({"m": 256, "n": 256, "k": 256})

_ENTRIES = (
    FreshEntry("compile-softmax", "first result, softmax", (*_COMPILING, "c"), Softmax, _SOFTMAX),
    FreshEntry("compile-matmul", "first result, matmul", _COMPILING, UntunedMatmul, _MATMUL),
    FreshEntry("cached-softmax", "first result from disk, softmax", _CACHING, Softmax, _SOFTMAX, True),
    FreshEntry("cached-matmul", "first result from disk, matmul", _CACHING, UntunedMatmul, _MATMUL, True),
    FreshEntry("import", "import", (OURS, "numpy", "torch", "numba", "jax")),
)
FRESH: Mapping[str, FreshEntry] = MappingProxyType({entry.name: entry for entry in _ENTRIES})


class FreshProcesses:
    """Measures one row for one peer, once per call of `measure`."""

    def __init__(self, entry: FreshEntry, peer: str, threads: int) -> None:
        self._entry = entry
        self._peer = peer
        self._threads = threads
        self._cache = tempfile.TemporaryDirectory()
        if entry.is_cached:
            self._run(Path(self._cache.name))

    def measure(self) -> float:
        """Seconds of one fresh process. Raises PeerFailure if it fails."""
        if self._entry.is_cached:
            return self._run(Path(self._cache.name))
        with tempfile.TemporaryDirectory() as empty:
            return self._run(Path(empty))

    def _run(self, cache: Path) -> float:
        environment = environment_for(self._threads)
        environment |= {name: str(cache / name.lower()) for name in CACHE_VARIABLES}
        command = [sys.executable, "-m", "benchmarks.first_result", self._entry.name, self._peer]
        try:
            done = subprocess.run(
                command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=_PATIENCE
            )
        except subprocess.TimeoutExpired:
            raise PeerFailure(f"no result within {_PATIENCE:.0f} s") from None
        if done.returncode:
            last = done.stderr.strip().splitlines()[-1:]
            raise PeerFailure(": ".join([f"its process ended with status {done.returncode}", *last]))
        return float(done.stdout.splitlines()[-1])

    def close(self) -> None:
        self._cache.cleanup()
