"""Fused multiply-add in NumPy: `a * b + c` rounded once, for every input.

NumPy has no fma. Both functions compute the sum exactly, as a float that is rounded to odd (or as an
unevaluated pair), and round it once at the end: rounding to odd keeps the fact that something was cut off in
the last bit, so a second rounding to at least two bits less cannot be wrong.

Results are those of IEEE 754 for all inputs: subnormal numbers, overflow, infinities, signed zeros. A result
that is NaN is some NaN. Nothing here warns. Arguments broadcast; they are of one dtype, or an error is
raised.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

F32Array = npt.NDArray[np.float32]
F64Array = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

# Between 24 and 53 bits lie 29; a double in the middle between two singles has this pattern there.
CUT_MASK = np.int64((1 << 29) - 1)
CUT_HALF = np.int64(1 << 28)
SMALLEST_NORMAL_F32 = np.float64(2.0**-126)
SMALLEST_NORMAL_F64 = np.float64(2.0**-1022)


def fma_f32(a: F32Array, b: F32Array, c: F32Array) -> F32Array:
    """Compute `a * b + c` with one rounding, in f32."""
    require_dtype(np.float32, a, b, c)
    with np.errstate(all="ignore"):
        return add_product_f32(np.multiply(a, b, dtype=np.float64), c)


def add_product_f32(product: F64Array, c: F32Array) -> F32Array:
    """Add to c the product of two f32 values, given exactly in f64, with one rounding to f32.

    For loops that multiply the same factors often, such as dot: they widen the factors once. The caller
    silences floating-point warnings.
    """
    wide = np.asarray(np.add(product, c, dtype=np.float64))
    result = np.asarray(wide.astype(np.float32))
    doubtful = may_round_twice(wide)
    if doubtful.any():
        product, c = np.broadcast_arrays(product, c)
        odd = add_to_odd(product[doubtful], c[doubtful].astype(np.float64))
        result[doubtful] = odd.astype(np.float32)
    return result


def may_round_twice(wide: F64Array) -> BoolArray:
    """Find the sums whose rounding to f32 depends on what their own rounding cut off.

    A sum is rounded again the wrong way only if it stands in the middle between two singles. Where the result
    is subnormal the middle has other bits: all of those are taken, exact zeros excepted.
    """
    middle = (wide.view(np.int64) & CUT_MASK) == CUT_HALF
    magnitude = np.abs(wide)
    return np.asarray(middle | ((magnitude < SMALLEST_NORMAL_F32) & (magnitude > 0)))


def add_to_odd(a: F64Array, b: F64Array) -> F64Array:
    """Add, rounding to odd: an inexact sum becomes the one of its two neighbours whose last bit is 1."""
    total, error = two_sum(a, b)
    bits = total.view(np.int64)
    inexact_and_even = ((error > 0) | (error < 0)) & ((bits & 1) == 0)
    towards_error = np.where((error > 0) == (total > 0), np.int64(1), np.int64(-1))
    return np.asarray(bits + inexact_and_even * towards_error).view(np.float64)


def two_sum(a: F64Array, b: F64Array) -> tuple[F64Array, F64Array]:
    """Return the rounded sum and its error, exact unless the sum overflows (Knuth)."""
    total = np.asarray(a + b)
    b_part = total - a
    return total, np.asarray((a - (total - b_part)) + (b - b_part))


def two_product(a: F64Array, b: F64Array) -> tuple[F64Array, F64Array]:
    """Return the rounded product and its error, exact within the range of `is_moderate` (Dekker,
    Veltkamp)."""
    product = np.asarray(a * b)
    a_high, a_low = halves(a)
    b_high, b_low = halves(b)
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, np.asarray(error)


def halves(a: F64Array) -> tuple[F64Array, F64Array]:
    """Split into two parts of 26 bits, so that products of parts are exact."""
    scaled = a * 134217729.0  # 2**27 + 1
    high = scaled - (scaled - a)
    return high, a - high


def fma_f64(a: F64Array, b: F64Array, c: F64Array) -> F64Array:
    """Compute `a * b + c` with one rounding, in f64."""
    require_dtype(np.float64, a, b, c)
    with np.errstate(all="ignore"):
        plain = np.asarray(a * b + c)
        result = fma_moderate(a, b, c)
        # An exact sum of zero has the sign that the plain operations give it.
        result = np.where(result == 0, plain, result)
        hard = ~is_moderate(a, b, c)
        if hard.any():
            a, b, c = np.broadcast_arrays(a, b, c)
            result[hard] = fma_hard(a[hard], b[hard], c[hard])
    return result


def is_moderate(a: F64Array, b: F64Array, c: F64Array) -> BoolArray:
    """Tell where no step of `fma_moderate` overflows, and the error of the product does not underflow."""
    size_a, size_b, size_c = np.abs(a), np.abs(b), np.abs(c)
    product = size_a * size_b
    small = (size_a < 2.0**900) & (size_b < 2.0**900) & (product < 2.0**1000) & (size_c < 2.0**1000)
    return np.asarray(small & ((product > 2.0**-900) | (size_a == 0) | (size_b == 0)))


def exact_sum(a: F64Array, b: F64Array, c: F64Array) -> tuple[F64Array, F64Array]:
    """Return `a * b + c` as a float and a remainder rounded to odd (Boldo and Melquiond)."""
    product, product_error = two_product(a, b)
    low, low_error = two_sum(c, product_error)
    high, high_error = two_sum(product, low)
    return high, add_to_odd(high_error, low_error)


def fma_moderate(a: F64Array, b: F64Array, c: F64Array) -> F64Array:
    high, rest = exact_sum(a, b, c)
    return np.asarray(high + rest)


def fma_hard(a: F64Array, b: F64Array, c: F64Array) -> F64Array:
    """Compute the lanes with infinities, NaN, or numbers near the ends of the range."""
    product = a * b
    result = np.asarray(product + c)
    factors = np.isfinite(a) & np.isfinite(b)
    # A product of numbers may overflow where the sum with an infinity or NaN must not see it.
    np.copyto(result, c, where=factors & ~np.isfinite(c))
    # A product that underflows to zero keeps its sign: it is not the exact zero that the addition would see.
    np.copyto(result, product, where=factors & (a != 0) & (b != 0) & (c == 0))
    proper = factors & np.isfinite(c) & (a != 0) & (b != 0) & (c != 0)
    if proper.any():
        result[proper] = fma_scaled(a[proper], b[proper], c[proper])
    return result


def fma_scaled(a: F64Array, b: F64Array, c: F64Array) -> F64Array:
    """Compute finite lanes without zeros, their exponents taken out and put back at the end.

    The smaller of product and addend is moved up where it lies so far below the larger one that only its
    being there matters: 2**-130 and 2**70 are beyond the 106 bits of a product and the 53 of an addend.
    """
    a, a_exponent = np.frexp(a)
    b, b_exponent = np.frexp(b)
    c, c_exponent = np.frexp(c)
    product_exponent = a_exponent + b_exponent
    distance = c_exponent - product_exponent
    exponent = np.where(distance > 70, c_exponent - 70, product_exponent)
    high, rest = exact_sum(a, b, np.ldexp(c, np.clip(distance, -130, 70)))
    normal = np.ldexp(high + rest, exponent)
    return np.where(np.abs(normal) <= SMALLEST_NORMAL_F64, round_subnormal(high, rest, exponent), normal)


def round_subnormal(high: F64Array, rest: F64Array, exponent: npt.NDArray[np.int32]) -> F64Array:
    """Round `(high + rest) * 2**exponent` to a multiple of the smallest subnormal.

    Adding 2**52 quanta makes the quantum the last place. Exponents are cut where all results are zero anyway.
    """
    exponent = np.maximum(exponent, -1300)
    sign = high + rest  # where a sum cancelled, the first part is a zero without meaning
    anchor = np.copysign(np.ldexp(1.0, 52 - 1074 - exponent), sign)
    total, error = two_sum(anchor, high)
    rounded = (total + add_to_odd(error, rest)) - anchor
    return np.asarray(np.copysign(np.ldexp(rounded, exponent), sign))


def require_dtype(dtype: type[np.floating[Any]], *arrays: npt.NDArray[Any]) -> None:
    for array in arrays:
        if array.dtype != dtype:
            raise TypeError(f"expected {np.dtype(dtype)}, got {array.dtype}")
