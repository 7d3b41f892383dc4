"""What a fast version takes for granted, as sentences in the user's names."""

from __future__ import annotations

from blocklang.explain.words import number, words
from blocklang.ir.core import Value
from blocklang.ops.creation import Constant
from blocklang.ops.elementwise import And, Compare, Maximum, Minimum

_LOW, _HIGH = " must be -2^31 or more", " must stay below 2^31"


def conditions_of(value: Value) -> tuple[str, ...]:
    """The conjuncts of a condition, each once; what always holds is left out."""
    found = dict.fromkeys(_sentences(value))
    ranges = [text.removesuffix(_LOW) for text in found if text.endswith(_LOW)]
    for subject in [text for text in ranges if text + _HIGH in found]:
        del found[subject + _HIGH]
        found = dict.fromkeys(f"{subject} must fit 32 bits" if s == subject + _LOW else s for s in found)
    return tuple(found)


def _sentences(value: Value) -> list[str]:
    op = value.defining_op
    match op:
        case And():
            return _sentences(op.lhs) + _sentences(op.rhs)
        case Compare() if op.predicate == "ge":
            return _at_least(op.lhs, op.rhs)
        case Compare() if op.predicate == "le":
            return _at_least(op.rhs, op.lhs)
        case Compare() if op.predicate == "eq":
            return [f"{words(op.lhs)} must be {words(op.rhs)}"]
    return [f"{words(value)} must hold"]


def _at_least(larger: Value, smaller: Value) -> list[str]:
    """`larger >= smaller`, of which an extremum on the right side is several conditions."""
    above, below = larger.defining_op, smaller.defining_op
    if isinstance(below, Maximum):
        return [s for part in below.operands for s in _at_least(larger, part)]
    if isinstance(above, Minimum):
        return [s for part in above.operands for s in _at_least(part, smaller)]
    if isinstance(above, Constant) and isinstance(below, Constant):
        return [] if above.value >= below.value else [f"{above.value} must be {below.value} or more"]
    if isinstance(above, Constant):
        limit = int(above.value)
        return [f"{words(smaller)} must stay below {number(limit + 1)}"]
    if isinstance(below, Constant):
        limit = int(below.value)
        return [
            f"{words(larger)} must not be negative"
            if limit == 0
            else f"{words(larger)} must be {number(limit)} or more"
        ]
    return [f"{words(larger)} must be {words(smaller)} or more"]
