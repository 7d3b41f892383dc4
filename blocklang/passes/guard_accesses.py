"""Make offsets 64-bit affine forms and masks ranges of indices, where that is proved or a test before the
loop proves it.

    placed @k(%x: ptr<f32>, %base: i32, %n: i32) {
      %c0 = constant value=0 : i64
      %c64 = constant value=64 : i64
      lanes %c0, %c64, width=64 {
        (%i: i64):
        %a = cast %i : i32
        %b = add %base, %a : i32
        %p = offset %x, %b : ptr<f32>
        %m = cmp %b, %n, predicate="lt" : i1
        %v = load %p, mask=%m : f32
        store %p, %v, mask=%m
        yield
      }
      return
    }

becomes

    placed @k(%x: ptr<f32>, %base: i32, %n: i32) {
      %v0 = cast %n : i64
      %v1 = cast %base : i64
      %c0 = constant value=0 : i64
      %c64 = constant value=64 : i64
      %v2 = cast %base : i64
      %v3 = constant value=63 : i64
      %v4 = add %v2, %v3 : i64
      %v5 = constant value=2147483647 : i64
      %v6 = cmp %v5, %v4, predicate="ge" : i1
      %v7 = cast %n : i64
      %v8 = cast %base : i64
      %v9 = constant value=63 : i64
      %v10 = add %v8, %v9 : i64
      %v11 = constant value=2147483647 : i64
      %guard = cmp %v11, %v10, predicate="ge" : i1
      %v12 = cast %n : i64
      if %guard {
        lanes %c0, %c64, width=64 {
          (%i: i64):
          %a = cast %i : i32
          %b = add %base, %a : i32
          %b_0 = add %v1, %i : i64
          %p = offset %x, %b_0 : ptr<f32>
          %m = cmp %b, %n, predicate="lt" : i1
          %v13 = constant value=0 : i64
          %v14 = add %v1, %v13 : i64
          %v15 = constant value=1 : i64
          %v16 = sub %v0, %v14 : i64
          %m_0 = in_bounds %i, %c0, %v16 : i1
          %v = load %p, mask=%m_0 : f32
          store %p, %v, mask=%m_0
          yield
        }
        yield
      } {
        lanes %c0, %c64, width=1, general=true {
          (%i_0: i64):
          %a_0 = cast %i_0 : i32
          %b_1 = add %base, %a_0 : i32
          %p_0 = offset %x, %b_1 : ptr<f32>
          %m_1 = cmp %b_1, %n, predicate="lt" : i1
          %v17 = load %p_0, mask=%m_1 : f32
          store %p_0, %v17, mask=%m_1
          yield
        }
        yield
      }
      return
    }

32-bit arithmetic wraps, so `base + i` is a range of addresses only if it does not. Over a loop nest every
integer stays in an interval that a few scalars describe (`analysis.run_time_bounds`); if those fit the
types, no lane wraps. `x % m` with 0 <= x < 2m is x minus m from one point on: a loop along x is cut there
into two. What has no useful interval, a loaded index for instance, stays as it is.

What needs no test is rewritten in place. What needs one gets two versions: the fast one, and the loop as it
was, with one lane per step since it will hardly ever run. A loop over lanes inside of groups is tried again
by itself, with the rows' values known.

Requires: level placed; what is uniform stands outside of the loops (`hoist_loop_invariants`).
Keeps: all results; every effect and its order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from blocklang.analysis.index_steps import IndexSteps
from blocklang.analysis.run_time_bounds import (
    Bound,
    BoundArithmetic,
    Interval,
    constant_bound,
    static_interval,
    type_interval,
)
from blocklang.ir.builder import Builder
from blocklang.ir.core import Kernel, Operation, Region, Value
from blocklang.ir.rewriting import clone_operation
from blocklang.ir.types import I1, I64, ScalarType
from blocklang.ops.control import For, If, Yield
from blocklang.ops.creation import Constant
from blocklang.ops.elementwise import (
    Add,
    And,
    Cast,
    Compare,
    IntegerDiv,
    Maximum,
    Minimum,
    Mul,
    Rem,
    Select,
    Sub,
)
from blocklang.ops.memory import Offset
from blocklang.ops.scan import GROUP, Running
from blocklang.ops.tile import Group, InBounds, Lanes

_LARGE = 1 << 40  # bound on 64-bit scalars in masks, far from any overflow
_DISTANT = 1 << 61  # bound on the sides of a comparison that becomes a difference


@dataclass
class _Plan:
    """What will be rewritten in one nest, and the conditions that allow it."""

    wide: dict[Value, Interval] = field(default_factory=dict)
    conditions: dict[Value, list[Value]] = field(default_factory=dict)


class _Nest:
    """One loop nest: its indices, and what is known of the values inside."""

    def __init__(self, root: Operation) -> None:
        self.root = root
        self.bounds = BoundArithmetic(Builder.before_op(root))
        self.intervals: dict[Value, Interval | None] = {}
        self.conditions: dict[Value, list[Value]] = {}
        self.steps = IndexSteps()
        self.leaves: set[Value] = set()  # integers of which only the type is known: they may have wrapped
        self.indices: dict[Value, Group | Lanes] = {}
        for op in (root, *(o for region in root.regions for o in region.walk())):
            if isinstance(op, (Group, Lanes)):
                self.indices[op.body.args[0]] = op
        self.inside: set[Value] = set(self.indices)
        for region in root.regions:
            for op in region.walk():
                self.inside |= set(op.results)
                for inner in op.regions:
                    self.inside |= set(inner.args)

    # ---- what is known ----

    def interval(self, value: Value) -> Interval | None:
        """The interval of an integer over the nest; None if nothing better than its type is known.

        Whenever this is not None, `self.conditions[value]` holds what must be true for the value to be the
        mathematical result of its operation, that is, not to have wrapped.
        """
        if value not in self.intervals:
            self.intervals[value] = None  # while in progress: no recursion through carried values
            self.conditions[value] = []
            try:
                self.intervals[value] = self._find_interval(value)
            except OverflowError:
                self.intervals[value] = None
        return self.intervals[value]

    def prepare(self, value: Value) -> None:
        """Find the intervals behind `value`, operands first, so that long chains do not recurse."""
        stack = [value]
        seen: set[Value] = set()
        while stack:
            current = stack[-1]
            op = current.defining_op
            if current in self.intervals:
                stack.pop()
            elif current in seen or op is None or current not in self.inside:
                self.interval(stack.pop())
            else:
                seen.add(current)
                stack += [v for v in op.operands if _is_integer(v)]

    def _find_interval(self, value: Value) -> Interval | None:
        type = value.type
        if not isinstance(type, ScalarType) or type.is_float or type.bits == 1 or str(type) == "u64":
            return None
        if value in self.indices:
            return self._index_interval(self.indices[value])
        if value not in self.inside:
            return self._outer_interval(value)
        op = value.defining_op
        return self._operation_interval(op, value, type) if op is not None else self._counter_interval(value)

    def _index_interval(self, loop: Group | Lanes) -> Interval | None:
        low, high = (self.interval(v) for v in (loop.low, loop.high))
        if low is None or high is None:
            return None
        return Interval(low.low, self.bounds.sub(high.high, constant_bound(1)))

    def _counter_interval(self, value: Value) -> Interval | None:
        """The index of a sequential loop inside the nest, with constant bounds."""
        owner = value.owner.parent if isinstance(value.owner, Region) else None
        if isinstance(owner, For) and value is owner.body.args[0]:
            ends = [v.defining_op for v in (owner.start, owner.stop, owner.step)]
            if all(isinstance(e, Constant) for e in ends):
                start, stop, step = (int(e.value) for e in ends)
                if step == 1 and start < stop:
                    return static_interval(start, stop - 1)
        return None

    def _outer_interval(self, value: Value) -> Interval:
        bound = self.bounds.of_scalar(value)
        if value.type == I64 and bound.constant is None and (bound.low < -_LARGE or bound.high > _LARGE):
            clamped = Bound(-_LARGE, _LARGE, bound.value)
            tests = [
                self.bounds.at_least(bound, constant_bound(-_LARGE)),
                self.bounds.at_least(constant_bound(_LARGE), bound),
            ]
            self.conditions[value] = [t for t in tests if isinstance(t, Value)]
            bound = clamped
        return Interval(bound, bound)

    def _operation_interval(self, op: Operation, value: Value, type: ScalarType) -> Interval | None:
        operands = [self.interval(v) for v in op.operands]
        match op:
            case Constant():
                return static_interval(int(op.value), int(op.value))
            case Cast() if operands[0] is not None:
                return self._fitting(op, type, operands[0])
            case Add() | Sub() | Mul() if None not in operands:
                a, b = operands
                assert a is not None
                assert b is not None
                method = {
                    Add: self.bounds.add_intervals,
                    Sub: self.bounds.sub_intervals,
                    Mul: self.bounds.mul_intervals,
                }
                return self._fitting(op, type, method[op.__class__](a, b))
            case Rem() if operands[0] is not None and op.rhs not in self.inside:
                return self._wrapped_once(op, operands[0])
            case Minimum() | Maximum() if None not in operands:
                a, b = operands
                assert a is not None
                assert b is not None
                pick = self.bounds.minimum if isinstance(op, Minimum) else self.bounds.maximum
                self._inherit(op)
                return Interval(pick(a.low, b.low), pick(a.high, b.high))
            case IntegerDiv() if (
                operands[0] is not None and operands[0].is_static and operands[1] is not None
            ):
                return self._static_quotient(op, operands[0], operands[1])
        if type.bits >= 32:
            return None
        self.leaves.add(value)
        return type_interval(type)

    def _inherit(self, op: Operation) -> None:
        self.conditions[op.results[0]] = [c for v in op.operands for c in self.conditions.get(v, [])]

    def _fitting(self, op: Operation, type: ScalarType, interval: Interval) -> Interval | None:
        """The interval of a result, under the condition that it fits the type."""
        limits = type_interval(type)
        tests = self.bounds.within(interval, limits.low, limits.high)
        if tests is None:
            return None
        self._inherit(op)
        self.conditions[op.results[0]] += tests
        return interval

    def _wrapped_once(self, op: Rem, dividend: Interval) -> Interval | None:
        """x % m where 0 <= x < 2m: the result is below m, and above -1."""
        modulus = self.interval(op.rhs)
        if modulus is None:
            return None
        limit = self.bounds.sub(self.bounds.add(modulus.low, modulus.low), constant_bound(1))
        tests = self.bounds.within(dividend, constant_bound(0), limit)
        if tests is None:
            return None
        self._inherit(op)
        self.conditions[op.result] += tests
        return Interval(constant_bound(0), self.bounds.sub(modulus.high, constant_bound(1)))

    def _static_quotient(self, op: IntegerDiv, dividend: Interval, divisor: Interval) -> Interval | None:
        low, high, by = dividend.low.constant, dividend.high.constant, divisor.low.constant
        if low is None or high is None or by is None or low < 0 or by <= 0 or not divisor.is_static:
            return None
        self._inherit(op)
        return static_interval(low // by, high // by)

    # ---- what can be rewritten ----

    def depends_on_index(self, value: Value) -> bool:
        return value in self.inside

    def targets(self) -> Iterator[Operation]:
        """The operations whose operands may become 64-bit affine forms."""
        for region in self.root.regions:
            for op in region.walk():
                if not op.results or not op.results[0].uses:
                    continue
                if (
                    (isinstance(op, Offset) and _narrow(op.offset) and self.depends_on_index(op.offset))
                    or (
                        isinstance(op, Cast)
                        and op.result.type == I64
                        and _narrow(op.source)
                        and self.depends_on_index(op.source)
                    )
                    or (
                        isinstance(op, Compare)
                        and op.predicate in ("lt", "le", "gt", "ge")
                        and _is_integer(op.lhs)
                        and self.depends_on_index(op.result)
                    )
                ):
                    yield op

    def conditions_of(self, op: Operation) -> list[Value] | None:
        """What must hold for `op` to be rewritten; None if it cannot be."""
        values = [op.offset] if isinstance(op, Offset) else list(op.operands)
        found: list[Value] = []
        for value in values:
            self.prepare(value)
            if self.interval(value) is None:
                return None
            found += self.conditions[value]
        if isinstance(op, Compare) and (
            _lane_loop(op) is None or not self._follows_loop(op) or not self._can_be_subtracted(op)
        ):
            return None
        if not isinstance(op, Compare) and isinstance(values[0].defining_op, (Minimum, Maximum)):
            return None  # already a leaf: nothing to gain
        return list(dict.fromkeys(found))

    def _follows_loop(self, op: Compare) -> bool:
        """True if the difference of the operands grows by one or minus one with the index of a loop around
        the comparison.
        """
        loop = _varying_loop(self.steps, op)
        if loop is None:
            return False
        index = loop.body.args[0]
        left, right = (self.steps.of(v, index) for v in op.operands)
        if left is None or right is None or abs(left - right) != 1:
            return False
        return not any(self.may_wrap_along(v, index) for v in op.operands)

    def _can_be_subtracted(self, op: Compare) -> bool:
        """True if a bound of the index, which is a difference of the operands, is far from any overflow."""
        intervals = [self.intervals[v] for v in op.operands]
        return all(i is not None and i.low.low >= -_DISTANT and i.high.high <= _DISTANT for i in intervals)

    def may_wrap_along(self, value: Value, index: Value) -> bool:
        """True if an integer that may have wrapped, and changes with `index`, is part of `value`."""
        stack, seen = [value], set()
        while stack:
            current = stack.pop()
            op = current.defining_op
            if op is None or current in seen or current not in self.inside:
                continue
            seen.add(current)
            if current in self.leaves:
                if self.steps.of(current, index) != 0:
                    return True
            else:
                stack += op.operands
        return False


def _is_integer(value: Value) -> bool:
    return isinstance(value.type, ScalarType) and not value.type.is_float


def _narrow(value: Value) -> bool:
    return isinstance(value.type, ScalarType) and value.type.bits < 64


def _loops_around(op: Operation) -> Iterator[Group | Lanes]:
    parent = op.parent_op
    while parent is not None:
        if isinstance(parent, (Group, Lanes)):
            yield parent
        parent = parent.parent_op


def _lane_loop(op: Operation) -> Group | Lanes | None:
    return next(_loops_around(op), None)


def _varying_loop(steps: IndexSteps, op: Operation) -> Group | Lanes | None:
    """The innermost group or lanes loop on whose index `op` depends."""
    for loop in _loops_around(op):
        if any(steps.of(v, loop.body.args[0]) != 0 for v in op.operands):
            return loop
    return None


class _Rewriter:
    """Rewrites the targets of one nest, whose conditions are known to hold."""

    def __init__(self, nest: _Nest, mapping: dict[Value, Value] | None = None) -> None:
        self.nest = nest
        self.mapping = mapping
        self.wide: dict[Value, Value] = {}

    def here(self, value: Value) -> Value:
        """The value of this version of the loop that stands for one of the analysed loop."""
        return value if self.mapping is None else self.mapping.get(value, value)

    def widen(self, original: Value) -> Value:
        """An i64 with the mathematical value of an integer that does not wrap."""
        if original in self.wide:
            return self.wide[original]
        value = self.here(original)
        op = original.defining_op
        if value.type == I64 and not (original in self.nest.inside and isinstance(op, (Cast, Add, Sub, Mul))):
            result = value
        elif original not in self.nest.inside or op is None:
            result = self._cast(value)
        else:
            result = self._widen_operation(op, original, value)
        self.wide[original] = result
        return result

    def _cast(self, value: Value) -> Value:
        if value.type == I64:
            return value
        op = value.defining_op
        if isinstance(op, Constant):  # stays one: its product with an index has a known step
            return Builder.after_op(op).value(Constant, value=int(op.value), result_types=[I64])
        if op is not None:
            return Builder.after_op(op).value(Cast, value, result_types=[I64])
        region = value.owner
        assert isinstance(region, Region)
        builder = Builder(region, region.ops[0] if region.ops else None)
        return builder.value(Cast, value, result_types=[I64])

    def _widen_operation(self, op: Operation, original: Value, value: Value) -> Value:
        copy = value.defining_op
        assert copy is not None
        if self.nest.interval(original) is None or original in self.nest.leaves:
            return self._cast(value)
        match op:
            case Constant():
                return Builder.after_op(copy).value(Constant, value=int(op.value), result_types=[I64])
            case Cast():
                return self.widen(op.source)
            case Add() | Sub() | Mul():
                lhs, rhs = self.widen(op.lhs), self.widen(op.rhs)
                return Builder.after_op(copy).value(op.__class__, lhs, rhs, name=value.name)
            case Rem():
                return self._widen_remainder(op, copy)
        return self._cast(value)

    def _widen_remainder(self, op: Rem, copy: Operation) -> Value:
        """x % m = x - (x >= m ? m : 0) for 0 <= x < 2m; the comparison becomes a bound where x follows an
        index.
        """
        x, m = self.widen(op.lhs), self.widen(op.rhs)
        builder = Builder.after_op(copy)
        steps = self.nest.steps
        compare = builder.create(Compare, x, m, predicate="ge")
        wrapped = compare.result
        zero = builder.value(Constant, value=0, result_types=[I64])
        loop = _varying_loop(steps, compare)
        if (
            loop is not None
            and steps.of(x, loop.body.args[0]) == 1
            and not any(self.nest.may_wrap_along(op.lhs, index) for index in self.nest.indices)
        ):
            bound = as_bounds(steps, compare, x, m, loop)
            wrapped.replace_all_uses_with(bound)
            wrapped = bound
        return builder.value(Sub, x, builder.value(Select, wrapped, m, zero), name=op.result.name)

    def rewrite(self, op: Operation) -> None:
        """Replace one target; `op` belongs to the analysed loop."""
        match op:
            case Offset():
                wide = self.widen(op.offset)
                here = self.here(op.result).defining_op
                assert here is not None
                here.set_operand(1, wide)
            case Cast():
                here = self.here(op.result).defining_op
                wide = self.widen(op.source)
                assert here is not None
                here.results[0].replace_all_uses_with(wide)
            case Compare():
                here = self.here(op.result).defining_op
                assert here is not None
                lhs, rhs = self.widen(op.lhs), self.widen(op.rhs)
                loop = _varying_loop(self.nest.steps, here)
                assert loop is not None
                here.results[0].replace_all_uses_with(as_bounds(self.nest.steps, here, lhs, rhs, loop))


def as_bounds(steps: IndexSteps, compare: Operation, lhs: Value, rhs: Value, loop: Group | Lanes) -> Value:
    """A comparison of i64 values whose difference follows a loop's index, as a range of that index.

    With lhs = a + index and rhs = b (up to what cancels), lhs < rhs is index < b - a; with the index on the
    right side, lhs < b + index is index > lhs - b.
    """
    builder = Builder.after_op(compare)
    index = loop.body.args[0]
    predicate = compare.attributes["predicate"]
    if predicate in ("gt", "ge"):  # a > b is b < a
        lhs, rhs = rhs, lhs
    inclusive = predicate in ("le", "ge")
    left, right = steps.of(lhs, index), steps.of(rhs, index)
    assert left is not None
    assert right is not None
    zero = builder.value(Constant, value=0, result_types=[I64])
    known: dict[Value, Value] = {}
    first, second = (_at(steps, builder, v, index, zero, known) for v in (lhs, rhs))
    one = builder.value(Constant, value=1, result_types=[I64])
    if left - right == 1:
        bound = builder.value(Sub, second, first)
        bound = builder.value(Add, bound, one) if inclusive else bound
        return builder.value(InBounds, index, loop.low, bound)
    bound = builder.value(Sub, first, second)
    bound = bound if inclusive else builder.value(Add, bound, one)
    return builder.value(InBounds, index, bound, loop.high)


def _at(
    steps: IndexSteps, builder: Builder, value: Value, index: Value, zero: Value, known: dict[Value, Value]
) -> Value:
    """A copy of an integer expression for another index."""
    if value is index:
        return zero
    op = value.defining_op
    if op is None or not steps.depends(value, index):
        return value
    if value not in known:
        operands = [_at(steps, builder, v, index, zero, known) for v in op.operands]
        known[value] = builder.value(op.__class__, *operands, result_types=[value.type], **op.attributes)
    return known[value]


def _apply_unconditional(nest: _Nest) -> None:
    rewriter = _Rewriter(nest)
    # All are judged before the first is rewritten: the nest knows nothing of the values that rewriting makes.
    for op in [op for op in nest.targets() if nest.conditions_of(op) == []]:
        rewriter.rewrite(op)


def _version(root: Operation) -> Operation:
    """Split a nest that needs tests into two versions; returns the fast one (or the nest itself)."""
    nest = _Nest(root)
    planned = [(op, conditions) for op in nest.targets() if (conditions := nest.conditions_of(op))]
    if not planned:
        return root
    conditions = list(dict.fromkeys(c for _, tests in planned for c in tests))
    builder = Builder.before_op(root)
    guard = conditions[0]
    for condition in conditions[1:]:
        guard = builder.value(And, guard, condition)
    guard.name = guard.name or "guard"
    mapping: dict[Value, Value] = {}
    fast = clone_operation(root, mapping)
    then, otherwise = Region(), Region()
    then.append(fast)
    branch = builder.create(If, guard, result_types=[r.type for r in root.results], regions=[then, otherwise])
    for old, new in zip(root.results, branch.results, strict=True):
        old.replace_all_uses_with(new)
    otherwise.append(root.detach())
    for region, op in ((then, fast), (otherwise, root)):
        Builder(region).create(Yield, *op.results)
    rewriter = _Rewriter(nest, mapping)
    for op, _ in planned:
        rewriter.rewrite(op)
    _slow_down(root)
    return fast


def _slow_down(root: Operation) -> None:
    """Give the version that hardly ever runs the least code: one lane a step, unless a float sum needs its
    partials, or a scan its groups.
    """
    for op in (root, *(o for region in root.regions for o in region.walk())):
        if isinstance(op, Lanes):
            ordered = any(c == "sum" for c in op.combines)
            least = 32 if ordered else GROUP if _runs(op) else 1
            op.attributes["width"] = min(op.width, least)
            op.attributes["general"] = True
            op.attributes.pop("stream", None)
            op.attributes.pop("stream_axes", None)


def _runs(loop: Lanes) -> bool:
    """True if lanes see what those before have left: the loop stays whole."""
    return any(isinstance(op, Running) for op in loop.body.ops)


def _split_wrapping_loops(root: Operation) -> None:
    """Cut loops over lanes where an index wraps around a modulus: before and behind, addresses are affine."""
    loops = [root, *(o for region in root.regions for o in region.walk())]
    for loop in [o for o in loops if isinstance(o, Lanes) and not o.results and not _runs(o)]:
        for op in loop.body.ops:
            if isinstance(op, InBounds) and op.index is loop.body.args[0] and _is_wrap(op, loop):
                _split_at(loop, op)
                break


def _is_wrap(op: InBounds, loop: Lanes) -> bool:
    """True for a bound that holds from one lane to the loop's end, and chooses between 64-bit integers."""
    return (
        op.high is loop.high
        and bool(op.result.users)
        and all(
            isinstance(u, Select) and u.result.type == I64 and u.condition is op.result
            for u in op.result.users
        )
    )


