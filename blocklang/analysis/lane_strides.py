"""How a block's value changes from lane to lane along each axis of its shape (abstract Tile IR).

The stride along an axis is an integer if the value grows by just that much per lane (0: constant along the
axis; for pointers in elements), or None if that is not known at compile time. Wrap-around is ignored:
strides steer the choice of loops, and never decide whether a result is right.
"""

from __future__ import annotations

from blocklang.ir.core import Kernel, Operation, Value
from blocklang.ir.index_map import IndexMap, coefficient
from blocklang.ir.types import shape_of
from blocklang.ops.creation import Constant
from blocklang.ops.elementwise import Add, Cast, Mul, Sub
from blocklang.ops.memory import Offset
from blocklang.ops.tile import Iterate

Strides = tuple[int | None, ...]


def _add(lhs: Strides, rhs: Strides, sign: int = 1) -> Strides:
    return tuple(None if a is None or b is None else a + sign * b for a, b in zip(lhs, rhs, strict=True))


class LaneStrides:
    """Answers, with memory, for the values of one kernel."""

    def __init__(self, kernel: Kernel) -> None:
        self._known: dict[Value, Strides] = {}
        for op in kernel.walk():  # operands come before their users, so nothing recurses
            if isinstance(op, Iterate) and not op.combine:
                body = self._body(op)
                for value, lane in zip(op.results, op.body.ops[-1].operands, strict=True):
                    self._known[value] = body[lane]

    def of(self, value: Value) -> Strides:
        """Strides of a block value along its own axes."""
        return self._known.get(value, (None,) * len(shape_of(value.type)))

    def through(self, value: Value, map: IndexMap) -> Strides:
        """Strides of `value` read at `map` of an iteration space, along the axes of that space."""
        own = self.of(value)
        result: list[int | None] = []
        for axis in range(map.rank):
            total: int | None = 0
            for stride, expr in zip(own, map.exprs, strict=True):
                step = coefficient(expr, axis)
                if step == 0:
                    continue
                total = None if total is None or stride is None or step is None else total + stride * step
            result.append(total)
        return tuple(result)

    def _body(self, op: Iterate) -> dict[Value, Strides]:
        """Strides of every value in the body of an iteration, along its space."""
        rank = len(op.space)
        known: dict[Value, Strides] = {}
        for axis in range(rank):
            known[op.body.args[axis]] = tuple(int(a == axis) for a in range(rank))
        for arg, value, map in zip(op.body.args[rank:], op.inputs, op.maps, strict=True):
            known[arg] = self.through(value, map)
        for inner in op.body.ops:
            for result in inner.results:
                known[result] = _combine(inner, known, rank)
        for value in op.body.terminator.operands:
            known.setdefault(value, (0,) * rank)
        return known

    def accesses(self, op: Iterate, pointers: list[Value]) -> list[Strides]:
        """Strides of lane pointers in the body of `op`."""
        known = self._body(op)
        return [known.get(p, (0,) * len(op.space)) for p in pointers]


def _combine(op: Operation, known: dict[Value, Strides], rank: int) -> Strides:
    uniform: Strides = (0,) * rank
    operands = [known.get(v, uniform) for v in op.operands]
    match op:
        case Add() | Offset():
            return _add(operands[0], operands[1])
        case Sub():
            return _add(operands[0], operands[1], -1)
        case Cast():
            return operands[0]
        case Mul():
            for value, other in ((op.lhs, operands[1]), (op.rhs, operands[0])):
                factor = value.defining_op
                if isinstance(factor, Constant):
                    return tuple(None if s is None else s * int(factor.value) for s in other)
    return tuple(0 if all(s[axis] == 0 for s in operands) else None for axis in range(rank))
