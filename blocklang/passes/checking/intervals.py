"""The interval in which the live lanes of an address stay, as a few scalars, and when it can be trusted.

An interval is that of exact arithmetic, so it holds only if no operation wraps: each one that might adds a
condition that its own interval fits its type. A mask that compares a block with a scalar narrows that block:
where `i < n` is false nothing is accessed.
"""

from __future__ import annotations

from typing import Literal

from blocklang.analysis.run_time_bounds import (
    Bound,
    BoundArithmetic,
    Interval,
    constant_bound,
    static_interval,
    type_interval,
)
from blocklang.ir.builder import Builder
from blocklang.ir.core import Operation, Value
from blocklang.ir.index_map import IndexMap, compose, identity_map
from blocklang.ir.types import I1, I64, PointerType, ScalarType, element_type, shape_of
from blocklang.ops.control import ControlFlow
from blocklang.ops.creation import Arange, Constant, Splat
from blocklang.ops.elementwise import (
    Add,
    And,
    Cast,
    Compare,
    IntegerDiv,
    Maximum,
    Minimum,
    Mul,
    Neg,
    Rem,
    Select,
    Shl,
    Sub,
)
from blocklang.ops.memory import Offset
from blocklang.ops.shape import Cat, ShapeOperation
from blocklang.passes.checking.exact import ExactArithmetic
from blocklang.passes.uniform import constant_of, make_constant

# A 64-bit number of the user's, such as a stride, is taken to be no larger, on a condition.
_USUAL = 1 << 31
_FAR = 1 << 50  # and what is computed in 64 bits
_DEPTH = 200  # of the operations behind an address
_FLIPPED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}


# Where the lanes of an access stand in a block: a map from their index; None for a scalar, "" if not known.
Place = IndexMap | Literal[""] | None
_ANYWHERE: Literal[""] = ""


class Unbounded(Exception):
    """The value has no useful interval: it was loaded, for instance."""


