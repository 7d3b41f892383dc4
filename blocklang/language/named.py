"""Operators and slices under a name."""

from __future__ import annotations

import builtins
from typing import Any

from blocklang.language import arithmetic
from blocklang.language.constexpr import static_bool, static_int, unwrap
from blocklang.language.registry import builtin


@builtin
def add(x: Any, y: Any, sanitize_overflow: Any = True) -> Any:
    """`x + y`.

    Args:
        sanitize_overflow: whether a launch that looks for overflows looks at this one.

    Example:
        y = tl.add(tl.arange(0, 8), 3)
    """
    looks = static_bool(sanitize_overflow, "sanitize_overflow")
    return arithmetic.add(x, y, sanitize_overflow=looks)


@builtin
def sub(x: Any, y: Any, sanitize_overflow: Any = True) -> Any:
    """`x - y`; otherwise as `add`.

    Example:
        y = tl.sub(tl.arange(0, 8), 3)
    """
    looks = static_bool(sanitize_overflow, "sanitize_overflow")
    return arithmetic.sub(x, y, sanitize_overflow=looks)


@builtin
def mul(x: Any, y: Any, sanitize_overflow: Any = True) -> Any:
    """`x * y`; otherwise as `add`.

    Example:
        y = tl.mul(tl.arange(0, 8), 3)
    """
    looks = static_bool(sanitize_overflow, "sanitize_overflow")
    return arithmetic.mul(x, y, sanitize_overflow=looks)


@builtin
def slice(start: Any, stop: Any, step: Any = None) -> builtins.slice:
    """`start:stop:step` as a value, to subscript a tuple with.

    Example:
        parts = (1, 2, 3)[tl.slice(1, 3)]
    """
    ends = [None if unwrap(end) is None else static_int(end, "slice") for end in (start, stop, step)]
    return builtins.slice(*ends)
