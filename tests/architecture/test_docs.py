"""The generated references say what their sources say."""

from __future__ import annotations

from docs.generate import list_stale


def test_references_are_in_sync() -> None:
    assert not list_stale(), "run `make docs` and commit the result"
