"""Grids: every accepted form, and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from blocklang.diagnostics import LaunchError
from blocklang.runtime.grids import normalise_grid


@pytest.mark.parametrize(
    ("grid", "extents"),
    [
        (5, (5, 1, 1)),
        ((5,), (5, 1, 1)),
        ([5, 6], (5, 6, 1)),
        ((1, 2, 3), (1, 2, 3)),
        (np.int64(4), (4, 1, 1)),
        ((np.uint8(4), np.int32(2)), (4, 2, 1)),
        (0, (0, 1, 1)),
        ((3, 0), (3, 0, 1)),
        ((2**31 - 1, 2**31 - 1), (2**31 - 1, 2**31 - 1, 1)),
    ],
)
def test_accepted(grid: Any, extents: tuple[int, int, int]) -> None:
    assert normalise_grid(grid) == extents


@pytest.mark.parametrize(
    ("grid", "words"),
    [
        (-1, "negative"),
        ((2, -3), "negative"),
        ((), "one to three"),
        ((1, 2, 3, 4), "one to three"),
        (1.0, "integer"),
        ((1.5,), "integer"),
        ("3", "integer"),
        (None, "integer"),
        (np.zeros(3), "integer"),
        (2**31, "2\\^31"),
        ((2**31 - 1, 2**31 - 1, 3), "2\\^63"),
    ],
)
def test_refused(grid: Any, words: str) -> None:
    with pytest.raises(LaunchError, match=words):
        normalise_grid(grid)
