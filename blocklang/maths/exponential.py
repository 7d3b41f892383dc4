"""Recipes of the exponentials: exp and exp2.

x = n log(2) + r with |r| <= log(2)/2, exp(x) = 2**n exp(r). The integer n is read from the low bits of a sum
with a large constant, and 2**n is applied as two factors, so that results which overflow or become subnormal
are rounded once, at the last multiplication, without a branch.
"""

from __future__ import annotations

from dataclasses import dataclass

from blocklang.maths import coefficients
from blocklang.maths.formats import F32, F64, Format, Lanes
from blocklang.maths.steps import Steps, V


@dataclass(frozen=True)
class ExponentialTable:
    """What one format needs.

    Attributes:
        format: The float format.
        lowest, highest: Clamps in the exponent of 2: below the first every result is 0, above the second
        infinity.
        ln2: log(2) in two parts, the first with so few bits that its product with any n is exact.
        exp, exp2: The polynomials of tools/minimax.py.
    """

    format: Format
    lowest: int
    highest: int
    ln2: tuple[float, ...]
    exp: tuple[float, ...]
    exp2: tuple[float, ...]


LOG2_E = 1.4426950408889634

TABLE_F32 = ExponentialTable(
    F32, -151, 129, coefficients.LN2_F32, coefficients.EXP_F32, coefficients.EXP2_F32
)
TABLE_F64 = ExponentialTable(
    F64, -1076, 1025, coefficients.LN2_F64, coefficients.EXP_F64, coefficients.EXP2_F64
)


def exp(steps: Steps[V], table: ExponentialTable, x: V) -> V:
    """exp(x): exp(r) = 1 + r (1 + r P(r))."""
    lanes = Lanes(steps, table.format)
    x = lanes.at_least(lanes.at_most(x, table.highest / LOG2_E), table.lowest / LOG2_E)
    biased, r = reduce_exponent(lanes, table, x, 2 * table.format.bias)
    return scale_by_power(lanes, lanes.polynomial(r, (1.0, 1.0, *table.exp)), biased)


def exp_parts(lanes: Lanes[V], table: ExponentialTable, x: V) -> tuple[V, V]:
    """Return factors whose product is exp(x): one near 1, and a power of two, which must be a normal
    number."""
    biased, r = reduce_exponent(lanes, table, x, table.format.bias)
    power = lanes.steps.shl(biased, lanes.integer(table.format.fraction_bits))
    return lanes.polynomial(r, (1.0, 1.0, *table.exp)), lanes.from_bits(power)


def exp_times(lanes: Lanes[V], table: ExponentialTable, x: V, rest: V, factor: V) -> V:
    """exp(x + rest) times a factor near 1, for a rest below the last place of x, and x within the clamps."""
    biased, r = reduce_exponent(lanes, table, x, 2 * table.format.bias)
    r = lanes.steps.add(r, rest)
    growth = lanes.steps.mul(r, lanes.polynomial(r, (1.0, *table.exp)))
    return scale_by_power(lanes, lanes.steps.fma(factor, growth, factor), biased)


def reduce_exponent(lanes: Lanes[V], table: ExponentialTable, x: V, bias: int) -> tuple[V, V]:
    """Split x = n log(2) + r; return bits whose lowest are those of n + bias, and r."""
    steps = lanes.steps
    magic = lanes.number(table.format.rounding_magic + bias)
    shifted = steps.fma(x, lanes.number(LOG2_E), magic)
    n = steps.sub(shifted, magic)
    r = x
    for part in table.ln2:
        r = steps.fma(n, lanes.number(-part), r)
    return lanes.bits_of(shifted), r


def exp2(steps: Steps[V], table: ExponentialTable, x: V) -> V:
    """2**x: the reduction x - n is exact, 2**r = 1 + r P(r), and 2**n is exact."""
    lanes = Lanes(steps, table.format)
    x = lanes.at_least(lanes.at_most(x, table.highest), table.lowest)
    magic = lanes.number(table.format.rounding_magic + 2 * table.format.bias)
    shifted = steps.add(x, magic)
    r = steps.sub(x, steps.sub(shifted, magic))
    return scale_by_power(lanes, lanes.polynomial(r, (1.0, *table.exp2)), lanes.bits_of(shifted))


def scale_by_power(lanes: Lanes[V], value: V, biased: V) -> V:
    """Multiply by 2**n, where the low bits of `biased` hold n plus twice the bias.

    Each half of n, the bias included, shifts into an exponent field; what stood above it is shifted out.
    """
    steps = lanes.steps
    fraction_bits = lanes.integer(lanes.format.fraction_bits)
    half = steps.lshr(biased, lanes.integer(1))
    first = steps.shl(half, fraction_bits)
    second = steps.shl(steps.isub(biased, half), fraction_bits)
    return steps.mul(steps.mul(value, lanes.from_bits(first)), lanes.from_bits(second))


def exp_f32(steps: Steps[V], x: V) -> V:
    return exp(steps, TABLE_F32, x)


def exp_f64(steps: Steps[V], x: V) -> V:
    return exp(steps, TABLE_F64, x)


def exp2_f32(steps: Steps[V], x: V) -> V:
    return exp2(steps, TABLE_F32, x)


def exp2_f64(steps: Steps[V], x: V) -> V:
    return exp2(steps, TABLE_F64, x)
