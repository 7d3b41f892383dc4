"""The builder that language functions create operations with.

Two drivers set it: the frontend, with a plain `Builder` that records, and the interpreter's eager driver,
    with one
that evaluates each operation as it is created. Language functions do not know which.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from blocklang.diagnostics import CompilationError
from blocklang.ir import Builder

_BUILDER: ContextVar[Builder | None] = ContextVar("blocklang_builder", default=None)


def current_builder() -> Builder:
    """The builder in use. Raises CompilationError outside a kernel."""
    builder = _BUILDER.get()
    if builder is None:
        raise CompilationError(
            "functions of blocklang.language work on blocks inside a kernel only",
            help="call this from a function under `@blocklang.jit`, and launch that as `kernel[grid](...)`",
        )
    return builder


@contextmanager
def use_builder(builder: Builder) -> Iterator[Builder]:
    """Make `builder` the current one inside the `with` block."""
    token = _BUILDER.set(builder)
    try:
        yield builder
    finally:
        _BUILDER.reset(token)


_SILENT: ContextVar[bool] = ContextVar("blocklang_silent", default=False)


def is_silent() -> bool:
    """True while a kernel is only checked: what it says at compile time is said when it runs."""
    return _SILENT.get()


@contextmanager
def silence() -> Iterator[None]:
    """Check a kernel inside the `with` block without `tl.static_print`."""
    token = _SILENT.set(True)
    try:
        yield
    finally:
        _SILENT.reset(token)
