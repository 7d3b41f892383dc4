"""`triton.runtime.autotuner`: `blocklang.tune` under Triton's names."""

from __future__ import annotations

from blocklang.diagnostics import AutotunerError, OutOfResources
from blocklang.triton.runtime.errors import PTXASError
from blocklang.triton.runtime.jit import JITFunction, KernelInterface
from blocklang.tune import Autotuner, Config, Heuristics, autotune, heuristics

__all__ = [
    "Autotuner",
    "AutotunerError",
    "Config",
    "Heuristics",
    "JITFunction",
    "KernelInterface",
    "OutOfResources",
    "PTXASError",
    "autotune",
    "heuristics",
]
