"""Which NumPy dtype holds the lanes of an IR type, and exact conversions between the floats among them.

A scalar is a 0-d array and a block an array of its shape, of exactly this dtype; a pointer is its address, a
uint64. The 16-bit floats never compute: their lanes widen to float32 (exact), and a result is rounded back
once.

Conversions work on bits, so that each rounds exactly once, whatever NumPy or ml_dtypes would do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import ml_dtypes
import numpy as np
import numpy.typing as npt

from blocklang.interpreter.numpy_steps import saturating_cast
from blocklang.ir.types import PointerType, ScalarType, Type, element_type

Array = npt.NDArray[Any]
Rounding = Literal["rtne", "rtz"]

BOOL = np.dtype(np.bool_)
F16 = np.dtype(np.float16)
BF16 = np.dtype(ml_dtypes.bfloat16)
F32 = np.dtype(np.float32)
F64 = np.dtype(np.float64)
ADDRESS = np.dtype(np.uint64)

DTYPES: dict[str, np.dtype[Any]] = {
    "i1": BOOL,
    **{f"i{n}": np.dtype(f"int{n}") for n in (8, 16, 32, 64)},
    **{f"u{n}": np.dtype(f"uint{n}") for n in (8, 16, 32, 64)},
    "f16": F16,
    "bf16": BF16,
    "f32": F32,
    "f64": F64,
}


def dtype_of(type_: Type) -> np.dtype[Any]:
    """The dtype of the lanes of a value of this type."""
    element = element_type(type_)
    return ADDRESS if isinstance(element, PointerType) else DTYPES[element.name]


def memory_dtype_of(type_: ScalarType) -> np.dtype[Any]:
    """The dtype of an element in memory: a bool is read as a byte, whatever its bits."""
    return np.dtype(np.uint8) if type_.name == "i1" else DTYPES[type_.name]


def is_float(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "f" or dtype == BF16


def widen(lanes: Array) -> Array:
    """float16 and bfloat16 as float32, exactly; other lanes as they are."""
    if lanes.dtype == BF16:
        return (lanes.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)
    return lanes.astype(np.float32) if lanes.dtype == F16 else lanes


@dataclass(frozen=True)
class _Format:
    """A binary float format: bits of its fraction, bias of its exponent, the integer of its width."""

    fraction: int
    bias: int
    integer: np.dtype[Any]

    @property
    def infinity(self) -> int:
        return (2 * self.bias + 1) << self.fraction


_FORMATS = {
    F16: _Format(10, 15, np.dtype(np.uint16)),
    BF16: _Format(7, 127, np.dtype(np.uint16)),
    F32: _Format(23, 127, np.dtype(np.uint32)),
}


def convert_float(lanes: Array, dtype: np.dtype[Any], rounding: Rounding = "rtne") -> Array:
    """Convert between float dtypes with one rounding.

    Overflow gives infinity to nearest, and the largest number toward zero; a NaN becomes a quiet NaN.
    """
    if lanes.dtype == dtype:
        return lanes
    if dtype == F64:
        return np.asarray(widen(lanes).astype(F64))
    wide = widen(lanes)
    if dtype == F32 and (rounding == "rtne" or wide.dtype == F32):
        with np.errstate(all="ignore"):
            return np.asarray(wide.astype(F32))
    if dtype == BF16 and wide.dtype == F32 and rounding == "rtne":
        return _f32_to_bf16(wide)
    return _round_bits(wide.astype(F64), dtype, rounding)


def _f32_to_bf16(lanes: Array) -> Array:
    bits = np.asarray(lanes).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    quiet = (bits >> np.uint32(16)) | np.uint32(0x40)
    return np.where(np.isnan(lanes), quiet, rounded).astype(np.uint16).view(BF16)


def _round_bits(lanes: Array, dtype: np.dtype[Any], rounding: Rounding) -> Array:
    """Round float64 lanes to a narrower format.

    The significand is shifted until its last bit is one unit of the target; the carry of rounding up runs
    into the exponent by itself. Subnormal float64 lie below every target and become zeros.
    """
    target = _FORMATS[dtype]
    bits = np.asarray(lanes).view(np.int64)
    fraction = bits & np.int64((1 << 52) - 1)
    exponent = (bits >> np.int64(52)) & np.int64(0x7FF)
    significand = np.where(exponent == 0, 0, fraction | np.int64(1 << 52))
    biased = exponent - 1023 + target.bias
    shift = np.minimum(52 - target.fraction + np.maximum(1 - biased, 0), 60)
    kept = significand >> shift
    if rounding == "rtne":
        rest, half = significand & ((np.int64(1) << shift) - 1), np.int64(1) << (shift - 1)
        kept = kept + ((rest > half) | ((rest == half) & ((kept & 1) == 1)))
    result = ((np.maximum(biased, 1) - 1) << np.int64(target.fraction)) + kept
    result = np.minimum(result, target.infinity if rounding == "rtne" else target.infinity - 1)
    result = np.where(np.isinf(lanes), target.infinity, result)
    result = np.where(np.isnan(lanes), target.infinity | (1 << (target.fraction - 1)), result)
    sign = np.where(bits < 0, 1 << (target.integer.itemsize * 8 - 1), 0)
    return (result | sign).astype(target.integer).view(dtype)


def integer_to_float(lanes: Array, dtype: np.dtype[Any]) -> Array:
    """Convert integers to nearest, ties to even, with one rounding."""
    if dtype in (F32, F64):
        return np.asarray(lanes.astype(dtype))
    return _round_bits(_integer_to_odd(lanes), dtype, "rtne")


def _integer_to_odd(lanes: Array) -> Array:
    """Integers as float64; more than 53 bits are cut to odd, so that a second rounding cannot err."""
    if lanes.dtype.itemsize < 8:
        return np.asarray(lanes.astype(F64))
    negative = lanes < 0
    magnitude = np.where(negative, 0 - lanes.view(np.uint64), lanes.view(np.uint64))
    low = magnitude & np.uint64(0x7FF)
    cut = (magnitude - low) | (np.where(low != 0, np.uint64(0x800), np.uint64(0)))
    wide = np.where(magnitude >= np.uint64(1 << 53), cut, magnitude).astype(F64)
    return np.where(negative, -wide, wide)


def convert(lanes: Array, dtype: np.dtype[Any], rounding: Rounding = "rtne") -> Array:
    """Convert lanes by value: what `cast` means, pointers being uint64."""
    if lanes.dtype == dtype:
        return lanes
    if dtype == BOOL:
        return np.asarray(widen(lanes) != 0)
    if is_float(lanes.dtype):
        if is_float(dtype):
            return convert_float(lanes, dtype, rounding)
        return saturating_cast(widen(lanes), dtype)
    return integer_to_float(lanes, dtype) if is_float(dtype) else np.asarray(lanes.astype(dtype))


def round_to_tf32(lanes: Array) -> Array:
    """Round float32 to 10 bits of fraction, ties to even."""
    bits = np.asarray(lanes).view(np.uint32)
    rounded = (bits + np.uint32(0xFFF) + ((bits >> np.uint32(13)) & np.uint32(1))) & np.uint32(0xFFFFE000)
    return np.where(np.isfinite(lanes), rounded, bits).astype(np.uint32).view(np.float32)


def constant(value: bool | int | float, dtype: np.dtype[Any]) -> Array:
    """A 0-d array of a Python number; a float is rounded once."""
    if is_float(dtype):
        return convert_float(np.array(float(value), F64), dtype)
    return np.array(value, dtype)
