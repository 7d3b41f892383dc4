"""What an array argument is in memory: address of element [0, ...], element type, shape, strides.

Accepted without a copy: NumPy arrays, PyTorch CPU tensors, arrays of emulated devices, objects with the array
interface or DLPack on the CPU, contiguous columns of pandas and Arrow (`columns`). What has no meaning here
(complex numbers, objects, records, the other byte order, memory of a GPU) is refused by name.

Every object is asked once per launch; nothing is remembered, so a resized array is seen as it is.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from blocklang.diagnostics import LaunchError
from blocklang.ir.types import (
    BF16,
    F8E4B8,
    F8E4NV,
    F8E5,
    F8E5B16,
    F16,
    F32,
    F64,
    I1,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    ScalarType,
)
from blocklang.runtime.columns import column_values, is_column

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TYPES: dict[str, ScalarType] = {
    "bool": I1,
    "int8": I8,
    "int16": I16,
    "int32": I32,
    "int64": I64,
    "uint8": U8,
    "uint16": U16,
    "uint32": U32,
    "uint64": U64,
    "float8_e5m2": F8E5,
    "float8_e4m3fn": F8E4NV,
    "float8_e4m3fnuz": F8E4B8,
    "float8_e5m2fnuz": F8E5B16,
    "float16": F16,
    "bfloat16": BF16,
    "float32": F32,
    "float64": F64,
}
_OF_ML_DTYPES = (BF16, F8E5, F8E4NV, F8E4B8, F8E5B16)
_BY_DTYPE: dict[np.dtype[Any], ScalarType] = {
    np.dtype(name): type_ for name, type_ in _TYPES.items() if type_ not in _OF_ML_DTYPES
}
# C names that are a type of their own in NumPy and equal one of the above (`long long` beside `long`).
_BY_DTYPE |= {
    np.dtype(code): _TYPES[np.dtype(code).name]
    for code in "bhilqBHILQ"  # signed and unsigned char, short, int, long, long long
}

# The short names of the language, which a reinterpreted tensor's dtype has.
_LONG_NAMES = {
    "int1": "bool",
    "bf16": "bfloat16",
    "fp16": "float16",
    "fp32": "float32",
    "fp64": "float64",
    "fp8e5": "float8_e5m2",
    "fp8e4nv": "float8_e4m3fn",
    "fp8e4b8": "float8_e4m3fnuz",
    "fp8e5b16": "float8_e5m2fnuz",
}


@dataclass(slots=True)
class Array:
    """An array argument. Strides are in bytes; `owner` keeps the memory alive."""

    address: int
    element: ScalarType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    writable: bool
    owner: object

    def byte_range(self) -> tuple[int, int]:
        """The addresses [low, high) that hold elements; empty if there are none."""
        low = high = self.address
        for extent, stride in zip(self.shape, self.strides, strict=True):
            if extent == 0:
                return (self.address, self.address)
            if stride < 0:
                low += (extent - 1) * stride
            else:
                high += (extent - 1) * stride
        return (low, high + self.element.bytes)


def element_type_of(dtype: np.dtype[Any]) -> ScalarType | None:
    """The element type of a NumPy dtype; None if it has no meaning in a kernel."""
    element = _BY_DTYPE.get(dtype)
    if element is None and dtype.type.__module__ == "ml_dtypes":  # whoever has one has imported it
        element = _TYPES.get(dtype.name)
    return element


def numpy_dtype(type_: ScalarType) -> np.dtype[Any]:
    """The NumPy dtype of an element type."""
    name = next(name for name, known in _TYPES.items() if known == type_)
    if type_ in _OF_ML_DTYPES:
        import ml_dtypes

        name = getattr(ml_dtypes, name)
    return np.dtype(name)


def dtype_named(dtype: Any) -> np.dtype[Any]:
    """The NumPy dtype that a dtype of NumPy, PyTorch or the language stands for, or a name such as "bf16".

    Raises:
        LaunchError: its elements have no meaning in a kernel.
    """
    name = str(dtype).rpartition(".")[2]
    element = _TYPES.get(_LONG_NAMES.get(name, name))
    if element is None:
        try:
            plain = np.dtype(dtype)
        except TypeError:
            raise LaunchError(f"{dtype!r} is no dtype", help=_KNOWN) from None
        element = element_type_of(plain)
        if element is None:
            raise _refused_dtype(plain)
    return numpy_dtype(element)


def view_of(array: Array) -> NDArray[Any]:
    """The elements of an array where they lie, valid as long as the array's owner lives."""
    low, high = array.byte_range()
    dtype = numpy_dtype(array.element)
    if low == high:
        return np.empty(array.shape, dtype)
    memory = (ctypes.c_uint8 * (high - low)).from_address(low)
    return np.ndarray(array.shape, dtype, memoryview(memory), array.address - low, array.strides)


def is_array(value: object) -> bool:
    """True if `value` claims to be an array of some kind."""
    if isinstance(value, np.ndarray):
        return True
    if value is None or isinstance(value, (bool, int, float, str, np.generic, type)):
        return False
    kinds = ("data_ptr", "__array_interface__", "__dlpack__", "__cuda_array_interface__")
    return any(hasattr(value, name) for name in kinds) or is_column(value)


def describe_array(value: Any) -> Array:
    """The memory of an array argument.

    Raises:
        LaunchError: its elements have no meaning in a kernel, or are not in this machine's memory.
    """
    if isinstance(value, np.ndarray):
        return _describe_numpy(value)
    if hasattr(value, "data_ptr"):
        return _describe_tensor(value)
    if hasattr(value, "__cuda_array_interface__"):
        raise _elsewhere(value, "a GPU")
    if hasattr(value, "__blocklang_array__"):
        described: Array = value.__blocklang_array__()
        return described
    if hasattr(value, "__array_interface__"):
        return _describe_numpy(np.asarray(value))
    if is_column(value):
        return _describe_numpy(column_values(value))
    return _describe_dlpack(value)


