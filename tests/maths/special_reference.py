"""Exact values and arguments of the functions of libdevice: mpmath, and where each is interesting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import numpy.typing as npt
from mpmath import mpf

from blocklang.maths.directed import DIRECTIONS, OPERATIONS

Array = npt.NDArray[Any]
Generator = np.random.Generator

DIRECTED = frozenset(f"{name}_{direction}" for name in OPERATIONS for direction in DIRECTIONS)
BESSEL = ("j0", "j1", "y0", "y1")
# Beyond, zeros of Bessel functions are not divided out: errors count in ULP of the amplitude.
BESSEL_FAR = 8.0


def inverse_erfc(q: mpf) -> mpf:
    """Newton's iteration on the logarithm of erfc."""
    if q > 1:
        return -inverse_erfc(2 - q)
    y = mpmath.sqrt(-mpmath.log(q)) if q < 0.3 else mpmath.erfinv(1 - q)
    for _ in range(60):
        value = mpmath.erfc(y)
        slope = 2 * mpmath.exp(-y * y) / mpmath.sqrt(mpmath.pi)
        change = mpmath.log(value / q) * value / slope
        y += change
        if abs(change) < mpf(2) ** -120 * abs(y):
            break
    return y


def scaled_erfc(x: mpf) -> mpf:
    if x < 1e4:
        return mpmath.exp(x * x) * mpmath.erfc(x)
    return (1 - 1 / (2 * x * x)) / (x * mpmath.sqrt(mpmath.pi))


def normal_probability(x: mpf) -> mpf:
    if abs(x) > 60:  # far below the smallest number, or as near to 1
        tail = mpf(2) ** -2500
        return tail if x < 0 else 1 - tail
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2


def norm(*components: mpf) -> mpf:
    return mpmath.sqrt(sum(c * c for c in components))


def reciprocal_norm(*components: mpf) -> mpf:
    return 1 / norm(*components)


def log_gamma(x: mpf) -> mpf:
    return mpmath.log(abs(mpmath.gamma(x))) if x < 1e4 else mpmath.loggamma(x)


EXACT: dict[str, Callable[..., mpf]] = {
    "rcbrt": lambda x: mpmath.sign(x) / mpmath.cbrt(abs(x)),
    "exp10": lambda x: mpf(10) ** x,
    "sinpi": mpmath.sinpi,
    "cospi": mpmath.cospi,
    "asinh": mpmath.asinh,
    "acosh": mpmath.acosh,
    "atanh": mpmath.atanh,
    "hypot": norm,
    "norm3d": norm,
    "norm4d": norm,
    "rhypot": reciprocal_norm,
    "rnorm3d": reciprocal_norm,
    "rnorm4d": reciprocal_norm,
    "erfcx": scaled_erfc,
    "erfinv": lambda x: mpmath.erfinv(x) if abs(x) < 0.9 else mpmath.sign(x) * inverse_erfc(1 - abs(x)),
    "erfcinv": inverse_erfc,
    "normcdf": normal_probability,
    "normcdfinv": lambda p: -mpmath.sqrt(2) * inverse_erfc(2 * p),
    "tgamma": mpmath.gamma,
    "lgamma": log_gamma,
    "j0": lambda x: mpmath.besselj(0, x),
    "j1": lambda x: mpmath.besselj(1, x),
    "y0": lambda x: mpmath.bessely(0, x),
    "y1": lambda x: mpmath.bessely(1, x),
    "cyl_bessel_i0": lambda x: mpmath.besseli(0, x),
    "cyl_bessel_i1": lambda x: mpmath.besseli(1, x),
    "round": lambda x: mpmath.sign(x) * mpmath.floor(abs(x) + mpf(0.5)),
    "fdim": lambda x, y: max(x - y, mpf(0)),
    "add_rn": lambda x, y: x + y,
    "mul_rn": lambda x, y: x * y,
}
# Bits for what cancels: 1 - erf(x) far out, the fraction of a large argument.
PRECISION = {"erfcx": 1200, "normcdf": 1100, "sinpi": 1150, "cospi": 1150}

