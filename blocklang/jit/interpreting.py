"""A launch in interpreter mode: the same arguments, given to `interpreter.interpret_launch`.

Arguments are bound, described and refused as for compiled code, so a wrong launch says the same. An integer 1
is not compiled in here: it is a run-time scalar like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from blocklang.frontend import KernelSource
from blocklang.interpreter import LaunchArgument, interpret_launch
from blocklang.interpreter.dtypes import dtype_of
from blocklang.ir.types import I32, ScalarType
from blocklang.jit.parameters import Parameter
from blocklang.jit.specialisation import Described, Payload, TupleSpec, TypedSpec
from blocklang.language.constexpr import constexpr
from blocklang.runtime.grids import Grid


def interpret_arguments(
    source: KernelSource,
    parameters: Sequence[Parameter],
    values: Sequence[Any],
    described: Sequence[Described],
    grid: Grid,
    source_of: Callable[[object], KernelSource | None],
) -> None:
    """Run a launch in the interpreter.

    Args:
        source: the kernel's.
        parameters, values, described: the parameters, the arguments bound to them, and what they are.
        grid: three extents.
        source_of: the source of another kernel that this one calls.
    """
    arguments = {
        parameter.name: _argument(parameter.is_constexpr, value, *description)
        for parameter, value, description in zip(parameters, values, described, strict=True)
    }
    interpret_launch(source, arguments, grid, code_of=source_of)


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
