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
from blocklang.jit.switches import Switches

if TYPE_CHECKING:
    from blocklang.abi import KernelAbi
    from blocklang.compiler import CompiledKernel


def build_version(
    source: KernelSource,
    parameters: Sequence[Parameter],
    specs: Sequence[Spec],
    *,
    strict: bool,
    switches: Switches,
    hints: bool = False,
) -> BuiltKernel:
    """The Block IR of a version, and what was read to build it; `hints`: what they promise is checked."""
    rules = Rules(strict, debug=switches.debug, sanitize_overflow=switches.sanitize_overflow, hints=hints)
    return build_with_dependencies(source, _arguments(parameters, specs), rules=rules)


def check_version(
    source: KernelSource,
    parameters: Sequence[Parameter],
    specs: Sequence[Spec],
    *,
    strict: bool,
    switches: Switches,
) -> Kernel:
    """The Block IR of a version that is going to be interpreted."""
    return check_kernel(
        source,
        _arguments(parameters, specs),
        strict=strict,
        debug=switches.debug,
        sanitize_overflow=switches.sanitize_overflow,
    )


def with_alias(kernel: Kernel, alias: str) -> Kernel:
    """A copy of a version's Block IR for arrays of an alias class."""
    copy = clone_kernel(kernel)
    copy.attributes["alias"] = alias
    return copy


def compile_version(kernel: Kernel, specialisation: Specialisation) -> CompiledKernel:
    """Compile the Block IR of a version.

    Raises:
        UsageError: BLOCKLANG_CPU names a level that this machine cannot run, or none.
    """
    from blocklang.compiler import compile_kernel  # loads llvmlite
    from blocklang.target import current_target, require_runnable

    require_runnable(current_target())
    options = specialisation.switches.compile_options()
    return compile_kernel(with_alias(kernel, specialisation.alias), options=options)


def compiled_elsewhere(
    kernel: Kernel, specialisation: Specialisation, abi: KernelAbi, object_code: bytes
) -> CompiledKernel:
    """What another process made of the Block IR of a version (`blocklang.jit.apart`)."""
    from blocklang.compiler.compiled import CompiledKernel

    options = specialisation.switches.compile_options()
    return CompiledKernel(abi, object_code, lambda: with_alias(kernel, specialisation.alias), options)


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
