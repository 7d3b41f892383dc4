"""Native code as Python callables, and whether this interpreter's objects are laid out as that code believes.

Works on CPython with its lock, 64-bit; elsewhere `verified` says no, and launches stay in Python.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

METH_FASTCALL_KEYWORDS = 0x0080 | 0x0002


class _MethodDefinition(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("documentation", ctypes.c_char_p),
    ]


class NativeFunction:
    """A METH_FASTCALL | METH_KEYWORDS function in native code; it must outlive what `bind` makes."""

    def __init__(self, name: str, address: int) -> None:
        self._definition = _MethodDefinition(name.encode(), address, METH_FASTCALL_KEYWORDS, None)
        self._new = ctypes.pythonapi.PyCFunction_NewEx
        self._new.restype = ctypes.py_object
        self._new.argtypes = [ctypes.POINTER(_MethodDefinition), ctypes.py_object, ctypes.c_void_p]

    def bind(self, self_object: object) -> Callable[..., Any]:
        """A callable that passes `self_object` to the native code as its first argument."""
        bound: Callable[..., Any] = self._new(ctypes.byref(self._definition), self_object, None)
        return bound


def is_supported_interpreter() -> bool:
    """True on CPython with a global lock and 8-byte pointers, without debugging fields in objects."""
    has_lock = getattr(sys, "_is_gil_enabled", lambda: True)()
    return (
        sys.implementation.name == "cpython"
        and has_lock
        and ctypes.sizeof(ctypes.c_void_p) == 8
        and object.__basicsize__ == 16
        and sys.byteorder == "little"
    )


def array_layout_holds(
    *, object_type: int, data: int, rank: int, shape: int, strides: int, dtype: int, flags: int
) -> bool:
    """True if NumPy's arrays have these fields at these byte offsets; looked up in live arrays."""
    whole = np.zeros((3, 5, 7), np.float32)
    part = whole[::-1, 1:4, ::2]
    part.flags.writeable = False
    return all(
        _pointer(id(array) + object_type) == id(np.ndarray)
        and _pointer(id(array) + data) == array.__array_interface__["data"][0]
        and ctypes.c_int.from_address(id(array) + rank).value == array.ndim
        and _integers(_pointer(id(array) + shape), array.ndim) == array.shape
        and _integers(_pointer(id(array) + strides), array.ndim) == array.strides
        and _pointer(id(array) + dtype) == id(array.dtype)
        and ctypes.c_int.from_address(id(array) + flags).value == array.flags.num
        for array in (whole, part)
    )


def _pointer(address: int) -> int:
    return ctypes.c_void_p.from_address(address).value or 0


def _integers(address: int, count: int) -> tuple[int, ...]:
    return tuple((ctypes.c_int64 * count).from_address(address))
