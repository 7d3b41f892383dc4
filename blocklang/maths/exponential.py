"""Recipes of the exponentials: exp, exp2 and expm1.

x = n log(2) + r with |r| <= log(2)/2, exp(x) = 2**n exp(r). The integer n is read from the low bits of a sum
with a large constant, and 2**n is applied as two factors, so that results which overflow or become subnormal
are rounded once, at the last multiplication, without a branch.
"""

from __future__ import annotations

from dataclasses import dataclass

from blocklang.maths import coefficients
from blocklang.maths import special_coefficients as special
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
        exp, exp2, expm1: The polynomials of tools/minimax.py.
    """

    format: Format
    lowest: int
    highest: int
    ln2: tuple[float, ...]
    exp: tuple[float, ...]
    exp2: tuple[float, ...]
    expm1: tuple[float, ...]


LOG2_E = 1.4426950408889634
LOG2_10 = 3.321928094887362

TABLE_F32 = ExponentialTable(
    F32, -151, 129, coefficients.LN2_F32, coefficients.EXP_F32, coefficients.EXP2_F32, coefficients.EXPM1_F32
)
TABLE_F64 = ExponentialTable(
    F64,
    -1076,
    1025,
    coefficients.LN2_F64,
    coefficients.EXP_F64,
    coefficients.EXP2_F64,
    coefficients.EXPM1_F64,
)


def exp(steps: Steps[V], table: ExponentialTable, x: V) -> V:
    """exp(x): exp(r) = 1 + r (1 + r P(r))."""
    lanes = Lanes(steps, table.format)
    x = lanes.at_least(lanes.at_most(x, table.highest / LOG2_E), table.lowest / LOG2_E)
    shifted, n = nearest_exponent(lanes, x, 2 * table.format.bias)
    r = subtract_multiple(lanes, table, x, n)
    return steps.scale(lanes.polynomial(r, (1.0, 1.0, *table.exp)), shifted)


def exp_parts(lanes: Lanes[V], table: ExponentialTable, x: V) -> tuple[V, V]:
    """Return factors of exp(x): one near 1, and a power of two, which must be a normal number."""
    shifted, n = nearest_exponent(lanes, x, table.format.bias)
    r = subtract_multiple(lanes, table, x, n)
    return lanes.polynomial(r, (1.0, 1.0, *table.exp)), power_of_two(lanes, lanes.bits_of(shifted))


def exp_times(lanes: Lanes[V], table: ExponentialTable, x: tuple[V, V], factor: tuple[V, V]) -> V:
    """exp(x) times a factor, each in two parts, x within the clamps and the factor near 1."""
    steps = lanes.steps
    shifted, n = nearest_exponent(lanes, x[0], 2 * table.format.bias)
    high, low = (lanes.number(-part) for part in table.ln2)
    r = steps.add(steps.fma(n, high, x[0]), steps.fma(n, low, x[1]))
    # factor (1 + r + q): the products and sums of the first two terms are kept in two parts.
    q = steps.mul(steps.mul(r, r), lanes.polynomial(r, table.exp))
    product, lost = lanes.two_product(factor[0], r)
    high, low = lanes.fast_two_sum(factor[0], product)
    rest = steps.fma(factor[1], steps.add(r, q), factor[1])
    low = steps.add(low, steps.add(lost, rest))
    value = steps.add(high, steps.fma(factor[0], q, low))
    return steps.scale(value, shifted)


def expm1(steps: Steps[V], table: ExponentialTable, x: V) -> V:
    """exp(x) - 1 = 2 ((2**(n-1) - 1/2) + 2**(n-1) (r + r**2 P(r))), n = 0 for all |x| < 1/2.

    The halves keep 2**n finite where the result is.
    """
    lanes = Lanes(steps, table.format)
    clamped = lanes.at_least(
        lanes.at_most(x, (table.highest - 0.75) / LOG2_E), -float(table.format.fraction_bits)
    )
    magic = lanes.number(table.format.rounding_magic)
    shifted = steps.fma(clamped, lanes.number(LOG2_E), magic)
    near = steps.lt(steps.abs(clamped), lanes.number(0.5))
    shifted = steps.select(near, magic, shifted)
    r = subtract_multiple(lanes, table, clamped, steps.sub(shifted, magic))
    power = power_of_two(lanes, steps.iadd(lanes.bits_of(shifted), lanes.integer(table.format.bias - 1)))
    tail = steps.mul(steps.mul(r, r), lanes.polynomial(r, table.expm1))
    # Two exact sums: what they lose goes to the small term.
    less, lost = lanes.fast_two_sum(power, lanes.number(-0.5))
    high, low = lanes.fast_two_sum(less, steps.mul(power, r))
    half = steps.add(high, steps.fma(power, tail, steps.add(low, lost)))
    # The half of a subnormal number would lose a bit; and -0 stays.
    tiny = steps.lt(steps.abs(x), lanes.number(2.0 ** -(table.format.fraction_bits + 2)))
    return steps.select(tiny, x, steps.add(half, half))


def power_of_two(lanes: Lanes[V], biased: V) -> V:
    """Make a power of two from its exponent plus the bias, in the low bits of an integer."""
    return lanes.from_bits(lanes.steps.shl(biased, lanes.integer(lanes.format.fraction_bits)))


def nearest_exponent(lanes: Lanes[V], x: V, bias: int) -> tuple[V, V]:
    """Round x / log(2) to an integer n; return a float whose lowest bits are those of n + bias, and n."""
    steps = lanes.steps
    magic = lanes.number(lanes.format.rounding_magic + bias)
    shifted = steps.fma(x, lanes.number(LOG2_E), magic)
    return shifted, steps.sub(shifted, magic)


def subtract_multiple(lanes: Lanes[V], table: ExponentialTable, x: V, n: V) -> V:
    """x - n log(2); the first of the two steps is exact."""
    high, low = (lanes.number(-part) for part in table.ln2)
    return lanes.steps.fma(n, low, lanes.steps.fma(n, high, x))


def exp2(steps: Steps[V], table: ExponentialTable, x: V) -> V:
    """2**x: the reduction x - n is exact, 2**r = 1 + r P(r), and 2**n is exact."""
    lanes = Lanes(steps, table.format)
    x = lanes.at_least(lanes.at_most(x, table.highest), table.lowest)
    magic = lanes.number(table.format.rounding_magic + 2 * table.format.bias)
    shifted = steps.add(x, magic)
    r = steps.sub(x, steps.sub(shifted, magic))
    return steps.scale(lanes.polynomial(r, (1.0, *table.exp2)), shifted)


def exp10_f64(steps: Steps[V], x: V) -> V:
    """exp(x log(10)), the product in two parts."""
    lanes = Lanes(steps, F64)
    x = lanes.at_least(lanes.at_most(x, 309.0), -324.5)
    high, low = (lanes.number(part) for part in special.LOG10)
    product, lost = lanes.two_product(x, high)
    rest = steps.fma(x, low, lost)
    return exp_times(lanes, TABLE_F64, (product, rest), (lanes.number(1.0), lanes.number(0.0)))


def exp10_f32(steps: Steps[V], x: V) -> V:
    """2**n 2**r in f64 with n + r = x log2(10), rounded once."""
    lanes = Lanes(steps, F64)
    exponent = steps.mul(steps.cast(x, "f64"), lanes.number(LOG2_10))
    exponent = lanes.at_least(lanes.at_most(exponent, 130.0), -160.0)
    magic = lanes.number(F64.rounding_magic + F64.bias)
    shifted = steps.add(exponent, magic)
    r = steps.sub(exponent, steps.sub(shifted, magic))
    value = lanes.polynomial(r, (1.0, *coefficients.POW_EXP2_F32))
    return steps.cast(steps.mul(value, power_of_two(lanes, lanes.bits_of(shifted))), "f32")


def scale_by_power(lanes: Lanes[V], value: V, biased: V) -> V:
    """Multiply by 2**n, where the low bits of `biased` hold n plus twice the bias.

    Each half of n, the bias included, shifts into an exponent field; what stood above it is shifted out.
    """
    steps = lanes.steps
    half = steps.lshr(biased, lanes.integer(1))
    first, second = power_of_two(lanes, half), power_of_two(lanes, steps.isub(biased, half))
    return steps.mul(steps.mul(value, first), second)


def exp_f32(steps: Steps[V], x: V) -> V:
    return exp(steps, TABLE_F32, x)


def exp_f64(steps: Steps[V], x: V) -> V:
    return exp(steps, TABLE_F64, x)


def exp2_f32(steps: Steps[V], x: V) -> V:
    return exp2(steps, TABLE_F32, x)


def exp2_f64(steps: Steps[V], x: V) -> V:
    return exp2(steps, TABLE_F64, x)


def expm1_f32(steps: Steps[V], x: V) -> V:
    return expm1(steps, TABLE_F32, x)


def expm1_f64(steps: Steps[V], x: V) -> V:
    return expm1(steps, TABLE_F64, x)
