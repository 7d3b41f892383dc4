"""A progress bar on a terminal, with the package rich; elsewhere, and without it, nothing is shown."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Advance = Callable[[str, float], None]


@contextmanager
def progress_bar(title: str) -> Iterator[Advance]:
    """A bar on standard error while the context lasts; what it yields says what is going on, and how much of
    all is done, from 0 to 1.
    """
    if not sys.stderr.isatty():
        yield _say_nothing
        return
    try:
        from rich.console import Console
        from rich.progress import Progress
    except ImportError:
        yield _say_nothing
        return
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=1.0)

        def advance(doing: str, done: float) -> None:
            bar.update(task, description=f"{title}: {doing}", completed=done)

        yield advance


def _say_nothing(doing: str, done: float) -> None:
    pass
