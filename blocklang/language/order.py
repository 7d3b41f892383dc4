"""Ordering, counting and picking lanes: sort, topk, histogram, gather."""

from __future__ import annotations

from typing import Any

from blocklang.diagnostics import CompilationError
from blocklang.language import dtypes as tl
from blocklang.language.broadcasting import common_shape, spread
from blocklang.language.casting import cast_element
from blocklang.language.constexpr import describe, static_bool, static_int, unwrap
from blocklang.language.registry import builtin
from blocklang.language.shape import block_shape, normal_axis
from blocklang.language.tensor import emit, is_block, tensor, to_tensor
from blocklang.ops.order import Gather, Histogram, Sort, TopK


def _rows(x: Any, dim: Any, what: str) -> tensor:
    """A block of numbers whose rows, along the last axis, are meant."""
    if not isinstance(x, tensor) or not is_block(x):
        raise CompilationError(f"{what} needs a block, got {describe(x)}")
    if x.dtype.is_ptr():
        raise CompilationError(f"{what} needs numbers, got {x.dtype}")
    rank = len(block_shape(x))
    axis = rank - 1 if unwrap(dim) is None else normal_axis(dim, rank, what)
    if axis != rank - 1:
        raise CompilationError(
            f"{what} along dim {axis} of a block of rank {rank}: only the last dimension is supported",
            help="transpose with `tl.trans` before and after",
        )
    return x


@builtin
def sort(x: Any, dim: Any = None, descending: Any = False) -> tensor:
    """Sort the elements of every row, along the last dimension.

    The order is total: integers by value, floats by value with -0.0 before +0.0 and every NaN last; with
    `descending` all of it is reversed, so NaN come first.

    Args:
        x: a block of numbers or bools of any extent.
        dim: None or the last dimension.
        descending: True for the largest first.

    Returns:
        A block of the same type and shape.

    Raises:
        CompilationError: `x` is no block of numbers, or `dim` is not its last dimension.

    Example:
        y = tl.sort(tl.arange(0, 8) * 5 % 8)
    """
    return emit(Sort, _rows(x, dim, "sort"), descending=static_bool(descending, "descending"))


@builtin
def bitonic_merge(x: Any, dim: Any = None, descending: Any = False) -> tensor:
    """Sort rows that first rise and then fall, or the other way round. Any other row is sorted too.

    Args:
        x: a block, as for `sort`.
        dim: None or the last dimension.
        descending: True for the largest first.

    Example:
        y = tl.bitonic_merge(tl.abs(tl.arange(0, 8) - 3))
    """
    return emit(Sort, _rows(x, dim, "bitonic_merge"), descending=static_bool(descending, "descending"))


@builtin
def topk(x: Any, k: Any, dim: Any = None) -> tensor:
    """The k largest elements of every row, the largest first: the head of `sort` with `descending`.

    Args:
        x: a block of numbers or bools of any extent.
        k: how many, known at compile time; not more than a row has. It need not be a power of two.
        dim: None or the last dimension.

    Returns:
        A block whose last extent is k. NaN count as larger than every number.

    Raises:
        CompilationError: as for `sort`, or k is out of range.

    Example:
        best = tl.topk(tl.arange(0, 8), 3)
    """
    rows, count = _rows(x, dim, "topk"), static_int(k, "k")
    extent = block_shape(rows)[-1]
    if not 1 <= count <= extent:
        raise CompilationError(
            f"topk needs k between 1 and {extent}, the extent of the last dimension, got {count}"
        )
    return emit(TopK, rows, k=count)


@builtin
def gather(src: Any, index: Any, axis: Any) -> tensor:
    """Pick elements along an axis: `out[i, j] = src[index[i, j], j]` for axis 0.

    Args:
        src: a block of numbers or bools.
        index: a block of integers of any type, of the rank of `src` and of its extents in all other axes.
        axis: compile-time axis.

    Returns:
        A block with the shape of `index` and the type of `src`. An index out of range has no meaning to rely
        on; it gives the first or the last element.

    Raises:
        CompilationError: the index is no block of integers, or the shapes do not fit.

    Example:
        flipped = tl.gather(tl.arange(0, 8), 7 - tl.arange(0, 8), 0)
    """
    for value, what in ((src, "src"), (index, "index")):
        if not isinstance(value, tensor) or not is_block(value):
            raise CompilationError(f"gather needs a block as {what}, got {describe(value)}")
    if src.dtype.is_ptr():
        raise CompilationError(f"gather needs numbers, got {src.dtype}", help="gather offsets, then add them")
    if not index.dtype.is_int():
        raise CompilationError(
            f"gather needs integers as index, got {index.dtype}", help="convert with `.to(tl.int32)`"
        )
    shape, wanted = block_shape(src), block_shape(index)
    if len(shape) != len(wanted):
        raise CompilationError(
            f"gather needs source and index of equal rank, got {src.value.type} and {index.value.type}"
        )
    number = normal_axis(axis, len(shape), "gather")
    for other in range(len(shape)):
        if other != number and shape[other] != wanted[other]:
            raise CompilationError(
                f"gather along axis {number}: source and index differ in axis {other}, "
                f"{shape[other]} and {wanted[other]}",
                help="broadcast the index, or the source, to the same extent",
            )
    if index.dtype.is_int1():
        index = cast_element(index, tl.uint8)
    return emit(Gather, src, index, axis=number)


@builtin
def histogram(input: Any, num_bins: Any, mask: Any = None) -> tensor:
    """Count how often each of the numbers 0, 1, ... num_bins - 1 occurs.

    Args:
        input: a block of rank 1 of integers of any type.
        num_bins: the number of bins, known at compile time.
        mask: lanes where it is false are not counted.

    Returns:
        int32 of shape [num_bins]. Numbers out of range, negative ones too, are not counted.

    Raises:
        CompilationError: `input` is not one-dimensional, or not of integers.

    Example:
        counts = tl.histogram(tl.arange(0, 8) % 3, 4)
    """
    if not isinstance(input, tensor) or not is_block(input):
        raise CompilationError(f"histogram needs a block, got {describe(input)}")
    if len(block_shape(input)) != 1:
        raise CompilationError(
            f"histogram only supports 1D input, got {input.value.type}", help="flatten with `tl.ravel`"
        )
    if not input.dtype.is_int():
        raise CompilationError(
            f"histogram only supports integer input, got {input.dtype}", help="convert with `.to(tl.int32)`"
        )
    bins = static_int(num_bins, "num_bins")
    if not 1 <= bins < 1 << 31:
        raise CompilationError(f"histogram needs at least one bin, got num_bins={bins}")
    return emit(Histogram, input, mask=_mask(mask, block_shape(input)), bins=bins)


def _mask(mask: Any, shape: tuple[int, ...]) -> tensor | None:
    if unwrap(mask) is None:
        return None
    value = to_tensor(mask)
    if not value.dtype.is_int1():
        raise CompilationError(
            f"a mask must be int1, got {describe(mask)}", help="compare, for instance `mask != 0`"
        )
    if common_shape([block_shape(value), shape]) != shape:
        raise CompilationError(f"a mask of {value.value.type} does not fit a histogram of {list(shape)}")
    return spread(value, shape)
