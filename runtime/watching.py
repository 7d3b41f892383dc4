"""Arrays whose elements count as unwritten until the host or a kernel writes them.

Such an array is filled with a pattern. What differs from it before a checked launch has been written since,
whoever did it; inside of a launch, flags say what its programs have written. An element that is given exactly
the pattern's bits counts as unwritten, unless it lies between others that were written at the same time and
has no more than two bytes.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from blocklang.diagnostics import LaunchError
from blocklang.runtime.arrays import Array, describe_array

# Read as floats, these bytes are NaN.
_PATTERNS = {1: b"\xb1", 2: b"\xb1\x7e", 4: b"\x0c\xb1\xe5\x7f", 8: b"\x0c\xb1\x0c\xb1\x0c\xb1\xf5\x7f"}
_SMALL = 2  # bytes of an element which may well be given the pattern's bits


class Watched:
    """One watched array.

    Attributes:
        address, size: where it begins, and bytes of an element.
        flags: per element, True until it is written.
    """

    def __init__(self, array: Array) -> None:
        self.address, self.size = array.address, array.element.bytes
        self.end = array.byte_range()[1]
        count = (self.end - self.address) // self.size
        self.flags = np.ones(count, np.bool_)
        self._pattern = np.frombuffer(_PATTERNS[self.size], f"u{self.size}")[0]
        self._elements()[...] = self._pattern

    def _elements(self) -> NDArray[Any]:
        memory = (ctypes.c_ubyte * (self.end - self.address)).from_address(self.address)
        return np.ctypeslib.as_array(memory).view(f"u{self.size}")

    def refresh(self) -> None:
        """Learn what has been written since."""
        if not self.flags.any():
            return
        changed = (self._elements() != self._pattern) & self.flags
        if self.size <= _SMALL and changed.any():
            places = np.flatnonzero(changed)
            self.flags[places[0] : places[-1] + 1] = False
        self.flags[changed] = False

    def holds(self, array: Array) -> bool:
        """True if an array lies in this one, element upon element."""
        low, high = array.byte_range()
        fits = array.element.bytes == self.size and (low - self.address) % self.size == 0
        return fits and self.address <= low and high <= self.end

    def flag_address(self, array: Array) -> int:
        """Where the flag of the element lies at which an array in this one starts."""
        return int(self.flags.ctypes.data) + (array.address - self.address) // self.size


_lock = threading.Lock()
_watched: dict[int, Watched] = {}


def watch(array: Any) -> None:
    """Fill a contiguous array with the pattern, and watch it as long as it lives."""
    one = Watched(describe_array(array))
    with _lock:
        _watched[id(one)] = one
    weakref.finalize(array, _watched.pop, id(one), None)


def uninitialised(shape: int | tuple[int, ...], dtype: DTypeLike = np.float32) -> NDArray[Any]:
    """An array whose elements count as unwritten until the host or a kernel writes them.

    Args:
        shape: its extents.
        dtype: one that a kernel takes.

    Raises:
        LaunchError: elements of this dtype have no meaning in a kernel.

    In launches under `blocklang check` a load of an unwritten element is a finding; elsewhere it is an array
    whose
    elements hold a pattern, a NaN for floats. A tensor over its memory (`torch.from_numpy`) is watched as
    well.

    Example:
        >>> import blocklang as bl
        >>> bl.testing.uninitialised((2, 3)).shape
        (2, 3)
    """
    array = np.empty(shape, dtype)
    if array.size:
        watch(array)
    return array


def watched_behind(array: Array) -> Watched | None:
    """The watched array that an argument lies in; None if there is none, or its elements lie otherwise."""
    with _lock:
        known = list(_watched.values())
    return next((one for one in known if one.holds(array)), None)


@contextmanager
def watch_empty() -> Iterator[None]:
    """Watch every array that `numpy.empty`, `numpy.empty_like` and `torch.empty` make while the context
    lasts.

    Only calls by these names are seen, and only arrays that are contiguous, in this machine's memory, and of
    a type that kernels take. PyTorch must have been imported before.
    """
    modules: list[tuple[Any, str]] = [(np, "empty"), (np, "empty_like")]
    if "torch" in sys.modules:
        modules += [(sys.modules["torch"], "empty"), (sys.modules["torch"], "empty_like")]
    saved = [(module, name, getattr(module, name)) for module, name in modules]
    for module, name, make in saved:
        setattr(module, name, _watching(make))
    try:
        yield
    finally:
        for module, name, make in saved:
            setattr(module, name, make)


def _watching(make: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(make)
    def watched(*args: Any, **kwargs: Any) -> Any:
        made = make(*args, **kwargs)
        if _can_be_watched(made):
            watch(made)
        return made

    return watched


def _can_be_watched(made: Any) -> bool:
    try:
        low, high = describe_array(made).byte_range()
    except LaunchError:
        return False
    is_flat = made.flags.c_contiguous if isinstance(made, np.ndarray) else made.is_contiguous()
    return bool(is_flat) and high > low
