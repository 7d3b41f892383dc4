"""Fold long axes by a user's function in stretches that stay in the nearest cache.

    tile @k(%p: ptr<i32>) {
      %x = iterate space=[10000] : block<10000xi32> {
        (%d0: i64):
        %v0 = cast %d0 : i32
        yield %v0
      }
      %r = iterate %x, space=[10000], maps=[map<1: d0>], combine="custom", reduced=0 : i32 {
        (%i: i64, %v1: i32):
        yield %v1
      } {
        (%a: i32, %b: i32):
        %c = mul %a, %b : i32
        yield %c
      }
      store %p, %r
      return
    }

becomes

    tile @k(%p: ptr<i32>) {
      %x = iterate space=[10000] : block<10000xi32> {
        (%d0: i64):
        %v0 = cast %d0 : i32
        yield %v0
      }
      %v1 = iterate %x, space=[2, 4096], maps=[map<2: d0 * 4096 + d1>], combine="custom", reduced=1 : block<2xi32> {
        (%d0_0: i64, %d1: i64, %v2: i32):
        yield %v2
      } {
        (%a: i32, %b: i32):
        %c = mul %a, %b : i32
        yield %c
      }
      %v3 = iterate %x, space=[1808], maps=[map<1: d0 + 8192>], combine="custom", reduced=0 : i32 {
        (%d0_1: i64, %v4: i32):
        yield %v4
      } {
        (%a_0: i32, %b_0: i32):
        %c_0 = mul %a_0, %b_0 : i32
        yield %c_0
      }
      %r = iterate %v1, space=[3], maps=[map<1: d0 % 2>], combine="custom", reduced=0 : i32 {
        (%d0_2: i64, %v5: i32):
        %v6 = constant value=2 : i64
        %v7 = cmp %d0_2, %v6, predicate="lt" : i1
        %v8 = select %v7, %v5, %v3 : i32
        yield %v8
      } {
        (%a_1: i32, %b_1: i32):
        %c_1 = mul %a_1, %b_1 : i32
        yield %c_1
      }
      store %p, %r
      return
    }

A tree over neighbours folds every aligned stretch of a power of two on its own, and then their results as
the next rounds: the whole stretches, what is left behind them, and the results of both are three folds with
the bits of one.

Requires: level tile. Keeps: every bit of every result.
"""  # noqa: E501

from __future__ import annotations

from blocklang.ir.builder import Builder
from blocklang.ir.core import Kernel, Region, Value
from blocklang.ir.index_map import Binary, Const, Dim, IndexExpr, IndexMap, compose
from blocklang.ir.rewriting import clone_region, inline_region
from blocklang.ir.types import I64, BlockType, PointerType, ScalarType, Type, element_type, with_shape
from blocklang.ops.control import Yield
from blocklang.ops.creation import Constant
from blocklang.ops.elementwise import Add, Compare, Mul, Select
from blocklang.ops.tile import Iterate

STRETCH_BYTES = 16384  # of all rows that are folded together


def split_folds(kernel: Kernel) -> None:
    """Split every fold by a function that is longer than a stretch."""
    assert kernel.level == "tile"
    for op in list(kernel.walk()):
        while isinstance(op, Iterate) and op.combine == "custom" and op.space[op.reduced] > _stretch(op):
            op = _split(op)


