"""Every program of a launch runs exactly once, whatever the number of threads, and the pool is sound."""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.typing import NDArray

from blocklang.runtime.launch import WAKE_NS, LoadedKernel
from blocklang.runtime.pool import Job, WorkerPool, shared_pool
from tests.runtime.native_kernels import COUNT, GRID, SCRATCH, WAIT_FOR_PREDECESSOR, WORK, load_kernel


def slots(out: NDArray[np.int64]) -> bytes:
    return int(out.ctypes.data).to_bytes(8, "little")


def run(kernel: LoadedKernel, grid: tuple[int, int, int], threads: int) -> NDArray[np.int64]:
    """The array that a launch leaves, with a canary at its end."""
    out = np.zeros(math.prod(grid) + 1, np.int64)
    kernel.launch(slots(out), grid, threads)
    assert out[-1] == 0
    return out[:-1]


@pytest.fixture(scope="module")
def counter() -> LoadedKernel:
    return load_kernel(COUNT)


@pytest.fixture(scope="module")
def worker() -> LoadedKernel:
    return load_kernel(WORK, ITERATIONS=100_000)


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize("programs", [1, 2, 7, 64, 1000])
def test_every_program_runs_once(worker: LoadedKernel, programs: int, threads: int) -> None:
    assert (run(worker, (programs, 1, 1), threads) == 1).all()


def test_short_launches_stay_on_the_calling_thread(counter: LoadedKernel) -> None:
    counter.program_ns.value = 1.0
    workers = shared_pool()._workers
    assert (run(counter, (100, 1, 1), workers + 5) == 1).all()
    assert shared_pool()._workers == workers


def test_a_grid_of_zero_runs_nothing(counter: LoadedKernel) -> None:
    assert run(counter, (0, 5, 1), 2).size == 0


def test_the_entry_sees_the_grid() -> None:
    assert (run(load_kernel(GRID), (3, 4, 5), 2) == 3_004_005).all()


def test_time_per_program_is_learned(worker: LoadedKernel) -> None:
    run(worker, (50, 1, 1), 2)
    assert 1_000 < worker.program_ns.value < 100_000_000


def test_a_disturbed_launch_is_forgotten(counter: LoadedKernel) -> None:
    counter.program_ns.value = 1e9
    for _ in range(40):
        run(counter, (100, 1, 1), 2)
    assert counter.program_ns.value * 100 < WAKE_NS


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_programs_may_wait_for_lower_ids(threads: int) -> None:
    kernel = load_kernel(WAIT_FOR_PREDECESSOR)
    kernel.program_ns.value = 1e6  # long enough for the pool
    assert (run(kernel, (500, 1, 1), threads) == 1).all()


def test_each_thread_has_its_own_aligned_scratch() -> None:
    kernel = load_kernel(SCRATCH, scratch_bytes=1000)
    kernel.program_ns.value = 1e6
    addresses = np.unique(run(kernel, (400, 1, 1), 3))
    assert 1 <= len(addresses) <= 3
    assert (addresses % 64 == 0).all()
    assert (np.diff(np.sort(addresses)) >= 1000).all()


def test_scratch_grows_and_is_zero_at_first() -> None:
    from blocklang.runtime.arena import scratch_address

    def look() -> None:
        import ctypes

        small = scratch_address(64)
        ctypes.memset(small, 0xFF, 64)
        large = scratch_address(1 << 20)
        assert bytes((ctypes.c_char * (1 << 20)).from_address(large)) == bytes(1 << 20)
        assert scratch_address(64) == large

    with ThreadPoolExecutor(1) as executor:
        executor.submit(look).result()


def test_launches_from_many_threads_at_once(worker: LoadedKernel) -> None:
    with ThreadPoolExecutor(8) as executor:
        results = list(executor.map(lambda _: run(worker, (40, 1, 1), 3), range(24)))
    assert all((out == 1).all() for out in results)


def test_other_python_threads_run_during_a_launch() -> None:
    kernel = load_kernel(WORK, ITERATIONS=500_000_000)
    ticks = []
    done = threading.Event()

    def tick() -> None:
        while not done.wait(0.005):
            ticks.append(time.perf_counter())

    thread = threading.Thread(target=tick)
    thread.start()
    start = time.perf_counter()
    run(kernel, (1, 1, 1), 1)
    end = time.perf_counter()
    done.set()
    thread.join()
    assert sum(start < t < end for t in ticks) >= 3


def _interrupt_during_a_launch() -> int:
    kernel = load_kernel(WORK, ITERATIONS=3_000_000)
    kernel.program_ns.value = 1e6
    out = np.zeros(100_000, np.int64)
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        kernel.launch(slots(out), (100_000, 1, 1), 2)
    except KeyboardInterrupt:
        ran = int(out.sum())
        time.sleep(0.05)
        return ran if ran == int(out.sum()) and out.max() == 1 else -1
    return -2


def _child(connection: object, what: str) -> None:
    result = globals()[what]()
    connection.send(result)  # type: ignore[attr-defined]


def in_child(what: str) -> object:
    """What a function of this module returns in a forked child."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    process = context.Process(target=_child, args=(there, what))
    process.start()
    assert here.poll(60), "the child does not answer"
    result = here.recv()
    process.join(10)
    assert process.exitcode == 0
    return result


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_an_interrupt_ends_the_launch_and_leaves_no_program_running() -> None:
    ran = in_child("_interrupt_during_a_launch")
    assert isinstance(ran, int)
    assert 0 < ran < 100_000


def _launch_on_two_threads() -> bool:
    kernel = load_kernel(WORK, ITERATIONS=100_000)
    return bool((run(kernel, (200, 1, 1), 2) == 1).all())


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_workers_of_its_own(worker: LoadedKernel) -> None:
    run(worker, (200, 1, 1), 2)  # the parent has workers
    assert in_child("_launch_on_two_threads") is True
    assert (run(worker, (200, 1, 1), 2) == 1).all()


def test_more_threads_may_be_allowed_than_the_system_has(
    worker: LoadedKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A launch asks for at most so many: if no thread can be started, the calling one does it all."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("blocklang.runtime.pool.MAXIMUM_WORKERS", 3)
    for workers in (3, 0):
        pool = WorkerPool()
        monkeypatch.setattr("blocklang.runtime.pool._pool", pool)
        assert (run(worker, (200, 1, 1), 10**6) == 1).all()
        assert pool._workers == workers
        monkeypatch.setattr(threading.Thread, "start", refuse)


def test_an_error_in_a_worker_is_raised_by_the_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = load_kernel(WORK, ITERATIONS=1_000_000)
    caller = threading.get_ident()

    def no_memory(size: int) -> int:
        if threading.get_ident() != caller:
            raise MemoryError(size)
        return 0

    monkeypatch.setattr("blocklang.runtime.pool.scratch_address", no_memory)
    out = np.zeros(2000, np.int64)
    with pytest.raises(MemoryError):
        WorkerPool().run(Job(kernel.entry, _address_of(slots(out)), (2000, 1, 1), 0, 2000, 1, 1, 64), 2)


_kept: list[object] = []


def _address_of(data: bytes) -> int:
    import ctypes

    buffer = ctypes.create_string_buffer(data, len(data))
    _kept.append(buffer)
    return ctypes.addressof(buffer)
