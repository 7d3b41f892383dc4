"""Slow and exact references, one number at a time."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np


def round_to(
    value: Fraction, fraction_bits: int, smallest_exponent: int, largest: Fraction
) -> Fraction | float:
    """Round to nearest, ties to even, in a binary format; beyond the largest number: infinity.

    Args:
        fraction_bits: bits after the leading one.
        smallest_exponent: exponent of the smallest normal number.
    """
    if value == 0:
        return value
    size = abs(value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= size < Fraction(2) ** exponent
    unit = Fraction(2) ** (max(exponent, smallest_exponent) - fraction_bits)
    rounded = round(value / unit) * unit
    if abs(rounded) > largest:
        return float("inf") if value > 0 else float("-inf")
    return rounded


FORMATS = {
    "f16": (10, -14, Fraction(65504)),
    "bf16": (7, -126, Fraction(2**128 - 2**120)),
    "f32": (23, -126, Fraction(2**128 - 2**104)),
    "f64": (52, -1022, Fraction(2**1024 - 2**971)),
}


def rounded(value: Fraction, format: str) -> float:
    """An exact number rounded to one of `FORMATS`."""
    return float(round_to(value, *FORMATS[format]))


def fma_chain(a: Iterable[Any], b: Iterable[Any], start: Any) -> np.float32:
    """A chain of float32 fused multiply-adds, each rounded from its exact value."""
    total = Fraction(float(start))
    for x, y in zip(a, b, strict=True):
        total = Fraction(rounded(Fraction(float(x)) * Fraction(float(y)) + total, "f32"))
    return np.float32(float(total))
