"""The time of one launch on a device: programs that did the same are timed once.

A native run leaves a row of counters for each program. Equal rows are one *class*; a launch with more than
`CLASSES` of them is cut into as many groups of similar work, each timed by its average. The streams of the
classes, as often as each has programs, are what a core of the device runs one after the other; copies for the
next program run ahead as far as there is room, as they do from one round of a loop to the next.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from blocklang.abi import AccessCounts
from blocklang.emulation.addresses import Addresses
from blocklang.emulation.gpu import estimate_gpu
from blocklang.emulation.neuron import DMA, NeuronPlanner
from blocklang.emulation.planning import Facts, Runs
from blocklang.emulation.simulate import Event, Simulation, simulate
from blocklang.emulation.stream import Loop, Node, without
from blocklang.ir.core import Kernel, Value
from blocklang.lazy import cached_property
from blocklang.target import Device

CLASSES = 64
Rows = np.ndarray[Any, np.dtype[np.int64]]


@dataclass
class LineTime:
    """What a launch waited for at one line of the source.

    Attributes:
        seconds: of the path that ended last.
        engines: the same by engine.
    """

    file: str
    line: int
    seconds: float = 0.0
    engines: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    @property
    def cause(self) -> str:
        """The engine that the line waited for most."""
        return max(self.engines, key=self.engines.__getitem__) if self.engines else ""


@dataclass(frozen=True)
class Estimate:
    """The time of one launch on a device.

    Attributes:
        seconds: of the whole launch.
        busy: seconds that each engine works.
        bytes: moved, by space.
        lines: what the launch waited for, the longest first.
        timed: times the launch again, without some engines.
        events: the first instructions, for a timeline.
        moved_bytes: what the memory moved, whole sectors or rows at their price.
        useful_bytes: what the programs asked for.
        programs: how many ran.
        classes: how many different ones there were.
        notes: what a reader should know of how it was timed, in words.
    """

    seconds: float
    busy: Mapping[str, float]
    bytes: Mapping[str, float]
    lines: tuple[LineTime, ...]
    timed: Callable[[frozenset[str], int], Simulation]
    events: tuple[Event, ...]
    moved_bytes: float
    useful_bytes: float
    programs: int
    classes: int
    notes: tuple[str, ...] = ()

    @cached_property
    def counterfactuals(self) -> Mapping[str, float]:
        """By engine, the seconds of the launch if that engine took no time."""
        engines = [engine for engine, seconds in self.busy.items() if seconds > 0]
        return {engine: self.timed(frozenset([engine]), 0).seconds for engine in engines}

    @property
    def bottleneck(self) -> str:
        """The engine without which the launch would gain most."""
        return min(self.counterfactuals, key=self.counterfactuals.__getitem__, default="")


def program_classes(rows: Rows) -> list[tuple[Sequence[float], int]]:
    """Rows of counters, each with the number of programs that it stands for.

    Args:
        rows: (programs, counters).
    """
    if not rows.shape[1]:
        return [((), len(rows))]
    if all(bool((column == column[0]).all()) for column in rows.T):
        return [(rows[0].tolist(), len(rows))]
    keys = np.random.default_rng(0).integers(1, 2**62, rows.shape[1]) | 1
    hashes = rows @ keys
    _, first, counts = np.unique(hashes, return_index=True, return_counts=True)
    if len(first) <= CLASSES:
        order = np.argsort(first)
        return [(rows[first[i]].tolist(), int(counts[i])) for i in order]
    groups = np.array_split(np.argsort(rows.sum(axis=1), kind="stable"), CLASSES)
    return [(rows[group].mean(axis=0).tolist(), len(group)) for group in groups]


@dataclass(frozen=True)
class Run:
    """What a launch did on the host: enough to time it on any device.

    Attributes:
        kernel: of level block, after the passes for whole blocks.
        counts: what the counters mean.
        rows: a row of counters for each program.
        arguments: the scalar arguments by name.
        grid: three extents.
        options: `num_warps` and `num_stages` of the launch, where they are given.
    """

    kernel: Kernel
    counts: AccessCounts
    rows: Rows
    arguments: Mapping[str, Any]
    grid: tuple[int, int, int]
    options: Mapping[str, int] = field(default_factory=dict)


def estimate_launch(
    run: Run, device: Device, *, versions: Mapping[Value, int] | None = None, events: int = 0
) -> Estimate:
    """How long a launch would take on a device.

    Args:
        versions: how many places the blocks have (`placement.place_blocks`).
        events: how many instructions of a timeline are kept.

    Raises:
        CompilationError: a program does not fit a multiprocessor.
    """
    kernel, counts, rows, grid = run.kernel, run.counts, run.rows, run.grid
    addresses = Addresses(kernel, run.arguments, grid)
    classes = program_classes(rows)
    notes: list[str] = []
    if len(classes) == CLASSES < len(rows):
        notes.append(
            f"programs differ: they are timed as {CLASSES} groups of similar ones, each by its average"
        )
    timed: Callable[[frozenset[str], int], Simulation]
    if device.kind == "gpu":
        timed, occupancy = estimate_gpu(kernel, device, addresses, counts, classes, run.options)
        notes.append(str(occupancy))
    else:
        notes.append(f"one core of {device.cores}, which runs its programs one after the other")
        nodes = _core_stream(kernel, device, addresses, counts, classes, versions or {})

        def timed(free: frozenset[str], wanted: int) -> Simulation:
            return simulate(without(nodes, free), events=wanted)

    found = timed(frozenset(), events)
    return Estimate(
        found.seconds,
        found.busy,
        found.bytes,
        _lines(found),
        timed,
        found.events,
        *_moved(device, found, counts, rows),
        math.prod(grid),
        len(classes),
        tuple(notes),
    )


def _moved(device: Device, found: Simulation, counts: AccessCounts, rows: Rows) -> tuple[float, float]:
    """Bytes of global memory that the device moves, or could have moved in the same time, and those that
    programs asked for."""
    if device.kind == "gpu":
        total = rows.sum(axis=0)
        asked = sum(a.bytes * float(total[a.moves]) for a in counts.accesses if a.space == "global")
        return max(found.bytes.get("l2", 0.0), asked), asked
    rate = device.dma.engines.value * device.dma.bandwidth.value
    return found.busy.get(DMA, 0.0) * rate, found.bytes.get("global", 0.0)


def _core_stream(
    kernel: Kernel,
    device: Device,
    addresses: Addresses,
    counts: AccessCounts,
    classes: Sequence[tuple[Sequence[float], int]],
    versions: Mapping[Value, int],
) -> tuple[Node, ...]:
    """All programs, on one core."""
    nodes: list[Node] = []
    facts = Facts(kernel)
    for row, programs in classes:
        planner = NeuronPlanner(kernel, device, facts, addresses, Runs.of(counts, row), versions)
        nodes.append(Loop(programs, planner.stream()))
    return tuple(nodes)


def _lines(found: Simulation) -> tuple[LineTime, ...]:
    lines: dict[tuple[str, int], LineTime] = {}
    for instruction, seconds in found.causes.items():
        place = (instruction.location.file, instruction.location.line)
        line = lines.setdefault(place, LineTime(*place))
        line.seconds += seconds
        line.engines[instruction.engine] += seconds
    return tuple(sorted(lines.values(), key=lambda line: -line.seconds))
