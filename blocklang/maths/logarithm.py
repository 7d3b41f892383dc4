"""Recipes of the logarithms: log, log2, log10 and log1p.

x = 2**k m with sqrt(1/2) <= m < sqrt(2), f = m - 1 exact, log(x) = k log(2) + log(1 + f). Subnormal numbers
are first multiplied by a power of two. Zeros, negative numbers, infinity and NaN are put right at the end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from blocklang.maths import coefficients, exponential
from blocklang.maths.formats import F32, F64, Format, Lanes
from blocklang.maths.steps import Steps, V


@dataclass(frozen=True)
class LogarithmTable:
    """What one format needs.

    Attributes:
        format: The float format.
        sqrt_half_bits: The bit pattern where the range of m begins.
        ln2: log(2) in two parts, the first with so few bits that its product with any k is exact.
        log2_e: 1/log(2) in two parts.
        log: The polynomial P of log(1 + f) = f + f**2 P(f).
        log2: The polynomial P of log2(1 + f) = f / log(2) + f**2 P(f).
        log10_2: log10(2) as `ln2` is.
        log10_e: 1/log(10) in two parts.
        log10: The polynomial P of log10(1 + f) = f / log(10) + f**2 P(f).
    """

    format: Format
    sqrt_half_bits: int
    ln2: tuple[float, ...]
    log2_e: tuple[float, ...]
    log: tuple[float, ...]
    log2: tuple[float, ...]
    log10_2: tuple[float, ...]
    log10_e: tuple[float, ...]
    log10: tuple[float, ...]


TABLE_F32 = LogarithmTable(
    F32,
    0x3F3504F3,
    coefficients.LN2_F32,
    coefficients.LOG2_E_F32,
    coefficients.LOG_F32,
    coefficients.LOG2_F32,
    coefficients.LOG10_2_F32,
    coefficients.LOG10_E_F32,
    coefficients.LOG10_F32,
)
TABLE_F64 = LogarithmTable(
    F64,
    0x3FE6A09E667F3BCD,
    coefficients.LN2_F64,
    coefficients.LOG2_E_F64,
    coefficients.LOG_F64,
    coefficients.LOG2_F64,
    coefficients.LOG10_2_F64,
    coefficients.LOG10_E_F64,
    coefficients.LOG10_F64,
)


def log(steps: Steps[V], table: LogarithmTable, x: V) -> V:
    """log(x) = k ln2_high + (f + (k ln2_low + f**2 P(f)))."""
    lanes = Lanes(steps, table.format)
    k, f = split(lanes, table, x)
    ln2_high, ln2_low = table.ln2
    tail = steps.fma(k, lanes.number(ln2_low), log_tail(lanes, table, f))
    value = steps.fma(k, lanes.number(ln2_high), steps.add(f, tail))
    return with_limits(lanes, x, value)


def log_tail(lanes: Lanes[V], table: LogarithmTable, f: V) -> V:
    """log(1 + f) - f."""
    return lanes.steps.mul(f, lanes.steps.mul(f, lanes.polynomial(f, table.log)))


def log1p(steps: Steps[V], table: LogarithmTable, x: V) -> V:
    """log(u + c), u + c = 1 + x exactly: f becomes f + c 2**-k, with what that sum loses added at the end."""
    lanes, form = Lanes(steps, table.format), table.format
    one = lanes.number(1.0)
    u = steps.add(one, x)
    x_part = steps.sub(u, one)
    c = steps.add(steps.sub(one, steps.sub(u, x_part)), steps.sub(x, x_part))
    exponent, f = split_bits(lanes, table, lanes.bits_of(u))
    k = steps.sub(exponent_as_float(lanes, exponent), lanes.number(2.0**form.fraction_bits + form.bias))
    inverse = exponential.power_of_two(lanes, steps.isub(lanes.integer(2 * form.bias), exponent))
    # In a large sum the rest does not matter, and the power might not be a normal number.
    small = steps.lt(x, lanes.number(2.0 ** (2 * form.fraction_bits)))
    c = steps.select(small, steps.mul(c, inverse), lanes.number(0.0))
    f, rest = lanes.fast_two_sum(f, c)
    ln2_high, ln2_low = table.ln2
    tail = steps.fma(k, lanes.number(ln2_low), steps.add(log_tail(lanes, table, f), rest))
    value = steps.fma(k, lanes.number(ln2_high), steps.add(f, tail))
    return steps.select(steps.eq(x, lanes.number(0.0)), x, with_limits(lanes, u, value))


def log2(steps: Steps[V], table: LogarithmTable, x: V) -> V:
    """log2(x) = k + (f high + f (low + f P(f))) with 1/log(2) = high + low."""
    lanes = Lanes(steps, table.format)
    k, f = split(lanes, table, x)
    high, low = table.log2_e
    tail = steps.mul(f, lanes.polynomial(f, (low, *table.log2)))
    value = steps.add(k, steps.fma(f, lanes.number(high), tail))
    return with_limits(lanes, x, value)


def log10(steps: Steps[V], table: LogarithmTable, x: V) -> V:
    """log10(x) = k log10(2) + (f high + f (low + f P(f))), as `log2` with log10(2) in two parts."""
    lanes = Lanes(steps, table.format)
    k, f = split(lanes, table, x)
    high, low = table.log10_e
    unit_high, unit_low = table.log10_2
    tail = steps.mul(f, lanes.polynomial(f, (low, *table.log10)))
    tail = steps.fma(k, lanes.number(unit_low), tail)
    value = steps.fma(k, lanes.number(unit_high), steps.fma(f, lanes.number(high), tail))
    return with_limits(lanes, x, value)


def split(lanes: Lanes[V], table: LogarithmTable, x: V) -> tuple[V, V]:
    """Split x = 2**k (1 + f); for x that is not positive and finite the parts mean nothing."""
    steps, form = lanes.steps, lanes.format
    subnormal = steps.lt(x, lanes.number(form.smallest_normal))
    lift = form.fraction_bits + 1
    lifted = steps.select(subnormal, steps.mul(x, lanes.number(2.0**lift)), x)
    exponent, f = split_bits(lanes, table, lanes.bits_of(lifted))
    offset = 2.0**form.fraction_bits + form.bias
    lifted_offset = steps.select(subnormal, lanes.number(offset + lift), lanes.number(offset))
    return steps.sub(exponent_as_float(lanes, exponent), lifted_offset), f


def split_bits(lanes: Lanes[V], table: LogarithmTable, bits: V) -> tuple[V, V]:
    """Split the bits of a positive normal number 2**k (1 + f) into the integer k + bias, and f.

    With the bias added, k comes out of a logical shift: AVX2 has no arithmetic one on 64 bits.
    """
    steps, form = lanes.steps, lanes.format
    bias = form.bias << form.fraction_bits
    distance = steps.isub(bits, lanes.integer(table.sqrt_half_bits - bias))
    exponent = steps.lshr(distance, lanes.integer(form.fraction_bits))
    fraction = steps.iand(distance, lanes.integer(form.fraction_mask))
    m = lanes.from_bits(steps.iadd(fraction, lanes.integer(table.sqrt_half_bits)))
    return exponent, steps.sub(m, lanes.number(1.0))


def exponent_as_float(lanes: Lanes[V], exponent: V) -> V:
    """2**fraction_bits plus a small integer: its bits are put below those of the power."""
    anchor = lanes.number(2.0**lanes.format.fraction_bits)
    return lanes.from_bits(lanes.steps.ior(exponent, lanes.bits_of(anchor)))


def with_limits(lanes: Lanes[V], x: V, value: V) -> V:
    """Give -infinity at both zeros, NaN below, and x itself where it is infinity or NaN."""
    steps = lanes.steps
    zero = lanes.number(0.0)
    proper = steps.select(steps.eq(x, zero), lanes.number(-math.inf), value)
    domain = steps.select(steps.lt(x, zero), lanes.number(math.nan), x)
    return steps.select(steps.lt(domain, lanes.number(math.inf)), proper, domain)


def log_f32(steps: Steps[V], x: V) -> V:
    return log(steps, TABLE_F32, x)


def log_f64(steps: Steps[V], x: V) -> V:
    return log(steps, TABLE_F64, x)


def log2_f32(steps: Steps[V], x: V) -> V:
    return log2(steps, TABLE_F32, x)


def log2_f64(steps: Steps[V], x: V) -> V:
    return log2(steps, TABLE_F64, x)


def log10_f32(steps: Steps[V], x: V) -> V:
    return log10(steps, TABLE_F32, x)


def log10_f64(steps: Steps[V], x: V) -> V:
    return log10(steps, TABLE_F64, x)


def log1p_f32(steps: Steps[V], x: V) -> V:
    return log1p(steps, TABLE_F32, x)


def log1p_f64(steps: Steps[V], x: V) -> V:
    return log1p(steps, TABLE_F64, x)
