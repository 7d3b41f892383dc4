"""Recipes of erf and erfc.

erf is an odd polynomial near 0. Beyond, in f32, 1 - erf(x) is a polynomial with a small absolute error, until
erf rounds to 1; in f64 it is erfc(x) = exp(-x**2) P(t) / (1 + 2 x) with t = (x - 3) / (x + 3), the
exponential taken of both parts of the exact square.

erfc in f32 is computed in f64 and rounded once.
"""

from __future__ import annotations

from blocklang.maths import coefficients, exponential
from blocklang.maths.formats import F32, F64, Lanes
from blocklang.maths.steps import Steps, V

CENTRE = 3.0
ERF_NEAR = 1.0
ERFC_NEAR = 0.5
ERF_TAIL_MIDDLE_F32 = 2.5
# erf rounds to 1 before this, where the polynomial ends.
ERF_FAR_F32 = 4.0
# erfc underflows to 0 before this.
ERFC_FAR = 27.25


def erf_f32(steps: Steps[V], x: V) -> V:
    lanes = Lanes(steps, F32)
    size = steps.abs(x)
    square = steps.mul(size, size)
    head = steps.fma(size, lanes.polynomial(square, coefficients.ERF_F32), size)
    clamped = lanes.at_most(size, ERF_FAR_F32)
    shifted = steps.sub(clamped, lanes.number(ERF_TAIL_MIDDLE_F32))
    tail = steps.sub(lanes.number(1.0), lanes.polynomial(shifted, coefficients.ERF_TAIL_F32))
    near = steps.lt(size, lanes.number(ERF_NEAR))
    return lanes.with_sign_of(steps.select(near, head, tail), x)


def erf_f64(steps: Steps[V], x: V) -> V:
    lanes = Lanes(steps, F64)
    size = steps.abs(x)
    # Past 6 the tail is far below the last place of 1.
    tail = steps.sub(lanes.number(1.0), erfc_tail(lanes, lanes.at_most(size, 6.0), coefficients.ERFC_F64))
    square = steps.mul(size, size)
    head = steps.fma(size, lanes.polynomial(square, coefficients.ERF_F64), size)
    near = steps.lt(size, lanes.number(ERF_NEAR))
    return lanes.with_sign_of(steps.select(near, head, tail), x)


def erfc_f64(steps: Steps[V], x: V) -> V:
    return erfc(Lanes(steps, F64), x, coefficients.ERFC_F64)


def erfc_f32(steps: Steps[V], x: V) -> V:
    wide = erfc(Lanes(steps, F64), steps.cast(x, "f64"), coefficients.ERFC_F32)
    return steps.cast(wide, "f32")


def erfc(lanes: Lanes[V], x: V, polynomial: tuple[float, ...]) -> V:
    """1 - erf(x) near 0, else erfc(x) of the tail, or 2 - erfc(-x)."""
    steps = lanes.steps
    size = steps.abs(x)
    square = steps.mul(x, x)
    slope = lanes.polynomial(square, coefficients.ERF_F64)
    head = steps.fma(steps.neg(x), slope, steps.sub(lanes.number(1.0), x))
    tail = erfc_tail(lanes, lanes.at_most(size, ERFC_FAR), polynomial)
    negative = steps.lt(x, lanes.number(0.0))
    tail = steps.select(negative, steps.sub(lanes.number(2.0), tail), tail)
    return steps.select(steps.lt(size, lanes.number(ERFC_NEAR)), head, tail)


def erfc_tail(lanes: Lanes[V], x: V, polynomial: tuple[float, ...]) -> V:
    """erfc(x) for 1/2 <= x <= 28."""
    steps = lanes.steps
    square = steps.mul(x, x)
    lost = steps.fma(x, x, steps.neg(square))
    centre = lanes.number(CENTRE)
    t = steps.div(steps.sub(x, centre), steps.add(x, centre))
    factor = steps.div(lanes.polynomial(t, polynomial), steps.fma(x, lanes.number(2.0), lanes.number(1.0)))
    return exponential.exp_times(lanes, exponential.TABLE_F64, steps.neg(square), steps.neg(lost), factor)
