"""`triton.runtime`: kernels, what wraps them, and the driver."""

from __future__ import annotations

from blocklang.triton.runtime.autotuner import Autotuner, Config, Heuristics, autotune, heuristics
from blocklang.triton.runtime.driver import driver
from blocklang.triton.runtime.errors import InterpreterError, OutOfResources
from blocklang.triton.runtime.jit import (
    JITFunction,
    KernelInterface,
    MockTensor,
    TensorWrapper,
    reinterpret,
)

__all__ = [
    "Autotuner",
    "Config",
    "Heuristics",
    "InterpreterError",
    "JITFunction",
    "KernelInterface",
    "MockTensor",
    "OutOfResources",
    "TensorWrapper",
    "autotune",
    "driver",
    "heuristics",
    "reinterpret",
]
