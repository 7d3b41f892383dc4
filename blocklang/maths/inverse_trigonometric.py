"""Recipes of atan, atan2, asin and acos.

Each is base + sign w + sign w**3 P(w**2), for a w that is at most 1 (atan) or 1/2 (asin) and a base that is a
multiple of pi/2 in two parts: the first sum is kept in two parts as well, so that one rounding counts.

The f32 functions compute in f64 and round once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from blocklang.maths import coefficients
from blocklang.maths.formats import F64, Lanes
from blocklang.maths.steps import Steps, V

HALF_PI, HALF_PI_REST, _ = coefficients.HALF_PI


def finish(lanes: Lanes[V], base: tuple[V, V], w: V, square: V, polynomial: Sequence[float]) -> V:
    """base + w + w**3 P(square), w with its sign."""
    steps = lanes.steps
    high, low = lanes.fast_two_sum(base[0], w)
    cube = steps.mul(w, square)
    return steps.add(high, steps.fma(cube, lanes.polynomial(square, polynomial), steps.add(low, base[1])))


def choose_base(lanes: Lanes[V], condition: V, multiple: int, other: tuple[V, V]) -> tuple[V, V]:
    """`multiple` times pi/2 where the condition holds."""
    steps = lanes.steps
    parts = (lanes.number(multiple * HALF_PI), lanes.number(multiple * HALF_PI_REST))
    return steps.select(condition, parts[0], other[0]), steps.select(condition, parts[1], other[1])


def no_base(lanes: Lanes[V]) -> tuple[V, V]:
    return lanes.number(0.0), lanes.number(0.0)


def flip(lanes: Lanes[V], condition: V, value: V) -> V:
    return lanes.steps.select(condition, lanes.steps.neg(value), value)


def atan(lanes: Lanes[V], x: V, polynomial: Sequence[float]) -> V:
    """atan(|x|), beyond 1 as pi/2 - atan(1/|x|), with the sign of x."""
    steps = lanes.steps
    size, one = steps.abs(x), lanes.number(1.0)
    large = steps.gt(size, one)
    w = steps.div(steps.select(large, lanes.number(-1.0), size), steps.select(large, size, one))
    base = choose_base(lanes, large, 1, no_base(lanes))
    return lanes.with_sign_of(finish(lanes, base, w, steps.mul(w, w), polynomial), x)


def atan2(lanes: Lanes[V], y: V, x: V, polynomial: Sequence[float], *, precise: bool = False) -> V:
    """The angle of the quotient of the smaller over the larger size, put into the octant of the point."""
    steps = lanes.steps
    zero, one = lanes.number(0.0), lanes.number(1.0)
    y_size, x_size = steps.abs(y), steps.abs(x)
    steep = steps.gt(y_size, x_size)
    small, large = steps.select(steep, x_size, y_size), steps.select(steep, y_size, x_size)
    # 0/0 is angle 0, inf/inf that of 1.
    equal = steps.select(steps.eq(large, zero), zero, one)
    w = steps.select(steps.eq(small, large), equal, steps.div(small, large))
    left = steps.lt(lanes.bits_of(x), lanes.integer(0))
    falling = either(lanes, steep, left)
    base = choose_base(lanes, steep, 1, choose_base(lanes, left, 2, no_base(lanes)))
    if precise:
        rest = flip(lanes, falling, quotient_rest(lanes, small, large, w))
        base = base[0], steps.add(base[1], rest)
    angle = finish(lanes, base, flip(lanes, falling, w), steps.mul(w, w), polynomial)
    # A comparison with NaN may have dropped it.
    angle = steps.select(steps.eq(x, x), angle, x_size)
    return lanes.with_sign_of(steps.select(steps.eq(y, y), angle, y_size), y)


def quotient_rest(lanes: Lanes[V], numerator: V, denominator: V, quotient: V) -> V:
    """What a quotient of at most 1 lost, or 0 where that is not known: at infinities, and underflow."""
    steps = lanes.steps
    residual = steps.fma(steps.neg(quotient), denominator, numerator)
    rest = steps.div(residual, denominator)
    sound = steps.lt(steps.abs(rest), lanes.number(2.0**-lanes.format.fraction_bits))
    return steps.select(sound, rest, lanes.number(0.0))


def either(lanes: Lanes[V], a: V, b: V) -> V:
    """One condition and not the other."""
    steps = lanes.steps
    both = steps.logical_and(a, b)
    return steps.logical_and(steps.logical_or(a, b), steps.logical_not(both))


def reduce_arc(lanes: Lanes[V], x: V) -> tuple[V, V, V]:
    """Return w, its square, and whether |x| is large: w = |x|, or sqrt((1 - |x|) / 2) where it is."""
    steps = lanes.steps
    size, half = steps.abs(x), lanes.number(0.5)
    large = steps.gt(size, half)
    square = steps.select(large, steps.fma(size, lanes.number(-0.5), half), steps.mul(x, x))
    return steps.select(large, steps.sqrt(square), size), square, large


def asin(lanes: Lanes[V], x: V, polynomial: Sequence[float]) -> V:
    """asin(|x|), beyond 1/2 as pi/2 - 2 asin(w), with the sign of x."""
    steps = lanes.steps
    w, square, large = reduce_arc(lanes, x)
    base = choose_base(lanes, large, 1, no_base(lanes))
    w = steps.select(large, steps.mul(w, lanes.number(-2.0)), w)
    return in_domain(lanes, x, lanes.with_sign_of(finish(lanes, base, w, square, polynomial), x))


def acos(lanes: Lanes[V], x: V, polynomial: Sequence[float]) -> V:
    """pi/2 - asin(x), beyond 1/2 as 2 asin(w), below -1/2 as pi - 2 asin(w)."""
    steps = lanes.steps
    w, square, large = reduce_arc(lanes, x)
    negative = steps.lt(x, lanes.number(0.0))
    base = choose_base(lanes, negative, 2, no_base(lanes))
    base = choose_base(lanes, steps.logical_not(large), 1, base)
    w = steps.select(large, steps.add(w, w), steps.neg(w))
    return in_domain(lanes, x, finish(lanes, base, flip(lanes, negative, w), square, polynomial))


def in_domain(lanes: Lanes[V], x: V, value: V) -> V:
    inside = lanes.steps.le(lanes.steps.abs(x), lanes.number(1.0))
    return lanes.steps.select(inside, value, lanes.number(math.nan))


def widened(function: Callable[..., V], polynomial: Sequence[float], steps: Steps[V], *arguments: V) -> V:
    """Compute an f32 function in f64 and round once."""
    lanes = Lanes(steps, F64)
    wide = (steps.cast(argument, "f64") for argument in arguments)
    return steps.cast(function(lanes, *wide, polynomial), "f32")


def atan_f32(steps: Steps[V], x: V) -> V:
    return widened(atan, coefficients.ATAN_F32, steps, x)


def atan_f64(steps: Steps[V], x: V) -> V:
    return atan(Lanes(steps, F64), x, coefficients.ATAN_F64)


def atan2_f32(steps: Steps[V], y: V, x: V) -> V:
    return widened(atan2, coefficients.ATAN_F32, steps, y, x)


def atan2_f64(steps: Steps[V], y: V, x: V) -> V:
    return atan2(Lanes(steps, F64), y, x, coefficients.ATAN_F64, precise=True)


def asin_f32(steps: Steps[V], x: V) -> V:
    return widened(asin, coefficients.ASIN_F32, steps, x)


def asin_f64(steps: Steps[V], x: V) -> V:
    return asin(Lanes(steps, F64), x, coefficients.ASIN_F64)


def acos_f32(steps: Steps[V], x: V) -> V:
    return widened(acos, coefficients.ASIN_F32, steps, x)


def acos_f64(steps: Steps[V], x: V) -> V:
    return acos(Lanes(steps, F64), x, coefficients.ASIN_F64)
