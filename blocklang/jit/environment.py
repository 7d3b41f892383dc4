"""The floating-point environment in which kernels are folded and interpreted: IEEE's defaults.

A thread may round otherwise, or flush subnormal numbers to zero: a library built with `-ffast-math` does that
when it is loaded, `torch.set_flush_denormal` on request. Python's and NumPy's arithmetic follow the thread,
and so would what the compiler folds and what the interpreter computes. Compiled code sees to it itself, in
`blocklang.codegen.environment`.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

_ROOM = 64  # words; C's `fenv_t` has 8 on x86-64 and 2 on AArch64


@cache
def _library() -> tuple[Any, Any] | None:
    """The C library with `fegetenv` and `fesetenv`, and its default environment; None where it is unknown."""
    try:
        if sys.platform == "darwin":
            library = ctypes.CDLL(None)
            return library, ctypes.byref(ctypes.c_char.in_dll(library, "_FE_DFL_ENV"))
        if sys.platform.startswith("linux"):
            return ctypes.CDLL("libm.so.6"), ctypes.c_void_p(-1)
    except (OSError, ValueError):
        pass
    return None


@contextmanager
def usual_environment() -> Iterator[None]:
    """Round to nearest and keep subnormals inside the `with` block; afterwards all is as the caller
    had it."""
    found = _library()
    if found is None:
        yield
        return
    library, usual = found
    callers = (ctypes.c_uint32 * _ROOM)()
    library.fegetenv(callers)
    library.fesetenv(usual)
    try:
        yield
    finally:
        library.fesetenv(callers)
