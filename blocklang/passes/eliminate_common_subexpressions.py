"""Compute equal things once: an operation that repeats an earlier one is replaced by it.

    kernel @k(%p: ptr<i32>, %x: i32, %y: i32, %c: i1) {
      %a = add %x, %y : i32
      if %c {
        %b = add %y, %x : i32
        store %p, %b
        yield
      }
      store %p, %a
      return
    }

becomes

    kernel @k(%p: ptr<i32>, %x: i32, %y: i32, %c: i1) {
      %a = add %x, %y : i32
      if %c {
        store %p, %a
        yield
      }
      store %p, %a
      return
    }

Two operations are equal if they are pure, hold no regions, and have the same operands (in any order where
the operation commutes), attributes and result types. The earlier one must dominate: it stands above in the
same region or in one around it. Loads are not merged, and a buffer is never equal to another one.

Requires: nothing.
Keeps: every bit of every result but the payload of a NaN (operands may change places); every level.
"""

from __future__ import annotations

import struct
from collections.abc import Hashable

from blocklang.ir.core import Attribute, Kernel, Operation, Region
from blocklang.ops.elementwise import Add, And, Compare, Fma, Maximum, Minimum, Mul, Or, UnsignedMulHigh, Xor
from blocklang.ops.tile import BufferOp

_COMMUTATIVE = frozenset({Add, And, Fma, Maximum, Minimum, Mul, Or, UnsignedMulHigh, Xor})
_SYMMETRIC_PREDICATES = ("eq", "ne")


def eliminate_common_subexpressions(kernel: Kernel) -> None:
    """Replace every operation that repeats a dominating one."""
    _visit(kernel.body, {})


def _visit(region: Region, available: dict[Hashable, Operation]) -> None:
    """Replace repetitions in `region`; `available` holds what dominates it, and learns what stands in it."""
    repeated: set[Operation] = set()
    for op in region.ops:
        if op.regions:
            for inner in op.regions:
                _visit(inner, dict(available))
        elif _is_comparable(op):
            earlier = available.setdefault(_key(op), op)
            if earlier is not op:
                for old, new in zip(op.results, earlier.results, strict=True):
                    old.replace_all_uses_with(new)
                op.drop_operands()
                op.parent = None
                repeated.add(op)
    if repeated:
        region.ops[:] = [op for op in region.ops if op not in repeated]


def _is_comparable(op: Operation) -> bool:
    return not (op.effects or op.is_terminator or isinstance(op, BufferOp))


def _key(op: Operation) -> Hashable:
    """Equal for operations that compute the same."""
    operands = [id(value) for value in op.operands]
    # In `fma` the factors change places, the addend does not.
    count = 2 if _is_commutative(op) else 0
    attributes = tuple((name, attribute_key(value)) for name, value in sorted(op.attributes.items()))
    types = tuple(result.type for result in op.results)
    return type(op), *sorted(operands[:count]), *operands[count:], attributes, types


def _is_commutative(op: Operation) -> bool:
    if isinstance(op, Compare):
        return op.predicate in _SYMMETRIC_PREDICATES
    return type(op) in _COMMUTATIVE


def attribute_key(value: Attribute) -> Hashable:
    """Equal for attributes that mean the same: 0.0 is not -0.0, 1 is neither True nor 1.0, NaN is NaN."""
    match value:
        case tuple():
            return tuple(map(attribute_key, value))
        case float():
            return "nan" if value != value else struct.pack("<d", value)
    return type(value), value
