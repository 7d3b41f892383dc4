"""Recipe of pow: 2**(y log2|x|).

The f32 function computes in f64 and rounds once. The f64 function carries the logarithm, and its product with
y, in two parts: an error of 2**-53 in a logarithm of 1000 would be 2**-43 in the result.
"""

from __future__ import annotations

import math

from blocklang.maths import coefficients, exponential, logarithm
from blocklang.maths.formats import F64, Lanes
from blocklang.maths.steps import Steps, V


def pow_f32(steps: Steps[V], x: V, y: V) -> V:
    lanes = Lanes(steps, F64)
    wide_x, wide_y = steps.cast(x, "f64"), steps.cast(y, "f64")
    size = steps.abs(wide_x)
    k, f = logarithm.split(lanes, logarithm.TABLE_F64, size)
    high, low = coefficients.LOG2_E_F64
    tail = steps.mul(f, lanes.polynomial(f, (low, *coefficients.POW_LOG2_F32)))
    log2 = logarithm.with_limits(lanes, size, steps.add(k, steps.fma(f, lanes.number(high), tail)))
    # Beyond these the f32 result is infinite or 0, and the powers of two in between are normal in f64.
    exponent = lanes.at_least(lanes.at_most(steps.mul(wide_y, log2), 130.0), -160.0)
    magic = lanes.number(F64.rounding_magic + F64.bias)
    shifted = steps.add(exponent, magic)
    r = steps.sub(exponent, steps.sub(shifted, magic))
    power = exponential.power_of_two(lanes, lanes.bits_of(shifted))
    value = steps.mul(lanes.polynomial(r, (1.0, *coefficients.POW_EXP2_F32)), power)
    return steps.cast(with_special_cases(lanes, wide_x, wide_y, value), "f32")


def pow_f64(steps: Steps[V], x: V, y: V) -> V:
    lanes = Lanes(steps, F64)
    size = steps.abs(x)
    log_high, log_low = precise_log2(lanes, size)
    log_high = logarithm.with_limits(lanes, size, log_high)
    product, rest = lanes.two_product(y, log_high)
    rest = steps.fma(y, log_low, rest)
    exponent = lanes.at_least(lanes.at_most(product, 1025.0), -1076.0)
    # Where the product was cut, or is not finite, its rest means nothing.
    rest = steps.select(steps.eq(exponent, product), rest, lanes.number(0.0))
    magic = lanes.number(F64.rounding_magic + 2 * F64.bias)
    shifted = steps.add(exponent, magic)
    r = steps.add(steps.sub(exponent, steps.sub(shifted, magic)), rest)
    value = exponential.scale_by_power(
        lanes, lanes.polynomial(r, (1.0, *coefficients.EXP2_F64)), lanes.bits_of(shifted)
    )
    return with_special_cases(lanes, x, y, value)


def precise_log2(lanes: Lanes[V], x: V) -> tuple[V, V]:
    """log2(x) of a positive finite number in two parts, to about 2**-68 of it.

    x = 2**k m, s = (m - 1) / (m + 1), log(m) = 2 atanh(s) = 2 (s + s**3 P(s**2)).
    """
    steps = lanes.steps
    k, f = logarithm.split(lanes, logarithm.TABLE_F64, x)
    s, s_rest = divide_by_next(lanes, f)
    square, square_rest = lanes.two_product(s, s)
    square_rest = steps.fma(steps.add(s, s), s_rest, square_rest)
    value, value_rest = lanes.precise_polynomial(
        square, coefficients.POW_ATANH_F64, coefficients.POW_ATANH_F64_REST, square_rest
    )
    slope, slope_rest = multiply(lanes, (square, square_rest), (value, value_rest))
    cube, cube_rest = multiply(lanes, (s, s_rest), (slope, slope_rest))
    high, low = lanes.fast_two_sum(s, cube)
    low = steps.add(low, steps.add(s_rest, cube_rest))
    factor = (lanes.number(coefficients.TWO_LOG2_E[0]), lanes.number(coefficients.TWO_LOG2_E[1]))
    high, low = multiply(lanes, (high, low), factor)
    total, lost = lanes.fast_two_sum(k, high)
    return lanes.fast_two_sum(total, steps.add(lost, low))


def divide_by_next(lanes: Lanes[V], f: V) -> tuple[V, V]:
    """f / (2 + f) in two parts."""
    steps = lanes.steps
    divisor, divisor_rest = lanes.fast_two_sum(lanes.number(2.0), f)
    inverse = steps.div(lanes.number(1.0), divisor)
    s = steps.mul(f, inverse)
    against = steps.neg(s)
    residual = steps.fma(against, divisor_rest, steps.fma(against, divisor, f))
    return s, steps.mul(residual, inverse)


def multiply(lanes: Lanes[V], a: tuple[V, V], b: tuple[V, V]) -> tuple[V, V]:
    """The product of two values in two parts, without the product of their rests."""
    high, low = lanes.two_product(a[0], b[0])
    return high, lanes.steps.fma(a[0], b[1], lanes.steps.fma(a[1], b[0], low))


def with_special_cases(lanes: Lanes[V], x: V, y: V, value: V) -> V:
    """Give the sign of x where y is odd, NaN where x < 0 and y is not integral, and the results that are 1.

    value is |x|**y, right but where |x| or y is 1, 0 or infinite against each other (1**inf, 0**0, inf**0).
    """
    steps = lanes.steps
    zero, one = lanes.number(0.0), lanes.number(1.0)
    size = steps.abs(x)
    integral = steps.eq(steps.round_even(y), y)
    half = steps.mul(y, lanes.number(0.5))
    odd = steps.logical_and(integral, steps.ne(steps.round_even(half), half))
    value = steps.select(steps.logical_and(steps.eq(size, one), steps.eq(y, y)), one, value)
    value = steps.select(odd, lanes.with_sign_of(value, x), value)
    outside = steps.logical_and(steps.lt(x, zero), steps.lt(size, lanes.number(math.inf)))
    outside = steps.logical_and(outside, steps.logical_not(integral))
    value = steps.select(outside, lanes.number(math.nan), value)
    always_one = steps.logical_or(steps.eq(x, one), steps.eq(y, zero))
    return steps.select(always_one, one, value)
