"""`do_bench`: how long a call takes on the CPU, in milliseconds."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

_MOST_CALLS = 100_000


def do_bench(
    fn: Callable[[], object],
    warmup: float = 25,
    rep: float = 100,
    grad_to_none: Iterable[Any] | None = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
) -> Any:
    """Measure a call again and again; each call is timed by itself.

    Args:
        fn: what to measure.
        warmup, rep: about how many milliseconds to call it before measuring, and while measuring; at least
            one call for each.
        grad_to_none: tensors whose gradient is dropped before each call.
        quantiles: which quantiles of the times to return, as a list (as a number, if it is one).
        return_mode: without quantiles: "mean", "median", "min", "max", or "all" for every time.

    Returns:
        Milliseconds.

    Example:
        >>> from blocklang.tune import do_bench
        >>> do_bench(lambda: sum(range(1000)), warmup=1, rep=1) < 1000
        True
    """
    if return_mode not in ("mean", "median", "min", "max", "all"):
        raise ValueError(f"return_mode is {return_mode!r}; it may be mean, median, min, max or all")
    fn()
    estimate = _milliseconds(fn)
    for _ in range(_calls(warmup, estimate)):
        fn()
    times = []
    for _ in range(_calls(rep, estimate)):
        for tensor in grad_to_none or ():
            tensor.grad = None
        times.append(_milliseconds(fn))
    if quantiles is not None:
        found = [quantile(sorted(times), q) for q in quantiles]
        return found[0] if len(found) == 1 else found
    if return_mode == "all":
        return times
    import statistics  # 3 ms, which a program that measures nothing need not wait for

    summaries: dict[str, Callable[[list[float]], float]] = {
        "mean": statistics.fmean,
        "median": statistics.median,
        "min": min,
        "max": max,
    }
    return summaries[return_mode](times)


def _calls(milliseconds: float, estimate: float) -> int:
    return min(max(1, int(milliseconds / max(estimate, 1e-6))), _MOST_CALLS)


def _milliseconds(fn: Callable[[], object]) -> float:
    start = time.perf_counter_ns()
    fn()
    return (time.perf_counter_ns() - start) / 1e6


def quantile(ordered: Sequence[float], q: float) -> float:
    """Interpolated linearly between the two nearest."""
    if not 0 <= q <= 1:
        raise ValueError(f"a quantile lies between 0 and 1, got {q}")
    position = q * (len(ordered) - 1)
    below, above = math.floor(position), math.ceil(position)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)
