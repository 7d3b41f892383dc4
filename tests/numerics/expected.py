"""What the language promises of single operations, computed another way: exact integers, fractions, float64.

Written from the specification of the language and the docstrings of `blocklang.language`; nothing of the
compiler or of the interpreter is used.

Why float64 is enough. A sum, product or quotient of two fp32 (fp16, bf16) numbers that is rounded to float64
first and to fp32 afterwards is the one that is rounded once, since 53 >= 2 * 24 + 2 bits; in the subnormal
range sums and products are exact in float64, and a quotient lies no nearer to a tie than 2**-49 of itself.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.numerics.values import FLOATS, INTEGERS, NUMPY_DTYPES, SIGNED, bits_of, limits

Array = npt.NDArray[Any]

# Bits of the fraction, exponent of the smallest normal number, largest number.
FORMATS: dict[str, tuple[int, int, float]] = {
    "fp16": (10, -14, 65504.0),
    "bf16": (7, -126, (2 - 2.0**-7) * 2.0**127),
    "tf32": (10, -126, (2 - 2.0**-10) * 2.0**127),
    "fp32": (23, -126, (2 - 2.0**-23) * 2.0**127),
    "fp64": (52, -1022, float(np.finfo(np.float64).max)),
}


# ---- types ----


def common_type(a: str, b: str, *, division: bool = False) -> str | None:
    """The type that an operator on two run-time values computes in; None if they cannot be divided."""
    types = {a, b}
    for wide in ("fp64", "fp32"):
        if wide in types:
            return wide
    if "fp16" in types:
        return "fp32" if division else "fp16"
    if "bf16" in types:
        return "bf16" if types == {"bf16"} and not division else "fp32"
    if division and (a in SIGNED) != (b in SIGNED):
        return None
    if (a in SIGNED) == (b in SIGNED):
        return a if bits_of(a) >= bits_of(b) else b
    unsigned, signed = (b, a) if a in SIGNED else (a, b)
    return unsigned if bits_of(unsigned) >= bits_of(signed) else signed


def literal_type(number: bool | int | float) -> str:
    """The type of a Python number that no operand gives one to."""
    if isinstance(number, bool):
        return "int1"
    if isinstance(number, int):
        fitting = ("int32", "uint32", "int64", "uint64")
        return next(t for t in fitting if limits(t)[0] <= number <= limits(t)[1])
    outside = number not in (0.0, np.inf, -np.inf) and not 2.0**-126 <= abs(number) <= FORMATS["fp32"][2]
    return "fp64" if outside else "fp32"


def kind(name: str) -> int:
    """bool < int < float."""
    return 0 if name == "int1" else 1 if name in INTEGERS else 2


def common_type_with_literal(a: str, number: bool | int | float, *, division: bool = False) -> str | None:
    """The type that an operator on a run-time value and a Python number computes in."""
    own = literal_type(number)
    if kind(own) <= kind(a):
        return "fp32" if division and a in ("fp16", "bf16") else a
    return common_type(a, own, division=division)


# ---- conversions ----


def exact(array: Array) -> Array:
    """Integers as Python's, floats as float64: every further step is exact, or rounds to float64."""
    if array.dtype.kind in "biu":
        return np.array([int(v) for v in array.ravel()], object).reshape(array.shape)
    with np.errstate(invalid="ignore"):  # a signalling NaN
        return array.astype(np.float64)


def wrapped(values: Array, name: str) -> Array:
    """Python integers modulo the width of a type."""
    low, _ = limits(name)
    inside = [(int(v) - low) % (1 << bits_of(name)) + low for v in values.ravel()]
    return np.array(inside, NUMPY_DTYPES[name]).reshape(values.shape)


def rounded(values: Array, format: str, *, toward_zero: bool = False) -> Array:
    """float64 values rounded to nearest, ties to even, or toward zero, in a format; still float64."""
    fraction_bits, smallest, largest = FORMATS[format]
    if format == "fp64":
        return values
    with np.errstate(all="ignore"):
        exponent = np.frexp(values)[1] - 1
        unit = np.ldexp(1.0, np.maximum(exponent, smallest) - fraction_bits)
        nearest = (np.trunc if toward_zero else np.rint)(values / unit) * unit
        beyond = (np.abs(nearest) > largest) & np.isfinite(values)
        limit = np.copysign(largest if toward_zero else np.inf, values)
        return np.where(np.isfinite(values), np.where(beyond, limit, nearest), values)


def as_float(values: Array, name: str, *, toward_zero: bool = False) -> Array:
    """float64 values rounded to a float type."""
    with np.errstate(all="ignore"):
        return rounded(values, name, toward_zero=toward_zero).astype(NUMPY_DTYPES[name])


def nearest_float(number: int, name: str) -> float:
    """An integer of any size, rounded once."""
    fraction_bits, _, largest = FORMATS[name]
    unit = Fraction(2) ** max(abs(number).bit_length() - 1 - fraction_bits, 0)
    nearest = round(number / unit) * unit
    return float(nearest) if abs(nearest) <= largest else float(np.copysign(np.inf, number))


def converted(array: Array, source: str, target: str, *, toward_zero: bool = False) -> Array:
    """A cast by value."""
    if source == target:
        return array
    values = exact(array)
    if target == "int1":
        return np.asarray(values != 0, np.bool_)
    if source in FLOATS:
        if target in FLOATS:
            return as_float(values, target, toward_zero=toward_zero)
        low, high = limits(target)
        whole = [0 if np.isnan(v) else v if np.isinf(v) else int(v) for v in values.ravel().tolist()]
        inside = [int(min(max(v, low), high)) for v in whole]
        return np.array(inside, NUMPY_DTYPES[target]).reshape(values.shape)
    if target in FLOATS:
        floats = [nearest_float(v, target) for v in values.ravel()]
        return np.array(floats, np.float64).astype(NUMPY_DTYPES[target]).reshape(values.shape)
    return wrapped(values, target)


