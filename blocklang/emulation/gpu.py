"""A GPU: what the programs on one multiprocessor do to its pipes, and how many there are at once.

- A program is a block of threads. It issues its instructions in order and waits for what they read; loads
  that a product in a loop reads are copied ahead, `num_stages` rounds of them.
- So many programs share a multiprocessor as registers, shared memory, warps and slots allow (*occupancy*).
  They share its pipes, and a part of the bandwidth of the L2 cache and of the memory.
- A load moves whole sectors. What other programs of a wave, or all that fit the L2 cache, load too comes from
  the cache: the addresses of every program say how much that is.
- Products read their operands from shared memory, whose bandwidth they share with the copies into it.
- The programs of the busiest multiprocessor are the launch: a last wave that is not full counts whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from blocklang.abi import AccessCounts
from blocklang.diagnostics import CompilationError
from blocklang.emulation.addresses import Addresses
from blocklang.emulation.planning import Planner, Runs, bytes_of, is_block
from blocklang.emulation.simulate import Simulation, simulate
from blocklang.emulation.stream import Instruction, Loop, Node, without
from blocklang.ir.core import Kernel, Operation, Value
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
_STEPS = 12  # instructions for a function that no pipe has
_SPECIAL = frozenset({"exp2", "log2", "sin", "cos", "rsqrt", "sqrt", "tanh", "exp", "log"})
Classes = Sequence[tuple[Sequence[float], int]]


@dataclass(frozen=True)
class Occupancy:
    """How many programs share a multiprocessor, and what keeps them from being more."""

    programs: int
    limit: str
    shared_bytes: int
    registers: int


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
    gpu = device.gpu
    planners = [
        GpuPlanner(kernel, device, addresses, Runs.of(counts, row), programs, options) for row, _ in classes
    ]
    occupancy = planners[0].occupancy
    own = math.ceil(programs / gpu.multiprocessors)
    agents = min(occupancy.programs, own)
    waves = math.ceil(own / agents)
    nodes: tuple[Node, ...] = tuple(
        Loop(waves * count / programs, planner.stream())
        for planner, (_, count) in zip(planners, classes, strict=True)
    )

    def timed(free: frozenset[str], wanted: int) -> Simulation:
        found = simulate(without(nodes, free), agents=agents, in_order=True, events=wanted)
        # The others do the same at the same time.
        share = programs / (waves * agents)
        moved = {space: amount * share for space, amount in found.bytes.items()}
        return replace(found, bytes=moved)

    return timed, occupancy


class GpuPlanner(Planner):
    """Writes the stream of a program."""

    def __init__(
        self,
        kernel: Kernel,
        device: Device,
        addresses: Addresses,
        runs: Runs,
        programs: int,
        options: Mapping[str, int],
    ) -> None:
        super().__init__(kernel, device, addresses, runs)
        self.gpu = device.gpu
        self.threads = options.get("num_warps", WARPS) * self.gpu.warp
        self.stages = max(1, options.get("num_stages", STAGES))
        self.programs = programs
        self.active = min(programs, self.gpu.multiprocessors)
        self.occupancy = self._occupancy()

    # ---- occupancy ----

    def _occupancy(self) -> Occupancy:
        gpu = self.gpu
        shared = sum(bytes_of(load.result) * self._depth(load) for load in self._operands())
        if shared > gpu.shared_bytes_per_block:
            raise self._too_much_shared(shared)
        blocks = [v for v in self.data if is_block(v) and not self._is_shared(v)]
        largest = max((bytes_of(v) for v in blocks), default=0)
        registers = min(_MOST_REGISTERS, _OTHER_REGISTERS + math.ceil(2 * largest / 4 / self.threads))
        limits = {
            "shared memory": gpu.shared_bytes_per_multiprocessor // shared if shared else gpu.blocks,
            "registers": gpu.registers // (registers * self.threads),
            "warps": gpu.warps // (self.threads // gpu.warp),
            "slots": gpu.blocks,
        }
        limit = min(limits, key=limits.__getitem__)
        return Occupancy(max(1, limits[limit]), limit, shared, registers)

    def _too_much_shared(self, shared: int) -> CompilationError:
        loads = sorted(self._operands(), key=lambda load: -bytes_of(load.result))
        parts = ", ".join(
            f"%{load.result.name} {bytes_of(load.result):,} bytes x {self._depth(load)} stages (line "
            f"{load.location.line})"
            for load in loads[:4]
        )
        limit = self.gpu.shared_bytes_per_block
        return CompilationError(
            f"a program of {self.kernel.name} needs {shared:,} bytes of shared memory, {shared - limit:,} "
            f"more than {self.device.name} gives to a block ({limit:,}): {parts}",
            location=loads[0].location,
            help="use smaller blocks or fewer stages (num_stages=...)",
        )

    def _operands(self) -> list[Load]:
        """The loads whose blocks a product reads from shared memory."""
        return [op for op in self.kernel.walk() if isinstance(op, Load) and self._is_shared(op.result)]

    def _is_shared(self, value: Value, depth: int = 4) -> bool:
        return depth > 0 and any(
            (isinstance(user, Dot) and value is not user.acc)
            or (not isinstance(user, Dot) and not user.regions and self._passes_on(user, value, depth))
            for user in self.users[value]
        )

    def _passes_on(self, user: Operation, value: Value, depth: int) -> bool:
        is_view = user.name in ("trans", "cast", "reshape", "bitcast")
        return is_view and self._is_shared(user.results[0], depth - 1)

    def _depth(self, load: Load) -> int:
        """How many rounds of a load are on the way at once."""
        loop = load.parent_op
        while loop is not None and not isinstance(loop, For):
            loop = loop.parent_op
        if loop is None or not self._is_shared(load.result):
            return 1
        return loop.num_stages or self.stages

    # ---- operations ----

    def operation(self, op: Operation) -> Iterator[Instruction]:
        gpu = self.gpu
        match op:
            case Load():
                yield from self._load(op)
            case Store():
                yield from self._moved(op, self.inputs(op), (), ahead=False)
            case Atomic():
                yield from self._moved(op, self.inputs(op), self._outputs(op), ahead=False)
            case Dot():
                yield from self._dot(op)
            case Reduce() | ArgReduce() | ReduceWith() | Scan():
                source = next(v for v in op.operands if is_block(v))
                steps = math.ceil(math.log2(gpu.warp)) + math.ceil(self.threads / gpu.warp > 1)
                lanes = math.prod(shape_of(source.type)) / gpu.fp32_lanes
                yield self._on("fp32", op, lanes + steps, latency=steps * gpu.shared_latency)
            case Sort() | TopK() | Histogram() | Gather():
                source = next(v for v in op.operands if is_block(v))
                steps = math.log2(max(2, shape_of(source.type)[-1]))
                rounds = steps**2 / 2 if isinstance(op, (Sort, TopK)) else 2
                moved = bytes_of(source) * rounds / gpu.shared_bytes_per_cycle
                yield self._on("shared", op, moved, latency=rounds * gpu.shared_latency)
            case Constant() | Splat() | Arange():
                return
            case MapElementwise():
                yield self._on("fp32", op, self._lanes(op) * len(op.regions[0].ops) / gpu.fp32_lanes)
            case e.Elementwise() if op.results and is_block(op.results[0]):
                yield self._elementwise(op)

    def _outputs(self, op: Operation) -> tuple[int, ...]:
        return tuple(self.number(r) for r in op.results)

    def _lanes(self, op: Operation) -> int:
        return math.prod(shape_of(op.results[0].type))

    def _on(self, engine: str, op: Operation, cycles: float, *, latency: float = 0.0) -> Instruction:
        clock = self.gpu.clock_hz
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
        gpu, element = self.gpu, element_type(op.results[0].type)
        lanes = self._lanes(op)
        if isinstance(element, PointerType):
            return self._on("int", op, lanes / gpu.int_lanes, latency=gpu.latency)
        if isinstance(op, e.FloatUnary) and not isinstance(op, (e.Abs, e.Neg)):
            if op.name in _SPECIAL:
                return self._on("special", op, lanes / gpu.special_lanes, latency=gpu.latency)
            return self._on("fp32", op, _STEPS * lanes / gpu.fp32_lanes, latency=gpu.latency)
        if isinstance(op, (e.Div, e.FloatFunction)):
            return self._on("special", op, 2 * lanes / gpu.special_lanes, latency=gpu.latency)
        if element.is_float:
            factor = element.bits / 32 if element.bits > 32 else 1
            return self._on("fp32", op, factor * lanes / gpu.fp32_lanes, latency=gpu.latency)
        return self._on("int", op, lanes / gpu.int_lanes, latency=gpu.latency)

    def _load(self, op: Load) -> Iterator[Instruction]:
        if op.result not in self.data and not is_block(op.result):
            return
        depth = self._depth(op)
        ahead = depth > 1
        arrived = self.fresh() if self._is_shared(op.result) else 0
        outputs = self._outputs(op)
        yield from self._moved(op, (), (arrived,) if arrived else outputs, ahead=ahead, depth=depth)
        if arrived:
            cycles = bytes_of(op.result) / self.gpu.shared_bytes_per_cycle
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
        gpu = self.gpu
        pointer = op.segment("pointer")[0]
        useful = self.access_bytes(op)
        if not useful:
            return
        run = min(self.addresses.run_bytes(pointer), useful) or pointee(pointer.type).bytes
        moved = useful / run * math.ceil(run / gpu.sector_bytes) * gpu.sector_bytes
        missing = self._missing_share(op) * moved
        behind = self.fresh()
        common = {"ahead": ahead, "overtakes": True, "location": op.location, "label": op.name}
        yield Instruction(
            "memory",
            missing / (gpu.memory_bytes_per_second / self.active),
            reads,
            (behind,),
            latency=(gpu.memory_latency if missing >= moved / 2 else gpu.l2_latency) / gpu.clock_hz,
            bytes=missing,
            space="global",
            **common,  # type: ignore[arg-type]
        )
        yield Instruction(
            "l2",
            moved / gpu.l2_bytes_per_cycle / gpu.clock_hz,
            (behind,),
            writes,
            depth=depth,
            bytes=moved,
            space="l2",
            **common,  # type: ignore[arg-type]
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
        if whole <= self.gpu.l2_bytes / 2:
            return different / self.programs
        wave = self.active * self.occupancy.programs
        waves = [starts[i : i + wave] for i in range(0, len(starts), wave)]
        return sum(len(np.unique(w)) for w in waves) / self.programs

    def _times(self, op: Operation) -> float:
        """How often a program runs an operation."""
        times, inner = 1.0, op.parent
        while inner is not None and isinstance(inner.parent, Operation):
            outer = inner.parent
            times *= self.trips.get((outer, outer.regions.index(inner)), 1.0)
            inner = outer.parent
        return times

    def _dot(self, op: Dot) -> Iterator[Instruction]:
        gpu = self.gpu
        *batch, rows, inner = shape_of(op.a.type)
        columns = shape_of(op.b.type)[-1]
        products = math.prod(batch) * rows * inner * columns
        dtype = str(element_type(op.a.type))
        flops = gpu.tensor_flops(dtype if op.input_precision != "tf32" else "tf32")
        read = bytes_of(op.a) + bytes_of(op.b)
        from_shared = self.fresh()
        if flops is None:  # each thread multiplies a square of its own
            side = max(1.0, math.sqrt(rows * columns / self.threads))
            element = max(1, bytes_of(op.a) // (math.prod(batch) * rows * inner))
            read = math.ceil(2 * products * element / side)
        reads = (self.number(op.a), self.number(op.b))
        fetch = self._on("shared", op, read / gpu.shared_bytes_per_cycle)
        yield replace(fetch.with_values(reads, (from_shared,)), label="operands from shared memory")
        acc = self.number(op.acc)
        if flops is None:
            engine, cycles = "fp32", products / gpu.fp32_lanes
        else:
            engine, cycles = "tensor", 2 * products / (flops / gpu.multiprocessors) * gpu.clock_hz
        yield self._on(engine, op, cycles, latency=gpu.latency).with_values(
            (from_shared, *reads, acc), self._outputs(op)
        )
