"""The peers: who they are, whether they are installed, and how the number of threads is fixed for each.

A number of threads is an environment variable that a library reads while it is imported, so it is set before
the peer's process starts.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

from benchmarks.native import absence_of_compiler, compiler_version

OURS = "blocklang"
# Name: what it is called in tables.
PEERS = {
    OURS: "blocklang",
    "numpy": "NumPy",
    "torch": "PyTorch",
    "numba": "Numba",
    "jax": "JAX",
    "c": "C",
}
ROOT = Path(__file__).resolve().parents[1]

# Some machines set these to make OpenBLAS choose other kernels: the peers run as their wheels ship them.
_UNSET = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "BLOCKLANG_INTERPRET", "BLOCKLANG_CPU", "TRITON_INTERPRET")
_THREAD_COUNTS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "BLOCKLANG_NUM_THREADS",
    "NPROC",  # the size of XLA's pool
)


def absence_of(peer: str) -> str | None:
    """Why a peer cannot take part; None if it can."""
    if peer == "c":
        return absence_of_compiler()
    return None if importlib.util.find_spec(peer) else "not installed"


def version_of(peer: str) -> str:
    """The version of a peer that is installed."""
    if peer == "c":
        return compiler_version()
    try:
        return importlib.metadata.version(peer)
    except importlib.metadata.PackageNotFoundError:
        return "checkout"


def environment_for(threads: int) -> dict[str, str]:
    """The environment of a peer's process with `threads` threads, which finds this checkout first."""
    environment = {name: value for name, value in os.environ.items() if name not in _UNSET}
    environment |= dict.fromkeys(_THREAD_COUNTS, str(threads))
    eigen = str(threads > 1).lower()
    environment["XLA_FLAGS"] = f"--xla_cpu_multi_thread_eigen={eigen}"
    environment["JAX_PLATFORMS"] = "cpu"
    environment["PYTHONPATH"] = os.pathsep.join(_search_path())
    return environment


def _search_path() -> Iterator[str]:
    yield str(ROOT)
    if inherited := os.environ.get("PYTHONPATH"):
        yield inherited


def import_peer(peer: str, threads: int) -> None:
    """In the peer's process: import its library and fix its threads."""
    if peer == "torch":
        import torch

        torch.set_num_threads(threads)
    elif peer == "numba":
        import numba

        numba.set_num_threads(threads)
    elif peer == "jax":
        import jax

        jax.devices()
    elif peer == OURS:
        import blocklang

        blocklang.set_num_threads(threads)
