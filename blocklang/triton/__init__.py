"""Triton's host API: `import blocklang.triton as triton` serves a source that was written for Triton 3.7.

    language     what kernels call: `blocklang.language` under Triton's names for its parts
    runtime      `jit`, `autotune`, the driver, the errors
    compiler     `compile`, and what a launch returns
    testing      measuring and comparing
    knobs        settings and hooks
    importing    `install()`: a plain `import triton` finds this package

The compiler and the launch are blocklang's own; here are names, defaults and hooks. Kernels made here accept
what Triton's frontend accepts, and fuse `a * b + c` as Triton does.
"""

from __future__ import annotations

from blocklang.triton import knobs, language
from blocklang.triton.compiler import CompilationError, compile, max_shared_mem
from blocklang.triton.errors import TritonError
from blocklang.triton.importing import install, installed, is_installed, uninstall
from blocklang.triton.runtime import (
    Config,
    InterpreterError,
    JITFunction,
    KernelInterface,
    MockTensor,
    OutOfResources,
    TensorWrapper,
    autotune,
    heuristics,
    reinterpret,
)
from blocklang.triton.runtime._allocation import set_allocator
from blocklang.triton.runtime._async_compile import AsyncCompileMode, FutureKernel
from blocklang.triton.runtime.jit import constexpr_function, jit, must_use_result
from blocklang.triton.version import VERSION

from blocklang.language import cdiv, next_power_of_2  # isort: skip
from blocklang.triton import backends, testing, tools  # isort: skip

__version__ = VERSION

__all__ = [
    "AsyncCompileMode",
    "CompilationError",
    "Config",
    "FutureKernel",
    "InterpreterError",
    "JITFunction",
    "KernelInterface",
    "MockTensor",
    "OutOfResources",
    "TensorWrapper",
    "TritonError",
    "autotune",
    "backends",
    "cdiv",
    "compile",
    "constexpr_function",
    "heuristics",
    "install",
    "installed",
    "is_installed",
    "jit",
    "knobs",
    "language",
    "max_shared_mem",
    "must_use_result",
    "next_power_of_2",
    "reinterpret",
    "runtime",
    "set_allocator",
    "testing",
    "tools",
    "uninstall",
]
