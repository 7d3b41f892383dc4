"""Counts what the interpreter moves, operation by operation: the count that counted kernels must meet.

Nothing of `blocklang.passes.count_accesses` is used: evaluators are wrapped, and the lanes in which a mask
holds are summed whenever one runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from blocklang.abi import AccessCounts
from blocklang.interpreter import run_kernel
from blocklang.interpreter.evaluation import EVALUATORS, Machine
from blocklang.ir.core import Kernel, Operation, Value
from blocklang.ir.types import BufferType, element_type
from blocklang.ops.atomics import AtomicCas, AtomicRmw
from blocklang.ops.memory import Load, Store
from blocklang.ops.order import HistogramBuffer, SortBuffer
from blocklang.ops.scan import ScanBuffers
from blocklang.ops.tile import BufferOp, ContractBuffers, Lanes, Read, TreeReduce, Write

# (line, space, is it written) -> bytes
Bytes = Counter[tuple[int, str, bool]]


def counted_bytes(counts: AccessCounts, counters: Sequence[int]) -> Bytes:
    """What the counters of a counted kernel say."""
    found: Bytes = Counter()
    for access in counts.accesses:
        found[access.location.line, access.space, access.writes] += access.bytes * counters[access.moves]
    return +found


def interpreted_bytes(kernel: Kernel, arguments: Sequence[Any], grid: Sequence[int]) -> Bytes:
    """What a placed kernel moves, its buffers having spaces; the arrays are used."""
    found: Bytes = Counter()
    with watching(found):
        run_kernel(kernel, arguments, grid)
    return +found


@contextmanager
def watching(found: Bytes) -> Iterator[None]:
    """Count into `found` what the interpreter moves while the context lasts."""
    watched: list[type[Operation]] = [
        *(Load, Store, AtomicRmw, AtomicCas),
        *(Read, Write, TreeReduce, ScanBuffers, ContractBuffers),
    ]
    watched += [SortBuffer, HistogramBuffer]
    saved = {cls: EVALUATORS[cls] for cls in watched}
    try:
        for cls in watched:
            EVALUATORS[cls] = _watched(saved[cls], found)
        yield
    finally:
        EVALUATORS.update(saved)


def _watched(evaluate: Callable[[Any, Machine], Any], found: Bytes) -> Callable[[Any, Machine], Any]:
    def count(op: Any, machine: Machine) -> Any:
        for space, is_written, size in _moves(op, machine):
            found[op.location.line, space, is_written] += size
        return evaluate(op, machine)

    return count


def _moves(op: Any, machine: Machine) -> Iterator[tuple[str, bool, int]]:
    match op:
        case AtomicRmw() | AtomicCas():
            size = element_type(op.pointer.type).element.bytes  # type: ignore[union-attr]
            mask = machine.optional(op.mask) if isinstance(op, AtomicRmw) else None
            lanes = _live_lanes(op, machine, mask)
            yield "global", False, size * lanes
            yield "global", True, size * lanes
        case Load() | Store():
            size = element_type(op.pointer.type).element.bytes  # type: ignore[union-attr]
            yield "global", isinstance(op, Store), size * _live_lanes(op, machine, machine.optional(op.mask))
        case Read() | Write():
            size = op.buffer.type.element.bytes * _live_lanes(op, machine, None)
            yield _space(op.buffer), isinstance(op, Write), size
        case TreeReduce():
            for row in op.buffers:
                for is_written, count in enumerate(_fold_by_hand(op.extent)):
                    yield _space(row), bool(is_written), count * row.type.element.bytes
        case ScanBuffers():
            for value in op.buffers:
                yield _space(value), False, _matrix_bytes(value)
                yield _space(value), True, _matrix_bytes(value)
        case ContractBuffers():
            for value in (op.a, op.b):
                yield _space(value), False, _matrix_bytes(value)
            if op.start != "zero":  # what the accumulator holds is of no account there
                yield _space(op.acc), False, _matrix_bytes(op.acc)
            yield _space(op.acc), True, _matrix_bytes(op.acc)
        case SortBuffer() | HistogramBuffer():
            yield _space(op.source), False, _matrix_bytes(op.source)
            yield _space(op.output), True, _matrix_bytes(op.output)


def _live_lanes(op: Operation, machine: Machine, mask: Any) -> int:
    """How many lanes of the loop around `op`, one if there is none, are live under `mask`."""
    parent = op.parent_op
    while parent is not None and not isinstance(parent, Lanes):
        parent = parent.parent_op
    lanes = np.size(machine[parent.body.args[0]]) if isinstance(parent, Lanes) else 1
    live = machine.live(mask)
    return lanes if live is None else int(np.broadcast_to(live, (lanes,)).sum())


def _fold_by_hand(extent: int) -> tuple[int, int]:
    """Reads and writes of a row that is folded in place: pairs, then an odd element, then the result."""
    reads = writes = 0
    while extent > 1:
        for _ in range(extent // 2):
            reads, writes = reads + 2, writes + 1
        if extent % 2:
            reads, writes = reads + 1, writes + 1
        extent = extent // 2 + extent % 2
    return reads + 1, writes


def _space(value: Value) -> str:
    op = value.defining_op
    while op is not None and not isinstance(op, BufferOp):
        op = op.operands[0].defining_op
    assert op is not None
    return str(op.attributes.get("space", "scratch"))


def _matrix_bytes(value: Value) -> int:
    assert isinstance(value.type, BufferType)
    return int(np.prod(value.type.shape)) * value.type.element.bytes
