"""Time all spellings of each family in turns: A B C A B C, in one process, on one thread.

What is compared is the code, not where memory lies: all spellings share one set of arrays, but for those that
work in place, and a sample is a number of launches behind one that brings the arrays into the caches.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator

import blocklang as bl
from benchmarks.spellings import FAMILIES, Family, Problem
from benchmarks.spellings.family import Launch

GOAL = 0.8
SECONDS = 2e-3  # a sample holds as many launches as take about this long


def time_family(family: Family, turns: int) -> dict[str, tuple[float, ...]]:
    """Seconds of every spelling, `turns` samples of each in turn; each is checked before it is timed."""
    shared = family.make(False)
    problems: dict[str, Problem] = {}
    for name, launch in family.spellings.items():
        own = family.make(False)
        found = launch(own)
        own.check(found)
        problems[name] = shared if found is own.out else own
    launches = {name: _launches(launch, problems[name]) for name, launch in family.spellings.items()}
    samples: dict[str, list[float]] = {name: [] for name in family.spellings}
    for _ in range(turns):
        for name, launch in family.spellings.items():
            samples[name].append(_sample(launch, problems[name], launches[name]))
    return {name: tuple(times) for name, times in samples.items()}


def _sample(launch: Launch, problem: Problem, launches: int) -> float:
    """Seconds of one launch, the mean of several."""
    launch(problem)
    start = time.perf_counter()
    for _ in range(launches):
        launch(problem)
    return (time.perf_counter() - start) / launches


def _launches(launch: Launch, problem: Problem) -> int:
    return max(1, round(SECONDS / _sample(launch, problem, 1)))


def describe(family: Family, samples: dict[str, tuple[float, ...]]) -> Iterator[str]:
    """A table, the fastest first, and the ratio of the fastest to the slowest."""
    medians = {name: statistics.median(times) for name, times in samples.items()}
    fastest, slowest = min(medians.values()), max(medians.values())
    yield f"{family.name}: {len(samples)} spellings, milliseconds: median (best), share of the fastest"
    for name in sorted(medians, key=medians.__getitem__):
        best = min(samples[name])
        yield f"  {medians[name] * 1e3:8.3f} ({best * 1e3:.3f})  {fastest / medians[name]:5.2f}  {name}"
    best_of = [min(times) for times in samples.values()]
    yield (
        f"  slowest / fastest: {fastest / slowest:.2f} by medians, {min(best_of) / max(best_of):.2f} by bests"
        f" (goal: {GOAL})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spellings", description=__doc__)
    parser.add_argument("families", nargs="*", metavar="FAMILY", help=f"of {', '.join(FAMILIES)}")
    parser.add_argument("--turns", type=int, default=15, help="samples of each spelling")
    options = parser.parse_args()
    unknown = set(options.families) - FAMILIES.keys()
    if unknown:
        parser.error(f"no such family: {', '.join(sorted(unknown))}; choose from {', '.join(FAMILIES)}")
    bl.set_num_threads(1)
    for name in options.families or FAMILIES:
        print("\n".join(describe(FAMILIES[name], time_family(FAMILIES[name], options.turns))))


if __name__ == "__main__":
    main()
