"""Shapes: adding, repeating, joining, splitting, reversing and exchanging axes. No lane is computed."""

from __future__ import annotations

import math
from typing import Any

from blocklang.diagnostics import CompilationError
from blocklang.ir.types import shape_of
from blocklang.language.broadcasting import broadcast_block, broadcast_together, spread
from blocklang.language.constexpr import describe, static_bool, static_int, static_shape, unwrap
from blocklang.language.registry import builtin
from blocklang.language.tensor import emit, is_block, tensor, to_tensor
from blocklang.ops.reduction import Reduce
from blocklang.ops.shape import Cat, ExpandDims, Reshape, Slice, Trans


def block_shape(value: tensor) -> tuple[int, ...]:
    """The shape of a block, () of a scalar."""
    return shape_of(value.value.type)


def normal_axis(axis: Any, rank: int, what: str) -> int:
    """An axis counted from 0; a negative one counts from the end."""
    number = static_int(axis, f"the axis of {what}")
    if not -rank <= number < rank:
        raise CompilationError(
            f"{what} has no axis {number}: the rank is {rank}", help=f"an axis is from {-rank} to {rank - 1}"
        )
    return number % rank


@builtin
def expand_dims(input: Any, axis: Any) -> tensor:
    """Add axes of extent 1.

    Args:
        input: a scalar or block.
        axis: where the new axis stands in the result, or a tuple of such places; negative ones count from the
            end.

    Example:
        column = tl.expand_dims(tl.arange(0, 8), 1)
    """
    value, plain = to_tensor(input), unwrap(axis)
    places = list(plain) if isinstance(plain, (tuple, list)) else [axis]
    rank = len(block_shape(value)) + len(places)
    axes = sorted(normal_axis(a, rank, "expand_dims") for a in places)
    if len(set(axes)) != len(axes):
        raise CompilationError(f"expand_dims names an axis twice: {axes}")
    for place in axes:
        value = emit(ExpandDims, value, axis=place) if is_block(value) else spread(value, (1,))
    return value


def subscript(value: tensor, index: Any) -> tensor:
    """`x[:, None]`: `None` adds an axis, `:` keeps one."""
    parts = unwrap(index)
    parts = parts if isinstance(parts, tuple) else (parts,)
    axis = 0
    for part in map(unwrap, parts):
        if part is None:
            value = expand_dims(value, axis)
        elif not isinstance(part, slice) or part != slice(None):
            raise CompilationError(
                f"a block is indexed with `:` and `None` only, got {describe(part)}",
                help="load from a pointer with offsets to pick elements, or reduce over an axis",
            )
        axis += 1
    if axis > len(block_shape(value)):
        raise CompilationError(f"too many indices for {value.value.type}: {axis}")
    return value


@builtin
def broadcast_to(input: Any, *shape: Any) -> tensor:
    """Repeat axes of extent 1, or a scalar, to a shape.

    Args:
        input: a scalar, or a block of the same rank as the shape.
        shape: compile-time extents, one tuple or several integers.

    Example:
        table = tl.broadcast_to(tl.arange(0, 8)[None, :], (4, 8))
    """
    value, target = to_tensor(input), static_shape(shape, "broadcast_to")
    own = block_shape(value)
    if own and (len(own) != len(target) or any(n not in (1, m) for n, m in zip(own, target, strict=True))):
        raise CompilationError(
            f"cannot broadcast {value.value.type} to {list(target)}",
            help="the ranks must be equal, and each extent equal or 1; add axes with `x[:, None]`",
        )
    return spread(value, target)


@builtin
def broadcast(input: Any, other: Any) -> tuple[tensor, tensor]:
    """Bring two values to their common shape.

    Args:
        input, other: scalars or blocks whose shapes broadcast.

    Returns:
        Both, in the common shape.

    Example:
        a, b = tl.broadcast(tl.arange(0, 4)[:, None], tl.arange(0, 8)[None, :])
    """
    first, second = broadcast_together(to_tensor(input), to_tensor(other))
    shape = block_shape(first) or block_shape(second)
    return spread(first, shape), spread(second, shape)


