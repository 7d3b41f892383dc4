"""The roofline of a launch as a picture: operations per second over operations per byte, both in decades."""

from __future__ import annotations

import math
from collections.abc import Iterator

from blocklang.emulation.page.markup import escape, percent, rate
from blocklang.emulation.profile import LaunchProfile
from blocklang.emulation.roofline import Roofline, roofline_of
from blocklang.target import Device

WIDTH, HEIGHT = 560, 320
LEFT, RIGHT, TOP, BOTTOM = 62, 14, 14, 40  # margins


def format_roofline(launch: LaunchProfile, device: Device) -> str:
    """The picture and a sentence; a sentence alone where something is not known."""
    found = roofline_of(launch, device)
    if found is None:
        return f'<p class="none">{escape(_missing(launch))}</p>'
    sentence = f"<p>{_sentence(found)}</p>"
    if found.bandwidth is None and not found.roofs:
        unknown = f"The roofs are not known: {device.name} is described without peak rates."
        return f'{sentence}<p class="none">{escape(unknown)}</p>'
    return f'<figure class="roofline">{_picture(found)}</figure>{sentence}'


def _missing(launch: LaunchProfile) -> str:
    if launch.work is None or launch.estimate is None:
        return "Not known: this launch has no time."
    if not launch.work.flops:
        return "This kernel computes with integers only: it has no place under the roofs."
    return "This launch moves no bytes of global memory: its intensity has no limit."


def _sentence(found: Roofline) -> str:
    text = (
        f"<strong>{rate(found.rate, 'FLOP')}</strong> at {found.intensity:.3g} operations for each byte of "
        f"global memory"
    )
    if found.bound is None:
        return text + "."
    memory = found.bandwidth is not None and found.bandwidth * found.intensity <= found.bound
    what = "memory" if memory else escape(found.roofs[0].name)
    return f"{text}: {percent(found.rate / found.bound)} of what {what} allows ({rate(found.bound, 'FLOP')})."


class _Scales:
    """Where values are in the picture."""

    def __init__(self, found: Roofline) -> None:
        peaks = [roof.rate for roof in found.roofs]
        across = [found.intensity]
        if found.bandwidth is not None:
            across += [peak / found.bandwidth for peak in peaks]
        up = [found.rate, *peaks]
        if found.bound is not None:
            up.append(found.bound)
        self.x = (math.floor(math.log10(min(across)) - 0.5), math.ceil(math.log10(max(across)) + 0.5))
        self.y = (math.floor(math.log10(min(up)) - 0.3), math.ceil(math.log10(max(up)) + 0.1))

    def across(self, value: float) -> float:
        low, high = self.x
        return LEFT + (WIDTH - LEFT - RIGHT) * (math.log10(value) - low) / (high - low)

    def up(self, value: float) -> float:
        low, high = self.y
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (math.log10(value) - low) / (high - low)


def _picture(found: Roofline) -> str:
    scales = _Scales(found)
    parts = [*_grid(scales), *_roofs(found, scales), *_point(found, scales)]
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="roofline">' + "\n".join(parts) + "</svg>"
    )


def _grid(scales: _Scales) -> Iterator[str]:
    for power in range(scales.x[0], scales.x[1] + 1):
        x = scales.across(10.0**power)
        yield f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>'
        yield f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{_decade(power)}</text>'
    for power in range(scales.y[0], scales.y[1] + 1):
        y = scales.up(10.0**power)
        yield f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{rate(10.0**power, "F")}</text>'
    middle = (LEFT + WIDTH - RIGHT) / 2
    axis = "floating-point operations per byte"
    yield f'<text x="{middle}" y="{HEIGHT - 6}" text-anchor="middle">{axis}</text>'


def _decade(power: int) -> str:
    return f"{10**power:,}" if power >= 0 else f"{10.0**power:g}"


def _roofs(found: Roofline, scales: _Scales) -> Iterator[str]:
    right = 10.0 ** scales.x[1]
    if found.bandwidth is not None:
        highest = found.roofs[0].rate if found.roofs else 10.0 ** scales.y[1]
        ridge = min(highest / found.bandwidth, right)
        start = max(10.0 ** scales.x[0], 10.0 ** scales.y[0] / found.bandwidth)
        x1, y1 = scales.across(start), scales.up(found.bandwidth * start)
        x2, y2 = scales.across(ridge), scales.up(found.bandwidth * ridge)
        angle = math.degrees(math.atan2(y2 - y1, x2 - x1))
        ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
        yield f'<line class="roof" {ends}/>'
        at = start * (ridge / start) ** 0.55
        x, y = scales.across(at), scales.up(found.bandwidth * at)
        yield (
            f'<text class="name" transform="translate({x:.1f} {y - 6:.1f}) rotate({angle:.1f})" '
            f'text-anchor="middle">memory, {rate(found.bandwidth, "B")}</text>'
        )
    for roof in found.roofs:
        left = roof.rate / found.bandwidth if found.bandwidth is not None else 10.0 ** scales.x[0]
        x, y = scales.across(max(left, 10.0 ** scales.x[0])), scales.up(roof.rate)
        yield f'<line class="roof" x1="{x:.1f}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>'
        yield (
            f'<text class="name" x="{WIDTH - RIGHT - 4}" y="{y - 5:.1f}" text-anchor="end">'
            f"{escape(roof.name)}, {rate(roof.rate, 'F')}</text>"
        )


def _point(found: Roofline, scales: _Scales) -> Iterator[str]:
    x, y = scales.across(found.intensity), scales.up(found.rate)
    if found.bound is not None:
        yield f'<line class="gap" x1="{x:.1f}" x2="{x:.1f}" y1="{y:.1f}" y2="{scales.up(found.bound):.1f}"/>'
    yield f'<circle class="point" cx="{x:.1f}" cy="{y:.1f}" r="5.5"/>'
    yield f'<text class="here" x="{x + 10:.1f}" y="{y + 4:.1f}">{rate(found.rate, "FLOP")}</text>'
