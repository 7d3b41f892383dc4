"""A launch in interpreter mode: the same arguments, given to `interpreter.interpret_launch`.

Arguments are bound, described and refused as for compiled code, so a wrong launch says the same. An integer 1
is not compiled in here: it is a run-time scalar like any other.

Where `enable_fp_fusion` fuses, what a line means depends on the lines around it, so the lines themselves
cannot be run: such a launch evaluates the kernel's Block IR, fused as it would be for the compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from blocklang.frontend import KernelSource
from blocklang.interpreter import LaunchArgument, interpret_launch, run_kernel
from blocklang.interpreter.dtypes import dtype_of
from blocklang.ir.core import Kernel
from blocklang.ir.rewriting import clone_kernel
from blocklang.ir.types import I32, PointerType, ScalarType
from blocklang.jit.parameters import Parameter
from blocklang.jit.specialisation import Described, Payload, TupleSpec, TypedSpec, leaves_of
from blocklang.jit.switches import Switches
from blocklang.language.constexpr import constexpr
from blocklang.ops.elementwise import Fma
from blocklang.passes.check_nan import check_nan
from blocklang.passes.fuse_multiply_adds import fuse_multiply_adds
from blocklang.passes.insert_checks import insert_checks
from blocklang.passes.poison_masked_lanes import poison_masked_lanes
from blocklang.runtime.arrays import Array
from blocklang.runtime.grids import Grid


def interpret_arguments(
    source: KernelSource,
    parameters: Sequence[Parameter],
    values: Sequence[Any],
    described: Sequence[Described],
    grid: Grid,
    source_of: Callable[[object], KernelSource | None],
    *,
    switches: Switches,
) -> None:
    """Run a launch in the interpreter.

    Args:
        source: the kernel's.
        parameters, values, described: the parameters, the arguments bound to them, and what they are.
        grid: three extents.
        source_of: the source of another kernel that this one calls.
        switches: what is checked.
    """
    arguments = {
        parameter.name: _argument(parameter.is_constexpr, value, *description)
        for parameter, value, description in zip(parameters, values, described, strict=True)
    }
    interpret_launch(
        source,
        arguments,
        grid,
        code_of=source_of,
        debug=switches.debug,
        sanitize_overflow=switches.sanitize_overflow,
        nan=switches.nan,
        poison=switches.poison,
    )


def fused(kernel: Kernel) -> Kernel | None:
    """A copy of a kernel of level block with its sums of products fused; None if it has none."""
    copy = clone_kernel(kernel)
    fuse_multiply_adds(copy)
    counts = [sum(isinstance(op, Fma) for op in each.walk()) for each in (kernel, copy)]
    return copy if counts[1] > counts[0] else None


def interpret_fused(
    kernel: Kernel,
    names: Sequence[str],
    described: Sequence[Described],
    grid: Grid,
    switches: Switches,
) -> None:
    """Run a launch of a kernel that `fused` gave; it is changed."""
    for is_on, look in (
        (switches.poison, poison_masked_lanes),
        (switches.debug, insert_checks),
        (switches.nan, check_nan),
    ):
        if is_on:
            look(kernel)
    given = {leaf.name: _run_time(leaf.spec.type, leaf.value) for leaf in leaves_of(names, described)}
    run_kernel(kernel, [given[a.name] for a in kernel.args if a.name in given], grid)


def _run_time(type_: ScalarType | PointerType, payload: Array | int | None) -> Any:
    if not isinstance(payload, int):
        return payload
    assert isinstance(type_, ScalarType)
    return _number(type_, payload)


def _argument(is_constexpr: bool, value: Any, spec: object, payload: Payload) -> LaunchArgument:
    if isinstance(spec, TupleSpec):
        given = value if isinstance(value, tuple) else payload  # a descriptor is no tuple yet
        items = zip(given, spec.items, payload, strict=True)
        arguments = tuple(_argument(isinstance(v, constexpr), v, s, p) for v, s, p in items)
        return LaunchArgument(spec.kind, items=arguments)
    if isinstance(spec, TypedSpec):
        if isinstance(payload, int):
            assert isinstance(spec.type, ScalarType)
            return LaunchArgument(_number(spec.type, payload), spec.type)
        return LaunchArgument(payload, spec.type)
    if type(value) is int and not is_constexpr:
        return LaunchArgument(value, I32)
    return LaunchArgument(spec.value)  # type: ignore[attr-defined]


def _number(type_: ScalarType, bits: int) -> Any:
    """The number in a slot, as a NumPy scalar."""
    return np.frombuffer(bits.to_bytes(8, "little"), dtype_of(type_))[0]
