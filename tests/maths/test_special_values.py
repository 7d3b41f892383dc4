"""Infinities, NaN, signed zeros, ends of domains: the values of C's Annex F, in both formats."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from blocklang.interpreter.numpy_steps import NumpySteps
from blocklang.maths.registry import RECIPES
from tests.maths.reference import DTYPES

INF, NAN = math.inf, math.nan

ONE_ARGUMENT: dict[str, list[tuple[float, float]]] = {
    "exp": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (NAN, NAN)],
    "exp2": [(0.0, 1.0), (-0.0, 1.0), (3.0, 8.0), (-2.0, 0.25), (INF, INF), (-INF, 0.0), (NAN, NAN)],
    "expm1": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -1.0), (NAN, NAN)],
    "log": [(1.0, 0.0), (0.0, -INF), (-0.0, -INF), (-1.0, NAN), (-INF, NAN), (INF, INF), (NAN, NAN)],
    "log2": [(1.0, 0.0), (8.0, 3.0), (0.125, -3.0), (0.0, -INF), (-1.0, NAN), (INF, INF), (NAN, NAN)],
    "log10": [(1.0, 0.0), (0.0, -INF), (-1.0, NAN), (INF, INF), (NAN, NAN)],
    "log1p": [(0.0, 0.0), (-0.0, -0.0), (-1.0, -INF), (-2.0, NAN), (INF, INF), (-INF, NAN), (NAN, NAN)],
    "sin": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (NAN, NAN)],
    "cos": [(0.0, 1.0), (-0.0, 1.0), (INF, NAN), (-INF, NAN), (NAN, NAN)],
    "tan": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (NAN, NAN)],
    "asin": [(0.0, 0.0), (-0.0, -0.0), (1.5, NAN), (-INF, NAN), (NAN, NAN)],
    "acos": [(1.0, 0.0), (1.5, NAN), (-1.5, NAN), (INF, NAN), (NAN, NAN)],
    "atan": [(0.0, 0.0), (-0.0, -0.0), (INF, math.pi / 2), (-INF, -math.pi / 2), (NAN, NAN)],
    "sinh": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (NAN, NAN)],
    "cosh": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, INF), (NAN, NAN)],
    "tanh": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (NAN, NAN)],
    "erf": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (NAN, NAN)],
    "erfc": [(0.0, 1.0), (-0.0, 1.0), (INF, 0.0), (-INF, 2.0), (NAN, NAN)],
    "sqrt": [(0.0, 0.0), (-0.0, -0.0), (-1.0, NAN), (INF, INF), (-INF, NAN), (NAN, NAN)],
    "rsqrt": [(4.0, 0.5), (0.0, INF), (-0.0, -INF), (-1.0, NAN), (INF, 0.0), (NAN, NAN)],
    "rcbrt": [(0.0, INF), (-0.0, -INF), (8.0, 0.5), (-8.0, -0.5), (INF, 0.0), (-INF, -0.0), (NAN, NAN)],
    "exp10": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (NAN, NAN), (400.0, INF), (-400.0, 0.0)],
    "sinpi": [
        *((0.0, 0.0), (-0.0, -0.0), (1.0, 0.0), (-1.0, -0.0), (2.0, 0.0), (0.5, 1.0), (-1.5, 1.0)),
        *((1e30, 0.0), (INF, NAN), (-INF, NAN), (NAN, NAN)),
    ],
    "cospi": [
        *((0.0, 1.0), (-0.0, 1.0), (0.5, 0.0), (1.0, -1.0), (-1.5, 0.0), (3.0, -1.0), (1e30, 1.0)),
        *((INF, NAN), (-INF, NAN), (NAN, NAN)),
    ],
    "asinh": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (NAN, NAN)],
    "acosh": [(1.0, 0.0), (0.5, NAN), (-2.0, NAN), (-INF, NAN), (INF, INF), (NAN, NAN)],
    "atanh": [
        *(
            (0.0, 0.0),
            (-0.0, -0.0),
            (1.0, INF),
            (-1.0, -INF),
            (1.5, NAN),
            (-INF, NAN),
            (INF, NAN),
            (NAN, NAN),
        ),
    ],
    "erfcx": [(0.0, 1.0), (-0.0, 1.0), (INF, 0.0), (-INF, INF), (NAN, NAN)],
    "erfinv": [(0.0, 0.0), (-0.0, -0.0), (1.0, INF), (-1.0, -INF), (1.5, NAN), (-INF, NAN), (NAN, NAN)],
    "erfcinv": [(1.0, 0.0), (0.0, INF), (-0.0, INF), (2.0, -INF), (2.5, NAN), (-1.0, NAN), (NAN, NAN)],
    "normcdf": [(0.0, 0.5), (-0.0, 0.5), (INF, 1.0), (-INF, 0.0), (NAN, NAN)],
    "normcdfinv": [(0.0, -INF), (1.0, INF), (-1.0, NAN), (1.5, NAN), (INF, NAN), (NAN, NAN)],
    "tgamma": [
        *((1.0, 1.0), (2.0, 1.0), (5.0, 24.0), (0.0, INF), (-0.0, -INF), (-1.0, NAN), (-200.0, NAN)),
        *((-200.5, -0.0), (-201.5, 0.0), (180.0, INF), (INF, INF), (-INF, NAN), (NAN, NAN)),
    ],
    "lgamma": [
        *((1.0, 0.0), (2.0, 0.0), (0.0, INF), (-0.0, INF), (-3.0, INF), (INF, INF), (-INF, INF), (NAN, NAN)),
    ],
    "j0": [(0.0, 1.0), (-0.0, 1.0), (INF, 0.0), (-INF, 0.0), (NAN, NAN)],
    "j1": [(0.0, 0.0), (-0.0, -0.0), (INF, 0.0), (-INF, -0.0), (NAN, NAN)],
    "y0": [(0.0, -INF), (-0.0, -INF), (-1.0, NAN), (-INF, NAN), (INF, 0.0), (NAN, NAN)],
    "y1": [(0.0, -INF), (-0.0, -INF), (-1.0, NAN), (-INF, NAN), (INF, 0.0), (NAN, NAN)],
    "cyl_bessel_i0": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, INF), (NAN, NAN)],
    "cyl_bessel_i1": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (NAN, NAN)],
    "round": [
        *((0.0, 0.0), (-0.0, -0.0), (0.5, 1.0), (-0.5, -1.0), (2.5, 3.0), (0.4, 0.0), (-0.4, -0.0)),
        *((INF, INF), (-INF, -INF), (NAN, NAN)),
    ],
    "sqrt_rz": [(0.0, 0.0), (-0.0, -0.0), (4.0, 2.0), (-1.0, NAN), (INF, INF), (NAN, NAN)],
    "sqrt_rd": [(0.0, 0.0), (-0.0, -0.0), (4.0, 2.0), (-1.0, NAN), (INF, INF), (NAN, NAN)],
    "sqrt_ru": [(0.0, 0.0), (-0.0, -0.0), (4.0, 2.0), (-1.0, NAN), (INF, INF), (NAN, NAN)],
    "cbrt": [(0.0, 0.0), (-0.0, -0.0), (27.0, 3.0), (-8.0, -2.0), (INF, INF), (-INF, -INF), (NAN, NAN)],
}

POW = [
    (0.0, 3.0, 0.0), (-0.0, 3.0, -0.0), (-0.0, 2.0, 0.0), (-0.0, 0.5, 0.0), (0.0, INF, 0.0),
    (0.0, -3.0, INF), (-0.0, -3.0, -INF), (-0.0, -2.0, INF), (-0.0, -0.5, INF), (0.0, -INF, INF),
    (-1.0, INF, 1.0), (-1.0, -INF, 1.0), (1.0, NAN, 1.0), (1.0, INF, 1.0), (NAN, 0.0, 1.0), (INF, -0.0, 1.0),
    (-2.0, 3.0, -8.0), (-2.0, 2.0, 4.0), (-2.0, 0.5, NAN), (-1.0, NAN, NAN), (-1.0, 0.5, NAN),
    (0.5, INF, 0.0), (0.5, -INF, INF), (2.0, INF, INF), (2.0, -INF, 0.0), (-2.0, INF, INF), (-0.5, INF, 0.0),
    (INF, 2.0, INF), (INF, -2.0, 0.0), (-INF, 3.0, -INF), (-INF, 2.0, INF), (-INF, 0.5, INF),
    (-INF, -3.0, -0.0), (-INF, -2.0, 0.0), (-INF, -0.5, 0.0), (NAN, 1.0, NAN), (2.0, NAN, NAN),
    (-2.0, 1e30, INF), (-0.5, 1e30, 0.0), (2.0, -1e30, 0.0), (3.0, 1.0, 3.0),
]  # fmt: skip

PI = math.pi
ATAN2 = [
    (0.0, 1.0, 0.0), (-0.0, 1.0, -0.0), (0.0, 0.0, 0.0), (-0.0, 0.0, -0.0), (0.0, -0.0, PI),
    (-0.0, -0.0, -PI),
    (0.0, -1.0, PI), (-0.0, -1.0, -PI), (1.0, 0.0, PI / 2), (-1.0, 0.0, -PI / 2), (-1.0, -0.0, -PI / 2),
    (1.0, INF, 0.0), (-1.0, INF, -0.0), (1.0, -INF, PI), (-1.0, -INF, -PI), (INF, 1.0, PI / 2),
    (-INF, 1.0, -PI / 2),
    (INF, INF, PI / 4), (INF, -INF, 3 * PI / 4), (-INF, INF, -PI / 4), (-INF, -INF, -3 * PI / 4),
    (NAN, 1.0, NAN), (1.0, NAN, NAN), (NAN, INF, NAN), (INF, NAN, NAN), (NAN, NAN, NAN),
]  # fmt: skip

# Two arguments at least, then the result.
SEVERAL: dict[str, list[tuple[float, ...]]] = {
    "hypot": [(3.0, -4.0, 5.0), (INF, NAN, INF), (NAN, -INF, INF), (NAN, 1.0, NAN), (0.0, -0.0, 0.0)],
    "norm3d": [(1.0, 2.0, -2.0, 3.0), (NAN, 1.0, INF, INF), (1.0, NAN, 1.0, NAN), (0.0, 0.0, -0.0, 0.0)],
    "norm4d": [(1.0, 1.0, 1.0, 1.0, 2.0), (NAN, 1.0, 1.0, -INF, INF), (1.0, 1.0, NAN, 1.0, NAN)],
    "rhypot": [(3.0, -4.0, 0.2), (INF, NAN, 0.0), (NAN, 1.0, NAN), (0.0, -0.0, INF)],
    "rnorm3d": [(0.0, 0.0, 0.5, 2.0), (NAN, 1.0, INF, 0.0), (1.0, NAN, 1.0, NAN), (0.0, 0.0, -0.0, INF)],
    "rnorm4d": [(1.0, 1.0, 1.0, 1.0, 0.5), (NAN, 1.0, 1.0, -INF, 0.0), (1.0, 1.0, NAN, 1.0, NAN)],
    "fdim": [
        (3.0, 1.0, 2.0),
        (1.0, 3.0, 0.0),
        (-0.0, 0.0, 0.0),
        (INF, INF, 0.0),
        (INF, 1.0, INF),
        (1.0, NAN, NAN),
    ],
    **{
        f"add_{d}": [
            (INF, 1.0, INF),
            (-INF, 1.0, -INF),
            (INF, -INF, NAN),
            (NAN, 1.0, NAN),
            (-0.0, -0.0, -0.0),
        ]
        for d in ("rn", "rz", "rd", "ru")
    },
    **{
        f"mul_{d}": [(INF, -1.0, -INF), (INF, 0.0, NAN), (NAN, 1.0, NAN), (-0.0, 2.0, -0.0), (3.0, 2.0, 6.0)]
        for d in ("rn", "rz", "rd", "ru")
    },
    **{
        f"div_{d}": [(1.0, 0.0, INF), (1.0, -0.0, -INF), (0.0, 0.0, NAN), (1.0, INF, 0.0), (INF, INF, NAN)]
        for d in ("rz", "rd", "ru")
    },
    **{
        f"fma_{d}": [(INF, 1.0, 1.0, INF), (INF, 0.0, 1.0, NAN), (1.0, INF, -INF, NAN), (1.0, 1.0, INF, INF)]
        for d in ("rz", "rd", "ru")
    },
}

CASES: list[tuple[Any, ...]] = [
    *((name, *case) for name, cases in ONE_ARGUMENT.items() for case in cases),
    *(("pow", *case) for case in POW),
    *(("atan2", *case) for case in ATAN2),
    *((name, *case) for name, cases in SEVERAL.items() for case in cases),
]


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_special_value(case: tuple[Any, ...], dtype: str) -> None:
    name, *arguments, expected = case
    kind = DTYPES[dtype]
    got = RECIPES[name, dtype].apply(NumpySteps(), *(np.array(a, kind) for a in arguments))
    want = kind(expected)
    if math.isnan(expected):
        assert np.isnan(got)
    else:
        assert (got == want, bool(np.signbit(got))) == (True, bool(np.signbit(want)))


def test_every_function_has_special_values() -> None:
    assert {case[0] for case in CASES} == {name for name, _ in RECIPES}


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("name", ["sin", "tan", "asin", "atan", "sinh", "tanh", "expm1", "log1p"])
def test_tiny_arguments_are_fixed_points(name: str, dtype: str) -> None:
    info = np.finfo(DTYPES[dtype])
    values = [info.smallest_subnormal, info.smallest_subnormal * 3, info.tiny, info.tiny * 1.25]
    x = np.array([*values, *(-v for v in values)], DTYPES[dtype])
    assert np.array_equal(RECIPES[name, dtype].apply(NumpySteps(), x), x)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_results_reach_the_ends_of_the_format(dtype: str) -> None:
    """The last finite results, and subnormal ones, rounded rather than flushed."""
    kind = DTYPES[dtype]
    info = np.finfo(kind)
    exp2 = RECIPES["exp2", dtype]
    powers = np.arange(info.minexp - info.nmant, info.maxexp, dtype=np.float64)
    got = exp2.apply(NumpySteps(), powers.astype(kind))
    assert np.array_equal(got, np.ldexp(1.0, powers.astype(int)).astype(kind))
    beyond = np.array([info.maxexp, info.minexp - info.nmant - 1.5], kind)
    assert exp2.apply(NumpySteps(), beyond).tolist() == [INF, 0.0]
    largest = np.log(np.float64(info.max)).astype(kind)
    edge = np.array([np.nextafter(largest, kind(0)), np.nextafter(largest, kind(1e9)) * kind(1.0001)], kind)
    finite, infinite = RECIPES["exp", dtype].apply(NumpySteps(), edge).tolist()
    assert math.isfinite(finite)
    assert infinite == INF
