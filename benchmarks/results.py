"""What was measured, as data; JSON is exactly this."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.limits import Limits
from benchmarks.peers import OURS
from benchmarks.workload import Work
from blocklang.diagnostics import UsageError

FORMAT = 1


def count_threads(threads: int) -> str:
    return "1 thread" if threads == 1 else f"{threads} threads"


@dataclass(frozen=True)
class Timing:
    """One peer in one row: seconds of a call, or why there are none.

    Attributes:
        times: one per sample.
        cores: processor time over time, the median of the samples.
        failure: empty if all went well.
    """

    times: tuple[float, ...] = ()
    cores: float = 0.0
    failure: str = ""

    @property
    def median(self) -> float:
        return statistics.median(self.times)

    @property
    def best(self) -> float:
        return min(self.times)


@dataclass(frozen=True)
class Result:
    """One row at one number of threads.

    Attributes:
        work: what must at least be done; None where the machine sets no such limit.
        timings: by peer.
    """

    workload: str
    title: str
    family: str
    threads: int
    work: Work | None
    timings: Mapping[str, Timing]

    def measured(self) -> dict[str, Timing]:
        return {peer: timing for peer, timing in self.timings.items() if timing.times}

    @property
    def best_peer(self) -> str | None:
        """The peer with the least median, ours not counted."""
        others = {peer: timing.median for peer, timing in self.measured().items() if peer != OURS}
        return min(others, key=others.__getitem__) if others else None

    @property
    def ratio(self) -> float | None:
        """The best peer's median over ours: above 1, ours is faster."""
        best, ours = self.best_peer, self.measured().get(OURS)
        return self.timings[best].median / ours.median if best and ours else None

    @property
    def ratio_of_bests(self) -> float | None:
        """The same of the best samples."""
        ours = self.measured().get(OURS)
        others = [timing.best for peer, timing in self.measured().items() if peer != OURS]
        return min(others) / ours.best if others and ours else None


@dataclass
class Report:
    """All rows of a run, or of several that were appended to each other."""

    machine: str
    commands: list[str]
    versions: dict[str, str]
    absent: dict[str, str]
    limits: dict[int, Limits] = field(default_factory=dict)
    results: list[Result] = field(default_factory=list)

    def share(self, result: Result, peer: str) -> float | None:
        """The share of the machine's limit that a peer's median reaches; None where it is not known."""
        limits, timing = self.limits.get(result.threads), result.measured().get(peer)
        return limits.seconds(result.work) / timing.median if limits and result.work and timing else None

    def add_limits(self, threads: int, limits: Limits) -> None:
        """Note what the machine can do; the best of several measurements counts."""
        known = self.limits.get(threads)
        self.limits[threads] = known.or_better(limits) if known else limits

    def failures(self) -> list[str]:
        return [
            f"{result.workload}, {peer}, {count_threads(result.threads)}: {timing.failure}"
            for result in self.results
            for peer, timing in result.timings.items()
            if timing.failure
        ]

    def continued(self, earlier: Report, order: Iterable[str]) -> Report:
        """This report with those rows of an earlier one that it does not measure again, in the `order`."""
        again = {(result.workload, result.threads) for result in self.results}
        kept = [result for result in earlier.results if (result.workload, result.threads) not in again]
        rank = {name: number for number, name in enumerate(order)}
        results = sorted(kept + self.results, key=lambda result: (result.threads, rank[result.workload]))
        versions = earlier.versions | self.versions
        absent = {peer: why for peer, why in (earlier.absent | self.absent).items() if peer not in versions}
        commands = earlier.commands + self.commands
        joined = Report(self.machine, commands, versions, absent, dict(earlier.limits), results)
        for threads, limits in self.limits.items():
            joined.add_limits(threads, limits)
        return joined

    def to_json(self) -> str:
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=1) + "\n"

    @classmethod
    def read(cls, path: Path) -> Report:
        """Read a report. Raises UsageError if the file is none."""
        try:
            return cls._from_json(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise UsageError(
                f"{path} is no report of this command: {error}", help="append to a file that --json wrote"
            ) from error

    @classmethod
    def _from_json(cls, data: Mapping[str, Any]) -> Report:
        if data["format"] != FORMAT:
            raise ValueError(f"format {data['format']}, expected {FORMAT}")
        limits = {int(threads): Limits.from_json(each) for threads, each in data["limits"].items()}
        results = [_result_from_json(each) for each in data["results"]]
        return cls(data["machine"], data["commands"], data["versions"], data["absent"], limits, results)


def _result_from_json(data: Mapping[str, Any]) -> Result:
    timings = {
        peer: Timing(tuple(each["times"]), each["cores"], each["failure"])
        for peer, each in data["timings"].items()
    }
    work = data["work"] and Work(**data["work"])
    return Result(**{**data, "work": work, "timings": timings})
