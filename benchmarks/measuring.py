"""Peers of one row measured in turns, A B C A B C, until the time is used up."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from benchmarks.catalogue import family_of
from benchmarks.fresh import FreshEntry, FreshProcesses
from benchmarks.pool import PeerFailure, Pool
from benchmarks.results import Result, Timing
from benchmarks.workload import Entry, Work

SAMPLE_SECONDS = 0.01  # calls that take less are repeated within a sample
LEAST_SAMPLES = 3
MOST_SAMPLES = 200

Sample = tuple[float, float]  # seconds of one call, and how many cores it used
Say = Callable[[str], None]


def measure(
    entry: Entry,
    pool: Pool,
    peers: Iterable[str],
    seconds: float,
    *,
    small: bool,
    say: Say,
) -> Result:
    """Check the peers' results and time them, for about `seconds` in all.

    Args:
        small: whether to take the sizes of the tests.
        say: told what is being done, for the progress bar.
    """
    say("reference")
    workload = entry.build(small=small)
    taking_part = [peer for peer in peers if hasattr(workload, peer)]
    estimates: dict[str, float] = {}
    failures: dict[str, str] = {}
    with tempfile.NamedTemporaryFile(suffix=".npy") as file:
        np.save(file, workload.exact())
        file.flush()
        for peer in taking_part:
            say(f"{peer}: check")
            message = {"do": "prepare", "workload": entry.name, "small": small, "exact": file.name}
            try:
                estimates[peer] = pool[peer].ask(message)["seconds"]
            except PeerFailure as failure:
                failures[peer] = str(failure)

    def sample(peer: str) -> Sample:
        calls = max(1, int(SAMPLE_SECONDS / max(estimates[peer], 1e-9)))
        message = {"do": "run", "calls": calls, "warm": estimates[peer] < SAMPLE_SECONDS}
        answer = pool[peer].ask(message)
        return answer["seconds"], answer["cores"]

    say("measure")
    timings = take_turns(dict.fromkeys(estimates, sample), seconds, failures)
    return _result(entry, pool.threads, timings, taking_part, workload.work)


def measure_fresh(
    entry: FreshEntry, threads: int, peers: Iterable[str], seconds: float, *, say: Say
) -> Result:
    """The same for a row that is measured in fresh processes."""
    taking_part = [peer for peer in peers if peer in entry.peers]
    failures: dict[str, str] = {}
    processes: dict[str, FreshProcesses] = {}
    for peer in taking_part:
        say(f"{peer}: caches")
        try:
            processes[peer] = FreshProcesses(entry, peer, threads)
        except PeerFailure as failure:
            failures[peer] = str(failure)

    def sample(peer: str) -> Sample:
        return processes[peer].measure(), 0.0

    say("measure")
    timings = take_turns(dict.fromkeys(processes, sample), seconds, failures)
    for each in processes.values():
        each.close()
    return _result(entry, threads, timings, taking_part, None)


def _result(
    entry: Entry | FreshEntry,
    threads: int,
    timings: Mapping[str, Timing],
    order: Iterable[str],
    work: Work | None,
) -> Result:
    in_order = {peer: timings[peer] for peer in order}
    return Result(entry.name, entry.title, family_of(entry.name), threads, work, in_order)


def take_turns(
    peers: Mapping[str, Callable[[str], Sample]], seconds: float, failures: Mapping[str, str]
) -> dict[str, Timing]:
    """Samples of every peer in turn.

    A peer that has used its share of the time waits until the others have used theirs, so that a slow one
    does not leave the fast ones with few samples; each has LEAST_SAMPLES unless these take longer than
    all the time.
    """
    samples: dict[str, list[Sample]] = {peer: [] for peer in peers}
    used = dict.fromkeys(peers, 0.0)
    failed = dict(failures)
    share = seconds / max(len(peers), 1)
    active = list(peers)
    while active:
        for peer in active:
            start = time.perf_counter()
            try:
                samples[peer].append(peers[peer](peer))
            except PeerFailure as failure:
                failed[peer] = str(failure)
            used[peer] += time.perf_counter() - start
        active = [
            peer
            for peer in active
            if peer not in failed
            and len(samples[peer]) < MOST_SAMPLES
            and (used[peer] < share or (len(samples[peer]) < LEAST_SAMPLES and used[peer] < seconds))
        ]
    timings = {peer: Timing(failure=text) for peer, text in failed.items()}
    for peer in peers:
        if peer not in failed:
            times, cores = zip(*samples[peer], strict=True)
            timings[peer] = Timing(times, statistics.median(cores))
    return timings
