"""The first instructions of a launch: a row for each engine, a bar for each instruction.

The bars are SVG with a `<title>` each, and are all there without scripts; `page.js` zooms and pans by moving
the group that they are in.

The simulation repeats a loop that has settled without noting its instructions. Such stretches are drawn as a
narrow band, so that time has *segments*: (first second, last second, where it begins in the picture).
"""

from __future__ import annotations

import itertools
import json
import linecache
import math
from collections.abc import Iterator, Mapping, Sequence

from blocklang.emulation.estimate import Estimate
from blocklang.emulation.page.markup import OTHER, Place, duration, escape, place_text
from blocklang.emulation.simulate import Event
from blocklang.target import format_size

SHOWN = 2000  # instructions at most
WIDTH = 1000.0  # of the picture, in its own units
ROW, BAR = 26, 18  # heights
TICKS = 8
BAND = 0.025  # of the picture, for a stretch that was repeated
_LEAST_BAND = 0.004  # of all that is drawn: shorter stretches are left as they are
_APART = 0.07  # of the picture, between texts of the axis

Segment = tuple[float, float, float]


def format_timeline(estimate: Estimate, colours: Mapping[Place, str]) -> str:
    """The timeline of a launch as HTML."""
    events = [event for event in estimate.events[:SHOWN] if event.end > event.start]
    if not events:
        return '<p class="none">No instructions were kept for a timeline.</p>'
    engines = _engines(events)
    height = ROW * len(engines)
    segments = time_segments(events)
    first, last, begin = segments[-1]
    span = begin + last - first
    bars = "\n".join(_bars(events, engines, segments, span, colours))
    bands = "\n".join(_bands(segments, span, height))
    names = "".join(f"<span>{escape(name)}</span>" for name in engines)
    ticks = "".join(
        f'<span style="left:{100 * at / span:.3f}%">{text}</span>' for at, text in _ticks(segments, span)
    )
    return f"""<figure class="timeline" data-span="{span!r}" data-segments="{json.dumps(segments)}">
<div class="names">{names}</div>
<div class="view" tabindex="0" role="img" aria-label="when each engine works" style="height:{height}px">
<svg viewBox="0 0 {WIDTH:g} {height}" preserveAspectRatio="none" aria-hidden="true"><g class="bars">
{bands}{bars}
</g></svg><div class="labels"></div></div>
<div class="axis">{ticks}</div>
<figcaption>{_caption(estimate, events)}</figcaption>
</figure>"""


def _engines(events: Sequence[Event]) -> list[str]:
    """The engines of the events, the one that works longest first."""
    busy: dict[str, float] = {}
    for event in events:
        engine = event.instruction.engine
        busy[engine] = busy.get(engine, 0.0) + event.end - event.start
    return sorted(busy, key=lambda engine: -busy[engine])


# ---- time ----


def time_segments(events: Sequence[Event]) -> list[Segment]:
    """The stretches in which events are. Something is always on the way, an instruction or its latency; where
    nothing is, rounds were repeated."""
    stretches: list[list[float]] = [[0.0, 0.0]]
    for event in sorted(events, key=lambda event: event.start):
        if event.start > stretches[-1][1]:
            stretches.append([event.start, event.start])
        stretches[-1][1] = max(stretches[-1][1], event.end + event.instruction.latency)
    drawn = sum(last - first for first, last in stretches)
    joined = [stretches[0]]
    for first, last in stretches[1:]:
        if first - joined[-1][1] > _LEAST_BAND * drawn:
            joined.append([first, last])
        else:
            joined[-1][1] = last
    band = min(BAND, 0.3 / len(joined)) * drawn
    segments: list[Segment] = []
    at = 0.0
    for first, last in joined:
        segments.append((first, last, at))
        at += last - first + band
    return segments


def _drawn(moment: float, segments: Sequence[Segment]) -> float:
    """Where a moment is in the picture."""
    first, _, begin = max((s for s in segments if s[0] <= moment), key=lambda s: s[0])
    return begin + moment - first


def _ticks(segments: Sequence[Segment], span: float) -> Iterator[tuple[float, str]]:
    """Places and texts for the axis: round times, and where a stretch begins."""
    step = _round_step(span / TICKS)
    free = 0.0
    for first, last, begin in segments:
        rounds = range(math.ceil(first / step), int(last / step) + 1)
        for moment in (first, *(step * number for number in rounds)):
            at = begin + moment - first
            if free <= at <= 0.95 * span:
                yield at, duration(moment) if moment else "0"
                free = at + _APART * span


def _round_step(least: float) -> float:
    power = 10.0 ** math.floor(math.log10(least))
    return power * next(factor for factor in (1, 2, 5, 10) if power * factor >= least)


# ---- the picture ----


def _bars(
    events: Sequence[Event],
    engines: Sequence[str],
    segments: Sequence[Segment],
    span: float,
    colours: Mapping[Place, str],
) -> Iterator[str]:
    rows = {name: number * ROW + (ROW - BAR) // 2 for number, name in enumerate(engines)}
    # One that was run in parts lies behind those that ran in its pauses.
    for event in sorted(events, key=lambda event: event.start - event.end):
        instruction = event.instruction
        place = (instruction.location.file, instruction.location.line)
        x, width = WIDTH * _drawn(event.start, segments) / span, WIDTH * (event.end - event.start) / span
        yield (
            f'<rect class="{colours.get(place, OTHER)}" x="{x:.4f}" y="{rows[instruction.engine]}" '
            f'width="{width:.4f}" height="{BAR}"><title>{escape(_title(event))}</title></rect>'
        )


def _bands(segments: Sequence[Segment], span: float, height: int) -> Iterator[str]:
    for (first, last, begin), (again, _, end) in itertools.pairwise(segments):
        x, until = begin + last - first, end
        title = f"{duration(again - last)} in the same rhythm\ninstructions of repeated rounds are not noted"
        yield (
            f'<rect class="band" x="{WIDTH * x / span:.4f}" y="0" width="{WIDTH * (until - x) / span:.4f}" '
            f'height="{height}"><title>{title}</title></rect>\n'
        )


def _title(event: Event) -> str:
    instruction = event.instruction
    place = (instruction.location.file, instruction.location.line)
    lines = [instruction.label or instruction.engine]
    if place[1]:
        lines.append(f"{place_text(place)}  {linecache.getline(*place).strip()}")
    elapsed = event.end - event.start
    lines.append(f"{instruction.engine}, {duration(elapsed)} from {duration(event.start)} on")
    if elapsed > 1.01 * instruction.seconds:
        lines.append(f"in parts: {duration(instruction.seconds)} of work")
    if instruction.bytes:
        lines.append(f"{format_size(instruction.bytes)} ({instruction.space})")
    return "\n".join(lines)


def _caption(estimate: Estimate, events: Sequence[Event]) -> str:
    last = max(event.end + event.instruction.latency for event in events)
    whole = last >= 0.99 * estimate.seconds
    part = "The whole launch" if whole else f"The first {duration(last)} of {duration(estimate.seconds)}"
    return f'{part}: {len(events):,} instructions, coloured by source line. <span class="hint"></span>'
