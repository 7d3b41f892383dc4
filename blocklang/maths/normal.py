"""Recipes of erfcx, of the normal distribution, and of the inverses erfinv, erfcinv and normcdfinv.

erfcx(x) = exp(x**2) erfc(x) is the factor of erfc's tail. The inverses begin with an approximation to six
digits and improve it by one step of Halley's iteration: on erf where the result is small, else on the
logarithm of erfc, which neither underflows nor loses digits.
"""

from __future__ import annotations

import math

from blocklang.maths import coefficients, error_function, exponential, logarithm
from blocklang.maths import special_coefficients as special
from blocklang.maths.error_function import ERFC_F64, ERFC_NEAR
from blocklang.maths.formats import F64, Lanes
from blocklang.maths.steps import Steps, V

# Where the asymptotic series of erfcx takes over: sum of (-1)**n (2 n - 1)!! / (2 x**2)**n / (x sqrt(pi)).
ERFCX_FAR = 27.5
ERFCX_SERIES = (1.0, -0.5, 0.75, -1.875, 6.5625, -29.53125, 162.421875, -1055.7421875)
# exp(x**2) overflows before.
ERFCX_LOWEST = -26.75
SQRT_HALF = 0.7071067811865476
SQRT_2, SQRT_2_REST = 1.4142135623730951, -9.667293313452913e-17
ONE_OVER_SQRT_PI = 0.5641895835477563
HALF_SQRT_PI = 0.886226925452758
# Below this, normcdf is 0.
NORMCDF_LOWEST = -38.6


def head_of_erf(lanes: Lanes[V], x: V) -> V:
    """erf(x) for |x| < 1."""
    square = lanes.steps.mul(x, x)
    return lanes.steps.fma(x, lanes.polynomial(square, coefficients.ERF_F64), x)


def erfcx_positive(lanes: Lanes[V], x: V) -> tuple[V, V]:
    """exp(x**2) erfc(x) from 1/2 on, in two parts."""
    steps = lanes.steps
    far = steps.gt(x, lanes.number(ERFCX_FAR))
    value, rest = error_function.scaled_tail(lanes, lanes.at_most(x, ERFCX_FAR), ERFC_F64)
    inverse = steps.div(lanes.number(1.0), x)
    series = lanes.polynomial(steps.mul(inverse, inverse), ERFCX_SERIES)
    asymptotic = steps.mul(steps.mul(inverse, lanes.number(ONE_OVER_SQRT_PI)), series)
    return steps.select(far, asymptotic, value), steps.select(far, lanes.number(0.0), rest)


def erfcx_f64(steps: Steps[V], x: V) -> V:
    lanes = Lanes(steps, F64)
    size = steps.abs(x)
    near = steps.lt(size, lanes.number(ERFC_NEAR))
    square, square_rest = lanes.two_product(x, x)
    limited = lanes.at_most(size, -ERFCX_LOWEST)
    clamped, clamped_rest = lanes.two_product(limited, limited)
    one, zero, two = lanes.number(1.0), lanes.number(0.0), lanes.number(2.0)
    # exp(x**2) erfc(x) near 0, and twice exp(x**2), for negative x.
    complement, complement_rest = lanes.fast_two_sum(one, steps.neg(head_of_erf(lanes, x)))
    power = exponential.exp_times(
        lanes,
        exponential.TABLE_F64,
        (steps.select(near, square, clamped), steps.select(near, square_rest, clamped_rest)),
        (steps.select(near, complement, two), steps.select(near, complement_rest, zero)),
    )
    value, rest = erfcx_positive(lanes, size)
    positive = steps.add(value, rest)
    negative = steps.sub(power, positive)
    tail = steps.select(steps.lt(x, zero), negative, positive)
    tail = steps.select(steps.lt(x, lanes.number(ERFCX_LOWEST)), lanes.number(math.inf), tail)
    return steps.select(near, power, tail)


def normcdf_f64(steps: Steps[V], x: V) -> V:
    """erfc(-x / sqrt(2)) / 2; the exponent of the tail is exactly -x**2 / 2."""
    lanes = Lanes(steps, F64)
    half, zero = lanes.number(0.5), lanes.number(0.0)
    size = lanes.at_most(steps.abs(x), -NORMCDF_LOWEST)
    z = steps.mul(size, lanes.number(SQRT_HALF))
    square, square_rest = lanes.two_product(size, size)
    factor, factor_rest = error_function.scaled_tail(lanes, lanes.at_most(z, 27.5), ERFC_F64)
    against = lanes.number(-0.5)
    tail = exponential.exp_times(
        lanes,
        exponential.TABLE_F64,
        (steps.mul(square, against), steps.mul(square_rest, against)),
        (steps.mul(factor, half), steps.mul(factor_rest, half)),
    )
    tail = steps.select(steps.lt(x, zero), tail, steps.sub(lanes.number(1.0), tail))
    signed = lanes.with_sign_of(z, x)
    head = steps.fma(head_of_erf(lanes, signed), half, half)
    value = steps.select(steps.lt(z, lanes.number(ERFC_NEAR)), head, tail)
    return steps.select(steps.eq(x, x), value, x)


