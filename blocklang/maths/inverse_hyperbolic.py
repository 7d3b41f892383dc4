"""Recipes of asinh, acosh and atanh: log1p of an expression that does not cancel.

f32 computes in f64 and rounds once.
"""

from __future__ import annotations

import math

from blocklang.maths import logarithm
from blocklang.maths.formats import F64, Lanes
from blocklang.maths.steps import Steps, V

# Beyond, 1 does not matter beside x, and log1p is log.
LARGE = 2.0**60


def plus_log_2(lanes: Lanes[V], large: V, value: V) -> V:
    """Add log(2) where `large`."""
    steps = lanes.steps
    return steps.add(value, steps.select(large, lanes.number(math.log(2)), lanes.number(0.0)))


def asinh_f64(steps: Steps[V], x: V) -> V:
    """log(|x| + sqrt(x**2 + 1)) as log1p(|x| + x**2 / (1 + sqrt(x**2 + 1)))."""
    lanes = Lanes(steps, F64)
    one, size = lanes.number(1.0), steps.abs(x)
    large = steps.gt(size, lanes.number(LARGE))
    square = steps.mul(size, size)
    root = steps.sqrt(steps.fma(size, size, one))
    near = steps.add(size, steps.div(square, steps.add(one, root)))
    value = logarithm.log1p(steps, logarithm.TABLE_F64, steps.select(large, size, near))
    return lanes.with_sign_of(steps.abs(plus_log_2(lanes, large, value)), x)


def acosh_f64(steps: Steps[V], x: V) -> V:
    """log(x + sqrt(x**2 - 1)) as log1p(t + sqrt(2 t + t**2)), t = x - 1; NaN below 1."""
    lanes = Lanes(steps, F64)
    one = lanes.number(1.0)
    large = steps.gt(x, lanes.number(LARGE))
    t = steps.sub(x, one)
    root = steps.sqrt(steps.fma(t, t, steps.add(t, t)))
    value = logarithm.log1p(steps, logarithm.TABLE_F64, steps.select(large, x, steps.add(t, root)))
    value = plus_log_2(lanes, large, value)
    return steps.select(steps.lt(x, one), lanes.number(math.nan), value)


def atanh_f64(steps: Steps[V], x: V) -> V:
    """log((1 + x) / (1 - x)) / 2 as log1p(2 x / (1 - x)) / 2."""
    lanes = Lanes(steps, F64)
    size = steps.abs(x)
    quotient = steps.div(steps.add(size, size), steps.sub(lanes.number(1.0), size))
    value = logarithm.log1p(steps, logarithm.TABLE_F64, quotient)
    return lanes.with_sign_of(steps.abs(steps.mul(value, lanes.number(0.5))), x)
