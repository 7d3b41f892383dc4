"""`triton.compiler.code_generator`: the names of it that sources import."""

from __future__ import annotations

from blocklang.triton.compiler.errors import (
    CompilationError,
    CompileTimeAssertionFailure,
    UnsupportedLanguageConstruct,
)

__all__ = ["CompilationError", "CompileTimeAssertionFailure", "UnsupportedLanguageConstruct"]