@builtin
def reshape(input: Any, *shape: Any, can_reorder: Any = False) -> tensor:
    """The same elements in row-major order under another shape.

    Args:
        input: a block.
        shape: compile-time extents, one tuple or several integers, of as many elements.
        can_reorder: accepted; the order is always kept.

    Example:
        square = tl.reshape(tl.arange(0, 16), (4, 4))
    """
    value, target = to_tensor(input), static_shape(shape, "reshape")
    own = block_shape(value)
    if math.prod(own) != math.prod(target):
        raise CompilationError(
            f"cannot reshape {value.value.type} to {list(target)}: "
            f"{math.prod(own)} elements are not {math.prod(target)}"
        )
    if not own:
        return spread(value, target)
    if own == target:
        return value
    return emit(Reshape, value, shape=target) if target else item(value)


@builtin
def view(input: Any, *shape: Any) -> tensor:
    """The same as `reshape`: the order is kept.

    Example:
        square = tl.view(tl.arange(0, 16), (4, 4))
    """
    return reshape(input, *shape)


@builtin
def ravel(x: Any, can_reorder: Any = False) -> tensor:
    """All elements in one axis, in row-major order.

    Example:
        flat = tl.ravel(tl.zeros((4, 8), tl.float32))
    """
    value = to_tensor(x)
    return reshape(value, (math.prod(block_shape(value)),))


@builtin
def item(x: Any) -> tensor:
    """The element of a block that has only one, as a scalar.

    Example:
        first = tl.item(tl.arange(0, 1))
    """
    value = to_tensor(x)
    if math.prod(block_shape(value)) != 1:
        raise CompilationError(f"item needs a block of one element, got {value.value.type}")
    while is_block(value):
        value = emit(Reduce, value, combine="max", axis=0)
    return value


@builtin
def trans(input: Any, *dims: Any) -> tensor:
    """Exchange axes; without `dims`, the last two.

    Args:
        input: a block.
        dims: the order of the axes in the result, one tuple or several integers.

    Example:
        columns = tl.trans(tl.zeros((4, 8), tl.float32))
    """
    value = to_tensor(input)
    rank = len(block_shape(value))
    if dims:
        return permute(value, *dims)
    if rank < 2:
        raise CompilationError(f"trans needs a block of rank 2 or more, got {value.value.type}")
    return permute(value, (*range(rank - 2), rank - 1, rank - 2))


@builtin
def permute(input: Any, *dims: Any) -> tensor:
    """Put the axes into another order.

    Args:
        input: a block.
        dims: axis k of the result is axis `dims[k]` of the operand; one tuple or several integers.

    Example:
        swapped = tl.permute(tl.zeros((2, 4, 8), tl.float32), (2, 0, 1))
    """
    value = to_tensor(input)
    rank = len(block_shape(value))
    first = unwrap(dims[0]) if len(dims) == 1 else dims
    places = first if isinstance(first, (tuple, list)) else dims
    order = tuple(normal_axis(d, rank, "permute") for d in places)
    if sorted(order) != list(range(rank)):
        raise CompilationError(f"{list(order)} is not an order of the {rank} axes of {value.value.type}")
    return value if order == tuple(range(rank)) else emit(Trans, value, order=order)


@builtin
def squeeze(x: Any, dim: Any) -> tensor:
    """Remove an axis of extent 1.

    Example:
        row = tl.squeeze(tl.zeros((1, 8), tl.float32), 0)
    """
    value = to_tensor(x)
    own = block_shape(value)
    axis = normal_axis(dim, len(own), "squeeze")
    if own[axis] != 1:
        raise CompilationError(f"cannot squeeze axis {axis} of {value.value.type}: its extent is {own[axis]}")
    return reshape(value, own[:axis] + own[axis + 1 :])


@builtin
def unsqueeze(x: Any, dim: Any) -> tensor:
    """Add an axis of extent 1; the same as `expand_dims`.

    Example:
        column = tl.unsqueeze(tl.arange(0, 8), 1)
    """
    return expand_dims(x, dim)


# ---- several blocks ----


def _of_one_type(input: Any, other: Any, what: str) -> tuple[tensor, tensor]:
    first, second = to_tensor(input), to_tensor(other)
    if first.dtype != second.dtype:
        raise CompilationError(
            f"{what} needs two values of one dtype, got {first.value.type} and {second.value.type}",
            help="cast one of them with `.to(...)`",
        )
    return first, second


