"""A fresh process: `python -m benchmarks.first_result NAME PEER` prints the seconds of the first result.

For the row `import` they are those of the peer's import, NumPy's included; for the others the import is done
before the clock starts, and so are the inputs: what is left is the compilation and one small computation.
"""

from __future__ import annotations

import importlib
import os
import sys
import time


def time_import(peer: str) -> float:
    start = time.perf_counter()
    importlib.import_module(peer)
    return time.perf_counter() - start


def time_first_result(name: str, peer: str) -> float:
    from benchmarks.fresh import FRESH
    from benchmarks.peers import import_peer

    entry = FRESH[name]
    assert entry.make is not None
    import_peer(peer, int(os.environ["OMP_NUM_THREADS"]))
    workload = entry.make(**entry.sizes)
    start = time.perf_counter()
    getattr(workload, peer)()()
    return time.perf_counter() - start


def main() -> None:
    name, peer = sys.argv[1:]
    print(time_import(peer) if name == "import" else time_first_result(name, peer))


if __name__ == "__main__":
    main()
