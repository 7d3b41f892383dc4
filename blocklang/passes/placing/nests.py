"""Loop nests of placed Tile IR under construction, and the lanes computed inside of them.

`Nests` knows which values have buffers, opens the loops that the schedule gives an operation, and computes
any block value at a lane's indices: by reading its buffer, or by computing it there from its operands,
recursively. What is a root and what a program does in which order is decided by `place`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from blocklang.ir.builder import Builder
from blocklang.ir.core import Kernel, Operation, Region, Value
from blocklang.ir.index_map import Binary, Const, Dim, IndexExpr, IndexMap, compose, is_affine, linearise
from blocklang.ir.rewriting import clone_operation
from blocklang.ir.types import I64, BlockType, BufferType, ShapedType, Type, as_shaped, shape_of
from blocklang.ops.control import Yield
from blocklang.ops.creation import Constant
from blocklang.ops.elementwise import Add, IntegerDiv, Mul, Rem
from blocklang.ops.tile import BufferOp, Group, Iterate, Lanes, Read, View, Write
from blocklang.passes.schedule import Labels, LoopSchedule, Schedule, is_producer

Indices = tuple[IndexExpr, ...]
Convert = Callable[[Builder, Value], Value]


@dataclass
class Nest:
    """An open loop nest: its space, and the SSA index of every axis."""

    space: tuple[int, ...]
    axes: list[Value]
    lanes: Operation
    cache: dict[object, Value]
    afterwards: list[Callable[[Builder], None]]  # run in the innermost group, behind the lanes loop


def identity_indices(rank: int) -> Indices:
    return tuple(Dim(i) for i in range(rank))


class Nests:
    """What has been placed so far, and the means to place more.

    Attributes:
        kernel: the placed kernel.
        scalars: per scalar of the abstract kernel, its value in the placed one.
        buffers: per block value that lies in memory, its buffer.
        layouts: per buffer whose axes stand in another order than its value's: that order.
        packed: copies of matrix operands, by value, panel width, and whether it is rounded to tf32.
        builder: where the next operation goes.
    """

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
        self.layouts: dict[Value, tuple[int, ...]] = {}
        self.packed: dict[tuple[object, ...], Value] = {}  # by what was packed and how
        self.top = Region()  # buffers, moved to the start of the kernel at the end
        self.builder = Builder(self.kernel.body)

    def is_kept(self, value: Value) -> bool:
        return self.labels.of_value(value) in self.schedule.kept

    def buffer(self, type: ShapedType, name: str, *, panel: int = 0, tiles: int = 0) -> Value:
        """A new buffer; blocks of pointers are stored as addresses."""
        builder = Builder(self.top, location=self.builder.location)
        shape = BufferType(type.element, type.shape)
        return builder.value(BufferOp, panel=panel, tiles=tiles, result_types=[shape], name=f"{name}_buf")

    # ---- loop nests ----

    @contextmanager
    def nest(
        self,
        space: tuple[int, ...],
        loop: LoopSchedule,
        combines: tuple[str, ...] = (),
        types: Sequence[Type] = (),
        first: Value | None = None,
    ) -> Iterator[tuple[Nest, Builder]]:
        """Open the loops of `loop` over `space`; the body builder stands inside the lanes loop.

        Args:
            first: the index of axis 0, if a loop around walks that one; `loop` does not.
        """
        builder = Builder(self.builder.region, self.builder.before, self.builder.location)
        zero = self.constant(builder, 0)
        axes: list[Value] = [zero] * len(space)
        if first is not None:
            axes[0] = first
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
            {
                "width": loop.width,
                **({"combines": combines, "extent": space[lane_axis]} if combines else {}),
                **({"prefetch": loop.prefetch} if loop.prefetch else {}),
                **({"stream": loop.stream.programs, "stream_axes": loop.stream.axes} if loop.stream else {}),
            },
            types,
            [region],
            builder.location,
        )
        nest = Nest(space, axes, lanes, {}, [])
        yield nest, Builder(region, location=builder.location)
        if region.terminator is None:
            Builder(region).create(Yield)
        builder.insert(lanes)
        for action in nest.afterwards:
            action(builder)
        self.close_groups(lanes)
        self.adopt_kept(nest)

    def close_groups(self, op: Operation) -> None:
        """Terminate the groups around `op` that its nest has opened, which are complete now."""
        region = op.parent
        while region is not None and region is not self.builder.region and isinstance(region.parent, Group):
            Builder(region).create(Yield)
            region = region.parent.parent

    def constant(self, builder: Builder, value: int) -> Value:
        return builder.value(Constant, value=value, result_types=[I64])

    def ssa(self, builder: Builder, nest: Nest, exprs: Indices) -> list[Value]:
        return [self.index(builder, nest, e) for e in exprs]

    def index(self, builder: Builder, nest: Nest, expr: IndexExpr) -> Value:
        if isinstance(expr, Dim):
            return nest.axes[expr.position]
        if expr in nest.cache:
            return nest.cache[expr]
        if isinstance(expr, Const):
            value = self.constant(builder, expr.value)
        else:
            assert isinstance(expr, Binary)
            cls = {"+": Add, "*": Mul, "//": IntegerDiv, "%": Rem}[expr.op]
            value = builder.value(
                cls, self.index(builder, nest, expr.lhs), self.index(builder, nest, expr.rhs)
            )
        nest.cache[expr] = value
        return value

    # ---- one lane ----

    def lane(self, builder: Builder, nest: Nest, value: Value, at: Indices) -> Value:
        """The lane of `value` at an index, computed or read inside the nest.

        What it needs is computed first, from a stack: kernels may chain thousands of operations.
        """
        if not isinstance(value.type, BlockType):
            return self.scalars[value]
        stack = [(value, at)]
        while stack:
            current, place = stack[-1]
            if (current, place) in nest.cache:
                stack.pop()
            elif current in self.buffers:
                nest.cache[stack.pop()] = self.read(builder, nest, self.buffers[current], place)
            elif missing := [n for n in self.needs(nest, current, place) if n not in nest.cache]:
                stack += reversed(missing)
            else:
                self.compute(builder, nest, *stack.pop())
        return nest.cache[(value, at)]

    def needs(self, nest: Nest, value: Value, at: Indices) -> list[tuple[Value, Indices]]:
        """The lanes of other blocks from which a lane of `value` is computed."""
        op = value.defining_op
        assert isinstance(op, Iterate), f"{value} has no place"
        here = IndexMap(len(nest.space), at)
        args = op.body.args[len(op.space) :]
        inputs = zip(args, op.inputs, op.maps, strict=True)
        return [(operand, compose(map, here, nest.space).exprs) for arg, operand, map in inputs if arg.uses]

    def compute(self, builder: Builder, nest: Nest, value: Value, at: Indices) -> None:
        """Compute a lane whose needs are in the nest's cache; a kept value is written to its buffer too."""
        op = value.defining_op
        assert isinstance(op, Iterate), f"{value} has no place"
        rank = len(op.space)
        arguments: dict[Value, Value] = {}
        for position, arg in enumerate(op.body.args[:rank]):
            if arg.uses:
                arguments[arg] = self.index(builder, nest, at[position])
        used = [arg for arg in op.body.args[rank:] if arg.uses]
        for arg, need in zip(used, self.needs(nest, value, at), strict=True):
            arguments[arg] = nest.cache[need]
        saved = builder.location
        results = self.inline(builder, op.body, arguments)
        builder.location = saved
        for result, lane in zip(op.results, results, strict=True):
            nest.cache[(result, at)] = lane
            if not lane.name and lane.defining_op is not None:
                lane.name = result.name
            identity = at == identity_indices(rank) and op.space == nest.space
            if identity and self.is_kept(result) and result not in self.buffers:
                target = self.kept_buffer(result)
                builder.create(Write, target, lane, self.ssa(builder, nest, self.laid_out(target, at)))
                nest.cache[("kept", result)] = target
                if ahead := self.schedule.loops[self.labels.of(op)].prefetch:
                    nest.lanes.attributes["prefetch"] = ahead

    def body(self, builder: Builder, nest: Nest, op: Iterate) -> list[Value]:
        """The lanes that `op`'s body yields at the nest's own indices."""
        rank = len(op.space)
        arguments = dict(zip(op.body.args[:rank], nest.axes, strict=True))
        for arg, operand, map in zip(op.body.args[rank:], op.inputs, op.maps, strict=True):
            arguments[arg] = self.lane(builder, nest, operand, map.exprs)
        return self.inline(builder, op.body, arguments)

    def inline(self, builder: Builder, region: Region, arguments: dict[Value, Value]) -> list[Value]:
        mapping = {**self.scalars, **arguments}
        for op in region.ops:
            if op.is_terminator:
                return [mapping.get(v, v) for v in op.operands]
            builder.insert(clone_operation(op, mapping))
        raise AssertionError("a body ends in a yield")

    def kept_buffer(self, value: Value) -> Value:
        """A new buffer for a kept value, with the layout that the schedule gives it."""
        whole = as_shaped(value.type)
        order = self.schedule.layouts.get(self.labels.of_value(value))
        if order is None:
            return self.buffer(whole, value.name)
        type = BufferType(whole.element, tuple(whole.shape[axis] for axis in order))
        buffer = self.buffer(type, value.name)
        self.layouts[buffer] = order
        return buffer

    def laid_out(self, buffer: Value, at: Indices) -> Indices:
        """The indices of a value's lane in its buffer."""
        order = self.layouts.get(buffer)
        return at if order is None else tuple(at[axis] for axis in order)

    def read(self, builder: Builder, nest: Nest, buffer: Value, at: Indices) -> Value:
        at = self.laid_out(buffer, at)
        if not all(is_affine(e) for e in at):
            whole = as_shaped(buffer.type)
            flat = linearise(at, whole.shape)
            if is_affine(flat):
                type = BufferType(whole.element, (whole.numel,))
                view = Builder(self.top, location=builder.location).value(View, buffer, result_types=[type])
                return builder.value(Read, view, self.ssa(builder, nest, (flat,)))
        return builder.value(Read, buffer, self.ssa(builder, nest, at))

    # ---- kept values ----

    def adopt_kept(self, nest: Nest) -> None:
        """After a nest is complete, the values that it wrote are in their buffers."""
        for key, target in nest.cache.items():
            if isinstance(key, tuple) and key[0] == "kept":
                self.buffers[key[1]] = target

    def materialise(self, value: Value) -> None:
        """Compute a kept value into its buffer, with loops of its own."""
        if value in self.buffers:
            return
        op = value.defining_op
        assert isinstance(op, Iterate)
        self.materialise_unaligned(op.inputs, op.space, op.maps)
        with self.nest(op.space, self.schedule.loops[self.labels.of(op)]) as (nest, builder):
            self.lane(builder, nest, value, identity_indices(len(op.space)))

    def materialise_unaligned(
        self, values: Sequence[Value], space: tuple[int, ...], maps: Sequence[IndexMap] = ()
    ) -> None:
        """Before a nest over `space`: fill the buffers of kept values that it will not visit lane by lane."""
        starts = [m.exprs for m in maps] or [identity_indices(len(space))] * len(values)
        stack: list[tuple[Value, Indices]] = list(zip(values, starts, strict=True))
        seen: set[tuple[Value, Indices]] = set()
        while stack:
            value, at = stack.pop()
            op = value.defining_op
            if (
                (value, at) in seen
                or not is_producer(value)
                or value in self.buffers
                or not isinstance(op, Iterate)
            ):
                continue
            seen.add((value, at))
            if self.is_kept(value) and not (at == identity_indices(len(space)) and op.space == space):
                self.materialise(value)
                continue
            here = IndexMap(len(space), at)
            stack += [(v, compose(m, here, space).exprs) for v, m in zip(op.inputs, op.maps, strict=True)]

    # ---- moving whole blocks ----

    def effect(self, op: Iterate) -> None:
        """The loops of an iteration that has effects; what it results in goes into buffers."""
        self.materialise_unaligned(op.inputs, op.space, op.maps)
        targets = [self.buffer(as_shaped(r.type), r.name or "old") for r in op.results]
        with self.nest(op.space, self.schedule.loops[self.labels.of(op)]) as (nest, builder):
            lanes = self.body(builder, nest, op)
            for target, lane in zip(targets, lanes, strict=True):
                builder.create(Write, target, lane, self.ssa(builder, nest, identity_indices(len(op.space))))
        self.buffers.update(zip(op.results, targets, strict=True))

    def in_memory(self, value: Value) -> Value:
        """A buffer that holds all lanes of a block."""
        if value not in self.buffers:
            target = self.buffer(as_shaped(value.type), value.name or "printed")
            self.write_blocks([(target, value)])
            return target
        return self.buffers[value]

    def write_blocks(self, targets: Sequence[tuple[Value, Value]]) -> None:
        """Fill buffers of one shape with the lanes of block values, in one loop."""
        groups: dict[tuple[int, ...], list[tuple[Value, Value]]] = {}
        for target, value in targets:
            if self.buffers.get(value) is not target:
                groups.setdefault(shape_of(target.type), []).append((target, value))
        for shape, members in groups.items():
            self.materialise_unaligned([v for _, v in members], shape)
            with self.nest(shape, self.copy_loop(members[0][1], shape)) as (nest, builder):
                indices = identity_indices(len(shape))
                lanes = [self.lane(builder, nest, value, indices) for _, value in members]
                for (target, _), lane in zip(members, lanes, strict=True):
                    builder.create(Write, target, lane, self.ssa(builder, nest, indices))

    def write_converted(
        self,
        target: Value,
        value: Value,
        convert: Convert,
        *,
        panel: int = 0,
        first: Value | None = None,
    ) -> None:
        """Fill a buffer with a block, or with the part of a block at index `first` of its axis 0."""
        shape = shape_of(value.type)
        if first is None:
            self.materialise_unaligned([value], shape)
        loop = self.copy_loop(value, shape)
        if first is not None:
            loop = _without_first(loop, shape)
        if panel:  # a vector must not straddle two panels
            loop = LoopSchedule(loop.order, min(loop.width, panel & -panel))
        with self.nest(shape, loop, first=first) as (nest, builder):
            indices = identity_indices(len(shape))
            lane = convert(builder, self.lane(builder, nest, value, indices))
            place = indices if first is None else indices[1:]
            builder.create(Write, target, lane, self.ssa(builder, nest, place))

    def copy_buffer(self, target: Value, source: Value) -> None:
        shape = shape_of(target.type)
        with self.nest(shape, self.copy_loop(None, shape)) as (nest, builder):
            indices = self.ssa(builder, nest, identity_indices(len(shape)))
            builder.create(Write, target, builder.value(Read, source, indices), indices)

    def copy_loop(self, value: Value | None, shape: tuple[int, ...]) -> LoopSchedule:
        """The loop of the operation that makes `value`, or rows of lanes for a whole block."""
        if value is not None and is_producer(value) and value.defining_op is not None:
            return self.schedule.loops[self.labels.of(value.defining_op)]
        wide = [a for a, n in enumerate(shape) if n > 1] or [len(shape) - 1]
        order = (*(a for a in range(len(shape)) if a != wide[-1]), wide[-1])
        return LoopSchedule(
            order, max(1, min(self.schedule.copy_width, 1 << (shape[wide[-1]] - 1).bit_length()))
        )


def _without_first(loop: LoopSchedule, shape: tuple[int, ...]) -> LoopSchedule:
    """The loops of a block for one index of axis 0."""
    order = tuple(axis for axis in loop.order if axis != 0)
    return LoopSchedule(order, max(1, min(loop.width, 1 << (shape[order[-1]] - 1).bit_length())))