def _describe_numpy(array: NDArray[Any]) -> Array:
    element = element_type_of(array.dtype)
    if element is None:
        raise _refused_dtype(array.dtype)
    if type(array) is not np.ndarray and isinstance(array, np.ma.MaskedArray):  # importing np.ma takes 8 ms
        raise LaunchError(
            "a masked array is not an argument: a kernel sees no mask",
            help="pass `x.data` and `x.mask`, or `x.filled(0)`",
        )
    return Array(
        array.__array_interface__["data"][0],
        element,
        array.shape,
        array.strides,
        array.flags.writeable,
        array,
    )


def _describe_tensor(tensor: Any) -> Array:
    """A PyTorch tensor, or what has its `data_ptr()`, `dtype`, `shape` and `stride()`."""
    device = str(getattr(tensor, "device", "cpu"))
    if device.split(":")[0] != "cpu":
        raise _elsewhere(tensor, device)
    if hasattr(tensor, "is_neg") and tensor.is_neg():
        raise LaunchError(
            "this tensor is a lazily negated view: its memory holds other numbers than it shows",
            help="call `.resolve_neg()` first",
        )
    name = str(tensor.dtype).split(".")[-1]
    element = _TYPES.get(_LONG_NAMES.get(name, name))
    if element is None:
        raise LaunchError(f"arrays of {tensor.dtype} have no meaning in a kernel", help=_KNOWN)
    try:
        strides = tuple(int(s) * element.bytes for s in tensor.stride())
        shape = tuple(int(n) for n in tensor.shape)
        address = int(tensor.data_ptr())
    except RuntimeError as reason:
        # Sparse, nested, of oneDNN, inside of vmap: PyTorch says no to either question.
        raise LaunchError(
            f"this {type(tensor).__name__} is no dense array in memory",
            help="pass a strided tensor, for instance `x.to_dense()`, or the tensors that it is made of",
        ) from reason
    # A null storage; what only stands for a tensor, such as a mock of `warmup`, has no storage to ask about.
    if (
        hasattr(tensor, "storage_offset")
        and address == tensor.storage_offset() * element.bytes
        and 0 not in shape
    ):
        raise LaunchError(
            f"this {type(tensor).__name__} has a shape and no memory: it is a fake one, or was freed",
            help="pass a tensor whose storage is there",
        )
    return Array(address, element, shape, strides, True, tensor)


def _describe_dlpack(value: Any) -> Array:
    try:
        return _describe_numpy(np.from_dlpack(value))
    except (BufferError, RuntimeError, TypeError, ValueError) as reason:
        raise LaunchError(
            f"the memory of this {type(value).__name__} cannot be used in place: {reason}",
            help="pass a NumPy array, for instance `numpy.asarray(x)`",
        ) from reason


_KNOWN = "arrays may hold bool, (u)int8 to (u)int64, float16, bfloat16, float32, float64 or an 8-bit float"


def _elsewhere(value: object, where: str) -> LaunchError:
    if where == "meta":
        return LaunchError(
            f"this {type(value).__name__} is on the device meta: it has a shape and no memory",
            help="make it on the CPU: `device='cpu'`",
        )
    remedy = "copy it first, for instance with `.cpu()`"
    if where.startswith("cuda"):
        remedy += (
            "; where cuda may mean the CPU, run the script with "
            "`blocklang run --device-map cuda=cpu SCRIPT.py`"
        )
    return LaunchError(
        f"this {type(value).__name__} lies in the memory of {where}; kernels run on the CPU", help=remedy
    )


def _refused_dtype(dtype: np.dtype[Any]) -> LaunchError:
    if dtype.newbyteorder("=") in _BY_DTYPE:
        return LaunchError(
            f"the array's byte order is not this machine's (dtype {dtype.str!r})",
            help="convert it: `x.astype(x.dtype.newbyteorder('='))`",
        )
    if dtype.fields is not None:
        named = ", ".join(dtype.fields)
        return LaunchError(
            f"arrays of records (dtype {dtype}) have no meaning in a kernel",
            help=f"pass the fields as arguments of their own, for instance `x[{next(iter(dtype.fields))!r}]`"
            if named
            else None,
        )
    if dtype.kind == "c":
        return LaunchError(
            f"arrays of complex numbers (dtype {dtype}) have no meaning in a kernel",
            help="pass `x.real` and `x.imag` with their strides",
        )
    kinds = {"O": "Python objects", "U": "strings", "S": "bytes", "M": "dates", "m": "time differences"}
    what = f"{kinds[dtype.kind]} (dtype {dtype})" if dtype.kind in kinds else str(dtype)
    return LaunchError(f"arrays of {what} have no meaning in a kernel", help=_KNOWN)


def strides(x: Any) -> tuple[int, ...]:
    """The strides of an array in elements, one per axis, as a kernel's pointer arithmetic counts.

    Raises:
        LaunchError: a stride is no whole number of elements, or `x` is no array for a kernel.

    Example:
        >>> import numpy as np
        >>> import blocklang as bl
        >>> bl.strides(np.zeros((4, 6), np.float32)[::2])
        (12, 1)
    """
    if not is_array(x):
        raise LaunchError(f"strides() takes an array, not a {type(x).__name__}")
    array = describe_array(x)
    size = array.element.bytes
    if any(stride % size for stride in array.strides):
        raise LaunchError(
            f"the strides of this array, {array.strides} bytes, are no whole elements of {size} bytes",
            help="a field of records is not reachable in steps of its own size; copy it",
        )
    return tuple(stride // size for stride in array.strides)
