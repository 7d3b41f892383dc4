"""From Block IR to the stream of a device: what all kinds of devices share.

A planner walks a kernel as the passes for whole blocks leave it and writes down what the device does for each
operation. It knows how often regions run and how many lanes accesses move (`Runs`, from the counters of the
native run), and where lanes are in memory (`Addresses`).

Blocks that are only addresses and masks cost nothing where the device makes addresses itself: `data` are the
values that are computed with.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from blocklang.abi import AccessCounts
from blocklang.diagnostics import Location
from blocklang.emulation.addresses import Addresses
from blocklang.emulation.indices import Carriers, loaded_indices, ways
from blocklang.emulation.stream import Branch, Instruction, Loop, Node
from blocklang.ir.core import Kernel, Operation, Region, Value
from blocklang.ir.types import BlockType, element_type, shape_of
from blocklang.ops.atomics import Atomic
from blocklang.ops.control import For, If, While, Yield
from blocklang.ops.elementwise import Bitcast, Cast
from blocklang.ops.memory import Load, Store, pointee
from blocklang.ops.reduction import Dot
from blocklang.ops.shape import ShapeOperation
from blocklang.target import Device

NUMBERS = 16  # versions of what is too small to need a place
Place = tuple[str, int, int]


def place_of(location: Location) -> Place:
    """File, line and column: what a line keeps through all passes."""
    return location.file, location.line, location.column


@dataclass
class Runs:
    """What one program did, or the average of several.

    Attributes:
        regions: how often the regions of control flow ran, by place and number.
        lanes: how many lanes accesses to global memory moved, by place and direction: of all that stand
            there, and of the one that moved most.
    """

    regions: Mapping[tuple[Place, int], float] = field(default_factory=dict)
    lanes: Mapping[tuple[Place, bool], tuple[float, float]] = field(default_factory=dict)

    @staticmethod
    def of(counts: AccessCounts, row: Sequence[float]) -> Runs:
        """From a row of counters."""
        regions: dict[tuple[Place, int], float] = defaultdict(float)
        for one in counts.regions:
            regions[place_of(one.location), one.region] += row[one.runs]
        lanes: dict[tuple[Place, bool], tuple[float, float]] = {}
        for access in counts.accesses:
            if access.space == "global":
                key, moved = (place_of(access.location), access.writes), row[access.moves]
                total, most = lanes.get(key, (0.0, 0.0))
                lanes[key] = (total + moved, max(most, moved))
        return Runs(dict(regions), lanes)


class Facts:
    """What is true of a kernel whatever its programs do.

    Attributes:
        data: what is computed with (`data_values`).
        handed_on: what control flow has to hand on: data, and what accesses find their way by.
        users: of each value.
        shared: the loads that products read (`shared_loads`).
    """

    def __init__(self, kernel: Kernel) -> None:
        carriers = carriers_of(kernel)
        self.data = data_values(kernel, carriers)
        self.handed_on = self.data | loaded_indices(kernel, carriers)
        self.shared = shared_loads(kernel)
        self.users: dict[Value, list[Operation]] = defaultdict(list)
        for op in kernel.walk():
            for value in op.operands:
                self.users[value].append(op)


class Planner:
    """Base of the planners of devices. Programs of one launch share `facts`."""

    def __init__(
        self,
        kernel: Kernel,
        device: Device,
        facts: Facts,
        addresses: Addresses,
        runs: Runs,
        versions: Mapping[Value, int] = MappingProxyType({}),
    ) -> None:
        self.kernel = kernel
        self.device = device
        self.versions = versions
        self.addresses = addresses
        self.runs = runs
        self.data = facts.data
        self.handed_on = facts.handed_on
        self.users = facts.users
        self.shared = facts.shared
        self.numbers: dict[Value, int] = {}
        self._fresh = 0
        self.trips: dict[tuple[Operation, int], float] = {}
        self.executions: dict[tuple[Place, str], float] = defaultdict(float)
        self._count_executions(kernel.body, 1.0)

    def fresh(self) -> int:
        """The number of a value that only the device has."""
        self._fresh += 1
        return -self._fresh

    def depth(self, op: Operation) -> int:
        """How many versions of what an operation makes have a place; numbers always find one."""
        return max((self.versions.get(r, NUMBERS) for r in op.results), default=0)

    def number(self, value: Value) -> int:
        """The number of a value in the stream."""
        return self.numbers.setdefault(value, len(self.numbers))

    def inputs(self, op: Operation) -> tuple[int, ...]:
        """The numbers of what an operation computes with."""
        return tuple(self.number(v) for v in op.operands if v in self.data)

    def loaded(self, op: Load | Store | Atomic) -> tuple[int, ...]:
        """The numbers of what was loaded, or computed as data, to know where an access goes and whether."""
        found: dict[int, None] = {}
        pending = list(ways(op))
        seen: set[Value] = set()
        while pending:
            value = pending.pop()
            if value in seen:
                continue
            seen.add(value)
            producer = value.defining_op
            if producer is None or producer.regions:
                if value in self.handed_on:
                    found[self.number(value)] = None
            elif isinstance(producer, (Load, Atomic)):
                found[self.number(value)] = None
            else:
                pending.extend(producer.operands)
        return tuple(found)

    # ---- how often ----

    def _count_executions(self, region: Region, times: float) -> None:
        """How often every region runs in a program. What one place became several times in a region (a loop
        that was unrolled) shares what was counted there."""
        copies = Counter((place_of(op.location), op.name) for op in region.ops)
        for op in region.ops:
            self.executions[place_of(op.location), op.name] += times
            for number, inner in enumerate(op.regions):
                entries = times * copies[place_of(op.location), op.name]
                counted = 1 if isinstance(op, While) else number
                runs = self.runs.regions.get((place_of(op.location), counted), 0.0)
                trips = 1.0 if not isinstance(op, (For, While, If)) else runs / entries if entries else 0.0
                self.trips[op, number] = trips
                asked = 1.0 if isinstance(op, While) and not number else 0.0  # once more than it holds
                self._count_executions(inner, times * (trips + asked))

    def live_share(self, op: Load | Store | Atomic) -> float:
        """The share of an access's lanes that move, on average."""
        lanes = math.prod(shape_of(op.segment("pointer")[0].type))
        times = self.executions[place_of(op.location), op.name]
        total, most = self.runs.lanes.get((place_of(op.location), not isinstance(op, Load)), (0.0, 0.0))
        possible = lanes * times
        if not possible:
            return 0.0
        # More than all: the host's loops load it more than once.
        return min(total if total <= possible else most, possible) / possible

    def access_bytes(self, op: Load | Store | Atomic) -> float:
        """Bytes that an access moves, on average."""
        pointer = op.segment("pointer")[0]
        lanes = math.prod(shape_of(pointer.type))
        return lanes * pointee(pointer.type).bytes * self.live_share(op)

    # ---- walking ----

    def stream(self) -> tuple[Node, ...]:
        """What the device does for a program."""
        return tuple(self.region(self.kernel.body))

    def region(self, region: Region) -> Iterator[Node]:
        for op in region.ops:
            if isinstance(op, For):
                yield self.loop(op)
            elif isinstance(op, While):
                yield from self.while_loop(op)
            elif isinstance(op, If):
                yield from self.branches(op)
            else:
                yield from self.operation(op)

    def operation(self, op: Operation) -> Iterator[Instruction]:
        """The instructions for one operation without regions of control flow."""
        raise NotImplementedError

    def loop(self, op: For) -> Loop:
        end = op.body.terminator
        assert isinstance(end, Yield)
        carried = [
            (self.number(inside), self.number(outside), self.number(last))
            for inside, outside, last in zip(op.body.args[1:], op.inits, end.operands, strict=True)
            if inside in self.handed_on
        ]
        results = self._names(op.results, end.operands)
        return Loop(self.trips[op, 0], tuple(self.region(op.body)), tuple(carried), results)

    def while_loop(self, op: While) -> Iterator[Node]:
        """The condition, then rounds of the body and the condition: it is asked once more than it holds."""
        asked, end = op.before.terminator, op.after.terminator
        assert asked is not None
        assert end is not None
        passed = asked.operands[1:]
        yield Branch(1.0, (), self._names(op.before.args, op.inits))
        yield from self.region(op.before)
        body = (
            Branch(1.0, (), self._names(op.after.args, passed)),
            *self.region(op.after),
            Branch(1.0, (), self._names(op.before.args, end.operands)),
            *self.region(op.before),
        )
        yield Loop(self.trips[op, 1], body, (), self._names(op.results, passed))

    def _names(self, new: Sequence[Value], old: Sequence[Value]) -> tuple[tuple[int, int], ...]:
        """The numbers of values that control flow hands on, and of those that they stand for."""
        pairs = zip(new, old, strict=False)
        return tuple((self.number(n), self.number(o)) for n, o in pairs if n in self.handed_on)

    def branches(self, op: If) -> Iterator[Branch]:
        for number, region in enumerate(op.regions):
            end = region.terminator
            values = end.operands if isinstance(end, Yield) else ()
            results = self._names(op.results, values)
            yield Branch(self.trips[op, number], tuple(self.region(region)), results)


