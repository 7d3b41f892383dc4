"""The memory spaces on an emulated chip, in this machine's memory: partitions at a pitch, banks, blocks.

    sbuf = bl.device("trn2").space("sbuf")
    sbuf.bytes[3, 256:320]                # bytes 256 to 319 of partition 3
    sbuf.address_of(3, 256)               # where they lie

Every address is `blocklang.abi.address_of` of a place (space, partition, offset). What lies where is the
placement's business (`blocklang.emulation.placement`), whose blocks `view` shows.
"""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from blocklang.abi import SpaceLayout, address_of
from blocklang.diagnostics import UsageError
from blocklang.ir.types import ScalarType, element_type, parse_type
from blocklang.runtime.arrays import numpy_dtype
from blocklang.target import Device, MemorySpace, format_size

if TYPE_CHECKING:
    from numpy.typing import NDArray


class PlacedBlock(Protocol):
    """A block with a place, as `blocklang.emulation.placement.Block` is.

    Attributes:
        name: for messages.
        type: shape and element in words, `<128x512xf32>`.
        space: the name of the space.
        offset: of its first version, in bytes of a partition.
        size: bytes of one version in each partition.
        versions: how many there are, one behind the other.
    """

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def space(self) -> str: ...
    @property
    def offset(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def versions(self) -> int: ...


class OnChipSpace:
    """A space on the chip. Its memory is zero at first and of no launch: it is yours to fill and to look at.

    Attributes:
        description: what the device says of it.
        layout: base, partitions and their pitch in this machine's memory.
        bytes: all of it, as (partitions, bytes of a partition); the gaps between partitions are left out.
    """

    def __init__(self, device: Device, space: MemorySpace) -> None:
        self.description = space
        partitions = 1 if space.partitions is None else space.partitions.value
        whole = space.capacity_bytes
        one = SpaceLayout(space.name, 0, partitions, whole // partitions)
        memory = mmap.mmap(-1, one.host_bytes)
        flat = np.frombuffer(memory, np.uint8)
        self.layout = one._replace(base=int(flat.__array_interface__["data"][0]))
        self.bytes: NDArray[np.uint8] = flat.reshape(partitions, one.pitch)[:, : one.partition_bytes]
        self._device = device

    def __repr__(self) -> str:
        layout = self.layout
        parts = f"{layout.partitions} x " if layout.partitions > 1 else ""
        return f"OnChipSpace({self._device.name} {layout.name}: {parts}{format_size(layout.partition_bytes)})"

    def address_of(self, partition: int, offset: int) -> int:
        """The host address of a place. Raises UsageError if the space has no such place."""
        return address_of(self.layout, partition, offset)

    def bank_of(self, offset: int) -> int | None:
        """The bank of an offset in a partition; None if the space has no banks.

        Banks of partitions follow one another (PSUM); those of a space that is one piece take turns, word by
        word (shared memory of a GPU). Raises UsageError if a partition has no such offset.
        """
        self.address_of(0, offset)
        banks, bank_bytes = self.description.banks, self.description.bank_bytes
        if banks is None or bank_bytes is None:
            return None
        if self.description.partitions is not None:
            return offset // bank_bytes
        word = self.description.access_bytes
        sm = self._device.multiprocessor
        if word is None and sm is not None:
            word = sm.bank_bytes
        return offset // bank_bytes if word is None else offset // word.value % banks.value

    def view(self, block: PlacedBlock, *, version: int = 0, dtype: Any = None) -> NDArray[Any]:
        """What the space holds for a block, not copied.

        Args:
            block: with a place in this space.
            version: which of its places.
            dtype: of the elements; the block's own by default.

        Returns:
            an array of (partitions, columns).

        Raises:
            UsageError: the block is in another space, has no such version, or does not fit.
        """
        if block.space != self.layout.name:
            raise UsageError(
                f"block {block.name!r} is in {block.space}, not in {self.layout.name}",
                help=f"ask that space: `dev.space({block.space!r})`",
            )
        if not 0 <= version < block.versions:
            raise UsageError(
                f"block {block.name!r} has no version {version}", help=f"it has {block.versions}, from 0 on"
            )
        start = block.offset + version * block.size
        if start < 0 or start + block.size > self.layout.partition_bytes:
            raise UsageError(
                f"block {block.name!r} ends at byte {start + block.size} of a partition of "
                f"{self.layout.name}, which has {self.layout.partition_bytes}",
                help="show blocks of a placement for this device: `place_blocks(kernel, dev.description)`",
            )
        element = _element_dtype(block) if dtype is None else np.dtype(dtype)
        columns = block.size // element.itemsize
        return self.bytes[:, start : start + columns * element.itemsize].view(element)


def _element_dtype(block: PlacedBlock) -> np.dtype[Any]:
    element = element_type(parse_type(f"block{block.type}"))
    return numpy_dtype(element) if isinstance(element, ScalarType) else np.dtype(np.uint64)