# Even numbers of a range; powers of two of even exponents, of both signs ("sexp") or one, added to a number
# or taken from it ("less").
_ARGUMENTS: dict[str, list[tuple[str, float, float, float]]] = {
    "rcbrt": [("sexp", -1074, 1023, 0)],
    "exp10": [("even", -324, 309, 0), ("even", -2, 2, 0), ("sexp", -60, 0, 0)],
    "sinpi": [("even", -3, 3, 0), ("sexp", -1020, 55, 0), ("sexp", -5, 10, 0)],
    "cospi": [("even", -3, 3, 0), ("sexp", -50, 55, 0), ("sexp", -5, 10, 0)],
    "asinh": [("even", -3, 3, 0), ("sexp", -1074, 1023, 0), ("sexp", -10, 70, 0)],
    "acosh": [("even", 1, 3, 0), ("exp", -52, 0, 1), ("exp", 0, 1023, 0), ("exp", 0, 70, 0)],
    "atanh": [("even", -1, 1, 0), ("sexp", -1074, -1, 0), ("less", -53, -1, 1)],
    "erfcx": [("even", -26.6, 30, 0), ("even", -3, 3, 0), ("sexp", -60, 4, 0), ("exp", 0, 1023, 0)],
    "erfinv": [("even", -1, 1, 0), ("sexp", -1074, -1, 0), ("less", -53, -1, 1), ("even", 0.4, 0.6, 0)],
    "erfcinv": [("even", 0, 2, 0), ("exp", -1074, 0, 0), ("sexp", -52, -1, 1), ("even", 0.4, 0.6, 0)],
    "normcdf": [("even", -38.5, 9, 0), ("even", -3, 3, 0), ("sexp", -60, 2, 0)],
    "normcdfinv": [("even", 0, 1, 0), ("exp", -1074, -1, 0), ("less", -53, -1, 1), ("sexp", -50, -2, 0.5)],
    "tgamma": [("even", 0, 10, 0), ("even", 7, 171.6, 0), ("even", -183, 0, 0), ("sexp", -1022, 0, 0)],
    "lgamma": [("even", 0, 10, 0), ("sexp", -50, -1, 1), ("sexp", -50, -1, 2), ("exp", -1000, 1000, 0)],
    "j0": [("even", 0, 8, 0), ("even", -60, 60, 0), ("exp", -30, 40, 0)],
    "j1": [("even", 0, 8, 0), ("even", -60, 60, 0), ("exp", -300, 40, 0)],
    "y0": [("even", 0, 8, 0), ("even", 0, 60, 0), ("exp", -1000, 40, 0)],
    "y1": [("even", 0, 8, 0), ("even", 0, 60, 0), ("exp", -1000, 40, 0)],
    "cyl_bessel_i0": [("even", -12, 12, 0), ("even", 0, 713, 0), ("sexp", -30, 3, 0)],
    "cyl_bessel_i1": [("even", -12, 12, 0), ("even", 0, 713, 0), ("sexp", -300, 3, 0)],
    "round": [("even", -8, 8, 0), ("sexp", -1074, 60, 0), ("sexp", -60, -1, 0.5)],
}


def special_samples(name: str, count: int, generator: Generator) -> Array:
    """Arguments of one of these functions of one argument, as f64."""
    parts = _ARGUMENTS[name]
    size = -(-count // len(parts))
    return np.concatenate([_part(*part, size, generator) for part in parts])[:count]


def _part(kind: str, low: float, high: float, centre: float, count: int, generator: Generator) -> Array:
    numbers = generator.uniform(low, high, count)
    if kind == "even":
        return numbers
    powers = np.exp2(numbers)
    if kind == "sexp":
        powers *= generator.choice([-1.0, 1.0], count)
    return np.asarray(centre - powers if kind == "less" else centre + powers)


def near_zeros(name: str, count: int) -> Array:
    """The first zeros of a Bessel function, and floats near them."""
    zeros = mpmath.besseljzero if name[0] == "j" else mpmath.besselyzero
    found = []
    for index in range(1, count + 1):
        x = float(zeros(int(name[1]), index))
        found += [x, np.nextafter(x, 0), np.nextafter(x, 99), x * (1 + 2.0**-40), x * (1 - 2.0**-20)]
    return np.array(found)


def error_unit(name: str, arguments: list[float], exact: mpf) -> mpf:
    """The number whose ULP errors count in."""
    if name in BESSEL and abs(arguments[0]) > BESSEL_FAR:
        return max(abs(exact), mpmath.sqrt(2 / (mpmath.pi * abs(arguments[0]))) * mpf(0.7))
    return abs(exact)


def judged(name: str, arguments: list[float]) -> bool:
    """Whether the stated error holds here: that of lgamma is for positive arguments."""
    return name != "lgamma" or arguments[0] > 0
