"""A whole run: the chosen rows, for each number of threads, with the chosen peers."""

from __future__ import annotations

import os
import platform
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.catalogue import ENTRIES, FAMILIES, FRESH_FAMILY, all_names, choose, family_of, title_of
from benchmarks.fresh import FRESH
from benchmarks.limits import FOOTPRINTS, Limits
from benchmarks.measuring import measure, measure_fresh
from benchmarks.peers import OURS, PEERS, absence_of, version_of
from benchmarks.pool import PeerFailure, Pool
from benchmarks.progress import Step, progress
from benchmarks.results import Report, Result
from blocklang.diagnostics import UsageError


@dataclass(frozen=True)
class Request:
    """What to measure.

    Attributes:
        workloads: words for `catalogue.choose`.
        peers: names of peers; ours is always among them. Empty for all.
        threads: numbers of threads, one table each.
        seconds: how long to sample each row, all peers together.
        small: the sizes of the tests instead of the table's.
        earlier: a report whose other rows are kept.
    """

    workloads: Sequence[str] = ()
    peers: Sequence[str] = ()
    threads: Sequence[int] = (1, 2)
    seconds: float = 4.0
    small: bool = False
    earlier: Path | None = None

    @property
    def command(self) -> str:
        """The command line that asks for this."""
        words = ["blocklang bench", *map(shlex.quote, self.workloads)]
        words += ["--threads", ",".join(map(str, self.threads)), "--seconds", f"{self.seconds:g}"]
        words += ["--peers", ",".join(self.peers)] if self.peers else []
        words += ["--small"] if self.small else []
        return " ".join(words)


def run(request: Request, keep: Callable[[Report], None] = lambda report: None) -> Report:
    """Measure. Raises UsageError for names that do not exist, before anything is measured.

    Args:
        keep: given the report so far after every row, so that a run that is broken off is not lost.
    """
    names = choose(request.workloads)
    asked = _checked_peers(request.peers)
    earlier = Report.read(request.earlier) if request.earlier else None
    absent = {peer: why for peer in asked if (why := absence_of(peer))}
    present = [peer for peer in asked if peer not in absent]
    versions = {peer: version_of(peer) for peer in present}
    report = Report(_describe_machine(), [request.command], versions, absent)
    with progress(len(names) * len(request.threads)) as start:
        for threads in request.threads:
            for result in _measure_all(names, present, threads, request, report, start):
                report.results.append(result)
                keep(_joined(report, earlier))
    return _joined(report, earlier)


def _joined(report: Report, earlier: Report | None) -> Report:
    return report.continued(earlier, all_names()) if earlier else report


def _checked_peers(words: Sequence[str]) -> list[str]:
    unknown = [word for word in words if word not in PEERS]
    if unknown:
        raise UsageError(f"there is no peer {unknown[0]!r}", help=f"The peers: {', '.join(PEERS)}")
    return [peer for peer in PEERS if not words or peer in words or peer == OURS]


def _measure_all(
    names: Sequence[str], peers: Sequence[str], threads: int, request: Request, report: Report, start: Step
) -> Iterator[Result]:
    standing = [name for name in names if name in ENTRIES]
    if standing:
        taking_part = [peer for peer in peers if any(hasattr(ENTRIES[name].make, peer) for name in standing)]
        with Pool(taking_part, threads) as pool:
            has_limits = "c" in taking_part and not request.small
            if has_limits:
                _measure_limits(pool, report)
            for name in standing:
                say = start(name)
                yield measure(ENTRIES[name], pool, peers, request.seconds, small=request.small, say=say)
            if has_limits:  # once more: whatever else the machine does meanwhile makes them too low
                _measure_limits(pool, report)
    for name in names:
        if name in FRESH:
            yield measure_fresh(FRESH[name], threads, peers, request.seconds, say=start(name))


def _measure_limits(pool: Pool, report: Report) -> None:
    """Note the machine's limits with this many threads in the report, or why C cannot tell."""
    try:
        limits = Limits.from_json(pool["c"].ask({"do": "limits", "largest": FOOTPRINTS[-1]}))
    except PeerFailure as failure:
        report.absent["c"] = str(failure)
    else:
        report.add_limits(pool.threads, limits)


def _describe_machine() -> str:
    from blocklang.cli.doctor import model_name
    from blocklang.target import current_target

    target = current_target()
    return (
        f"{model_name()} ({target.cpu}, {target.vector_bytes}-byte vectors, {os.cpu_count()} CPUs), "
        f"Python {platform.python_version()}"
    )


def list_workloads() -> str:
    """Every row by family, with the peers that take part."""
    return "\n".join(_listing()) + "\n"


def _listing() -> Iterator[str]:
    width = max(map(len, all_names()))
    titles = max(len(title_of(name)) for name in all_names())
    for family in (*FAMILIES, FRESH_FAMILY):
        yield f"{family}:"
        for name in all_names():
            if family_of(name) == family:
                peers = [peer for peer in PEERS if _takes_part(name, peer)]
                yield f"  {name:<{width}}  {title_of(name):<{titles}}  {' '.join(peers)}"
    yield "peers:"
    for peer in PEERS:
        yield f"  {peer:<{width}}  {absence_of(peer) or version_of(peer)}"


def _takes_part(name: str, peer: str) -> bool:
    return hasattr(ENTRIES[name].make, peer) if name in ENTRIES else peer in FRESH[name].peers
