"""What tests, examples and benchmarks of kernels share: measuring side by side, arrays that nobody has
written.

Not a benchmark suite and not a test framework; those of the user call these functions.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping

from blocklang.runtime.watching import uninitialised

__all__ = ["format_times", "time_in_turns", "uninitialised"]


def time_in_turns(calls: Mapping[str, Callable[[], object]], *, seconds: float = 0.5) -> dict[str, float]:
    """Median time of each call, in seconds. The calls take turns, so that a busy moment hits all alike.

    Args:
        calls: what to measure, by name. Each is called once before, so that compilation is not timed.
        seconds: about how long the whole measurement may take; there are at least 5 turns and at most 200.
    """
    for call in calls.values():
        call()
    one_turn = sum(_time(call) for call in calls.values())
    turns = min(max(int(seconds / max(one_turn, 1e-9)), 5), 200)
    samples = [{name: _time(call) for name, call in calls.items()} for _ in range(turns)]
    return {name: statistics.median(sample[name] for sample in samples) for name in calls}


def _time(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def format_times(times: Mapping[str, float]) -> str:
    """One line a name, with each time as a multiple of the first."""
    width = max(map(len, times))
    first = next(iter(times.values()))
    return "\n".join(
        f"  {name:<{width}}  {seconds * 1e3:9.3f} ms   {seconds / first:5.2f}x the time"
        for name, seconds in times.items()
    )
