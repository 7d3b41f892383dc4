"""Reductions along an axis, by a known operation or by the user's function."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from blocklang.diagnostics import CompilationError
from blocklang.ir import Region
from blocklang.ir.types import BlockType
from blocklang.language import dtypes as tl
from blocklang.language.casting import cast_element, to_dtype
from blocklang.language.constexpr import describe, static_bool, unwrap
from blocklang.language.context import current_builder
from blocklang.language.dtypes import dtype as dtype_
from blocklang.language.registry import builtin
from blocklang.language.shape import block_shape, normal_axis, reshape
from blocklang.language.shape import expand_dims as add_axis
from blocklang.language.tensor import emit, is_block, tensor, to_tensor
from blocklang.ops.control import Yield
from blocklang.ops.reduction import ArgReduce, Reduce, ReduceWith, reduced_type


def _along(value: tensor, axis: Any, what: str) -> tuple[tensor, int]:
    """The block to reduce and its axis; axis None flattens first."""
    if not is_block(value):
        raise CompilationError(f"{what} needs a block, got a scalar {value.dtype}")
    if unwrap(axis) is None:
        return reshape(value, (math.prod(block_shape(value)),)), 0
    return value, normal_axis(axis, len(block_shape(value)), what)


def _kept(result: tensor, source: tensor, axis: Any, keep_dims: Any) -> tensor:
    """The result with the reduced axis, or all axes, kept as extent 1 if asked."""
    if not static_bool(keep_dims, "keep_dims"):
        return result
    rank = len(block_shape(source))
    if unwrap(axis) is None:
        return add_axis(result, tuple(range(rank)))
    return add_axis(result, normal_axis(axis, rank, "keep_dims"))


def _combine(value: tensor, combine: str, axis: Any, keep_dims: Any, what: str) -> tensor:
    flat, number = _along(value, axis, what)
    return _kept(emit(Reduce, flat, combine=combine, axis=number), value, axis, keep_dims)


def _promoted(value: tensor, *, small_to: tuple[dtype_, dtype_] | None, half: bool) -> tensor:
    """bf16 to fp32; fp16 too if `half`; integers under 32 bits to the (signed, unsigned) type `small_to`."""
    element = value.dtype
    if element.is_bf16() or (half and element.is_fp16()):
        return cast_element(value, tl.float32)
    if small_to is not None and element.is_int() and element.int_bitwidth < 32:
        return cast_element(value, small_to[0] if element.is_int_signed() else small_to[1])
    return value


@builtin
def sum(input: Any, axis: Any = None, keep_dims: Any = False, dtype: Any = None) -> tensor:
    """Add the elements along an axis, in a fixed order (docs/semantics.md).

    Args:
        input: a block.
        axis: compile-time axis; None adds all elements.
        keep_dims: True keeps the axis with extent 1.
        dtype: the type to add in and to return. Without it, bool and integers under 32 bits add in int32 or
            uint32, other types in their own; fp16 and bf16 are accumulated in fp32 and rounded once.

    Example:
        total = tl.sum(tl.arange(0, 8), axis=0)
    """
    value = to_tensor(input)
    if unwrap(dtype) is not None:
        value = cast_element(value, to_dtype(dtype))
    else:
        value = promoted_sum(value)
    return _combine(value, "sum", axis, keep_dims, "sum")


def promoted_sum(value: tensor) -> tensor:
    """bool and integers under 32 bits as int32 or uint32, in which they are added."""
    element = value.dtype
    if element.is_int() and element.int_bitwidth < 32:
        return cast_element(value, tl.int32 if element.is_int_signed() else tl.uint32)
    return value


def _extreme(
    name: str, input: Any, axis: Any, return_indices: Any, tie_break_left: Any, keep_dims: Any
) -> Any:
    value = to_tensor(input)
    if static_bool(return_indices, "return_indices"):
        return _with_index(name, value, axis, tie_break_left, keep_dims)
    value = _promoted(value, small_to=(tl.int32, tl.int32), half=True)
    return _combine(value, name, axis, keep_dims, name)


def _with_index(
    name: str, value: tensor, axis: Any, tie_break_left: Any, keep_dims: Any
) -> tuple[tensor, tensor]:
    static_bool(tie_break_left, "tie_break_left")  # the first index in both cases
    value = _promoted(value, small_to=None, half=False)
    flat, number = _along(value, axis, name)
    op = current_builder().create(ArgReduce, flat.value, combine=name, axis=number)
    extreme, index = (tensor(r) for r in op.results)
    return _kept(extreme, value, axis, keep_dims), _kept(index, value, axis, keep_dims)


@builtin
def max(
    input: Any,
    axis: Any = None,
    return_indices: Any = False,
    return_indices_tie_break_left: Any = True,
    keep_dims: Any = False,
) -> Any:
    """The largest element along an axis; NaN is ignored unless all are NaN.

    Args:
        input: a block.
        axis: compile-time axis; None takes all elements.
        return_indices: True returns the pair (value, int32 index); ties give the first index.
        return_indices_tie_break_left: accepted; the first index is given in both cases.
        keep_dims: True keeps the axis with extent 1.

    Returns:
        fp16 and bf16 give fp32 and integers under 32 bits int32; with indices only bf16 is promoted.

    Example:
        largest = tl.max(tl.arange(0, 8), axis=0)
    """
    return _extreme("max", input, axis, return_indices, return_indices_tie_break_left, keep_dims)


@builtin
def min(
    input: Any,
    axis: Any = None,
    return_indices: Any = False,
    return_indices_tie_break_left: Any = True,
    keep_dims: Any = False,
) -> Any:
    """The smallest element along an axis; otherwise as `max`.

    Example:
        smallest = tl.min(tl.arange(0, 8), axis=0)
    """
    return _extreme("min", input, axis, return_indices, return_indices_tie_break_left, keep_dims)


@builtin
def argmax(input: Any, axis: Any, tie_break_left: Any = True, keep_dims: Any = False) -> tensor:
    """The int32 index of the largest element along an axis, the first on ties.

    NaN is skipped unless all are NaN.

    Example:
        where = tl.argmax(tl.arange(0, 8), axis=0)
    """
    return _with_index("max", to_tensor(input), axis, tie_break_left, keep_dims)[1]


@builtin
def argmin(input: Any, axis: Any, tie_break_left: Any = True, keep_dims: Any = False) -> tensor:
    """The int32 index of the smallest element along an axis, the first on ties.

    NaN is skipped unless all are NaN.

    Example:
        where = tl.argmin(tl.arange(0, 8), axis=0)
    """
    return _with_index("min", to_tensor(input), axis, tie_break_left, keep_dims)[1]


def _integers(input: Any, what: str) -> tensor:
    value = to_tensor(input)
    if not value.dtype.is_int():
        raise CompilationError(f"{what} needs integers, got {value.dtype}")
    return value


@builtin
def xor_sum(input: Any, axis: Any = None, keep_dims: Any = False) -> tensor:
    """The exclusive or of the integers along an axis.

    Example:
        parity = tl.xor_sum(tl.arange(0, 8), axis=0)
    """
    return _combine(_integers(input, "xor_sum"), "xor", axis, keep_dims, "xor_sum")


@builtin
def reduce_or(input: Any, axis: Any, keep_dims: Any = False) -> tensor:
    """The bitwise or of the integers along an axis.

    Example:
        bits = tl.reduce_or(tl.arange(0, 8), axis=0)
    """
    return _combine(_integers(input, "reduce_or"), "or", axis, keep_dims, "reduce_or")


@builtin
def reduce(input: Any, axis: Any, combine_fn: Callable[..., Any], keep_dims: Any = False) -> Any:
    """Combine the elements along an axis with a function of your own.

    Args:
        input: a block, or a tuple of k blocks of one shape.
        axis: compile-time axis; None takes all elements.
        combine_fn: a function of 2k scalars, first those of the left side, then those of the right, that
            returns k scalars of the same types. Neighbours are combined in a tree (docs/semantics.md), so it
            must be associative; it need not be commutative.
        keep_dims: True keeps the axis with extent 1.

    Returns:
        A block (or a scalar, when no axis is left), or a tuple of k.

    Example:
        product = tl.reduce(tl.arange(1, 9), 0, lambda a, b: a * b)
    """
    plain = unwrap(input)
    sources = blocks_of(input, "reduce")
    flats = [_along(v, axis, "reduce") for v in sources]
    number = flats[0][1]
    region = combiner_of(combine_fn, [v.dtype for v in sources])
    types = [flat.value.type for flat, _ in flats]
    op = current_builder().create(
        ReduceWith,
        [flat.value for flat, _ in flats],
        axis=number,
        result_types=[reduced_type(t, number) for t in types if isinstance(t, BlockType)],
        regions=[region],
    )
    results = tuple(_kept(tensor(r), sources[0], axis, keep_dims) for r in op.results)
    return results if isinstance(plain, (tuple, list)) else results[0]


def blocks_of(input: Any, what: str) -> list[tensor]:
    """The block, or the blocks of one shape of a tuple, that are combined together."""
    plain = unwrap(input)
    blocks = [to_tensor(v) for v in (plain if isinstance(plain, (tuple, list)) else (input,))]
    if not blocks:
        raise CompilationError(f"{what} needs at least one block, got an empty tuple")
    for block in blocks:
        if not is_block(block):
            raise CompilationError(f"{what} needs a block, got a scalar {block.dtype}")
    if len({block_shape(block) for block in blocks}) != 1:
        listed = ", ".join(str(v.value.type) for v in blocks)
        raise CompilationError(f"{what} needs blocks of one shape, got {listed}")
    return blocks


def combiner_of(function: Callable[..., Any], elements: list[dtype_]) -> Region:
    """The region that a function of 2k scalars becomes, k of the left, then k of the right side."""
    if not callable(function):
        raise CompilationError(f"combine_fn must be a function, got {describe(function)}")
    types = [tl.element_ir_type(e) for e in elements]
    suffixes = [str(i) for i in range(len(types))] if len(types) > 1 else [""]
    region = Region(types * 2, [f"{side}{s}" for side in ("left", "right") for s in suffixes])
    builder = current_builder()
    with builder.at(region), builder.per_lane():
        returned = unwrap(function(*(tensor(a) for a in region.args)))
        results = list(returned) if isinstance(returned, (tuple, list)) else [returned]
        if len(results) != len(types):
            raise CompilationError(
                f"combine_fn returned {len(results)} values for {len(types)} blocks",
                help="it takes the elements of the left, then of the right side, and returns as "
                "many as one side has",
            )
        values = [_same_type(r, e) for r, e in zip(results, elements, strict=True)]
        builder.create(Yield, [v.value for v in values])
    check_scalars_only(region, "combine_fn")
    return region


def check_scalars_only(region: Region, what: str) -> None:
    """Refuse a function of scalars that computes with blocks.

    Raises:
        CompilationError: it does.
    """
    for op in region.walk():
        for value in (*op.operands, *op.results):
            if isinstance(value.type, BlockType):
                raise CompilationError(
                    f"{what} must compute with scalars, but it has a {value.type}",
                    help="compute what the function needs of blocks before, and use the scalar in it",
                )


def _same_type(result: Any, element: dtype_) -> tensor:
    value = to_tensor(result)
    if is_block(value):
        raise CompilationError(f"combine_fn must return scalars, got {value.value.type}")
    # A function that promotes (`a / b` of fp16) is rounded back: reduce keeps the element type.
    return cast_element(value, element)
