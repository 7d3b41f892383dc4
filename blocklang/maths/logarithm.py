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
        log: The polynomial P of log(1 + f) = f - f**2/2 + f**3 P(f).
    """

    format: Format
    sqrt_half_bits: int
    ln2: tuple[float, ...]
    log2_e: tuple[float, ...]
    log: tuple[float, ...]


TABLE_F32 = LogarithmTable(
    F32, 0x3F3504F3, coefficients.LN2_F32, coefficients.LOG2_E_F32, coefficients.LOG_F32
)
TABLE_F64 = LogarithmTable(
    F64, 0x3FE6A09E667F3BCD, coefficients.LN2_F64, coefficients.LOG2_E_F64, coefficients.LOG_F64
)


def log(steps: Steps[V], table: LogarithmTable, x: V) -> V:
    """log(x) = k ln2_high + (f + (k ln2_low - f**2/2 + f**3 P(f)))."""
    lanes = Lanes(steps, table.format)
    k, f = split(lanes, table, x)
    ln2_high, ln2_low = table.ln2
    tail = steps.fma(k, lanes.number(ln2_low), log_tail(lanes, table, f))
    value = steps.fma(k, lanes.number(ln2_high), steps.add(f, tail))
    return with_limits(lanes, x, value)


def log2(steps: Steps[V], table: LogarithmTable, x: V) -> V:
    """log2(x) = k + log(1 + f) / log(2), the quotient's leading product exact to twice the precision."""
    lanes = Lanes(steps, table.format)
    k, f = split(lanes, table, x)
    high, low = (lanes.number(part) for part in table.log2_e)
    tail = steps.fma(log_tail(lanes, table, f), high, steps.mul(f, low))
    value = steps.add(k, steps.fma(f, high, tail))
    return with_limits(lanes, x, value)


def split(lanes: Lanes[V], table: LogarithmTable, x: V) -> tuple[V, V]:
    """Split x = 2**k (1 + f); for x that is not positive and finite the parts mean nothing."""
    steps, form = lanes.steps, lanes.format
    subnormal = steps.lt(x, lanes.number(form.smallest_normal))
    lift = form.fraction_bits + 1
    lifted = steps.select(subnormal, steps.mul(x, lanes.number(2.0**lift)), x)
    start = lanes.integer(table.sqrt_half_bits)
    distance = steps.isub(lanes.bits_of(lifted), start)
    k = exponent_to_float(lanes, steps.ashr(distance, lanes.integer(form.fraction_bits)))
    k = steps.add(k, steps.select(subnormal, lanes.number(-lift), lanes.number(0.0)))
    m = lanes.from_bits(steps.iadd(steps.iand(distance, lanes.integer(form.fraction_mask)), start))
    return k, steps.sub(m, lanes.number(1.0))


def exponent_to_float(lanes: Lanes[V], k: V) -> V:
    """Convert a small integer by adding it to the bits of the rounding constant: there is no wide vector
    instruction for 64-bit integers on AVX2, and for 32-bit ones this costs the same as a conversion."""
    magic = lanes.number(lanes.format.rounding_magic)
    return lanes.steps.sub(lanes.from_bits(lanes.steps.iadd(k, lanes.bits_of(magic))), magic)


def log_tail(lanes: Lanes[V], table: LogarithmTable, f: V) -> V:
    """log(1 + f) - f = f**2 (f P(f) - 1/2)."""
    steps = lanes.steps
    inner = steps.fma(f, lanes.polynomial(f, table.log), lanes.number(-0.5))
    return steps.mul(steps.mul(f, f), inner)


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
