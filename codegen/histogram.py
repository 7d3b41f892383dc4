"""Counting, `histogram_buffer`: several tables side by side, added up at the end.

An addition to a count waits for the one before it if both are of one bin; lanes next to each other count in
tables of their own, so that they do not.
"""

from __future__ import annotations

from collections.abc import Callable

from blocklang.codegen.emitter import llvm_scalar, vector_of
from blocklang.codegen.loops import RegionEmitter
from blocklang.ir.core import Operation
from blocklang.ops.order import HistogramBuffer

UNROLL = 8
SIZE = 4  # bytes of a count


def histogram_buffer(emitter: RegionEmitter, op: Operation) -> None:
    """Emit the counting of the numbers in a buffer."""
    assert isinstance(op, HistogramBuffer)
    emit = emitter.emit
    source, tables, output = (emitter.text(v) for v in (op.source, op.tables, op.output))
    count, entries = op.tables.type.shape
    extent, bins = op.source.type.numel, op.output.type.numel
    width = emitter.lanes.target.vector_bytes // SIZE
    kind = vector_of("i32", width)
    number_type = op.source.type.element
    scalar = llvm_scalar(number_type)

    # Vectors may reach past the end of a buffer: there is room for one.
    def clear(i: str) -> None:
        emit.do(f"store {kind} zeroinitializer, ptr {_at(emitter, tables, i)}, align {SIZE}")

    emitter.counted("0", str(count * entries), width, clear)

    def add_one(i: str, table: int) -> None:
        place = emit.offset(source, emit.mul(i, number_type.bytes))
        number = emit.op(f"load {scalar}, ptr {place}, align {number_type.bytes}")
        place = _at(emitter, tables, emit.add(emit.op(f"zext {scalar} {number} to i64"), table * entries))
        counted = emit.op(f"load i32, ptr {place}, align {SIZE}")
        emit.do(f"store i32 {emit.op(f'add i32 {counted}, 1')}, ptr {place}, align {SIZE}")

    def some(first: str) -> None:
        for step in range(UNROLL):
            add_one(emit.add(first, step), step % count)

    whole = extent // UNROLL * UNROLL
    if whole:
        emitter.counted("0", str(whole), UNROLL, some)
    if whole < extent:
        emitter.counted(str(whole), str(extent), 1, _in_first(add_one))

    def add_tables(i: str) -> None:
        total = ""
        for table in range(count):
            place = _at(emitter, tables, emit.add(i, table * entries))
            part = emit.op(f"load {kind}, ptr {place}, align {SIZE}")
            total = emit.op(f"add {kind} {total}, {part}") if total else part
        emit.do(f"store {kind} {total}, ptr {_at(emitter, output, i)}, align {SIZE}")

    emitter.counted("0", str(bins), width, add_tables)


def _at(emitter: RegionEmitter, pointer: str, index: str) -> str:
    return emitter.emit.offset(pointer, emitter.emit.mul(index, SIZE))


def _in_first(add_one: Callable[[str, int], None]) -> Callable[[str], None]:
    return lambda i: add_one(i, 0)
