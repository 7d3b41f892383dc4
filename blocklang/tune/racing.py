"""Measuring several calls against each other: in turns, so that a slow moment of the machine hits all of
them, and without those that have turned out clearly slower.

A turn is some calls in a row, and short: times of one kernel may differ threefold from one tenth of a second
to the next (caches, other processes), and what lasts longer than a round is the same for all. After a round
those leave whose better times so far are above what the leader's median allows; the more turns all have had,
the less it allows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from blocklang.tune.benchmark import quantile

QUANTILES = (0.5, 0.2, 0.8)
_ROUNDS = 25
_BEST = 0.2  # the quantile of an entrant's times that is held against the leader's median
# From which round on it must not be above so many times that median. One turn says little.
_SLACK = ((3, 4.0), (6, 2.0), (10, 1.5), (16, 1.25), (21, 1.1))
_MOST_CALLS = 10_000  # of an entrant in a turn

EntrantT = TypeVar("EntrantT", bound=Hashable)


@dataclass
class Result:
    """The times of an entrant in milliseconds, and why it left before the end."""

    times: list[float] = field(default_factory=list)
    left: str = ""

    @property
    def median(self) -> float:
        return quantile(sorted(self.times), 0.5)

    @property
    def quantiles(self) -> tuple[float, ...]:
        """Median, 20 % and 80 % quantile; empty before the first call."""
        ordered = sorted(self.times)
        return tuple(quantile(ordered, q) for q in QUANTILES) if ordered else ()


def race(
    entrants: Sequence[EntrantT],
    turn: Callable[[EntrantT, Callable[[Callable[[], float]], None]], str],
    milliseconds: float,
    advance: Callable[[str, float], None] = lambda doing, done: None,
) -> dict[EntrantT, Result]:
    """Measure entrants in turns.

    Args:
        entrants: what to measure.
        turn: `turn(entrant, measure)` prepares a turn of an entrant, calls `measure(timed)` with a function
            that calls it once and returns milliseconds, and cleans up; it returns why the entrant has to
            leave, or "".
        milliseconds: about how long to measure each that stays to the end.
        advance: told what is measured, and how much is done.

    Returns:
        The times of each. At least one entrant that did not fail is measured to the end.
    """
    results = {entrant: Result() for entrant in entrants}
    running = list(entrants)
    budget = milliseconds / _ROUNDS
    for number in range(_ROUNDS):
        for place, entrant in enumerate(running):
            result = results[entrant]
            advance(f"{len(running)} configs", (number + place / len(running)) / _ROUNDS)
            if sum(result.times) >= milliseconds:  # long calls: one turn has told enough
                continue

            def measure(
                timed: Callable[[], float],
                result: Result = result,
                first: bool = number == 0,
            ) -> None:
                _take_turn(timed, result.times, budget, first)

            result.left = turn(entrant, measure)
        running = [entrant for entrant in running if not results[entrant].left]
        slack = min((slack for first, slack in _SLACK if first <= number + 1), default=math.inf)
        if len(running) > 1:
            _drop(running, results, slack)
            running = [entrant for entrant in running if not results[entrant].left]
        if len(running) < 2 and number:
            break
    return results


def _take_turn(timed: Callable[[], float], times: list[float], budget: float, is_first: bool) -> None:
    """Some calls in a row; the first of them finds caches of another's making and is not counted."""
    cold = timed()
    if is_first and cold < budget:
        timed()  # the first call of all may have compiled, or touched pages
    spent = 0.0
    for _ in range(_MOST_CALLS):
        times.append(timed())
        spent += times[-1]
        if spent >= budget:
            return


def _drop(running: Sequence[EntrantT], results: dict[EntrantT, Result], slack: float) -> None:
    leader = min(results[entrant].median for entrant in running)
    for entrant in running:
        result = results[entrant]
        if quantile(sorted(result.times), _BEST) > slack * leader:
            result.left = f"clearly slower after {len(result.times)} calls"
