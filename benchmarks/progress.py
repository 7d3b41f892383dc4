"""How far a run is: a bar on a terminal, one line a row elsewhere, both on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Step = Callable[[str], Callable[[str], None]]


@contextmanager
def progress(total: int) -> Iterator[Step]:
    """Yield `start(row)`, to be called as each of `total` rows begins; it returns `say(what is done now)`."""
    if sys.stderr.isatty():
        try:
            import rich.progress  # noqa: F401
        except ImportError:
            pass
        else:
            with _bar(total) as start:
                yield start
            return
    yield _lines(total)


@contextmanager
def _bar(total: int) -> Iterator[Step]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    # The bar is drawn when something is said, not by a thread: nothing runs beside a measurement.
    with Progress(*columns, console=Console(stderr=True), auto_refresh=False, transient=True) as bar:
        task = bar.add_task("", total=total)
        begun = 0

        def start(row: str) -> Callable[[str], None]:
            nonlocal begun
            bar.update(task, completed=begun)
            begun += 1

            def say(what: str) -> None:
                bar.update(task, description=f"{row}: {what}", refresh=True)

            return say

        yield start


def _lines(total: int) -> Step:
    begun = 0
    first = time.monotonic()

    def start(row: str) -> Callable[[str], None]:
        nonlocal begun
        begun += 1
        print(f"[{begun}/{total}] {time.monotonic() - first:4.0f} s  {row}", file=sys.stderr, flush=True)
        return lambda what: None

    return start