class LiveIntervals:
    """Intervals of the values behind one access.

    Args:
        builder: makes the scalars.
        shape: of the access.
        mask: of the access; None if all its lanes are live.
        exact: says what may wrap.

    Attributes:
        conditions: i1 scalars that must all hold for the intervals to be true.
    """

    def __init__(
        self, builder: Builder, shape: tuple[int, ...], mask: Value | None, exact: ExactArithmetic
    ) -> None:
        self.builder = builder
        self.shape = shape
        self.exact = exact
        self.bounds = BoundArithmetic(builder)
        self.conditions: list[Value] = []
        self._known: dict[tuple[Value, Place], Interval] = {}
        self._limits: dict[tuple[Value, Place], list[tuple[str, Value]]] = {}
        self._depth = 0
        if mask is not None:
            self._limit(mask, _within(mask, identity_map(len(shape))))

    # ---- masks ----

    def _limit(self, mask: Value, place: Place) -> None:
        """Note which blocks a mask compares with a scalar."""
        match mask.owner:
            case And() as both:
                self._limit(both.lhs, _within(both.lhs, place))
                self._limit(both.rhs, _within(both.rhs, place))
            case ShapeOperation() | Splat() as moved:
                self._limit(moved.source, self._behind(moved, place))
            case Compare(predicate="lt" | "le" | "gt" | "ge" | "eq") as compared:
                for value, other, predicate in (
                    (compared.lhs, compared.rhs, compared.predicate),
                    (compared.rhs, compared.lhs, _FLIPPED[compared.predicate]),
                ):
                    scalar = _scalar_source(other)
                    if scalar is not None and _is_integer(value):
                        key = self._unmoved(value, _within(value, place))
                        self._limits.setdefault(key, []).append((predicate, scalar))

    def _behind(self, op: ShapeOperation | Splat, place: Place) -> Place:
        """Where the lanes of the result of an operation stand in its operand."""
        if isinstance(op, Splat):
            return None
        return compose(op.index_map(), place, self.shape) if isinstance(place, IndexMap) else place

    def _unmoved(self, value: Value, place: Place) -> tuple[Value, Place]:
        """The value whose lanes a value shows, and where they stand in it."""
        while isinstance(op := value.owner, (ShapeOperation, Splat)):
            value, place = op.source, self._behind(op, place)
        return value, place

    def _narrowed(self, value: Value, place: Place, interval: Interval) -> Interval:
        low, high = interval.low, interval.high
        for predicate, scalar in self._limits.get((value, place), ()):
            limit = self._point(scalar)
            if predicate in ("lt", "le", "eq"):
                last = self.bounds.sub(limit, constant_bound(int(predicate == "lt")))
                high = self.bounds.minimum(high, last)
            if predicate in ("gt", "ge", "eq"):
                first = self.bounds.add(limit, constant_bound(int(predicate == "gt")))
                low = self.bounds.maximum(low, first)
        return Interval(low, high)

    def _point(self, scalar: Value) -> Bound:
        """A scalar as it is, wrapped or not."""
        constant = constant_of(scalar)
        if constant is not None:
            return constant_bound(int(constant))
        type_ = scalar.type
        assert isinstance(type_, ScalarType)
        bound = self.bounds.of_scalar(scalar)
        if bound.low >= -_USUAL and bound.high < 2 * _USUAL:
            return bound
        usual = Interval(bound, bound)
        limits = constant_bound(-_USUAL), constant_bound(_USUAL)
        if type_.bits == 64 and not type_.is_signed:
            # The cast to i64 keeps what is small, and makes the rest negative.
            limits = constant_bound(0), limits[1]
            usual = Interval(*[Bound(I64.minimum, I64.maximum, bound.value)] * 2)
        self._require(usual, *limits)
        return Bound(limits[0].low, limits[1].high, bound.value)

    def _require(self, interval: Interval, low: Bound, high: Bound) -> None:
        conditions = self.bounds.within(interval, low, high)
        if conditions is None:
            raise Unbounded
        self.conditions += conditions

    # ---- values ----

    def of(self, value: Value, place: Place) -> Interval:
        """The interval of an integer value over the live lanes.

        Args:
            place: where the lanes of the access stand in the value.

        Raises:
            Unbounded: it has none.
            OverflowError: its bounds may leave 64 bits.
        """
        place = _within(value, place)
        if (value, place) not in self._known:
            self._depth += 1
            if self._depth > _DEPTH:
                raise Unbounded
            interval = self._fitting(value, self._computed(value, place))
            self._known[value, place] = self._narrowed(value, place, interval)
            self._depth -= 1
        return self._known[value, place]

    def _fitting(self, value: Value, interval: Interval) -> Interval:
        """The interval, on the condition that it fits the type of the value."""
        type_ = element_type(value.type)
        assert isinstance(type_, ScalarType)
        lowest, highest = type_.minimum, type_.maximum
        if type_.bits == 64:
            lowest, highest = (-_FAR if type_.is_signed else 0), _FAR
        self._require(interval, constant_bound(lowest), constant_bound(highest))
        return Interval(_clipped(interval.low, lowest, highest), _clipped(interval.high, lowest, highest))

    def _computed(self, value: Value, place: Place) -> Interval:
        owner = value.owner
        constant = constant_of(value)
        if constant is not None:
            return static_interval(int(constant), int(constant))
        if not isinstance(owner, Operation) or isinstance(owner, ControlFlow):
            handed_on = self.exact.may_wrap(value) and not shape_of(value.type)
            return self._leaf(self.exact.companion(value) if handed_on else value)
        bounds = self.bounds
        match owner:
            case Arange():
                return static_interval(owner.start, owner.end - 1)
            case Splat() | ShapeOperation():
                return self.of(owner.source, self._behind(owner, place))
            case Cat():
                return self._union(self.of(owner.first, _ANYWHERE), self.of(owner.second, _ANYWHERE))
            case Add():
                return bounds.add_intervals(self.of(owner.lhs, place), self.of(owner.rhs, place))
            case Sub():
                return bounds.sub_intervals(self.of(owner.lhs, place), self.of(owner.rhs, place))
            case Mul():
                return bounds.mul_intervals(self.of(owner.lhs, place), self.of(owner.rhs, place))
            case Neg():
                return bounds.sub_intervals(static_interval(0, 0), self.of(owner.source, place))
            case Shl() if (count := constant_of(owner.rhs)) is not None and 0 <= count < 31:
                factor = 1 << int(count)
                return bounds.mul_intervals(self.of(owner.lhs, place), static_interval(factor, factor))
            case Cast() if _is_integer(owner.source):
                return self.of(owner.source, place)
            case Minimum():
                return self._pairwise(bounds.minimum, self.of(owner.lhs, place), self.of(owner.rhs, place))
            case Maximum():
                return self._pairwise(bounds.maximum, self.of(owner.lhs, place), self.of(owner.rhs, place))
            case Select() if not shape_of(value.type):
                self.of(owner.if_true, place)
                self.of(owner.if_false, place)
                return self._leaf(value)
            case Select():
                return self._union(self.of(owner.if_true, place), self.of(owner.if_false, place))
            case Rem() if shape_of(value.type):
                return self._remainder(self.of(owner.lhs, place), self.of(owner.rhs, place))
            case IntegerDiv() if shape_of(value.type):
                return self._quotient(self.of(owner.lhs, place), self.of(owner.rhs, place))
        if not shape_of(value.type):
            for operand in owner.operands:  # none of them may have wrapped either
                if _is_integer(operand) and operand.type != I1:
                    self.of(operand, place)
        return self._leaf(value)

    def _leaf(self, value: Value) -> Interval:
        """What is known of a value by itself."""
        type_ = element_type(value.type)
        assert isinstance(type_, ScalarType)
        if not shape_of(value.type):
            point = self._point(value)
            return Interval(point, point)
        if type_.bits > 16 or self.exact.may_wrap(value):
            raise Unbounded
        return type_interval(type_)

    def _union(self, a: Interval, b: Interval) -> Interval:
        return Interval(self.bounds.minimum(a.low, b.low), self.bounds.maximum(a.high, b.high))

    @staticmethod
    def _pairwise(pick: object, a: Interval, b: Interval) -> Interval:
        assert callable(pick)
        return Interval(pick(a.low, b.low), pick(a.high, b.high))

    def _remainder(self, dividend: Interval, divisor: Interval) -> Interval:
        """Of a dividend that is not negative by a divisor that is positive."""
        self._require(Interval(dividend.low, dividend.low), constant_bound(0), constant_bound(I64.maximum))
        self._require(Interval(divisor.low, divisor.low), constant_bound(1), constant_bound(I64.maximum))
        last = self.bounds.sub(divisor.high, constant_bound(1))
        return Interval(constant_bound(0), self.bounds.minimum(dividend.high, last))

    def _quotient(self, dividend: Interval, divisor: Interval) -> Interval:
        """Of a dividend that is not negative by a constant that is positive."""
        number = divisor.low.constant
        if number is None or number != divisor.high.constant or number < 1:
            raise Unbounded
        self._require(Interval(dividend.low, dividend.low), constant_bound(0), constant_bound(I64.maximum))
        high = dividend.high
        if high.constant is not None:
            return static_interval(0, high.constant // number)
        quotient = self.builder.value(
            IntegerDiv, self.bounds.ssa(high), make_constant(self.builder, number, I64)
        )
        return Interval(constant_bound(0), Bound(min(high.low // number, 0), high.high // number, quotient))

    # ---- pointers ----

    def of_pointer(self, pointer: Value) -> tuple[Value, Interval]:
        """The scalar pointer that all lanes are offsets from, and the interval of their offsets in bytes.

        Raises:
            Unbounded, OverflowError: as `of`.
        """
        offset = static_interval(0, 0)
        place: Place = identity_map(len(self.shape))
        while True:
            owner = pointer.owner
            match owner:
                case Offset():
                    size = _element_bytes(owner.pointer)
                    step = self.bounds.mul_intervals(
                        self.of(owner.offset, place), static_interval(size, size)
                    )
                    offset = self.bounds.add_intervals(offset, step)
                    pointer = owner.pointer
                case Splat() | ShapeOperation():
                    pointer, place = owner.source, self._behind(owner, place)
                case Cast() if isinstance(element_type(owner.source.type), PointerType):
                    pointer = owner.source
                case _ if shape_of(pointer.type):
                    raise Unbounded
                case _:
                    excess = self.exact.excess(self.builder, pointer)
                    if excess is not None:
                        none = make_constant(self.builder, 0, I64)
                        self.conditions.append(self.builder.value(Compare, excess, none, predicate="eq"))
                    return pointer, offset


def _element_bytes(pointer: Value) -> int:
    type_ = element_type(pointer.type)
    assert isinstance(type_, PointerType)
    return type_.element.bytes


def _is_integer(value: Value) -> bool:
    element = element_type(value.type)
    return isinstance(element, ScalarType) and element.is_integer


def _clipped(bound: Bound, lowest: int, highest: int) -> Bound:
    """A bound that is known to lie between two numbers."""
    if bound.constant is not None:
        return bound
    return Bound(max(bound.low, lowest), min(bound.high, highest), bound.value)


def _scalar_source(value: Value) -> Value | None:
    """The scalar in every lane of a value, if that is visible."""
    while shape_of(value.type):
        owner = value.owner
        if isinstance(owner, Constant):
            return value
        if not isinstance(owner, (Splat, ShapeOperation)):
            return None
        value = owner.source
    return value


def _within(value: Value, place: Place) -> Place:
    """A place in a value, of which a scalar has none."""
    return place if shape_of(value.type) else None