def is_block(value: Value) -> bool:
    """True for a block of numbers."""
    return isinstance(value.type, BlockType)


def bytes_of(value: Value) -> int:
    """Bytes of a value."""
    return math.prod(shape_of(value.type)) * int(getattr(element_type(value.type), "bytes", 8))


def shared_loads(kernel: Kernel) -> set[Load]:
    """The loads whose blocks a matrix product reads, as they are or through views and casts."""
    found: set[Load] = set()
    for product in kernel.walk():
        pending = [product.a, product.b] if isinstance(product, Dot) else []
        while pending:
            producer = pending.pop().defining_op
            if isinstance(producer, Load):
                found.add(producer)
            elif isinstance(producer, (ShapeOperation, Cast, Bitcast)):
                pending.append(producer.operands[0])
    return found


def data_values(kernel: Kernel, carriers: Carriers) -> set[Value]:
    """The values that something is computed with, besides addresses, masks and bounds of loops.

    Args:
        carriers: for each value that control flow hands on, where it comes from.
    """
    found: set[Value] = set()
    pending: list[Value] = []

    def need(values: Sequence[Value]) -> None:
        for value in values:
            if value not in found:
                found.add(value)
                pending.append(value)

    for op in kernel.walk():
        if isinstance(op, Store):
            need([op.value])
        elif isinstance(op, Atomic):
            apart = (op.segment("pointer")[0], getattr(op, "mask", None))
            need([v for v in op.operands if v not in apart])
    while pending:
        value = pending.pop()
        need(carriers.get(value, ()))
        producer = value.defining_op
        if producer is None or isinstance(producer, (For, While, If)):
            continue
        if isinstance(producer, Load):
            need(producer.segment("other"))
        elif not isinstance(producer, Atomic):
            need(producer.operands)
    return found


