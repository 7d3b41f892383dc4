"""Recipes of erf and erfc.

erf is an odd polynomial near 0. Beyond, in f32, 1 - erf(x) is a polynomial with a small absolute error, until
erf rounds to 1; in f64 it is erfc(x) = exp(-x**2) P(t) / (x + 3) with t = (x - 3) / (x + 3), the
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
ERF_TAIL_MIDDLE_F32 = 2.375
# erf rounds to 1 before this, where the polynomial ends.
ERF_FAR_F32 = 4.0
# erfc underflows to 0 before this.
ERFC_FAR = 27.25
# Terms of P that its derivative, which multiplies a rounding error, needs.
SLOPE_TERMS = 6


Polynomial = tuple[tuple[float, ...], tuple[float, ...]]
ERFC_F32: Polynomial = (coefficients.ERFC_F32, ())
ERFC_F64: Polynomial = (coefficients.ERFC_F64, coefficients.ERFC_F64_REST)


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
    tail = steps.sub(lanes.number(1.0), erfc_tail(lanes, lanes.at_most(size, 6.0), ERFC_F64))
    square = steps.mul(size, size)
    head = steps.fma(size, lanes.polynomial(square, coefficients.ERF_F64), size)
    near = steps.lt(size, lanes.number(ERF_NEAR))
    return lanes.with_sign_of(steps.select(near, head, tail), x)


def erfc_f64(steps: Steps[V], x: V) -> V:
    return erfc(Lanes(steps, F64), x, ERFC_F64)


def erfc_f32(steps: Steps[V], x: V) -> V:
    wide = erfc(Lanes(steps, F64), steps.cast(x, "f64"), ERFC_F32)
    return steps.cast(wide, "f32")


def erfc(lanes: Lanes[V], x: V, polynomial: Polynomial) -> V:
    """1 - erf(x) near 0, else erfc(x) of the tail, or 2 - erfc(-x)."""
    steps = lanes.steps
    size = steps.abs(x)
    square = steps.mul(x, x)
    slope = lanes.polynomial(square, coefficients.ERF_F64)
    near_one, lost = lanes.fast_two_sum(lanes.number(1.0), steps.neg(x))
    head = steps.add(near_one, steps.fma(steps.neg(x), slope, lost))
    tail = erfc_tail(lanes, lanes.at_most(size, ERFC_FAR), polynomial)
    negative = steps.lt(x, lanes.number(0.0))
    tail = steps.select(negative, steps.sub(lanes.number(2.0), tail), tail)
    return steps.select(steps.lt(size, lanes.number(ERFC_NEAR)), head, tail)


def erfc_tail(lanes: Lanes[V], x: V, polynomial: Polynomial) -> V:
    """erfc(x) for 1/2 <= x <= 28: exp(-x**2) times `scaled_tail`."""
    steps = lanes.steps
    square, square_rest = lanes.two_product(x, x)
    return exponential.exp_times(
        lanes,
        exponential.TABLE_F64,
        (steps.neg(square), steps.neg(square_rest)),
        scaled_tail(lanes, x, polynomial),
    )


def scaled_tail(lanes: Lanes[V], x: V, polynomial: Polynomial) -> tuple[V, V]:
    """exp(x**2) erfc(x) for 1/2 <= x <= 28, in two parts: P(t) u, u = 1 / (x + 3), t = 1 - 6 u.

    What the sum, the quotient, the last step of P and the product lose is kept apart.
    """
    steps = lanes.steps
    one = lanes.number(1.0)
    divisor, divisor_rest = lanes.fast_two_sum(lanes.number(CENTRE), x)
    u = steps.div(one, divisor)
    against = steps.neg(u)
    u_rest = steps.mul(steps.fma(against, divisor_rest, steps.fma(against, divisor, one)), u)
    scale = lanes.number(-2 * CENTRE)
    shift, shift_rest = lanes.two_product(u, scale)
    t, t_rest = lanes.fast_two_sum(one, shift)
    t_rest = steps.add(t_rest, steps.fma(u_rest, scale, shift_rest))
    value, value_rest = lanes.precise_polynomial(t, *polynomial)
    slope = lanes.polynomial(t, [i * c for i, c in enumerate(polynomial[0])][1:SLOPE_TERMS])
    value_rest = steps.fma(t_rest, slope, value_rest)
    factor, factor_rest = lanes.two_product(u, value)
    return factor, steps.fma(u_rest, value, steps.fma(u, value_rest, factor_rest))
