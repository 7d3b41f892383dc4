"""The memory of an emulated device: `bl.device`.

    dev = bl.device("trn2")
    x = dev.to_device(host)                     # a copy in the device's global memory
    out = dev.empty(x.shape, x.dtype)
    kernel[grid](x, out, n)
    out.numpy()                                 # a copy on the host

Arrays lie in the global space (`device_heap`); the spaces on the chip are `device_spaces`. Not here: what a
kernel has in them (`blocklang.emulation.placement`) and what a launch costs.

There is one memory for each device of a process, as there is one chip. It is made on first use.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from typing import Any

from blocklang.diagnostics import LaunchError, UsageError
from blocklang.runtime.arrays import dtype_named
from blocklang.runtime.device_arrays import (
    DeviceArray,
    Owner,
    contiguous_strides,
    elements_of,
    raise_overruns,
    users_line,
)
from blocklang.runtime.device_heap import Heap, MemoryUse, Overrun, hold_while_forking
from blocklang.runtime.device_spaces import OnChipSpace
from blocklang.target import Device, device_given


class DeviceMemory:
    """The memory of one device; `bl.device` finds it.

    Attributes:
        description: the device's figures.
        name: of the device.
        origin: what finds the device again in another process: its name, or the description if it has a file.

    Threads may use it at once. A process that is forked has a copy of it.
    """

    def __init__(self, description: Device, origin: Device | str) -> None:
        self.description = description
        self.name = description.name
        self.origin = origin
        self._heap: Heap | None = None
        self._spaces: dict[str, OnChipSpace] = {}

    def __repr__(self) -> str:
        return f"DeviceMemory({self.name})"

    # ---- arrays ----

    def empty(self, shape: int | Sequence[int], dtype: Any, *, name: str = "") -> DeviceArray:
        """A new array in C order; what it holds is not defined.

        Args:
            shape: extents, at least 0; one may be given as an integer.
            dtype: NumPy's, PyTorch's or the language's, or a name such as "bf16".
            name: what messages call it.

        Raises:
            UsageError: the shape or the dtype has no meaning.
            OutOfDeviceMemory: there is no room for it.
        """
        try:
            kind = dtype_named(dtype)
        except LaunchError as error:
            raise UsageError(error.message, help=error.help) from None
        extents = _extents(shape)
        strides = contiguous_strides(extents, kind)
        size = kind.itemsize
        for extent in extents:
            size *= extent
        words = f"{kind} of shape {extents}"
        lease = self._global().lease(size, words, kind.itemsize, name, users_line())
        return DeviceArray(Owner(self, lease), 0, kind, extents, strides)

    def to_device(self, host: Any, *, name: str = "") -> DeviceArray:
        """A copy, in C order, of an array of the host or of any device.

        Args:
            host: what a kernel takes: a NumPy array, a PyTorch CPU tensor, anything with DLPack or the array
                interface.
            name: what messages call it.

        Raises:
            UsageError: it is no such array.
            OutOfDeviceMemory: there is no room for it.
        """
        source = elements_of(host)
        copy = self.empty(source.shape, source.dtype, name=name)
        copy.copy_from(host)
        return copy

    def memory(self) -> MemoryUse:
        """How full the global memory is."""
        return self._global().use()

    def overruns(self) -> list[Overrun]:
        """What was written beside arrays since this was last asked, also beside those dropped since."""
        return [] if self._heap is None else self._heap.overruns()

    def check(self) -> None:
        """Look whether anything was written beside an array.

        Raises:
            DeviceMemoryError: it was; each array is named, with the side and the offset. Its `findings` are
                the same as data. What was said once is not said again.
        """
        raise_overruns(self.overruns())

    def _global(self) -> Heap:
        with _lock:
            if self._heap is None:
                self._heap = Heap(self.description)
            return self._heap

    # ---- the chip ----

    def space(self, name: str) -> OnChipSpace:
        """A space on the chip, by its name or alias: `sbuf`, `psum`, `scratch`, `accumulator`.

        Raises:
            UsageError: the device has no such space on the chip; the help lists those it has.
        """
        names = self.description.on_chip
        known = self.description.memory.get(name)
        if known is None or known.name not in names:
            aliases = [each for n in names for each in (n, *self.description.memory[n].aliases)]
            raise UsageError(
                f"{self.name} has no space {name!r} on the chip",
                help=f"it has {', '.join(aliases) or 'none'}; arrays lie in the global space: `dev.empty`",
            )
        with _lock:
            if known.name not in self._spaces:
                self._spaces[known.name] = OnChipSpace(self.description, known)
            return self._spaces[known.name]


def _extents(shape: int | Sequence[int]) -> tuple[int, ...]:
    try:
        given = shape if isinstance(shape, Sequence) else (shape,)
        extents = tuple(extent.__index__() for extent in given)
    except AttributeError:
        extents = (-1,)
    if any(extent < 0 for extent in extents):
        raise UsageError(
            f"{shape!r} is no shape", help="a shape is a tuple of integers that are at least 0: (128, 512)"
        )
    return extents


_memories: list[DeviceMemory] = []
_lock = threading.Lock()  # for what is made on first use
hold_while_forking(_lock)


def device(device: Device | str | os.PathLike[str]) -> DeviceMemory:
    """The memory of an emulated device, for arrays that kernels take as they lie there.

        dev = bl.device("trn2")
        x = dev.to_device(np.arange(8, dtype=np.float32))
        double[(1,)](x)
        x.numpy()

    Args:
        device: a name, the path of a description file, or a description.

    Raises:
        UsageError: there is no such device.
    """
    found = device_given(device)
    with _lock:
        for memory in _memories:
            if memory.name == found.name and memory.description == found:
                return memory
        is_name = isinstance(device, str) and not device.endswith(".toml")
        memory = DeviceMemory(found, str(device) if is_name else found)
        _memories.append(memory)
        return memory


def check_memory_of(name: str) -> None:
    """`DeviceMemory.check` for every memory of a device of that name.

    Raises:
        DeviceMemoryError: something was written beside an array.
    """
    with _lock:
        memories = [memory for memory in _memories if memory.name == name]
    raise_overruns([overrun for memory in memories for overrun in memory.overruns()])


def restore_array(origin: Device | str, contents: Any, name: str) -> DeviceArray:
    """An array that was pickled, in the memory of the same device of this process."""
    return device(origin).to_device(contents, name=name)
