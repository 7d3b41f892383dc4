"""Arrays in the memory of an emulated device.

Kernels take them without a copy. To the host they are closed, so that a program shows where a real device
would copy: there is no array interface, and `numpy.asarray` is refused; `numpy()`, `copy_from` and DLPack are
the ways.

An array and its views share one `Owner`, which holds the `Lease` of the memory until `free()`, the end of a
`with`, or the last of them is dropped.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from blocklang.diagnostics import DeviceMemoryError, LaunchError, Location, UsageError
from blocklang.runtime.arrays import Array, describe_array, element_type_of, is_array, view_of
from blocklang.runtime.device_heap import Overrun
from blocklang.runtime.leases import Lease, Piece, place_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from blocklang.runtime.device_memory import DeviceMemory


class Owner:
    """What an array and its views share: the device, the piece, and its lease until it is freed."""

    __slots__ = ("_held", "device", "piece")

    def __init__(self, device: DeviceMemory, lease: Lease) -> None:
        self.device = device
        self.piece: Piece = lease.piece
        self._held = [lease]

    @property
    def lease(self) -> Lease | None:
        held = tuple(self._held)
        return held[0] if held else None

    def let_go(self) -> Lease | None:
        """The lease, for the one thread that frees the array; None if it was freed."""
        try:
            return self._held.pop()
        except IndexError:
            return None


class DeviceArray:
    """An array in the global memory of an emulated device; `DeviceMemory.empty` and `to_device` make them.

    Attributes:
        shape: extents.
        dtype: NumPy's dtype of the elements.
        strides: bytes from one element to the next, per axis.

    Slices, `T` and `reshape` are views: they share the memory, and keep it alive.
    """

    __slots__ = ("__weakref__", "_offset", "_owner", "dtype", "shape", "strides")

    def __init__(
        self,
        owner: Owner,
        offset: int,
        dtype: np.dtype[Any],
        shape: tuple[int, ...],
        strides: tuple[int, ...],
    ) -> None:
        self._owner = owner
        self._offset = offset
        self.dtype = dtype
        self.shape = shape
        self.strides = strides

    @property
    def device(self) -> DeviceMemory:
        """The memory that it lies in."""
        return self._owner.device

    @property
    def name(self) -> str:
        """What messages call it: the name it was given, or the last kernel argument that it was."""
        return self._owner.piece.name

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the elements."""
        return self.size * self.dtype.itemsize

    @property
    def is_freed(self) -> bool:
        return self._owner.lease is None

    def __repr__(self) -> str:
        words = [self.device.name, f"{self.dtype}", f"shape={self.shape}"]
        if self.strides != contiguous_strides(self.shape, self.dtype):
            words.append(f"strides={self.strides}")
        words += [f"name={self.name!r}"] if self.name else []
        words += ["freed"] if self.is_freed else []
        return f"DeviceArray({', '.join(words)})"

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a device array of no axes has no length")
        return self.shape[0]

    # ---- to and from the host ----

    def numpy(self) -> NDArray[Any]:
        """A copy of the elements in a NumPy array, in C order.

        Raises:
            DeviceMemoryError: the array was freed.
        """
        return self._view("read").copy(order="C")

    def copy_from(self, host: Any) -> None:
        """Write the elements of another array, of the host or a device, over this one's.

        Raises:
            UsageError: the other is no array, or of another shape or dtype.
            DeviceMemoryError: one of the two was freed.
        """
        source = elements_of(host)
        if source.shape != self.shape or source.dtype != self.dtype:
            raise UsageError(
                f"cannot copy an array of {source.dtype} and shape {source.shape} to one of {self.dtype} and "
                f"shape {self.shape}",
                help="copy what has the same dtype and shape: convert it on the host, `x.astype(...)`, or "
                "write to a part, `array[:n].copy_from(x)`",
            )
        self._view("written")[...] = source

    def __setitem__(self, key: Any, value: Any) -> None:
        part = self[key]
        if is_array(value):
            part.copy_from(value)
        else:
            part._view("written")[...] = value

    def __array__(self, *args: Any, **kwargs: Any) -> NDArray[Any]:
        raise TypeError(
            f"this array lies in the memory of {self.device.name}: copy it to the host with `.numpy()`, or "
            "share the memory with `numpy.from_dlpack(x)`"
        )

    __array_ufunc__ = None  # NumPy's functions refuse it by name, and so does its arithmetic

    def __dlpack__(self, **options: Any) -> Any:
        """The memory itself, by DLPack's protocol; it stays allocated as long as the consumer uses it.

        Raises:
            BufferError: DLPack, as NumPy has it, does not know the dtype (bfloat16 and 8-bit floats).
        """
        try:
            return self._view("shared").__dlpack__(**options)
        except BufferError as reason:
            raise BufferError(
                f"DLPack cannot share an array of {self.dtype} ({reason}); copy it: `x.numpy()`"
            ) from None

    def __dlpack_device__(self) -> tuple[int, int]:
        """DLPack's CPU: an emulated device has its memory in this machine's."""
        return (1, 0)

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        from blocklang.runtime.device_memory import restore_array

        return restore_array, (self.device.origin, self.numpy(), self._owner.piece.name)

    # ---- views ----

    def __getitem__(self, key: Any) -> DeviceArray:
        """A view: integers, slices, None and ... are allowed, as in NumPy."""
        keys = key if isinstance(key, tuple) else (key,)
        for each in keys:
            is_index = isinstance(each, (int, np.integer)) and not isinstance(each, bool)
            if not (is_index or each is None or each is Ellipsis or isinstance(each, slice)):
                raise UsageError(
                    f"a device array is not indexed by {type(each).__name__}: that would be a copy",
                    help="use integers, slices, None and ..., or index on the host: `x.numpy()[...]`",
                )
        full = keys if any(each is Ellipsis for each in keys) else (*keys, ...)
        return self._same_memory(self._view("indexed")[full])

    @property
    def T(self) -> DeviceArray:
        """A view with the axes in reverse order."""
        return DeviceArray(self._owner, self._offset, self.dtype, self.shape[::-1], self.strides[::-1])

    def reshape(self, *shape: Any) -> DeviceArray:
        """A view of another shape.

        Raises:
            UsageError: the elements do not fit the shape, or do not lie so that a view is possible.
        """
        extents = shape[0] if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
        before = self._view("reshaped")
        try:
            after = before.reshape(tuple(extents))
        except (ValueError, TypeError) as reason:
            raise UsageError(f"cannot view shape {self.shape} as {tuple(extents)}: {reason}") from None
        if after.size and not np.may_share_memory(before, after):
            raise UsageError(
                f"an array of shape {self.shape} and strides {self.strides} has no view of shape "
                f"{tuple(extents)}",
                help="copy it: `dev.to_device(x.numpy().reshape(...))`",
            )
        return self._same_memory(after)

    def _same_memory(self, view: NDArray[Any]) -> DeviceArray:
        address = int(view.__array_interface__["data"][0])
        offset = address - self._lease("used").address if view.size else self._offset
        return DeviceArray(self._owner, offset, self.dtype, view.shape, view.strides)

    # ---- the memory ----

    def free(self) -> None:
        """Give the memory back: at once, or when the last launch or DLPack consumer is done with it.

        Raises:
            DeviceMemoryError: it was freed before, this is a part of it, or something wrote beside it (and
                it is freed all the same).
        """
        piece = self._owner.piece
        if self._is_view and not self.is_freed:
            raise DeviceMemoryError(
                f"a part of {piece} cannot be freed alone", help="free the array that it is a part of"
            )
        lease = self._owner.let_go()
        if lease is None:
            raise self._after_free("freed again", DeviceMemoryError)
        piece.freed = users_line()
        overruns = lease.heap.overruns(piece)
        del lease
        raise_overruns(overruns)

    @property
    def _is_view(self) -> bool:
        return self._offset != 0 or self.nbytes != self._owner.piece.bytes

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self.is_freed:
            self.free()

    def __blocklang_array__(self) -> Array:
        """What it is as a kernel's argument; the launch holds the memory until it has ended."""
        lease = self._lease("used in a launch", LaunchError)
        element = element_type_of(self.dtype)
        assert element is not None
        return Array(lease.address + self._offset, element, self.shape, self.strides, True, lease)

    def _lease(self, done: str, kind: type[DeviceMemoryError | LaunchError] = DeviceMemoryError) -> Lease:
        lease = self._owner.lease
        if lease is None:
            raise self._after_free(done, kind)
        return lease

    def _view(self, done: str) -> NDArray[Any]:
        """The elements where they lie; the view keeps the lease."""
        memory = np.asarray(self._lease(done))
        return np.ndarray(self.shape, self.dtype, memory, self._offset, self.strides)

    def _after_free(
        self, done: str, kind: type[DeviceMemoryError | LaunchError]
    ) -> DeviceMemoryError | LaunchError:
        piece = self._owner.piece
        freed = piece.freed
        where = "" if freed is None else f" at {place_of(freed)}"
        return kind(
            f"{piece} of {self.device.name} is {done}, but was freed{where}",
            location=None if kind is LaunchError else users_line(),
            help=f"it was allocated at {place_of(piece.made)}; free it after its last use, or drop it and "
            "let Python free it",
        )


