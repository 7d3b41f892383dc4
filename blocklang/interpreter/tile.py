"""The meaning of the operations of Tile IR.

The body of `iterate` and `lanes` is evaluated once, for all points at once. A body of `lanes` that holds
loops over lanes of its own is run lane by lane instead.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from blocklang.diagnostics import InterpreterError
from blocklang.interpreter.buffers import Buffer, unwritten
from blocklang.interpreter.dtypes import Array, dtype_of, is_float
from blocklang.interpreter.evaluation import Machine, evaluates
from blocklang.interpreter.folds import PARTIALS, arg_fold, fold
from blocklang.interpreter.reduction import accumulate, contract, fold_with, is_interleaved
from blocklang.ir.core import Operation
from blocklang.ir.index_map import Binary, Const, Dim, IndexExpr
from blocklang.ops import tile as ops

# ---- abstract ----


@evaluates(ops.Iterate)
def iterate(op: ops.Iterate, machine: Machine) -> list[Array]:
    space: tuple[int, ...] = op.space
    points = list(np.indices(space, dtype=np.int64, sparse=True))
    inputs = [_lanes_of(machine[v], m.exprs, points) for v, m in zip(op.inputs, op.maps, strict=True)]
    with machine.over(space):
        yielded = [np.broadcast_to(lanes, space) for lanes in machine.yields(op.body, [*points, *inputs])]
    if not op.combine:
        return yielded
    folded = [np.moveaxis(lanes, op.reduced, 0) for lanes in yielded]
    if op.combine == "custom":
        return fold_with(machine, op.combiner, folded)
    if op.combine in ops.ARG_COMBINES:
        return list(arg_fold(op.combine.removeprefix("arg"), *folded))
    interleaved = is_interleaved(space, op.reduced)
    return [fold(op.combine, lanes, interleaved=interleaved) for lanes in folded]


def _lanes_of(block: Array, exprs: Sequence[IndexExpr], points: list[Array]) -> Array:
    """A block read at the map of each point, as an array that broadcasts to the space."""
    if tuple(exprs) == tuple(Dim(i) for i in range(len(points))):
        return np.asarray(block[tuple(slice(p.size) for p in points)])
    return np.asarray(block[tuple(_index(expr, points) for expr in exprs)])


def _index(expr: IndexExpr, points: list[Array]) -> Array:
    match expr:
        case Dim(position):
            return points[position]
        case Const(value):
            return np.array(value, np.int64)
        case Binary("+", lhs, rhs):
            return np.asarray(_index(lhs, points) + _index(rhs, points))
        case Binary("*", lhs, rhs):
            return np.asarray(_index(lhs, points) * _index(rhs, points))
        case Binary("//", lhs, rhs):
            return np.asarray(_index(lhs, points) // _index(rhs, points))
        case Binary("%", lhs, rhs):
            return np.asarray(_index(lhs, points) % _index(rhs, points))
    raise AssertionError(expr)


@evaluates(ops.Contract)
def contract_blocks(op: ops.Contract, machine: Machine) -> Array:
    return contract(machine[op.a], machine[op.b], machine[op.acc], op.input_precision, op.start)


# ---- placed: buffers ----


@evaluates(ops.BufferOp)
def buffer(op: ops.BufferOp, machine: Machine) -> Buffer:
    size = op.byte_count()
    if op.offset < 0:
        return Buffer(unwritten(size), op.output.type, op.panel)
    return Buffer(machine.arenas[op.space][op.offset : op.offset + size], op.output.type, op.panel)


@evaluates(ops.View)
def view(op: ops.View, machine: Machine) -> Buffer:
    source: Buffer = machine[op.buffer]
    return source.viewed(op.output.type)


@evaluates(ops.Part)
def part(op: ops.Part, machine: Machine) -> Buffer:
    source: Buffer = machine[op.buffer]
    return source.part(int(machine[op.index]), op.output.type)


@evaluates(ops.Memoise)
def memoise(op: ops.Memoise, machine: Machine) -> Buffer:
    """A tile of its own for every program: which ones share theirs changes no result."""
    tile = Buffer(unwritten(op.byte_count()), op.output.type, op.panel)
    machine.run(op.body, [tile])
    return tile


@evaluates(ops.Read)
def read(op: ops.Read, machine: Machine) -> Array:
    source: Buffer = machine[op.buffer]
    try:
        return source.read([machine[i] for i in op.indices], machine.mask)
    except InterpreterError as error:
        error.location = op.location
        raise


@evaluates(ops.Prefetch)
def prefetch(op: ops.Prefetch, machine: Machine) -> None:
    """Nothing: memory is as it was."""


@evaluates(ops.Write)
def write(op: ops.Write, machine: Machine) -> None:
    target: Buffer = machine[op.buffer]
    try:
        target.write(machine[op.value], [machine[i] for i in op.indices], machine.mask)
    except InterpreterError as error:
        error.location = op.location
        raise


@evaluates(ops.InBounds)
def in_bounds(op: ops.InBounds, machine: Machine) -> Array:
    index = machine[op.index]
    return np.asarray((machine[op.low] <= index) & (index < machine[op.high]))


# ---- placed: loops ----


@evaluates(ops.Group)
def group(op: ops.Group, machine: Machine) -> None:
    for index in range(int(machine[op.low]), int(machine[op.high])):
        machine.run(op.body, [np.array(index, np.int64)])


@evaluates(ops.Lanes)
def lanes(op: ops.Lanes, machine: Machine) -> list[Array]:
    low, high = int(machine[op.low]), int(machine[op.high])
    yielded = _yields_of_lanes(op, machine, np.arange(low, high, dtype=np.int64))
    if op.pads and op.extent > high:
        count = op.extent - max(low, high)
        pads = [np.full(count, machine[p]) for p in op.pads]
        yielded = [np.concatenate([x, p]) for x, p in zip(yielded, pads, strict=True)]
    return _fold_lanes(op.combines, low, yielded)


def _yields_of_lanes(op: ops.Lanes, machine: Machine, index: Array) -> list[Array]:
    """What the body yields for every index, as one array per value."""
    dtypes = [dtype_of(r.type) for r in op.results]
    if not index.size:
        return [np.empty(0, dtype) for dtype in dtypes]
    if _holds_loops(op):
        rows = [machine.yields(op.body, [np.array(i, np.int64)]) for i in index]
        return [np.array([row[k] for row in rows], dtype) for k, dtype in enumerate(dtypes)]
    with machine.over(index.shape):
        return [np.broadcast_to(x, index.shape) for x in machine.yields(op.body, [index])]


def _holds_loops(op: Operation) -> bool:
    """True if the body holds what can only run for one lane at a time."""
    single = (ops.Lanes, ops.Group, ops.BufferOp, ops.TreeReduce, ops.ContractBuffers)
    return any(isinstance(inner, single) for region in op.regions for inner in region.walk())


def _fold_lanes(combines: Sequence[str], low: int, yielded: list[Array]) -> list[Array]:
    """Fold what lanes from index `low` on yielded; partial sums go by index."""
    remaining = list(yielded)
    results: list[Array] = []
    for combine in combines:
        values = remaining.pop(0)
        if combine in ops.ARG_COMBINES:
            results += arg_fold(combine.removeprefix("arg"), values, remaining.pop(0))
            continue
        if combine == "sum" and is_float(values.dtype):
            values = np.concatenate([np.zeros(low % PARTIALS, values.dtype), values])
        results.append(fold(combine, values, interleaved=True))
    return results


@evaluates(ops.TreeReduce)
def tree_reduce(op: ops.TreeReduce, machine: Machine) -> list[Array]:
    buffers: list[Buffer] = [machine[v] for v in op.buffers]
    folded = fold_with(machine, op.combiner, [b.matrix()[: op.extent] for b in buffers])
    for b in buffers:
        b.bytes[:] = unwritten(b.bytes.size)
    return folded


@evaluates(ops.ContractBuffers)
def contract_buffers(op: ops.ContractBuffers, machine: Machine) -> None:
    acc: Buffer = machine[op.acc]
    a, b = machine[op.a].matrix(), machine[op.b].matrix()
    if op.form != "fma":
        a, b = _unpacked(op.form, a, b)
    if op.start == "zero":
        acc.set_matrix(accumulate(a, b, np.zeros(op.acc.type.shape, dtype_of(op.acc.type)), "acc"))
    else:
        acc.set_matrix(accumulate(a, b, acc.matrix(), op.start))


def _unpacked(form: str, a: Array, b: Array) -> tuple[Array, Array]:
    """The operands of a product of bytes as matrices of i32; `b` holds several rows in one."""
    count = ops.FORMS[form]
    if form == "bytes":
        a = a ^ np.int8(-128)
    rows, columns = b.shape
    numbers = np.ascontiguousarray(b).view(np.int16 if count == 2 else np.int8).reshape(rows, columns, count)
    return a.astype(np.int32), numbers.transpose(0, 2, 1).reshape(rows * count, columns).astype(np.int32)
