"""Recipes of the Bessel functions j0, j1, y0, y1, and of the modified ones i0 and i1.

Below 8, the functions are polynomials with their zeros divided out, on two or three intervals, so that the
results near a zero keep their digits; y0 and y1 have the logarithm of their first part beside. From 8 on,
amplitude and phase are polynomials in 1 / x**2, and the phase joins the reduced argument of sin and cos.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from blocklang.maths import exponential, logarithm, trigonometric
from blocklang.maths import special_coefficients as special
from blocklang.maths.formats import F64, Lanes
from blocklang.maths.steps import Steps, V

FAR = 8.0
TINY = 2.0**-28
TWO_OVER_PI = special.TWO_OVER_PI[0]
HALF_PI, HALF_PI_REST = special.PI[0] / 2, special.PI[1] / 2
QUARTER_PI, QUARTER_PI_REST = special.PI[0] / 4, special.PI[1] / 4

Piece = tuple[tuple[float, ...], tuple[float, ...]]
# Per order: where the second piece begins, and for each piece the zero, the map of x**2, the polynomial.
J_PIECES = (
    (
        4.0,
        (special.J0_ZERO1, (0.125, -1.0), special.J0_LOW),
        (special.J0_ZERO2, (0.03125, -1.25), special.J0_HIGH),
    ),
    (
        5.5,
        (special.J1_ZERO1, (0.0625, -1.0), special.J1_LOW),
        (special.J1_ZERO2, (0.0625, -3.0), special.J1_HIGH),
    ),
)
Y_LOW = ((special.Y0_ZERO1, special.Y0_LOW), (special.Y1_ZERO1, special.Y1_LOW))
# Per order: pieces beyond the first, each with where it begins, its zero, its centre and its polynomial.
Y_PIECES = (
    (
        (3.0, special.Y0_ZERO2, 4.25, special.Y0_MIDDLE),
        (5.5, special.Y0_ZERO3, 6.75, special.Y0_HIGH),
    ),
    ((4.0, special.Y1_ZERO2, 6.0, special.Y1_HIGH),),
)
FAR_TABLES = ((special.AMPLITUDE0, special.PHASE0), (special.AMPLITUDE1, special.PHASE1))


def chosen(lanes: Lanes[V], condition: V, a: Sequence[float], b: Sequence[float]) -> list[V]:
    """Constants of one list or the other, zeros behind the shorter."""
    size = max(len(a), len(b))
    padded = [tuple(numbers) + (0.0,) * (size - len(numbers)) for numbers in (a, b)]
    return [
        lanes.steps.select(condition, lanes.number(one), lanes.number(other))
        for one, other in zip(*padded, strict=True)
    ]


def horner(lanes: Lanes[V], x: V, constants: Sequence[V]) -> V:
    *rest, value = constants
    for constant in reversed(rest):
        value = lanes.steps.fma(value, x, constant)
    return value


def j_near(lanes: Lanes[V], order: int, x: V) -> V:
    """J of 0 <= x <= 8."""
    steps = lanes.steps
    border, low, high = J_PIECES[order]
    second = steps.ge(x, lanes.number(border))
    zero, zero_rest = chosen(lanes, second, high[0], low[0])
    factor, shift = chosen(lanes, second, high[1], low[1])
    constants = chosen(lanes, second, high[2], low[2])
    w = steps.fma(steps.mul(x, x), factor, shift)
    value = steps.mul(horner(lanes, w, constants), steps.add(x, zero))
    value = steps.mul(value, steps.sub(steps.sub(x, zero), zero_rest))
    return steps.mul(value, x) if order else value


def y_near(lanes: Lanes[V], order: int, x: V) -> V:
    """Y of 0 < x <= 8."""
    steps = lanes.steps
    zero, zero_rest = Y_LOW[order][0]
    square = steps.mul(x, x)
    distance = steps.sub(steps.sub(x, lanes.number(zero)), lanes.number(zero_rest))
    smooth = steps.mul(
        lanes.polynomial(square, Y_LOW[order][1]), steps.mul(distance, steps.add(x, lanes.number(zero)))
    )
    if order:
        smooth = steps.div(smooth, x)
    # log(x / zero), near the zero by log1p.
    close = steps.gt(x, lanes.number(zero / 2))
    relative = steps.div(distance, lanes.number(zero))
    near_log = logarithm.log1p(steps, logarithm.TABLE_F64, steps.select(close, relative, lanes.number(0.0)))
    far_log = steps.sub(logarithm.log(steps, logarithm.TABLE_F64, x), lanes.number(math.log(zero)))
    log = steps.select(close, near_log, far_log)
    value = steps.fma(steps.mul(log, lanes.number(TWO_OVER_PI)), j_near(lanes, order, x), smooth)
    for begin, (other, other_rest), centre, polynomial in Y_PIECES[order]:
        u = steps.sub(x, lanes.number(centre))
        offset = steps.sub(steps.sub(x, lanes.number(other)), lanes.number(other_rest))
        piece = steps.mul(offset, lanes.polynomial(u, polynomial))
        value = steps.select(steps.ge(x, lanes.number(begin)), piece, value)
    return value


def far(lanes: Lanes[V], order: int, x: V, *, second: bool) -> V:
    """sqrt(2 / (pi x)) A cos(x - (2 order + 1) pi/4 + B), or its sin, of x >= 8.

    The reduced argument and B and the multiple of pi/4 are put together in two parts, and once more reduced.
    """
    steps = lanes.steps
    amplitude, phase = FAR_TABLES[order]
    inverse = steps.div(lanes.number(1.0), x)
    z = steps.mul(inverse, inverse)
    _, quadrant, (r, r_rest) = trigonometric.reduce_f64(steps, x)
    b = steps.mul(inverse, lanes.polynomial(z, phase))
    # r lies in +-pi/4, b is small: r - pi/4 + b is in the lower half, and is moved up if it is far below 0.
    high, low = lanes.fast_two_sum(r, b)
    swapped, swapped_low = lanes.fast_two_sum(b, r)
    larger = steps.ge(steps.abs(r), steps.abs(b))
    high, low = steps.select(larger, high, swapped), steps.select(larger, low, swapped_low)
    low = steps.add(low, r_rest)
    negative = steps.lt(high, lanes.number(0.0))
    quarter = steps.select(negative, lanes.number(QUARTER_PI), lanes.number(-QUARTER_PI))
    quarter_rest = steps.select(negative, lanes.number(QUARTER_PI_REST), lanes.number(-QUARTER_PI_REST))
    angle, lost = lanes.fast_two_sum(quarter, high)
    rest = steps.add(steps.add(lost, low), quarter_rest)
    # cos(t - pi/2) = sin(t), and so on: quarter turns added to those of the sine.
    turns = (0 if second else 1) - order
    fall = steps.select(negative, lanes.integer(-1), lanes.integer(0))
    quadrant = steps.iadd(steps.iadd(quadrant, fall), lanes.integer(turns))
    parts = trigonometric.select_pair(
        lanes,
        trigonometric.is_odd(lanes, quadrant),
        trigonometric.cosine_parts_f64(lanes, angle, rest),
        trigonometric.sine_parts_f64(lanes, angle, rest),
    )
    value = trigonometric.with_sign(lanes, steps.add(*parts), steps.shl(quadrant, lanes.integer(62)))
    size = steps.mul(
        steps.sqrt(steps.mul(inverse, lanes.number(TWO_OVER_PI))), lanes.polynomial(z, amplitude)
    )
    return steps.mul(size, value)


def first_kind(steps: Steps[V], order: int, x: V) -> V:
    lanes = Lanes(steps, F64)
    size = steps.abs(x)
    large = steps.gt(size, lanes.number(FAR))
    near = j_near(lanes, order, lanes.at_most(size, FAR))
    if not order:  # exactly 1 at 0
        near = steps.select(steps.lt(size, lanes.number(TINY)), lanes.number(1.0), near)
    value = steps.select(large, far(lanes, order, lanes.at_least(size, FAR), second=False), near)
    value = steps.select(steps.eq(size, lanes.number(math.inf)), lanes.number(0.0), value)
    return trigonometric.with_sign(lanes, value, lanes.bits_of(x)) if order else value


def second_kind(steps: Steps[V], order: int, x: V) -> V:
    lanes = Lanes(steps, F64)
    zero = lanes.number(0.0)
    large = steps.gt(x, lanes.number(FAR))
    near = y_near(lanes, order, lanes.at_most(x, FAR))
    value = steps.select(large, far(lanes, order, lanes.at_least(x, FAR), second=True), near)
    value = steps.select(steps.eq(x, lanes.number(math.inf)), zero, value)
    value = steps.select(steps.eq(x, zero), lanes.number(-math.inf), value)
    return steps.select(steps.lt(x, zero), lanes.number(math.nan), value)


def j0_f64(steps: Steps[V], x: V) -> V:
    return first_kind(steps, 0, x)


def j1_f64(steps: Steps[V], x: V) -> V:
    return first_kind(steps, 1, x)


def y0_f64(steps: Steps[V], x: V) -> V:
    return second_kind(steps, 0, x)


def y1_f64(steps: Steps[V], x: V) -> V:
    return second_kind(steps, 1, x)


def modified(steps: Steps[V], order: int, x: V) -> V:
    """exp(x) P(1 / x) / sqrt(x) from 8 on, a polynomial in x**2 below."""
    lanes = Lanes(steps, F64)
    size = steps.abs(x)
    low, high = ((special.I0_LOW, special.I0_HIGH), (special.I1_LOW, special.I1_HIGH))[order]
    small = lanes.at_most(size, FAR)
    near = lanes.polynomial(steps.mul(small, small), low)
    if order:
        near = steps.mul(near, small)
    large = lanes.at_most(lanes.at_least(size, FAR), 720.0)
    inverse = steps.div(lanes.number(1.0), large)
    factor = steps.mul(lanes.polynomial(inverse, high), steps.sqrt(inverse))
    value = exponential.exp_times(
        lanes, exponential.TABLE_F64, (large, lanes.number(0.0)), (factor, lanes.number(0.0))
    )
    value = steps.select(steps.gt(size, lanes.number(FAR)), value, near)
    return trigonometric.with_sign(lanes, value, lanes.bits_of(x)) if order else value


def i0_f64(steps: Steps[V], x: V) -> V:
    return modified(steps, 0, x)


def i1_f64(steps: Steps[V], x: V) -> V:
    return modified(steps, 1, x)