def _split_at(loop: Lanes, bound: InBounds) -> None:
    """Replace a loop by one below `bound.low`, where it is false, and one from there on."""
    _hoist_operands(loop, bound.low)
    builder = Builder.before_op(loop)
    cut = builder.value(Maximum, builder.value(Minimum, bound.low, loop.high), loop.low)
    for low, high, holds in ((loop.low, cut, False), (cut, loop.high, True)):
        mapping: dict[Value, Value] = {}
        part = clone_operation(loop, mapping)
        part.set_operand(0, low)
        part.set_operand(1, high)
        builder.insert(part)
        copy = mapping[bound.result].defining_op
        assert copy is not None
        copy.replace_with(Builder.before_op(copy).value(Constant, value=holds, result_types=[I1]))
    loop.erase()


def _hoist_operands(loop: Lanes, value: Value) -> None:
    """Move the computation of a value that does not depend on the loop's index out of the loop."""
    op = value.defining_op
    if op is None or not loop.body.encloses(op):
        return
    for operand in op.operands:
        _hoist_operands(loop, operand)
    op.detach()
    Builder.before_op(loop).insert(op)


def _outermost_nests(kernel: Kernel) -> list[Operation]:
    return [
        op
        for op in kernel.walk()
        if isinstance(op, (Group, Lanes)) and not any(True for _ in _loops_around(op))
    ]


def guard_accesses(kernel: Kernel) -> None:
    """Rewrite the accesses of every loop nest of a placed kernel."""
    assert kernel.level == "placed"
    for root in _outermost_nests(kernel):
        _apply_unconditional(_Nest(root))
        fast = _version(root)
        for inner in [o for region in fast.regions for o in region.walk() if isinstance(o, Lanes)]:
            _version(inner)
        _split_wrapping_loops(fast)
