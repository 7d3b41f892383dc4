"""Tensor descriptors: an array with its extents and strides, read and written block by block.

A kernel makes one with `make_tensor_descriptor`, or is given one as an argument. Indices outside of the array
read as the padding, and are not written, along every axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from blocklang.diagnostics import CompilationError
from blocklang.language import dtypes as tl
from blocklang.language.atomics import check_atomic
from blocklang.language.broadcasting import spread
from blocklang.language.casting import cast_element
from blocklang.language.constexpr import constexpr, describe, is_one, static_choice, unwrap
from blocklang.language.dtypes import block_type, tensor_descriptor_type
from blocklang.language.memory import write_block
from blocklang.language.registry import builtin
from blocklang.language.shape import block_shape as shape_of_block
from blocklang.language.tensor import constant, emit, tensor, to_tensor
from blocklang.language.windows import (
    Window,
    addresses,
    along,
    array_pointer,
    indices_of,
    inside,
    integer,
    listed,
    offset_of,
    padding_value,
    static_extents,
    wide,
)
from blocklang.ops.atomics import AtomicRmw
from blocklang.ops.memory import Load

MAXIMUM_RANK = 5
MINIMUM_ROW_BYTES = 16
PADDINGS = ("zero", "nan")


class tensor_descriptor(Window):
    """What `make_tensor_descriptor` gives, and what a `TensorDescriptor` is in a kernel.

    Attributes:
        base: the address of the array.
        shape: its extents, int32.
        strides: its strides in elements, int64; the last one is 1.
        block_shape: the extents of a block.
        padding: what indices outside of the array read as, 'zero' or 'nan'.
    """

    def __init__(
        self,
        base: tensor,
        shape: tuple[tensor, ...],
        strides: tuple[tensor, ...],
        block_shape: tuple[constexpr, ...],
        padding: str,
    ) -> None:
        self.base, self.shape, self.strides = base, shape, strides
        self.block_shape, self.padding = block_shape, padding

    def __repr__(self) -> str:
        return f"a tensor descriptor of {list(self.extents)} of {self.dtype}"

    @property
    def block_type(self) -> block_type:
        """The type of a block."""
        return block_type(self.dtype, self.extents)

    @property
    def type(self) -> tensor_descriptor_type:
        """Its type, which knows that of a block."""
        return tensor_descriptor_type(self.block_type)

    def parts(self) -> tuple[Any, ...]:
        return self.base, self.shape, self.strides

    @property
    def constants(self) -> tuple[Any, ...]:
        return self.extents, self.padding

    def with_parts(self, parts: Sequence[Any]) -> tensor_descriptor:
        base, shape, strides = parts
        return tensor_descriptor(base, shape, strides, self.block_shape, self.padding)

    # ---- blocks ----

    def load(self, offsets: Any) -> tensor:
        """The block that starts at an index.

        Args:
            offsets: the index of its first element along each axis, 32-bit.
        """
        pointers, mask = self._lanes(_starts(offsets, len(self.extents), "load"))
        return emit(Load, pointers, mask=mask, other=padding_value(self.padding, self.dtype))

    def store(self, offsets: Any, value: Any) -> None:
        """Write the block that starts at an index.

        Args:
            offsets: the index of its first element along each axis, 32-bit.
            value: a block of the descriptor's block shape, cast to the element type.
        """
        stored = self._cast(value)
        if shape_of_block(stored) != self.extents:
            raise CompilationError(
                f"cannot store {stored.value.type} through {self}",
                help="the shapes must be equal; reshape or broadcast the value",
            )
        pointers, mask = self._lanes(_starts(offsets, len(self.extents), "store"))
        write_block(pointers, stored, mask)

    def _lanes(self, starts: list[tensor]) -> tuple[tensor, tensor | None]:
        shape = self.extents
        pointers = addresses(self.base, self.strides, starts, shape)
        return pointers, inside(indices_of(starts, shape), self.shape, range(len(shape)), shape)

    def _cast(self, value: Any) -> tensor:
        if self.base.dtype.is_const():
            raise CompilationError(
                "cannot store through a const pointer", help="annotate the parameter without `tl.const`"
            )
        return cast_element(to_tensor(value), self.dtype)

    # ---- rows ----

    def gather(self, x_offsets: Any, y_offset: Any) -> tensor:
        """Rows of a matrix: row k of the result is row `x_offsets[k]`, from column `y_offset` on.

        Args:
            x_offsets: a block of rank 1 of row indices, 32-bit.
            y_offset: the first column, a scalar.

        Returns:
            A block of as many rows as there are offsets, and of the descriptor's columns.
        """
        pointers, mask = self._rows(x_offsets, y_offset, "gather")
        return emit(Load, pointers, mask=mask, other=padding_value(self.padding, self.dtype))

    def scatter(self, value: Any, x_offsets: Any, y_offset: Any) -> None:
        """Write rows of a matrix: row k of the value goes to row `x_offsets[k]`, from column `y_offset` on.

        Args:
            value: a block of as many rows as there are offsets, cast to the element type. Of rows that go to
                one place, the last one stays.
            x_offsets: a block of rank 1 of row indices, 32-bit.
            y_offset: the first column, a scalar.
        """
        pointers, mask = self._rows(x_offsets, y_offset, "scatter")
        stored = self._cast(value)
        if shape_of_block(stored) != shape_of_block(pointers):
            raise CompilationError(
                f"cannot scatter {stored.value.type} to {list(shape_of_block(pointers))}",
                help="the value has a row for each offset, and the descriptor's columns",
            )
        write_block(pointers, stored, mask)

    def _rows(self, x_offsets: Any, y_offset: Any, what: str) -> tuple[tensor, tensor | None]:
        if len(self.extents) != 2 or self.extents[0] != 1:
            raise CompilationError(
                f"{what} needs a descriptor of rank 2 whose block has 1 row, got {self}",
                help="make it with `block_shape=[1, columns]`",
            )
        rows = unwrap(x_offsets)
        if not isinstance(rows, tensor) or len(shape_of_block(rows)) != 1 or not rows.dtype.is_int():
            raise CompilationError(
                f"the x offsets of {what} must be a block of integers of rank 1, got {describe(x_offsets)}"
            )
        if rows.dtype.int_bitwidth == 64:
            raise CompilationError(
                f"{what} only supports 32-bit offsets, got {describe(rows)}", help="add a `.to(tl.int32)`"
            )
        column = offset_of(y_offset, what)
        shape = (*shape_of_block(rows), self.extents[1])
        start = along(wide(cast_element(rows, tl.int32)), 0, 2)
        row = addresses(self.base, self.strides[1:], [column], shape[1:])
        pointers = along(row, 1, 2) + start * self.strides[0]
        columns = along(indices_of([column], shape[1:])[0], 1, 2)
        return spread(pointers, shape), inside([start, columns], self.shape, (0, 1), shape)

    # ---- atomic operations ----

    def atomic_add(self, offsets: Any, value: Any) -> None:
        """Add a block to the elements that start at an index.

        Lanes outside of the array are left out. Nothing is returned; lanes, types and rounding are those of
        `tl.atomic_add`.

        Args:
            offsets: the index of the first element along each axis, 32-bit.
            value: a block of the descriptor's block shape, cast to the element type: integers of 32
                or 64 bits, fp16, bf16, fp32 or fp64.
        """
        self._change("add", offsets, value)

    def atomic_min(self, offsets: Any, value: Any) -> None:
        """Replace the elements that start at an index by the smaller of them and the block's.

        Lanes outside of the array are left out. Nothing is returned; lanes, types and rounding are those of
        `tl.atomic_min`.

        Args:
            offsets: the index of the first element along each axis, 32-bit.
            value: a block of the descriptor's block shape, cast to the element type: integers of 32
                or 64 bits, fp32 or fp64.
        """
        self._change("min", offsets, value)

    def atomic_max(self, offsets: Any, value: Any) -> None:
        """Replace the elements that start at an index by the larger of them and the block's.

        Lanes outside of the array are left out. Nothing is returned; lanes, types and rounding are those of
        `tl.atomic_max`.

        Args:
            offsets: the index of the first element along each axis, 32-bit.
            value: a block of the descriptor's block shape, cast to the element type: integers of 32
                or 64 bits, fp32 or fp64.
        """
        self._change("max", offsets, value)

    def atomic_and(self, offsets: Any, value: Any) -> None:
        """Combine the elements that start at an index with a block by `&`.

        Lanes outside of the array are left out. Nothing is returned; lanes, types and rounding are those of
        `tl.atomic_and`.

        Args:
            offsets: the index of the first element along each axis, 32-bit.
            value: a block of the descriptor's block shape, cast to the element type: integers of 32
                or 64 bits.
        """
        self._change("and", offsets, value)

    def atomic_or(self, offsets: Any, value: Any) -> None:
        """Combine the elements that start at an index with a block by `|`.

        Lanes outside of the array are left out. Nothing is returned; lanes, types and rounding are those of
        `tl.atomic_or`.

        Args:
            offsets: the index of the first element along each axis, 32-bit.
            value: a block of the descriptor's block shape, cast to the element type: integers of 32
                or 64 bits.
        """
        self._change("or", offsets, value)

    def atomic_xor(self, offsets: Any, value: Any) -> None:
        """Combine the elements that start at an index with a block by `^`.

        Lanes outside of the array are left out. Nothing is returned; lanes, types and rounding are those of
        `tl.atomic_xor`.

        Args:
            offsets: the index of the first element along each axis, 32-bit.
            value: a block of the descriptor's block shape, cast to the element type: integers of 32
                or 64 bits.
        """
        self._change("xor", offsets, value)

    def _change(self, kind: str, offsets: Any, value: Any) -> None:
        what = f"atomic_{kind}"
        starts = _starts(offsets, len(self.extents), what)
        check_atomic(what, self.base)
        changed = cast_element(to_tensor(value), self.dtype)
        if shape_of_block(changed) != self.extents:
            raise CompilationError(
                f"{what} cannot combine {changed.value.type} with blocks of {self}",
                help="the shapes must be equal; reshape or broadcast the value",
            )
        pointers, mask = self._lanes(starts)
        emit(AtomicRmw, pointers, changed, mask=mask, kind=kind)


def _starts(offsets: Any, rank: int, what: str) -> list[tensor]:
    starts = [offset_of(n, f"{what} of a tensor descriptor") for n in listed(offsets)]
    if len(starts) != rank:
        raise CompilationError(
            f"{what} got {len(starts)} offsets for a tensor descriptor of rank {rank}",
            help="give one offset per axis",
        )
    return starts


@builtin
def make_tensor_descriptor(
    base: Any, shape: Any, strides: Any, block_shape: Any, padding_option: Any = "zero"
) -> tensor_descriptor:
    """Describe an array, to be read and written block by block.

    Args:
        base: the address of the array's element [0, ...].
        shape: the extents of the array, one to five, converted to int32.
        strides: elements from one index to the next along each axis, converted to int64; the last one is the
            constant 1.
        block_shape: the extents of a block, known at compile time; the last one takes 16 bytes or more.
        padding_option: what indices outside of the array read as, 'zero' or, of floats, 'nan'.

    Example:
        d = tl.make_tensor_descriptor(x_ptr, [n], [1], [8])
        d.store([0], d.load([0]) + 1)
    """
    pointer = array_pointer(base, "make_tensor_descriptor")
    extents = static_extents(block_shape, "make_tensor_descriptor")
    ends, steps = listed(shape), listed(strides)
    rank = len(ends)
    check_form(rank, len(steps), extents, pointer.dtype.element_ty)
    if not is_one(steps[-1]):
        raise CompilationError(
            f"Tensor descriptor last dim must be 1 but got {describe(steps[-1])}",
            help="the last stride is the literal 1, or an argument of value 1; or use pointers",
        )
    plain = "zero" if unwrap(padding_option) is None else padding_option
    padding = static_choice(plain, "padding_option", PADDINGS)
    padding_value(padding, pointer.dtype.element_ty)
    return tensor_descriptor(
        pointer,
        tuple(integer(n, tl.int32, "the shape of make_tensor_descriptor") for n in ends),
        (
            *(integer(n, tl.int64, "the strides of make_tensor_descriptor") for n in steps[:-1]),
            constant(1, tl.int64),
        ),
        extents,
        padding,
    )


@dataclass(frozen=True)
class DescribedArgument:
    """Makes the descriptor that a kernel is given from its base, extents, and strides but the last.

    It stands where the class of a namedtuple argument stands.
    """

    block_shape: tuple[int, ...]
    padding: str
    _fields: ClassVar = ("base", "shape", "strides")

    def __call__(self, base: tensor, shape: Any, strides: Any) -> tensor_descriptor:
        steps = (*strides, constant(1, tl.int64))
        extents = tuple(map(constexpr, self.block_shape))
        return tensor_descriptor(base, tuple(shape), steps, extents, self.padding)


def check_form(rank: int, strides: int, extents: tuple[constexpr, ...], element: tl.dtype) -> None:
    """Refuse a descriptor that no kernel can have."""
    if not 1 <= rank <= MAXIMUM_RANK:
        raise CompilationError(
            f"Expected 1 <= ndim <= {MAXIMUM_RANK} but got {rank} dimensions",
            help="describe several axes as one, or use pointers",
        )
    if strides != rank:
        raise CompilationError(f"Expected {rank} strides but got {strides}", help="give one per axis")
    if len(extents) != rank:
        raise CompilationError(
            f"Expected block_shape to have {rank} dimensions but got {len(extents)}", help="give one per axis"
        )
    size = max(element.primitive_bitwidth // 8, 1)
    row = extents[-1].value * size
    if row < MINIMUM_ROW_BYTES:
        raise CompilationError(
            f"Descriptor block shape must have at least {MINIMUM_ROW_BYTES} bytes in the last dimension, "
            f"but got {extents[-1].value} * {size} = {row} bytes",
            help="make the last extent larger, or use pointers",
        )


def _descriptor(value: Any, what: str) -> tensor_descriptor:
    plain = unwrap(value)
    if isinstance(plain, tensor_descriptor):
        return plain
    raise CompilationError(
        f"{what} needs a tensor descriptor, got {describe(value)}",
        help="`tl.make_tensor_descriptor` makes one",
    )


@builtin
def load_tensor_descriptor(desc: Any, offsets: Any) -> tensor:
    """The same as `desc.load(offsets)`.

    Example:
        d = tl.make_tensor_descriptor(x_ptr, [n], [1], [8])
        x = tl.load_tensor_descriptor(d, [0])
    """
    return _descriptor(desc, "load_tensor_descriptor").load(offsets)


@builtin
def store_tensor_descriptor(desc: Any, offsets: Any, value: Any) -> None:
    """The same as `desc.store(offsets, value)`.

    Example:
        d = tl.make_tensor_descriptor(x_ptr, [n], [1], [8])
        tl.store_tensor_descriptor(d, [0], tl.zeros([8], tl.float32))
    """
    _descriptor(desc, "store_tensor_descriptor").store(offsets, value)
