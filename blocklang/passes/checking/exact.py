"""Addresses as they would be if integers of 32 bits did not wrap.

The operations behind an address are repeated in 64 bits, from what is loaded, carried or given
(`blocklang.ops.wrapping`).
"""

from __future__ import annotations

from blocklang.analysis.handed_on import end_of, handed_on
from blocklang.ir.builder import Builder
from blocklang.ir.core import Operation, Region, Value
from blocklang.ir.types import I64, PointerType, element_type, shape_of, with_element
from blocklang.ops.control import For, If, While
from blocklang.ops.creation import Constant, Splat
from blocklang.ops.elementwise import Add, Cast, Mul, Select, Sub
from blocklang.ops.memory import Offset, pointee
from blocklang.ops.shape import Cat, ShapeOperation
from blocklang.ops.wrapping import followed_operands, may_wrap
from blocklang.passes.checking.reports import shaped
from blocklang.passes.uniform import make_constant


class ExactArithmetic:
    """Repeats in 64 bits what may wrap in 32.

    What loops carry, and what an `if` results in, gets a companion that is handed on beside it: the exact
    value of an integer, or how many bytes the exact address lies above a pointer.
    """

    def __init__(self) -> None:
        self._may_wrap: dict[Value, bool] = {}
        self._companions: dict[Value, Value] = {}

    def may_wrap(self, value: Value) -> bool:
        """True if an operation of at most 32 bits behind a value may wrap."""
        if value not in self._may_wrap:
            seen, waiting = {value}, [value]
            while waiting:
                current = waiting.pop()
                op = current.defining_op
                if self._may_wrap.get(current) or (op is not None and may_wrap(op)):
                    self._may_wrap[value] = True
                    return True
                behind = [v for v in _behind(current) if v not in seen]
                seen.update(behind)
                waiting += behind
            self._may_wrap.update(dict.fromkeys(seen, False))
        return self._may_wrap[value]

    def companion(self, value: Value) -> Value:
        """What control flow hands on beside a value that may wrap."""
        if value not in self._companions:
            owner = value.owner
            holder = owner.parent_op if isinstance(owner, Region) else owner
            match holder:
                case If():
                    self._beside_result(holder, holder.results.index(value))
                case For():
                    held = holder.body.args[1:] if isinstance(owner, Region) else holder.results
                    self._beside_slot(holder, held.index(value))
                case While() if isinstance(owner, Region) and owner is holder.before:
                    self._beside_carried(holder, owner.args.index(value))
                case While():
                    held = holder.after.args if isinstance(owner, Region) else holder.results
                    self._beside_passed(holder, held.index(value))
        return self._companions[value]

    def _beside(self, value: Value) -> None:
        """Make a new argument or result beside `value`."""
        type_, owner = with_element(value.type, I64), value.owner
        if isinstance(owner, Region):
            new = owner.add_argument(type_)
        else:
            new = Value(type_, owner)
            owner.results.append(new)
        self._companions[value] = new

    def _beside_result(self, op: If, index: int) -> None:
        self._beside(op.results[index])
        # A place in both arms before either is known: what is beside another result may be made meanwhile.
        ends = [end_of(arm) for arm in op.regions]
        places = [self._reserve(end, "values", end.operands[index]) for end in ends]
        for end, place in zip(ends, places, strict=True):
            self._fill(end, place, end.operands[index])

    def _beside_slot(self, op: For, slot: int) -> None:
        self._beside(op.body.args[1 + slot])
        self._beside(op.results[slot])
        self._hand_on(op, "inits", op.inits[slot])
        end = end_of(op.body)
        self._hand_on(end, "values", end.operands[slot])

    def _beside_carried(self, op: While, slot: int) -> None:
        self._beside(op.before.args[slot])
        self._hand_on(op, "inits", op.inits[slot])
        end = end_of(op.after)
        self._hand_on(end, "values", end.operands[slot])

    def _beside_passed(self, op: While, index: int) -> None:
        self._beside(op.after.args[index])
        self._beside(op.results[index])
        end = end_of(op.before)
        self._hand_on(end, "values", end.segment("values")[index])

    def _hand_on(self, op: Operation, segment: str, value: Value) -> None:
        """Let an operation hand on what belongs beside a value that it hands on."""
        self._fill(op, self._reserve(op, segment, value), value)

    def _reserve(self, op: Operation, segment: str, value: Value) -> int:
        """Make a place for what belongs beside a value; others may follow before it is known."""
        place = len(op.operands)
        zero = make_constant(Builder.before_op(op), 0, with_element(value.type, I64))
        op.set_segment(segment, [*op.segment(segment), zero])
        return place

    def _fill(self, op: Operation, place: int, value: Value) -> None:
        op.set_operand(place, _Copy(self, Builder.before_op(op)).word(value))

    def excess(self, builder: Builder, pointer: Value) -> Value | None:
        """How many bytes each exact address lies above the address, an i64; None if they are the same."""
        return _Copy(self, builder).excess(pointer)


