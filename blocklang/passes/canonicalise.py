"""Simplify until nothing changes: fold constants, apply identities, and leave one way to say each thing.

    kernel @k(%p: ptr<i32>, %x: i32) {
      %one = constant value=1 : i32
      %two = constant value=2 : i32
      %true = constant value=true : i1
      %a = add %one, %x : i32
      %b = add %a, %two : i32
      %c = splat %b : block<8xi32>
      %i = arange start=0, end=8 : block<8xi32>
      %d = mul %i, %c : block<8xi32>
      %q = offset %p, %i : block<8xptr<i32>>
      store %q, %d, mask=%true
      return
    }

becomes

    kernel @k(%p: ptr<i32>, %x: i32) {
      %v0 = constant value=3 : i32
      %b = add %x, %v0 : i32
      %i = arange start=0, end=8 : block<8xi32>
      %d = mul %i, %b : block<8xi32>
      %q = offset %p, %i : block<8xptr<i32>>
      store %q, %d
      return
    }

The rules stand in `fold` and in `simplify_elementwise`, `simplify_shapes`, `simplify_memory`,
`simplify_folds` and `simplify_control`. What they leave: constants are on the right of operations that
commute, a signed constant is added rather than subtracted, uniform blocks are computed as scalars and stand
as scalars beside other blocks. Powers of two are LLVM's business.

Requires: nothing.
Keeps: every bit of every result but the payload of a NaN; every effect and its order; every level.
"""

from __future__ import annotations

from collections.abc import Callable

from blocklang.ir.core import Kernel, Operation, Region
from blocklang.passes.simplify_control import CONTROL, simplify_control
from blocklang.passes.simplify_elementwise import elementwise_rules
from blocklang.passes.simplify_folds import FOLDS, simplify_folds
from blocklang.passes.simplify_memory import MEMORY, simplify_memory
from blocklang.passes.simplify_shapes import SHAPES, simplify_shapes

Rule = Callable[[Operation], bool]  # True if it did something


def canonicalise(kernel: Kernel) -> None:
    """Apply all rules until none fits, then drop what is not used any more."""
    while _simplify(kernel.body):
        pass
    _drop_unused(kernel.body)


_rules: dict[type[Operation], tuple[Rule, ...]] = {}


def _rules_of(kind: type[Operation]) -> tuple[Rule, ...]:
    """The rules for operations of a class, in the order in which they are tried."""
    families = (
        (SHAPES, simplify_shapes),
        (MEMORY, simplify_memory),
        (FOLDS, simplify_folds),
        (CONTROL, simplify_control),
    )
    return (*elementwise_rules(kind), *(rule for classes, rule in families if issubclass(kind, classes)))


def _simplify(region: Region) -> bool:
    """Visit every operation once. True if a rule did something."""
    changed = False
    for op in list(region.ops):
        while op.parent is region and not _is_unused(op) and _apply(op):
            changed = True
        if op.regions and op.parent is region:
            for inner in op.regions:
                changed |= _simplify(inner)
    return changed


def _apply(op: Operation) -> bool:
    """Apply the first rule that fits. True if one did."""
    kind = op.__class__
    rules = _rules.get(kind)
    if rules is None:
        rules = _rules[kind] = _rules_of(kind)
    for rule in rules:
        if rule(op):
            break
    else:
        return False
    return True


def _is_unused(op: Operation) -> bool:
    """True if `op` is pure, holds nothing and is not read; deeper deadness is for another pass."""
    for result in op.results:
        if result.uses:
            return False
    return not (op.effects or op.regions or op.is_terminator)


def _drop_unused(region: Region) -> None:
    for op in reversed(list(region.ops)):
        for inner in op.regions:
            _drop_unused(inner)
        if _is_unused(op):
            op.erase()
