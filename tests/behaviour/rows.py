"""The behaviour that users of such tools report again and again, as rows; each has tests that carry its name.

A row is a class of behaviour. A test carries one by `@row(section, title)`; `test_rows` finds a row that no
test carries.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import pytest

import blocklang as bl
from tests.numerics.launching import Array, launch_in_mode

Test = TypeVar("Test", bound=Callable[..., Any])

ROWS: dict[str, tuple[str, ...]] = {
    "Numbers": (
        "one semantic layer",
        "promotion",
        "integer division",
        "integer wrap",
        "shifts",
        "float to int out of range, NaN",
        "min/max/argmin/argmax",
        "small-type sums",
        "scans",
        "down-casts",
        "bf16",
        "dot, division, maths",
        "FP environment",
        "bool",
        "random numbers",
        "atomics",
    ),
    "Memory": (
        "masked lanes",
        "aliasing",
        "arrays",
        "gather of a gather, size-1 axes, modulo in offsets",
        "bounds, races, NaN",
    ),
    "The front end": (
        "unsupported Python",
        "scalar control flow",
        "constexpr branches",
        "source lookup",
        "globals and closures",
        "argument equal to 1, None, bool",
        "printing",
        "errors",
    ),
}

# Row: the tests that carry it.
CARRIED: defaultdict[tuple[str, str], list[Callable[..., Any]]] = defaultdict(list)

MODES = pytest.mark.parametrize("mode", ["compiled", "interpreted"])


def row(section: str, title: str) -> Callable[[Test], Test]:
    """Says that a test shows what a row promises."""
    assert title in ROWS[section], f"no row `{title}` in {section}"

    def carry(test: Test) -> Test:
        CARRIED[section, title].append(test)
        return test

    return carry


def launch(mode: str, kernel: bl.JITFunction, *arguments: Any, grid: Any = 1, **constants: Any) -> Array:
    """What the one `Out` holds after a launch in a mode, between canaries."""
    (output,) = launch_in_mode(mode, kernel, grid, *arguments, **constants)
    return output


@functools.cache
def as_mode(kernel: bl.JITFunction, mode: str) -> bl.JITFunction:
    """The kernel in a mode, with all its options."""
    return bl.jit(interpret=mode == "interpreted", strict=kernel.strict)(kernel.fn)


def array(numbers: Any, dtype: Any = np.int32) -> Array:
    """A new array of the numbers."""
    return np.array(numbers, dtype)
