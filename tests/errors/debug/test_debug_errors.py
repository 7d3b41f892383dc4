"""What the debug mode says, word for word, in both modes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import blocklang as bl
from tests.errors.debug import kernels

X = np.zeros((2, 5), np.float32)
OUT = np.zeros(20, np.float32)

# Kernel, grid, arguments, options.
CASES: dict[str, tuple[bl.JITFunction, Any, tuple[Any, ...], dict[str, Any]]] = {
    "load": (kernels.tail, 3, (X, OUT, 12), {"BLOCK": 4}),
    "store": (kernels.tail, 3, (OUT, X, 12), {"BLOCK": 4}),
    "before": (kernels.rows, (4, 2), (X, OUT, -3), {"BLOCK": 2}),
    "atomic": (kernels.transposed, 1, (OUT, X[0, :2], 0), {"BLOCK": 4}),
    "several_arrays": (kernels.either, 1, (X, OUT, 8), {"BLOCK": 16}),
    "view": (kernels.tail, 3, (X[::-1, 1:4], OUT, 12), {"BLOCK": 4}),
    "empty": (kernels.tail, 1, (X[:0], OUT, 12), {"BLOCK": 4}),
    "overflow": (kernels.pages, 2, (X, OUT, 1 << 26), {"BLOCK": 4}),
    "nan_of_a_scalar": (kernels.mean, 1, (X, OUT, 0), {"BLOCK": 4, "debug": "nan"}),
    "nan": (kernels.variance, (2, 2, 2), (X, OUT, 4), {"BLOCK": 4, "debug": "nan,poison"}),
    "sanitized": (
        kernels.tripled,
        1,
        (X, np.zeros(8, np.int32), 1 << 28),
        {"BLOCK": 8, "debug": False, "sanitize_overflow": True},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_message(case: str, golden: Callable[[str, str], None]) -> None:
    kernel, grid, arguments, options = CASES[case]
    said = []
    for interpret in (False, True):
        with pytest.raises((bl.CheckError, AssertionError)) as raised:
            bl.jit(interpret=interpret)(kernel.fn)[grid](*arguments, **{"debug": True, **options})
        said.append(str(raised.value))
    assert said[0] == said[1]
    golden(f"{case}.txt", said[0] + "\n")


def test_unknown_words_are_refused() -> None:
    with pytest.raises(bl.LaunchError, match=r"it must be True, False or some of 'nan', 'poison'"):
        kernels.tail[1](X, OUT, 4, BLOCK=4, debug="nans")
    with pytest.raises(bl.LaunchError, match=r"debug is 'all'"):
        bl.jit(debug="all")(kernels.tail.fn)
