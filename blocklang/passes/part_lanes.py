"""Loops that run until no lane is alive become loops of each lane.

    kernel @k(%p: ptr<i32>) {
      %x = arange start=0, end=64 : block<64xi32>
      %c0 = constant value=0 : i32
      %c1 = constant value=1 : i32
      %yes = constant value=true : block<64xi1>
      %y, %live = while %x, %yes : block<64xi32>, block<64xi1> {
        (%a: block<64xi32>, %m: block<64xi1>):
        %i = cast %m : block<64xi32>
        %r = reduce %i, combine="max", axis=0 : i32
        %any = cmp %r, %c0, predicate="gt" : i1
        condition %any, %a, %m
      } {
        (%b: block<64xi32>, %n: block<64xi1>):
        %d = sub %b, %c1 : block<64xi32>
        %e = select %n, %d, %b : block<64xi32>
        %f = cmp %d, %c0, predicate="gt" : block<64xi1>
        %g = and %n, %f : block<64xi1>
        yield %e, %g
      }
      %q = offset %p, %x : block<64xptr<i32>>
      store %q, %y
      return
    }

becomes

    kernel @k(%p: ptr<i32>) {
      %x = arange start=0, end=64 : block<64xi32>
      %c0 = constant value=0 : i32
      %c1 = constant value=1 : i32
      %yes = constant value=true : block<64xi1>
      %y, %live = map_elementwise %x, %yes : block<64xi32>, block<64xi1> {
        (%v0: i32, %v1: i1):
        %v2, %v3 = while %v0, %v1 : i32, i1 {
          (%a: i32, %m: i1):
          condition %m, %a, %m
        } {
          (%b: i32, %n: i1):
          %v4 = constant value=true : i1
          %d = sub %b, %c1 : i32
          %e = select %v4, %d, %b : i32
          %f = cmp %d, %c0, predicate="gt" : i1
          %g = and %v4, %f : i1
          yield %e, %g
        }
        yield %v2, %v3
      }
      %q = offset %p, %x : block<64xptr<i32>>
      store %q, %y
      return
    }

A lane that is not alive must keep all it carries, or the rounds that it would still take part in would be
missed: with the lane's `%n` false, every yielded value has to be the argument in whose place it stands.
What is alive may be carried, or be computed from what lanes carry. Scalars may decide about the rounds too,
since they take the same values whoever is alive, if nobody asks for their last ones. What a block carries
then stays in registers, and vectors of lanes leave the loop by themselves.

Requires: level block. Keeps: all results.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from blocklang.ir.builder import Builder
from blocklang.ir.core import Kernel, Operation, Region, Value
from blocklang.ir.rewriting import clone_operation
from blocklang.ir.types import I1, BlockType, ScalarType, element_type, shape_of
from blocklang.ops.control import While, Yield
from blocklang.ops.creation import Constant, Splat
from blocklang.ops.elementwise import And, Cast, Compare, Elementwise, Or, Select, Xor
from blocklang.ops.reduction import Reduce
from blocklang.ops.scan import MapElementwise
from blocklang.ops.shape import Reshape
from blocklang.passes.uniform import constant_of


def part_lanes(kernel: Kernel) -> None:
    """Rewrite every such loop of a kernel, in place."""
    assert kernel.level == "block"
    for op in list(kernel.walk()):
        if isinstance(op, While) and (question := _question(op)) is not None:
            numbers = _Numbers(op)
            if _is_lane_wise(op, question) and _stay(op, question, numbers):
                _rewrite(op, question, numbers)


@dataclass(frozen=True)
class _Question:
    """Whether any lane is alive.

    Attributes:
        answer: the condition.
        alive: the lanes' masks.
        steps: the operations from `alive` to `answer`.
    """

    answer: Value
    alive: Value
    steps: frozenset[Operation]


def _question(op: While) -> _Question | None:
    """The one question of this kind in a loop's condition."""
    end = op.before.terminator
    assert end is not None
    found = [q for part in _conjuncts(end.condition) if (q := _asked(part)) is not None]
    if len(found) != 1 or any(step.parent is not op.before for step in found[0].steps):
        return None
    (question,) = found
    readers = {user for step in question.steps for result in step.results for user in result.users}
    allowed = (*question.steps, *_conjunctions(end.condition), end)
    return question if all(user in allowed for user in readers) else None