def _stretch(op: Iterate) -> int:
    """Elements of a stretch: the largest power of two that fits."""
    size = sum(_bytes(element_type(r.type)) for r in op.results)
    return 1 << (STRETCH_BYTES // size).bit_length() - 1


def _bytes(type_: Type) -> int:
    assert isinstance(type_, (ScalarType, PointerType))
    return type_.bytes


def _split(op: Iterate) -> Iterate:
    """Replace a fold; returns the fold of the stretches' results, which may be long itself."""
    builder = Builder.before_op(op)
    axis, stretch = op.reduced, _stretch(op)
    count, rest = divmod(op.space[axis], stretch)
    before, after = op.space[:axis], op.space[axis + 1 :]
    whole = _whole_stretches(builder, op, (*before, count, stretch, *after))
    last = _last_stretch(builder, op, (*before, rest, *after), count * stretch) if rest else []
    folded = _fold_results(builder, op, (*before, count + bool(rest), *after), whole, last, count)
    for old, new in zip(op.results, folded.results, strict=True):
        new.name = old.name
    op.replace_with(*folded.results)
    return folded


def _whole_stretches(builder: Builder, op: Iterate, space: tuple[int, ...]) -> list[Value]:
    axis, stretch = op.reduced, space[op.reduced + 1]
    dims = [Dim(i if i < axis else i + 1) for i in range(len(op.space))]
    exprs: list[IndexExpr] = list(dims)
    exprs[axis] = Binary("+", Binary("*", Dim(axis), Const(stretch)), Dim(axis + 1))
    region, own = _body(op, len(space), [d.position for d in dims])
    with builder.at(region):
        if op.body.args[axis].uses:
            size = builder.value(Constant, value=stretch, result_types=[I64])
            start = builder.value(Mul, region.args[axis], size)
            own[op.body.args[axis]] = builder.value(Add, start, region.args[axis + 1])
        builder.create(Yield, inline_region(builder, op.body, own))
    return _fold(builder, op, space, tuple(exprs), axis + 1, region).results


def _last_stretch(builder: Builder, op: Iterate, space: tuple[int, ...], start: int) -> list[Value]:
    axis = op.reduced
    exprs: list[IndexExpr] = [Dim(i) for i in range(len(space))]
    exprs[axis] = Binary("+", Dim(axis), Const(start))
    region, own = _body(op, len(space), list(range(len(space))))
    with builder.at(region):
        if op.body.args[axis].uses:
            first = builder.value(Constant, value=start, result_types=[I64])
            own[op.body.args[axis]] = builder.value(Add, region.args[axis], first)
        builder.create(Yield, inline_region(builder, op.body, own))
    return _fold(builder, op, space, tuple(exprs), axis, region).results


def _body(op: Iterate, rank: int, places: list[int]) -> tuple[Region, dict[Value, Value]]:
    """An empty body of other indices, and what stands in it for the arguments of `op`'s."""
    lanes = op.body.args[len(op.space) :]
    region = Region([I64] * rank + [a.type for a in lanes], [f"d{i}" for i in range(rank)])
    for new, old in zip(region.args[rank:], lanes, strict=True):
        new.name = old.name
    own = {op.body.args[i]: region.args[place] for i, place in enumerate(places)}
    return region, own | dict(zip(lanes, region.args[rank:], strict=True))


def _fold(
    builder: Builder,
    op: Iterate,
    space: tuple[int, ...],
    exprs: tuple[IndexExpr, ...],
    reduced: int,
    body: Region,
) -> Iterate:
    """The fold of `op`'s inputs, read at `exprs` of the points of a space."""
    inner = IndexMap(len(space), exprs)
    shape = space[:reduced] + space[reduced + 1 :]
    fold = builder.create(
        Iterate,
        *op.inputs,
        space=space,
        maps=tuple(compose(m, inner, space) for m in op.maps),
        combine="custom",
        reduced=reduced,
        result_types=[with_shape(element_type(r.type), shape) for r in op.results],
        regions=[body, clone_region(op.combiner, {})],
    )
    assert isinstance(fold, Iterate)
    return fold


def _fold_results(
    builder: Builder,
    op: Iterate,
    space: tuple[int, ...],
    whole: list[Value],
    last: list[Value],
    count: int,
) -> Iterate:
    """The fold of the stretches' results: element `count` of the axis is the last, partial stretch's."""
    axis, rank = op.reduced, len(space)
    exprs: list[IndexExpr] = [Dim(i) for i in range(rank)]
    exprs[axis] = Binary("%", Dim(axis), Const(count)) if last else Dim(axis)
    if count == 1:
        exprs[axis] = Const(0)
    others = IndexMap(rank, tuple(Dim(i) for i in range(rank) if i != axis))
    blocks = [v for v in last if isinstance(v.type, BlockType)]
    inputs = [*whole, *blocks]
    region = Region([I64] * rank + [element_type(v.type) for v in inputs], [f"d{i}" for i in range(rank)])
    lanes = region.args[rank:]
    with builder.at(region):
        yielded = lanes[: len(whole)]
        if last:
            limit = builder.value(Constant, value=count, result_types=[I64])
            is_whole = builder.value(Compare, region.args[axis], limit, predicate="lt")
            lasts = lanes[len(whole) :] or last
            yielded = [builder.value(Select, is_whole, w, x) for w, x in zip(yielded, lasts, strict=True)]
        builder.create(Yield, yielded)
    fold = builder.create(
        Iterate,
        *inputs,
        space=space,
        maps=(*[IndexMap(rank, tuple(exprs))] * len(whole), *[others] * len(blocks)),
        combine="custom",
        reduced=axis,
        result_types=[r.type for r in op.results],
        regions=[region, clone_region(op.combiner, {})],
    )
    assert isinstance(fold, Iterate)
    return fold
