"""Carry one scalar offset through a loop in place of a block of pointers.

    kernel @k(%x: ptr<f32>, %n: i32, %stride: i32) {
      %zero = constant value=0 : i32
      %one = constant value=1 : i32
      %i = arange start=0, end=8 : block<8xi32>
      %start = offset %x, %i : block<8xptr<f32>>
      %end = for %zero, %n, %one, %start : block<8xptr<f32>> {
        (%k: i32, %p: block<8xptr<f32>>):
        %v = load %p : block<8xf32>
        store %p, %v
        %next = offset %p, %stride : block<8xptr<f32>>
        yield %next
      }
      return
    }

becomes

    kernel @k(%x: ptr<f32>, %n: i32, %stride: i32) {
      %zero = constant value=0 : i32
      %one = constant value=1 : i32
      %i = arange start=0, end=8 : block<8xi32>
      %start = offset %x, %i : block<8xptr<f32>>
      %v0 = constant value=0 : i64
      %end_offset = for %zero, %n, %one, %v0 : i64 {
        (%k: i32, %p_offset: i64):
        %p = offset %start, %p_offset : block<8xptr<f32>>
        %v = load %p : block<8xf32>
        store %p, %v
        %v1 = cast %stride : i64
        %p_next = add %p_offset, %v1 : i64
        yield %p_next
      }
      return
    }

A carried value splits if each round adds to it something that is the same in all lanes, in one or several
steps. It may be a pointer, a block of pointers (offsets are summed modulo 2^64, as they are), or a block of
integers (summed modulo 2 to the width). A block of pointers also splits if each round adds the same blocks:
then the rounds are counted. The results of an `if` split where both arms step from one value above it, so
that a step under a condition is a step of the loop around. Steps that differ between lanes and between
rounds stay.

Requires: level block; uniform blocks are splats or constants (`canonicalise`).
Keeps: every bit of every value. What is rebuilt reads the initial block, which so lives through the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from blocklang.ir.builder import Builder
from blocklang.ir.core import Kernel, Operation, Region, Value
from blocklang.ir.types import I64, BlockType, PointerType, ScalarType, Type, element_type, with_element
from blocklang.ops.control import For, If, While
from blocklang.ops.elementwise import Add, Cast, Mul, Sub
from blocklang.ops.memory import Offset
from blocklang.passes.uniform import is_uniform, make_constant, scalar_of


def split_pointers(kernel: Kernel) -> None:
    """Split what loops carry and what `if` results in, innermost first."""
    _visit(kernel.body)


def _visit(region: Region) -> None:
    for op in list(region.ops):
        for inner in op.regions:
            _visit(inner)
        match op:
            case If() if len(op.regions) == 2:
                for index in range(len(op.results)):
                    _split_result(op, index)
            case For():
                for slot in range(len(op.results)):
                    _split_for(op, slot)
            case While():
                for slot in range(len(op.before.args)):
                    _split_while(op, slot)


# ---- what is added ----


@dataclass(frozen=True)
class _Step:
    """`op` adds `addend` to a value, or subtracts it."""

    op: Operation
    addend: Value

    @property
    def is_subtraction(self) -> bool:
        return isinstance(self.op, Sub)


def _sum_type(type_: Type) -> ScalarType | None:
    """The type in which steps of a value are summed; None if such values do not split."""
    element = element_type(type_)
    if isinstance(element, PointerType):
        return I64
    return element if isinstance(type_, BlockType) and element.is_integer and element.bits > 1 else None


def _last_step(value: Value) -> tuple[Value, _Step] | None:
    """Take off the step that made `value`; the value before it has the same type."""
    op = value.owner
    match op:
        case Offset():
            before, addend = op.pointer, op.offset
        case Add() if is_uniform(op.lhs):
            before, addend = op.rhs, op.lhs
        case Add() | Sub() if is_uniform(op.rhs):
            before, addend = op.lhs, op.rhs
        case _:
            return None
    return (before, _Step(op, addend)) if before.type == value.type else None


def _origins(value: Value) -> Iterator[tuple[Value, list[_Step]]]:
    """`value` and the values that it is a step, two steps, ... from, with these steps, the last first."""
    steps: list[_Step] = []
    while True:
        yield value, list(steps)
        last = _last_step(value)
        if last is None:
            return
        value, step = last
        steps.append(step)


def _steps_from(start: Value, value: Value) -> list[_Step] | None:
    """The steps that lead from `start` to `value`, the last first; None if something else does."""
    return next((steps for origin, steps in _origins(value) if origin is start), None)


def _are_uniform(steps: Sequence[_Step]) -> bool:
    return all(is_uniform(step.addend) for step in steps)


def _is_inside(value: Value, op: Operation) -> bool:
    """True if `value` is defined in a region of `op`."""
    owner = value.owner
    if isinstance(owner, Region):
        return owner in op.regions or (owner.parent_op is not None and _encloses(op, owner.parent_op))
    return _encloses(op, owner)


def _encloses(op: Operation, inner: Operation) -> bool:
    return any(region.encloses(inner) for region in op.regions)


# ---- the split form: a base, which does not change, and a scalar ----

Rebuild = Callable[[Builder, Value], Value]


def _rebuild_from(base: Value) -> Rebuild:
    """base + scalar"""
    cls = Offset if isinstance(element_type(base.type), PointerType) else Add
    return lambda builder, scalar: builder.value(cls, base, scalar)


def _rebuild_counted(base: Value, stride: Value) -> Rebuild:
    """base + stride * rounds"""
    return lambda builder, rounds: builder.value(Offset, base, builder.value(Mul, stride, rounds))


def _widened(addend: Value, to: ScalarType, builder: Builder) -> Value:
    """An addend in the type of the sum: an offset widens by its own signedness."""
    type_ = with_element(addend.type, to)
    return addend if addend.type == type_ else builder.value(Cast, addend, result_types=[type_])


def _advance(scalar: Value, steps: Sequence[_Step], before: Operation) -> Value:
    """The scalar after the steps."""
    assert isinstance(scalar.type, ScalarType)
    builder, name = Builder.before_op(before), scalar.name
    for step in reversed(steps):
        addend = scalar_of(step.addend, builder)
        assert addend is not None, "the step is uniform"
        cls = Sub if step.is_subtraction else Add
        scalar = builder.value(cls, scalar, _widened(addend, scalar.type, builder))
    if steps and name:
        scalar.name = f"{name.removesuffix('_offset')}_next"
    return scalar


def _narrow(old: Value, type_: ScalarType) -> Value:
    """Put a scalar in the place of `old` as argument or result; users of `old` are for the caller."""
    new = Value(type_, old.owner, f"{old.name}_offset" if old.name else "")
    places = old.owner.results if isinstance(old.owner, Operation) else old.owner.args
    places[places.index(old)] = new
    return new


def _rebuild_users(old: Value, new: Value, rebuild: Rebuild, builder: Builder) -> None:
    """Let users of `old` read what is rebuilt from the scalar `new`."""
    if old.uses:
        old.replace_all_uses_with(rebuild(builder, new))


def _at_start(region: Region) -> Builder:
    return Builder(region, region.ops[0], region.ops[0].location)


def _end(region: Region) -> Operation:
    assert region.terminator is not None
    return region.terminator


def _hand_on(end: Operation, index: int, scalar: Value, steps: Sequence[_Step]) -> None:
    """Hand the scalar on in place of the value that the steps made; drop steps that nobody reads now."""
    end.set_operand(index, scalar)
    for step in steps:
        if step.op.result.uses:
            return
        step.op.erase()


# ---- if ----


def _split_result(op: If, index: int) -> None:
    """Step after the `if`, by what the arm taken adds."""
    result = op.results[index]
    sum_type = _sum_type(result.type)
    if sum_type is None:
        return
    common = _common_origin(op, index)
    if common is None:
        return
    base, arms = common
    new = _narrow(result, sum_type)
    for region, steps in zip(op.regions, arms, strict=True):
        end = _end(region)
        zero = make_constant(Builder.before_op(end), 0, sum_type)
        _hand_on(end, index, _advance(zero, steps, end), steps)
    _rebuild_users(result, new, _rebuild_from(base), Builder.after_op(op))


def _common_origin(op: If, index: int) -> tuple[Value, list[list[_Step]]] | None:
    """The nearest value above `op` that both arms step from, uniformly, and the steps of each."""
    then, otherwise = (dict(_origins(_end(region).operands[index])) for region in op.regions)
    for base, steps in then.items():
        if base in otherwise and not _is_inside(base, op):
            arms = [steps, otherwise[base]]
            return (base, arms) if any(arms) and all(map(_are_uniform, arms)) else None
    return None


# ---- loops ----


def _split_for(op: For, slot: int) -> None:
    carried, result, end = op.body.args[1 + slot], op.results[slot], _end(op.body)
    sum_type = _sum_type(carried.type)
    steps = _steps_from(carried, end.operands[slot])
    if sum_type is None or not steps:
        return
    rebuild, uniform = _loop_form(op, op.inits[slot], steps)
    if rebuild is None:
        return
    op.set_operand(op.segments["inits"][0] + slot, make_constant(Builder.before_op(op), 0, sum_type))
    new, new_result = _narrow(carried, sum_type), _narrow(result, sum_type)
    following = _advance(new, steps, end) if uniform else _next_round(new, end)
    _hand_on(end, slot, following, steps)
    _rebuild_users(carried, new, rebuild, _at_start(op.body))
    _rebuild_users(result, new_result, rebuild, Builder.after_op(op))


def _loop_form(loop: Operation, base: Value, steps: Sequence[_Step]) -> tuple[Rebuild | None, bool]:
    """How to rebuild what a loop carries, and whether its scalar sums the steps; else it counts rounds."""
    if _are_uniform(steps):
        return _rebuild_from(base), True
    pointers = isinstance(element_type(base.type), PointerType)
    if not pointers or any(_is_inside(step.addend, loop) for step in steps):
        return None, False
    builder = Builder.before_op(loop)
    first, *others = (_widened(step.addend, I64, builder) for step in reversed(steps))
    stride = first
    for addend in others:
        stride = builder.value(Add, stride, addend)
    return _rebuild_counted(base, stride), False


def _next_round(rounds: Value, end: Operation) -> Value:
    builder = Builder.before_op(end)
    return builder.value(Add, rounds, make_constant(builder, 1, I64))


def _split_while(op: While, slot: int) -> None:
    """Split what is carried into the first region, handed on to the second, and comes back from there."""
    carried, end = op.before.args[slot], _end(op.after)
    sum_type = _sum_type(carried.type)
    handed_on = _handed_on(op, slot)
    if sum_type is None or handed_on is None:
        return
    index, first, second = handed_on
    # Rounds are counted where they end; a step in the first region would come before.
    if first and not _are_uniform([*first, *second]):
        return
    rebuild, uniform = _loop_form(op, op.inits[slot], [*second, *first])
    if rebuild is None:
        return
    condition, passed, result = _end(op.before), op.after.args[index], op.results[index]
    op.set_operand(op.segments["inits"][0] + slot, make_constant(Builder.before_op(op), 0, sum_type))
    new, new_passed, new_result = (_narrow(v, sum_type) for v in (carried, passed, result))
    _hand_on(condition, condition.segments["values"][0] + index, _advance(new, first, condition), first)
    following = _advance(new_passed, second, end) if uniform else _next_round(new_passed, end)
    _hand_on(end, slot, following, second)
    _rebuild_users(carried, new, rebuild, _at_start(op.before))
    _rebuild_users(passed, new_passed, rebuild, _at_start(op.after))
    _rebuild_users(result, new_result, rebuild, Builder.after_op(op))


def _handed_on(op: While, slot: int) -> tuple[int, list[_Step], list[_Step]] | None:
    """Under which index a carried value goes to the second region and back, and its steps in both regions."""
    values, following = _end(op.before).segment("values"), _end(op.after).operands[slot]
    for index, (value, passed) in enumerate(zip(values, op.after.args, strict=True)):
        first, second = _steps_from(op.before.args[slot], value), _steps_from(passed, following)
        if first is not None and second is not None and (first or second):
            return index, first, second
    return None