def elements_of(host: Any) -> NDArray[Any]:
    """The elements of any array that a kernel takes, where they lie.

    Raises:
        UsageError: it is no such array.
        DeviceMemoryError: it is an array of a device and was freed.
    """
    if isinstance(host, DeviceArray):
        return host._view("copied")
    if not is_array(host):
        raise UsageError(
            f"a {type(host).__name__} is no array", help="make one: `numpy.asarray(x, numpy.float32)`"
        )
    try:
        return view_of(describe_array(host))
    except LaunchError as error:
        raise UsageError(error.message, help=error.help) from None


def raise_overruns(overruns: Sequence[Overrun]) -> None:
    """Raise what was written beside arrays as one error, if there is anything."""
    if not overruns:
        return
    lines = [str(each) for each in overruns]
    text = lines[0] if len(lines) == 1 else "".join(f"\n    {line}" for line in lines)
    error = DeviceMemoryError(
        f"memory of {overruns[0].device} was written outside of its arrays: {text}",
        help="a kernel leaves an array: is a mask missing, or wrong? A launch with `debug=True` names line, "
        "program and lane",
    )
    error.findings = tuple(overruns)
    raise error


def contiguous_strides(shape: Sequence[int], dtype: np.dtype[Any]) -> tuple[int, ...]:
    strides: list[int] = []
    step = dtype.itemsize
    for extent in reversed(shape):
        strides.insert(0, step)
        step *= max(extent, 1)
    return tuple(strides)


def users_line() -> Location:
    """The line of the program that called, directly or not, into blocklang."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == "blocklang":
        frame = frame.f_back
    return Location(frame.f_code.co_filename, frame.f_lineno)
