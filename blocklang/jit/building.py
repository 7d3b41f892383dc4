"""Building and compiling a version of a kernel: what a process needs for kernels that are not on disk alone.

Importing this module imports the frontend; compiling imports LLVM.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from blocklang.frontend import Argument, BuiltKernel, KernelSource, build_with_dependencies, check_kernel
from blocklang.frontend.base import Rules
from blocklang.ir import Kernel
from blocklang.ir.rewriting import clone_kernel
from blocklang.jit.parameters import Parameter
from blocklang.jit.specialisation import DIVISOR, ConstantSpec, Spec, Specialisation, TupleSpec, TypedSpec

if TYPE_CHECKING:
    from blocklang.compiler import CompiledKernel


def build_version(
    source: KernelSource, parameters: Sequence[Parameter], specs: Sequence[Spec], *, strict: bool, debug: bool
) -> BuiltKernel:
    """The Block IR of a version, and what was read to build it."""
    return build_with_dependencies(source, _arguments(parameters, specs), rules=Rules(strict, debug=debug))


def check_version(
    source: KernelSource, parameters: Sequence[Parameter], specs: Sequence[Spec], *, strict: bool, debug: bool
) -> Kernel:
    """The Block IR of a version that is going to be interpreted."""
    return check_kernel(source, _arguments(parameters, specs), strict=strict, debug=debug)


def with_alias(kernel: Kernel, alias: str) -> Kernel:
    """A copy of a version's Block IR for arrays of an alias class."""
    copy = clone_kernel(kernel)
    copy.attributes["alias"] = alias
    return copy


def compile_version(kernel: Kernel, specialisation: Specialisation) -> CompiledKernel:
    """Compile the Block IR of a version."""
    from blocklang.compiler import CompileOptions, compile_kernel  # loads llvmlite

    options = CompileOptions(enable_fp_fusion=specialisation.enable_fp_fusion)
    return compile_kernel(with_alias(kernel, specialisation.alias), options=options)


def _arguments(parameters: Sequence[Parameter], specs: Sequence[Spec]) -> list[Argument]:
    return [_argument(p.name, spec) for p, spec in zip(parameters, specs, strict=True)]


def _argument(name: str, spec: Spec) -> Argument:
    if isinstance(spec, ConstantSpec):
        return Argument(name, constexpr=spec.value)
    if isinstance(spec, TupleSpec):
        items = tuple(_argument(f"{name}.{index}", item) for index, item in enumerate(spec.items))
        return Argument(name, items=items, kind=spec.kind)
    assert isinstance(spec, TypedSpec)
    attributes = {"divisible": DIVISOR} if spec.divisible else {}
    return Argument(name, type=spec.type, attributes=attributes)
