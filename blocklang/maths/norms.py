"""Recipes of the lengths of vectors of 2, 3 and 4 components, and of their reciprocals.

The components are scaled by a power of two that keeps squares in range; the squares are summed in two parts,
and the root is corrected by what it misses. f32 computes in f64, where squares of f32 are exact.
"""

from __future__ import annotations

import math

from blocklang.maths.formats import F64, Lanes
from blocklang.maths.steps import Steps, V

HUGE, SMALL = 2.0**500, 2.0**-400
LIFT = 600


def scaled_norm(lanes: Lanes[V], components: tuple[V, ...]) -> tuple[V, V, V]:
    """Return the length, the power of two it is to be multiplied by, and its inverse."""
    steps = lanes.steps
    sizes = [steps.abs(c) for c in components]
    largest = sizes[0]
    for size in sizes[1:]:
        largest = steps.maximum(largest, size)
    one = lanes.number(1.0)
    huge, small = steps.gt(largest, lanes.number(HUGE)), steps.lt(largest, lanes.number(SMALL))
    up, down = lanes.number(2.0**LIFT), lanes.number(2.0**-LIFT)
    factor = steps.select(huge, down, steps.select(small, up, one))
    back = steps.select(huge, up, steps.select(small, down, one))
    total, rest = lanes.number(0.0), lanes.number(0.0)
    for size in sizes:
        scaled = steps.mul(size, factor)
        square, lost = lanes.two_product(scaled, scaled)
        larger, smaller = steps.maximum(total, square), steps.minimum(total, square)
        total, error = lanes.fast_two_sum(larger, smaller)
        rest = steps.add(rest, steps.add(lost, error))
    root = steps.sqrt(total)
    residual = steps.add(steps.fma(steps.neg(root), root, total), rest)
    corrected = steps.add(root, steps.div(residual, steps.add(root, root)))
    usable = steps.logical_and(steps.gt(root, lanes.number(0.0)), steps.lt(root, lanes.number(math.inf)))
    root = steps.select(usable, corrected, root)
    # A NaN counts, but for an infinity beside it.
    infinite = steps.eq(largest, lanes.number(math.inf))
    number = steps.eq(sizes[0], sizes[0])
    for size in sizes[1:]:
        number = steps.logical_and(number, steps.eq(size, size))
    root = steps.select(number, root, lanes.number(math.nan))
    return steps.select(infinite, largest, root), back, factor


def norm_f64(steps: Steps[V], *components: V) -> V:
    root, back, _ = scaled_norm(Lanes(steps, F64), components)
    return steps.mul(root, back)


def reciprocal_f64(steps: Steps[V], *components: V) -> V:
    lanes = Lanes(steps, F64)
    root, _, factor = scaled_norm(lanes, components)
    return steps.mul(steps.div(lanes.number(1.0), root), factor)


def squares_f32(steps: Steps[V], components: tuple[V, ...]) -> V:
    """The root of the sum of squares, in f64; infinity beside a NaN counts."""
    lanes = Lanes(steps, F64)
    wide = [steps.cast(c, "f64") for c in components]
    total = steps.mul(wide[0], wide[0])
    for component in wide[1:]:
        total = steps.fma(component, component, total)
    infinity = lanes.number(math.inf)
    infinite = steps.eq(steps.abs(wide[0]), infinity)
    for component in wide[1:]:
        infinite = steps.logical_or(infinite, steps.eq(steps.abs(component), infinity))
    return steps.select(infinite, infinity, steps.sqrt(total))


def norm_f32(steps: Steps[V], *components: V) -> V:
    return steps.cast(squares_f32(steps, components), "f32")


def reciprocal_f32(steps: Steps[V], *components: V) -> V:
    one = Lanes(steps, F64).number(1.0)
    return steps.cast(steps.div(one, squares_f32(steps, components)), "f32")
