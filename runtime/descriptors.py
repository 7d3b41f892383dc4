"""`TensorDescriptor`: an array with its shape, strides and a block shape, as one argument of a kernel.

In the kernel it is what `tl.make_tensor_descriptor` gives: `desc.load(offsets)` reads a block of
`block_shape`, with `padding` outside of the array, and `desc.store(offsets, value)` writes one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from blocklang.diagnostics import LaunchError
from blocklang.runtime.arrays import Array, describe_array, is_array, strides

MAXIMUM_RANK = 5
MINIMUM_ROW_BYTES = 16
LARGEST_EXTENT = 2**31 - 1


@dataclass
class TensorDescriptor:
    """An array argument that a kernel reads and writes block by block.

    What it says is looked at when a kernel is launched; until then it may change.

    Args:
        base: the array; its element [0, ...] is where the descriptor starts.
        shape: its extents, one to five.
        strides: elements from one index to the next along each axis; the last one is 1.
        block_shape: the extents of a block; the last one takes 16 bytes or more.
        padding: what indices outside of the array read as, 'zero' or, of floats, 'nan'.

    Example:
        >>> import numpy as np
        >>> import blocklang as bl
        >>> @bl.jit
        ... def double(x):
        ...     start = bl.language.program_id(0) * 4
        ...     x.store([start, 0], 2 * x.load([start, 0]))
        >>> x = np.ones((5, 3), np.float32)
        >>> _ = double[(2,)](bl.TensorDescriptor.from_tensor(x, [4, 4]))
        >>> float(x.sum())
        30.0
    """

    base: Any
    shape: Sequence[int]
    strides: Sequence[int]
    block_shape: Sequence[int]
    padding: str = "zero"

    def __post_init__(self) -> None:
        describe_descriptor(self, is_final=False)

    @staticmethod
    def from_tensor(tensor: Any, block_shape: Sequence[int], padding: str = "zero") -> TensorDescriptor:
        """The descriptor of a whole array."""
        return TensorDescriptor(tensor, list(tensor.shape), list(strides(tensor)), list(block_shape), padding)


@dataclass(slots=True)
class Descriptor:
    """A descriptor at one launch: its array, and the run-time numbers of the kernel's argument."""

    array: Array
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    block_shape: tuple[int, ...]
    padding: str

    @property
    def numbers(self) -> tuple[int, ...]:
        """The shape, and the strides but the last one, which is 1."""
        return (*self.shape, *self.strides[:-1])


def describe_descriptor(descriptor: TensorDescriptor, *, is_final: bool = True) -> Descriptor:
    """What a descriptor says now.

    Args:
        is_final: the block shape is what a kernel gets, no placeholder such as [1, 1] that the hook of a
            tuned kernel replaces.

    Raises:
        LaunchError: no kernel can have it.
    """
    if not is_array(descriptor.base):
        raise LaunchError(
            f"the base of a TensorDescriptor is an array, not a {type(descriptor.base).__name__}"
        )
    array = describe_array(descriptor.base)
    shape, steps, block = (
        tuple(int(n) for n in numbers)
        for numbers in (descriptor.shape, descriptor.strides, descriptor.block_shape)
    )
    rank = len(shape)
    if not 1 <= rank <= MAXIMUM_RANK:
        raise LaunchError(
            f"a TensorDescriptor has 1 to {MAXIMUM_RANK} axes, not {rank}",
            help="describe several axes as one, or pass the array",
        )
    if len(steps) != rank or len(block) != rank:
        raise LaunchError(
            f"a TensorDescriptor of {rank} axes has {len(steps)} strides and {len(block)} block extents",
            help="give one per axis",
        )
    if steps[-1] != 1:
        raise LaunchError(
            f"the last stride of a TensorDescriptor is 1, not {steps[-1]}",
            help="the last axis must be contiguous: permute the axes, or pass the array with its strides",
        )
    if any(n < 1 for n in block) or any(not 0 <= n <= LARGEST_EXTENT for n in shape):
        raise LaunchError(
            f"a TensorDescriptor of shape {list(shape)} with blocks of {list(block)} has no meaning",
            help="block extents are 1 or more, and extents fit into 32 bits",
        )
    if is_final and block[-1] * array.element.bytes < MINIMUM_ROW_BYTES:
        raise LaunchError(
            f"the last block extent of a TensorDescriptor takes at least {MINIMUM_ROW_BYTES} bytes, not "
            f"{block[-1]} * {array.element.bytes}",
            help="make it larger, or pass the array",
        )
    if descriptor.padding not in ("zero", "nan"):
        raise LaunchError(f"the padding of a TensorDescriptor is 'zero' or 'nan', not {descriptor.padding!r}")
    if descriptor.padding == "nan" and not array.element.is_float:
        raise LaunchError(f"the padding 'nan' has no meaning for {array.element}", help="use 'zero'")
    return Descriptor(array, shape, steps, block, descriptor.padding)
