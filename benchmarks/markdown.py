"""A report as Markdown: one table per number of threads, then what could not be measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from benchmarks.limits import Limits
from benchmarks.peers import OURS, PEERS
from benchmarks.results import Report, Result, Timing, count_threads


def to_markdown(report: Report) -> str:
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    versions = ", ".join(f"{PEERS[peer]} {version}" for peer, version in report.versions.items())
    yield f"{report.machine}; {versions}\n"
    yield from (f"    {command}" for command in report.commands)
    yield ""
    yield (
        "Milliseconds a call, median (best) of interleaved samples, every peer in a process of its own. "
        "Ratio: the best peer's median over ours, of the best samples in parentheses; above 1, blocklang is "
        "faster. Limit: the share of this machine's limit for the workload that ours and the best peer reach."
    )
    for threads in sorted({result.threads for result in report.results}):
        rows = [result for result in report.results if result.threads == threads]
        yield f"\n## {count_threads(threads)}\n"
        if threads in report.limits:
            yield _describe(report.limits[threads]) + "\n"
        yield from _table(report, rows)
    for peer, why in report.absent.items():
        yield f"\nAbsent: {PEERS[peer]} ({why})."
    failures = report.failures()
    if failures:
        yield "\nFailed:\n"
        yield from (f"- {failure}" for failure in failures)


def _describe(limits: Limits) -> str:
    peaks = ", ".join(f"{kind} {rate / 1e9:.0f} G" for kind, rate in limits.operations.items())
    triad = ", ".join(f"{size >> 20} MiB {rate / 1e9:.1f}" for size, rate in limits.triad.items())
    read = ", ".join(f"{size >> 20} MiB {rate / 1e9:.1f}" for size, rate in limits.read.items())
    return f"Limits: operations a second {peaks}; GB/s of a triad {triad}; of reading {read}."


def _table(report: Report, results: Iterable[Result]) -> Iterator[str]:
    results = tuple(results)
    peers = [peer for peer in PEERS if peer != OURS and any(peer in result.timings for result in results)]
    heads = ["workload", PEERS[OURS], *(PEERS[peer] for peer in peers), "ratio", "limit: ours, best peer"]
    yield f"| {' | '.join(heads)} |"
    yield "| --- " * len(heads) + "|"
    for result in results:
        cells = [
            f"{result.title} (`{result.workload}`)",
            *(_time(result, peer) for peer in (OURS, *peers)),
            _ratio(result),
            _shares(report, result),
        ]
        yield f"| {' | '.join(cells)} |"


def _time(result: Result, peer: str) -> str:
    timing = result.timings.get(peer)
    if timing is None:
        return ""
    if timing.failure:
        return "failed"
    text = f"{format_ms(timing.median)} ({format_ms(timing.best)})" + _excess(result, timing)
    return f"**{text}**" if peer == result.best_peer else text


def _excess(result: Result, timing: Timing) -> str:
    """A peer that used more cores than it was given is marked."""
    return f" [{timing.cores:.1f} cores]" if timing.cores > 1.2 * result.threads else ""


def format_ms(seconds: float) -> str:
    """Milliseconds with three digits, and no fewer than the whole ones."""
    ms = seconds * 1e3
    return f"{ms:.0f}" if ms >= 100 else f"{ms:.3g}" if ms >= 0.001 else f"{ms:.2g}"


def _ratio(result: Result) -> str:
    medians, bests = result.ratio, result.ratio_of_bests
    return f"{medians:.2f} ({bests:.2f})" if medians and bests else ""


def _shares(report: Report, result: Result) -> str:
    peers = (OURS, result.best_peer)
    shares = [report.share(result, peer) if peer else None for peer in peers]
    return ", ".join("–" if share is None else f"{share:.0%}" for share in shares) if any(shares) else ""
