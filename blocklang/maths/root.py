"""Recipes of the roots: sqrt (a step, listed so that the table is whole), rsqrt and cbrt.

cbrt iterates on the reciprocal of the cube root, which needs no division, and ends with one correction of the
root itself by its exact residual.
"""

from __future__ import annotations

import math

from blocklang.maths import coefficients
from blocklang.maths.formats import F32, F64, Format, Lanes
from blocklang.maths.steps import Steps, V


def sqrt(steps: Steps[V], x: V) -> V:
    """The square root, correctly rounded; NaN below zero, and -0 at -0."""
    return steps.sqrt(x)


def rsqrt_f32(steps: Steps[V], x: V) -> V:
    return steps.div(Lanes(steps, F32).number(1.0), steps.sqrt(x))


def rsqrt_f64(steps: Steps[V], x: V) -> V:
    return steps.div(Lanes(steps, F64).number(1.0), steps.sqrt(x))


def cbrt(steps: Steps[V], form: Format, iterations: int, x: V) -> V:
    """The cube root: |x| = 2**(3q) z with 1 <= z < 8, y -> 1 / cbrt(z), cbrt(x) = 2**q z y**2."""
    lanes = Lanes(steps, form)
    size = steps.abs(x)
    quotient, z, y = split_cube(lanes, size)
    for _ in range(iterations):
        y = improve_inverse(lanes, z, y)
    square = steps.mul(y, y)
    root = steps.mul(z, square)
    root_square, lost = lanes.two_product(root, root)
    against = steps.neg(root)
    residual = steps.fma(against, lost, steps.fma(against, root_square, z))
    root = steps.fma(residual, steps.mul(square, lanes.number(1 / 3)), root)
    value = steps.mul(root, quotient)
    proper = steps.logical_and(steps.lt(lanes.number(0.0), size), steps.lt(size, lanes.number(math.inf)))
    return steps.select(proper, lanes.with_sign_of(value, x), x)


def split_cube(lanes: Lanes[V], size: V) -> tuple[V, V, V]:
    """Return 2**q, z, and a first 1 / cbrt(z): a polynomial of its significand, a factor for its exponent."""
    steps, form = lanes.steps, lanes.format
    subnormal = steps.lt(size, lanes.number(form.smallest_normal))
    lift = 3 * (form.fraction_bits // 3 + 1)
    bits = lanes.bits_of(steps.select(subnormal, steps.mul(size, lanes.number(2.0**lift)), size))
    one = lanes.bits_of(lanes.number(1.0))
    m = lanes.from_bits(steps.ior(steps.iand(bits, lanes.integer(form.fraction_mask)), one))
    # Exponents with an offset that makes them positive, and a multiple of 3 apart from the true ones.
    offset = 3 * form.bias
    exponent = steps.iadd(
        steps.lshr(bits, lanes.integer(form.fraction_bits)), lanes.integer(offset - form.bias)
    )
    third = steps.lshr(steps.imul(exponent, lanes.integer(0x5556)), lanes.integer(16))
    remainder = steps.isub(exponent, steps.imul(third, lanes.integer(3)))
    y = lanes.polynomial(m, coefficients.CBRT)
    z = lanes.from_bits(steps.iadd(lanes.bits_of(m), steps.shl(remainder, lanes.integer(form.fraction_bits))))
    for count in (1, 2):
        here = steps.eq(remainder, lanes.integer(count))
        y = steps.select(here, steps.mul(y, lanes.number(2.0 ** (-count / 3))), y)
    back = steps.select(subnormal, lanes.number(2.0 ** -(lift // 3)), lanes.number(1.0))
    power = steps.iadd(third, lanes.integer(form.bias - offset // 3))
    scale = lanes.from_bits(steps.shl(power, lanes.integer(form.fraction_bits)))
    return steps.mul(scale, back), z, y


def improve_inverse(lanes: Lanes[V], z: V, y: V) -> V:
    """y (1 + h/3 + 2 h**2 / 9) with h = 1 - z y**3: each time three times the digits."""
    steps = lanes.steps
    h = steps.fma(steps.neg(steps.mul(z, y)), steps.mul(y, y), lanes.number(1.0))
    factor = steps.mul(h, steps.fma(h, lanes.number(2 / 9), lanes.number(1 / 3)))
    return steps.fma(y, factor, y)


def cbrt_f32(steps: Steps[V], x: V) -> V:
    return cbrt(steps, F32, 1, x)


def cbrt_f64(steps: Steps[V], x: V) -> V:
    return cbrt(steps, F64, 2, x)


def rcbrt_f64(steps: Steps[V], x: V) -> V:
    """1 / cbrt(x)."""
    return steps.div(Lanes(steps, F64).number(1.0), cbrt_f64(steps, x))
