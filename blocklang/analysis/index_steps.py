"""How integers grow with the index of a loop (placed Tile IR).

The step of a value is what is added to it when the index grows by one, if nothing wraps: a constant, or
None if it is not constant. Whether something wraps is another question (`run_time_bounds`). Values are
visited from a stack, each once: bodies may chain thousands of operations.
"""

from __future__ import annotations

from blocklang.ir.core import Operation, Region, Value
from blocklang.ir.types import ScalarType
from blocklang.ops.creation import Constant
from blocklang.ops.elementwise import Add, Cast, Mul, Sub
from blocklang.ops.tile import BufferOp, Lanes, Read, Write


class IndexSteps:
    """Answers for any index, with memory."""

    def __init__(self) -> None:
        self._known: dict[Value, dict[Value, int | None]] = {}

    def of(self, value: Value, index: Value) -> int | None:
        """The step of `value` with `index`; None if it is not a constant."""
        known = self._known.setdefault(index, {index: 1})
        stack = [value]
        while stack:
            current = stack[-1]
            op = current.defining_op
            if current in known:
                stack.pop()
            elif op is None or op.regions:
                known[current] = 0 if op is None or _stands_outside(op, index) else None
            elif missing := [v for v in op.operands if v not in known]:
                stack += missing
            else:
                known[current] = _combine(op, known)
        return known[value]

    def depends(self, value: Value, index: Value) -> bool:
        """True if `index` occurs in the expression of `value`, even where it cancels."""
        stack, seen = [value], set()
        while stack:
            current = stack.pop()
            if current is index:
                return True
            op = current.defining_op
            if op is not None and current not in seen:
                seen.add(current)
                stack += op.operands
        return False


def _stands_outside(op: Operation, index: Value) -> bool:
    """True if an operation does not lie in the loop of an index: its results are the same all along."""
    return isinstance(index.owner, Region) and not index.owner.encloses(op)


def _combine(op: Operation, known: dict[Value, int | None]) -> int | None:
    steps = [known[v] for v in op.operands]
    if all(step == 0 for step in steps):
        return 0
    match op:
        case Cast() if isinstance(op.source.type, ScalarType) and not op.source.type.is_float:
            return steps[0]
        case Add() | Sub() if None not in steps:
            sign = 1 if isinstance(op, Add) else -1
            return (steps[0] or 0) + sign * (steps[1] or 0)
        case Mul():
            for factor, step in ((op.lhs, steps[1]), (op.rhs, steps[0])):
                if isinstance(factor.defining_op, Constant) and step is not None:
                    return int(factor.defining_op.value) * step
    return None


def crosses_rows(loop: Lanes) -> bool:
    """True if neighbouring lanes of a loop lie in different rows of a buffer that it reads or writes, one of
    row-major elements.
    """
    lane = loop.body.args[0]
    accesses = [op for op in loop.body.walk() if isinstance(op, (Read, Write))]
    return any(lane in op.indices[:-1] and not _has_panels(op.buffer) for op in accesses)


def _has_panels(buffer: Value) -> bool:
    op = buffer.defining_op
    return isinstance(op, BufferOp) and op.panel > 0
