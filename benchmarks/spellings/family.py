"""A family: one function on one set of arrays, written in several ways that ought to take the same time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass
class Problem:
    """Arrays of one size, and what a launch must leave in `out`.

    Attributes:
        inputs: float32, by name; a spelling that works in place writes its result into one of them.
        out: float32, contiguous.
        expected: the same, computed in float64.
        tolerance: largest error allowed, as a share of the largest expected magnitude.
    """

    inputs: dict[str, Array]
    out: Array
    expected: Array
    tolerance: float

    def check(self, found: Array) -> None:
        """Raise AssertionError if `found` is not the expected result."""
        error = np.abs(found.astype(np.float64) - self.expected).max() / np.abs(self.expected).max()
        assert error <= self.tolerance, f"error {error:.1e}, allowed {self.tolerance:.1e}"


Launch = Callable[[Problem], Array]
"""Launches a spelling; returns the array that it wrote."""


@dataclass
class Family:
    """All spellings of one function.

    Attributes:
        name: as on the command line.
        make: a problem of the size that is timed, or with `small` of one for tests, odd in every extent.
    """

    name: str
    make: Callable[[bool], Problem]
    spellings: dict[str, Launch] = field(default_factory=dict)

    def spelling(self, name: str) -> Callable[[Launch], Launch]:
        """Decorator: a launch of this family's function, spelled in the way that `name` says."""

        def add(launch: Launch) -> Launch:
            assert name not in self.spellings, f"{self.name} has two spellings {name!r}"
            self.spellings[name] = launch
            return launch

        return add
