"""Which NumPy dtype holds the lanes of an IR type, and exact conversions between the floats among them.

A scalar is a 0-d array and a block an array of its shape, of exactly this dtype; a pointer is its address, a
uint64. The floats of 8 and 16 bits never compute: their lanes widen to float32 (exact), and a result is
rounded back once.

Conversions work on bits, so that each rounds exactly once, whatever NumPy or ml_dtypes would do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import ml_dtypes
import numpy as np
import numpy.typing as npt

from blocklang.interpreter.numpy_steps import saturating_cast
from blocklang.ir.float8 import FLOAT8, Float8
from blocklang.ir.types import PointerType, ScalarType, Type, element_type

Array = npt.NDArray[Any]
Rounding = Literal["rtne", "rtz"]

BOOL = np.dtype(np.bool_)
F16 = np.dtype(np.float16)
BF16 = np.dtype(ml_dtypes.bfloat16)
# f8e4b15 has no dtype of its own: its lanes go by one that nothing else uses, and only their bits count.
F8: dict[str, np.dtype[Any]] = {
    "f8e5": np.dtype(ml_dtypes.float8_e5m2),
    "f8e4nv": np.dtype(ml_dtypes.float8_e4m3fn),
    "f8e4b8": np.dtype(ml_dtypes.float8_e4m3fnuz),
    "f8e5b16": np.dtype(ml_dtypes.float8_e5m2fnuz),
    "f8e4b15": np.dtype(ml_dtypes.float8_e4m3b11fnuz),
}
F32 = np.dtype(np.float32)
F64 = np.dtype(np.float64)
ADDRESS = np.dtype(np.uint64)

DTYPES: dict[str, np.dtype[Any]] = {
    "i1": BOOL,
    **{f"i{n}": np.dtype(f"int{n}") for n in (8, 16, 32, 64)},
    **{f"u{n}": np.dtype(f"uint{n}") for n in (8, 16, 32, 64)},
    **F8,
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
    return dtype.kind == "f" or dtype == BF16 or dtype in _FLOAT8


def widen(lanes: Array) -> Array:
    """Floats of 8 and 16 bits as float32, exactly; other lanes as they are."""
    if lanes.dtype == BF16:
        return (lanes.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)
    if lanes.dtype in _FLOAT8:
        return np.asarray(_FLOAT8_NUMBERS[lanes.dtype][lanes.view(np.uint8)])
    return lanes.astype(np.float32) if lanes.dtype == F16 else lanes


@dataclass(frozen=True)
class _Format:
    """A binary float format, as conversions to it need it.

    Attributes:
        fraction, bias: explicit bits of the significand, and the bias of the exponent.
        integer: the unsigned integer of its width.
        largest: the bits of the largest number.
        overflow: the bits of what is too large for it, rounded to nearest; of infinity too.
        nan: the bits that a NaN gets.
        has_signed_nan, has_signed_zero: whether they keep the sign.
    """

    fraction: int
    bias: int
    integer: np.dtype[Any]
    largest: int
    overflow: int
    nan: int
    has_signed_nan: bool = True
    has_signed_zero: bool = True

    @classmethod
    def ieee(cls, fraction: int, bias: int, integer: type[np.unsignedinteger[Any]]) -> _Format:
        infinity = (2 * bias + 1) << fraction
        return cls(
            fraction, bias, np.dtype(integer), infinity - 1, infinity, infinity | (1 << (fraction - 1))
        )

    @classmethod
    def float8(cls, form: Float8) -> _Format:
        return cls(
            form.fraction,
            form.bias,
            np.dtype(np.uint8),
            form.largest,
            form.largest,
            form.nan,
            has_signed_nan=False,
            has_signed_zero=form.has_negative_zero,
        )


_FLOAT8 = {F8[name]: form for name, form in FLOAT8.items()}
_FLOAT8_NUMBERS = {
    dtype: np.array([form.decode(code) for code in range(256)], np.float32) for dtype, form in _FLOAT8.items()
}
_FORMATS = {
    **{dtype: _Format.float8(form) for dtype, form in _FLOAT8.items()},
    F16: _Format.ieee(10, 15, np.uint16),
    BF16: _Format.ieee(7, 127, np.uint16),
    F32: _Format.ieee(23, 127, np.uint32),
}


def restore_float(lanes: Array, dtype: np.dtype[Any]) -> Array:
    """The inverse of `widen`: lanes that were chosen among widened ones, an infinity included."""
    if dtype not in _FLOAT8:
        return convert_float(lanes, dtype)
    form = _FLOAT8[dtype]
    top = np.float32(form.decode(form.top))
    codes = convert_float(lanes, dtype).view(np.uint8)
    codes = np.where(lanes == top, form.top, np.where(lanes == -top, form.top | 0x80, codes))
    return codes.astype(np.uint8).view(dtype)


def convert_float(lanes: Array, dtype: np.dtype[Any], rounding: Rounding = "rtne") -> Array:
    """Convert between float dtypes with one rounding.

    Overflow gives infinity to nearest, and the largest number toward zero; a NaN becomes a quiet NaN. An
    8-bit float saturates at its largest number, infinities too (`blocklang.ir.float8`).
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
    result = np.minimum(result, target.overflow if rounding == "rtne" else target.largest)
    result = np.where(np.isinf(lanes), target.overflow, result)
    result = np.where(np.isnan(lanes), target.nan, result)
    signed = (
        (bits < 0) & (target.has_signed_nan | ~np.isnan(lanes)) & (target.has_signed_zero | (result != 0))
    )
    sign = np.where(signed, 1 << (target.integer.itemsize * 8 - 1), 0)
    return np.asarray((result | sign).astype(target.integer)).view(dtype)


def with_sign(lanes: Array, change: Callable[[Array, Array], Any]) -> Array:
    """Change the sign bit of floats; the zero and the NaN of formats without a signed zero have none."""
    bits = np.asarray(lanes).view(f"u{lanes.dtype.itemsize}")
    sign = bits.dtype.type(1 << (bits.dtype.itemsize * 8 - 1))
    changed = np.asarray(change(bits, sign))
    form = _FLOAT8.get(lanes.dtype)
    if form is not None and not form.has_negative_zero:
        changed = np.where(bits & ~sign == 0, bits, changed)
    return changed.view(lanes.dtype)


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
