"""A profile as a page of HTML: one file, nothing fetched, readable without scripts, light and dark.

    markup      escaping, numbers, tables, the colours of lines
    timeline    a row for each engine, a bar for each instruction
    source      the kernel line by line
    rooflines   the launch under the roofs of the device
    placement   what fills the memory on the chip
    page.css, page.js   are put into the page as they stand

Not here: the figures themselves (`profile`, `roofline`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from typing import Any

from blocklang.emulation.page.markup import (
    bar,
    change,
    duration,
    escape,
    grid_text,
    line_colours,
    percent,
    place_text,
    rate,
    table,
)
from blocklang.emulation.page.placement import format_placement
from blocklang.emulation.page.rooflines import format_roofline
from blocklang.emulation.page.source import format_source
from blocklang.emulation.page.timeline import format_timeline
from blocklang.emulation.profile import LaunchProfile, Profile
from blocklang.target import format_size

DETAILED = 8  # launches that are shown in full: those that take longest


def format_page(profile: Profile) -> str:
    """The whole page."""
    device = profile.device
    kernels = ", ".join(dict.fromkeys(launch.kernel for launch in profile.launches))
    note = f" <small>{escape(device.note)}</small>" if device.note else ""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(f"{kernels} on {device.name}")}</title>
<link rel="icon" href="data:,">
<style>
{_asset("page.css")}</style>
</head>
<body>
<header><h1>{escape(kernels)} <small>on {escape(device.name)}</small></h1>
<p>{escape(device.title)}.{note}</p></header>
<main>
{"".join(f"{part}{chr(10)}" for part in _parts(profile))}</main>
<footer>{escape(_footer(profile))}</footer>
<script>
{_asset("page.js")}</script>
</body>
</html>
"""


def _footer(profile: Profile) -> str:
    text = "Bytes are counted while the kernel runs."
    if profile.seconds is not None:
        text += f" Times are those of a model of {profile.device.name}, not of the device."
    return text + " What is counted and what is left out: docs/profile.md of blocklang."


def _asset(name: str) -> str:
    return resources.files(__name__).joinpath(name).read_text(encoding="utf-8")


def _parts(profile: Profile) -> Iterator[str]:
    order = sorted(range(len(profile.launches)), key=lambda number: -_seconds(profile.launches[number]))
    detailed = sorted(order[:DETAILED])
    if len(profile.launches) > 1:
        yield _launches(profile, detailed)
    for number in detailed:
        yield from _launch(number, profile.launches[number], profile)


def _seconds(launch: LaunchProfile) -> float:
    return 0.0 if launch.estimate is None else launch.times * launch.estimate.seconds


# ---- all launches ----


def _launches(profile: Profile, detailed: Sequence[int]) -> str:
    total = profile.seconds
    rows = []
    for number, launch in enumerate(profile.launches):
        name = f"<code>{escape(launch.kernel)}</code>"
        link = f'<a href="#launch-{number}">{name}</a>' if number in detailed else name
        own = _seconds(launch)
        estimate = launch.estimate
        rows.append(
            (
                link,
                (grid_text(launch.grid), "num"),
                (f"{launch.times:,}", "num"),
                (duration(estimate.seconds) if estimate else "", "num"),
                (duration(own) if estimate else "", "num"),
                (f"{bar(own / total)} {percent(own / total)}" if total else "", "share"),
                escape(estimate.bottleneck) if estimate else "",
                (format_size(launch.counts.memory["global"].bytes), "num"),
            )
        )
    head = ("kernel", ("grid", "num"), ("launches", "num"), ("one", "num"), ("all", "num"), "", "held up by")
    launches = sum(launch.times for launch in profile.launches)
    time = f" in {duration(total)}" if total is not None else ""
    more = "" if len(rows) == len(detailed) else f"<p>Shown below: the {len(detailed)} that take longest.</p>"
    return (
        f'<section class="card"><h2>{launches:,} launches{time}</h2>'
        f"{table((*head, ('global bytes', 'num')), rows)}{more}</section>"
    )


# ---- one launch ----


def _launch(number: int, launch: LaunchProfile, profile: Profile) -> Iterator[str]:
    device = profile.device
    report = launch.to_dict(device)
    colours = line_colours(launch)
    kernel = (launch.location.file, launch.location.line)
    yield f'<section id="launch-{number}" class="launch">'
    yield _title(launch, report)
    yield '<div class="columns">'
    if launch.estimate is not None:
        yield _card("Engines", _engines(report))
    yield _card("Memory", _memory(launch, report, profile))
    yield "</div>"
    if launch.estimate is not None:
        yield _card("Timeline", format_timeline(launch.estimate, colours))
    yield _card("Source", format_source(report, kernel, colours))
    yield '<div class="columns">'
    if launch.estimate is not None:
        yield _card("Roofline", format_roofline(launch, device))
    yield _card("On the chip", format_placement(launch.blocks, launch.usage, device, colours))
    yield "</div></section>"


