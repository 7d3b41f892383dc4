"""Place abstract Tile IR for a device: apply the schedule.

Before (abstract), one operation at a time; after (placed), fused loops over lanes:

    tile @scale(%p: ptr<f32>) {
      %i = iterate space=[64] : block<64xi32> { ... }
      %q = iterate %i, ... : block<64xptr<f32>> { ... }
      %v = iterate %q, ... : block<64xf32> { ... load ... }
      iterate %q, %v, ... { ... store ... }
      return
    }

    placed @scale(%p: ptr<f32>) {
      lanes %c0, %c64, width=64 {
        (%d0: i64):
        %a = cast %d0 : i32
        %b = offset %p, %a : ptr<f32>
        %c = load %b : f32
        store %b, %c
        yield
      }
      return
    }

Every root (a store, a reduction, a matrix product, a value carried by control flow) becomes a nest of `group` loops around one
`lanes` loop. What it reads is computed inside, recursively, at the lane's indices, except for values that the schedule keeps:
those live in buffers. A kept value is written by the first loop that reads it lane by lane, or else by a loop of its own.

Requires: level tile; a schedule for exactly this kernel. Keeps: the order of effects, and which memory each of them touches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from blocklang.ir.builder import Builder
from blocklang.ir.core import Kernel, Operation, Region, Value
from blocklang.ir.index_map import Binary, Const, Dim, IndexExpr, IndexMap, compose, is_affine, linearise
from blocklang.ir.rewriting import clone_operation, clone_region
from blocklang.ir.types import (
    F16,
    BF16,
    F32,
    I32,
    I64,
    U32,
    BlockType,
    BufferType,
    ScalarType,
    Type,
    element_type,
)
from blocklang.ops.control import Condition, For, If, While, Yield
from blocklang.ops.creation import Constant
from blocklang.ops.elementwise import Add, And, Bitcast, Cast, Compare, Maximum, Minimum, Mul, Or, Rem, Select, Shr, Xor
from blocklang.ops.elementwise import IntegerDiv
from blocklang.ops.memory import Load
from blocklang.ops.reduction import accumulator_element
from blocklang.ops.tile import (
    BufferOp,
    Contract,
    ContractBuffers,
    Group,
    Iterate,
    Lanes,
    Read,
    TreeReduce,
    View,
    Write,
)
from blocklang.passes.schedule import ContractSchedule, Labels, LoopSchedule, Schedule, is_producer

Indices = tuple[IndexExpr, ...]


@dataclass
class _Nest:
    """An open loop nest: its space, and the SSA index of every axis."""

    space: tuple[int, ...]
    axes: list[Value]
    lanes: Operation
    cache: dict[object, Value]
    afterwards: list[Callable[[Builder], None]]  # run in the innermost group, behind the lanes loop


def _identity(rank: int) -> Indices:
    return tuple(Dim(i) for i in range(rank))


class _Placer:
    def __init__(self, source: Kernel, schedule: Schedule) -> None:
        self.schedule = schedule
        self.labels = Labels(source)
        self.kernel = Kernel(
            source.name,
            [a.type for a in source.args],
            [a.name for a in source.args],
            level="placed",
            location=source.location,
            attributes={**source.attributes, "device": schedule.device},
        )
        self.kernel.argument_attributes = [dict(a) for a in source.argument_attributes]
        self.scalars: dict[Value, Value] = dict(zip(source.args, self.kernel.args, strict=True))
        self.buffers: dict[Value, Value] = {}
        self.packed: dict[tuple[Value, int], Value] = {}
        self.top = Region()  # buffers, moved to the start of the kernel at the end
        self.builder = Builder(self.kernel.body)
        self.source = source

    def run(self) -> Kernel:
        self.region(self.source.body)
        for position, op in enumerate(list(self.top.ops)):
            self.kernel.body.insert(position, op.detach())
        return self.kernel

    # ---- regions and control flow ----

    def region(self, region: Region) -> None:
        for op in region.ops:
            self.builder.location = op.location
            self.operation(op)

    def operation(self, op: Operation) -> None:
        match op:
            case Iterate() if op.combine:
                self.reduction(op)
            case Iterate() if not op.results:
                self.store(op)
            case Iterate():
                self.producer(op)
            case Contract():
                self.contract(op)
            case For():
                self.prepare_for_regions(op)
                self.for_loop(op)
            case While():
                self.prepare_for_regions(op)
                self.while_loop(op)
            case If():
                self.prepare_for_regions(op)
                self.conditional(op)
            case _:
                self.builder.insert(clone_operation(op, self.scalars))

    def producer(self, op: Iterate) -> None:
        """Kept loads happen here, in program order; everything else waits for its first reader."""
        if any(isinstance(inner, Load) for inner in op.body.walk()) and self.is_kept(op.results[0]):
            self.materialise(op.results[0])

    def is_kept(self, value: Value) -> bool:
        return self.labels.of_value(value) in self.schedule.kept

    def prepare_for_regions(self, op: Operation) -> None:
        """Give buffers to kept values and packed operands from outside that `op`'s regions read."""
        wanted: dict[Value, None] = {}
        for region in op.regions:
            for inner in region.walk():
                for value in inner.operands:
                    self._collect_kept(value, op, wanted)
                if isinstance(inner, Contract):
                    self._pack_outside(inner, op)
        for value in wanted:
            self.materialise(value)

    def _collect_kept(self, value: Value, op: Operation, wanted: dict[Value, None]) -> None:
        stack = [value]
        while stack:
            current = stack.pop()
            producer = current.defining_op
            if not is_producer(current) or current in self.buffers or producer is None:
                continue
            if any(region.encloses(producer) for region in op.regions):
                continue
            if self.is_kept(current):
                wanted[current] = None
            else:
                stack += producer.operands

    def _pack_outside(self, contract: Contract, op: Operation) -> None:
        element = accumulator_element(contract)
        for value, panel in ((contract.a, 0), (contract.b, self.contract_schedule(contract).columns)):
            producer = value.defining_op
            if producer is not None and not any(region.encloses(producer) for region in op.regions):
                self.pack(contract, value, element, panel)

    def buffer(self, type: BlockType | BufferType, name: str, *, panel: int = 0) -> Value:
        """A new buffer; blocks of pointers are stored as addresses."""
        builder = Builder(self.top, location=self.builder.location)
        shape = BufferType(type.element, type.shape)
        return builder.value(BufferOp, panel=panel, result_types=[shape], name=f"{name}_buf")

    def carried_buffers(self, values: Sequence[Value], inits: Sequence[Value]) -> list[Value | None]:
        """A buffer for each carried block, filled with its initial value; None for scalars."""
        found: list[Value | None] = []
        for value, init in zip(values, inits, strict=True):
            if not isinstance(value.type, BlockType):
                found.append(None)
                continue
            target = self.buffer(value.type, value.name or "carried", panel=0)
            self.write_blocks([(target, init)])
            found.append(target)
        return found

    def for_loop(self, op: For) -> None:
        buffers = self.carried_buffers(op.outputs, op.inits)
        carried = list(zip(op.body.args[1:], op.outputs, op.inits, buffers, strict=True))
        scalars = [(arg, out, init) for arg, out, init, buf in carried if buf is None]
        region = Region([op.body.args[0].type, *(a.type for a, _, _ in scalars)])
        for new, old in zip(region.args, [op.body.args[0], *(a for a, _, _ in scalars)], strict=True):
            new.name = old.name
            self.scalars[old] = new
        for arg, out, _, buf in carried:
            if buf is not None:
                self.buffers[arg] = self.buffers[out] = buf
        with self.builder.at(region):
            self.region_until_terminator(op.body)
            yielded = op.body.terminator.operands
            self.update_carried([(b, a, y) for (a, _, _, b), y in zip(carried, yielded, strict=True) if b is not None])
            kept = [self.scalars[y] for (_, _, _, b), y in zip(carried, yielded, strict=True) if b is None]
            self.builder.create(Yield, *kept)
        bounds = [self.scalars[v] for v in (op.start, op.stop, op.step)]
        new_op = self.builder.create(
            For,
            *bounds,
            inits=[self.scalars[i] for _, _, i in scalars],
            result_types=[o.type for _, o, _ in scalars],
            regions=[region],
            **op.attributes,
        )
        self.bind_results([o for _, o, _ in scalars], new_op)

    def bind_results(self, old: Sequence[Value], new_op: Operation) -> None:
        for value, result in zip(old, new_op.results, strict=True):
            result.name = value.name
            self.scalars[value] = result

    def region_until_terminator(self, region: Region) -> None:
        for op in region.ops[:-1]:
            self.builder.location = op.location
            self.operation(op)
        self.builder.location = region.ops[-1].location

    def while_loop(self, op: While) -> None:
        buffers = self.carried_buffers(op.before.args, op.inits)
        for arg, buf in zip(op.before.args, buffers, strict=True):
            if buf is not None:
                self.buffers[arg] = buf
        passed = op.before.terminator.operands[1:]
        results = [
            self.buffer(o.type, o.name or "passed") if isinstance(o.type, BlockType) else None for o in op.outputs
        ]
        scalar_args = [a for a, b in zip(op.before.args, buffers, strict=True) if b is None]
        before = Region([a.type for a in scalar_args], [a.name for a in scalar_args])
        self.scalars.update(zip(scalar_args, before.args, strict=True))
        with self.builder.at(before):
            self.region_until_terminator(op.before)
            self.write_blocks([(r, p) for r, p in zip(results, passed, strict=True) if r is not None])
            scalars = [self.scalars[p] for r, p in zip(results, passed, strict=True) if r is None]
            self.builder.create(Condition, self.scalars[op.before.terminator.operands[0]], scalars)
        for arg, out, result in zip(op.after.args, op.outputs, results, strict=True):
            if result is not None:
                self.buffers[arg] = self.buffers[out] = result
        scalar_args = [a for a, r in zip(op.after.args, results, strict=True) if r is None]
        after = Region([a.type for a in scalar_args], [a.name for a in scalar_args])
        self.scalars.update(zip(scalar_args, after.args, strict=True))
        with self.builder.at(after):
            self.region_until_terminator(op.after)
            yielded = op.after.terminator.operands
            updates = zip(buffers, op.before.args, yielded, strict=True)
            self.update_carried([(b, a, y) for b, a, y in updates if b is not None])
            kept = [self.scalars[y] for b, y in zip(buffers, yielded, strict=True) if b is None]
            self.builder.create(Yield, *kept)
        inits = [self.scalars[i] for b, i in zip(buffers, op.inits, strict=True) if b is None]
        outputs = [o for o, r in zip(op.outputs, results, strict=True) if r is None]
        new_op = self.builder.create(While, inits, result_types=[o.type for o in outputs], regions=[before, after])
        self.bind_results(outputs, new_op)

    def conditional(self, op: If) -> None:
        targets = [
            self.buffer(o.type, o.name or "chosen") if isinstance(o.type, BlockType) else None for o in op.outputs
        ]
        regions: list[Region] = []
        for branch in op.regions:
            region = Region()
            with self.builder.at(region), self.branch_scope():
                self.region_until_terminator(branch)
                yielded = branch.terminator.operands
                self.write_blocks([(t, y) for t, y in zip(targets, yielded, strict=True) if t is not None])
                scalars = [self.scalars[y] for t, y in zip(targets, yielded, strict=True) if t is None]
                self.builder.create(Yield, *scalars)
            regions.append(region)
        outputs = [o for o, t in zip(op.outputs, targets, strict=True) if t is None]
        for out, target in zip(op.outputs, targets, strict=True):
            if target is not None:
                self.buffers[out] = target
        condition = self.scalars[op.condition]
        new_op = self.builder.create(If, condition, result_types=[o.type for o in outputs], regions=regions)
        self.bind_results(outputs, new_op)

    @contextmanager
    def branch_scope(self) -> Iterator[None]:
        """Buffers that are filled inside a region count as filled only there."""
        buffers, packed = dict(self.buffers), dict(self.packed)
        yield
        self.buffers, self.packed = buffers, packed

    # ---- moving whole blocks ----

    def update_carried(self, updates: Sequence[tuple[Value, Value, Value]]) -> None:
        """Set carried buffers to their next values, all at once: (buffer, its current value, its next value)."""
        pending = [(buf, arg, new) for buf, arg, new in updates if new is not arg and self.buffers.get(new) is not buf]
        buffers = {buf for buf, _, _ in pending}
        shapes = {new.type.shape for _, _, new in pending}
        if len(shapes) <= 1 and all(self.reads_own_lanes(new, buffers) for _, _, new in pending):
            self.write_blocks([(buf, new) for buf, _, new in pending])
            return
        staged = [(buf, self.buffer(new.type, f"{new.name}_next"), new) for buf, _, new in pending]
        for _, stage, new in staged:
            self.write_blocks([(stage, new)])
        for buf, stage, _ in staged:
            self.copy_buffer(buf, stage)

    def reads_own_lanes(self, value: Value, buffers: set[Value]) -> bool:
        """True if computing a lane of `value` reads no other lane of any of `buffers`."""
        rank = len(value.type.shape)  # type: ignore[attr-defined]
        stack: list[tuple[Value, bool]] = [(value, True)]
        seen: set[tuple[Value, bool]] = set()
        while stack:
            current, aligned = stack.pop()
            if (current, aligned) in seen:
                continue
            seen.add((current, aligned))
            if current in self.buffers:
                if self.buffers[current] in buffers and not aligned:
                    return False
                continue
            op = current.defining_op
            if isinstance(op, Iterate):
                same = len(op.space) == rank
                stack += [(v, aligned and same and m.is_identity) for v, m in zip(op.inputs, op.maps, strict=True)]
        return True

    def write_blocks(self, targets: Sequence[tuple[Value, Value]]) -> None:
        """Fill buffers of one shape with the lanes of block values, in one loop."""
        groups: dict[tuple[int, ...], list[tuple[Value, Value]]] = {}
        for target, value in targets:
            if self.buffers.get(value) is not target:
                groups.setdefault(target.type.shape, []).append((target, value))  # type: ignore[attr-defined]
        for shape, members in groups.items():
            self.materialise_unaligned([v for _, v in members], shape)
            with self.nest(shape, self.copy_loop(members[0][1], shape)) as (nest, builder):
                indices = _identity(len(shape))
                lanes = [self.lane(builder, nest, value, indices) for _, value in members]
                for (target, _), lane in zip(members, lanes, strict=True):
                    builder.create(Write, target, lane, self.ssa(builder, nest, indices))
    
    def copy_buffer(self, target: Value, source: Value) -> None:
        shape: tuple[int, ...] = target.type.shape  # type: ignore[attr-defined]
        with self.nest(shape, self.copy_loop(None, shape)) as (nest, builder):
            indices = self.ssa(builder, nest, _identity(len(shape)))
            builder.create(Write, target, builder.value(Read, source, indices), indices)

    def copy_loop(self, value: Value | None, shape: tuple[int, ...]) -> LoopSchedule:
        """The loop of the operation that makes `value`, or rows of lanes for a whole block."""
        if value is not None and is_producer(value) and value.defining_op is not None:
            return self.schedule.loops[self.labels.of(value.defining_op)]
        wide = [a for a, n in enumerate(shape) if n > 1] or [len(shape) - 1]
        order = (*(a for a in range(len(shape)) if a != wide[-1]), wide[-1])
        return LoopSchedule(order, max(1, min(self.schedule.copy_width, 1 << (shape[wide[-1]] - 1).bit_length())))

    # ---- loop nests ----

    @contextmanager
    def nest(
        self,
        space: tuple[int, ...],
        loop: LoopSchedule,
        combines: tuple[str, ...] = (),
        types: Sequence[Type] = (),
    ) -> Iterator[tuple[_Nest, Builder]]:
        """Open the loops of `loop` over `space`; the body builder stands inside the lanes loop."""
        builder = Builder(self.builder.region, self.builder.before, self.builder.location)
        zero = self.constant(builder, 0)
        axes: list[Value] = [zero] * len(space)
        for axis in loop.order[:-1]:
            if space[axis] == 1:
                continue
            region = Region([I64], [f"d{axis}"])
            builder.create(Group, zero, self.constant(builder, space[axis]), regions=[region])
            axes[axis] = region.args[0]
            builder = Builder(region, location=builder.location)
        lane_axis = loop.order[-1]
        region = Region([I64], [f"d{lane_axis}"])
        axes[lane_axis] = region.args[0]
        bounds = [zero, self.constant(builder, space[lane_axis])]
        lanes = Lanes(
            {"low": bounds[0], "high": bounds[1]},
            {"width": loop.width, **({"combines": combines, "extent": space[lane_axis]} if combines else {})},
            types,
            [region],
            builder.location,
        )
        nest = _Nest(space, axes, lanes, {}, [])
        yield nest, Builder(region, location=builder.location)
        if region.terminator is None:
            Builder(region).create(Yield)
        builder.insert(lanes)
        for action in nest.afterwards:
            action(builder)
        self.close_groups(lanes)
        self.adopt_kept(nest)

    def close_groups(self, op: Operation) -> None:
        """Terminate the groups around `op`, which are complete now."""
        region = op.parent
        while region is not None and isinstance(region.parent, Group):
            Builder(region).create(Yield)
            region = region.parent.parent

    def constant(self, builder: Builder, value: int) -> Value:
        return builder.value(Constant, value=value, result_types=[I64])

    def ssa(self, builder: Builder, nest: _Nest, exprs: Indices) -> list[Value]:
        return [self.index(builder, nest, e) for e in exprs]

    def index(self, builder: Builder, nest: _Nest, expr: IndexExpr) -> Value:
        if isinstance(expr, Dim):
            return nest.axes[expr.position]
        if expr in nest.cache:
            return nest.cache[expr]
        if isinstance(expr, Const):
            value = self.constant(builder, expr.value)
        else:
            assert isinstance(expr, Binary)
            cls = {"+": Add, "*": Mul, "//": IntegerDiv, "%": Rem}[expr.op]
            value = builder.value(cls, self.index(builder, nest, expr.lhs), self.index(builder, nest, expr.rhs))
        nest.cache[expr] = value
        return value

    # ---- one lane ----

    def lane(self, builder: Builder, nest: _Nest, value: Value, at: Indices) -> Value:
        """The lane of `value` at an index, computed or read inside the nest."""
        if not isinstance(value.type, BlockType):
            return self.scalars[value]
        key = (value, at)
        if key not in nest.cache:
            if value in self.buffers:
                nest.cache[key] = self.read(builder, nest, self.buffers[value], at)
            else:
                self.compute(builder, nest, value, at)
        return nest.cache[key]

    def compute(self, builder: Builder, nest: _Nest, value: Value, at: Indices) -> None:
        op = value.defining_op
        assert isinstance(op, Iterate) and not op.combine, f"{value} has no place"
        rank = len(op.space)
        arguments: dict[Value, Value] = {}
        for position, arg in enumerate(op.body.args[:rank]):
            if arg.uses:
                arguments[arg] = self.index(builder, nest, at[position])
        for arg, operand, map in zip(op.body.args[rank:], op.inputs, op.maps, strict=True):
            if arg.uses:
                inner = compose(map, IndexMap(len(nest.space), at), nest.space).exprs
                arguments[arg] = self.lane(builder, nest, operand, inner)
        saved = builder.location
        results = self.inline(builder, op.body, arguments)
        builder.location = saved
        for result, lane in zip(op.results, results, strict=True):
            nest.cache[(result, at)] = lane
            if not lane.name and lane.defining_op is not None:
                lane.name = result.name
            identity = at == _identity(rank) and op.space == nest.space
            if identity and self.is_kept(result) and result not in self.buffers:
                target = self.buffer(result.type, result.name)
                builder.create(Write, target, lane, self.ssa(builder, nest, at))
                nest.cache[("kept", result)] = target

    def inline(self, builder: Builder, region: Region, arguments: dict[Value, Value]) -> list[Value]:
        mapping = {**self.scalars, **arguments}
        for op in region.ops:
            if op.is_terminator:
                return [mapping.get(v, v) for v in op.operands]
            builder.insert(clone_operation(op, mapping))
        raise AssertionError("a body ends in a yield")

    def read(self, builder: Builder, nest: _Nest, buffer: Value, at: Indices) -> Value:
        if not all(is_affine(e) for e in at):
            flat = linearise(at, buffer.type.shape)  # type: ignore[attr-defined]
            if is_affine(flat):
                type = BufferType(buffer.type.element, (buffer.type.numel,))  # type: ignore[attr-defined]
                view = Builder(self.top, location=builder.location).value(View, buffer, result_types=[type])
                return builder.value(Read, view, self.ssa(builder, nest, (flat,)))
        return builder.value(Read, buffer, self.ssa(builder, nest, at))

    def adopt_kept(self, nest: _Nest) -> None:
        """After a nest is complete, the values that it wrote are in their buffers."""
        for key, target in nest.cache.items():
            if isinstance(key, tuple) and key[0] == "kept":
                self.buffers[key[1]] = target

    # ---- kept values ----

    def materialise(self, value: Value) -> None:
        """Compute a kept value into its buffer, with loops of its own."""
        if value in self.buffers:
            return
        op = value.defining_op
        assert isinstance(op, Iterate)
        self.materialise_unaligned(op.inputs, op.space, op.maps)
        with self.nest(op.space, self.schedule.loops[self.labels.of(op)]) as (nest, builder):
            self.compute(builder, nest, value, _identity(len(op.space)))

    def materialise_unaligned(
        self, values: Sequence[Value], space: tuple[int, ...], maps: Sequence[IndexMap] = ()
    ) -> None:
        """Before a nest over `space`: fill the buffers of kept values that it will not visit lane by lane."""
        starts = [m.exprs for m in maps] or [_identity(len(space))] * len(values)
        stack: list[tuple[Value, Indices]] = list(zip(values, starts, strict=True))
        seen: set[tuple[Value, Indices]] = set()
        while stack:
            value, at = stack.pop()
            op = value.defining_op
            if (value, at) in seen or not is_producer(value) or value in self.buffers or not isinstance(op, Iterate):
                continue
            seen.add((value, at))
            if self.is_kept(value) and not (at == _identity(len(space)) and op.space == space):
                self.materialise(value)
                continue
            here = IndexMap(len(space), at)
            stack += [(v, compose(m, here, space).exprs) for v, m in zip(op.inputs, op.maps, strict=True)]

    # ---- roots ----

    def store(self, op: Iterate) -> None:
        self.materialise_unaligned(op.inputs, op.space, op.maps)
        with self.nest(op.space, self.schedule.loops[self.labels.of(op)]) as (nest, builder):
            self.body(builder, nest, op)

    def body(self, builder: Builder, nest: _Nest, op: Iterate) -> list[Value]:
        """The lanes that `op`'s body yields at the nest's own indices."""
        rank = len(op.space)
        arguments = dict(zip(op.body.args[:rank], nest.axes, strict=True))
        for arg, operand, map in zip(op.body.args[rank:], op.inputs, op.maps, strict=True):
            arguments[arg] = self.lane(builder, nest, operand, map.exprs)
        return self.inline(builder, op.body, arguments)

    def reduction(self, op: Iterate) -> None:
        self.materialise_unaligned(op.inputs, op.space, op.maps)
        if op.combine == "custom":
            self.tree(op)
        elif self.schedule.loops[self.labels.of(op)].order[-1] == op.reduced:
            self.fold_lanes(op)
        else:
            self.fold_rows(op)

    def result_buffers(self, op: Iterate) -> list[Value]:
        return [self.buffer(r.type, r.name or op.combine) for r in op.results if isinstance(r.type, BlockType)]

    def kept_indices(self, op: Iterate, nest: _Nest) -> list[Value]:
        return [v for axis, v in enumerate(nest.axes) if axis != op.reduced]

    def deliver(self, op: Iterate, buffers: Sequence[Value], nest: _Nest, builder: Builder, values: Sequence[Value]) -> None:
        """Hand reduction results on: as scalars, or written to their buffers at the outer indices."""
        for result, value in zip(op.results, values, strict=True):
            if not value.name:
                value.name = result.name
        if not buffers:
            self.scalars.update(zip(op.results, values, strict=True))
        for result, target, value in zip(op.results, buffers, values, strict=False):
            builder.create(Write, target, value, self.kept_indices(op, nest))
            self.buffers[result] = target

    def fold_lanes(self, op: Iterate) -> None:
        """Lanes run along the reduced axis; the lanes loop itself folds."""
        buffers = self.result_buffers(op)
        types = [element_type(r.type) for r in op.results]
        loop = self.schedule.loops[self.labels.of(op)]
        with self.nest(op.space, loop, (op.combine,), types) as (nest, builder):
            builder.create(Yield, *self.body(builder, nest, op))
            nest.afterwards.append(lambda b: self.deliver(op, buffers, nest, b, nest.lanes.results))

    def fold_rows(self, op: Iterate) -> None:
        """Lanes run along another axis; each lane folds the reduced axis in a sequential loop."""
        buffers = self.result_buffers(op)
        loop = self.schedule.loops[self.labels.of(op)]
        outer = LoopSchedule(tuple(a for a in loop.order if a != op.reduced), loop.width)
        types = [element_type(r.type) for r in op.results]
        wide = [F32 if t in (F16, BF16) and op.combine == "sum" else t for t in types]
        with self.nest(op.space, outer) as (nest, builder):
            inits = [identity_of(builder, op.combine, t, i) for i, t in enumerate(wide)]
            region = Region([I64, *wide], [f"d{op.reduced}"])
            nest.axes[op.reduced] = region.args[0]
            with builder.at(region):
                lanes = self.body(builder, nest, op)
                widened = [builder.value(Cast, v, result_types=[w]) if w != v.type else v for v, w in zip(lanes, wide, strict=True)]
                builder.create(Yield, *fold(builder, op.combine, region.args[1:], widened))
            bounds = [self.constant(builder, n) for n in (0, op.space[op.reduced], 1)]
            folded = builder.create(For, *bounds, inits=inits, result_types=wide, regions=[region]).results
            narrowed = [builder.value(Cast, v, result_types=[t]) if t != v.type else v for v, t in zip(folded, types, strict=True)]
            self.deliver(op, buffers, nest, builder, narrowed)

    def tree(self, op: Iterate) -> None:
        """A user's function: lanes go to a row of scratch, which is folded as a tree over neighbours."""
        buffers = self.result_buffers(op)
        extent = op.space[op.reduced]
        rows = [
            self.buffer(BufferType(element_type(r.type), (extent,)), f"{r.name or 'fold'}_row") for r in op.results
        ]
        types = [element_type(r.type) for r in op.results]

        def fold_row(builder: Builder) -> None:
            combiner = clone_region(op.combiner, dict(self.scalars))
            folded = builder.create(TreeReduce, rows, extent=extent, result_types=types, regions=[combiner])
            self.deliver(op, buffers, nest, builder, folded.results)

        with self.nest(op.space, self.schedule.loops[self.labels.of(op)]) as (nest, builder):
            for row, lane in zip(rows, self.body(builder, nest, op), strict=True):
                builder.create(Write, row, lane, [nest.axes[op.reduced]])
            nest.afterwards.append(fold_row)

    # ---- matrix products ----

    def contract_schedule(self, op: Contract) -> ContractSchedule:
        return self.schedule.contracts[self.labels.of(op)]

    def contract(self, op: Contract) -> None:
        element = accumulator_element(op)
        tile = self.contract_schedule(op)
        a = self.pack(op, op.a, element, 0)
        b = self.pack(op, op.b, element, tile.columns)
        acc = self.accumulator(op, element)
        self.builder.create(
            ContractBuffers, a, b, acc, rows=tile.rows, columns=tile.columns, start=op.start
        )
        if acc.type.element == op.result.type.element:  # type: ignore[attr-defined]
            self.buffers[op.result] = acc
            return
        narrow = self.buffer(op.result.type, op.result.name)
        shape = op.result.type.shape
        with self.nest(shape, self.copy_loop(None, shape)) as (nest, builder):
            at = self.ssa(builder, nest, _identity(2))
            value = builder.value(Cast, builder.value(Read, acc, at), result_types=[op.result.type.element])
            builder.create(Write, narrow, value, at)
        self.buffers[op.result] = narrow

    def accumulator(self, op: Contract, element: Type) -> Value:
        """The buffer that the product is added to: the accumulator's own if nobody else reads it, or a copy."""
        own = self.buffers.get(op.acc)
        if own is not None and len(op.acc.uses) == 1 and op.acc.type.element == element and _same_loop(op.acc, op):
            return own
        assert isinstance(element, ScalarType)
        target = self.buffer(BlockType(element, op.acc.type.shape), op.result.name or "acc")
        self.write_converted(target, op.acc, lambda b, v: _convert(b, v, element))
        return target

    def pack(self, op: Contract, value: Value, element: Type, panel: int) -> Value:
        """A copy of an operand in the layout and type of the micro-kernel; made once per value."""
        if (value, panel) in self.packed:
            return self.packed[(value, panel)]
        own = self.buffers.get(value)
        tf32 = op.input_precision == "tf32" and value.type.element == F32  # type: ignore[attr-defined]
        if own is not None and not panel and value.type.element == element and not tf32:  # type: ignore[attr-defined]
            return own
        assert isinstance(element, ScalarType) and isinstance(value.type, BlockType)
        target = self.buffer(value.type.with_element(element), f"{value.name or 'operand'}_packed", panel=panel)

        def convert(builder: Builder, lane: Value) -> Value:
            return _round_to_tf32(builder, lane) if tf32 else _convert(builder, lane, element)

        self.write_converted(target, value, convert, panel=panel)
        self.packed[(value, panel)] = target
        return target

    def write_converted(
        self, target: Value, value: Value, convert: Callable[[Builder, Value], Value], *, panel: int = 0
    ) -> None:
        shape: tuple[int, ...] = value.type.shape  # type: ignore[attr-defined]
        self.materialise_unaligned([value], shape)
        loop = self.copy_loop(value, shape)
        if panel:  # a vector must not straddle two panels
            loop = LoopSchedule(loop.order, min(loop.width, panel & -panel))
        with self.nest(shape, loop) as (nest, builder):
            indices = _identity(len(shape))
            lane = convert(builder, self.lane(builder, nest, value, indices))
            builder.create(Write, target, lane, self.ssa(builder, nest, indices))


