"""Which arguments a kernel writes."""

from __future__ import annotations

from blocklang.ir import Kernel, Value
from blocklang.ir.core import Region
from blocklang.ir.declaration import Effect
from blocklang.ir.types import PointerType, ShapedType, Type
from blocklang.ops.control import Condition, For, If, While


def _holds_pointers(type_: Type) -> bool:
    element = type_.element if isinstance(type_, ShapedType) else type_
    return isinstance(element, PointerType)


def written_arguments(kernel: Kernel) -> frozenset[str]:
    """The names of the arguments through which Block IR may store.

    Pointers are followed backwards from every writing operation, through arithmetic, selections, branches and
    loops.
    """
    reached: set[Value] = set()
    pending = [
        operand
        for op in kernel.walk()
        if Effect.WRITE in op.effects
        for operand in op.operands
        if _holds_pointers(operand.type)
    ]
    while pending:
        value = pending.pop()
        if value not in reached and _holds_pointers(value.type):
            reached.add(value)
            pending += _sources(value)
    return frozenset(arg.name for arg in kernel.args if arg in reached)


def _sources(value: Value) -> list[Value]:
    """The values that `value` may be, or be computed from."""
    op = value.defining_op
    if op is None:
        assert isinstance(value.owner, Region)
        return _sources_of_region_argument(value.owner, value.owner.args.index(value))
    index = op.results.index(value)
    if isinstance(op, If):
        return [r.terminator.operands[index] for r in op.regions if r.terminator is not None]
    if isinstance(op, For):
        return _carried(op.body, index, op.inits[index])
    if isinstance(op, While):
        end = op.before.terminator
        assert isinstance(end, Condition)
        return [end.values[index]]
    return list(op.operands)


def _sources_of_region_argument(region: Region, index: int) -> list[Value]:
    op = region.parent_op
    if isinstance(op, For):
        return _carried(region, index - 1, op.inits[index - 1]) if index else []
    if isinstance(op, While) and region is op.before:
        return _carried(op.after, index, op.inits[index])
    if isinstance(op, While):
        end = op.before.terminator
        assert isinstance(end, Condition)
        return [end.values[index]]
    return list(op.operands) if op is not None else []


def _carried(region: Region, index: int, initial: Value) -> list[Value]:
    return [initial, *([region.terminator.operands[index]] if region.terminator is not None else [])]
