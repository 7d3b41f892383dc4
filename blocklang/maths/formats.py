"""The two float formats as recipes see them: widths, masks, and constants made for one of them.

`Format` holds facts; `Lanes` binds a format to an implementation of the steps, so that a recipe written for
both formats says `lanes.number(0.5)` and `lanes.integer(1)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic

from blocklang.maths.steps import DType, Steps, V


@dataclass(frozen=True)
class Format:
    """An IEEE binary format and the signed integer type of its width."""

    float_dtype: DType
    int_dtype: DType
    bits: int
    fraction_bits: int

    @property
    def bias(self) -> int:
        return (1 << (self.bits - self.fraction_bits - 2)) - 1

    @property
    def sign_mask(self) -> int:
        return 1 << (self.bits - 1)

    @property
    def fraction_mask(self) -> int:
        return (1 << self.fraction_bits) - 1

    @property
    def smallest_normal(self) -> float:
        return 2.0 ** (1 - self.bias)

    @property
    def rounding_magic(self) -> float:
        """A number so large that adding it to |x| < 2**(fraction_bits - 2) rounds x to an integer, ties to
        even.

        The integer then stands in the low bits of the sum, in two's complement.
        """
        return 1.5 * 2.0**self.fraction_bits


F32 = Format("f32", "i32", 32, 23)
F64 = Format("f64", "i64", 64, 52)


@dataclass(frozen=True)
class Lanes(Generic[V]):
    """An implementation of the steps together with the format that a recipe computes in."""

    steps: Steps[V]
    format: Format

    def number(self, value: float) -> V:
        return self.steps.constant(self.format.float_dtype, value)

    def integer(self, value: int) -> V:
        return self.steps.constant(self.format.int_dtype, value)

    def bits_of(self, x: V) -> V:
        return self.steps.bitcast(x, self.format.int_dtype)

    def from_bits(self, bits: V) -> V:
        return self.steps.bitcast(bits, self.format.float_dtype)

    def polynomial(self, x: V, coefficients: Sequence[float]) -> V:
        """Evaluate by Horner's rule, lowest power first, one fma a term."""
        *rest, value = (self.number(c) for c in coefficients)
        for coefficient in reversed(rest):
            value = self.steps.fma(value, x, coefficient)
        return value

    def precise_polynomial(
        self, x: V, coefficients: Sequence[float], rests: Sequence[float], x_rest: V | None = None
    ) -> tuple[V, V]:
        """Evaluate by Horner's rule, the last steps in two parts: as many as first coefficients have a rest.

        In those steps no product may be larger than the coefficient that it is added to.
        """
        steps = self.steps
        value = self.polynomial(x, coefficients[len(rests) :])
        rest = self.number(0.0)
        for coefficient, low in reversed(list(zip(coefficients, rests, strict=False))):
            constant = self.number(coefficient)
            total = steps.fma(x, value, constant)
            lost = steps.add(steps.fma(x, value, steps.sub(constant, total)), self.number(low))
            if x_rest is not None:
                lost = steps.fma(x_rest, value, lost)
            value, rest = total, steps.fma(x, rest, lost)
        return value, rest

    def at_most(self, x: V, limit: float) -> V:
        """Clamp from above; unlike the step `minimum`, a NaN stays NaN."""
        bound = self.number(limit)
        return self.steps.select(self.steps.lt(bound, x), bound, x)

    def at_least(self, x: V, limit: float) -> V:
        """Clamp from below; unlike the step `maximum`, a NaN stays NaN."""
        bound = self.number(limit)
        return self.steps.select(self.steps.lt(x, bound), bound, x)

    def with_sign_of(self, size: V, x: V) -> V:
        """Give a value whose sign bit is clear the sign of x."""
        sign = self.steps.iand(self.bits_of(x), self.integer(self.format.sign_mask))
        return self.from_bits(self.steps.ior(self.bits_of(size), sign))

    def fast_two_sum(self, large: V, small: V) -> tuple[V, V]:
        """Return the rounded sum and its error: exact if `large` is 0, or a multiple of the last place of
        `small`.

        The latter holds whenever `large` is not below `small` in exponent.
        """
        total = self.steps.add(large, small)
        return total, self.steps.sub(small, self.steps.sub(total, large))

    def two_product(self, a: V, b: V) -> tuple[V, V]:
        """Return the rounded product and its error."""
        product = self.steps.mul(a, b)
        return product, self.steps.fma(a, b, self.steps.neg(product))
