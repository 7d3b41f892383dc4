"""Run probes: from rows to outcomes."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterable, Iterator

from blocklang.diagnostics import CompilationError, LaunchError
from docs.conformance.model import MissingName, Outcome, Row, State, Times

# A measurement is noisy: NumPy must be ahead by this much, in the best of so many attempts.
MARGIN, ATTEMPTS = 1.1, 4


def outcome_of(row: Row, timed: bool = False) -> Outcome:
    """What a row's probe shows; with `timed`, how fast it is as well."""
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            row.probe.check()
    except (CompilationError, LaunchError, NotImplementedError, MissingName) as error:
        return Outcome(row, State.REFUSED, _first_line(error))
    except Exception as error:  # noqa: BLE001  (whatever it is, the page says it)
        return Outcome(row, State.FAILED, f"{type(error).__name__}: {_first_line(error)}")
    times = _best_times(row) if timed else None
    slower = times is not None and times.numpy is not None and times.ours > times.numpy * MARGIN
    return Outcome(row, State.SLOWER if slower else State.NATIVE, times=times)


def _best_times(row: Row) -> Times | None:
    best: Times | None = None
    for _ in range(ATTEMPTS):
        times = row.probe.time()
        if times is None:
            return None
        if best is not None:
            numpy = None if times.numpy is None or best.numpy is None else min(times.numpy, best.numpy)
            times = Times(min(times.ours, best.ours), numpy)
        best = times
        if times.numpy is None or times.ours <= times.numpy:
            break
    return best


def run(rows: Iterable[Row], timed: bool = False) -> Iterator[Outcome]:
    """Every row's outcome, in order."""
    for row in rows:
        yield outcome_of(row, timed)


def _first_line(error: BaseException) -> str:
    message = getattr(error, "message", None) or str(error)
    lines = [line.strip() for line in str(message).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
