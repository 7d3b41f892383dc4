"""`triton.runtime.interpreter`: kernels that run in interpreter mode (TRITON_INTERPRET=1)."""

from __future__ import annotations

from typing import Any

from blocklang.triton.runtime.jit import JITFunction


class InterpretedFunction(JITFunction):
    """A kernel whose Python lines are run by NumPy, one program after another."""

    def __init__(self, fn: Any, **options: Any) -> None:
        super().__init__(fn, interpret=True, **options)
