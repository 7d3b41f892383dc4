"""Lower Block IR to abstract Tile IR: every operation on blocks becomes an iteration over lanes.

    kernel @k(%p: ptr<f32>, %x: ptr<f32>) {
      %i = arange start=0, end=4 : block<4xi32>
      %q = offset %x, %i : block<4xptr<f32>>
      %v = load %q : block<4xf32>
      %s = reduce %v, combine="sum", axis=0 : f32
      store %p, %s
      return
    }

becomes

    tile @k(%p: ptr<f32>, %x: ptr<f32>) {
      %i = iterate space=[4] : block<4xi32> {
        (%d0: i64):
        %v0 = cast %d0 : i32
        yield %v0
      }
      %q = iterate %i, space=[4], maps=[map<1: d0>] : block<4xptr<f32>> {
        (%d0_0: i64, %i_0: i32):
        %v1 = offset %x, %i_0 : ptr<f32>
        yield %v1
      }
      %v = iterate %q, space=[4], maps=[map<1: d0>] : block<4xf32> {
        (%d0_1: i64, %q_0: ptr<f32>):
        %v2 = load %q_0 : f32
        yield %v2
      }
      %s = iterate %v, space=[4], maps=[map<1: d0>], combine="sum", reduced=0 : f32 {
        (%d0_2: i64, %v3: f32):
        yield %v3
      }
      store %p, %s
      return
    }

Shape operations disappear: they become the index map under which a later iteration reads. `cat` is an
iteration that selects by the lane's index. Scalars, control flow and the grid are as before.

Requires: level block. Keeps: every value and name; nothing is fused, ordered or placed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from blocklang.ir.builder import Builder
from blocklang.ir.core import Kernel, Operation, Region, Value
from blocklang.ir.index_map import Binary, Const, IndexMap, compose, identity_map
from blocklang.ir.rewriting import clone_operation, inline_region
from blocklang.ir.types import I32, I64, BlockType, Type, element_type, shape_of, with_shape
from blocklang.ops.atomics import Atomic
from blocklang.ops.control import Yield
from blocklang.ops.creation import Arange, Constant, Splat
from blocklang.ops.elementwise import Add, Cast, Compare, Elementwise, Rem, Select
from blocklang.ops.memory import Store
from blocklang.ops.reduction import ArgReduce, Dot, Reduce, ReduceWith
from blocklang.ops.scan import MapElementwise, Running, Scan
from blocklang.ops.shape import Cat, ShapeOperation
from blocklang.ops.tile import Contract, Iterate

_READS_VIEWS = (
    *(ShapeOperation, Cat, Elementwise, Store, Atomic, Splat),
    *(Reduce, ArgReduce, ReduceWith, MapElementwise, Dot),
)

LaneBody = Callable[[Builder, list[Value], list[Value]], list[Value]]


class _Lowering:
    """Rewrites one kernel in place, region by region.

    `views` maps the result of a shape operation to the value it renames and the index map into it.
    """

    def __init__(self) -> None:
        self.views: dict[Value, tuple[Value, IndexMap]] = {}

    def source(self, value: Value) -> tuple[Value, IndexMap]:
        """The value whose lanes `value` shows, and where each lane stands in it."""
        if value in self.views:
            return self.views[value]
        return value, identity_map(len(shape_of(value.type)))

    def region(self, region: Region) -> None:
        for op in list(region.ops):
            for inner in op.regions:
                if not isinstance(op, (ReduceWith, Scan, MapElementwise)):
                    self.region(inner)
            self.materialise_views(op)
            self.operation(op)

    def materialise_views(self, op: Operation) -> None:
        """Control flow carries whole values: a view that it is given becomes a value first."""
        if isinstance(op, _READS_VIEWS) or _runs_along_lanes(op):
            return
        for index, operand in enumerate(op.operands):
            if operand in self.views:
                op.set_operand(index, self.copy(Builder.before_op(op), operand))

    def copy(self, builder: Builder, value: Value) -> Value:
        return self.iterate(builder, [value], shape_of(value.type), [value.type], lambda b, i, lanes: lanes)[
            0
        ]

    def operation(self, op: Operation) -> None:
        builder = Builder.before_op(op)
        match op:
            case ShapeOperation():
                value, inner = self.source(op.source)
                shape = shape_of(op.result.type)
                self.views[op.result] = (value, compose(inner, op.index_map(), shape))
            case Cat():
                self.replace(op, self.cat(builder, op))
            case Reduce() | ArgReduce() | ReduceWith():
                self.replace(op, self.reduction(builder, op))
            case Dot():
                operands = [self.copy(builder, v) if v in self.views else v for v in op.operands]
                self.replace(op, builder.create(Contract, *operands, **op.attributes).results)
            case Scan() if _runs_along_lanes(op):
                self.replace(op, self.running(builder, op))
            case MapElementwise():
                self.replace(op, self.mapped(builder, op))
            case Store() if shape_of(op.pointer.type):
                self.lanewise(builder, op, shape_of(op.pointer.type))
                op.erase()
            case Atomic() if shape_of(op.segment("pointer")[0].type):
                self.atomic(builder, op)
            case Arange():
                self.replace(
                    op,
                    self.iterate(builder, [], shape_of(op.result.type), [op.result.type], _arange(op.start)),
                )
            case Splat():
                scalar = op.source
                body: LaneBody = lambda b, i, lanes: [scalar]  # noqa: E731
                self.replace(op, self.iterate(builder, [], shape_of(op.result.type), [op.result.type], body))
            case Constant() | Elementwise() if shape_of(op.result.type):
                self.replace(op, self.lanewise(builder, op, shape_of(op.result.type)))

    def replace(self, op: Operation, values: Sequence[Value]) -> None:
        for old, new in zip(op.results, values, strict=True):
            new.name = old.name
        op.replace_with(*values)

    def lanewise(
        self, builder: Builder, op: Operation, shape: tuple[int, ...], *, results: bool = True
    ) -> list[Value]:
        """The iteration whose body is `op` on one lane."""
        blocks = list(dict.fromkeys(v for v in op.operands if isinstance(v.type, BlockType)))

        def body(b: Builder, indices: list[Value], lanes: list[Value]) -> list[Value]:
            lane = clone_operation(op, dict(zip(blocks, lanes, strict=True)))
            for result in lane.results:
                result.type = element_type(result.type)
                result.name = ""
            b.insert(lane)
            return lane.results if results else []

        types = [r.type for r in op.results] if results else []
        return self.iterate(builder, blocks, shape, types, body)

    def atomic(self, builder: Builder, op: Atomic) -> None:
        """An iteration with the effect, and with the old elements if anybody reads them."""
        shape = shape_of(op.result.type)
        if op.result.uses:
            self.replace(op, self.lanewise(builder, op, shape))
        else:
            self.lanewise(builder, op, shape, results=False)
            op.erase()

    def iterate(
        self,
        builder: Builder,
        inputs: Sequence[Value],
        space: tuple[int, ...],
        result_types: Sequence[Type],
        body: LaneBody,
        *,
        reshape: Sequence[IndexMap] | None = None,
        combine: str = "",
        reduced: int = -1,
        regions: Sequence[Region] = (),
    ) -> list[Value]:
        sources, maps = zip(*map(self.source, inputs), strict=True) if inputs else ((), ())
        if reshape is not None:
            maps = tuple(compose(m, r, space) for m, r in zip(maps, reshape, strict=True))
        region = Region([I64] * len(space) + [element_type(v.type) for v in inputs])
        for position in range(len(space)):
            region.args[position].name = f"d{position}"
        for arg, value in zip(region.args[len(space) :], inputs, strict=True):
            arg.name = value.name
        with builder.at(region):
            yielded = body(builder, region.args[: len(space)], region.args[len(space) :])
            builder.create(Yield, *yielded)
        op = builder.create(
            Iterate,
            *sources,
            space=space,
            maps=tuple(maps),
            combine=combine,
            reduced=reduced,
            result_types=result_types,
            regions=[region, *regions],
        )
        return op.results

    def running(self, builder: Builder, op: Scan) -> list[Value]:
        """The iteration that yields what each lane and those before it along the last axis combine to."""
        (combiner,) = op.regions
        combiner.parent = None
        op.regions = []
        types = [r.type for r in op.results]

        def body(b: Builder, indices: list[Value], lanes: list[Value]) -> list[Value]:
            elements = [element_type(t) for t in types]
            return list(b.create(Running, *lanes, result_types=elements, regions=[combiner]).results)

        return self.iterate(builder, list(op.inputs), shape_of(types[0]), types, body)

    def mapped(self, builder: Builder, op: MapElementwise) -> list[Value]:
        """One iteration whose body is the function; for several elements a call, an iteration over groups
        of neighbours, and one that picks each lane's result.
        """
        pack, results = op.pack, list(op.results)
        shape = shape_of(results[0].type)
        groups = (*shape[:-1], shape[-1] // pack)
        inputs = [v for v in op.inputs for _ in range(pack)]

        def body(b: Builder, indices: list[Value], lanes: list[Value]) -> list[Value]:
            return inline_region(b, op.body, dict(zip(op.body.args, lanes, strict=True)))

        types = [with_shape(element_type(r.type), groups) for r in results for _ in range(pack)]
        maps = [_place_in_group(groups, pack, place) for _ in op.inputs for place in range(pack)]
        called = self.iterate(builder, inputs, groups, types, body, reshape=maps)
        if pack == 1:
            return called
        picked: list[Value] = []
        for position, result in enumerate(results):
            own = called[position * pack : (position + 1) * pack]
            group = [_group_of_place(shape, pack)] * pack
            picked += self.iterate(builder, own, shape, [result.type], _pick(pack), reshape=group)
        return picked

    def cat(self, builder: Builder, op: Cat) -> list[Value]:
        """The iteration that reads both operands at every lane and takes one of them."""
        front = op.first.type.shape[op.axis]

        def body(b: Builder, indices: list[Value], lanes: list[Value]) -> list[Value]:
            limit = b.value(Constant, value=front, result_types=[I64])
            is_first = b.value(Compare, indices[op.axis], limit, predicate="lt")
            return [b.value(Select, is_first, *lanes)]

        shape = shape_of(op.result.type)
        return self.iterate(
            builder, [op.first, op.second], shape, [op.result.type], body, reshape=op.index_maps()
        )

    def reduction(self, builder: Builder, op: Operation) -> list[Value]:
        axis = op.attributes["axis"]
        space = shape_of(op.operands[0].type)
        combine, regions = op.attributes.get("combine", "custom"), [op.regions[0]] if op.regions else []
        if isinstance(op, ArgReduce):
            combine = f"arg{op.combine}"
        for region in regions:
            region.parent = None
        op.regions = []

        def body(b: Builder, indices: list[Value], lanes: list[Value]) -> list[Value]:
            if isinstance(op, ArgReduce):
                return [*lanes, b.value(Cast, indices[axis], result_types=[I32])]
            return lanes

        types = [r.type for r in op.results]
        return self.iterate(
            builder, list(op.operands), space, types, body, combine=combine, reduced=axis, regions=regions
        )


def _runs_along_lanes(op: Operation) -> bool:
    """True for a scan of rows, forwards: lanes go the same way."""
    return isinstance(op, Scan) and not op.reverse and op.axis == len(shape_of(op.results[0].type)) - 1


def _arange(start: int) -> LaneBody:
    def body(builder: Builder, indices: list[Value], lanes: list[Value]) -> list[Value]:
        index = builder.value(Cast, indices[0], result_types=[I32])
        if start == 0:
            return [index]
        return [builder.value(Add, index, builder.value(Constant, value=start, result_types=[I32]))]

    return body


def _place_in_group(groups: tuple[int, ...], pack: int, place: int) -> IndexMap:
    """From a group of neighbours along the last axis to its element at `place`."""
    *outer, last = identity_map(len(groups)).exprs
    return IndexMap(len(groups), (*outer, Binary("+", Binary("*", last, Const(pack)), Const(place))))


def _group_of_place(shape: tuple[int, ...], pack: int) -> IndexMap:
    """From an element to its group of neighbours along the last axis."""
    *outer, last = identity_map(len(shape)).exprs
    return IndexMap(len(shape), (*outer, Binary("//", last, Const(pack))))


def _pick(pack: int) -> LaneBody:
    """The lane of the input at the own place in the group."""

    def body(builder: Builder, indices: list[Value], lanes: list[Value]) -> list[Value]:
        def number(value: int) -> Value:
            return builder.value(Constant, value=value, result_types=[I64])

        place = builder.value(Rem, indices[-1], number(pack))
        picked = lanes[-1]
        for candidate in range(pack - 2, -1, -1):
            is_here = builder.value(Compare, place, number(candidate), predicate="eq")
            picked = builder.value(Select, is_here, lanes[candidate], picked)
        return [picked]

    return body


def _erase_shape_operations(kernel: Kernel) -> None:
    for op in reversed(list(kernel.walk())):
        if isinstance(op, ShapeOperation):
            op.erase()


def lower_to_tile(kernel: Kernel) -> None:
    """Turn a kernel of level block into one of level tile, in place."""
    assert kernel.level == "block"
    _Lowering().region(kernel.body)
    _erase_shape_operations(kernel)
    kernel.level = "tile"
