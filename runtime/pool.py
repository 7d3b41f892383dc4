"""The persistent workers, and how one launch is spread over them.

The programs of a launch are cut into chunks of consecutive ids. A thread takes the next chunk from an
atomic counter, in machine code (`_DRAIN`), runs it in ascending order, and comes back for another: chunks
start in ascending order, so a program may wait for any lower id: the lowest one that has not ended is
running, or in the next chunk to be taken, and waits for nobody (docs/semantics.md has the whole argument).
The calling thread works too; workers that are busy with another launch are not waited for, so concurrent
launches make progress whatever the number of workers.

Invariants: `run` returns only when no thread runs a program of that launch any more, even if it is
    interrupted or a worker fails; no lock is held while programs run; ctypes has released the GIL then. A
    forked child starts without workers and makes its own.
"""

from __future__ import annotations

import ctypes
import os
import threading
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import NamedTuple

from blocklang.runtime.arena import scratch_address
from blocklang.runtime.loader import LoadedObject, assemble

# drain(entry, work, scratch, most): run up to `most` chunks; the result is 1 if some may be left. `work` is a
# `_Work`.
_DRAIN = """
define i64 @drain(ptr %entry, ptr %work, ptr %scratch, i64 %most) {
start:
  %total.at = getelementptr i64, ptr %work, i64 8
  %total = load i64, ptr %total.at
  %chunk.at = getelementptr i64, ptr %work, i64 9
  %chunk = load i64, ptr %chunk.at
  %arguments.at = getelementptr i64, ptr %work, i64 10
  %arguments = load ptr, ptr %arguments.at
  %grid = getelementptr i64, ptr %work, i64 11
  br label %next
next:
  %left = phi i64 [ %most, %start ], [ %left.after, %execute ]
  %none = icmp eq i64 %left, 0
  br i1 %none, label %more, label %take
take:
  %begin = atomicrmw add ptr %work, i64 %chunk seq_cst
  %over = icmp sge i64 %begin, %total
  br i1 %over, label %done, label %execute
execute:
  %rest = sub i64 %total, %begin
  %short = icmp slt i64 %rest, %chunk
  %count = select i1 %short, i64 %rest, i64 %chunk
  %end = add i64 %begin, %count
  call void %entry(ptr %arguments, ptr %grid, i64 %begin, i64 %end, ptr %scratch)
  %left.after = sub i64 %left, 1
  br label %next
more:
  ret i64 1
done:
  ret i64 0
}
"""


MAXIMUM_WORKERS = 256  # whatever a launch allows: beyond the CPUs they only cost memory


class _Work(ctypes.Structure):
    """What `drain` reads; the counter has a cache line of its own."""

    _fields_ = [
        ("counter", ctypes.c_int64),
        ("padding", ctypes.c_int64 * 7),
        ("total", ctypes.c_int64),
        ("chunk", ctypes.c_int64),
        ("arguments", ctypes.c_void_p),
        ("grid", ctypes.c_int32 * 3),
    ]


class _Drain:
    """The native `drain`, loaded on first use."""

    def __init__(self) -> None:
        self._object = LoadedObject(assemble(_DRAIN), ["drain"])
        prototype = ctypes.CFUNCTYPE(
            ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64
        )
        self.call = prototype(self._object.address("drain"))


class Job(NamedTuple):
    """The programs of one launch.

    Attributes:
        entry: address of the kernel's entry.
        arguments: address of the argument slots.
        grid: three extents.
        begin, total: programs begin <= id < total are to be run.
        chunk: programs per chunk.
        burst: chunks that the calling thread runs before it looks for signals.
        scratch_bytes: size of the arena that each thread needs.
    """

    entry: int
    arguments: int
    grid: tuple[int, int, int]
    begin: int
    total: int
    chunk: int
    burst: int
    scratch_bytes: int


@dataclass
class _Run:
    """A job in progress: who works on it, and what went wrong."""

    job: Job
    work: _Work
    lock: threading.Lock = field(default_factory=threading.Lock)
    finished: threading.Event = field(default_factory=threading.Event)
    active: int = 0
    closed: bool = False
    error: BaseException | None = None

    def enter(self) -> bool:
        with self.lock:
            if not self.closed:
                self.active += 1
            return not self.closed

    def leave(self, error: BaseException | None) -> None:
        with self.lock:
            self.active -= 1
            self.error = self.error or error
            if self.closed and self.active == 0:
                self.finished.set()

    def close(self) -> None:
        """Let no further worker in and wait until those inside have left; late interrupts are raised then."""
        interrupt: BaseException | None = None
        while True:
            try:
                with self.lock:
                    self.closed = True
                    is_left = self.active == 0
                if not is_left:
                    self.finished.wait()
                break
            except KeyboardInterrupt as late:
                interrupt = late
                self.stop()
        if interrupt is not None:
            raise interrupt

    def stop(self) -> None:
        """Let no thread take another chunk. One that is taken just now still runs."""
        self.work.counter = self.job.total


class WorkerPool:
    """Threads that wait for launches; made when first needed, kept for the process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queue: SimpleQueue[_Run] = SimpleQueue()
        self._workers = 0
        self._drain: _Drain | None = None

    def run(self, job: Job, threads: int) -> None:
        """Run all programs of the job on the calling thread and up to `threads - 1` workers."""
        work = _Work(
            counter=job.begin, total=job.total, chunk=job.chunk, arguments=job.arguments, grid=job.grid
        )
        run = _Run(job, work)
        scratch = scratch_address(job.scratch_bytes)
        drain = self._native_drain()
        helpers = min(threads - 1, -(-(job.total - job.begin) // job.chunk) - 1, MAXIMUM_WORKERS)
        try:
            if helpers > 0:
                for _ in range(min(helpers, self._grow(helpers))):
                    self._queue.put(run)
            # Between two calls Python sees signals, such as an interrupt from the keyboard.
            while drain(job.entry, ctypes.addressof(work), scratch, job.burst):
                pass
        except BaseException:
            run.stop()
            raise
        finally:
            run.close()
        if run.error is not None:
            raise run.error

    def _native_drain(self) -> ctypes._FuncPointer:
        with self._lock:
            if self._drain is None:
                self._drain = _Drain()
            return self._drain.call

    def _grow(self, count: int) -> int:
        """Make workers until there are `count` or the system allows no more; how many there are now."""
        with self._lock:
            for number in range(self._workers, count):
                try:
                    threading.Thread(target=self._serve, name=f"blocklang-{number}", daemon=True).start()
                except RuntimeError:  # no more threads for this process: a launch asks for at most so many
                    break
                self._workers += 1
            return self._workers

    def _serve(self) -> None:
        while True:
            run = self._queue.get()
            self._help(run)
            del run  # the launch's memory is not kept until the next one comes

    def _help(self, run: _Run) -> None:
        if not run.enter():
            return
        error: BaseException | None = None
        try:
            scratch = scratch_address(run.job.scratch_bytes)
            assert self._drain is not None
            self._drain.call(run.job.entry, ctypes.addressof(run.work), scratch, 1 << 62)
        except BaseException as failure:  # noqa: BLE001 (raised again by the launching thread)
            error = failure
            run.stop()
        finally:
            run.leave(error)


_pool = WorkerPool()


def shared_pool() -> WorkerPool:
    """The pool of this process."""
    return _pool


def _start_anew() -> None:
    """In a forked child no worker lives and locks may be held by threads that do not exist."""
    global _pool
    drain = _pool._drain
    _pool = WorkerPool()
    _pool._drain = drain  # machine code is copied by fork


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew)
