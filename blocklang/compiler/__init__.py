"""The stages in order: Block IR in, machine code out.

    Block IR ─ passes ─▶ Tile IR ─ schedule, place ─▶ placed Tile IR ─ codegen ─▶ LLVM IR ─▶ object code

    stages     `compile_kernel`, which the jit calls, and `compile_counted`
    compiled   a compiled kernel

Only `stages` imports the passes, the code generator and LLVM: a process that finds its kernels in the disk
cache has what a launch returns without them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from blocklang.compiler.compiled import CompiledKernel, CompileOptions
from blocklang.lazy import on_demand

if TYPE_CHECKING:
    from blocklang.compiler.stages import CountedKernel, Stages, compile_counted, compile_kernel

__all__ = [
    "CompileOptions",
    "CompiledKernel",
    "CountedKernel",
    "Stages",
    "compile_counted",
    "compile_kernel",
]

_STAGES = ("CountedKernel", "Stages", "compile_counted", "compile_kernel")
__getattr__ = on_demand(__name__, dict.fromkeys(_STAGES, "blocklang.compiler.stages"))