# ---- operators, on operands of one type ----


def _quotient(a: int, b: int) -> int:
    if b == 0:
        return 0
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _remainder(a: int, b: int) -> int:
    return a - _quotient(a, b) * b


def _over_integers(function: Callable[[int, int], int]) -> Callable[[Array, Array], Array]:
    return lambda a, b: np.asarray(np.frompyfunc(function, 2, 1)(a, b))


_INTEGER: dict[str, Callable[[Array, Array], Array]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "//": _over_integers(_quotient),
    "%": _over_integers(_remainder),
    "&": np.bitwise_and,
    "|": np.bitwise_or,
    "^": np.bitwise_xor,
}
_FLOAT: dict[str, Callable[[Array, Array], Array]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "%": np.fmod,
}
_COMPARE: dict[str, Callable[[Array, Array], Array]] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
}


def operate(symbol: str, a: Array, b: Array, computed: str, result: str | None = None) -> Array:
    """`a symbol b` of two arrays of the type `computed`, rounded or wrapped to `result`."""
    result = result or computed
    if result in FLOATS:
        with np.errstate(all="ignore"):
            return as_float(np.asarray(_FLOAT[symbol](a.astype(np.float64), b.astype(np.float64))), result)
    return wrapped(np.asarray(_INTEGER[symbol](exact(a), exact(b))), result)


def compare(symbol: str, a: Array, b: Array) -> Array:
    """A comparison of two arrays of one type; with a NaN only `!=` holds."""
    with np.errstate(all="ignore"):
        return np.asarray(_COMPARE[symbol](exact(a), exact(b)), np.bool_)


def shifted(symbol: str, a: Array, b: Array, name: str) -> Array:
    """`<<` or `>>`: the count is read as unsigned, and the width or more shifts everything out."""
    width = bits_of(name)

    def one(value: int, count: int) -> int:
        count = min(count % (1 << width), width)
        return value << count if symbol == "<<" else value >> count

    return wrapped(np.asarray(np.frompyfunc(one, 2, 1)(exact(a), exact(b))), name)


def extreme(a: Array, b: Array, *, largest: bool, propagate_nan: bool = False) -> Array:
    """The smaller or larger of each pair of one type; -0.0 < +0.0, and a NaN counts only if it must."""
    if a.dtype.kind in "biu":
        return np.asarray((np.maximum if largest else np.minimum)(a, b))
    x, y = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(all="ignore"):
        takes_a = (x > y) | ((x == y) & ~np.signbit(x)) if largest else (x < y) | ((x == y) & np.signbit(x))
    number = np.where(np.isnan(x), b, np.where(np.isnan(y) | takes_a, a, b))
    both = np.isnan(x) | np.isnan(y)
    return np.where(both, np.array(np.nan, a.dtype), number) if propagate_nan else number


# ---- fused multiply-add ----


def _odd_sum(a: Array, b: Array) -> Array:
    """a + b in float64 rounded to odd: rounding that to 51 bits or fewer is as if it came first."""
    total = a + b
    first = total - a
    error = (a - (total - first)) + (b - first)
    bits = total.view(np.int64)
    moves = (error != 0) & (bits & 1 == 0) & np.isfinite(total)
    away = (error > 0) == (total > 0)
    return (bits + np.where(moves, np.where(away, 1, -1), 0)).view(np.float64)


def fma_f32(a: Array, b: Array, c: Array) -> Array:
    """fp32 `a * b + c` rounded once: the product is exact in float64."""
    with np.errstate(all="ignore"):
        product = np.asarray(a, np.float64) * np.asarray(b, np.float64)
        product, start = np.broadcast_arrays(product, np.asarray(c, np.float64))
        return _odd_sum(product.copy(), start.copy()).astype(np.float32)


def hard_to_round() -> list[Array]:
    """fp32 a, b, c whose a * b + c lies 2**-30 of half a unit beside a tie, which float64 makes of it."""
    scales = 2.0 ** np.arange(-60, 60, 7)
    starts = np.array([1 + k * 2.0**-23 for k in (1, 3, 5, -1, -3)])
    scale, start, sign = (v.reshape(-1) for v in np.meshgrid(scales, starts, [1.0, -1.0]))
    factors = (sign * (1 + 2.0**-15), scale * (1 - 2.0**-15) * 2.0**-24, scale * start)
    return [v.astype(np.float32) for v in factors]


def fma_f64(a: Array, b: Array, c: Array) -> Array:
    """float64 `a * b + c` rounded once, by fractions where it is finite."""

    def one(x: float, y: float, z: float) -> float:
        if np.isfinite([x, y]).all() and not np.isfinite(z):
            return z
        if not np.isfinite([x, y]).all():
            return float(np.float64(x) * np.float64(y) + np.float64(z))
        value = Fraction(x) * Fraction(y) + Fraction(z)
        if value == 0:
            return float(np.copysign(1.0, x) * np.copysign(1.0, y) * 0.0 + z) if z == 0 else 0.0
        try:
            return float(value)
        except OverflowError:
            return np.inf if value > 0 else -np.inf

    with np.errstate(all="ignore"):
        return np.asarray(np.frompyfunc(one, 3, 1)(a, b, c), np.float64)
