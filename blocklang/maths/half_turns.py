"""Recipes of sinpi and cospi: the reduction is exact, and pi comes in as two parts at the end."""

from __future__ import annotations

from blocklang.maths import special_coefficients as special
from blocklang.maths import trigonometric
from blocklang.maths.formats import F64, Lanes
from blocklang.maths.steps import Steps, V


def reduce(lanes: Lanes[V], x: V) -> tuple[V, V, V]:
    """|x| = n/2 + r with |r| <= 1/4: the bits of n modulo 4, and pi r in two parts."""
    steps = lanes.steps
    size = steps.abs(x)
    # A multiple of 2 less changes nothing, and is exact.
    turns = steps.floor(steps.mul(size, lanes.number(0.5)))
    y = steps.fma(turns, lanes.number(-2.0), size)
    magic = lanes.number(lanes.format.rounding_magic)
    shifted = steps.add(steps.add(y, y), magic)
    r = steps.fma(steps.sub(shifted, magic), lanes.number(-0.5), y)
    high, low = (lanes.number(part) for part in special.PI)
    angle, lost = lanes.two_product(r, high)
    return lanes.bits_of(shifted), angle, steps.fma(r, low, lost)


def turn(lanes: Lanes[V], quadrant: V, angle: V, rest: V) -> V:
    """sin of n quarter turns and an angle of at most one eighth, its sign from bit 1 of n."""
    steps = lanes.steps
    parts = trigonometric.select_pair(
        lanes,
        trigonometric.is_odd(lanes, quadrant),
        trigonometric.cosine_parts_f64(lanes, angle, rest),
        trigonometric.sine_parts_f64(lanes, angle, rest),
    )
    return trigonometric.with_sign(lanes, steps.add(*parts), steps.shl(quadrant, lanes.integer(62)))


def sinpi_f64(steps: Steps[V], x: V) -> V:
    lanes = Lanes(steps, F64)
    value = turn(lanes, *reduce(lanes, x))
    # At every integer the zero of the argument's sign.
    value = steps.select(steps.eq(value, lanes.number(0.0)), lanes.number(0.0), value)
    return trigonometric.with_sign(lanes, value, lanes.bits_of(x))


def cospi_f64(steps: Steps[V], x: V) -> V:
    lanes = Lanes(steps, F64)
    quadrant, angle, rest = reduce(lanes, x)
    value = turn(lanes, steps.iadd(quadrant, lanes.integer(1)), angle, rest)
    return steps.select(steps.eq(value, lanes.number(0.0)), lanes.number(0.0), value)
