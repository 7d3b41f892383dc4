"""Rules of `canonicalise` for control flow: decided branches, short loops, values handed through.

    %true = constant value=true : i1
    %r = if %true : i32 {
      %a = add %x, %x : i32
      yield %a
    } {
      yield %x
    }

becomes

    %a = add %x, %x : i32

with %a in the place of %r. Bounds of a loop are those of Python's range, so its rounds are counted without
overflow.
"""

from __future__ import annotations

from collections.abc import Sequence

from blocklang.ir.builder import Builder
from blocklang.ir.core import Operation, Region, Value
from blocklang.ir.types import I1
from blocklang.ops.control import For, If, While
from blocklang.ops.elementwise import Xor
from blocklang.passes.uniform import constant_of, make_constant

CONTROL = (If, For, While)


def simplify_control(op: Operation) -> bool:
    """Apply the rules that fit an `if`, `for` or `while`. True if one did."""
    match op:
        case If():
            return _decided_if(op) or _equal_results(op) or _empty_else(op)
        case For():
            return _no_round(op) or _one_round(op) or _unchanged(op)
        case While():
            return _never_again(op) or _unchanged_in_while(op)
    return False


def _end(region: Region) -> Operation:
    assert region.terminator is not None
    return region.terminator


def _inline(op: Operation, region: Region, arguments: Sequence[Value]) -> None:
    """Move what `region` holds, but its terminator, before `op`; `arguments` stand for the region's own."""
    for argument, value in zip(region.args, arguments, strict=True):
        argument.replace_all_uses_with(value)
    assert op.parent is not None
    position, moved = op.parent.ops.index(op), region.ops[:-1]
    region.ops[:] = region.ops[-1:]
    op.parent.ops[position:position] = moved
    for inner in moved:
        inner.parent = op.parent


def _decided_if(op: If) -> bool:
    decided = constant_of(op.condition)
    if decided is None:
        return False
    arm: Region | None = op.then_region if decided else op.else_region
    if arm is None:
        op.erase()
        return True
    _inline(op, arm, [])
    op.replace_with(*_end(arm).operands)
    return True


def _equal_results(op: If) -> bool:
    """Results that are one value in both arms, or the condition itself."""
    if len(op.regions) != 2:
        return False
    arms = zip(*(_end(arm).operands for arm in op.regions), strict=True)
    changed = False
    for result, (then, otherwise) in zip(op.results, list(arms), strict=True):
        if not result.uses:
            continue
        if then is otherwise:
            result.replace_all_uses_with(then)
        elif result.type == I1 and (constant_of(then), constant_of(otherwise)) == (True, False):
            result.replace_all_uses_with(op.condition)
        elif result.type == I1 and (constant_of(then), constant_of(otherwise)) == (False, True):
            builder = Builder.before_op(op)
            result.replace_all_uses_with(builder.value(Xor, op.condition, make_constant(builder, True, I1)))
        else:
            continue
        changed = True
    return changed


def _empty_else(op: If) -> bool:
    if op.results or op.else_region is None or len(op.else_region.ops) != 1:
        return False
    _end(op.else_region).drop_operands()
    op.regions.pop().parent = None
    return True


def _rounds(op: For) -> int | None:
    bounds = [constant_of(v) for v in (op.start, op.stop, op.step)]
    if any(b is None for b in bounds) or bounds[2] == 0:
        return None
    start, stop, step = (int(b) for b in bounds if b is not None)
    # `len` of a range is limited to the size of a pointer.
    return max(0, -((start - stop) // step))


def _no_round(op: For) -> bool:
    if _rounds(op) != 0 and op.start is not op.stop:
        return False
    op.replace_with(*op.inits)
    return True


def _one_round(op: For) -> bool:
    if _rounds(op) != 1:
        return False
    _inline(op, op.body, [op.start, *op.inits])
    op.replace_with(*_end(op.body).operands)
    return True


def _read_instead(value: Value, *replaced: Value) -> bool:
    """Let users of other values read `value`. True if there were any."""
    used = [old for old in replaced if old.uses]
    for old in used:
        old.replace_all_uses_with(value)
    return bool(used)


def _unchanged(op: For) -> bool:
    """Read the initial value where a loop carries it and never changes it."""
    slots = zip(op.inits, op.body.args[1:], _end(op.body).operands, op.results, strict=True)
    changed = False
    for init, argument, yielded, result in list(slots):
        if yielded is argument or yielded is init:
            changed |= _read_instead(init, argument, result)
    return changed


def _unchanged_in_while(op: While) -> bool:
    """The same for a value that goes through both regions, and for one from above that is passed on."""
    inits, passed = op.inits, _end(op.before).segment("values")
    same = {(value, argument) for value, argument in zip(passed, op.after.args, strict=True)}
    changed = False
    for init, argument, yielded in zip(inits, op.before.args, list(_end(op.after).operands), strict=True):
        if yielded is init or (argument, yielded) in same:
            changed |= _read_instead(init, argument)
    passed = _end(op.before).segment("values")
    for value, argument, result in zip(passed, op.after.args, op.results, strict=True):
        if value in inits:
            changed |= _read_instead(value, argument, result)
    return changed


def _never_again(op: While) -> bool:
    condition = _end(op.before)
    if constant_of(condition.operands[0]) is not False:
        return False
    _inline(op, op.before, op.inits)
    op.replace_with(*condition.segment("values"))
    return True
