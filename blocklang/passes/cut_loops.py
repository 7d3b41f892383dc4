"""Cut loops where a choice by their index changes: blocks behind each other become loops behind each other.

    placed @k(%x: ptr<f32>, %y: ptr<f32>, %z: ptr<f32>) {
      %c0 = constant value=0 : i64
      %c3 = constant value=3 : i64
      %c2 = constant value=2 : i64
      %c5 = constant value=5 : i64
      lanes %c0, %c5, width=4 {
        (%i: i64):
        %a = rem %i, %c3 : i64
        %p = offset %x, %a : ptr<f32>
        %v = load %p : f32
        %one = constant value=1 : i64
        %s = add %i, %one : i64
        %b = rem %s, %c2 : i64
        %q = offset %y, %b : ptr<f32>
        %w = load %q : f32
        %m = cmp %i, %c3, predicate="lt" : i1
        %u = select %m, %v, %w : f32
        %r = offset %z, %i : ptr<f32>
        store %r, %u
        yield
      }
      return
    }

becomes

    placed @k(%x: ptr<f32>, %y: ptr<f32>, %z: ptr<f32>) {
      %c0 = constant value=0 : i64
      %c3 = constant value=3 : i64
      %c2 = constant value=2 : i64
      %c5 = constant value=5 : i64
      %v0 = constant value=3 : i64
      lanes %c0, %v0, width=4 {
        (%i: i64):
        %p = offset %x, %i : ptr<f32>
        %v = load %p : f32
        %r = offset %z, %i : ptr<f32>
        store %r, %v
        yield
      }
      lanes %v0, %c5, width=4 {
        (%i_0: i64):
        %one = constant value=1 : i64
        %s = add %i_0, %one : i64
        %v1 = constant value=-4 : i64
        %b = add %s, %v1 : i64
        %q = offset %y, %b : ptr<f32>
        %w = load %q : f32
        %r_0 = offset %z, %i_0 : ptr<f32>
        store %r_0, %w
        yield
      }
      return
    }

In each part the choice is known, the side that is not chosen is not computed, and a remainder that wraps at
the cut is a sum. A loop that folds is not cut: its order of evaluation is its own. Code grows with the number
of choices, not with extents.

Requires: level placed. Keeps: all results; every effect and its order.
"""

from __future__ import annotations

from blocklang.ir.builder import Builder
from blocklang.ir.core import Kernel, Operation, Value
from blocklang.ir.declaration import Effect
from blocklang.ir.rewriting import clone_operation
from blocklang.ir.types import I64
from blocklang.ops.creation import Constant
from blocklang.ops.elementwise import Add, Compare, IntegerDiv, Rem, Select
from blocklang.ops.memory import Load
from blocklang.ops.scan import Running
from blocklang.ops.tile import Group, Lanes

MAXIMUM_PARTS = 16  # of one loop


def cut_loops(kernel: Kernel) -> None:
    """Cut the loops of a placed kernel, in place."""
    assert kernel.level == "placed"
    pending = [op for op in kernel.walk() if isinstance(op, (Group, Lanes))]
    parts = dict.fromkeys(pending, 1)
    while pending:
        loop = pending.pop()
        ends = _ends(loop)
        if ends is None or loop.results or parts[loop] >= MAXIMUM_PARTS:
            continue
        if any(isinstance(op, Running) for op in loop.body.ops):  # its end needs its beginning
            continue
        cut = _cut(loop, *ends)
        if cut is None:
            continue
        count = 2 * parts[loop]
        for part in _parts(loop, cut):
            loops = [part, *(op for region in part.regions for op in region.walk())]
            inner = [op for op in loops if isinstance(op, (Group, Lanes))]
            parts |= dict.fromkeys(inner, count)
            pending += inner


def _constant(value: Value) -> int | None:
    op = value.defining_op
    return int(op.value) if isinstance(op, Constant) and value.type == I64 else None


