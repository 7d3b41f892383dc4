"""Values as trees: a `tensor` is a leaf known at run time, a tuple or other value with parts a node, anything
else a compile-time leaf.

Structured control flow carries the run-time leaves; what is known at compile time must be the same on every
path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from blocklang.ir.types import Type, element_type, shape_of
from blocklang.language.compound import Compound, children, remake
from blocklang.language.constexpr import constexpr, unwrap
from blocklang.language.dtypes import type_from_ir
from blocklang.language.tensor import constant, tensor, to_tensor


def leaves(value: Any) -> Iterator[tensor]:
    """The run-time leaves, in order."""
    if isinstance(value, tensor):
        yield value
    else:
        for item in children(value) or ():
            yield from leaves(item)


def rebuild(value: Any, replace: Callable[[tensor], tensor]) -> Any:
    """The same tree with each run-time leaf replaced."""
    if isinstance(value, tensor):
        return replace(value)
    items = children(value)
    return value if items is None else remake(value, [rebuild(item, replace) for item in items])


def is_number(value: Any) -> bool:
    """True for a compile-time number."""
    return isinstance(unwrap(value), (bool, int, float))


def run_time(value: Any) -> Any:
    """What a plain assignment binds: numbers become run-time scalars, also inside tuples."""
    if is_number(value):
        return to_tensor(value)
    value = unwrap(value)
    if isinstance(value, (tuple, list)):
        return remake(value, [run_time(item) for item in value])
    return value


def same_compile_time(a: Any, b: Any) -> bool:
    """True if two compile-time values are one."""
    a, b = unwrap(a), unwrap(b)
    if a is b:
        return True
    try:
        return type(a) is type(b) and bool(a == b)
    except (TypeError, ValueError):
        return False


def placeholder(type_: Type) -> tensor:
    """A value of a type, for a path on which nobody reads it."""
    return constant(0, type_from_ir(element_type(type_)), shape_of(type_))


def describe_kind(value: Any) -> str:
    """A value in words: the type of a run-time value, the value of a compile-time one."""
    if isinstance(value, tensor):
        return str(value.value.type)
    items = children(value)
    if items is not None:
        if isinstance(value, Compound) and value.constants:
            return repr(value)
        name = type(value).__name__ if isinstance(value, Compound) else ""
        return f"{name}({', '.join(map(describe_kind, items))})"
    text = repr(unwrap(value))
    return f"the constexpr {text}" if isinstance(value, constexpr) else text


def hint(value: Any, name: str) -> None:
    """Give nameless run-time values the user's name, so that the IR reads like the source."""
    if isinstance(value, tensor):
        if not value.value.name:
            value.value.name = name
    else:
        for index, item in enumerate(children(value) or ()):
            hint(item, f"{name}_{index}")
