"""The reference of passes: the pipeline in its order, and each pass in its own words."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from blocklang.passes.pipeline import BLOCK_PASSES, PLACED_PASSES, TILE_PASSES
from blocklang.passes.place import place


@dataclass(frozen=True)
class Row:
    """A pass in its place in the pipeline."""

    name: str
    run: Callable[..., object]
    why: str


def list_passes() -> list[Row]:
    """All passes in the order in which they run. `place` alone takes the schedule too."""
    before, after = (
        [Row(each.name, each.run, each.why) for each in passes]
        for passes in ((*BLOCK_PASSES, *TILE_PASSES), PLACED_PASSES)
    )
    return [*before, Row("place", place, _docstring(place).splitlines()[0].rstrip(".")), *after]


def render() -> str:
    """The whole page."""
    return "\n".join(_page())


def _page() -> Iterator[str]:
    passes = list_passes()
    yield "# Passes"
    yield ""
    yield "Generated from `blocklang/passes/` by `make docs`, in the order in which the passes run."
    yield "`blocklang ir FILE --from-run --after PASS` prints the IR after one."
    yield ""
    yield "| `--after` | pass | why here |"
    yield "| --- | --- | --- |"
    for each in passes:
        name = each.run.__name__
        yield f"| `{each.name}` | [{name}](#{name}) | {each.why} |"
    yield ""
    for run in dict.fromkeys(each.run for each in passes):
        yield from _pass(run)


def _pass(run: Callable[..., object]) -> Iterator[str]:
    """What the pass's module says of it."""
    yield f"## {run.__name__}"
    yield ""
    yield _docstring(run)
    yield ""


def _docstring(run: Callable[..., object]) -> str:
    return inspect.cleandoc(sys.modules[run.__module__].__doc__ or "")