def _conjuncts(value: Value) -> Iterator[Value]:
    op = value.defining_op
    if isinstance(op, And) and value.type == I1:
        yield from _conjuncts(op.lhs)
        yield from _conjuncts(op.rhs)
    else:
        yield value


def _conjunctions(value: Value) -> Iterator[Operation]:
    op = value.defining_op
    if isinstance(op, And):
        yield op
        yield from _conjunctions(op.lhs)
        yield from _conjunctions(op.rhs)


_BOUNDS = {"gt": 0, "ne": 0, "ge": 1}  # what a count of lanes is compared with


def _asked(answer: Value) -> _Question | None:
    """`reduce(alive) > 0` by maximum, sum or disjunction of all lanes."""
    compare = answer.defining_op
    if not isinstance(compare, Compare) or compare.predicate not in _BOUNDS:
        return None
    if constant_of(compare.rhs) != _BOUNDS[compare.predicate]:
        return None
    steps: list[Operation] = [compare]
    value = compare.lhs
    while isinstance(op := value.defining_op, (Reduce, Reshape)):
        if isinstance(op, Reduce) and op.combine not in ("max", "sum", "or"):
            return None
        steps.append(op)
        value = op.source
    total, cast = element_type(value.type), value.defining_op
    if len(steps) < 2 or isinstance(compare.lhs.type, BlockType) or not isinstance(cast, Cast):
        return None
    # A sum of narrow numbers may wrap to 0.
    is_wide = isinstance(total, ScalarType) and not total.is_float and total.bits >= 32
    if not is_wide or element_type(cast.source.type) != I1:
        return None
    return _Question(answer, cast.source, frozenset((*steps, cast)))


class _Numbers:
    """Equal numbers for values that are equal whenever both regions see the same arguments."""

    def __init__(self, op: While) -> None:
        self._known: dict[object, int] = {}
        self._numbers: dict[Value, int] = {}
        for region in (op.before, op.after):
            for position, arg in enumerate(region.args):
                self._numbers[arg] = self._number(("argument", position))
            for inner in region.ops:
                operands = tuple(self.of(v) for v in inner.operands)
                for position, result in enumerate(inner.results):
                    self._numbers[result] = self._number(_key_of(inner, operands, position))

    def of(self, value: Value) -> int:
        if value not in self._numbers:
            op = value.defining_op
            self._numbers[value] = self._number(_key_of(op, (), 0) if isinstance(op, Constant) else value)
        return self._numbers[value]

    def _number(self, key: object) -> int:
        return self._known.setdefault(key, len(self._known))


def _key_of(op: Operation, operands: tuple[int, ...], position: int) -> object:
    """What decides a result of an operation that only computes."""
    attributes = repr(sorted(op.attributes.items(), key=lambda item: item[0]))
    return (op.__class__, attributes, operands, str(op.results[position].type), position)


# ---- what must hold ----


def _is_lane_wise(op: While, question: _Question) -> bool:
    """True if the loop hands on what it carries, and all it does is done to each lane by itself."""
    end = op.before.terminator
    assert end is not None
    shape = shape_of(question.alive.type)
    if list(end.values) != list(op.before.args):
        return False
    if any(r.uses for r in op.results if not isinstance(r.type, BlockType)):
        return False
    inner = [o for region in op.regions for o in region.ops if o not in question.steps]
    values = [v for o in inner for v in (*o.operands, *o.results)]
    return all(o.is_terminator or _works_on_lanes(o) for o in inner) and all(
        shape_of(v.type) == shape for v in values if isinstance(v.type, BlockType)
    )


def _works_on_lanes(op: Operation) -> bool:
    return isinstance(op, (Elementwise, Constant, Splat)) and not op.effects and not op.regions


def _stay(op: While, question: _Question, numbers: _Numbers) -> bool:
    """True if a lane that is not alive stays so, and keeps all it carries."""
    alive = numbers.of(question.alive)
    if _reads_scalars(question.alive, op):
        return False
    dead: dict[Value, int | bool] = {}

    def known(value: Value) -> int | bool:
        number = numbers.of(value)
        constant = constant_of(value) if element_type(value.type) == I1 else None
        return False if number == alive else dead.get(value, number if constant is None else bool(constant))

    for inner in op.after.ops[:-1]:
        if (result := _when_dead(inner, [known(v) for v in inner.operands])) is not None:
            dead[inner.results[0]] = result
    end = op.after.terminator
    assert end is not None
    return all(
        known(value) == known(arg) and isinstance(known(value), bool) == isinstance(known(arg), bool)
        for arg, value in zip(op.after.args, end.operands, strict=True)
        if isinstance(arg.type, BlockType)
    )


