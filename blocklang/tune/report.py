"""What tuning a kernel for one key found, as data and as a table; and who wants to hear of it.

Not here: measuring (`measuring`, `racing`), and what is kept for other processes (`winners`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from blocklang.tune.config import Config


@dataclass(frozen=True)
class Row:
    """What became of one config.

    Attributes:
        config: the config.
        milliseconds: median, 20 % and 80 % quantile of a launch; empty if none was measured.
        dropped: why it was not measured to the end; "" if it was.
    """

    config: Config
    milliseconds: tuple[float, ...]
    dropped: str = ""


@dataclass(frozen=True)
class Report:
    """What tuning a kernel for one key found.

    Attributes:
        kernel: the kernel's name.
        key: values of the arguments that make the key, then the dtypes of the arrays.
        rows: one for each config, the fastest first.
        best: the config that launches use.
        seconds: how long it took, compilation included.
        from_disk: True if another process had measured.
        parallel: how many configs other processes compiled.
    """

    kernel: str
    key: tuple[Any, ...]
    rows: tuple[Row, ...]
    best: Config
    seconds: float
    from_disk: bool = False
    parallel: int = 0

    def __str__(self) -> str:
        return format_report(self)


def sorted_rows(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Those measured to the end first, then those dropped on the way, then those never measured."""
    return tuple(sorted(rows, key=lambda row: (not row.milliseconds, bool(row.dropped), row.milliseconds)))


def format_report(report: Report) -> str:
    """The table of a report; the line of the config that launches use begins with `*`."""
    key = ", ".join(map(str, report.key))
    how = "from disk" if report.from_disk else f"tuned in {report.seconds:.2f} s"
    if report.parallel:
        how += f", {report.parallel} configs compiled by other processes"
    least = next((row.milliseconds[0] for row in report.rows if row.config is report.best), 0.0)
    lines = [("", "config", "median", "ratio", "")]
    for row in report.rows:
        mark = "*" if row.config is report.best else ""
        median, ratio = "-", "-"
        if row.milliseconds:
            median = format_milliseconds(row.milliseconds[0])
            ratio = f"{row.milliseconds[0] / least:.2f}" if least else "-"
        lines.append((mark, row.config.in_words(), median, ratio, row.dropped))
    widths = [max(len(line[column]) for line in lines) for column in range(4)]
    text = [f"{report.kernel} for ({key}): {how}"]
    for mark, config, median, ratio, dropped in lines:
        cells = f"{mark:<{widths[0]}} {config:<{widths[1]}}  {median:>{widths[2]}}  {ratio:>{widths[3]}}"
        text.append(f"{cells}  {dropped}".rstrip())
    return "\n".join(text) + "\n"


def format_milliseconds(milliseconds: float) -> str:
    """A time with three digits and its unit."""
    for factor, unit in ((1e6, "ns"), (1e3, "us"), (1.0, "ms")):
        if milliseconds * factor < 1000:
            return f"{milliseconds * factor:.3g} {unit}"
    return f"{milliseconds / 1e3:.3g} s"


_listeners: list[list[Report]] = []


@contextmanager
def tuning_forced() -> Iterator[list[Report]]:
    """Measure every key anew, whatever is on disk, and collect the reports, while the context lasts.

    with tuning_forced() as reports:
        main()
    """
    reports: list[Report] = []
    _listeners.append(reports)
    try:
        yield reports
    finally:
        _listeners.remove(reports)


def is_forced() -> bool:
    """True inside of `tuning_forced`."""
    return bool(_listeners)


def tell(report: Report) -> None:
    """Hand a report to who collects them."""
    for reports in _listeners:
        reports.append(report)
