"""Values that hold others: tuples, and objects of the language that are `Compound`.

Control flow carries the run-time parts of such a value one by one, and makes the value again from what
arrives; `children` and `remake` are all that it needs to know.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from blocklang.language.constexpr import unwrap


class Compound:
    """A value of several parts, run-time or compile-time ones; what else it is is known at compile time."""

    def parts(self) -> tuple[Any, ...]:
        """The parts, in a fixed order."""
        raise NotImplementedError

    @property
    def constants(self) -> tuple[Any, ...]:
        """What it is beside its parts: values that are alike have the same."""
        return ()

    def with_parts(self, parts: Sequence[Any]) -> Any:
        """A value like this one, of other parts."""
        raise NotImplementedError


def children(value: Any) -> tuple[Any, ...] | None:
    """The parts of a tuple, list or `Compound`; None for a value that has none."""
    if isinstance(value, Compound):
        return value.parts()
    return tuple(value) if isinstance(value, (tuple, list)) else None


def remake(like: Any, items: Sequence[Any]) -> Any:
    """A value of the same kind with other parts: a namedtuple stays one, a list becomes a tuple."""
    if isinstance(like, Compound):
        return like.with_parts(items)
    return type(like)(*items) if hasattr(like, "_fields") else tuple(items)


def is_alike(a: Any, b: Any) -> bool:
    """True if two values have parts that correspond."""
    mine, others = children(a), children(b)
    if mine is None or others is None or len(mine) != len(others):
        return False
    if isinstance(a, Compound) and isinstance(b, Compound):
        return type(a) is type(b) and a.constants == b.constants
    return not isinstance(a, Compound) and not isinstance(b, Compound)


def equal(a: Any, b: Any) -> Any:
    """`a == b`, also of tuples: they are equal if their items are, each pair compared once."""
    from blocklang.language.arithmetic import logical
    from blocklang.language.tensor import tensor

    plain, other = unwrap(a), unwrap(b)
    if plain is None or other is None:
        return plain is other
    if not isinstance(plain, (tuple, list)) or not isinstance(other, (tuple, list)):
        return a == b
    if len(plain) != len(other):
        return False
    result: Any = True
    for left, right in zip(plain, other, strict=True):
        same = equal(left, right)
        if not isinstance(same, tensor):
            if not unwrap(same):
                return False
        else:
            result = logical("and", result, same) if isinstance(result, tensor) else same
    return result


def unequal(a: Any, b: Any) -> Any:
    """`a != b`: of tuples, `not a == b`."""
    from blocklang.language.arithmetic import logical_not
    from blocklang.language.tensor import tensor

    if unwrap(a) is not None and unwrap(b) is not None and children(unwrap(a)) is None:
        return a != b
    same = equal(a, b)
    return logical_not(same) if isinstance(same, tensor) else not unwrap(same)
