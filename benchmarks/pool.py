"""The parent's side of the peers' processes.

A process is stopped (SIGSTOP) while it is not asked: the threads of some libraries spin for a fifth of a
second after a call, and would take a core from the next peer.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from contextlib import AbstractContextManager
from types import TracebackType

from benchmarks.messages import Message
from benchmarks.peers import ROOT, environment_for

_CAN_STOP = hasattr(signal, "SIGSTOP")
_PATIENCE = 120.0  # seconds for one answer


class PeerFailure(Exception):
    """A peer could not do what it was asked to; the text is for the report."""


class PeerProcess:
    """One peer's process."""

    def __init__(self, peer: str, threads: int) -> None:
        self.peer = peer
        self._log = tempfile.TemporaryFile(mode="w+", encoding="utf-8", errors="replace")  # noqa: SIM115 - see close
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.worker", peer, str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            bufsize=0,  # nothing is left to write when the process has ended
            env=environment_for(threads),
            cwd=ROOT,
        )
        self._buffer = b""
        self._is_stopped = False
        self._is_ready = False

    def ask(self, message: Message) -> Message:
        """Send a message and wait for the answer. Raises PeerFailure if there is none or it says so."""
        if not self._is_ready:
            self._receive()
            self._is_ready = True
        self._signal(stop=False)
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
        except BrokenPipeError:
            raise self._ended() from None
        answer = self._receive()
        self._signal(stop=True)
        if "failure" in answer:
            raise PeerFailure(str(answer["failure"]))
        return answer

    def _receive(self) -> Message:
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._buffer:
                if not selector.select(_PATIENCE):
                    self.close()
                    raise PeerFailure(f"no answer within {_PATIENCE:.0f} s")
                data = os.read(self._process.stdout.fileno(), 1 << 16)
                if not data:
                    raise self._ended()
                self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        answer: Message = json.loads(line)
        return answer

    def _ended(self) -> PeerFailure:
        status = self._process.wait()
        self._log.seek(0)
        last = self._log.read().strip().splitlines()[-1:]
        return PeerFailure(": ".join([f"its process ended with status {status}", *last]))

    def _signal(self, *, stop: bool) -> None:
        if _CAN_STOP and stop != self._is_stopped:
            self._process.send_signal(signal.SIGSTOP if stop else signal.SIGCONT)
            self._is_stopped = stop

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._log):
            if stream is not None and not stream.closed:
                stream.close()


class Pool(AbstractContextManager["Pool"]):
    """The processes of several peers with the same number of threads, started side by side."""

    def __init__(self, peers: Iterable[str], threads: int) -> None:
        self.threads = threads
        self._processes = {peer: PeerProcess(peer, threads) for peer in peers}

    def __getitem__(self, peer: str) -> PeerProcess:
        """The peer's process; a new one if the last has ended."""
        process = self._processes[peer]
        if not process.is_alive:
            process.close()
            process = self._processes[peer] = PeerProcess(peer, self.threads)
        return process

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._processes.values():
            process.close()