def carriers_of(kernel: Kernel) -> dict[Value, tuple[Value, ...]]:
    """For each value that control flow hands on: where it comes from."""
    carriers: dict[Value, tuple[Value, ...]] = {}
    for op in kernel.walk():
        if isinstance(op, (For, While, If)):
            _note_carriers(op, carriers)
    return carriers


def _note_carriers(op: For | While | If, carriers: dict[Value, tuple[Value, ...]]) -> None:
    """For what control flow hands on: where it comes from."""

    def note(value: Value, *sources: Value) -> None:
        carriers[value] = (*carriers.get(value, ()), *sources)

    if isinstance(op, If):
        for region in op.regions:
            end = region.terminator
            for result, value in zip(op.results, end.operands if end else (), strict=False):
                note(result, value)
        return
    last = op.regions[-1].terminator
    assert last is not None
    inner = op.body.args[1:] if isinstance(op, For) else op.before.args
    for inside, outside, end_value in zip(inner, op.inits, last.operands, strict=True):
        note(inside, outside, end_value)
    if isinstance(op, While):
        passed = op.before.terminator
        assert passed is not None
        for after, value in zip(op.after.args, passed.operands[1:], strict=True):
            note(after, value)
        for result, value in zip(op.results, passed.operands[1:], strict=True):
            note(result, value)
    else:
        for result, outside, end_value in zip(op.results, op.inits, last.operands, strict=True):
            note(result, outside, end_value)
