"""Values from nothing: the program's place in the grid, ranges and constants."""

from __future__ import annotations

from typing import Any

from blocklang.diagnostics import CompilationError
from blocklang.ir.types import I32, shape_of
from blocklang.language.broadcasting import spread
from blocklang.language.casting import cast_element, to_dtype
from blocklang.language.constexpr import describe, static_int, static_shape, unwrap
from blocklang.language.registry import builtin
from blocklang.language.tensor import constant, emit, tensor
from blocklang.ops.creation import Arange, NumPrograms, ProgramId


def _axis(axis: Any) -> int:
    number = static_int(axis, "axis")
    if number not in (0, 1, 2):
        raise CompilationError(f"a grid has the axes 0, 1 and 2, got {number}")
    return number


@builtin
def program_id(axis: Any) -> tensor:
    """This program's index along a grid axis, an int32 scalar.

    Args:
        axis: 0, 1 or 2, known at compile time.

    Example:
        pid = tl.program_id(0)
    """
    return emit(ProgramId, axis=_axis(axis))


@builtin
def num_programs(axis: Any) -> tensor:
    """How many programs the grid has along an axis, an int32 scalar.

    Args:
        axis: 0, 1 or 2, known at compile time.

    Example:
        count = tl.num_programs(0)
    """
    return emit(NumPrograms, axis=_axis(axis))


@builtin
def arange(start: Any, end: Any) -> tensor:
    """The int32 block start, start + 1, ..., end - 1.

    Args:
        start, end: compile-time integers with start < end; any length, not only powers of two.

    Example:
        offsets = tl.program_id(0) * 128 + tl.arange(0, 128)
    """
    first, last = static_int(start, "the start of arange"), static_int(end, "the end of arange")
    if last <= first:
        raise CompilationError(
            f"arange({first}, {last}) would be empty", help="`end` must be greater than `start`"
        )
    if first < I32.minimum or last - 1 > I32.maximum:
        raise CompilationError(f"arange({first}, {last}) does not fit into int32")
    return emit(Arange, start=first, end=last)


@builtin
def full(shape: Any, value: Any, dtype: Any) -> tensor:
    """A block with one value in every lane.

    Args:
        shape: a tuple or list of compile-time integers, or one integer; () gives a scalar.
        value: a number, a scalar or a block of one element.
        dtype: the element type.

    Example:
        ones = tl.full((4, 8), 1.0, tl.float32)
    """
    extents, element = _extents(shape, "full"), to_dtype(dtype)
    if isinstance(value, tensor):
        from blocklang.language.shape import item

        single = item(value) if shape_of(value.value.type) else value
        return spread(cast_element(single, element), extents)
    number = unwrap(value)
    if not isinstance(number, (bool, int, float)):
        raise CompilationError(f"full needs a number or a scalar, got {describe(value)}")
    return constant(number, element, extents)


def _extents(shape: Any, what: str) -> tuple[int, ...]:
    plain = unwrap(shape)
    return static_shape((plain if isinstance(plain, (tuple, list)) else (shape,),), what)


@builtin
def zeros(shape: Any, dtype: Any) -> tensor:
    """A block of zeros.

    Args:
        shape: a tuple or list of compile-time integers, or one integer.
        dtype: the element type.

    Example:
        accumulator = tl.zeros((16, 16), dtype=tl.float32)
    """
    return constant(0, to_dtype(dtype), _extents(shape, "zeros"))


@builtin
def zeros_like(input: Any) -> tensor:
    """A block of zeros with the shape and element type of another.

    Args:
        input: a scalar or block.

    Example:
        z = tl.zeros_like(tl.arange(0, 8))
    """
    if not isinstance(input, tensor):
        raise CompilationError(f"zeros_like needs a block, got {describe(input)}")
    return constant(0, input.dtype, shape_of(input.value.type))
