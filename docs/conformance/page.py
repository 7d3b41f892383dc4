"""The page as text, and the states that a page states."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby

from docs.conformance.model import Outcome, State

_INTRODUCTION = """\
# Conformance

<!-- Written by `python -m docs.conformance`. -->

Every name of Triton 3.7's surface, and what running a small probe of it showed. A row is **native** if the
probe compiles, the compiled kernel and the interpreter give the same bits, and these are the reference's
(NumPy's, a few ULP where the reference is itself an approximation). A row that NumPy computes faster is
**slower than NumPy**, and does not count as native. A row that is **refused** gives an error that names the
construct. There is no row that is accepted and ignored where it has a numeric meaning. For a rule that
forbids something, native means that it is refused as the rule says.

ns: nanoseconds per lane of 2^16 lanes on one thread, loads and stores included, and beside it NumPy's on
the same arrays, where NumPy has the function; the cost of a launch is left out. Slower is: by more than a
tenth. Times are those of the machine that wrote the page.
"""


def summary(outcomes: Sequence[Outcome]) -> str:
    """Rows by state, and the share that is native."""
    counts = {state: sum(o.state is state for o in outcomes) for state in State}
    share = 100 * counts[State.NATIVE] / max(len(outcomes), 1)
    parts = ", ".join(f"{count} {state.value}" for state, count in counts.items() if count)
    return f"{len(outcomes)} rows: {parts}. {share:.1f} % are native."


def render(outcomes: Sequence[Outcome]) -> str:
    """The page."""
    parts = [_INTRODUCTION, summary(outcomes)]
    others = [o for o in outcomes if o.state is not State.NATIVE]
    if others:
        parts.append("## Rows that are not native\n\n" + _table(others, with_group=True))
    for group, members in groupby(outcomes, key=lambda o: o.row.group):
        listed = list(members)
        native = sum(o.state is State.NATIVE for o in listed)
        parts.append(f"## {group}\n\n{native} of {len(listed)} native.\n\n" + _table(listed))
    return "\n\n".join(p.strip("\n") for p in parts) + "\n"


def _table(outcomes: Iterable[Outcome], with_group: bool = False) -> str:
    lines = ["| name | state | ns | NumPy's |", "|---|---|---:|---:|"]
    for outcome in outcomes:
        name = outcome.row.name.replace("|", "\\|")
        group = f"{outcome.row.group}: " if with_group else ""
        reason = outcome.reason.replace("|", "\\|")
        state = f"{outcome.state.value}: {reason}" if reason else outcome.state.value
        lines.append(f"| {group}`{name}` | {state} | {_times(outcome)} |")
    return "\n".join(lines)


def _times(outcome: Outcome) -> str:
    if outcome.times is None:
        return " | "
    numpy = "" if outcome.times.numpy is None else f"{outcome.times.numpy:.2f}"
    return f"{outcome.times.ours:.2f} | {numpy}"


def states_of(page: str) -> dict[tuple[str, str], str]:
    """What a page says: (group, name) to a state, with the reason; slower counts as native."""
    states: dict[tuple[str, str], str] = {}
    for section in page.split("\n## ")[1:]:
        group, _, body = section.partition("\n")
        if group == "Rows that are not native":
            continue
        for name, state in re.findall(r"^\| `(.*?)` \| (.*?) \| [^|]*\| ?[^|]*\|$", body, re.MULTILINE):
            native = state in (State.NATIVE.value, State.SLOWER.value)
            states[group, name.replace("\\|", "|")] = (
                State.NATIVE.value if native else state.replace("\\|", "|")
            )
    return states


def states_now(outcomes: Iterable[Outcome]) -> dict[tuple[str, str], str]:
    """The same of outcomes."""
    states = {}
    for outcome in outcomes:
        native = outcome.state in (State.NATIVE, State.SLOWER)
        state = f"{outcome.state.value}: {outcome.reason}" if outcome.reason else outcome.state.value
        states[outcome.row.group, outcome.row.name] = State.NATIVE.value if native else state
    return states
