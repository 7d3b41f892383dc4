"""Exact values to judge recipes by: mpmath for f64, NumPy and `math` in f64 for f32.

An error in ULP is the distance to the exact value over the distance between neighbouring floats at the exact
value; below the normal range that is the smallest subnormal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np
import numpy.typing as npt
from mpmath import mpf

from blocklang.interpreter.numpy_steps import NumpySteps
from blocklang.maths.formats import F32, F64, Format
from blocklang.maths.registry import RECIPES, Recipe
from tests.maths import special_reference

Array = npt.NDArray[Any]
# Digits for what cancels: cos near pi/2 of 2**1023 has lost 1023 + 61 bits before it has 53.
PRECISION = 1250

FORMATS: dict[str, Format] = {"f32": F32, "f64": F64}
DTYPES: dict[str, type[np.floating[Any]]] = {"f32": np.float32, "f64": np.float64}


def rsqrt(x: mpf) -> mpf:
    return 1 / mpmath.sqrt(x)


def log2(x: mpf) -> mpf:
    return mpmath.log(x) / mpmath.log(2)


def erfc(x: mpf) -> mpf:
    """The complement; mpmath fails where it is astronomically small."""
    return mpmath.erfc(x) if x < 100 else mpmath.exp(-100 * x)


EXACT: dict[str, Callable[..., mpf]] = {
    "exp": mpmath.exp,
    "exp2": lambda x: mpf(2) ** x,
    "expm1": mpmath.expm1,
    "log": mpmath.log,
    "log1p": mpmath.log1p,
    "log2": log2,
    "log10": mpmath.log10,
    "sin": mpmath.sin,
    "cos": mpmath.cos,
    "tan": mpmath.tan,
    "asin": mpmath.asin,
    "acos": mpmath.acos,
    "atan": mpmath.atan,
    "atan2": mpmath.atan2,
    "sinh": mpmath.sinh,
    "cosh": mpmath.cosh,
    "tanh": mpmath.tanh,
    "erf": mpmath.erf,
    "erfc": erfc,
    "pow": mpmath.power,
    "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
    "sqrt": mpmath.sqrt,
    "rsqrt": rsqrt,
    **special_reference.EXACT,
}


@dataclass(frozen=True)
class Domain:
    """Where a function has finite results, and the range in which they are neither huge nor constant."""

    low: float
    high: float
    centre: float = 0.0


DOMAINS_F64: dict[str, Domain] = {
    "exp": Domain(-745.2, 709.8),
    "exp2": Domain(-1075.0, 1024.0),
    "expm1": Domain(-40.0, 709.8),
    "log": Domain(0.0, 1.7e308, 1.0),
    "log1p": Domain(-1.0, 1.7e308),
    "log2": Domain(0.0, 1.7e308, 1.0),
    "log10": Domain(0.0, 1.7e308, 1.0),
    "sin": Domain(-1e308, 1e308),
    "cos": Domain(-1e308, 1e308),
    "tan": Domain(-1e308, 1e308),
    "asin": Domain(-1.0, 1.0),
    "acos": Domain(-1.0, 1.0, 1.0),
    "atan": Domain(-1e308, 1e308),
    "sinh": Domain(-710.4, 710.4),
    "cosh": Domain(-710.4, 710.4),
    "tanh": Domain(-20.0, 20.0),
    "erf": Domain(-6.0, 6.0),
    "erfc": Domain(-6.0, 27.3),
    "cbrt": Domain(-1e308, 1e308),
    "sqrt": Domain(0.0, 1.7e308),
    "rsqrt": Domain(0.0, 1.7e308),
}
SCALE_F32 = {"exp": 88.7 / 709.8, "exp2": 0.1251, "sinh": 0.1251, "cosh": 0.1251, "expm1": 0.1249}


def random_bits(dtype: str, count: int, generator: np.random.Generator) -> Array:
    """Every bit pattern alike: all exponents, both signs, subnormals, infinities, NaN."""
    form = FORMATS[dtype]
    unsigned = np.dtype(f"u{form.bits // 8}")
    bits = (
        generator.integers(0, 1 << form.bits, count, dtype=np.dtype(np.uint64), endpoint=False)
        if (form.bits == 32)
        else generator.integers(0, (1 << 64) - 1, count, dtype=np.uint64, endpoint=True)
    )
    return bits.astype(unsigned).view(DTYPES[dtype])


def samples(name: str, dtype: str, count: int, generator: np.random.Generator) -> Array:
    """Arguments of a unary function: all bit patterns, evenly over its domain, and near its centre."""
    if name not in DOMAINS_F64:
        largest = float(np.finfo(DTYPES[dtype]).max)
        numbers = special_reference.special_samples(name, count, generator)
        return np.clip(numbers, -largest, largest).astype(DTYPES[dtype])
    domain = DOMAINS_F64[name]
    scale = SCALE_F32.get(name, 1.0) if dtype == "f32" else 1.0
    largest = float(np.finfo(DTYPES[dtype]).max)
    low, high = (min(max(scale * end, -largest), largest) for end in (domain.low, domain.high))
    part = count // 4
    near = domain.centre + generator.choice([-1.0, 1.0], part) * np.exp2(generator.uniform(-28, 2, part))
    even = generator.uniform(max(low, -1200.0), min(high, 1200.0), part)
    small = generator.uniform(-2.5, 2.5, count - 3 * part)
    return np.concatenate(
        [random_bits(dtype, part, generator), *(a.astype(DTYPES[dtype]) for a in (near, even, small))]
    )


def ulp_error(got: float, exact: mpf, form: Format, unit: mpf | None = None) -> float:
    """The error of one finite result, in ULP of the exact value, or of another one."""
    if exact == 0:
        return 0.0 if got == 0 else math.inf
    size = abs(exact) if unit is None else unit
    exponent = max(int(mpmath.floor(mpmath.log(size, 2))), 1 - form.bias)
    return float(abs(mpf(got) - exact) / mpf(2) ** (exponent - form.fraction_bits))


def ulp_errors_f32(got: Array, exact: Array) -> Array:
    """The errors of f32 results against f64 values; 0 where both are not finite in f32, and the same."""
    with np.errstate(all="ignore"):
        rounded = exact.astype(np.float32)
        exponent = np.maximum(np.frexp(np.abs(exact))[1] - 1, 1 - F32.bias)
        error = np.abs(got.astype(np.float64) - exact) * np.ldexp(1.0, F32.fraction_bits - exponent)
        same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
        return np.where(np.isfinite(rounded) & np.isfinite(got), error, np.where(same, 0.0, np.inf))


NUMPY: dict[str, Callable[..., Any]] = {
    **{
        name: getattr(np, name)
        for name in ("exp", "exp2", "expm1", "log", "log1p", "log2", "log10", "sin", "cos", "tan")
    },
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "erf": np.vectorize(math.erf, otypes=[np.float64]),
    "erfc": np.vectorize(math.erfc, otypes=[np.float64]),
    "pow": np.power,
    "cbrt": np.cbrt,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
}


def in_f64(recipe: Recipe, arguments: Sequence[Array]) -> Array:
    """The function in f64 precision of the same arguments: NumPy's, or the recipe, which mpmath judges."""
    with np.errstate(all="ignore"):
        wide = [a.astype(np.float64) for a in arguments]
    if recipe.name not in NUMPY:
        return np.asarray(RECIPES[recipe.name, "f64"].apply(NumpySteps(), *wide))
    with np.errstate(all="ignore"):
        return np.asarray(NUMPY[recipe.name](*wide))
