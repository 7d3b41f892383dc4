"""Builds a kernel's Block IR from its source and the descriptions of its arguments."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from blocklang.depth import deep_recursion
from blocklang.diagnostics import CompilationError
from blocklang.frontend.arguments import Argument
from blocklang.frontend.base import USUAL, Rules
from blocklang.frontend.names import assigned_names
from blocklang.frontend.scope import Dependency, Frame
from blocklang.frontend.source import KernelSource, Parameter
from blocklang.frontend.statements import Statements
from blocklang.ir import Builder, Kernel
from blocklang.ir.types import Type
from blocklang.language.constexpr import constexpr
from blocklang.language.context import silence, use_builder
from blocklang.language.dtypes import dtype, type_from_ir
from blocklang.language.promotion import literal_type
from blocklang.language.tensor import tensor
from blocklang.ops.control import Return


@dataclass(frozen=True)
class BuiltKernel:
    """A kernel's Block IR with what was read from outside to build it.

    Attributes:
        kernel: the IR.
        dependencies: globals, captured variables, attributes of modules, and called kernels.
    """

    kernel: Kernel
    dependencies: tuple[Dependency, ...]


def build_kernel(
    source: KernelSource,
    arguments: Sequence[Argument],
    *,
    name: str | None = None,
    strict: bool = False,
    debug: bool = False,
    sanitize_overflow: bool = False,
) -> Kernel:
    """Compile a function's source to Block IR; see `build_with_dependencies`."""
    rules = Rules(strict, debug=debug, sanitize_overflow=sanitize_overflow)
    return build_with_dependencies(source, arguments, name=name, rules=rules).kernel


def check_kernel(
    source: KernelSource,
    arguments: Sequence[Argument],
    *,
    strict: bool = False,
    debug: bool = False,
    sanitize_overflow: bool = False,
) -> Kernel:
    """Compile a kernel that is going to be interpreted, so that both modes refuse the same.

    `breakpoint()` is let through, and nothing is printed.
    """
    with silence():
        rules = Rules(strict, True, debug, sanitize_overflow)
        return build_with_dependencies(source, arguments, rules=rules).kernel


def build_with_dependencies(
    source: KernelSource,
    arguments: Sequence[Argument],
    *,
    name: str | None = None,
    rules: Rules = USUAL,
) -> BuiltKernel:
    """Compile a function's source to Block IR, for arguments of these types and values.

    Args:
        source: the function.
        arguments: one for each parameter, by name, in any order.
        name: the kernel's name; the function's own by default.
        rules: how much is accepted.

    Returns:
        The IR, whose arguments are the run-time ones, in the order of the parameters.

    Raises:
        CompilationError: the kernel, or an argument for it, is wrong.
    """
    started = time.perf_counter()
    given = _by_parameter(source, arguments)
    run_time = [leaf for _, argument in given for leaf in argument.run_time_leaves()]
    types = [a.type for a in run_time if a.type is not None]
    kernel = Kernel(
        name or source.name, types, [a.name for a in run_time], location=source.locate(source.node)
    )
    kernel.argument_attributes = [dict(a.attributes) for a in run_time]
    values = dict(zip((a.name for a in run_time), map(tensor, kernel.args), strict=True))
    builder = Builder(kernel.body, location=kernel.location)
    with use_builder(builder):
        env = {p.name: _value_of(a, p.is_constexpr, values) for p, a in given}
    frame = Frame(source, source.name, env, frozenset(assigned_names(source.node.body)) | env.keys())
    frame.reset_flags()
    builder.debug = rules.debug
    builder.hints = rules.hints
    builder.sanitize_overflow = rules.sanitize_overflow
    visitor = Statements(builder, frame, rules)
    with use_builder(builder), deep_recursion():
        try:
            visitor.function_body(source.node.body)
        except RecursionError as error:
            raise CompilationError(
                f"kernel `{source.name}` is nested too deeply to compile",
                location=kernel.location,
                source=source.padded_text,
                help="split long expressions and deep calls into steps",
            ) from error
        builder.create(Return)
    kernel.frontend_seconds = time.perf_counter() - started
    return BuiltKernel(kernel, tuple(visitor.dependencies.values()))


def _by_parameter(source: KernelSource, arguments: Sequence[Argument]) -> list[tuple[Parameter, Argument]]:
    by_name = {a.name: a for a in arguments}
    known = {p.name for p in source.parameters}
    extra = [n for n in by_name if n not in known]
    missing = [p.name for p in source.parameters if p.name not in by_name and not p.has_default]
    if extra or missing:
        what = f"has no parameter `{extra[0]}`" if extra else f"needs an argument for `{missing[0]}`"
        raise CompilationError(
            f"kernel `{source.name}` {what}",
            location=source.locate(source.node),
            source=source.padded_text,
            help=f"its parameters are ({', '.join(p.name for p in source.parameters)})",
        )
    return [(p, _checked(source, p, by_name.get(p.name))) for p in source.parameters]


def _checked(source: KernelSource, parameter: Parameter, argument: Argument | None) -> Argument:
    if argument is None:
        return Argument(parameter.name, constexpr=parameter.default)
    if parameter.is_constexpr and not argument.is_constexpr:
        raise CompilationError(
            f"parameter `{parameter.name}` of kernel `{source.name}` is constexpr, but got a type "
            "and no value",
            location=source.locate(source.node),
            source=source.padded_text,
            help=f"give a value: `{parameter.name}=...`",
        )
    return argument


def _value_of(argument: Argument, is_constexpr: bool, values: Mapping[str, tensor]) -> Any:
    """What a parameter's name holds; a compile-time number for a run-time parameter keeps its type."""
    if argument.items is not None:
        # In a tuple the user's `constexpr` says which numbers are compile-time values.
        items = [_value_of(a, isinstance(a.constexpr, constexpr), values) for a in argument.items]
        return argument.made_of(items)
    if argument.name in values:
        return values[argument.name]
    value = argument.constexpr
    plain = value.value if isinstance(value, constexpr) else value
    if is_constexpr or not isinstance(plain, (bool, int, float)):
        return constexpr(value)
    return constexpr(plain, _stands_for(argument.type, plain))


def _stands_for(type_: Type | None, value: bool | int | float) -> dtype:
    return literal_type(value) if type_ is None else type_from_ir(type_)
