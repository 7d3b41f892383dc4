"""What was launched, for tools that show a kernel as its own script uses it; and launches that do nothing,
for those who run a function for the shapes of its results alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from blocklang.jit.specialisation import Specialisation
from blocklang.runtime.arrays import Array

if TYPE_CHECKING:
    from blocklang.jit.function import JITFunction


class Launch(NamedTuple):
    """One launch: the function, the version that runs, the compiled kernel, the grid, the arguments as
    `blocklang.abi` lays them out, and the options that were given; for who runs it in its place
    (`replace_launches`) the arrays, too, by the names of their arguments, and how many threads may work (None
    for the default).
    """

    function: JITFunction
    specialisation: Specialisation
    compiled: Any
    grid: tuple[int, int, int]
    slots: bytes = b""
    options: Mapping[str, Any] = MappingProxyType({})
    arrays: Mapping[str, Array] = MappingProxyType({})
    threads: int | None = None


_recorders: list[Callable[[Launch], object]] = []


@contextmanager
def record_launches(observe: Callable[[Launch], object] | None = None) -> Iterator[list[Launch]]:
    """Collect every launch of this process while the context lasts, in order.

    with record_launches() as launches:
        main()

    Args:
        observe: called with each launch before it runs; what it raises comes out of the launch instead.
    """
    from blocklang.jit.native import native_launches_paused

    launches: list[Launch] = []

    def record(launch: Launch) -> None:
        launches.append(launch)
        if observe is not None:
            observe(launch)

    _recorders.append(record)
    try:
        with native_launches_paused():
            yield launches
    finally:
        _recorders.remove(record)


class _Runner(NamedTuple):
    run: Callable[[Launch], object]
    wants_measured: bool


_runners: list[_Runner] = []


@contextmanager
def replace_launches(run: Callable[[Launch], object], *, measured: bool = True) -> Iterator[None]:
    """Hand every launch of this process to `run`, which does its work, while the context lasts.

    What `run` raises comes out of the launch. Contexts may nest: the innermost has the launch.

    Args:
        measured: launches that only measure a kernel (`measured_launches`), too.
    """
    from blocklang.jit.native import native_launches_paused

    runner = _Runner(run, measured)
    _runners.append(runner)
    try:
        with native_launches_paused():
            yield
    finally:
        _runners.remove(runner)


class _Measuring(threading.local):
    depth = 0


_measuring = _Measuring()


@contextmanager
def measured_launches() -> Iterator[None]:
    """While the context lasts, launches of this thread are no work of the program: they measure a kernel."""
    _measuring.depth += 1
    try:
        yield
    finally:
        _measuring.depth -= 1


def replaced_by() -> Callable[[Launch], object] | None:
    """What runs launches of this thread now in their place; None if they run themselves."""
    wanting = (r.run for r in reversed(_runners) if r.wants_measured or not _measuring.depth)
    return next(wanting, None)


def is_recording() -> bool:
    """True inside some `record_launches` or `replace_launches`."""
    return bool(_recorders or _runners)


def note_launch(launch: Launch) -> None:
    """Tell every recorder of a launch that is about to run."""
    for record in tuple(_recorders):
        record(launch)


class _Skipping(threading.local):
    depth = 0


_skipping = _Skipping()


@contextmanager
def launches_skipped() -> Iterator[None]:
    """Let launches of this thread do nothing, whatever their arguments, while the context lasts."""
    from blocklang.jit.native import native_launches_paused

    _skipping.depth += 1
    try:
        with native_launches_paused():
            yield
    finally:
        _skipping.depth -= 1


def is_skipping() -> bool:
    """True inside of `launches_skipped`, in this thread."""
    return _skipping.depth > 0
