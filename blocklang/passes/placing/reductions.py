"""Place reductions: lanes folded by their own loop, rows folded lane by lane, or a tree for a user's
function.
"""

from __future__ import annotations

from collections.abc import Sequence

from blocklang.ir.builder import Builder
from blocklang.ir.core import Operation, Region, Value
from blocklang.ir.float8 import FLOAT8
from blocklang.ir.rewriting import clone_region
from blocklang.ir.types import F32, I32, I64, U8, BlockType, BufferType, ScalarType, Type, element_type
from blocklang.ops.control import For, Yield
from blocklang.ops.creation import Constant
from blocklang.ops.elementwise import Add, And, Bitcast, Cast, Compare, Maximum, Minimum, Or, Select, Xor
from blocklang.ops.tile import Iterate, TreeReduce, Write
from blocklang.passes.placing.nests import Nest, Nests
from blocklang.passes.schedule import LoopSchedule


def place_reduction(p: Nests, op: Iterate) -> None:
    p.materialise_unaligned(op.inputs, op.space, op.maps)
    if op.combine == "custom":
        _fold_tree(p, op)
    elif p.schedule.loops[p.labels.of(op)].order[-1] == op.reduced:
        _fold_lanes(p, op)
    else:
        _fold_rows(p, op)


def _result_buffers(p: Nests, op: Iterate) -> list[Value]:
    return [p.buffer(r.type, r.name or op.combine) for r in op.results if isinstance(r.type, BlockType)]


def _kept_indices(op: Iterate, nest: Nest) -> list[Value]:
    return [v for axis, v in enumerate(nest.axes) if axis != op.reduced]


def _deliver(
    p: Nests, op: Iterate, buffers: Sequence[Value], nest: Nest, builder: Builder, values: Sequence[Value]
) -> None:
    """Hand reduction results on: as scalars, or written to their buffers at the outer indices."""
    for result, value in zip(op.results, values, strict=True):
        if not value.name:
            value.name = result.name
    if not buffers:
        p.scalars.update(zip(op.results, values, strict=True))
    for result, target, value in zip(op.results, buffers, values, strict=False):
        builder.create(Write, target, value, _kept_indices(op, nest))
        p.buffers[result] = target


def _fold_lanes(p: Nests, op: Iterate) -> None:
    """Lanes run along the reduced axis; the lanes loop itself folds."""
    buffers = _result_buffers(p, op)
    types = [element_type(r.type) for r in op.results]
    loop = p.schedule.loops[p.labels.of(op)]
    with p.nest(op.space, loop, (op.combine,), types) as (nest, builder):
        builder.create(Yield, *p.body(builder, nest, op))
        nest.afterwards.append(lambda b: _deliver(p, op, buffers, nest, b, nest.lanes.results))


def _fold_rows(p: Nests, op: Iterate) -> None:
    """Lanes run along another axis; each lane folds the reduced axis in a sequential loop."""
    buffers = _result_buffers(p, op)
    loop = p.schedule.loops[p.labels.of(op)]
    outer = LoopSchedule(tuple(a for a in loop.order if a != op.reduced), loop.width)
    types = [element_type(r.type) for r in op.results]
    wide = [
        F32 if isinstance(t, ScalarType) and t.is_small_float and op.combine == "sum" else t for t in types
    ]
    with p.nest(op.space, outer) as (nest, builder):
        inits = [identity_of(builder, op.combine, t, i) for i, t in enumerate(wide)]
        region = Region([I64, *wide], [f"d{op.reduced}"])
        nest.axes[op.reduced] = region.args[0]
        with builder.at(region):
            lanes = p.body(builder, nest, op)
            widened = [
                builder.value(Cast, v, result_types=[w]) if w != v.type else v
                for v, w in zip(lanes, wide, strict=True)
            ]
            builder.create(Yield, *fold(builder, op.combine, region.args[1:], widened))
        bounds = [p.constant(builder, n) for n in (0, op.space[op.reduced], 1)]
        folded = builder.create(For, *bounds, inits=inits, result_types=wide, regions=[region]).results
        narrowed = [
            builder.value(Cast, v, result_types=[t]) if t != v.type else v
            for v, t in zip(folded, types, strict=True)
        ]
        _deliver(p, op, buffers, nest, builder, narrowed)


def _fold_tree(p: Nests, op: Iterate) -> None:
    """A user's function: lanes go to a row of scratch, which is folded as a tree over neighbours."""
    buffers = _result_buffers(p, op)
    extent = op.space[op.reduced]
    rows = [
        p.buffer(BufferType(element_type(r.type), (extent,)), f"{r.name or 'fold'}_row") for r in op.results
    ]
    types = [element_type(r.type) for r in op.results]

    def fold_row(builder: Builder) -> None:
        combiner = clone_region(op.combiner, dict(p.scalars))
        folded = builder.create(TreeReduce, rows, extent=extent, result_types=types, regions=[combiner])
        _deliver(p, op, buffers, nest, builder, folded.results)

    with p.nest(op.space, p.schedule.loops[p.labels.of(op)]) as (nest, builder):
        for row, lane in zip(rows, p.body(builder, nest, op), strict=True):
            builder.create(Write, row, lane, [nest.axes[op.reduced]])
        nest.afterwards.append(fold_row)


def identity_of(builder: Builder, combine: str, type: Type, position: int) -> Value:
    """The start of a fold: what changes no result. NaN for float extrema, since NaN is ignored there; a
    type without NaN starts from its end."""
    assert isinstance(type, ScalarType)
    if position == 1:
        return builder.value(Constant, value=0, result_types=[I32])
    value: int | float | bool
    extremum = combine in ("max", "min", "argmax", "argmin")
    if extremum and type.is_float8 and not FLOAT8[type.name].has_nan:
        top = FLOAT8[type.name].top | (0x80 if combine in ("max", "argmax") else 0)
        bits = builder.value(Constant, value=top, result_types=[U8])
        return builder.value(Bitcast, bits, result_types=[type])
    if extremum and type.is_float:
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


_FOLDS: dict[str, type[Operation]] = {
    "sum": Add,
    "max": Maximum,
    "min": Minimum,
    "and": And,
    "or": Or,
    "xor": Xor,
}


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
