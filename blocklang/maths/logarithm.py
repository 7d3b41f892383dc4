"""Recipes of the logarithms: log and log2.

x = 2**k m with sqrt(1/2) <= m < sqrt(2), f = m - 1 exact, log(x) = k log(2) + log(1 + f). Subnormal numbers
are first multiplied by a power of two. Zeros, negative numbers, infinity and NaN are put right at the end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from blocklang.maths import coefficients
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
    """

    format: Format
    sqrt_half_bits: int
    ln2: tuple[float, ...]
    log2_e: tuple[float, ...]
    log: tuple[float, ...]
    log2: tuple[float, ...]


TABLE_F32 = LogarithmTable(
    F32,
    0x3F3504F3,
    coefficients.LN2_F32,
    coefficients.LOG2_E_F32,
    coefficients.LOG_F32,
    coefficients.LOG2_F32,
)
TABLE_F64 = LogarithmTable(
    F64,
    0x3FE6A09E667F3BCD,
    coefficients.LN2_F64,
    coefficients.LOG2_E_F64,
    coefficients.LOG_F64,
    coefficients.LOG2_F64,
)


def log(steps: Steps[V], table: LogarithmTable, x: V) -> V:
    """log(x) = k ln2_high + (f + (k ln2_low + f**2 P(f)))."""
    lanes = Lanes(steps, table.format)
    k, f = split(lanes, table, x)
    ln2_high, ln2_low = table.ln2
    square = steps.mul(f, steps.mul(f, lanes.polynomial(f, table.log)))
    tail = steps.fma(k, lanes.number(ln2_low), square)
    value = steps.fma(k, lanes.number(ln2_high), steps.add(f, tail))
    return with_limits(lanes, x, value)


def log2(steps: Steps[V], table: LogarithmTable, x: V) -> V:
    """log2(x) = k + (f high + f (low + f P(f))) with 1/log(2) = high + low."""
    lanes = Lanes(steps, table.format)
    k, f = split(lanes, table, x)
    high, low = table.log2_e
    tail = steps.mul(f, lanes.polynomial(f, (low, *table.log2)))
    value = steps.add(k, steps.fma(f, lanes.number(high), tail))
    return with_limits(lanes, x, value)


def split(lanes: Lanes[V], table: LogarithmTable, x: V) -> tuple[V, V]:
    """Split x = 2**k (1 + f); for x that is not positive and finite the parts mean nothing.

    With a bias added to the bits, k comes out of a logical shift (AVX2 has no arithmetic one on 64 bits), and
    becomes a float by being put below the bits of 2**fraction_bits.
    """
    steps, form = lanes.steps, lanes.format
    subnormal = steps.lt(x, lanes.number(form.smallest_normal))
    lift = form.fraction_bits + 1
    lifted = steps.select(subnormal, steps.mul(x, lanes.number(2.0**lift)), x)
    bias = form.bias << form.fraction_bits
    distance = steps.isub(lanes.bits_of(lifted), lanes.integer(table.sqrt_half_bits - bias))
    exponent = steps.lshr(distance, lanes.integer(form.fraction_bits))
    anchor = 2.0**form.fraction_bits
    anchored = lanes.from_bits(steps.ior(exponent, lanes.bits_of(lanes.number(anchor))))
    offset = steps.select(
        subnormal, lanes.number(anchor + form.bias + lift), lanes.number(anchor + form.bias)
    )
    fraction = steps.iand(distance, lanes.integer(form.fraction_mask))
    m = lanes.from_bits(steps.iadd(fraction, lanes.integer(table.sqrt_half_bits)))
    return steps.sub(anchored, offset), steps.sub(m, lanes.number(1.0))


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
