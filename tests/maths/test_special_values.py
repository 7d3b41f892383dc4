"""Infinities, NaN, signed zeros, ends of domains: the values of C's Annex F, in both formats."""

from __future__ import annotations

import math

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

CASES = [
    *((name, *case) for name, cases in ONE_ARGUMENT.items() for case in cases),
    *(("pow", *case) for case in POW),
    *(("atan2", *case) for case in ATAN2),
]


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_special_value(case: tuple[str, float, float], dtype: str) -> None:
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
