"""A GPU: what the programs on one multiprocessor do to its pipes, and how many there are at once.

- A program is a block of threads. It issues its instructions in order and waits for what they read; loads
  that a product in a loop reads are copied ahead, `num_stages` rounds of them.
- So many programs share a multiprocessor as registers, shared memory, warps and slots allow (*occupancy*).
  They share its pipes, and a part of the bandwidth of the L2 cache and of the memory.
- A load moves whole sectors. What other programs of a wave, or all that fit the L2 cache, load too comes from
  the cache: the addresses of every program say how much that is.
- Products read their operands from shared memory, whose bandwidth they share with the copies into it.
- The programs of the busiest multiprocessor are the launch; those of a last wave that is not full run with
  fewer beside them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from blocklang.abi import AccessCounts
from blocklang.diagnostics import CompilationError
from blocklang.emulation.addresses import Addresses
from blocklang.emulation.planning import Facts, Planner, Runs, bytes_of, is_block
from blocklang.emulation.simulate import Simulation, simulate
from blocklang.emulation.stream import Instruction, Loop, without
from blocklang.ir.core import Kernel, Operation
from blocklang.ir.types import PointerType, element_type, shape_of
from blocklang.ops import elementwise as e
from blocklang.ops.atomics import Atomic
from blocklang.ops.control import For
from blocklang.ops.creation import Arange, Constant, Splat
from blocklang.ops.memory import Load, Store, pointee
from blocklang.ops.order import Gather, Histogram, Sort, TopK
from blocklang.ops.reduction import ArgReduce, Dot, Reduce, ReduceWith
from blocklang.ops.scan import MapElementwise, Scan
from blocklang.target import Device

WARPS, STAGES = 4, 3  # of a launch that does not say, as Triton has them
_OTHER_REGISTERS = 32  # of a thread: addresses, masks, what the compiler keeps
_MOST_REGISTERS = 255
_PIPELINE = 20  # cycles from one instruction to one that needs its result
_STEPS = 12  # instructions for a function that no pipe has
_SPECIAL = frozenset({"exp2", "log2", "sin", "cos", "rsqrt", "sqrt", "tanh", "exp", "log"})
Classes = Sequence[tuple[Sequence[float], int]]


@dataclass(frozen=True)
class Pipes:
    """The figures of one multiprocessor, per cycle of `clock_hz`.

    Attributes:
        f32_lanes, int_lanes, special_lanes: results of arithmetic per cycle; special are exp2, log2, sin, ...
        shared_bytes, l2_bytes: bytes per cycle from shared memory and from the L2 cache.
        shared_latency, l2_latency, memory_latency: cycles until data is there.
        memory_rate: bytes per second of the whole chip's memory.
    """

    clock_hz: float
    f32_lanes: float
    int_lanes: float
    special_lanes: float
    shared_bytes: float
    l2_bytes: float
    shared_latency: float
    l2_latency: float
    memory_latency: float
    memory_rate: float

    @staticmethod
    def of(device: Device) -> Pipes:
        """What the description says."""
        simt, sm, l2 = device.engines["simt"], device.sm, device.caches["l2"]
        memory = device.memory["global"]
        clock = simt.clock_hz
        clusters = 1.0 if l2.count is None else float(l2.count.value)
        return Pipes(
            clock,
            simt.ops_per_second("f32") / (2 * device.cores * clock),  # a multiply-add is two
            float(simt.elements_of("int") or 0),
            float(simt.elements_of("special") or 0),
            _figure(sm.shared_banks) * _figure(sm.bank_bytes),
            _figure(l2.bandwidth) * clusters / device.cores / clock,
            _figure(sm.shared_latency_cycles),
            _figure(l2.latency_cycles),
            _figure(memory.latency_cycles),
            _figure(memory.bandwidth),
        )


def _figure(figure: Any) -> float:
    """A figure that a timed device has."""
    assert figure is not None
    return float(figure.value)


@dataclass(frozen=True)
class Occupancy:
    """How many programs share a multiprocessor, and what keeps them from being more."""

    programs: int
    limit: str
    shared_bytes: int
    registers: int

    def __str__(self) -> str:
        count = "program" if self.programs == 1 else "programs"
        return (
            f"a multiprocessor has room for {self.programs} {count}, limited by {self.limit}: a program has "
            f"{self.shared_bytes:,} bytes of shared memory, a thread about {self.registers} registers"
        )


def estimate_gpu(
    kernel: Kernel,
    device: Device,
    addresses: Addresses,
    counts: AccessCounts,
    classes: Classes,
    options: Mapping[str, int],
) -> tuple[Callable[[frozenset[str], int], Simulation], Occupancy]:
    """The launch on the busiest multiprocessor, to be timed without some engines."""
    programs = sum(count for _, count in classes)
    facts = Facts(kernel)
    planners = [
        GpuPlanner(kernel, device, facts, addresses, Runs.of(counts, row), programs, options)
        for row, _ in classes
    ]
    occupancy = planners[0].occupancy
    own = math.ceil(programs / device.cores)
    agents = min(occupancy.programs, own)
    waves, rest = divmod(own, agents)
    streams = [
        (planner.stream(), count / programs) for planner, (_, count) in zip(planners, classes, strict=True)
    ]

    def timed(free: frozenset[str], wanted: int) -> Simulation:
        found = Simulation(0.0, {}, {}, {})
        for rounds, side_by_side in ((waves, agents), (1, rest)):
            if side_by_side:
                nodes = without([Loop(rounds * share, stream) for stream, share in streams], free)
                found = found.then(simulate(nodes, agents=side_by_side, in_order=True, events=wanted))
        # The other multiprocessors do the same at the same time.
        moved = {space: amount * programs / own for space, amount in found.bytes.items()}
        return replace(found, bytes=moved)

    return timed, occupancy


class GpuPlanner(Planner):
    """Writes the stream of a program."""

    def __init__(
        self,
        kernel: Kernel,
        device: Device,
        facts: Facts,
        addresses: Addresses,
        runs: Runs,
        programs: int,
        options: Mapping[str, int],
    ) -> None:
        super().__init__(kernel, device, facts, addresses, runs)
        self.sm = device.sm
        self.pipes = Pipes.of(device)
        self.threads = options.get("num_warps", WARPS) * self.sm.warp_lanes.value
        self.stages = max(1, options.get("num_stages", STAGES))
        self.programs = programs
        self.active = min(programs, device.cores)
        self.occupancy = self._occupancy()

    # ---- occupancy ----

    def _occupancy(self) -> Occupancy:
        sm, warp = self.sm, self.sm.warp_lanes.value
        shared = sum(bytes_of(load.result) * self._depth(load) for load in self.shared)
        if shared > sm.block_shared_bytes.value:
            raise self._too_much_shared(shared)
        blocks = [v for v in self.data if is_block(v) and v.defining_op not in self.shared]
        largest = max((bytes_of(v) for v in blocks), default=0)
        registers = min(_MOST_REGISTERS, _OTHER_REGISTERS + math.ceil(2 * largest / 4 / self.threads))
        limits = {
            "registers": sm.registers.value // (registers * self.threads),
            "shared memory": sm.shared_bytes.value // max(shared, 1),
        }
        if sm.warps is not None:
            limits["warps"] = sm.warps.value // (self.threads // warp)
        if sm.blocks is not None:
            limits["slots"] = sm.blocks.value
        limit = min(limits, key=limits.__getitem__)
        return Occupancy(max(1, limits[limit]), limit, shared, registers)

    def _too_much_shared(self, shared: int) -> CompilationError:
        loads = sorted(self.shared, key=lambda load: -bytes_of(load.result))
        parts = ", ".join(
            f"%{load.result.name} {self._depth(load)} x {bytes_of(load.result):,} bytes (line "
            f"{load.location.line})"
            for load in loads[:4]
        )
        limit = self.sm.block_shared_bytes.value
        return CompilationError(
            f"a program of {self.kernel.name} needs {shared:,} bytes of shared memory, {shared - limit:,} "
            f"more than {self.device.name} gives to a block ({limit:,}): {parts}",
            location=loads[0].location,
            help="use smaller blocks or fewer stages (num_stages=...)",
        )

    def _depth(self, load: Load) -> int:
        """How many rounds of a load are on the way at once."""
        loop = load.parent_op
        while loop is not None and not isinstance(loop, For):
            loop = loop.parent_op
        if loop is None or load not in self.shared:
            return 1
        return loop.num_stages or self.stages

    # ---- operations ----

    def operation(self, op: Operation) -> Iterator[Instruction]:
        pipes, warp = self.pipes, self.sm.warp_lanes.value
        match op:
            case Load():
                yield from self._load(op)
            case Store():
                yield from self._moved(op, (*self.inputs(op), *self.loaded(op)), (), ahead=False)
            case Atomic():
                reads = (*self.inputs(op), *self.loaded(op))
                yield from self._moved(op, reads, self._outputs(op), ahead=False)
            case Dot():
                yield from self._dot(op)
            case Reduce() | ArgReduce() | ReduceWith() | Scan():
                source = next(v for v in op.operands if is_block(v))
                steps = math.ceil(math.log2(warp)) + int(self.threads > warp)
                lanes = math.prod(shape_of(source.type)) / pipes.f32_lanes
                yield self._on("f32", op, lanes + steps, latency=steps * pipes.shared_latency)
            case Sort() | TopK() | Histogram() | Gather():
                source = next(v for v in op.operands if is_block(v))
                doublings = math.log2(max(2, shape_of(source.type)[-1]))
                rounds = doublings**2 / 2 if isinstance(op, (Sort, TopK)) else 2
                moved = bytes_of(source) * rounds / pipes.shared_bytes
                yield self._on("shared", op, moved, latency=rounds * pipes.shared_latency)
            case Constant() | Splat() | Arange():
                return
            case MapElementwise():
                yield self._on("f32", op, self._lanes(op) * len(op.regions[0].ops) / pipes.f32_lanes)
            case e.Elementwise() if op.results and is_block(op.results[0]):
                yield self._elementwise(op)

    def _outputs(self, op: Operation) -> tuple[int, ...]:
        return tuple(self.number(r) for r in op.results)

    def _lanes(self, op: Operation) -> int:
        return math.prod(shape_of(op.results[0].type))

    def _on(self, engine: str, op: Operation, cycles: float, *, latency: float = 0.0) -> Instruction:
        clock = self.pipes.clock_hz
        reads = tuple(self.number(v) for v in op.operands)
        return Instruction(
            engine,
            cycles / clock,
            reads,
            self._outputs(op),
            latency=latency / clock,
            label=op.name,
            location=op.location,
        )

    def _elementwise(self, op: Operation) -> Instruction:
        pipes, element = self.pipes, element_type(op.results[0].type)
        lanes = self._lanes(op)
        if isinstance(element, PointerType):
            return self._on("int", op, lanes / pipes.int_lanes, latency=_PIPELINE)
        if isinstance(op, e.FloatUnary) and not isinstance(op, (e.Abs, e.Neg)):
            if op.name in _SPECIAL:
                return self._on("special", op, lanes / pipes.special_lanes, latency=_PIPELINE)
            return self._on("f32", op, _STEPS * lanes / pipes.f32_lanes, latency=_PIPELINE)
        if isinstance(op, (e.Div, e.FloatFunction)):
            return self._on("special", op, 2 * lanes / pipes.special_lanes, latency=_PIPELINE)
        if element.is_float:
            factor = max(1.0, element.bits / 32)
            return self._on("f32", op, factor * lanes / pipes.f32_lanes, latency=_PIPELINE)
        return self._on("int", op, lanes / pipes.int_lanes, latency=_PIPELINE)

    def _load(self, op: Load) -> Iterator[Instruction]:
        depth = self._depth(op)
        ahead = depth > 1
        where = () if ahead else self.loaded(op)  # what says where a copy ahead goes is loaded ahead, too
        arrived = self.fresh() if op in self.shared else 0
        outputs = self._outputs(op)
        yield from self._moved(op, where, (arrived,) if arrived else outputs, ahead=ahead, depth=depth)
        if arrived:
            cycles = bytes_of(op.result) / self.pipes.shared_bytes
            put = self._on("shared", op, cycles).with_values((arrived,), outputs)
            yield replace(put, ahead=ahead, overtakes=True, depth=depth, label="to shared memory")

    def _moved(
        self,
        op: Load | Store | Atomic,
        reads: tuple[int, ...],
        writes: tuple[int, ...],
        *,
        ahead: bool,
        depth: int = 0,
    ) -> Iterator[Instruction]:
        """Through the L2 cache, and what it does not have from memory."""
        pipes = self.pipes
        sector = 1 if self.sm.sector_bytes is None else self.sm.sector_bytes.value
        pointer = op.segment("pointer")[0]
        useful = self.access_bytes(op)
        if not useful:
            return
        run = min(self.addresses.run_bytes(pointer), useful) or pointee(pointer.type).bytes
        moved = useful / run * math.ceil(run / sector) * sector
        missing = self._missing_share(op) * moved
        behind = self.fresh()
        latency = pipes.memory_latency if missing >= moved / 2 else pipes.l2_latency
        from_memory = Instruction(
            "memory",
            missing / (pipes.memory_rate / self.active),
            reads,
            (behind,),
            latency=latency / pipes.clock_hz,
            ahead=ahead,
            overtakes=True,
            bytes=missing,
            space="global",
            label=op.name,
            location=op.location,
        )
        yield from_memory
        yield replace(
            from_memory.with_values((behind,), writes),
            engine="l2",
            seconds=moved / pipes.l2_bytes / pipes.clock_hz,
            latency=0.0,
            depth=depth,
            bytes=moved,
            space="l2",
        )

    def _missing_share(self, op: Load | Store | Atomic) -> float:
        """The share of an access that the L2 cache does not have."""
        if not isinstance(op, Load):
            return 1.0
        base = self.addresses.of(op.pointer).base
        if base is None:
            return 1.0
        starts = np.broadcast_to(np.asarray(base), (self.programs,))
        different = len(np.unique(starts))
        whole = self.access_bytes(op) * self._times(op) * different
        if whole <= self._l2_bytes() / 2:
            return different / self.programs
        wave = self.active * self.occupancy.programs
        waves = [starts[i : i + wave] for i in range(0, len(starts), wave)]
        return sum(len(np.unique(w)) for w in waves) / self.programs

    def _l2_bytes(self) -> float:
        """What all L2 caches of the chip hold."""
        l2 = self.device.caches["l2"]
        return l2.capacity_bytes * (1 if l2.count is None else l2.count.value)

    def _times(self, op: Operation) -> float:
        """How often a program runs an operation."""
        times, inner = 1.0, op.parent
        while inner is not None and isinstance(inner.parent, Operation):
            outer = inner.parent
            times *= self.trips.get((outer, outer.regions.index(inner)), 1.0)
            inner = outer.parent
        return times

    def _tensor_rate(self, dtype: str) -> float | None:
        """Operations per second of the tensor cores; None if they do not multiply this type."""
        rates = self.device.engines["tensor"].throughput
        found = rates.get(dtype) or (rates.get("f8") if dtype.startswith("f8") else None)
        return None if found is None else found.value

    def _dot(self, op: Dot) -> Iterator[Instruction]:
        pipes = self.pipes
        *batch, rows, inner = shape_of(op.a.type)
        columns = shape_of(op.b.type)[-1]
        products = math.prod(batch) * rows * inner * columns
        dtype = str(element_type(op.a.type))
        flops = self._tensor_rate(dtype if op.input_precision != "tf32" else "tf32")
        read = bytes_of(op.a) + bytes_of(op.b)
        from_shared = self.fresh()
        if flops is None:  # each thread multiplies a square of its own
            side = max(1.0, math.sqrt(rows * columns / self.threads))
            element = max(1, bytes_of(op.a) // (math.prod(batch) * rows * inner))
            read = math.ceil(2 * products * element / side)
        reads = (self.number(op.a), self.number(op.b))
        fetch = self._on("shared", op, read / pipes.shared_bytes)
        yield replace(fetch.with_values(reads, (from_shared,)), label="operands from shared memory")
        acc = self.number(op.acc)
        if flops is None:
            engine, cycles = "f32", products / pipes.f32_lanes
        else:
            engine, cycles = "tensor", 2 * products / (flops / self.device.cores) * pipes.clock_hz
        yield self._on(engine, op, cycles, latency=_PIPELINE).with_values(
            (from_shared, *reads, acc), self._outputs(op)
        )
