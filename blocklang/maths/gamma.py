"""Recipes of tgamma and lgamma.

Below 8, gamma and its logarithm are polynomials on [5/4, 5/2], reached from other arguments by the recurrence
x gamma(x) = gamma(x + 1). From 8 on they follow Stirling; gamma takes the logarithm there in two parts, since
an error of 2**-53 in an exponent of 1000 would be 2**-43 in the result. Negative arguments are reflected.
"""

from __future__ import annotations

import math

from blocklang.maths import coefficients, exponential, half_turns, logarithm, power
from blocklang.maths import special_coefficients as special
from blocklang.maths.formats import F64, Lanes
from blocklang.maths.steps import Steps, V

STIRLING_FROM = 8.0
LOWEST_BASE, HIGHEST_BASE = 1.25, 2.5
SQRT_TWO_PI = 2.5066282746310002
(HALF_LOG_TWO_PI,) = special.HALF_LOG_TWO_PI
# Beyond, gamma overflows; below the second, in size, gamma(x) is 1 / x.
GAMMA_HIGHEST = 172.0
TINY = 2.0**-60
LOG_PI = 1.1447298858494002


def recur(lanes: Lanes[V], x: V) -> tuple[V, V, V]:
    """Move 0 < x < 9 to y in [5/4, 5/2): gamma(x) = gamma(y) up / down.

    Return y - 2, which is exact, and the products `up` and `down`, of which one is 1.
    """
    steps = lanes.steps
    one = lanes.number(1.0)
    first, second = steps.lt(x, lanes.number(LOWEST_BASE)), steps.lt(x, lanes.number(LOWEST_BASE - 1))
    down = steps.select(first, x, one)
    down = steps.select(second, steps.mul(x, steps.add(x, one)), down)
    up, y = one, x
    for _ in range(6):
        high = steps.ge(y, lanes.number(HIGHEST_BASE))
        y = steps.select(high, steps.sub(y, one), y)
        up = steps.select(high, steps.mul(up, y), up)
    below = steps.select(second, x, steps.sub(x, one))
    return steps.select(first, below, steps.sub(y, lanes.number(2.0))), up, down


def lgamma_positive(lanes: Lanes[V], x: V) -> V:
    steps = lanes.steps
    one, far = lanes.number(1.0), lanes.number(STIRLING_FROM)
    large = steps.ge(x, far)
    u, up, down = recur(lanes, steps.select(large, lanes.number(2.0), x))
    # One of the products is 1, and both are where x is large.
    product = steps.mul(up, down)
    factor = steps.mul(u, steps.add(u, one))
    base = steps.mul(factor, lanes.polynomial(u, special.LGAMMA))
    log = logarithm.log(steps, logarithm.TABLE_F64, steps.select(large, x, product))
    lowered = steps.lt(x, lanes.number(LOWEST_BASE))
    small = steps.add(base, steps.select(lowered, steps.neg(log), log))
    inverse = steps.div(one, steps.select(large, x, far))
    series = steps.mul(inverse, lanes.polynomial(steps.mul(inverse, inverse), special.STIRLING))
    series = steps.add(series, lanes.number(HALF_LOG_TWO_PI - 0.5))
    main = steps.fma(steps.sub(x, lanes.number(0.5)), steps.sub(log, one), series)
    value = steps.select(large, main, small)
    return steps.select(steps.eq(x, lanes.number(math.inf)), x, value)


def lgamma_f64(steps: Steps[V], x: V) -> V:
    """log|gamma(x)|; for negative x, log(pi / |x sin(pi x)|) - lgamma(|x|)."""
    lanes = Lanes(steps, F64)
    zero, infinity = lanes.number(0.0), lanes.number(math.inf)
    size = steps.abs(x)
    value = lgamma_positive(lanes, size)
    sine = steps.abs(half_turns.sinpi_f64(steps, size))
    log = logarithm.log(steps, logarithm.TABLE_F64, steps.mul(size, sine))
    reflected = steps.sub(steps.sub(lanes.number(LOG_PI), log), value)
    tiny = steps.lt(size, lanes.number(TINY))
    small = steps.neg(logarithm.log(steps, logarithm.TABLE_F64, size))
    value = steps.select(steps.lt(x, zero), reflected, value)
    value = steps.select(tiny, small, value)
    pole = steps.logical_and(steps.le(x, zero), steps.eq(steps.floor(x), x))
    return steps.select(pole, infinity, value)


