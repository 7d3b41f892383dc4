"""A user's function, folded as a tree over neighbours in rows of scratch."""

from __future__ import annotations

from dataclasses import replace

from blocklang.codegen.emitter import llvm_type
from blocklang.codegen.loops import RegionEmitter
from blocklang.codegen.values import Lane
from blocklang.ir.core import Operation, Value
from blocklang.ir.types import I1, element_type
from blocklang.ops.tile import TreeReduce


def tree_reduce(emitter: RegionEmitter, op: Operation) -> None:
    """Halve the rows until one element is left: element i becomes combine(2i, 2i + 1), an odd last one
    moves down.
    """
    assert isinstance(op, TreeReduce)
    emit = emitter.emit
    header, body, done = emit.new_block("rounds"), emit.new_block("round"), emit.new_block("done")
    before = emit.block
    emit.branch(header)
    emit.start(header)
    count = emit.phi("i64", [(str(op.extent), before)])
    emit.branch_if(emit.op(f"icmp sgt i64 {count.name}, 1"), body, done)
    emit.start(body)
    half = emit.op(f"lshr i64 {count.name}, 1")
    width = _tree_width(emitter, op)
    whole = "0"
    if width:
        whole = emit.op(f"and i64 {half}, {-width}")
        emitter.counted("0", whole, width, lambda i: _fold_pairs(emitter, op, i, width))
    emitter.counted(whole, half, 1, lambda i: _fold_pairs(emitter, op, i, 0))
    odd = emit.op(f"and i64 {count.name}, 1")

    def move_last() -> None:
        last = emit.op(f"sub i64 {count.name}, 1")
        for row in op.buffers:
            value = emitter.lanes.load_lanes(
                _element(emitter, row, last), row.type.element, Lane("true", I1), None
            )
            emitter.lanes.store(_element(emitter, row, half), value, Lane("true", I1), op)

    emitter.lanes.when(emit.op(f"icmp eq i64 {odd}, 1"), move_last)
    count.add(emit.op(f"add i64 {half}, {odd}"), emit.block)
    emit.branch(header)
    emit.start(done)
    for row, result in zip(op.buffers, op.outputs, strict=True):
        lane = emitter.lanes.load_uniform(emitter.values[row], result.type, Lane("true", I1), None)
        emitter.values[result] = lane


def _tree_width(emitter: RegionEmitter, op: TreeReduce) -> int:
    """Lanes per step; 0 for rows so short that most of their rounds have no whole step."""
    if op.extent < 32:
        return 0
    return emitter.lanes.target.vector_bytes // max(4, *(element_type(row.type).bytes for row in op.buffers))


def _element(emitter: RegionEmitter, row: Value, index: str) -> Lane:
    size = element_type(row.type).bytes
    base = emitter.values[row]
    return Lane(emitter.emit.offset(base.text, emitter.emit.mul(index, size)), base.type)


def _fold_pairs(emitter: RegionEmitter, op: TreeReduce, index: str, width: int) -> None:
    """Combine elements 2i and 2i + 1 of every row into element i, for `width` consecutive i (one if 0)."""
    emit = emitter.emit
    inner = emitter.nested(width=width)
    double = emit.op(f"shl i64 {index}, 1")
    left: list[Lane] = []
    right: list[Lane] = []
    for row in op.buffers:
        type = row.type.element
        if width:
            wide = emitter.nested(width=2 * width).lanes
            pointer = _element(emitter, row, double)
            both = wide.load_lanes(replace(pointer, step=str(type.bytes)), type, Lane("true", I1), None)
            left.append(_every_other(emitter, both, width, 0))
            right.append(_every_other(emitter, both, width, 1))
        else:
            second = emit.op(f"or i64 {double}, 1")
            for target, position in ((left, double), (right, second)):
                target.append(
                    inner.lanes.load_uniform(_element(emitter, row, position), type, Lane("true", I1), None)
                )
    inner.values.update(zip(op.combiner.args, left + right, strict=True))
    for row, lane in zip(op.buffers, inner.region(op.combiner), strict=True):
        pointer = _element(emitter, row, index)
        step = str(row.type.element.bytes) if width else ""
        inner.lanes.store(replace(pointer, step=step), lane, Lane("true", I1), op)


def _every_other(emitter: RegionEmitter, lane: Lane, width: int, first: int) -> Lane:
    kind = llvm_type(lane.type, 2 * width)
    picks = ", ".join(f"i32 {2 * i + first}" for i in range(width))
    text = emitter.emit.op(f"shufflevector {kind} {lane.text}, {kind} poison, <{width} x i32> <{picks}>")
    return Lane(text, lane.type, width)
