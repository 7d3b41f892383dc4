"""Recipes of tanh, sinh and cosh.

tanh is an odd polynomial near 0; beyond, 1 - 2 / (exp(2|x|) + 1), where the subtraction no longer cancels.
sinh is one too; beyond, and for cosh, exp(x) and exp(-x) come from the even and the odd part of one exp(r), r
the rest of x over log(2), and no division. Everything is computed on every lane and one result is selected.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic

from blocklang.maths import coefficients, exponential
from blocklang.maths.exponential import ExponentialTable
from blocklang.maths.formats import Lanes
from blocklang.maths.steps import Steps, V


@dataclass(frozen=True)
class TanhTable:
    """What one format needs: where the polynomial ends, and where the result rounds to 1."""

    exponential: ExponentialTable
    near: float
    far: float
    polynomial: tuple[float, ...]


TABLE_F32 = TanhTable(exponential.TABLE_F32, 1.0, 9.25, coefficients.TANH_F32)
TABLE_F64 = TanhTable(exponential.TABLE_F64, 0.625, 19.25, coefficients.TANH_F64)


def tanh(steps: Steps[V], table: TanhTable, x: V) -> V:
    lanes = Lanes(steps, table.exponential.format)
    size = steps.abs(x)
    square = steps.mul(size, size)
    head = steps.fma(steps.mul(size, square), lanes.polynomial(square, table.polynomial), size)
    clamped = lanes.at_most(size, table.far)
    value, power = exponential.exp_parts(lanes, table.exponential, steps.add(clamped, clamped))
    divisor = steps.fma(value, power, lanes.number(1.0))
    tail = steps.sub(lanes.number(1.0), steps.div(lanes.number(2.0), divisor))
    near = steps.lt(size, lanes.number(table.near))
    return lanes.with_sign_of(steps.select(near, head, tail), x)


def tanh_f32(steps: Steps[V], x: V) -> V:
    return tanh(steps, TABLE_F32, x)


def tanh_f64(steps: Steps[V], x: V) -> V:
    return tanh(steps, TABLE_F64, x)


@dataclass(frozen=True)
class SinhTable:
    """What one format needs: polynomials in r**2 of (sinh(r) - r) / r**3 and (cosh(r) - 1) / r**2."""

    exponential: ExponentialTable
    sinh: tuple[float, ...]
    cosh: tuple[float, ...]


SINH_F32 = SinhTable(exponential.TABLE_F32, coefficients.SINH_F32, coefficients.COSH_F32)
SINH_F64 = SinhTable(exponential.TABLE_F64, coefficients.SINH_F64, coefficients.COSH_F64)
SINH_NEAR = 0.5


def sinh(steps: Steps[V], table: SinhTable, x: V) -> V:
    """sinh(r) where x = r is small, else 2 (a exp(r) - b exp(-r)) with a = 2**(n-2), b = 2**(-n-2)."""
    lanes = Lanes(steps, table.exponential.format)
    near = steps.lt(steps.abs(x), lanes.number(SINH_NEAR))
    parts = split_exp(lanes, table, x, near)
    half = combine(lanes, parts, steps.neg(parts.b))
    small = steps.add(parts.r, parts.odd)
    return lanes.with_sign_of(steps.select(near, small, steps.add(half, half)), x)


def cosh(steps: Steps[V], table: SinhTable, x: V) -> V:
    """2 (a exp(r) + b exp(-r)) with a = 2**(n-2), b = 2**(-n-2)."""
    lanes = Lanes(steps, table.exponential.format)
    near = steps.lt(steps.abs(x), lanes.number(SINH_NEAR))
    parts = split_exp(lanes, table, x, near)
    half = combine(lanes, parts, parts.b)
    return steps.add(half, half)


@dataclass(frozen=True)
class ExpParts(Generic[V]):
    """a exp(r) and b exp(-r), with exp(r) = 1 + r + odd + even, odd = sinh(r) - r and even = cosh(r) - 1."""

    a: V
    b: V
    r: V
    odd: V
    even: V


def split_exp(lanes: Lanes[V], table: SinhTable, x: V, near: V) -> ExpParts[V]:
    """Split |x| = n log(2) + r, n = 0 where `near`, with a = 2**(n-2) and b = 2**(-n-2).

    The quarters keep powers finite where results are. b is 0 where it does not matter, before it would
    underflow.
    """
    steps, form = lanes.steps, lanes.format
    clamped = lanes.at_most(steps.abs(x), (form.bias + 2.25) / exponential.LOG2_E)
    magic = lanes.number(form.rounding_magic)
    shifted = steps.fma(clamped, lanes.number(exponential.LOG2_E), magic)
    shifted = steps.select(near, magic, shifted)
    n = steps.sub(shifted, magic)
    r = exponential.subtract_multiple(lanes, table.exponential, clamped, n)
    bits, bias = lanes.bits_of(shifted), lanes.integer(form.bias - 2)
    a = exponential.power_of_two(lanes, steps.iadd(bias, bits))
    b = exponential.power_of_two(lanes, steps.isub(bias, bits))
    b = steps.select(steps.lt(n, lanes.number(form.fraction_bits)), b, lanes.number(0.0))
    square = steps.mul(r, r)
    odd = steps.mul(steps.mul(r, square), lanes.polynomial(square, table.sinh))
    return ExpParts(a, b, r, odd, steps.mul(square, lanes.polynomial(square, table.cosh)))


def combine(lanes: Lanes[V], parts: ExpParts[V], b: V) -> V:
    """a exp(r) + b exp(-r), b of either sign: a + b + a r in two parts, so that one rounding counts."""
    steps = lanes.steps
    powers, lost = lanes.fast_two_sum(parts.a, b)
    high, low = lanes.fast_two_sum(powers, steps.mul(parts.a, parts.r))
    less = steps.sub(steps.sub(parts.even, parts.odd), parts.r)
    tail = steps.fma(b, less, steps.add(low, lost))
    return steps.add(high, steps.fma(parts.a, steps.add(parts.odd, parts.even), tail))


def sinh_f32(steps: Steps[V], x: V) -> V:
    return sinh(steps, SINH_F32, x)


def sinh_f64(steps: Steps[V], x: V) -> V:
    return sinh(steps, SINH_F64, x)


def cosh_f32(steps: Steps[V], x: V) -> V:
    return cosh(steps, SINH_F32, x)


def cosh_f64(steps: Steps[V], x: V) -> V:
    return cosh(steps, SINH_F64, x)
