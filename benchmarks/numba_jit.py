"""Numba's decorator as this peer uses it: threads over `prange`, float arithmetic that may be reordered."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numba
from numba import prange

__all__ = ["njit", "prange"]


def njit(function: Callable[..., Any]) -> Any:
    """Compile at the first call; kept on disk only where the row is about caches (`fresh`)."""
    cache = "NUMBA_CACHE_DIR" in os.environ
    return numba.njit(parallel=True, fastmath=True, cache=cache)(function)