def inverse_head(lanes: Lanes[V], a: V) -> V:
    """erfinv(a) for |a| <= 1/2: y - u / (1 + y u), u = (erf(y) - a) / erf'(y)."""
    steps = lanes.steps
    y = steps.mul(a, lanes.polynomial(steps.mul(a, a), special.ERFINV_HEAD))
    square = steps.mul(y, y)
    # exp(y**2), for y <= 0.48: only the digits of the correction matter.
    growth = lanes.polynomial(square, tuple(1 / math.factorial(n) for n in range(8)))
    u = steps.mul(steps.mul(steps.sub(head_of_erf(lanes, y), a), lanes.number(HALF_SQRT_PI)), growth)
    return steps.sub(y, steps.div(u, steps.fma(y, u, lanes.number(1.0))))


def inverse_tail(lanes: Lanes[V], q: V) -> V:
    """erfcinv(q) for 0 < q <= 1/2, by Halley's step on h(y) = log(erfc(y)) - log(q).

    h' = -2 / (sqrt(pi) erfcx(y)), h'' / h' = -2 y - h'.
    """
    steps = lanes.steps
    log_q = logarithm.log(steps, logarithm.TABLE_F64, q)
    s = steps.sqrt(steps.neg(log_q))
    y = steps.mul(s, lanes.polynomial(steps.div(lanes.number(1.0), s), special.ERFCINV_TAIL))
    scaled = steps.add(*error_function.scaled_tail(lanes, y, ERFC_F64))
    square, lost = lanes.two_product(y, y)
    log_scaled = logarithm.log(steps, logarithm.TABLE_F64, scaled)
    # log(erfc(y)) - log(q): the large terms first, whose difference is exact.
    h = steps.sub(log_scaled, lost)
    h = steps.add(steps.sub(steps.neg(log_q), square), h)
    inverse_slope = steps.mul(scaled, lanes.number(-HALF_SQRT_PI))
    u = steps.mul(h, inverse_slope)
    bend = steps.fma(y, lanes.number(-2.0), steps.neg(steps.div(lanes.number(1.0), inverse_slope)))
    divisor = steps.fma(steps.mul(u, bend), lanes.number(-0.5), lanes.number(1.0))
    return steps.sub(y, steps.div(u, divisor))


def inverse(lanes: Lanes[V], a: V, q: V) -> V:
    """The y with erf(y) = a and erfc(y) = q: two views of one point, each exact where it is small."""
    steps = lanes.steps
    zero, half = lanes.number(0.0), lanes.number(0.5)
    size = steps.abs(a)
    near = steps.le(size, half)
    head = inverse_head(lanes, steps.select(near, a, zero))
    inside = steps.logical_and(steps.gt(q, zero), steps.logical_not(near))
    tail = inverse_tail(lanes, steps.select(inside, q, half))
    tail = steps.select(steps.eq(q, zero), lanes.number(math.inf), tail)
    tail = steps.select(steps.lt(q, zero), lanes.number(math.nan), tail)
    value = steps.select(near, head, lanes.with_sign_of(tail, a))
    return steps.select(steps.eq(a, a), value, a)


def erfinv_f64(steps: Steps[V], x: V) -> V:
    lanes = Lanes(steps, F64)
    return inverse(lanes, x, steps.sub(lanes.number(1.0), steps.abs(x)))


def erfcinv_f64(steps: Steps[V], x: V) -> V:
    """Beyond 1, minus the inverse of 2 - x."""
    lanes = Lanes(steps, F64)
    one = lanes.number(1.0)
    a = steps.sub(one, x)
    return inverse(lanes, a, steps.select(steps.gt(x, one), steps.sub(lanes.number(2.0), x), x))


def normcdfinv_f64(steps: Steps[V], x: V) -> V:
    """-sqrt(2) erfcinv(2 x)."""
    lanes = Lanes(steps, F64)
    half = lanes.number(0.5)
    distance = steps.sub(half, x)
    a = steps.add(distance, distance)
    q = steps.select(steps.gt(x, half), steps.sub(lanes.number(1.0), x), x)
    y = steps.neg(inverse(lanes, a, steps.add(q, q)))
    value = steps.fma(y, lanes.number(SQRT_2_REST), steps.mul(y, lanes.number(SQRT_2)))
    infinite = steps.eq(steps.abs(y), lanes.number(math.inf))
    return steps.select(infinite, y, value)
