"""Accelerators as frozen data: memory spaces, engines, costs, copies, limits, and where each figure is from.

    device = find_device("trn2")
    device.engines["tensor"].clock_hz
    device.cost("nc_matmul", N_stationary=128, N_moving=512, dtype="f32").cycles
    device.memory["sbuf"].capacity_bytes
    device.dma.row_seconds(2048)

Figures are in base units: bytes, hertz, seconds, bytes per second, operations per second. Scopes: on a neuron
device everything is of one core (of `chip.cores`), the `global` space excepted; on a gpu an engine's
throughput is of the chip, shared memory and registers are of one block and one multiprocessor.

Not here: files (`device_file`), where they lie (`device_search`), what the emulator does with the figures. No
code knows a device by its name.

Invariants: a `Device` is complete; what is missing, unknown or contradictory raised when it was read.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from blocklang.diagnostics import UsageError
from blocklang.lazy import cached_property
from blocklang.target.figures import QUANTITIES, Figure, Named, figure
from blocklang.target.formulas import Formula, FormulaError, Value

SPACES = ("global", "scratch", "accumulator")  # `global` and `scratch` are required
KINDS = ("memory", "neuron", "gpu", "cpu")
Described = TypeVar("Described")


@dataclass(frozen=True, kw_only=True)
class MemorySpace:
    """One memory space.

    Attributes:
        name: `global`, `scratch` or `accumulator`.
        hardware: what the device's makers call it.
        aliases: other names for `device.memory[...]`.
        size: bytes of the whole space; None if it is made of partitions.
        partitions: how many there are; None if the space is one piece.
        partition_bytes: bytes of each partition.
        banks: parts of a partition, or of the whole space, that are accessed one at a time.
        access_bytes: bytes that one access to a bank, or to the space, moves.
        bandwidth: bytes per second of the whole space.
        latency_cycles: cycles of the clock that the device's makers count in, until a load's data is there.
    """

    name: str
    hardware: str
    aliases: tuple[str, ...] = ()
    size: Figure[int] | None = figure("size", key="bytes")
    partitions: Figure[int] | None = figure("count")
    partition_bytes: Figure[int] | None = figure("size")
    banks: Figure[int] | None = figure("count")
    access_bytes: Figure[int] | None = figure("size")
    bandwidth: Figure[float] | None = figure("bandwidth")
    latency_cycles: Figure[float] | None = figure("cycles")

    @property
    def capacity_bytes(self) -> int:
        """Bytes of the whole space."""
        if self.partitions is not None and self.partition_bytes is not None:
            return self.partitions.value * self.partition_bytes.value
        assert self.size is not None
        return self.size.value

    @property
    def bank_bytes(self) -> int | None:
        """Bytes of a bank (in each partition, where there are some); None without banks."""
        if self.banks is None:
            return None
        whole = self.capacity_bytes if self.partition_bytes is None else self.partition_bytes.value
        return whole // self.banks.value


@dataclass(frozen=True, kw_only=True)
class Cache:
    """A cache between the arithmetic and the global space.

    Attributes:
        per: 'core' (or multiprocessor) if each has one of its own, 'chip' if all share one, 'cluster' if the
            cores of a part of the chip do; `count` says how many such parts there are.
        size: bytes of one such cache.
        line_bytes: bytes of a line.
        bandwidth: bytes per second of one such cache.
        latency_cycles: cycles of a hit.
    """

    name: str
    per: str
    size: Figure[int] = figure("size", key="bytes", required=True)
    count: Figure[int] | None = figure("count")
    line_bytes: Figure[int] | None = figure("size")
    bandwidth: Figure[float] | None = figure("bandwidth")
    latency_cycles: Figure[float] | None = figure("cycles")

    @property
    def capacity_bytes(self) -> int:
        """Bytes of one such cache."""
        return self.size.value


@dataclass(frozen=True, kw_only=True)
class Engine:
    """What computes: a matrix unit, a vector unit, a processor for the rest.

    Attributes:
        hardware: what the device's makers call it.
        clock: cycles per second.
        lanes: elements (or partitions) side by side; for a matrix unit its rows.
        units: how many processors it is made of.
        unit_bits: width of each such processor's vectors.
        unit_bytes: memory of each such processor.
        unit_latency_cycles: cycles of a load from it.
        access_cycles: from an instruction's start to its first element.
        start_cycles: fixed cycles of every instruction.
        dependent_cycles: added where an instruction waits for the one before, or is tiny.
        bandwidth: bytes per second of copies that it makes itself, both ways together.
        elements_per_cycle: by dtype; 'other' is every dtype without an entry.
        throughput: operations per second by dtype, dense unless the key says otherwise; of a gpu's chip.
    """

    name: str
    hardware: str
    clock: Figure[float] = figure("frequency", required=True)
    lanes: Figure[int] | None = figure("count")
    units: Figure[int] | None = figure("count")
    unit_bits: Figure[int] | None = figure("count")
    unit_bytes: Figure[int] | None = figure("size")
    unit_latency_cycles: Figure[float] | None = figure("cycles")
    access_cycles: Figure[float] | None = figure("cycles")
    start_cycles: Figure[float] | None = figure("cycles")
    dependent_cycles: Figure[float] | None = figure("cycles")
    bandwidth: Figure[float] | None = figure("bandwidth")
    elements_per_cycle: Mapping[str, Figure[int]] = field(default_factory=dict)
    throughput: Mapping[str, Figure[float]] = field(default_factory=dict)

    @property
    def clock_hz(self) -> float:
        """Cycles per second."""
        return self.clock.value

    def seconds(self, cycles: float) -> float:
        """How long so many cycles take."""
        return cycles / self.clock.value

    def elements_of(self, dtype: str) -> int | None:
        """Elements per cycle for a dtype; None if the file says nothing of it."""
        found = self.elements_per_cycle.get(dtype) or self.elements_per_cycle.get("other") or self.lanes
        return None if found is None else found.value

    def ops_per_second(self, dtype: str) -> float:
        """Dense operations per second; a multiply-add is two.

        Raises:
            UsageError: the description has no such dtype; the help lists those it has.
        """
        if dtype not in self.throughput:
            raise UsageError(
                f"engine {self.name} has no throughput for {dtype}",
                help=f"it has {', '.join(self.throughput) or 'none at all'}",
            )
        return self.throughput[dtype].value


@dataclass(frozen=True, kw_only=True)
class CostRow:
    """What instructions cost, as their makers or a measurement say.

    Attributes:
        instructions: by name; all have this cost.
        engines: those that run them, the usual one first.
        cycles: of the engine, in the quantities of `QUANTITIES` and the device's constants.
        contraction: how many times the matrix unit's rows are contracted in one pass.
        background: True if it runs beside the engine's other stream: time is the larger of the two.
    """

    instructions: tuple[str, ...]
    engines: tuple[str, ...]
    cycles: Formula
    source: str
    unverified: bool = False
    note: str = ""
    contraction: int = 1
    background: bool = False


@dataclass(frozen=True)
class Cost:
    """What one instruction costs: `cycles` of `engine`, which are `seconds`; `row` says by which formula."""

    instruction: str
    engine: str
    cycles: float
    seconds: float
    row: CostRow


@dataclass(frozen=True, kw_only=True)
class Curve:
    """A measured curve of copies: a row's bytes, and the rate as a share of the best rate."""

    row_bytes: tuple[int, ...]
    shares: tuple[float, ...]
    source: str
    unverified: bool = False