def _same_loop(acc: Value, op: Operation) -> bool:
    """True if the accumulator is made or carried in the region where the product stands."""
    owner = acc.owner if isinstance(acc.owner, Region) else acc.owner.parent
    return owner is op.parent


def _convert(builder: Builder, value: Value, element: ScalarType) -> Value:
    return value if value.type == element else builder.value(Cast, value, result_types=[element])


def _round_to_tf32(builder: Builder, value: Value) -> Value:
    """Round f32 to 10 mantissa bits, to nearest even; infinities and NaN stay."""

    def constant(number: int) -> Value:
        return builder.value(Constant, value=number, result_types=[U32])

    bits = builder.value(Bitcast, value, result_types=[U32])
    odd = builder.value(And, builder.value(Shr, bits, constant(13)), constant(1))
    rounded = builder.value(Add, bits, builder.value(Add, odd, constant(0xFFF)))
    cleared = builder.value(And, rounded, constant(0xFFFFE000))
    exponent = builder.value(And, bits, constant(0x7F800000))
    special = builder.value(Compare, exponent, constant(0x7F800000), predicate="eq")
    return builder.value(Bitcast, builder.value(Select, special, bits, cleared), result_types=[F32])


def identity_of(builder: Builder, combine: str, type: Type, position: int) -> Value:
    """The start of a fold: what changes no result. NaN for float extrema, since NaN is ignored there."""
    assert isinstance(type, ScalarType)
    if position == 1:
        return builder.value(Constant, value=0, result_types=[I32])
    value: int | float | bool
    if combine in ("max", "min", "argmax", "argmin") and type.is_float:
        value = float("nan")
    elif combine in ("max", "argmax"):
        value = type.minimum
    elif combine in ("min", "argmin"):
        value = type.maximum
    elif combine == "and":
        value = -1 if type.is_signed else type.maximum
    else:
        value = 0.0 if type.is_float else 0
    if type.bits == 1:
        value = bool(value)
    return builder.value(Constant, value=value, result_types=[type])


_FOLDS: dict[str, type[Operation]] = {"sum": Add, "max": Maximum, "min": Minimum, "and": And, "or": Or, "xor": Xor}


def fold(builder: Builder, combine: str, folded: Sequence[Value], new: Sequence[Value]) -> list[Value]:
    """One step of a fold on scalars: the folded values so far, with one more element."""
    if combine in _FOLDS:
        return [builder.value(_FOLDS[combine], folded[0], new[0])]
    better = builder.value(Compare, new[0], folded[0], predicate="gt" if combine == "argmax" else "lt")
    element = new[0].type
    assert isinstance(element, ScalarType)
    if element.is_float:
        was_nan = builder.value(Compare, folded[0], folded[0], predicate="ne")
        is_number = builder.value(Compare, new[0], new[0], predicate="eq")
        better = builder.value(Or, better, builder.value(And, was_nan, is_number))
    return [builder.value(Select, better, n, f) for n, f in zip(new, folded, strict=True)]


def place(kernel: Kernel, schedule: Schedule) -> Kernel:
    """The placed form of `kernel` (level tile) under `schedule`; the abstract kernel is not changed."""
    assert kernel.level == "tile"
    return _Placer(kernel, schedule).run()
