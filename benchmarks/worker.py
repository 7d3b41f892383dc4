"""The process of one peer: `python -m benchmarks.worker PEER THREADS`.

It reads messages from standard input and answers each on standard output; `messages` lists them.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from typing import IO

import numpy as np

from benchmarks.catalogue import find_entry
from benchmarks.messages import Message
from benchmarks.peers import import_peer
from benchmarks.workload import Call

_LONG = 0.02  # seconds; a call that takes longer is not repeated to find out how long it takes
_KILL_WITH_PARENT = 1  # PR_SET_PDEATHSIG of Linux


class Server:
    """Answers messages; holds at most one workload."""

    def __init__(self, peer: str, threads: int) -> None:
        self._peer = peer
        self._threads = threads
        self._call: Call = lambda: None
        self._answers: dict[str, Callable[[Message], Message]] = {
            "prepare": self._prepare,
            "run": self._run,
            "limits": self._measure_limits,
        }

    def answer(self, message: Message) -> Message:
        try:
            return self._answers[message["do"]](message)
        except Exception as error:  # noqa: BLE001 - whatever a peer raises is its result
            traceback.print_exc()
            return {"failure": f"{type(error).__name__}: {error}"}

    def _prepare(self, message: Message) -> Message:
        self._call = lambda: None
        gc.collect()
        workload = find_entry(message["workload"]).build(small=message["small"])
        call: Call = getattr(workload, self._peer)()
        workload.check(call(), np.load(message["exact"], mmap_mode="r"), self._peer)
        self._call = call
        return {"seconds": _estimate(call)}

    def _run(self, message: Message) -> Message:
        call, calls = self._call, range(message["calls"])
        gc.disable()
        if message["warm"]:
            call()
        used = time.process_time()
        start = time.perf_counter()
        for _ in calls:
            call()
        seconds = time.perf_counter() - start
        used = time.process_time() - used
        gc.enable()
        return {"seconds": seconds / len(calls), "cores": used / seconds}

    def _measure_limits(self, message: Message) -> Message:
        from benchmarks.limits import measure_limits

        return measure_limits(message["largest"]).to_json()


def _estimate(call: Call) -> float:
    """Seconds of one call."""
    calls = 1
    while True:
        start = time.perf_counter()
        for _ in range(calls):
            call()
        seconds = time.perf_counter() - start
        if seconds > _LONG / 10 or calls >= 4096:
            return seconds / calls
        calls *= 8


def _die_with_parent() -> None:
    """Linux only: a process that is stopped between its samples would otherwise outlive a killed parent."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_KILL_WITH_PARENT, signal.SIGKILL)


def _claim_output() -> IO[str]:
    """Standard output for the answers alone; what a library prints goes to standard error."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


def main() -> None:
    peer, threads = sys.argv[1], int(sys.argv[2])
    _die_with_parent()
    answers = _claim_output()
    import_peer(peer, threads)
    server = Server(peer, threads)
    print(json.dumps({"ready": peer}), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(server.answer(json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main()
