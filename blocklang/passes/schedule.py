"""The schedule: every choice between abstract and placed Tile IR, as data that can be printed.

A schedule says for each operation of abstract Tile IR how its loops run, which block values are kept in
buffers (all others are computed where they are read), and the register tiles of matrix products.
`choose_schedule` derives it from the abstract form and the target; `place` applies it and decides nothing.
A schedule changes time and memory, never a bit of a result.

Operations are named by the label of their first result (`%e`), stores by their position (`store0`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from blocklang.analysis.lane_strides import LaneForm, LaneStrides
from blocklang.analysis.memory_hazards import MemoryHazards, base_pointer, has_atomic
from blocklang.ir.core import Kernel, Operation, Value
from blocklang.ir.index_map import Dim, IndexMap, coefficient, compose, identity_map
from blocklang.ir.printer import Printer
from blocklang.ir.types import I8, BlockType, ScalarType, element_type, shape_of
from blocklang.ops.atomics import Atomic
from blocklang.ops.control import ControlFlow, For, If, While
from blocklang.ops.elementwise import FUNCTIONS, FUNCTIONS_OF_SEVERAL, Cast, Div, Elementwise
from blocklang.ops.events import ReportFault
from blocklang.ops.memory import Load, Store, pointee
from blocklang.ops.order import Gather, WholeBlock
from blocklang.ops.scan import GROUP, Running, Scan
from blocklang.ops.tile import FORMS, Contract, Iterate
from blocklang.passes.streaming import Stream, choose_stream, grid_axes
from blocklang.target import Target

CHEAP_FUNCTIONS = {FUNCTIONS[n] for n in ("floor", "ceil", "trunc", "rint")}
DEAR = tuple({*FUNCTIONS.values(), *FUNCTIONS_OF_SEVERAL.values(), Div, For, While} - CHEAP_FUNCTIONS)


# Loops that mostly move data: one vector of this size a step. Measured with 64-byte registers: adding 2^24
# floats takes 6.1 ms so, and 6.4 to 6.8 ms with one to four whole vectors a step.
STREAM_BYTES = 32
TURNED_BYTES = 512 << 10  # of a block that is turned: it goes through the second cache
TURNED_EXTENT = 16  # along both axes of one that is turned: a square of lanes
# A block that is prefetched has at least and at most so many bytes: less is a few lines, more would drive
# what is in use out of the nearest cache.
PREFETCH_BYTES = (1 << 10, 16 << 10)
ATOMIC_LANES = 8  # lanes per step of an atomic
# What one worker keeps of one operand's packed tiles: a share of a last cache.
SHARED_BYTES = 16 << 20
MOST_TILES, FEWEST_TILES = 512, 4


@dataclass(frozen=True)
class LoopSchedule:
    """How an iteration space is walked: axes from the outermost to the one that lanes run along, lanes per
    step, when its stores bypass the caches, and how many lanes ahead it asks for memory.
    """

    order: tuple[int, ...]
    width: int
    stream: Stream | None = None
    prefetch: int = 0

    def __str__(self) -> str:
        outer = "".join(f"d{axis}, " for axis in self.order[:-1])
        stream = f", {self.stream}" if self.stream is not None else ""
        ahead = f", prefetching {self.prefetch} ahead" if self.prefetch else ""
        return f"for {outer}lanes d{self.order[-1]} by {self.width}{stream}{ahead}"


@dataclass(frozen=True)
class ContractSchedule:
    """How a matrix product runs.

    Attributes:
        rows, columns: the register tile of the accumulator.
        form: of `contract_buffers`.
        tiles: how many packed operands programs may share, of A and of B; 0 packs in every program.
    """

    rows: int
    columns: int
    form: str = "fma"
    tiles: tuple[int, int] = (0, 0)

    def __str__(self) -> str:
        a, b = self.tiles
        shared = f", up to {a} packed tiles of A and {b} of B shared by programs" if a or b else ""
        form = "" if self.form == "fma" else f" of {self.form}"
        return f"register tile {self.rows} x {self.columns}{form}{shared}"


@dataclass
class Schedule:
    """All choices for one kernel on one device.

    Attributes:
        device: whose description they were made for.
        loops: per operation, its loops.
        kept: per block value that gets a buffer, the reason.
        layouts: per kept value whose buffer is not row-major, its axes from the outermost on.
        contracts: per matrix product, its register tile.
        default_loop: for moving whole blocks (carried values), by rank.
    """

    device: str
    loops: dict[str, LoopSchedule] = field(default_factory=dict)
    kept: dict[str, str] = field(default_factory=dict)
    layouts: dict[str, tuple[int, ...]] = field(default_factory=dict)
    contracts: dict[str, ContractSchedule] = field(default_factory=dict)
    copy_width: int = 32

    def __str__(self) -> str:
        lines = [f"schedule for {self.device}", f"  copies: lanes by {self.copy_width}"]
        lines += [f"  {label}: {loop}" for label, loop in self.loops.items()]
        lines += [f"  keep {label}{self._layout(label)}: {reason}" for label, reason in self.kept.items()]
        lines += [f"  {label}: {contract}" for label, contract in self.contracts.items()]
        return "\n".join(lines) + "\n"

    def _layout(self, label: str) -> str:
        order = self.layouts.get(label)
        return f" by {', '.join(f'd{axis}' for axis in order)}" if order is not None else ""


class Labels:
    """Printed names of values and stores, the keys of a schedule."""

    def __init__(self, kernel: Kernel) -> None:
        printer = Printer()
        printer.kernel(kernel)
        self._name = printer.name_of
        stores: list[Operation] = [op for op in kernel.walk() if isinstance(op, Iterate) and not op.results]
        self._stores = {op: f"store{position}" for position, op in enumerate(stores)}

    def of(self, op: Operation) -> str:
        return self._name(op.results[0]) if op.results else self._stores[op]

    def of_value(self, value: Value) -> str:
        return self._name(value)


def is_root(op: Operation) -> bool:
    """True if `op` gets loops of its own: a store, an atomic, a reduction, a scan, a product, a sort, ..."""
    if isinstance(op, (Contract, Scan, WholeBlock)):
        return True
    return isinstance(op, Iterate) and (bool(op.combine) or not op.results or has_atomic(op))


def is_running(op: Iterate) -> bool:
    """True if lanes see the results of those before: one loop makes them in order."""
    return any(isinstance(inner, Running) for inner in op.body.ops)


def is_producer(value: Value) -> bool:
    """True if `value` can be computed where it is read."""
    op = value.defining_op
    return isinstance(op, Iterate) and not is_root(op)


class _Chooser:
    def __init__(self, kernel: Kernel, target: Target) -> None:
        self.kernel = kernel
        self.target = target
        self.labels = Labels(kernel)
        self.strides = LaneStrides(kernel)
        self.hazards = MemoryHazards(kernel)
        self.kept: dict[Value, str] = {}
        self.layouts: dict[Value, tuple[int, ...]] = {}
        self.loops_reading: Counter[Value] = Counter()
        self.order = {op: i for i, op in enumerate(kernel.walk())}

    def run(self) -> Schedule:
        schedule = Schedule(self.target.name)
        schedule.copy_width = self.target.vector_bytes
        self.choose_kept()
        self.choose_turned()
        for op in self.kernel.walk():
            if isinstance(op, Iterate) and self.has_loops(op):
                schedule.loops[self.labels.of(op)] = self.loop(op)
            elif isinstance(op, Contract):
                schedule.contracts[self.labels.of(op)] = self.contract(op)
        schedule.kept = {self.labels.of_value(v): reason for v, reason in self.kept.items()}
        schedule.layouts = {self.labels.of_value(v): order for v, order in self.layouts.items()}
        return schedule

    def has_loops(self, op: Iterate) -> bool:
        """True if `op` may get loops of its own: a root, or a value that goes into a buffer."""
        return is_root(op) or any(
            value in self.kept or not all(isinstance(user, Iterate) for user in value.users)
            for value in op.results
        )

    # ---- what is kept ----

    def choose_kept(self) -> None:
        """Walk backwards, so that what the users do with a value is known before the value is judged."""
        roots: dict[Value, set[Operation]] = {}
        for op in reversed(self.order):
            if not isinstance(op, Iterate) or is_root(op):
                continue
            for value in op.results:
                reached: set[Operation] = set()
                for user in value.users:
                    if is_root(user) or isinstance(user, ControlFlow) or not isinstance(user, Iterate):
                        reached.add(user)
                    elif not any(r in self.kept for r in user.results):
                        for result in user.results:
                            reached |= roots.get(result, set())
                    else:
                        reached.add(user)
                roots[value] = reached
                if reason := self.reason_to_keep(op, value, reached):
                    self.kept[value] = reason
            if is_running(op) and (len(op.results) > 1 or op.results[0] in self.kept):
                for value in op.results:  # one loop makes them all
                    if value.users:
                        self.kept.setdefault(value, "one of several that a scan makes")

    def reason_to_keep(self, op: Iterate, value: Value, reached: set[Operation]) -> str:
        if is_running(op) and not self.is_read_in_order(op, reached):
            return "of lanes one after another, and not read so by one loop"
        if any(isinstance(user, Gather) and user.source is value for user in value.users):
            return "a gather reads any of its lanes"
        load = next((inner for inner in op.body.walk() if isinstance(inner, Load)), None)
        if load is not None and (reason := self.hazards.reason_to_keep(op, load)):
            return reason
        dear = any(isinstance(inner, DEAR) for inner in op.body.walk())
        if not dear and load is None:
            return ""
        if dear and len(reached) > 1:
            return "dear, and read by several loops"
        if any(_inside_loop(user, op) for user in reached):
            return "computed outside the loop that reads it"
        if dear and any(_replicates(user, value) for user in value.users):
            return "dear, and read several times per lane"
        return ""

    def choose_turned(self) -> None:
        """Keep what is loaded along one axis and stored along another, in rows of the second."""
        wanted: dict[Value, set[int | None]] = {}
        for op in self.kernel.walk():
            if not isinstance(op, Iterate) or not self.has_loops(op):
                continue
            fused = list(self.fused(op))
            turns = is_root(op) and not op.results and not any(is_running(inner) for inner, _ in fused)
            lane_axis = self.contiguous_axis(op, Store) if turns else None
            for inner, map in fused:
                if inner is not op and len(inner.results) == 1:
                    axes = [e.position if isinstance(e, Dim) else None for e in map.exprs]
                    is_same_space = sorted(a for a in axes if a is not None) == [*range(len(op.space))]
                    row = axes.index(lane_axis) if is_same_space and lane_axis is not None else None
                    wanted.setdefault(inner.results[0], set()).add(row)
        for value, (row, *others) in wanted.items():
            producer = value.defining_op
            assert isinstance(producer, Iterate)
            if row is None or others or not all(isinstance(user, Iterate) for user in value.users):
                continue
            if self.is_worth_turning(producer, row):
                rest = [axis for axis in range(len(producer.space)) if axis != row]
                self.kept[value] = "loaded along another axis than it is stored"
                self.layouts[value] = (*rest, row)

    def is_worth_turning(self, op: Iterate, row: int) -> bool:
        """True if `op` loads along another axis than `row`, and whole squares of lanes."""
        axis = self.contiguous_axis(op, Load)
        if axis is None or axis == row or len(self.accesses(op)) != 1:
            return False
        ((_, form),) = self.accesses(op)
        size = max(self.element_bytes(op))
        fits = math.prod(op.space) * size <= TURNED_BYTES
        return form.strides[row] != 0 and fits and min(op.space[row], op.space[axis]) >= TURNED_EXTENT

    def contiguous_axis(self, op: Iterate, kind: type[Operation]) -> int | None:
        """The axis along which the one access of a kind has consecutive elements."""
        forms = [form for access, form in self.accesses(op) if isinstance(access, kind)]
        axes = [axis for axis, stride in enumerate(forms[0].strides) if stride == 1] if forms else []
        return axes[0] if len(forms) == 1 and len(axes) == 1 and op.space[axes[0]] > 1 else None

    def is_read_in_order(self, op: Iterate, reached: set[Operation]) -> bool:
        """True if one store reads each lane once, at its own place: its loop can make the results."""
        (root, *others) = reached or {op}
        if others or not isinstance(root, Iterate) or root.results or root.space != op.space:
            return False
        if not is_root(root) or has_atomic(root) or _inside_loop(root, op):
            return False
        maps = [map for inner, map in self.fused(root) if inner is op]
        return len(maps) == 1 and maps[0].is_identity

    # ---- loops ----

    def loop(self, op: Iterate) -> LoopSchedule:
        rank = len(op.space)
        score: Counter[int] = Counter()
        widest, dear = 1, False
        moved = computed = 0
        for inner, map in self.fused(op):
            computed += sum(_is_float_arithmetic(i) for i in inner.body.walk())
            dear = dear or any(isinstance(i, DEAR) for i in inner.body.walk())
            widest = max(widest, *self.element_bytes(inner))
            for access, form in self.accesses(inner):
                moved += 1
                for axis in range(rank):
                    steps = [coefficient(e, axis) for e in map.exprs]
                    moves = [
                        None if s is None or c is None else s * c
                        for s, c in zip(form.strides, steps, strict=True)
                    ]
                    if None not in moves and abs(sum(m for m in moves if m)) == 1:
                        score[axis] += pointee(access.operands[0].type).bytes
        wide_axes = [a for a in range(rank) if op.space[a] > 1] or [rank - 1]
        if op.combine and self.must_fold_across_lanes(op):
            wide_axes = [a for a in wide_axes if a != op.reduced]
        lane_axis = max(wide_axes, key=lambda a: (score[a], a))
        if op.combine and self.must_fold_along_lanes(op):
            lane_axis = op.reduced
        elif not self.may_walk_in_any_order(op):
            lane_axis = wide_axes[-1]
        runs = any(is_running(inner) for inner, _ in self.fused(op))
        if runs:
            lane_axis = rank - 1
        order = (*(a for a in range(rank) if a != lane_axis), lane_axis)
        layout = next((self.layouts[r] for r in op.results if r in self.layouts), None)
        if layout is not None:  # squares of lanes lie in the two innermost loops
            order = (*(a for a in layout[:-1] if a != lane_axis), layout[-1], lane_axis)
        width = self.width(op, op.space[lane_axis], widest, dear)
        if has_atomic(op):  # lanes leave their vectors one by one: that is code for each
            width = min(width, ATOMIC_LANES)
        if not op.results and not dear and computed <= moved:
            width = min(width, max(STREAM_BYTES // widest, 1))
        if runs:  # whole groups, which are enough to hide behind each other
            width = min(GROUP, _power_of_two(op.space[lane_axis]))
        if _is_rare(op) and not _is_float_sum(op):  # whose partials are its order
            width = 1
        stream = choose_stream(op, lane_axis, width, self.hazards, self.target)
        return LoopSchedule(order, width, stream, self.prefetch(op))

    def prefetch(self, op: Iterate) -> int:
        """How many lanes ahead `op`, the next loop in order, asks for memory: a block, if it reads an array
        that one loop has read before it. The block is in the nearest cache then, and memory has nothing to
        do; what it brings now is what the next program begins with. What the next round of a loop begins with
        may lie anywhere.
        """
        (extent,) = op.space if len(op.space) == 1 and op.parent is self.kernel.body else (0,)
        seconds = False
        for base, size in self.arrays_read(op).items():
            if PREFETCH_BYTES[0] <= extent * size <= PREFETCH_BYTES[1]:
                self.loops_reading[base] += 1
                seconds = seconds or self.loops_reading[base] == 2
        return extent if seconds else 0

    def arrays_read(self, op: Iterate) -> dict[Value, int]:
        """The arrays that `op`'s loops read at consecutive addresses, which differ between programs, and the
        size of an element.
        """
        arrays: dict[Value, int] = {}
        for inner, _ in self.fused(op):
            for access, form in self.accesses(inner):
                pointer = access.segment("pointer")[0]
                base = base_pointer(pointer)
                if (
                    isinstance(access, Load)
                    and base is not None
                    and form.strides == (1,)
                    and grid_axes(pointer)
                ):
                    arrays[base] = pointee(pointer.type).bytes
        return arrays

    def may_walk_in_any_order(self, op: Iterate) -> bool:
        """True unless lanes that store to one address could change places: the last in row-major order wins,
        and atomics follow one another.
        Of strides that are given at run time it is taken that rows do not overlap.
        """
        for access, form in self.accesses(op):
            if isinstance(access, Atomic):
                return False
            if not isinstance(access, Store):
                continue
            if None in form.strides and form.bits >= 32:
                continue
            moving = [axis for axis, stride in enumerate(form.strides) if stride != 0]
            still = [axis for axis, n in enumerate(op.space) if n > 1 and axis not in moving]
            walked = LaneForm(tuple(form.strides[axis] for axis in moving), form.bits)
            if len(still) > 1 or not walked.is_distinct(tuple(op.space[axis] for axis in moving)):
                return False
        return True

    def must_fold_along_lanes(self, op: Iterate) -> bool:
        """Orders that are defined by index along the reduced axis: 32 partial sums, and the tree of a
        user's function.
        """
        innermost = not self.must_fold_across_lanes(op)
        return op.combine == "custom" or (innermost and _is_float_sum(op)) or len(op.space) == 1

    def must_fold_across_lanes(self, op: Iterate) -> bool:
        """A float sum along an axis with lanes after it: each lane adds its elements one by one."""
        return _is_float_sum(op) and any(n > 1 for n in op.space[op.reduced + 1 :])

    def width(self, op: Iterate, extent: int, widest: int, dear: bool) -> int:
        vectors = 2 if dear and self.target.vector_registers <= 16 else 4
        width = self.target.vector_bytes // widest * vectors
        if _is_float_sum(op):
            if not self.must_fold_along_lanes(op):
                return min(width, _power_of_two(extent))
            return min(max(32, min(width, 64)), max(_power_of_two(extent), 2))
        return max(1, min(width, _power_of_two(extent), 64))

    def fused(self, op: Iterate) -> Iterator[tuple[Iterate, IndexMap]]:
        """The iterations that will be computed inside `op`'s loops, each with the map from op's space to
        its own.
        """
        seen: set[tuple[Operation, IndexMap]] = set()
        stack: list[tuple[Iterate, IndexMap]] = [(op, identity_map(len(op.space)))]
        while stack:
            current, map = stack.pop()
            if (current, map) in seen:
                continue
            seen.add((current, map))
            yield current, map
            for value, inner in zip(current.inputs, current.maps, strict=True):
                producer = value.defining_op
                if is_producer(value) and value not in self.kept and isinstance(producer, Iterate):
                    stack.append((producer, compose(inner, map, op.space)))

    def accesses(self, op: Iterate) -> list[tuple[Operation, LaneForm]]:
        accesses = [inner for inner in op.body.walk() if isinstance(inner, (Load, Store, Atomic))]
        pointers = [a.segment("pointer")[0] for a in accesses]
        return list(zip(accesses, self.strides.accesses(op, pointers), strict=True))

    def element_bytes(self, op: Iterate) -> list[int]:
        """The sizes of what lanes of registers hold: what `op` stores, or results in. Integers that are sums
        of indices need no lanes: they are a base and a step.
        """
        values = [i.value for i in op.body.walk() if isinstance(i, Store)]
        values = values or [v for v in op.results if not self.strides.of(v).bits]
        elements = [element_type(v.type) for v in values]
        return [e.bytes for e in elements if isinstance(e, ScalarType) and (e.is_float or e.bits < 64)] or [1]

    # ---- contractions ----

    def contract(self, op: Contract) -> ContractSchedule:
        """The largest register tile whose accumulators, B vectors and one broadcast fit the registers."""
        rows, columns = op.acc.type.shape[-2:]
        element = 8 if str(op.acc.type.element) == "f64" else 4
        form = self.form(op)
        packed = {"pairs": 2, "bytes": 1, "tiles": 1}.get(form, element)  # bytes per number
        tiles = (_shared_tiles(op.a, packed), _shared_tiles(op.b, packed))
        if form == "tiles":
            return ContractSchedule(32 - rows % 32, 32 - columns % 32, form, tiles)
        lanes = self.target.vector_bytes // element
        wide = -(-columns // lanes)
        most = min(2 if self.target.vector_registers <= 16 else 3, wide)
        # Vectors that divide the columns; or a last tile with fewer: products of one vector wait for loads.
        fewest = 2 if form == "fma" else 1
        vectors = next((v for v in range(most, fewest - 1, -1) if wide % v == 0), most)
        others = (2 if form == "bytes" else 1) * vectors + 1 + (form != "fma") + self.target.spare_registers
        fitting = max(1, (self.target.vector_registers - others) // vectors)
        limit = min(fitting, 6 if self.target.vector_registers <= 16 else 12, rows)
        best = min(range(1, limit + 1), key=lambda r: (-(-rows // r) * (r + 2), -r))
        return ContractSchedule(best, vectors * lanes, form, tiles)

    def form(self, op: Contract) -> str:
        """How the numbers of a product are multiplied and added up."""
        if op.a.type.element != I8:
            return "fma"
        (rows, depth), columns = op.a.type.shape[-2:], op.b.type.shape[-1]
        for form in self.target.byte_products:
            if form == "tiles" and (rows % 16 or columns % 16 or (depth % 64 and depth > 64)):
                continue
            if depth % FORMS[form] == 0:
                return form
        return "fma"


def _shared_tiles(operand: Value, element_bytes: int) -> int:
    """How many packed tiles of an operand a worker has room for; 0 if they are too few to be found again."""
    rows, columns = shape_of(operand.type)[-2:]
    count = min(SHARED_BYTES // (rows * columns * element_bytes), MOST_TILES)
    return count if count >= FEWEST_TILES else 0


def _is_rare(op: Iterate) -> bool:
    """True in an arm that looks for the first lane at fault: it hardly ever runs, and its code shall be
    small.
    """
    region = op.parent
    if region is None or not isinstance(region.parent, If):
        return False
    held = list(region.walk())
    reports = any(isinstance(inner, ReportFault) for inner in held)
    return reports and not any(inner.effects - ReportFault.effects for inner in held)


def _is_float_sum(op: Iterate) -> bool:
    element = element_type(op.results[0].type) if op.results else None
    return op.combine == "sum" and isinstance(element, ScalarType) and element.is_float


def _is_float_arithmetic(op: Operation) -> bool:
    """True for an operation that computes floats, not addresses or masks."""
    if not isinstance(op, Elementwise) or isinstance(op, (Load, Cast)):
        return False
    element = element_type(op.results[0].type)
    return isinstance(element, ScalarType) and element.is_float


def _power_of_two(extent: int) -> int:
    return 1 << max(extent - 1, 0).bit_length()


def _inside_loop(user: Operation, op: Operation) -> bool:
    """True if `user` lies in a loop that `op` is not in."""
    parent = user.parent_op
    while parent is not None:
        if parent.name in ("for", "while") and not any(r.encloses(op) for r in parent.regions):
            return True
        parent = parent.parent_op
    return False


def _replicates(user: Operation, value: Value) -> bool:
    """True if an iteration reads the same lane of `value` at several of its points."""
    if not isinstance(user, Iterate):
        return False
    extent = 1
    for n in user.space:
        extent *= n
    assert isinstance(value.type, BlockType)
    return extent > value.type.numel and shape_of(value.type) != user.space


def choose_schedule(kernel: Kernel, target: Target) -> Schedule:
    """Choose everything for `kernel` (level tile) on `target`."""
    assert kernel.level == "tile"
    return _Chooser(kernel, target).run()
