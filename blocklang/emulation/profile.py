"""What the launches of a run moved on an emulated device, and how long they would take there.

A `Profile` collects launches that counted (`blocklang.abi.AccessCounts`); equal launches with equal counts
are kept once, with their number. Its `to_dict()` is the JSON report.

Not here: text and pages for people (`table`, `page`), the model of time (`estimate`), and the launches
themselves.
"""

from __future__ import annotations

import linecache
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from blocklang.abi import AccessCounts, CountedAccess, SpaceUsage
from blocklang.diagnostics import Location
from blocklang.emulation.estimate import Estimate, Run
from blocklang.emulation.placement import Block, Placement
from blocklang.emulation.work import Work, work_of
from blocklang.ir.core import Kernel
from blocklang.target import Device


@dataclass
class Traffic:
    """Bytes that went to and from a memory space."""

    bytes_read: int = 0
    bytes_written: int = 0

    def add(self, other: Traffic, times: int = 1) -> None:
        self.bytes_read += times * other.bytes_read
        self.bytes_written += times * other.bytes_written

    @property
    def bytes(self) -> int:
        return self.bytes_read + self.bytes_written


@dataclass
class Transfers:
    """What moved between global memory and the chip: bytes, and in how many transfers."""

    bytes: int = 0
    transfers: int = 0

    def add(self, other: Transfers, times: int = 1) -> None:
        self.bytes += times * other.bytes
        self.transfers += times * other.transfers


