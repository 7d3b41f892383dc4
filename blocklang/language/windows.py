"""Blocks of an array by their position: what block pointers and tensor descriptors have in common.

A `Window` knows an array's address, extents and strides, and the shape of a block. Reading or writing the
block at some offsets is an ordinary load or store through a block of pointers, under a mask that ends at the
edges of the array, so all that is known of those holds here too. Indices are 64-bit: nothing wraps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from blocklang.diagnostics import CompilationError
from blocklang.language import dtypes as tl
from blocklang.language.broadcasting import spread
from blocklang.language.casting import cast_element
from blocklang.language.compound import Compound
from blocklang.language.constexpr import constexpr, describe, static_int, unwrap
from blocklang.language.context import current_builder
from blocklang.language.creation import arange
from blocklang.language.dtypes import dtype
from blocklang.language.shape import block_shape, expand_dims, item
from blocklang.language.tensor import constant, is_block, tensor, to_tensor


class Window(Compound):
    """An array and the shape of a block in it; the methods of its subclasses can be called in kernels."""

    base: tensor
    block_shape: tuple[constexpr, ...]

    @property
    def dtype(self) -> dtype:
        """The type of an element."""
        return self.base.dtype.element_ty

    @property
    def extents(self) -> tuple[int, ...]:
        """The extents of the block."""
        return tuple(n.value for n in self.block_shape)


def listed(values: Any) -> list[Any]:
    """The items of a tuple or list, or one value."""
    plain = unwrap(values)
    return list(plain) if isinstance(plain, (tuple, list)) else [values]


def integer(value: Any, target: dtype, what: str) -> tensor:
    """An integer scalar of type `target`.

    Raises:
        CompilationError: it is no integer scalar; the message names `what`.
    """
    plain = unwrap(value)
    if isinstance(plain, tensor) and is_block(plain) and math.prod(block_shape(plain)) == 1:
        plain = value = item(plain)
    if isinstance(plain, tensor) and (is_block(plain) or not plain.dtype.is_int()):
        raise CompilationError(f"Expected an integer scalar in {what}, got {describe(plain)}")
    if isinstance(plain, bool) or not isinstance(plain, (int, tensor)):
        raise CompilationError(f"Expected an integer scalar in {what}, got {describe(value)}")
    return cast_element(to_tensor(value), target) if isinstance(plain, tensor) else constant(plain, target)


def offset_of(value: Any, what: str) -> tensor:
    """An offset, int32. Raises CompilationError for a wider one."""
    plain = unwrap(value)
    if isinstance(plain, tensor) and plain.dtype.is_int() and plain.dtype.int_bitwidth == 64:
        raise CompilationError(
            f"{what} only supports 32-bit offsets, got {describe(plain)}",
            help="add a `.to(tl.int32)`, or use regular indexing with pointers for 64-bit offsets",
        )
    return integer(value, tl.int32, f"the offsets of {what}")


def static_extents(values: Any, what: str) -> tuple[constexpr, ...]:
    """The shape of a block."""
    extents = [static_int(n, f"an extent of the block_shape of {what}") for n in listed(values)]
    if any(n < 1 for n in extents):
        raise CompilationError(f"the extents of the block_shape of {what} must be positive, got {extents}")
    return tuple(map(constexpr, extents))


def array_pointer(value: Any, what: str) -> tensor:
    """The address of an array."""
    plain = unwrap(value)
    if isinstance(plain, tensor) and plain.dtype.is_ptr() and not is_block(plain):
        return plain
    raise CompilationError(
        f"Expected `base` of {what} to be a pointer, got {describe(value)}",
        help="pass the array itself to the kernel",
    )


def along(values: tensor, axis: int, rank: int) -> tensor:
    """A block of rank 1 along one axis of `rank`."""
    return expand_dims(values, tuple(a for a in range(rank) if a != axis)) if rank > 1 else values


def wide(value: tensor) -> tensor:
    return cast_element(value, tl.int64)


def indices_of(offsets: Sequence[tensor], shape: Sequence[int]) -> list[tensor]:
    """The 64-bit index of each lane along every axis, each as a block that broadcasts to `shape`."""
    rank = len(shape)
    return [
        along(wide(arange(0, extent)), axis, rank) + wide(offset)
        for axis, (offset, extent) in enumerate(zip(offsets, shape, strict=True))
    ]


def addresses(
    base: tensor, strides: Sequence[tensor], offsets: Sequence[tensor], shape: tuple[int, ...]
) -> tensor:
    """The block of pointers at some offsets of an array: what is the same for all is added once."""
    pointers = base
    for offset, stride in zip(offsets, strides, strict=True):
        pointers = pointers + wide(offset) * stride
    for axis, (extent, stride) in enumerate(zip(shape, strides, strict=True)):
        pointers = pointers + along(wide(arange(0, extent)) * stride, axis, len(shape))
    return spread(pointers, shape)


def inside(
    indices: Sequence[tensor], ends: Sequence[tensor], axes: Sequence[int], shape: tuple[int, ...]
) -> tensor | None:
    """The lanes whose index lies in the array along each of `axes`; None if there are none."""
    mask: tensor | None = None
    for axis in axes:
        index = indices[axis]
        within = (index >= constant(0, tl.int64)) & (index < wide(ends[axis]))
        mask = within if mask is None else mask & within
    return None if mask is None else spread(mask, shape)


def padding_value(option: str, element: dtype) -> tensor | None:
    """What lanes outside of the array hold, '' and 'zero' or 'nan'; None for 0. A zero that was asked for
    is one in debug mode, too, whatever is poisoned.
    """
    if option != "nan":
        asked = option == "zero" and current_builder().debug
        return cast_element(constant(0, tl.int32), element) if asked else None
    if not element.is_floating():
        raise CompilationError(
            "Padding option `nan` is not supported for integer blocks", help="leave it out, or write 'zero'"
        )
    return constant(float("nan"), element)