def _ends(loop: Group | Lanes) -> tuple[int, int] | None:
    low, high = _constant(loop.low), _constant(loop.high)
    return None if low is None or high is None else (low, high)


def _choices(loop: Operation) -> list[tuple[Operation, int]]:
    """The comparisons `index < constant` that choose between values, each with the constant."""
    found: list[tuple[Operation, int]] = []
    for op in loop.regions[0].args[0].users:
        if not isinstance(op, Compare) or op.predicate != "lt" or op.lhs is not loop.regions[0].args[0]:
            continue
        limit = _constant(op.rhs)
        users = op.result.users
        if limit is not None and users and all(_chooses(user, op.result) for user in users):
            found.append((op, limit))
    return found


def _chooses(user: Operation, condition: Value) -> bool:
    return isinstance(user, Select) and user.condition is condition


def _cut(loop: Operation, low: int, high: int) -> int | None:
    """Where the first choice inside of [low, high) changes; None if there is none."""
    return min((limit for _, limit in _choices(loop) if low < limit < high), default=None)


def _parts(loop: Group | Lanes, cut: int) -> list[Group | Lanes]:
    """Replace a loop by one up to `cut` and one from there on."""
    builder = Builder.before_op(loop)
    middle = builder.value(Constant, value=cut, result_types=[I64])
    parts: list[Group | Lanes] = []
    for low, high in ((loop.low, middle), (middle, loop.high)):
        part = clone_operation(loop, {})
        assert isinstance(part, (Group, Lanes))
        part.set_operand(0, low)
        part.set_operand(1, high)
        builder.insert(part)
        parts.append(part)
    loop.erase()
    for part in parts:
        ends = _ends(part)
        assert ends is not None
        _decide(part, *ends)
        _simplify_divisions(part, *ends)
        _sweep(part)
    return parts


def _decide(loop: Operation, low: int, high: int) -> None:
    """Take the side of every choice that the loop's ends decide."""
    for compare, limit in _choices(loop):
        if low < limit < high:
            continue
        for user in list(compare.results[0].users):
            assert isinstance(user, Select)
            user.result.replace_all_uses_with(user.if_true if high <= limit else user.if_false)


def _simplify_divisions(loop: Operation, low: int, high: int) -> None:
    """Quotients and remainders of the index, and of sums with a constant, that are one multiple apart."""
    index = loop.regions[0].args[0]
    shifted: list[tuple[Value, int]] = [(index, 0)]
    for user in index.users:
        if isinstance(user, Add) and user.lhs is index and (shift := _constant(user.rhs)) is not None:
            shifted.append((user.result, shift))
    for value, shift in shifted:
        for user in list(dict.fromkeys(value.users)):
            if not isinstance(user, (IntegerDiv, Rem)) or user.lhs is not value:
                continue
            divisor = _constant(user.rhs)
            if divisor is None or divisor < 1 or low + shift < 0:
                continue
            quotient = (low + shift) // divisor
            if (high - 1 + shift) // divisor == quotient:
                user.replace_with(_quotient_or_rest(user, value, quotient, divisor))


def _quotient_or_rest(op: Operation, value: Value, quotient: int, divisor: int) -> Value:
    builder = Builder.before_op(op)
    if isinstance(op, IntegerDiv):
        return builder.value(Constant, value=quotient, result_types=[I64])
    if quotient == 0:
        return value
    rest = builder.value(Constant, value=-quotient * divisor, result_types=[I64])
    return builder.value(Add, value, rest, name=op.results[0].name)


def _sweep(loop: Operation) -> None:
    """Drop what nobody reads any more, loads included."""
    for op in reversed([op for region in loop.regions for op in region.walk()]):
        unread = op.results and not any(r.users for r in op.results)
        reads = {Effect.READ, Effect.READ_BUFFER}
        if (
            unread
            and not op.regions
            and not op.effects - reads
            and not (isinstance(op, Load) and op.volatile)
        ):
            op.erase()
