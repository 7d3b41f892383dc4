"""A profile as text for people: a table per launch, and one of the whole run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from blocklang.abi import SpaceUsage
from blocklang.emulation.profile import Counts, LaunchProfile, Profile, model_errors
from blocklang.target import Device, format_size

Row = tuple[str, ...]
LINES = 8  # that are listed with their time
SHOWN = 0.0005  # of the time, that a line is listed for


def format_profile(profile: Profile) -> str:
    """The whole report."""
    return "\n".join(_report(profile)) + "\n"


def _report(profile: Profile) -> Iterator[str]:
    device = profile.device
    yield f"{device.name}: {device.title}"
    if not profile.launches:
        yield "no launches (those of the interpreter are not counted)"
        return
    if profile.seconds is not None:
        yield _model_error(device)
    for launch in profile.launches:
        yield ""
        yield _title(launch)
        yield from _times(launch.to_dict(device))
        yield from _tables(launch.counts, launch.usage, device)
    launches = sum(launch.times for launch in profile.launches)
    if launches != 1:
        yield ""
        yield f"all {launches} launches"
        yield from _times(profile.to_dict())
        yield from _tables(profile.total, profile.usage, device)


def _model_error(device: Device) -> str:
    """How far the model was from what is published of the device."""
    errors = ", ".join(f"{error:+.1f}%" for error in model_errors(device).values())
    if not errors:
        return "model: no published time of this device was run for comparison"
    return f"model: {errors} off the published times of this device (blocklang devices show {device.name})"


def _title(launch: LaunchProfile) -> str:
    grid = " x ".join(str(extent) for extent in _trimmed(launch.grid))
    times = f", {launch.times} equal launches; figures are of one" if launch.times > 1 else ""
    noun = "program" if grid == "1" else "programs"
    return f"{launch.kernel} ({launch.location}), {grid} {noun}{times}"


def _trimmed(grid: Sequence[int]) -> Sequence[int]:
    """The grid without extents of 1 at its end."""
    used = max((axis + 1 for axis, extent in enumerate(grid) if extent != 1), default=1)
    return grid[:used]


def _times(report: Mapping[str, Any]) -> Iterator[str]:
    """Time, engines and lines, of a launch or of all."""
    if "time_us" not in report:
        return
    yield f"  time: {format_duration(1e-6 * report['time_us'])}, most of it for {report['bottleneck']}"
    for note in report.get("notes", ()):
        yield f"  {note}"
    free = report["counterfactuals"]
    rows: list[Row] = [("engine", "busy", "active", "if it took no time")]
    for name, engine in report["engines"].items():
        without = f"{free[name]['percent']:+.1f}%" if name in free else ""
        rows.append(
            (name, format_duration(1e-6 * engine["busy_us"]), f"{engine['active_percent']:.1f}%", without)
        )
    yield from _align(rows, "<>>>")
    total = report["time_us"] or 1.0
    lines = [line for line in report["lines"] if line["time_us"] >= SHOWN * total]
    lines.sort(key=lambda line: -line["time_us"])
    rows = [("time by line", "time", "share", "waits for", "")]
    for line in lines[:LINES]:
        place = f"{os.path.basename(line['file'])}:{line['line']}"
        share = f"{100 * line['time_us'] / total:.1f}%"
        rows.append(
            (place, format_duration(1e-6 * line["time_us"]), share, line["cause"] or "", line["text"])
        )
    yield from _align(rows, "<>><<")


def format_duration(seconds: float) -> str:
    """A time as people read it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.2f} {unit}"
    return f"{seconds * 1e6:.2f} us"


def _tables(counts: Counts, usage: Mapping[str, SpaceUsage], device: Device) -> Iterator[str]:
    spaces = [("memory", "read", "written", "peak", "capacity"), *_spaces(counts, usage, device)]
    yield from _align(spaces, "<>>>>")
    dma = counts.dma
    yield f"  transfers: {dma.transfers:,}, on average {_average(dma.bytes, dma.transfers)}"
    lines = list(_lines(counts))
    if lines:
        yield from _align([("global memory by line", "read", "written", ""), *lines], "<>><")


def _spaces(counts: Counts, usage: Mapping[str, SpaceUsage], device: Device) -> Iterator[Row]:
    for name, traffic in counts.memory.items():
        space = device.memory[name]
        peak = ""
        if name in usage:
            peak = f"{format_size(usage[name].peak_bytes)} ({_share(usage[name])})"
        yield (
            f"{name} ({space.hardware})",
            format_size(traffic.bytes_read),
            format_size(traffic.bytes_written),
            peak,
            format_size(space.capacity_bytes),
        )


def _share(usage: SpaceUsage) -> str:
    return f"{usage.peak_bytes / usage.capacity_bytes:.1%}"


def _average(count: int, parts: int) -> str:
    return format_size(count / parts if parts else 0)


def _lines(counts: Counts) -> Iterator[Row]:
    """The lines that touch global memory, in the order of the source."""
    for _, line in sorted(counts.lines.items()):
        if "global" in line.memory:
            traffic = line.memory["global"]
            yield line.place, format_size(traffic.bytes_read), format_size(traffic.bytes_written), line.text


def _align(rows: Sequence[Row], sides: str) -> Iterator[str]:
    """Rows as columns, each aligned to its side."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [f"{text:{side}{width}}" for text, side, width in zip(row, sides, widths, strict=True)]
        yield "  " + "  ".join(cells).rstrip()
