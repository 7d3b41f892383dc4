"""How a block's value changes from lane to lane along each axis of its shape (abstract Tile IR).

The stride along an axis is an integer if the value grows by just that much per lane (0: constant along the
axis; for pointers in elements), or None if that is not known at compile time. Strides ignore wrap-around.
How far they can be relied on is a form's second part: the value is the sum of its indices times something
uniform, modulo two to the power of `bits`, the width of the narrowest integer on its way; 0 if it is no such
sum.
"""

from __future__ import annotations

from dataclasses import dataclass

from blocklang.ir.core import Kernel, Operation, Value
from blocklang.ir.index_map import IndexMap, coefficient, is_affine
from blocklang.ir.types import ScalarType, element_type, shape_of
from blocklang.ops.creation import Constant
from blocklang.ops.elementwise import Add, Cast, Mul, Sub
from blocklang.ops.memory import Offset
from blocklang.ops.scan import Running
from blocklang.ops.tile import Iterate

Strides = tuple[int | None, ...]
_EXACT = 64  # bits of a pointer


@dataclass(frozen=True)
class LaneForm:
    """Strides along the axes, and the bits modulo which the value is a sum over indices."""

    strides: Strides
    bits: int = _EXACT

    @property
    def is_uniform(self) -> bool:
        return all(s == 0 for s in self.strides)

    def is_distinct(self, space: tuple[int, ...]) -> bool:
        """True if no two points of the space have one value; known for constant strides that nest only."""
        moving = [abs(s) if s is not None else 0 for s, n in zip(self.strides, space, strict=True) if n > 1]
        extents = [n for n in space if n > 1]
        reach = 0
        for stride, extent in sorted(zip(moving, extents, strict=True)):
            if stride <= reach:
                return False
            reach += stride * (extent - 1)
        return reach < 1 << self.bits


def _unknown(rank: int) -> LaneForm:
    return LaneForm((None,) * rank, 0)


def _add(lhs: LaneForm, rhs: LaneForm, sign: int = 1) -> LaneForm:
    pairs = zip(lhs.strides, rhs.strides, strict=True)
    strides = tuple(None if a is None or b is None else a + sign * b for a, b in pairs)
    return LaneForm(strides, min(lhs.bits, rhs.bits))


class LaneStrides:
    """Answers, with memory, for the values of one kernel."""

    def __init__(self, kernel: Kernel) -> None:
        self._known: dict[Value, LaneForm] = {}
        for op in kernel.walk():  # operands come before their users, so nothing recurses
            if isinstance(op, Iterate) and not op.combine:
                body = self._body(op)
                for value, lane in zip(op.results, op.body.ops[-1].operands, strict=True):
                    self._known[value] = body[lane]

    def of(self, value: Value) -> LaneForm:
        """The form of a block value along its own axes."""
        return self._known.get(value, _unknown(len(shape_of(value.type))))

    def through(self, value: Value, map: IndexMap) -> LaneForm:
        """The form of `value` read at `map` of an iteration space, along the axes of that space."""
        own = self.of(value)
        result: list[int | None] = []
        for axis in range(map.rank):
            total: int | None = 0
            for stride, expr in zip(own.strides, map.exprs, strict=True):
                step = coefficient(expr, axis)
                if step == 0:
                    continue
                total = None if total is None or stride is None or step is None else total + stride * step
            result.append(total)
        is_sum = None not in result or all(is_affine(e) for e in map.exprs)
        return LaneForm(tuple(result), own.bits if is_sum else 0)

    def _body(self, op: Iterate) -> dict[Value, LaneForm]:
        """The form of every value in the body of an iteration, along its space."""
        rank = len(op.space)
        known: dict[Value, LaneForm] = {}
        for axis in range(rank):
            known[op.body.args[axis]] = LaneForm(tuple(int(a == axis) for a in range(rank)))
        for arg, value, map in zip(op.body.args[rank:], op.inputs, op.maps, strict=True):
            known[arg] = self.through(value, map)
        for inner in op.body.ops:
            for result in inner.results:
                known[result] = _combine(inner, known, rank)
        for value in op.body.terminator.operands:
            known.setdefault(value, LaneForm((0,) * rank))
        return known

    def accesses(self, op: Iterate, pointers: list[Value]) -> list[LaneForm]:
        """The forms of lane pointers in the body of `op`."""
        known = self._body(op)
        return [known.get(p, LaneForm((0,) * len(op.space))) for p in pointers]


def _combine(op: Operation, known: dict[Value, LaneForm], rank: int) -> LaneForm:
    if isinstance(op, Running):  # differs from lane to lane, even of equal lanes
        return _unknown(rank)
    uniform = LaneForm((0,) * rank)
    operands = [known.get(v, uniform) for v in op.operands]
    form = _combined_strides(op, operands, rank)
    if form.is_uniform and all(o.is_uniform for o in operands):
        return uniform
    element = element_type(op.results[0].type)
    if isinstance(element, ScalarType):
        return LaneForm(form.strides, 0 if element.is_float else min(form.bits, element.bits))
    return form


def _combined_strides(op: Operation, operands: list[LaneForm], rank: int) -> LaneForm:
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
                if isinstance(factor, Constant) and isinstance(factor.value, int):
                    return _scaled(other, int(factor.value))
            bits = min(o.bits for o in operands) if any(o.is_uniform for o in operands) else 0
            return LaneForm(_zero_or_unknown(operands, rank), bits)
    return LaneForm(_zero_or_unknown(operands, rank), 0)


def _scaled(form: LaneForm, factor: int) -> LaneForm:
    return LaneForm(tuple(None if s is None else s * factor for s in form.strides), form.bits)


def _zero_or_unknown(operands: list[LaneForm], rank: int) -> Strides:
    """Constant along the axes on which no operand changes."""
    return tuple(0 if all(o.strides[axis] == 0 for o in operands) else None for axis in range(rank))
