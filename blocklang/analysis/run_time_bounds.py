"""Intervals of integer values over a loop nest, computed at run time before the nest.

A bound is a Python integer, or an i64 value that exists before the nest, with limits known at compile time.
The interval of a value says between which bounds it stays over all points of the nest, as a mathematical
integer: whether it fits its type is then one comparison, made once per nest instead of once per lane.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from blocklang.ir.builder import Builder
from blocklang.ir.core import Operation, Value
from blocklang.ir.types import I64, ScalarType
from blocklang.ops.creation import Constant
from blocklang.ops.elementwise import Add, Cast, Compare, Maximum, Minimum, Mul, Sub

_WORD = 1 << 63


@dataclass(frozen=True)
class Bound:
    """A number known before the nest: `low <= value <= high` always holds; a constant has no SSA value."""

    low: int
    high: int
    value: Value | None = None

    @property
    def constant(self) -> int | None:
        return self.low if self.low == self.high else None


def constant_bound(number: int) -> Bound:
    return Bound(number, number)


@dataclass(frozen=True)
class Interval:
    """A value stays between two bounds, both included."""

    low: Bound
    high: Bound

    @property
    def is_static(self) -> bool:
        """True if both bounds are compile-time constants."""
        return self.low.constant is not None and self.high.constant is not None


def static_interval(low: int, high: int) -> Interval:
    return Interval(constant_bound(low), constant_bound(high))


def type_interval(type: ScalarType) -> Interval:
    return static_interval(type.minimum, type.maximum)


class BoundArithmetic:
    """Creates the operations that compute bounds, folding what is constant.

    No operation overflows: a result whose limits leave 64 bits is refused with OverflowError.
    """

    def __init__(self, builder: Builder) -> None:
        self.builder = builder

    def ssa(self, bound: Bound) -> Value:
        """The bound as an i64 value."""
        if bound.constant is not None:
            return self.builder.value(Constant, value=bound.constant, result_types=[I64])
        assert bound.value is not None
        return bound.value

    def of_scalar(self, value: Value) -> Bound:
        """A scalar integer from before the nest as a bound."""
        type = value.type
        assert isinstance(type, ScalarType)
        op = value.defining_op
        if isinstance(op, Constant):
            return constant_bound(int(op.value))
        wide = value if type == I64 else self.builder.value(Cast, value, result_types=[I64])
        if isinstance(op, Cast) and isinstance(op.source.type, ScalarType) and not op.source.type.is_float:
            narrow = op.source.type
            if type.minimum <= narrow.minimum and narrow.maximum <= type.maximum:  # it was extended
                return Bound(narrow.minimum, narrow.maximum, wide)
        return Bound(type.minimum, type.maximum, wide)

    def _binary(self, cls: type[Operation], a: Bound, b: Bound, evaluate: Callable[[int, int], int]) -> Bound:
        corners = [evaluate(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
        low, high = min(corners), max(corners)
        if low < -_WORD or high >= _WORD:
            raise OverflowError
        if a.constant is not None and b.constant is not None:
            return constant_bound(low)
        return Bound(low, high, self.builder.value(cls, self.ssa(a), self.ssa(b)))

    def add(self, a: Bound, b: Bound) -> Bound:
        if b.constant == 0:
            return a
        return b if a.constant == 0 else self._binary(Add, a, b, lambda x, y: x + y)

    def sub(self, a: Bound, b: Bound) -> Bound:
        return a if b.constant == 0 else self._binary(Sub, a, b, lambda x, y: x - y)

    def mul(self, a: Bound, b: Bound) -> Bound:
        if b.constant == 1:
            return a
        if a.constant == 1:
            return b
        if 0 in (a.constant, b.constant):
            return constant_bound(0)
        return self._binary(Mul, a, b, lambda x, y: x * y)

    def minimum(self, a: Bound, b: Bound) -> Bound:
        if a == b or a.high <= b.low:
            return a
        return b if b.high <= a.low else self._binary(Minimum, a, b, min)

    def maximum(self, a: Bound, b: Bound) -> Bound:
        if a == b or a.low >= b.high:
            return a
        return b if b.low >= a.high else self._binary(Maximum, a, b, max)

    # ---- intervals ----

    def add_intervals(self, a: Interval, b: Interval) -> Interval:
        return Interval(self.add(a.low, b.low), self.add(a.high, b.high))

    def sub_intervals(self, a: Interval, b: Interval) -> Interval:
        return Interval(self.sub(a.low, b.high), self.sub(a.high, b.low))

    def mul_intervals(self, a: Interval, b: Interval) -> Interval:
        corners = [
            self.mul(x, y) for x in dict.fromkeys((a.low, a.high)) for y in dict.fromkeys((b.low, b.high))
        ]
        low = high = corners[0]
        for corner in corners[1:]:
            low, high = self.minimum(low, corner), self.maximum(high, corner)
        return Interval(low, high)

    # ---- conditions ----

    def at_least(self, bound: Bound, limit: Bound) -> Value | bool:
        """The condition `bound >= limit`: decided, or an i1 value."""
        if bound.low >= limit.high:
            return True
        if bound.high < limit.low:
            return False
        return self.builder.value(Compare, self.ssa(bound), self.ssa(limit), predicate="ge")

    def within(self, interval: Interval, low: Bound, high: Bound) -> list[Value] | None:
        """The conditions for `interval` to lie in [low, high]; None if it cannot."""
        conditions = [self.at_least(interval.low, low), self.at_least(high, interval.high)]
        if False in conditions:
            return None
        return [c for c in conditions if isinstance(c, Value)]