class _Copy:
    """The operations behind one address, made once each."""

    def __init__(self, exact: ExactArithmetic, builder: Builder) -> None:
        self.exact = exact
        self.builder = builder
        self.made: dict[Value, Value] = {}

    def excess(self, pointer: Value) -> Value | None:
        """As `ExactArithmetic.excess`: the sum of what the offsets lack."""
        op = pointer.owner
        if not self.exact.may_wrap(pointer):
            return None
        if handed_on(pointer):
            return self.exact.companion(pointer)
        if isinstance(op, (Cat, Select)):
            parts = [self.excess(p) or self._zero(p) for p in followed_operands(op)]
            operands = parts if isinstance(op, Cat) else [op.condition, *parts]
            return self.builder.value(type(op), *operands, **op.attributes)
        if isinstance(op, (Splat, ShapeOperation)):
            inner = self.excess(op.source)
            types = [with_element(pointer.type, I64)] if isinstance(op, Splat) else []
            return inner and self.builder.value(type(op), inner, result_types=types, **op.attributes)
        assert isinstance(op, Offset)
        inner, lacks = self.excess(op.pointer), self._lacks(op)
        terms = [shaped(self.builder, t, shape_of(pointer.type)) for t in (inner, lacks) if t is not None]
        return self.builder.value(Add, *terms) if len(terms) == 2 else terms[0]

    def _lacks(self, op: Offset) -> Value | None:
        """What an offset has lost, in bytes."""
        if not self.exact.may_wrap(op.offset):
            return None
        lost = self.builder.value(Sub, self.of(op.offset), self._widened(op.offset))
        return self.builder.value(
            Mul, lost, make_constant(self.builder, pointee(op.pointer.type).bytes, lost.type)
        )

    def _zero(self, pointer: Value) -> Value:
        return make_constant(self.builder, 0, with_element(pointer.type, I64))

    def word(self, value: Value) -> Value:
        """What is handed on beside a value."""
        if isinstance(element_type(value.type), PointerType):
            return self.excess(value) or self._zero(value)
        return self.of(value)

    def of(self, value: Value) -> Value:
        """The exact value of an integer, an i64."""
        if value not in self.made:
            self.made[value] = self._make(value)
        return self.made[value]

    def _make(self, value: Value) -> Value:
        op = value.owner
        if not self.exact.may_wrap(value):
            return self._widened(value)
        if handed_on(value):
            return self.exact.companion(value)
        assert isinstance(op, Operation)
        type_ = with_element(value.type, I64)
        if isinstance(op, Cast):
            return self.of(op.source)
        if isinstance(op, Select):
            operands = [op.condition, self.of(op.if_true), self.of(op.if_false)]
        else:
            operands = [self.of(v) for v in op.operands]
        types = [type_] if isinstance(op, Splat) else []
        return self.builder.value(type(op), *operands, result_types=types, **op.attributes)

    def _widened(self, value: Value) -> Value:
        type_ = with_element(value.type, I64)
        if value.type == type_:
            return value
        if isinstance(value.owner, Constant):
            return make_constant(self.builder, value.owner.value, type_)
        return self.builder.value(Cast, value, result_types=[type_])


def _behind(value: Value) -> list[Value]:
    """The values whose exact ones make the exact one of `value`."""
    given = handed_on(value)
    if given:
        element = element_type(value.type)
        return given if isinstance(element, PointerType) or element.is_signed else []
    op = value.defining_op
    return [] if op is None else followed_operands(op)