def _reads_scalars(value: Value, op: While) -> bool:
    """True if a value of the first region depends on a scalar that the loop carries."""
    stack, seen = [value], set()
    while stack:
        current = stack.pop()
        if current in op.before.args and not isinstance(current.type, BlockType):
            return True
        inner = current.defining_op
        if inner is not None and inner.parent is op.before and inner not in seen:
            seen.add(inner)
            stack += inner.operands
    return False


def _when_dead(op: Operation, operands: list[int | bool]) -> int | bool | None:
    """What an operation gives, of the numbers of values and of known booleans; None for something new."""
    if isinstance(op, Select):
        condition, yes, no = operands
        if isinstance(condition, bool):
            return yes if condition else no
        return yes if yes is no or (yes == no and type(yes) is type(no)) else None
    if element_type(op.results[0].type) != I1 or not isinstance(op, (And, Or, Xor)):
        return None
    for one, other in (operands, operands[::-1]):
        if isinstance(one, bool):
            if isinstance(op, Xor):
                return one != other if isinstance(other, bool) else None if one else other
            decides = one is isinstance(op, Or)
            return one if decides else other
    return None


# ---- the change ----


def _rewrite(op: While, question: _Question, numbers: _Numbers) -> None:
    builder = Builder.before_op(op)
    blocks = list(dict.fromkeys(v for v in _read_outside(op, question) if isinstance(v.type, BlockType)))
    region = Region([element_type(v.type) for v in blocks])
    outside = dict(zip(blocks, region.args, strict=True))
    with builder.at(region):
        inits = [outside.get(v, v) for v in op.inits]
        regions = [_lanes_of(part, question, numbers, outside) for part in op.regions]
        lanes = builder.create(While, inits, result_types=[v.type for v in inits], regions=regions)
        outputs = [r for r in op.results if isinstance(r.type, BlockType)]
        results = [lanes.results[op.results.index(r)] for r in outputs]
        builder.create(Yield, results)
    mapped = builder.create(MapElementwise, blocks, result_types=[r.type for r in outputs], regions=[region])
    for old, new in zip(outputs, mapped.results, strict=True):
        new.name = old.name
        old.replace_all_uses_with(new)
    op.erase()


def _read_outside(op: While, question: _Question) -> Iterator[Value]:
    """The values from outside that the loop starts from or reads."""
    yield from op.inits
    inside = {v for region in op.regions for v in region.args}
    inside |= {r for region in op.regions for inner in region.ops for r in inner.results}
    for region in op.regions:
        for inner in region.ops:
            if inner not in question.steps or question.alive in inner.operands:
                yield from (v for v in inner.operands if v not in inside)


def _lanes_of(region: Region, question: _Question, numbers: _Numbers, outside: dict[Value, Value]) -> Region:
    """A region of the loop for one lane, which is alive if it gets to the second."""
    copy = Region([element_type(a.type) for a in region.args], [a.name for a in region.args])
    mapping = {**outside, **dict(zip(region.args, copy.args, strict=True))}
    builder = Builder(copy, location=region.ops[-1].location)
    values = [*region.args, *(r for op in region.ops for r in op.results)]
    is_first = any(question.answer in op.results for op in region.ops)
    alive = set() if is_first else {v for v in values if numbers.of(v) == numbers.of(question.alive)}
    if alive:
        true = builder.value(Constant, value=True, result_types=[I1])
        mapping.update(dict.fromkeys(alive, true))
    for op in region.ops:
        if question.answer in op.results:
            mapping[question.answer] = mapping.get(question.alive, question.alive)
        elif isinstance(op, Splat):
            mapping[op.result] = mapping.get(op.source, op.source)
        elif op not in question.steps and alive.isdisjoint(op.results):
            lane = clone_operation(op, mapping)
            for result in lane.results:
                result.type = element_type(result.type)
            builder.insert(lane)
    return copy
