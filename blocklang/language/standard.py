"""Functions that are made of others: `cdiv`, `sigmoid`, `softmax`, `swizzle2d`."""

from __future__ import annotations

from typing import Any

from blocklang.diagnostics import CompilationError
from blocklang.language import dtypes as tl
from blocklang.language.casting import cast_element
from blocklang.language.constexpr import constexpr, describe, is_compile_time, static_int, unwrap
from blocklang.language.maths import exp, fdiv, minimum
from blocklang.language.reduction import max as maximum_of
from blocklang.language.reduction import sum as sum_of
from blocklang.language.registry import builtin
from blocklang.language.shape import block_shape
from blocklang.language.tensor import tensor, to_tensor


@builtin
def cdiv(x: Any, div: Any) -> Any:
    """Integer division rounded up: `(x + div - 1) // div`.

    Args:
        x, div: integers; the quotient of plain numbers is a number.

    Example:
        steps = tl.cdiv(n, 128)
    """
    if type(x) is int and type(div) is int:  # grid functions call this at every launch
        return (x + div - 1) // div
    if is_compile_time(x) and is_compile_time(div) and not _is_typed(x) and not _is_typed(div):
        quotient = (static_int(x, "cdiv") + static_int(div, "cdiv") - 1) // static_int(div, "cdiv")
        return constexpr(quotient) if isinstance(x, constexpr) or isinstance(div, constexpr) else quotient
    return (x + (div - 1)) // div


def _is_typed(value: Any) -> bool:
    return isinstance(value, constexpr) and value.type is not None


@builtin
def next_power_of_2(n: Any) -> int:
    """The smallest power of two that is not below a compile-time integer.

    Example:
        SIZE: tl.constexpr = tl.next_power_of_2(N)
    """
    number = static_int(n, "next_power_of_2")
    return 1 if number <= 1 else 1 << (number - 1).bit_length()


@builtin
def swizzle2d(i: Any, j: Any, size_i: Any, size_j: Any, size_g: Any) -> tuple[Any, Any]:
    """Where the element (i, j) of a matrix is when its rows are taken `size_g` at a time.

    The elements of `size_i` x `size_j`, counted row by row, are laid out anew: group after group of `size_g`
    rows, the last one of as many as there are, and column by column within a group. So programs that run one
    after the other need few rows and few columns of the operands of a product.

    Args:
        i, j: row and column: integers, scalars or blocks.
        size_i, size_j: the extents of the matrix.
        size_g: rows of a group.

    Returns:
        The new row and the new column.

    Example:
        row, column = tl.swizzle2d(tl.program_id(0), tl.program_id(1), 4, 4, 2)
    """
    place = i * size_j + j
    in_group = size_g * size_j
    first = place // in_group * size_g
    rows = minimum(size_i - first, size_g)
    place = place % in_group
    return first + place % rows, place // rows


@builtin
def sigmoid(x: Any) -> tensor:
    """`1 / (1 + exp(-x))`; fp16 and bf16 are computed in fp32 and rounded once.

    Example:
        y = tl.sigmoid(tl.zeros((8,), tl.float32))
    """
    value = to_tensor(x)
    if not value.dtype.is_floating():
        raise CompilationError(
            f"sigmoid needs floats, got {describe(x)}", help="convert with `.to(tl.float32)`"
        )
    wide = cast_element(value, tl.float32) if value.dtype.primitive_bitwidth < 32 else value
    return cast_element(1.0 / (1.0 + exp(-wide)), value.dtype)


@builtin
def softmax(x: Any, dim: Any = None, keep_dims: Any = False, ieee_rounding: Any = False) -> tensor:
    """exp(x - max) divided by its sum, along an axis. fp16 and bf16 give fp32.

    Args:
        x: a block of floats.
        dim: the axis, 0 by default.
        keep_dims: accepted; the result has the shape of `x` in both cases.
        ieee_rounding: accepted; the quotient is always correctly rounded.

    Example:
        y = tl.softmax(tl.zeros((8,), tl.float32))
    """
    value = to_tensor(x)
    if not value.dtype.is_floating() or not block_shape(value):
        raise CompilationError(f"softmax needs a block of floats, got {describe(x)}")
    axis = 0 if unwrap(dim) is None else dim
    keeps = len(block_shape(value)) > 1  # a scalar needs no axis to broadcast along
    powers = exp(value - maximum_of(value, axis, keep_dims=keeps))
    return fdiv(powers, sum_of(powers, axis, keep_dims=keeps), ieee_rounding)
