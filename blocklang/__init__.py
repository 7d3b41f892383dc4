"""blocklang: a block kernel language in Python, compiled natively for the CPU.

The public surface: what stands in `__all__`, with `blocklang.language` for what a kernel's lines call.

    import blocklang as bl
    import blocklang.language as tl
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from blocklang import language
from blocklang.diagnostics import (
    BlocklangError,
    ChangedGlobalError,
    CheckError,
    CompilationError,
    CompileTimeAssertionFailure,
    DeviceMemoryError,
    InterpreterError,
    LaunchError,
    ParseError,
    UnsupportedLanguageConstruct,
    UsageError,
    VerifyError,
)
from blocklang.jit import JITFunction, jit
from blocklang.language import cdiv, constexpr, constexpr_function, next_power_of_2
from blocklang.language.aggregate import aggregate
from blocklang.lazy import on_demand
from blocklang.runtime.arrays import strides
from blocklang.runtime.descriptors import TensorDescriptor
from blocklang.runtime.threads import get_num_threads, num_threads, set_num_threads

if TYPE_CHECKING:
    from blocklang import jax, torch
    from blocklang.jit.emulating import emulate
    from blocklang.runtime.device_memory import device
    from blocklang.tune.autotuner import autotune
    from blocklang.tune.config import Config
    from blocklang.tune.heuristics import heuristics

__all__ = [
    "BlocklangError",
    "ChangedGlobalError",
    "CheckError",
    "CompilationError",
    "CompileTimeAssertionFailure",
    "Config",
    "DeviceMemoryError",
    "InterpreterError",
    "JITFunction",
    "LaunchError",
    "ParseError",
    "TensorDescriptor",
    "UnsupportedLanguageConstruct",
    "UsageError",
    "VerifyError",
    "aggregate",
    "autotune",
    "cdiv",
    "constexpr",
    "constexpr_function",
    "device",
    "emulate",
    "get_num_threads",
    "heuristics",
    "jax",
    "jit",
    "language",
    "next_power_of_2",
    "num_threads",
    "set_num_threads",
    "strides",
    "torch",
]

__getattr__ = on_demand(
    __name__,
    {
        **dict.fromkeys(("Config", "autotune", "heuristics"), "blocklang.tune"),
        "device": "blocklang.runtime.device_memory",
        "emulate": "blocklang.jit.emulating",
        **{name: f"{__name__}.{name}" for name in ("jax", "torch")},
        "testing": "blocklang.testing",
    },
)
