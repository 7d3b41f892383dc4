"""`triton.runtime.errors`: the errors of launches."""

from __future__ import annotations

from blocklang.diagnostics import AutotunerError, BlocklangError, InterpreterError, OutOfResources


class PTXASError(BlocklangError):
    """An assembler of a GPU failed. Never raised here; sources catch it."""


__all__ = ["AutotunerError", "InterpreterError", "OutOfResources", "PTXASError"]
