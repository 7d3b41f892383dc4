"""A profile as text for people: a table per launch, and one of the whole run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from blocklang.abi import SpaceUsage
from blocklang.runtime.profile import Counts, LaunchProfile, Profile
from blocklang.target import Device, format_size

Row = tuple[str, ...]


def format_profile(profile: Profile) -> str:
    """The whole report."""
    return "\n".join(_report(profile)) + "\n"


def _report(profile: Profile) -> Iterator[str]:
    device = profile.device
    yield f"{device.name}: {device.title}"
    for launch in profile.launches:
        yield ""
        yield _title(launch)
        yield from _tables(launch.counts, launch.usage, device)
    launches = sum(launch.times for launch in profile.launches)
    if launches != 1:
        yield ""
        yield f"all {launches} launches"
        yield from _tables(profile.total, profile.usage, device)


def _title(launch: LaunchProfile) -> str:
    grid = " x ".join(str(extent) for extent in _trimmed(launch.grid))
    times = f", {launch.times} equal launches; figures are of one" if launch.times > 1 else ""
    noun = "program" if grid == "1" else "programs"
    return f"{launch.kernel} ({launch.location}), {grid} {noun}{times}"


def _trimmed(grid: Sequence[int]) -> Sequence[int]:
    """The grid without extents of 1 at its end."""
    used = max((axis + 1 for axis, extent in enumerate(grid) if extent != 1), default=1)
    return grid[:used]


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
