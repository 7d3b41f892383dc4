"""What was launched, for tools that show a kernel as its own script uses it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from blocklang.jit.specialisation import Specialisation

if TYPE_CHECKING:
    from blocklang.jit.function import JITFunction


@dataclass(frozen=True)
class Launch:
    """One launch: the function, the version that ran, and the compiled kernel."""

    function: JITFunction
    specialisation: Specialisation
    compiled: Any
    grid: tuple[int, int, int]


_recorders: list[list[Launch]] = []


@contextmanager
def record_launches() -> Iterator[list[Launch]]:
    """Collect every launch of this process while the context lasts, in order.

    with record_launches() as launches:
        main()
    """
    from blocklang.jit.native import native_launches_paused

    launches: list[Launch] = []
    _recorders.append(launches)
    try:
        with native_launches_paused():
            yield launches
    finally:
        _recorders.remove(launches)


def is_recording() -> bool:
    """True inside some `record_launches`."""
    return bool(_recorders)


def note_launch(launch: Launch) -> None:
    """Add a launch to every list that is being filled."""
    for launches in _recorders:
        launches.append(launch)