@dataclass
class Line:
    """What one line of the user's source moved, by space."""

    file: str
    line: int
    memory: dict[str, Traffic] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The line itself, without its indentation; "" if the file cannot be read."""
        return linecache.getline(self.file, self.line).strip()

    @property
    def place(self) -> str:
        """File and line, as in error messages."""
        return f"{os.path.basename(self.file)}:{self.line}"

    def to_dict(self) -> dict[str, Any]:
        memory = {name: vars(traffic) for name, traffic in self.memory.items()}
        return {"file": self.file, "line": self.line, "text": self.text, "memory": memory}


@dataclass
class Counts:
    """Everything that was counted, of one launch or of many.

    Attributes:
        memory: by space, `global` first.
        dma: between global memory and the chip.
        lines: by file and line.
    """

    memory: dict[str, Traffic]
    dma: Transfers = field(default_factory=Transfers)
    lines: dict[tuple[str, int], Line] = field(default_factory=dict)

    def add(self, other: Counts, times: int = 1) -> None:
        for name, traffic in other.memory.items():
            self.memory[name].add(traffic, times)
        self.dma.add(other.dma, times)
        for place, line in other.lines.items():
            own = self.lines.setdefault(place, Line(*place))
            for name, traffic in line.memory.items():
                own.memory.setdefault(name, Traffic()).add(traffic, times)

    def add_access(self, access: CountedAccess, counters: Sequence[int]) -> None:
        size = access.bytes * counters[access.moves]
        traffic = Traffic(0, size) if access.writes else Traffic(size, 0)
        self.memory[access.space].add(traffic)
        if access.transfers is not None:
            self.dma.add(Transfers(size, counters[access.transfers]))
        if size and access.location.line > 0:
            place = (access.location.file, access.location.line)
            line = self.lines.setdefault(place, Line(*place))
            line.memory.setdefault(access.space, Traffic()).add(traffic)


@dataclass
class LaunchProfile:
    """One launch, or several that were equal in everything.

    Attributes:
        kernel: its name.
        location: where the kernel is defined.
        grid: its extents.
        run: what it did, if that was to be kept.
        times: how many launches these figures stand for; each figure is of one.
        counts: what it moved.
        usage: how full it made each on-chip space.
        blocks: what it kept there, in the order of the program.
        work: its arithmetic; None if the kernel was not given.
    """

    kernel: str
    location: Location
    grid: tuple[int, int, int]
    counts: Counts
    usage: Mapping[str, SpaceUsage]
    estimate: Estimate | None = None
    run: Run | None = None
    blocks: tuple[Block, ...] = ()
    work: Work | None = None
    times: int = 1

    def to_dict(self, device: Device) -> dict[str, Any]:
        return {
            "kernel": self.kernel,
            "file": self.location.file,
            "line": self.location.line,
            "grid": list(self.grid),
            "times": self.times,
            **_report(self.counts, self.usage, device, [(self.estimate, 1)]),
            **({} if self.estimate is None else {"notes": list(self.estimate.notes)}),
            "flops": None if self.work is None else self.work.to_dict(),
            "placement": [_placed(block) for block in self.blocks],
        }


class Profile:
    """What the launches of a run moved on a device, and their time.

    Attributes:
        device: which.
        launches: in the order of their first appearance.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self.launches: list[LaunchProfile] = []
        self._known: dict[tuple[object, ...], LaunchProfile] = {}

    def add(
        self,
        kernel: str,
        location: Location,
        grid: tuple[int, int, int],
        counts: AccessCounts,
        usage: Iterable[SpaceUsage],
        counters: Sequence[int],
        estimate: Estimate | None = None,
        run: Run | None = None,
        *,
        placement: Placement | None = None,
        block: Kernel | None = None,
    ) -> None:
        """Add a launch that ended with these counters, the sums over its programs.

        Args:
            placement: where the blocks of its kernel are.
            block: the kernel, of level block, to count its arithmetic.
        """
        key = (counts, grid, tuple(counters), estimate.seconds if estimate is not None else None)
        if key in self._known:
            self._known[key].times += 1
            return
        figures = self._no_counts()
        for access in counts.accesses:
            figures.add_access(access, counters)
        launch = LaunchProfile(
            kernel,
            location,
            grid,
            figures,
            {each.space: each for each in usage},
            estimate,
            run,
            blocks=() if placement is None else placement.blocks,
            work=None if block is None else work_of(block, self.device, counts, counters, grid),
        )
        self._known[key] = launch
        self.launches.append(launch)

    def _no_counts(self) -> Counts:
        return Counts({name: Traffic() for name in self.device.memory})

    @property
    def total(self) -> Counts:
        """The sum over all launches."""
        total = self._no_counts()
        for launch in self.launches:
            total.add(launch.counts, launch.times)
        return total

    @property
    def usage(self) -> dict[str, SpaceUsage]:
        """The peak of each on-chip space over all launches."""
        peaks: dict[str, SpaceUsage] = {}
        for launch in self.launches:
            for name, usage in launch.usage.items():
                if name not in peaks or usage.peak_bytes > peaks[name].peak_bytes:
                    peaks[name] = usage
        return peaks

    def __str__(self) -> str:
        from blocklang.emulation.table import format_profile  # which needs this module

        return format_profile(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the report to a file: figures (`.json`), a page to read (`.html`), or a timeline for Perfetto
        (`.trace.json`).

        Raises:
            UsageError: the name ends in something else, or the file cannot be written.
        """
        from blocklang.emulation.saving import save_profile  # which needs this module

        save_profile(self, path)

    @property
    def seconds(self) -> float | None:
        """The time of all launches, one after the other; None if one of them has none."""
        times = [(each.estimate, each.times) for each in self.launches]
        return _seconds(times)

    def to_dict(self) -> dict[str, Any]:
        """The JSON report; docs/profile.md says what each key means."""
        times = [(each.estimate, each.times) for each in self.launches]
        return {
            "device": self.device.name,
            **({} if self.seconds is None else {"model_error_percent": model_errors(self.device)}),
            **_report(self.total, self.usage, self.device, times),
            "launches": [launch.to_dict(self.device) for launch in self.launches],
        }


def model_errors(device: Device) -> dict[str, float]:
    """By how much the model's time is longer than the published one, for each workload that was run."""
    known = {each.name: each.model_error for each in device.published}
    return {name: 100 * error for name, error in known.items() if error is not None}


Times = Sequence[tuple["Estimate | None", int]]


def _placed(block: Block) -> dict[str, Any]:
    return {
        "space": block.space,
        "name": block.name,
        "type": block.type,
        "offset": block.offset,
        "bytes": block.size,
        "versions": block.versions,
        "file": block.location.file,
        "line": block.location.line,
        "first_line": block.lines[0],
        "last_line": block.lines[1],
    }


def _report(counts: Counts, usage: Mapping[str, SpaceUsage], device: Device, times: Times) -> dict[str, Any]:
    memory: dict[str, dict[str, Any]] = {}
    for name, traffic in counts.memory.items():
        peak = usage[name].peak_bytes if name in usage else None
        capacity = device.memory[name].capacity_bytes
        memory[name] = {**vars(traffic), "peak_bytes": peak, "capacity_bytes": capacity}
    lines = {place: line.to_dict() for place, line in sorted(counts.lines.items())}
    report = {"memory": memory, "dma": vars(counts.dma), "lines": list(lines.values())}
    seconds = _seconds(times)
    if seconds is None:
        return report
    return {**_times(times, seconds), **report, "lines": _timed_lines(lines, times)}


def _seconds(times: Times) -> float | None:
    if not times or any(estimate is None for estimate, _ in times):
        return None
    return sum(count * estimate.seconds for estimate, count in times if estimate is not None)


def _times(times: Times, seconds: float) -> dict[str, Any]:
    """Time, engines, what holds it up and what would help."""
    busy: dict[str, float] = defaultdict(float)
    saved: dict[str, float] = defaultdict(float)
    sectors = useful = 0.0
    for estimate, count in times:
        assert estimate is not None
        for engine, amount in estimate.busy.items():
            busy[engine] += count * amount
        for engine, rest in estimate.counterfactuals.items():
            saved[engine] += count * (estimate.seconds - rest)
        sectors += count * estimate.moved_bytes
        useful += count * estimate.useful_bytes
    return {
        "time_us": seconds * 1e6,
        "engines": {
            name: {"busy_us": amount * 1e6, "active_percent": 100 * amount / (seconds or 1.0)}
            for name, amount in sorted(busy.items())
            if amount
        },
        "coalescing_percent": 100 * useful / sectors if sectors else None,
        "bank_conflicts": None,
        "bottleneck": max(saved, key=saved.__getitem__, default=None),
        "counterfactuals": {
            name: {
                "time_us": (seconds - amount) * 1e6,
                "percent": -100 * amount / seconds if seconds else 0.0,
            }
            for name, amount in sorted(saved.items())
        },
    }


def _timed_lines(lines: dict[tuple[str, int], dict[str, Any]], times: Times) -> list[dict[str, Any]]:
    """The lines with what the launches waited for at each; those that wait and move nothing, too."""
    seconds: dict[tuple[str, int], float] = defaultdict(float)
    causes: dict[tuple[str, int], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for estimate, count in times:
        assert estimate is not None
        for line in estimate.lines:
            if line.line > 0:
                seconds[line.file, line.line] += count * line.seconds
                for engine, amount in line.engines.items():
                    causes[line.file, line.line][engine] += count * amount
    found = []
    for place in sorted({*lines, *seconds}):
        moved = lines.get(place) or Line(*place).to_dict()
        waits = causes.get(place, {})
        cause = max(waits, key=waits.__getitem__, default=None)
        found.append({**moved, "time_us": seconds.get(place, 0.0) * 1e6, "cause": cause})
    return found
