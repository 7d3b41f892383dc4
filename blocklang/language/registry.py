"""Marks the functions that a kernel may call: `@builtin`.

The frontend calls a marked function directly, with evaluated arguments, and refuses any other Python
function. The mark also gathers the functions for the generated language reference.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

BUILTINS: dict[str, Callable[..., Any]] = {}
LIBRARY: dict[str, Callable[..., Any]] = {}


def builtin(function: FunctionT) -> FunctionT:
    """Register a function of the language under its own name."""
    name = function.__name__
    if name in BUILTINS:
        raise ValueError(f"the builtin {name!r} is declared twice")
    BUILTINS[name] = function
    return function


def must_use_result(advice: str) -> Callable[[FunctionT], FunctionT]:
    """Refuse a statement that calls the function, or a method, and drops its result; `advice` is the help."""

    def mark(function: FunctionT) -> FunctionT:
        function.unused_result = advice  # type: ignore[attr-defined]
        return function

    return mark


def advice_on_result(function: object) -> str | None:
    """What to do with a result that must be used; None if it may be dropped."""
    advice = getattr(function, "unused_result", None)
    return advice if isinstance(advice, str) else None


def library_function(function: FunctionT) -> FunctionT:
    """Register a function of a library beside the language, `tl.extra.libdevice`, under its own name."""
    name = function.__name__
    if name in LIBRARY:
        raise ValueError(f"the library function {name!r} is declared twice")
    LIBRARY[name] = function
    return function


def is_library_function(function: object) -> bool:
    """True for a function of a library, unless the language has it too."""
    name = getattr(function, "__name__", "")
    return LIBRARY.get(name) is function and BUILTINS.get(name) is not function


def is_builtin(function: object) -> bool:
    """True for a function of the language, or of a library beside it."""
    name = getattr(function, "__name__", "")
    return function is not None and (BUILTINS.get(name) is function or LIBRARY.get(name) is function)
