"""Warm launches without Python."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def native_launches_paused() -> Iterator[None]:
    """Launch through Python while the context lasts."""
    yield
