"""Which arguments a kernel writes, and how the memory of its arrays overlaps.

The alias class of a launch is the worst over all pairs of arrays of which the kernel writes one:

    disjoint   no byte belongs to both
    same       equal address, strides and element size: in place
    unknown    anything else; strided views that never meet included

Arrays that the kernel only reads may overlap as they like.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from blocklang.ir import Kernel, Value
from blocklang.ir.core import Region
from blocklang.ir.declaration import Effect
from blocklang.ir.types import PointerType, ShapedType, Type
from blocklang.ops.control import Condition, For, If, While
from blocklang.runtime.arrays import Array

CLASSES = ("disjoint", "same", "unknown")  # from the best to the worst


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


def alias_class(arrays: Sequence[tuple[Array, bool]]) -> str:
    """The alias class of a launch, from its arrays and whether the kernel writes each."""
    if not any(is_written for _, is_written in arrays):
        return CLASSES[0]
    worst = 0
    described = [(array, array.byte_range(), is_written) for array, is_written in arrays]
    for (one, span, one_is_written), (other, other_span, other_is_written) in combinations(described, 2):
        meets = span[0] < other_span[1] and other_span[0] < span[1]
        if meets and (one_is_written or other_is_written):
            worst = max(worst, CLASSES.index(_overlap(one, other)))
    return CLASSES[worst]


def _overlap(one: Array, other: Array) -> str:
    """The class of two arrays whose byte ranges meet."""
    if 0 in one.shape or 0 in other.shape:
        return "disjoint"
    same_place = one.address == other.address and one.strides == other.strides
    return "same" if same_place and one.element.bytes == other.element.bytes else "unknown"
