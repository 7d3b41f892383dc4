"""The five 8-bit float formats: which number each code stands for, and which code a number rounds to.

| type    | also called  | fraction | bias | largest | infinity | NaN               | -0  |
| ------- | ------------ | -------- | ---- | ------- | -------- | ----------------- | --- |
| f8e5    | e5m2         | 2        | 15   | 57344   | yes      | 0x7D to 0x7F, +/- | yes |
| f8e4nv  | e4m3fn       | 3        | 7    | 448     | no       | 0x7F, 0xFF        | yes |
| f8e4b8  | e4m3fnuz     | 3        | 8    | 240     | no       | 0x80              | no  |
| f8e5b16 | e5m2fnuz     | 2        | 16   | 57344   | no       | 0x80              | no  |
| f8e4b15 | Triton's own | 3        | 15   | 1.75    | no       | none              | yes |

Conversion *to* an 8-bit float saturates: what is too large, an infinity too, gives the largest number of its
sign. A NaN gives one code, without a sign. f8e4b15 has no NaN: a NaN becomes its largest number; the codes
0x7F and 0xFF, which no conversion gives, read as +/-1.875.

Pure Python on single numbers: constants, and the source of the tables and limits of those who convert arrays
(the interpreter) or write machine code.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Float8:
    """A format.

    Attributes:
        fraction: explicit bits of the significand.
        bias: of the exponent.
        largest: the code that conversions saturate at.
        top: the highest code without a sign that is no NaN: infinity, if there is one.
        nan: the code that a NaN is converted to.
        has_infinity: `top` is infinity.
        has_negative_zero: 0x80 is -0; if not, it is NaN, and zeros have no sign.
    """

    fraction: int
    bias: int
    largest: int
    top: int
    nan: int
    has_infinity: bool
    has_negative_zero: bool

    @property
    def has_nan(self) -> bool:
        return self.nan != self.largest

    def decode(self, code: int) -> float:
        """The number that a code from 0 to 255 stands for."""
        magnitude = code & 0x7F
        if code == 0x80 and not self.has_negative_zero:
            return math.nan
        if magnitude > self.top:
            return math.nan
        if self.has_infinity and magnitude == self.top:
            number = math.inf
        else:
            exponent = magnitude >> self.fraction
            significand = magnitude & ((1 << self.fraction) - 1)
            if exponent:
                significand |= 1 << self.fraction
            number = math.ldexp(significand, max(exponent, 1) - self.bias - self.fraction)
        return -number if code & 0x80 else number

    def encode(self, number: float) -> int:
        """The code of the nearest number, ties to even, saturated."""
        if math.isnan(number):
            return self.nan
        sign = 0x80 if math.copysign(1.0, number) < 0 else 0
        if math.isinf(number):
            return self.largest | sign
        magnitude = abs(number)
        exponent = max(math.frexp(magnitude)[1] - 1, 1 - self.bias) if magnitude else 1 - self.bias
        steps = round(math.ldexp(magnitude, self.fraction - exponent))
        code = min(((exponent - 1 + self.bias) << self.fraction) + steps, self.largest)
        return code | sign if code or self.has_negative_zero else 0


FLOAT8: dict[str, Float8] = {
    "f8e5": Float8(2, 15, 0x7B, 0x7C, 0x7F, has_infinity=True, has_negative_zero=True),
    "f8e4nv": Float8(3, 7, 0x7E, 0x7E, 0x7F, has_infinity=False, has_negative_zero=True),
    "f8e4b8": Float8(3, 8, 0x7F, 0x7F, 0x80, has_infinity=False, has_negative_zero=False),
    "f8e5b16": Float8(2, 16, 0x7F, 0x7F, 0x80, has_infinity=False, has_negative_zero=False),
    "f8e4b15": Float8(3, 15, 0x7E, 0x7F, 0x7E, has_infinity=False, has_negative_zero=True),
}
