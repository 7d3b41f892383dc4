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


def tensor_fields(tensor: Any, layout: Any) -> dict[str, int]:
    """The fields of a PyTorch tensor that `codegen.launcher.TensorLayout` names, read from memory.

    Raises:
        ValueError: there is no address where one should be.
    """
    body = _pointer(id(tensor) + layout.implementation)
    storage = _pointer(body + layout.storage) if _may_be_address(body) else 1
    if not (_may_be_address(body) and (_may_be_address(storage) or storage == 0)):
        raise ValueError("a tensor of this release of PyTorch is laid out in another way")
    word = _word(body + layout.dtype_and_device)
    return {
        "rank": _word(body + layout.rank),
        "offset": _word(body + layout.offset),
        "elements": word & layout.dtype_and_device_mask,
        "kind": _word(body + layout.kind),
        "data": _word(storage + layout.storage_data) if storage else 0,
        "shared": _word(storage + layout.storage_flags) & layout.storage_flags_mask if storage else 1,
        "shape": body + layout.shape,
        "strides": body + layout.strides,
    }


def tensor_layout_holds(torch: Any, layout: Any) -> bool:
    """True if PyTorch's tensors have these fields; looked up in live tensors of many kinds.

    What must not be taken for a plain tensor has to differ in a field that is compared: another dtype or
    device, a negated view, memory that is copied when it is written.
    """
    whole = torch.zeros((3, 5, 7, 2), dtype=torch.float32)
    part = whole[1:, 1:4, ::2]
    plain = [
        whole,
        part,
        part.transpose(0, 2),
        whole[0, 0, 0, 0],
        torch.zeros(0, 3),
        torch.zeros(1, 2, 3, 4, 5),
    ]
    plain += [torch.zeros(3, requires_grad=True), torch.nn.Parameter(torch.zeros(2))]
    if not all(_is_laid_out(tensor, layout) for tensor in plain):
        return False
    of = {tensor_fields(tensor, layout)["kind"] for tensor in plain}
    elements = {tensor_fields(tensor, layout)["elements"] for tensor in plain}
    dtypes = [torch.float64, torch.int32, torch.int64, torch.uint8, torch.int8, torch.bool, torch.bfloat16]
    others = {tensor_fields(torch.zeros(2, dtype=d), layout)["elements"] for d in dtypes}
    meta = tensor_fields(torch.zeros(2, device="meta"), layout)["elements"]
    negated = tensor_fields(torch.zeros(2, dtype=torch.complex64).conj().imag, layout)["kind"]
    copied = tensor_fields(torch._lazy_clone(torch.zeros(2)), layout)["shared"]
    return (
        len(of) == len(elements) == 1
        and len(others) == len(dtypes)
        and not elements & (others | {meta})
        and negated not in of
        and copied != 0
    )


def _is_laid_out(tensor: Any, layout: Any) -> bool:
    fields = tensor_fields(tensor, layout)
    rank = tensor.dim()
    return (
        fields["rank"] == rank
        and fields["offset"] == tensor.storage_offset()
        and fields["data"] == tensor.untyped_storage().data_ptr()
        and fields["shared"] == 0
        and _integers(fields["shape"], rank) == tuple(tensor.shape)
        and _integers(fields["strides"], rank) == tuple(tensor.stride())
    )


def _may_be_address(number: int) -> bool:
    """False for a flag or a count of references, which older releases have in these places."""
    return number > 0xFFFF and number % 8 == 0 and number < 1 << 56


def _word(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value


def _pointer(address: int) -> int:
    return ctypes.c_void_p.from_address(address).value or 0


def _integers(address: int, count: int) -> tuple[int, ...]:
    return tuple((ctypes.c_int64 * count).from_address(address))
