"""Block pointers: a block of an array that moves through it, `make_block_ptr` and `advance`.

A block pointer is a value like any other: it can be assigned, carried by loops, passed to and returned from
functions. `load` and `store` take one in the place of a block of pointers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from blocklang.diagnostics import CompilationError
from blocklang.language import dtypes as tl
from blocklang.language.constexpr import constexpr, describe, static_choice, static_int, unwrap
from blocklang.language.dtypes import pointer_type
from blocklang.language.registry import builtin, must_use_result
from blocklang.language.tensor import tensor
from blocklang.language.windows import (
    Window,
    addresses,
    array_pointer,
    indices_of,
    inside,
    integer,
    listed,
    offset_of,
    padding_value,
    static_extents,
)

_ASSIGN = "advance has no effect of its own: assign the moved block pointer to a variable"


class block_pointer(Window):
    """What `make_block_ptr` gives.

    Attributes:
        base: the address of the array.
        shape, strides: its extents and strides, int64.
        offsets: where the block starts, int32.
        block_shape: the extents of the block.
        order: the axes, the fastest first; it has no effect.
    """

    def __init__(
        self,
        base: tensor,
        shape: tuple[tensor, ...],
        strides: tuple[tensor, ...],
        offsets: tuple[tensor, ...],
        block_shape: tuple[constexpr, ...],
        order: tuple[constexpr, ...],
    ) -> None:
        self.base = base
        self.shape, self.strides, self.offsets = shape, strides, offsets
        self.block_shape, self.order = block_shape, order

    def __repr__(self) -> str:
        return f"a block pointer to {list(self.extents)} of {self.element}"

    @property
    def element(self) -> tl.dtype:
        return self.base.dtype.element_ty

    @property
    def dtype(self) -> tl.dtype:
        """The type of `base`: its `element_ty` is the type of an element."""
        return self.base.dtype

    @property
    def type(self) -> tl.dtype:
        """The same as `dtype`."""
        return pointer_type(self.element, const=self.base.dtype.is_const())

    def parts(self) -> tuple[Any, ...]:
        return self.base, self.shape, self.strides, self.offsets

    @property
    def constants(self) -> tuple[Any, ...]:
        return self.extents, tuple(axis.value for axis in self.order)

    def with_parts(self, parts: Sequence[Any]) -> block_pointer:
        base, shape, strides, offsets = parts
        return block_pointer(base, shape, strides, offsets, self.block_shape, self.order)

    def _no_arithmetic(self, other: Any) -> NoReturn:
        raise CompilationError(
            f"{self} takes no part in arithmetic", help="move it with `p = tl.advance(p, offsets)`"
        )

    __add__ = __radd__ = __sub__ = _no_arithmetic

    @must_use_result(_ASSIGN)
    def advance(self, offsets: Any) -> block_pointer:
        """See `advance`."""
        return advance(self, offsets)


@builtin
def make_block_ptr(
    base: Any, shape: Any, strides: Any, offsets: Any, block_shape: Any, order: Any
) -> block_pointer:
    """A pointer to a block of an array.

    Args:
        base: the address of the array's element [0, ...].
        shape: the extents of the array, converted to int64.
        strides: elements from one index to the next along each axis, converted to int64.
        offsets: the index of the block's first element along each axis, 32-bit; negative ones are out of
            bounds.
        block_shape: the extents of the block, known at compile time.
        order: an order of the axes, the fastest first; it has no effect on the values.

    Example:
        p = tl.make_block_ptr(x_ptr, (n,), (1,), (0,), (8,), (0,))
        x = tl.load(p, boundary_check=(0,))
    """
    pointer = array_pointer(base, "make_block_ptr")
    ends = tuple(integer(n, tl.int64, "the shape of make_block_ptr") for n in listed(shape))
    steps = tuple(integer(n, tl.int64, "the strides of make_block_ptr") for n in listed(strides))
    starts = tuple(offset_of(n, "make_block_ptr") for n in listed(offsets))
    extents = static_extents(block_shape, "make_block_ptr")
    axes = [static_int(n, "an axis in the order of make_block_ptr") for n in listed(order)]
    lengths = [len(ends), len(steps), len(starts), len(extents)]
    if len(set(lengths)) != 1:
        raise CompilationError(
            "Expected shape, strides, offsets and block_shape of make_block_ptr to have the same length, got "
            f"{', '.join(map(str, lengths))}",
            help="give one value per axis of the array",
        )
    if sorted(axes) != list(range(len(extents))):
        raise CompilationError(
            f"Expected a permutation of {list(range(len(extents)))} as the order of make_block_ptr, "
            f"got {axes}",
            help="the fastest axis comes first, for instance (1, 0) for rows",
        )
    return block_pointer(pointer, ends, steps, starts, extents, tuple(map(constexpr, axes)))


@must_use_result(_ASSIGN)
@builtin
def advance(base: Any, offsets: Any) -> block_pointer:
    """The block pointer moved along each axis; the operand stays where it is.

    Args:
        base: a block pointer.
        offsets: by how many elements, 32-bit, one for each axis.

    Example:
        p = tl.make_block_ptr(x_ptr, (n,), (1,), (0,), (8,), (0,))
        p = tl.advance(p, (8,))
    """
    pointer = unwrap(base)
    if not isinstance(pointer, block_pointer):
        raise CompilationError(
            f"advance needs a block pointer, got {describe(base)}", help="`tl.make_block_ptr` makes one"
        )
    steps = [offset_of(n, "advance") for n in listed(offsets)]
    if len(steps) != len(pointer.offsets):
        raise CompilationError(
            f"advance got {len(steps)} offsets for a block pointer of rank {len(pointer.offsets)}",
            help="give one offset per axis",
        )
    moved = tuple(start + step for start, step in zip(pointer.offsets, steps, strict=True))
    return block_pointer(
        pointer.base, pointer.shape, pointer.strides, moved, pointer.block_shape, pointer.order
    )


# ---- what `load` and `store` do with one ----


def guarded_axes(pointer: block_pointer, boundary_check: Any) -> list[int]:
    """The axes that `boundary_check` names."""
    rank = len(pointer.offsets)
    axes = [static_int(axis, "an axis of boundary_check") for axis in listed(boundary_check)]
    for axis in axes:
        if not 0 <= axis < rank:
            raise CompilationError(
                f"boundary_check names axis {axis} of a block pointer of rank {rank}",
                help=f"an axis is from 0 to {rank - 1}",
            )
    if len(set(axes)) != len(axes):
        raise CompilationError(f"Duplicate dimension in `boundary_check`: {axes}")
    return axes


def lanes_of(pointer: block_pointer, boundary_check: Any) -> tuple[tensor, tensor | None]:
    """The block of pointers that a block pointer stands for, and the mask that guards it."""
    axes = guarded_axes(pointer, boundary_check)
    shape = pointer.extents
    pointers = addresses(pointer.base, pointer.strides, pointer.offsets, shape)
    mask = inside(indices_of(pointer.offsets, shape), pointer.shape, axes, shape) if axes else None
    return pointers, mask


def padding_of(pointer: block_pointer, option: Any) -> tensor | None:
    """What lanes outside of the array hold; None for 0."""
    plain = "" if unwrap(option) is None else option
    chosen = static_choice(plain, "padding_option", ("", "zero", "nan"))
    return padding_value(chosen, pointer.element)