def _card(title: str, body: str) -> str:
    return f'<section class="card"><h3>{title}</h3>\n{body}\n</section>'


def _title(launch: LaunchProfile, report: Mapping[str, Any]) -> str:
    times = f" · {launch.times:,} equal launches; the figures are of one" if launch.times > 1 else ""
    where = place_text((launch.location.file, launch.location.line))
    return (
        f"<h2><code>{escape(launch.kernel)}</code> <small>{escape(where)} · "
        f"{grid_text(launch.grid)} programs{times}</small></h2>\n{_verdict(launch, report)}"
    )


def _verdict(launch: LaunchProfile, report: Mapping[str, Any]) -> str:
    estimate = launch.estimate
    if estimate is None:
        return '<p class="verdict">No time: the description of this device has no costs, only memory.</p>'
    text = f"<strong>{duration(estimate.seconds)}</strong>"
    if name := report["bottleneck"]:
        free = report["counterfactuals"][name]
        text += (
            f", held up by <strong>{escape(name)}</strong>; {duration(free['time_us'] * 1e-6)} "
            f"({change(free['percent'])}) if {escape(name)} took no time"
        )
    hottest = max(report["lines"], key=lambda line: line["time_us"], default=None)
    if hottest is not None and hottest["time_us"]:
        share = percent(hottest["time_us"] / report["time_us"])
        text += f".<br>{share} of it in line {hottest['line']}: <code>{escape(hottest['text'])}</code>"
    notes = "".join(f"<li>{escape(note)}</li>" for note in estimate.notes)
    return f'<p class="verdict">{text}</p>' + (f'<ul class="notes">{notes}</ul>' if notes else "")


def _engines(report: Mapping[str, Any]) -> str:
    free = report["counterfactuals"]
    rows = []
    for name, engine in sorted(report["engines"].items(), key=lambda item: -item[1]["busy_us"]):
        mark = ' <span class="hottest">bottleneck</span>' if name == report["bottleneck"] else ""
        without = free.get(name)
        rows.append(
            (
                f"{escape(name)}{mark}",
                (f"{bar(engine['active_percent'] / 100)} {engine['active_percent']:.1f} %", "share"),
                (duration(engine["busy_us"] * 1e-6), "num"),
                (duration(without["time_us"] * 1e-6) if without else "", "num"),
                (change(without["percent"]) if without else "", "num"),
            )
        )
    return table(("engine", "active", ("busy", "num"), ("launch without it", "num"), ""), rows, "engines")


def _memory(launch: LaunchProfile, report: Mapping[str, Any], profile: Profile) -> str:
    rows = []
    for name, space in report["memory"].items():
        peak = space["peak_bytes"]
        share = 0.0 if peak is None else peak / space["capacity_bytes"]
        hardware = escape(profile.device.memory[name].hardware)
        rows.append(
            (
                f"{escape(name)} <small>{hardware}</small>",
                (format_size(space["bytes_read"]), "num"),
                (format_size(space["bytes_written"]), "num"),
                ("" if peak is None else f"{bar(share)} {percent(share)}", "share"),
                ("" if peak is None else format_size(peak), "num"),
                (format_size(space["capacity_bytes"]), "num"),
            )
        )
    head = ("space", ("read", "num"), ("written", "num"), "full", ("peak", "num"), ("capacity", "num"))
    return f"{table(head, rows)}<p>{'; '.join(_transfers(launch, report))}.</p>"


def _transfers(launch: LaunchProfile, report: Mapping[str, Any]) -> Iterator[str]:
    dma = launch.counts.dma
    average = dma.bytes / dma.transfers if dma.transfers else 0
    yield f"{dma.transfers:,} transfers to and from global memory, {format_size(average)} on average"
    if report.get("coalescing_percent") is not None:
        yield f"{report['coalescing_percent']:.1f} % of what they cost is for bytes that were asked for"
    if report.get("bank_conflicts") is not None:
        yield f"{report['bank_conflicts']:,} bank conflicts"
    if launch.estimate is not None and launch.estimate.seconds:
        moved = launch.estimate.bytes.get("global", 0.0)
        yield f"{rate(moved / launch.estimate.seconds, 'B')} of global memory"
