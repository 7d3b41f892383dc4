"""A row of the page, the probe that decides its state, and the outcome."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


class State(enum.Enum):
    """What running a probe showed.

    NATIVE: it compiles and both modes give the reference's result. SLOWER: so it does, and NumPy takes less
    time. REFUSED: an error that names the construct. FAILED: anything else.
    """

    NATIVE = "native"
    SLOWER = "slower than NumPy"
    REFUSED = "refused"
    FAILED = "failed"


@dataclass(frozen=True)
class Times:
    """Nanoseconds per lane of one thread; NumPy's are None where it has no such function."""

    ours: float
    numpy: float | None


class Probe(Protocol):
    """Something small that uses one name."""

    def check(self) -> None:
        """Use the name in both modes; raises AssertionError where a result is not the reference's."""

    def time(self) -> Times | None:
        """How long a lane takes; None if there are no lanes to count."""


@dataclass(frozen=True)
class Row:
    """One name of the surface.

    Attributes:
        group: the heading that it stands under.
        name: unique in its group.
    """

    group: str
    name: str
    probe: Probe


@dataclass(frozen=True)
class Outcome:
    """What a row's probe showed; `reason` is the first line of an error."""

    row: Row
    state: State
    reason: str = ""
    times: Times | None = None


class MissingName(Exception):
    """A name that is not there, and says so."""


@dataclass(frozen=True)
class Host:
    """A probe of a name outside kernels: a function that asserts."""

    body: Callable[[], object]

    def check(self) -> None:
        """Call it; False is as bad as an assertion."""
        assert self.body() is not False

    def time(self) -> Times | None:
        """Nothing to count."""
        return None