@dataclass(frozen=True, kw_only=True)
class Dma:
    """The engines that copy between global memory and the chip, seen from one core.

    A row is one descriptor: a contiguous run of bytes. Its time is the larger of the descriptor's and the
    bytes' at the engine's bandwidth; a transfer begins `start` after its trigger.

    Attributes:
        engines: of this core; `chip_engines` are all.
        queues: per engine; in order within one, in turn between them.
        bandwidth: bytes per second of one engine, as measured; `nominal_bandwidth` as specified.
        core_bandwidth: of the engines of one core together; `chip_bandwidth` of all.
        descriptor: seconds per row at least.
        start: seconds from a trigger across engines to the first byte; `issue` of a hardware-generated one.
        partitions_per_engine: which an engine serves.
        transpose_share: of the copy rate, when it transposes from global memory; `transpose_on_chip_share`
            within the chip.
        row_bytes: a row should have at least so many.
    """

    engines: Figure[int] = figure("count", required=True)
    bandwidth: Figure[float] = figure("bandwidth", required=True)
    descriptor: Figure[float] = figure("time", required=True)
    start: Figure[float] = figure("time", required=True)
    chip_engines: Figure[int] | None = figure("count")
    queues: Figure[int] | None = figure("count")
    priorities: Figure[int] | None = figure("count")
    nominal_bandwidth: Figure[float] | None = figure("bandwidth")
    core_bandwidth: Figure[float] | None = figure("bandwidth")
    chip_bandwidth: Figure[float] | None = figure("bandwidth")
    issue: Figure[float] | None = figure("time")
    partitions_per_engine: Figure[int] | None = figure("count")
    transpose_share: Figure[float] | None = figure("share")
    transpose_on_chip_share: Figure[float] | None = figure("share")
    row_bytes: Figure[int] | None = figure("size")
    curve: Curve | None = None

    @property
    def start_seconds(self) -> float:
        """From a trigger to the first byte."""
        return self.start.value

    def row_seconds(self, bytes: float) -> float:
        """One engine's time for a contiguous row."""
        return max(self.descriptor.value, bytes / self.bandwidth.value)

    def transfer_seconds(self, rows: int, row_bytes: float, engines: int | None = None) -> float:
        """From trigger to last byte, for equal rows that go round over engines (all of the core's)."""
        used = self.engines.value if engines is None else engines
        return self.start.value + -(-rows // used) * self.row_seconds(row_bytes)


@dataclass(frozen=True, kw_only=True)
class Chip:
    """The chip around the cores."""

    cores: Figure[int] = figure("count", required=True)
    clock: Figure[float] | None = figure("frequency")
    link_bandwidth: Figure[float] | None = figure("bandwidth")


@dataclass(frozen=True, kw_only=True)
class Tiles:
    """What one instruction of a neuron core takes at most."""

    partitions: Figure[int] = figure("count", required=True)
    stationary_columns: Figure[int] = figure("count", required=True)
    moving_columns: Figure[int] = figure("count", required=True)
    bank_bytes: Figure[int] = figure("size", required=True)


@dataclass(frozen=True, kw_only=True)
class Multiprocessor:
    """One of a gpu's multiprocessors (SM, compute unit): `chip.cores` says how many there are.

    Attributes:
        warp_lanes: lanes of a warp (wavefront).
        warps, blocks, threads: resident at once.
        schedulers: warps that issue in one cycle.
        registers: of 32 bits.
        shared_bytes: of shared memory; `block_shared_bytes` is the most of one block.
        shared_banks, bank_bytes: each bank moves so many bytes a cycle.
        sector_bytes, line_bytes: what a global access moves at least, and what a cache line holds.
    """

    warp_lanes: Figure[int] = figure("count", required=True)
    shared_bytes: Figure[int] = figure("size", required=True)
    block_shared_bytes: Figure[int] = figure("size", required=True)
    registers: Figure[int] = figure("count", required=True)
    warps: Figure[int] | None = figure("count")
    blocks: Figure[int] | None = figure("count")
    threads: Figure[int] | None = figure("count")
    schedulers: Figure[int] | None = figure("count")
    shared_banks: Figure[int] | None = figure("count")
    bank_bytes: Figure[int] | None = figure("size")
    shared_latency_cycles: Figure[float] | None = figure("cycles")
    sector_bytes: Figure[int] | None = figure("size")
    line_bytes: Figure[int] | None = figure("size")


RULES = {
    "serialise": "engines take turns at a space (when: always, same_bank, fast_mode)",
    "stride": "elements that lie at least `bytes` apart divide a space's rate by `factor`",
    "place": "instructions read operands from `inputs` and write to `outputs`",
}


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A rule of placement or of sharing; `RULES` says what each kind means."""

    rule: str
    source: str
    unverified: bool = False
    engines: tuple[str, ...] = ()
    space: str = ""
    when: str = "always"
    bytes: int = 0
    factor: float = 1.0
    instructions: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Published:
    """A published measurement, to state a model's error with.

    Attributes:
        workload: what ran, in words.
        seconds: its time; or `rate`, in operations per second.
        active: by engine (or 'dma'), the share of the time in which it was active.
        model_error: by how much of it the emulator's time for the workload is longer; None if it was not run.
    """

    name: str
    workload: str
    source: str
    unverified: bool = False
    seconds: float | None = None
    rate: float | None = None
    active: Mapping[str, float] = field(default_factory=dict)
    model_error: float | None = None


@dataclass(frozen=True, kw_only=True)
class Device:
    """An accelerator.

    Attributes:
        name: as on the command line.
        title: what it is, for people.
        memory: its spaces, by name or alias.
        kind: 'neuron', 'gpu' or 'cpu'; 'memory' if only spaces are described, for counts without time.
        sources: the documents, by the keys that figures give.
        constants: numbers that the cost formulas name.
    """

    name: str
    title: str
    memory: Mapping[str, MemorySpace]
    kind: str = "memory"
    note: str = ""
    sources: Mapping[str, str] = field(default_factory=dict)
    constants: Mapping[str, Figure[float]] = field(default_factory=dict)
    chip: Chip | None = None
    engines: Mapping[str, Engine] = field(default_factory=dict)
    caches: Mapping[str, Cache] = field(default_factory=dict)
    costs: tuple[CostRow, ...] = ()
    transfers: Dma | None = None
    tile_limits: Tiles | None = None
    multiprocessor: Multiprocessor | None = None
    rules: tuple[Rule, ...] = ()
    published: tuple[Published, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "memory", Named(self.memory))

    @property
    def is_timed(self) -> bool:
        """True if the description is enough for a model of time (`blocklang.emulation`)."""
        if self.kind == "neuron":
            return None not in (self.transfers, self.tile_limits) and bool(self.costs)
        l2, simt, memory = self.caches.get("l2"), self.engines.get("simt"), self.memory["global"]
        if self.kind != "gpu" or self.multiprocessor is None or l2 is None or simt is None:
            return False
        needed = (
            *(l2.bandwidth, l2.latency_cycles, memory.bandwidth, memory.latency_cycles),
            *(self.sm.shared_banks, self.sm.bank_bytes, self.sm.shared_latency_cycles),
            *(simt.elements_per_cycle.get(name) for name in ("int", "special")),
        )
        return None not in needed and "tensor" in self.engines

    @property
    def on_chip(self) -> tuple[str, ...]:
        """The names of the spaces that hold buffers."""
        return tuple(name for name in self.memory if name != "global")

    @property
    def dma(self) -> Dma:
        """The copy engines. Raises UsageError if none are described."""
        return self._described(self.transfers, "dma")

    @property
    def tiles(self) -> Tiles:
        """What an instruction takes at most. Raises UsageError if it is not described."""
        return self._described(self.tile_limits, "tiles")

    @property
    def sm(self) -> Multiprocessor:
        """A multiprocessor of a gpu. Raises UsageError if it is not described."""
        return self._described(self.multiprocessor, "sm")

    def _described(self, table: Described | None, name: str) -> Described:
        if table is None:
            raise UsageError(
                f"{self.name} has no table [{name}]", help=f"a device of kind {self.kind!r} need not have one"
            )
        return table

    @property
    def cores(self) -> int:
        """Cores, or multiprocessors, of the chip; 1 if the file does not say."""
        return 1 if self.chip is None else self.chip.cores.value

    @property
    def global_bandwidth(self) -> float | None:
        """Bytes per second of global memory, of the whole chip; None if the file does not say."""
        found = self.memory["global"].bandwidth
        return None if found is None else found.value

    @property
    def core_global_bandwidth(self) -> float | None:
        """A core's fair share of `global_bandwidth`."""
        return None if self.global_bandwidth is None else self.global_bandwidth / self.cores

    @property
    def instructions(self) -> tuple[str, ...]:
        """Every instruction that has a cost, sorted."""
        return tuple(sorted({name for row in self.costs for name in row.instructions}))

    def instructions_of(self, engine: str) -> tuple[str, ...]:
        """The instructions that an engine runs, sorted."""
        return tuple(
            sorted({name for row in self.costs if engine in row.engines for name in row.instructions})
        )

    def cost_row(self, instruction: str, engine: str | None = None) -> CostRow:
        """The row of the cost table for an instruction, on its usual engine or on this one.

        Raises:
            UsageError: there is none; the help lists what there is.
        """
        rows = [row for row in self.costs if instruction in row.instructions]
        if not rows:
            close = difflib.get_close_matches(instruction, self.instructions, n=1)
            guess = f"did you mean {close[0]}? " if close else ""
            raise UsageError(
                f"{self.name} has no cost of {instruction}",
                help=f"{guess}The instructions are {', '.join(self.instructions) or 'none'}",
            )
        for row in rows:
            if engine is None or engine in row.engines:
                return row
        engines = ", ".join(name for row in rows for name in row.engines)
        raise UsageError(
            f"{self.name} does not run {instruction} on engine {engine}", help=f"it runs on {engines}"
        )

    def cost(self, instruction: str, *, engine: str | None = None, **quantities: Value) -> Cost:
        """What one instruction costs.

        Args:
            instruction: its name in the cost table.
            engine: one of those that run it; by default the usual one.
            quantities: of `QUANTITIES`, those that the formula reaches; others may be given and are not used.

        Raises:
            UsageError: the instruction, engine or a quantity is unknown or missing.
        """
        key = (instruction, engine, tuple(quantities.items()))
        if (known := self._known_costs.get(key)) is None:
            known = self._known_costs[key] = self._compute_cost(instruction, engine, quantities)
        return known

    @cached_property
    def _known_costs(self) -> dict[tuple[object, ...], Cost]:
        """Costs that were asked for: a timing model asks for the same few over and over."""
        return {}

    def _compute_cost(self, instruction: str, engine: str | None, quantities: Mapping[str, Value]) -> Cost:
        row = self.cost_row(instruction, engine)
        for name, value in quantities.items():
            if name in QUANTITIES and not QUANTITIES[name].takes(value):
                raise UsageError(
                    f"{instruction}: expected {QUANTITIES[name].kind} for {name}, got {value!r}",
                    help=f"{name} is {QUANTITIES[name].meaning}",
                )
            if name not in QUANTITIES:
                close = difflib.get_close_matches(name, QUANTITIES, n=1)
                guess = f"did you mean {close[0]}? " if close else ""
                raise UsageError(
                    f"{instruction}: there is no quantity {name}",
                    help=f"{guess}{row.cycles.text} is in {', '.join(row.cycles.names)}",
                )
        values: dict[str, Value] = {
            name: quantity.default for name, quantity in QUANTITIES.items() if quantity.default is not None
        }
        values |= {name: constant.value for name, constant in self.constants.items()}
        try:
            cycles = row.cycles.evaluate({**values, **quantities})
        except (FormulaError, TypeError) as error:
            needed = ", ".join(f"{n} ({QUANTITIES[n].meaning})" for n in row.cycles.names if n in QUANTITIES)
            raise UsageError(
                f"cannot compute the cycles of {instruction}, {row.cycles.text}: {error}",
                help=f"it is in {needed}",
            ) from error
        if cycles < 0:
            raise UsageError(
                f"{instruction} costs {cycles:g} cycles on {self.name}, by {row.cycles.text}",
                help="correct the formula of the device file: cycles are never less than zero",
            )
        runs_on = row.engines[0] if engine is None else engine
        return Cost(instruction, runs_on, cycles, self.engines[runs_on].seconds(cycles), row)
