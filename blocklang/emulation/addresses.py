"""Where the lanes of a block are in memory, for the arguments of one launch (Block IR).

Every integer and pointer of a kernel gets a form: for scalars a number per program of the grid, for blocks
the value of the first lane and a stride along each axis, as numbers. What depends on memory has no number.
Loops are looked at in their first round. `x % n` and `minimum(x, n)` along lanes count as `x`: they bend a
range of addresses, and rarely in more than one place.

Pointers are in bytes, from where their array starts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from blocklang.ir.core import Kernel, Operation, Value
from blocklang.ir.types import PointerType, element_type, shape_of
from blocklang.ops import elementwise as e
from blocklang.ops.control import For, If, While
from blocklang.ops.creation import Arange, Constant, NumPrograms, ProgramId, Splat
from blocklang.ops.memory import Load, Offset, pointee
from blocklang.ops.shape import Broadcast, ExpandDims, Trans

Numbers = Any  # int, float, an array with a number per program; None if it is not known

_BINARY: dict[type[Operation], Any] = {
    e.Add: np.add,
    e.Sub: np.subtract,
    e.Mul: np.multiply,
    e.Minimum: np.minimum,
    e.Maximum: np.maximum,
}


@dataclass(frozen=True)
class Form:
    """The value of the first lane, and how much is added along each axis."""

    base: Numbers
    strides: tuple[float | None, ...] = ()

    @property
    def is_uniform(self) -> bool:
        return all(s == 0 for s in self.strides)


class Addresses:
    """The forms of a kernel's integers and pointers in one launch.

    Args:
        arguments: the numbers of scalar arguments by name. Pointers start at 0.
        grid: three extents.
    """

    def __init__(self, kernel: Kernel, arguments: Mapping[str, Any], grid: Sequence[int]) -> None:
        self.grid = grid
        self.forms: dict[Value, Form] = {}
        self.origins: dict[Value, str] = {}
        for value in kernel.args:
            is_pointer = isinstance(value.type, PointerType)
            self.forms[value] = Form(0 if is_pointer else arguments.get(value.name))
            if is_pointer:
                self.origins[value] = value.name
        with np.errstate(all="ignore"):
            self._walk(kernel.body.ops)

    def of(self, value: Value) -> Form:
        """The form of a value; without numbers if nothing is known."""
        known = self.forms.get(value)
        return known if known is not None else Form(None, (None,) * len(shape_of(value.type)))

    def origin(self, value: Value) -> str:
        """The argument that a pointer was made from; "" if it is not known."""
        return self.origins.get(value, "")

    def run_bytes(self, pointer: Value) -> int:
        """How many bytes of a block of addresses lie behind each other, before the next jump."""
        size = pointee(pointer.type).bytes
        run = 1
        pairs = zip(self.of(pointer).strides, shape_of(pointer.type), strict=True)
        for stride, extent in sorted(pairs, key=lambda p: abs(p[0]) if p[0] is not None else math.inf):
            if extent == 1:
                continue
            if stride is None or abs(stride) != size * run:
                break
            run *= extent
        return run * size

    # ---- operations ----

    def _walk(self, ops: Sequence[Operation]) -> None:
        for op in ops:
            if isinstance(op, For):
                self._pair(op.body.args, (op.start, *op.inits))
                self._walk(op.body.ops)
                self._pair(op.results, op.inits)
            elif isinstance(op, While):
                self._pair(op.before.args, op.inits)
                self._walk(op.before.ops)
                self._pair(op.after.args, op.before.terminator.operands[1:])
                self._walk(op.after.ops)
                self._pair(op.results, op.inits)
            elif isinstance(op, If):
                for region in op.regions:
                    self._walk(region.ops)
                if op.results and op.regions[0].terminator is not None:
                    self._pair(op.results, op.regions[0].terminator.operands)
            elif len(op.results) == 1 and _is_address(op.results[0]):
                try:
                    form = self._form(op)
                except OverflowError:  # a constant that no 64-bit integer holds, as one of u64
                    form = None
                if form is not None:
                    self.forms[op.results[0]] = form
                for value in op.operands:
                    if value in self.origins and not isinstance(op, Load):
                        self.origins[op.results[0]] = self.origins[value]

    def _pair(self, inner: Sequence[Value], outer: Sequence[Value]) -> None:
        for value, source in zip(inner, outer, strict=False):
            if source in self.forms:
                self.forms[value] = self.forms[source]
            if source in self.origins:
                self.origins[value] = self.origins[source]

    def _form(self, op: Operation) -> Form | None:
        rank = len(shape_of(op.results[0].type))
        match op:
            case Constant():
                return Form(op.value, (0,) * rank)
            case ProgramId():
                return Form(self._program(op.axis))
            case NumPrograms():
                return Form(self.grid[op.axis])
            case Arange():
                return Form(op.start, (1,))
            case Splat():
                return Form(self.of(op.source).base, (0,) * rank)
            case ExpandDims():
                strides = self.of(op.source).strides
                return Form(self.of(op.source).base, (*strides[: op.axis], 0, *strides[op.axis :]))
            case Broadcast():
                source = self.of(op.source)
                extents = shape_of(op.source.type)
                strides = tuple(0 if n == 1 else s for s, n in zip(source.strides, extents, strict=True))
                return Form(source.base, strides)
            case Trans():
                source = self.of(op.source)
                return Form(source.base, tuple(source.strides[i] for i in op.order))
            case Offset():
                return self._offset(op, rank)
            case e.Cast():
                return self.of(op.source)
        if isinstance(op, e.Elementwise) and not isinstance(op, Load):
            return self._elementwise(op, rank)
        return None

    def _program(self, axis: int) -> Numbers:
        linear = np.arange(math.prod(self.grid), dtype=np.int64)
        x, y, _ = self.grid
        return (linear % x, linear // x % y, linear // (x * y))[axis]

    def _offset(self, op: Offset, rank: int) -> Form:
        size = pointee(op.pointer.type).bytes
        pointer, offset = self._spread(op.pointer, rank), self._spread(op.offset, rank)
        base = _apply(lambda p, o: p + o * size, pointer.base, offset.base)
        strides = tuple(
            None if a is None or b is None else a + b * size
            for a, b in zip(pointer.strides, offset.strides, strict=True)
        )
        return Form(base, strides)

    def _spread(self, value: Value, rank: int) -> Form:
        """A scalar beside blocks has one value in all lanes."""
        form = self.of(value)
        return form if form.strides or not rank else Form(form.base, (0,) * rank)

    def _elementwise(self, op: Operation, rank: int) -> Form:
        forms = [self._spread(v, rank) for v in op.operands]
        base = _value(op, [f.base for f in forms])
        if all(f.is_uniform for f in forms):
            return Form(base, (0,) * rank)
        first = forms[0]
        match op:
            case e.Add() | e.Sub():
                sign = 1 if isinstance(op, e.Add) else -1
                pairs = zip(first.strides, forms[1].strides, strict=True)
                return Form(base, tuple(None if a is None or b is None else a + sign * b for a, b in pairs))
            case e.Mul():
                for form, factor in ((first, forms[1].base), (forms[1], first.base)):
                    other = forms[1] if form is first else first
                    if other.is_uniform and (number := _single(factor)) is not None:
                        return Form(base, tuple(None if s is None else s * number for s in form.strides))
            case e.Rem() | e.Minimum() | e.Maximum() if forms[1].is_uniform:
                return Form(base, first.strides)
        return Form(base, tuple(0 if all(f.strides[a] == 0 for f in forms) else None for a in range(rank)))


def _is_address(value: Value) -> bool:
    element = element_type(value.type)
    return isinstance(element, PointerType) or element.is_integer


def _single(numbers: Numbers) -> float | None:
    """One number for all programs, if they have the same."""
    if numbers is None:
        return None
    found = np.asarray(numbers)
    if found.size and (found == found.flat[0]).all():
        number: float = found.flat[0].item()
        return number
    return None


def _apply(function: Any, *numbers: Numbers) -> Numbers:
    return None if any(n is None for n in numbers) else function(*numbers)


def _value(op: Operation, numbers: Sequence[Numbers]) -> Numbers:
    """What an operation makes of scalars, or of the first lanes of blocks."""
    if any(n is None for n in numbers):
        return None
    if (function := _BINARY.get(type(op))) is not None:
        return function(*numbers)
    match op:
        case e.IntegerDiv():
            return _quotient(*numbers)
        case e.Rem():
            return numbers[0] - _quotient(*numbers) * numbers[1]
        case e.Select():
            return np.where(*numbers)
        case e.Compare():
            compare = {
                "lt": np.less,
                "le": np.less_equal,
                "gt": np.greater,
                "ge": np.greater_equal,
                "eq": np.equal,
                "ne": np.not_equal,
            }
            return compare[op.predicate](*numbers)
    return None


def _quotient(left: Numbers, right: Numbers) -> Numbers:
    """Integer division that truncates; 0 where the divisor is."""
    left, right = np.asarray(left), np.asarray(right)
    safe = np.where(right == 0, 1, right)
    return np.where(right == 0, 0, np.sign(left) * np.sign(safe) * (np.abs(left) // np.abs(safe)))
