"""`triton.compiler`: compiling without launching, and what a launch returns."""

from __future__ import annotations

from blocklang.triton.compiler.compiler import (
    ASTSource,
    CompiledKernel,
    LazyDict,
    compile,
    make_backend,
    max_shared_mem,
)
from blocklang.triton.compiler.errors import CompilationError

__all__ = [
    "ASTSource",
    "CompilationError",
    "CompiledKernel",
    "LazyDict",
    "compile",
    "make_backend",
    "max_shared_mem",
]
