"""Block IR of a test's kernels, and their results in the interpreter."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

import blocklang.language as tl
from blocklang.frontend import Argument, KernelSource, build_kernel
from blocklang.interpreter import run_kernel
from blocklang.ir import Kernel, verify
from blocklang.ir.types import Type, parse_type
from blocklang.jit import jit

_numbers = count()


def build(function: Callable[..., Any], *types: str | Type, **constants: Any) -> Kernel:
    """The verified IR, for types of the run-time parameters in order, and values of the others."""
    source = KernelSource.from_function(getattr(function, "fn", function))
    remaining = iter(types)
    arguments = [
        Argument(p.name, constexpr=constants[p.name])
        if p.name in constants
        else Argument(p.name, type=_type(next(remaining)))
        for p in source.parameters
    ]
    kernel = build_kernel(source, arguments)
    verify(kernel)
    return kernel


def _type(given: str | Type) -> Type:
    return parse_type(given) if isinstance(given, str) else given


def run(kernel: Kernel, size: int, *arguments: Any, dtype: Any = np.int32) -> NDArray[Any]:
    """Run one program of a kernel whose first argument is an array of `size` zeros; return the array."""
    out = np.zeros(size, dtype)
    run_kernel(kernel, [out, *arguments], (1,))
    return out


def define(text: str, name: str, **globals: Any) -> Callable[..., Any]:
    """The function `name` of a text that defines it; `tl` and `jit` are known there."""
    file = f"<test {next(_numbers)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    namespace: dict[str, Any] = {"tl": tl, "jit": jit, **globals}
    exec(compile(text, file, "exec"), namespace)
    function: Callable[..., Any] = namespace[name]
    return function
