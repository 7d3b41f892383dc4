"""HTML as text: escaping, numbers for people, tables, colours of lines.

Everything that comes from a user (source text, names, paths, titles of devices) goes through `escape`.
"""

from __future__ import annotations

import html
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from blocklang.emulation.profile import LaunchProfile

COLOURS = 8  # lines that have a colour of their own; the stylesheet names them c0, c1, ...
OTHER = "cx"
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")

Place = tuple[str, int]
Cell = str | tuple[str, str]  # HTML, or HTML and the class of the cell


def escape(text: object) -> str:
    """Text as HTML, for elements and attributes; what no page may hold becomes U+FFFD."""
    return html.escape(_UNPRINTABLE.sub("\ufffd", str(text)), quote=True)


def table(head: Sequence[Cell], rows: Iterable[Sequence[Cell]], kind: str = "") -> str:
    """A table; a class of a cell such as 'num' aligns it."""
    lines = [f'<div class="scroll"><table class="{kind}"><thead><tr>{_cells("th", head)}</tr></thead><tbody>']
    lines += [f"<tr>{_cells('td', row)}</tr>" for row in rows]
    return "\n".join([*lines, "</tbody></table></div>"])


def _cells(tag: str, cells: Sequence[Cell]) -> str:
    found = []
    for cell in cells:
        text, kind = (cell, "") if isinstance(cell, str) else cell
        found.append(f'<{tag} class="{kind}">{text}</{tag}>' if kind else f"<{tag}>{text}</{tag}>")
    return "".join(found)


def bar(share: float, kind: str = "") -> str:
    """A bar as long as a share, from 0 to 1."""
    width = 100 * min(max(share, 0.0), 1.0)
    return f'<span class="bar {kind}"><span style="width:{width:.2f}%"></span></span>'


# ---- numbers ----


def duration(seconds: float) -> str:
    """A time in the unit that gives it two or three digits before the point."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.4g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def rate(amount: float, unit: str) -> str:
    """So much of a unit per second, with a decimal prefix."""
    power = min(max(int(math.log10(amount)) // 3, 0), 5) if amount > 0 else 0
    return f"{amount / 1000**power:.3g} {('', 'k', 'M', 'G', 'T', 'P')[power]}{unit}/s"


def percent(share: float) -> str:
    """A share of 1."""
    return f"{100 * share:.1f} %"


def change(percents: float) -> str:
    """A change in percent, with its sign."""
    return f"{round(percents, 1) or 0.0:+.1f} %".replace("-", "\u2212")


def grid_text(grid: Sequence[int]) -> str:
    """The grid without extents of 1 at its end."""
    used = max((axis + 1 for axis, extent in enumerate(grid) if extent != 1), default=1)
    return " × ".join(f"{extent:,}" for extent in grid[:used])


def place_text(place: Place) -> str:
    """File and line, as in error messages."""
    return f"{os.path.basename(place[0])}:{place[1]}"


# ---- colours ----


def line_colours(launch: LaunchProfile) -> Mapping[Place, str]:
    """The class of the colour of each line: those that are waited for longest, then those that keep engines
    busy, have one of their own."""
    estimate = launch.estimate
    if estimate is None:
        return {}
    busy: dict[Place, float] = {}
    for event in estimate.events:
        location = event.instruction.location
        busy[location.file, location.line] = (
            busy.get((location.file, location.line), 0.0) + event.end - event.start
        )
    waits = {(line.file, line.line): line.seconds for line in estimate.lines}
    places = [place for place in {**waits, **busy} if place[1] > 0]
    places.sort(key=lambda place: (-waits.get(place, 0.0), -busy.get(place, 0.0)))
    return {place: f"c{number}" for number, place in enumerate(places[:COLOURS])}


def json_number(value: Any) -> float:
    """A number of the report, 0 for what it does not know."""
    return 0.0 if value is None else float(value)
