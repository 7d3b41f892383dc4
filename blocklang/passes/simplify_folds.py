"""Rule of `canonicalise` for reductions with a function that is a known one, of which no order matters.

    %r = reduce_with %x, axis=0 : i32 {
      (%a: i32, %b: i32):
      %c = add %a, %b : i32
      yield %c
    }

becomes

    %r = reduce %x, combine="sum", axis=0 : i32

A sum of floats stays: it has its own order, and a function has that of a tree.
"""

from __future__ import annotations

from blocklang.ir.builder import Builder
from blocklang.ir.core import Operation
from blocklang.ir.types import ScalarType
from blocklang.ops.elementwise import Add, And, Maximum, Minimum, Or, Xor
from blocklang.ops.reduction import Reduce, ReduceWith

_KNOWN: dict[type[Operation], str] = {
    Add: "sum",
    And: "and",
    Or: "or",
    Xor: "xor",
    Maximum: "max",
    Minimum: "min",
}

FOLDS = (ReduceWith,)


def simplify_folds(op: Operation) -> bool:
    """Name the function of a reduction, if it has a name. True if it has."""
    combine = _name_of(op) if isinstance(op, ReduceWith) else None
    if combine is None:
        return False
    reduced = Builder.before_op(op).value(
        Reduce, op.operands[0], combine=combine, axis=op.attributes["axis"], name=op.results[0].name
    )
    op.replace_with(reduced)
    return True


def _name_of(op: ReduceWith) -> str | None:
    if len(op.results) != 1 or len(op.combiner.ops) != 2:
        return None
    only, end = op.combiner.ops
    if list(end.operands) != only.results or set(only.operands) != set(op.combiner.args):
        return None
    element = only.results[0].type
    if only.attributes.get("propagate_nan") or not isinstance(element, ScalarType):
        return None
    if isinstance(only, Add) and element.is_float:
        return None
    return _KNOWN.get(type(only))
