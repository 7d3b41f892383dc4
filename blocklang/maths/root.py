"""Recipes of the roots: sqrt (a step, listed so that the table is whole) and rsqrt."""

from __future__ import annotations

from blocklang.maths.formats import F32, F64, Lanes
from blocklang.maths.steps import Steps, V


def sqrt(steps: Steps[V], x: V) -> V:
    """The square root, correctly rounded; NaN below zero, and -0 at -0."""
    return steps.sqrt(x)


def rsqrt_f32(steps: Steps[V], x: V) -> V:
    return steps.div(Lanes(steps, F32).number(1.0), steps.sqrt(x))


def rsqrt_f64(steps: Steps[V], x: V) -> V:
    return steps.div(Lanes(steps, F64).number(1.0), steps.sqrt(x))
