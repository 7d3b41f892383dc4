"""Driver one: run a kernel of any level of IR over a grid, program after program.

Programs run in ascending linear id, axis 0 fastest. Arrays are used in place.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from blocklang.depth import deep_recursion
from blocklang.diagnostics import LaunchError
from blocklang.interpreter.address_space import AddressSpace, address_of, byte_range_of
from blocklang.interpreter.buffers import make_arenas
from blocklang.interpreter.dtypes import ADDRESS, Array, constant, dtype_of, memory_dtype_of
from blocklang.interpreter.evaluation import Machine
from blocklang.ir.core import Kernel
from blocklang.ir.types import PointerType, ScalarType, Type
from blocklang.ops.faults import HIGH_OF, LOW_OF


def run_kernel(
    kernel: Kernel,
    arguments: Sequence[Any],
    grid: Sequence[int],
    *,
    programs: Iterable[int] | None = None,
) -> None:
    """Run every program of a launch.

    Args:
        kernel: at level 'block', 'tile' or 'placed'; it is taken to be verified.
        arguments: one per argument of the kernel: for a pointer an array (the pointer is the address of its
            element [0, ...]) or its description (`GlobalArray`), for a scalar a number.
        grid: one to three extents.
        programs: run only these linear ids, in the order given.

    Raises:
        InterpreterError: a program accessed memory outside of the arrays.
        LaunchError: an argument does not fit the kernel.
    """
    extents = grid_extents(grid)
    arguments = [*arguments, *_ends(kernel, arguments)]
    names = [arg.name or str(i) for i, arg in enumerate(kernel.args)]
    if len(arguments) != len(names):
        raise LaunchError(f"{kernel.name} takes {len(names)} arguments, got {len(arguments)}")
    data = [argument_data(n, a.type, x) for n, a, x in zip(names, kernel.args, arguments, strict=True)]
    is_array = [isinstance(arg.type, PointerType) for arg in kernel.args]
    memory = AddressSpace((n, a) for n, a, is_ in zip(names, arguments, is_array, strict=True) if is_)
    with np.errstate(all="ignore"), deep_recursion():
        for linear in range(math.prod(extents)) if programs is None else programs:
            machine = Machine(memory, program_index(linear, extents), extents, make_arenas(kernel))
            machine.run(kernel.body, data)


def _ends(kernel: Kernel, arguments: Sequence[Any]) -> Iterator[int]:
    """The arguments that the user did not write: where arrays begin and end."""
    given = {a.name: x for a, x in zip(kernel.args, arguments, strict=False)}
    for attributes in kernel.argument_attributes:
        for number, end in enumerate((LOW_OF, HIGH_OF)):
            if end in attributes:
                yield byte_range_of(given[attributes[end]])[number]


def grid_extents(grid: Sequence[int]) -> tuple[int, int, int]:
    """The grid with all three axes."""
    if not 1 <= len(grid) <= 3 or any(int(n) < 0 for n in grid):
        raise LaunchError(f"a grid has one to three extents of 0 or more, got {tuple(grid)}")
    x, y, z = (*(int(n) for n in grid), *[1] * (3 - len(grid)))
    return x, y, z


def program_index(linear: int, extents: tuple[int, int, int]) -> tuple[int, int, int]:
    """The index of a program per axis; axis 0 varies fastest."""
    x, y, _ = extents
    return linear % x, linear // x % y, linear // (x * y)


def argument_data(name: str, type_: Type, argument: Any) -> Array:
    """What a kernel reads for an argument: an address, or a number of the exact dtype."""
    if isinstance(type_, PointerType):
        return _pointer(name, type_, argument)
    dtype = dtype_of(type_)
    assert isinstance(type_, ScalarType)
    if type_.is_integer and not type_.minimum <= int(argument) <= type_.maximum:
        raise LaunchError(f"argument {name!r}: {argument} is out of the range of {type_}")
    if type_.is_float8 and not isinstance(argument, (np.generic, np.ndarray)):
        return constant(argument, dtype)
    return np.asarray(argument).astype(dtype)


def _pointer(name: str, type_: PointerType, argument: Any) -> Array:
    if isinstance(argument, np.ndarray):
        if argument.dtype not in (dtype_of(type_.element), memory_dtype_of(type_.element)):
            raise LaunchError(f"argument {name!r} must be an array of {type_.element}, got {argument.dtype}")
    elif not hasattr(argument, "byte_range"):
        raise LaunchError(f"argument {name!r} must be an array for a {type_}, got {type(argument).__name__}")
    return np.array(address_of(argument), ADDRESS)
