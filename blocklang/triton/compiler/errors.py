"""`triton.compiler.errors`: what is wrong with a kernel."""

from __future__ import annotations

from blocklang.diagnostics import (
    CompilationError,
    CompileTimeAssertionFailure,
    UnsupportedLanguageConstruct,
)

__all__ = ["CompilationError", "CompileTimeAssertionFailure", "UnsupportedLanguageConstruct"]