@builtin
def join(a: Any, b: Any) -> tensor:
    """Two values side by side, along a new last axis of extent 2.

    Args:
        a, b: scalars or blocks of one dtype, whose shapes broadcast.

    Returns:
        A block of shape `[..., 2]`: `a` at index 0 of the last axis, `b` at index 1; two scalars give `[2]`.

    Example:
        pairs = tl.join(tl.arange(0, 8), tl.arange(8, 16))
    """
    first, second = broadcast_together(*_of_one_type(a, b, "join"))
    shape = block_shape(first) or block_shape(second)
    sides = [reshape(spread(v, shape), (*shape, 1)) if shape else spread(v, (1,)) for v in (first, second)]
    return emit(Cat, *sides, axis=len(shape))


@builtin
def split(a: Any) -> tuple[tensor, tensor]:
    """Take a last axis of extent 2 apart; undoes `join`.

    Args:
        a: a block of shape `[..., 2]`.

    Returns:
        The elements at index 0 of the last axis, and those at index 1; two scalars for a block of shape [2].

    Example:
        even, odd = tl.split(tl.reshape(tl.arange(0, 16), (8, 2)))
    """
    value = to_tensor(a)
    own = block_shape(value)
    if not own or own[-1] != 2:
        raise CompilationError(
            f"split needs a block whose last axis has extent 2, got {value.value.type}",
            help="bring it there with `tl.reshape` and `tl.permute`",
        )
    parts = [emit(Slice, value, axis=len(own) - 1, start=index, extent=1) for index in range(2)]
    first, second = (reshape(part, own[:-1]) for part in parts)
    return first, second


@builtin
def interleave(a: Any, b: Any) -> tensor:
    """The elements of two values in turn, along the last axis: a[0], b[0], a[1], b[1], ...

    Args:
        a, b: scalars or blocks of one dtype, whose shapes broadcast.

    Returns:
        A block with the last extent doubled; two scalars give a block of shape [2].

    Example:
        mixed = tl.interleave(tl.arange(0, 8), tl.arange(8, 16))
    """
    pairs = join(a, b)
    shape = block_shape(pairs)
    return pairs if len(shape) == 1 else reshape(pairs, (*shape[:-2], 2 * shape[-2]))


@builtin
def cat(input: Any, other: Any, can_reorder: Any = False, dim: Any = 0) -> tensor:
    """Two blocks behind each other along an axis: first the elements of `input`, then those of `other`.

    Args:
        input, other: blocks of one dtype and rank; extents are equal but for that of `dim`.
        can_reorder: accepted for blocks of rank 1; the order is always kept.
        dim: the axis; a negative one counts from the end.

    Example:
        both = tl.cat(tl.arange(0, 8), tl.arange(100, 108))
    """
    first, second = _of_one_type(input, other, "cat")
    own, others = block_shape(first), block_shape(second)
    if not own or len(own) != len(others):
        raise CompilationError(
            f"cat needs two blocks of the same rank, got {first.value.type} and {second.value.type}",
            help="`tl.join` takes scalars, and adds an axis",
        )
    if static_bool(can_reorder, "can_reorder") and len(own) != 1:
        raise CompilationError(
            f"cat with can_reorder=True needs blocks of rank 1, got {first.value.type}",
            help="leave can_reorder out: the order is always kept",
        )
    axis = normal_axis(dim, len(own), "cat")
    if any(n != m for place, (n, m) in enumerate(zip(own, others, strict=True)) if place != axis):
        raise CompilationError(
            f"cannot cat {first.value.type} and {second.value.type} along axis {axis}",
            help="all other extents must be equal; broadcast one block with `tl.broadcast_to`",
        )
    return emit(Cat, first, second, axis=axis)


@builtin
def flip(x: Any, dim: Any = None) -> tensor:
    """The block with an axis in the opposite order.

    Args:
        x: a block.
        dim: the axis; a negative one counts from the end. The last one without it.

    Example:
        backwards = tl.flip(tl.arange(0, 8))
    """
    value = to_tensor(x)
    own = block_shape(value)
    if not own:
        raise CompilationError(f"flip needs a block, got {value.value.type}")
    axis = len(own) - 1 if unwrap(dim) is None else normal_axis(dim, len(own), "flip")
    extent = own[axis]
    return value if extent == 1 else emit(Slice, value, axis=axis, start=extent - 1, step=-1, extent=extent)


__all__ = [
    "block_shape",
    "broadcast",
    "broadcast_block",
    "broadcast_to",
    "cat",
    "expand_dims",
    "flip",
    "interleave",
    "item",
    "join",
    "normal_axis",
    "permute",
    "ravel",
    "reshape",
    "split",
    "squeeze",
    "subscript",
    "trans",
    "unsqueeze",
    "view",
]
