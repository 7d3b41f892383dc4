"""From which pointer arguments an address may come.

A pointer is followed back through offsets, shape operations, choices and casts between pointer types, through
what loops carry and what an `if` results in. What is made of an integer may lead anywhere.

Level block.
"""

from __future__ import annotations

from collections.abc import Iterable

from blocklang.analysis.handed_on import handed_on
from blocklang.ir.core import Kernel, Region, Value
from blocklang.ir.types import PointerType, element_type
from blocklang.ops.creation import Constant, Splat
from blocklang.ops.elementwise import Bitcast, Cast, Select
from blocklang.ops.memory import Offset
from blocklang.ops.order import Gather
from blocklang.ops.shape import Cat, ShapeOperation


def pointer_origins(pointer: Value) -> frozenset[Value] | None:
    """The pointer arguments that the lanes of `pointer` may come from; None if they may come from anywhere.

    The null pointer comes from none.
    """
    found: set[Value] = set()
    seen: set[Value] = set()
    waiting = [pointer]
    while waiting:
        value = waiting.pop()
        if value in seen:
            continue
        seen.add(value)
        if isinstance(value.owner, Region) and isinstance(value.owner.parent, Kernel):
            found.add(value)
            continue
        sources = _sources(value)
        if sources is None or not all(isinstance(element_type(s.type), PointerType) for s in sources):
            return None
        waiting.extend(sources)
    return frozenset(found)


def _sources(value: Value) -> Iterable[Value] | None:
    """The values whose lanes those of a pointer are, or are offsets from; None if that is not known."""
    match value.owner:
        case Offset() as op:
            return [op.pointer]
        case (Splat() | ShapeOperation() | Cast() | Bitcast() | Gather()) as op:
            return [op.source]
        case Cat() as op:
            return [op.first, op.second]
        case Select() as op:
            return [op.if_true, op.if_false]
        case Constant():
            return []
    return handed_on(value) or None