def gamma_parts(lanes: Lanes[V], x: V) -> tuple[V, V]:
    """gamma(x) of 0 < x <= 190 as a number of moderate size, and bits whose lowest are the exponent of a
    power of two plus twice the bias.
    """
    steps = lanes.steps
    far, one = lanes.number(STIRLING_FROM), lanes.number(1.0)
    large = steps.ge(x, far)
    u, up, down = recur(lanes, steps.select(large, lanes.number(2.0), x))
    small = steps.div(steps.mul(lanes.polynomial(u, special.GAMMA), up), down)
    x = steps.select(large, x, far)
    # log2(gamma(x) / (sqrt(2 pi) exp(series))) = (x - 1/2) log2(x) - x log2(e), in two parts.
    log, log_rest = power.precise_log2(lanes, x)
    log2_e, log2_e_rest = (lanes.number(part) for part in coefficients.LOG2_E_F64)
    factor = steps.sub(x, lanes.number(0.5))
    high, high_rest = lanes.two_product(factor, log)
    high_rest = steps.fma(factor, log_rest, high_rest)
    less, less_rest = lanes.two_product(steps.neg(x), log2_e)
    less_rest = steps.fma(steps.neg(x), log2_e_rest, less_rest)
    total, lost = lanes.fast_two_sum(high, less)
    rest = steps.add(lost, steps.add(high_rest, less_rest))
    magic = lanes.number(F64.rounding_magic + 2 * F64.bias)
    shifted = steps.add(total, magic)
    r = steps.add(steps.sub(total, steps.sub(shifted, magic)), rest)
    mantissa = lanes.polynomial(r, (1.0, *coefficients.EXP2_F64))
    inverse = steps.div(one, x)
    series = steps.mul(inverse, lanes.polynomial(steps.mul(inverse, inverse), special.STIRLING))
    # exp(series) for series <= 1/96, as 1 + e.
    e = steps.mul(series, lanes.polynomial(series, tuple(1 / math.factorial(n) for n in range(1, 8))))
    mantissa = steps.mul(mantissa, lanes.number(SQRT_TWO_PI))
    mantissa = steps.fma(mantissa, e, mantissa)
    bits = steps.select(large, lanes.bits_of(shifted), lanes.bits_of(magic))
    return steps.select(large, mantissa, small), bits


def tgamma_f64(steps: Steps[V], x: V) -> V:
    """gamma(x); for negative x, -pi / (|x| sin(pi |x|) gamma(|x|)); NaN at negative integers."""
    lanes = Lanes(steps, F64)
    zero, one = lanes.number(0.0), lanes.number(1.0)
    size = lanes.at_most(steps.abs(x), 190.0)
    tiny = steps.lt(size, lanes.number(TINY))
    mantissa, bits = gamma_parts(lanes, steps.select(tiny, one, size))
    positive = exponential.scale_by_power(lanes, mantissa, bits)
    sine = half_turns.sinpi_f64(steps, size)
    quotient = steps.div(lanes.number(-math.pi), steps.mul(steps.mul(size, sine), mantissa))
    # The exponent of the reciprocal, plus twice the bias: bits are those of the magic number plus that.
    magic = lanes.bits_of(lanes.number(F64.rounding_magic + 2 * F64.bias))
    against = steps.isub(steps.iadd(magic, magic), bits)
    negative = exponential.scale_by_power(lanes, quotient, against)
    value = steps.select(steps.lt(x, zero), negative, positive)
    infinity = lanes.number(math.inf)
    value = steps.select(steps.gt(x, lanes.number(GAMMA_HIGHEST)), infinity, value)
    value = steps.select(tiny, steps.div(one, x), value)
    # Far below, all is 0; its sign follows the parity of the floor.
    below = steps.floor(x)
    half = steps.mul(below, lanes.number(0.5))
    odd = steps.ne(steps.floor(half), half)
    vanished = steps.select(odd, lanes.number(-0.0), zero)
    value = steps.select(steps.lt(x, lanes.number(-188.0)), vanished, value)
    whole = steps.logical_and(steps.lt(x, zero), steps.eq(below, x))
    value = steps.select(whole, lanes.number(math.nan), value)
    return steps.select(steps.eq(x, x), value, x)
