"""Events and streams of a device that is the CPU: a launch is over when it returns, so nothing ever waits."""

from __future__ import annotations

import time
from typing import Any


class Event:
    """A moment. Arguments are accepted as those of a GPU's event."""

    def __init__(self, *_: object, **__: object) -> None:
        self._moment: int | None = None

    def record(self, stream: object = None) -> None:
        """This is the moment."""
        self._moment = time.perf_counter_ns()

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds from this event to another. Raises RuntimeError if one was not recorded."""
        if self._moment is None or end._moment is None:
            raise RuntimeError("both events must be recorded before the time between them is asked for")
        return (end._moment - self._moment) / 1e6

    def query(self) -> bool:
        """True: what came before it is done."""
        return True

    def synchronize(self) -> None:
        """Wait for it: it is over."""

    def wait(self, stream: object = None) -> None:
        """Let a stream wait for it: it is over."""


class Stream:
    """An order of launches; there is one, that of the program."""

    cuda_stream = 0
    stream_id = 0

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream)

    def __hash__(self) -> int:
        return 0

    def query(self) -> bool:
        """True: everything in it is done."""
        return True

    def synchronize(self) -> None:
        """Wait for everything in it: it is over."""

    def wait_event(self, event: object) -> None:
        """Wait for an event: it is over."""

    def wait_stream(self, stream: object) -> None:
        """Wait for another stream: there is none."""

    def record_event(self, event: Any = None) -> Any:
        """Record an event, a new one if none is given."""
        event = event or Event()
        event.record(self)
        return event
