"""Recipes of sin, cos and tan.

|x| = n pi/2 + r with |r| <= pi/4; n modulo 4 says which of sin(r), cos(r) is the result, and its sign. Up to
a limit, n is read from the low bits of a sum with a large constant and r comes from fma with pi/2 in parts.
Beyond, x is multiplied by those bits of 2/pi that matter at its exponent (Payne and Hanek): bits above them
would add multiples of 4 to n, bits below do not reach the result.

The f32 functions compute in f64 from the reduction on and round once at the end: this costs fewer
instructions than a reduction in f32 with a compensated remainder, and is more precise. The f64 functions
carry a remainder in two parts, and reduce huge arguments in integers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from blocklang.maths import coefficients
from blocklang.maths.formats import F64, Lanes
from blocklang.maths.steps import Steps, V

(TWO_OVER_PI,) = coefficients.TWO_OVER_PI
LOW_WORD = 0xFFFFFFFF
# Where the reduction by bits of 2/pi takes over: the exponent at which its table begins.
LIMIT_EXPONENT_F32 = coefficients.TWO_OVER_PI_BANDS[0][0]
LIMIT_EXPONENT_F64 = 30


def sin_f32(steps: Steps[V], x: V) -> V:
    return sine_or_cosine_f32(steps, x, cosine=False)


def cos_f32(steps: Steps[V], x: V) -> V:
    return sine_or_cosine_f32(steps, x, cosine=True)


def tan_f32(steps: Steps[V], x: V) -> V:
    """sin(r) / cos(r), or -cos(r) / sin(r) in odd quadrants."""
    lanes, quadrant, r = reduce_f32(steps, x)
    sine, cosine = sine_f32(lanes, r), cosine_f32(lanes, r)
    odd = is_odd(lanes, quadrant)
    quotient = steps.div(steps.select(odd, cosine, sine), steps.select(odd, sine, cosine))
    sign = steps.ixor(steps.shl(quadrant, lanes.integer(63)), lanes.bits_of(steps.cast(x, "f64")))
    return steps.cast(with_sign(lanes, quotient, sign), "f32")


def sine_or_cosine_f32(steps: Steps[V], x: V, *, cosine: bool) -> V:
    lanes, quadrant, r = reduce_f32(steps, x)
    if cosine:
        quadrant = steps.iadd(quadrant, lanes.integer(1))
    value = steps.select(is_odd(lanes, quadrant), cosine_f32(lanes, r), sine_f32(lanes, r))
    sign = steps.shl(quadrant, lanes.integer(62))
    if not cosine:
        sign = steps.ixor(sign, lanes.bits_of(steps.cast(x, "f64")))
    return steps.cast(with_sign(lanes, value, sign), "f32")


def is_odd(lanes: Lanes[V], quadrant: V) -> V:
    """Test the lowest bit, moved to the sign: what vector blends look at."""
    return lanes.steps.lt(lanes.steps.shl(quadrant, lanes.integer(63)), lanes.integer(0))


def with_sign(lanes: Lanes[V], value: V, sign: V) -> V:
    """Flip the sign of the value where the highest bit of `sign` is set."""
    flip = lanes.steps.iand(sign, lanes.integer(lanes.format.sign_mask))
    return lanes.from_bits(lanes.steps.ixor(lanes.bits_of(value), flip))


def sine_f32(lanes: Lanes[V], r: V) -> V:
    steps = lanes.steps
    square = steps.mul(r, r)
    return steps.fma(steps.mul(r, square), lanes.polynomial(square, coefficients.SIN_F32), r)


def cosine_f32(lanes: Lanes[V], r: V) -> V:
    return lanes.polynomial(lanes.steps.mul(r, r), (1.0, *coefficients.COS_F32))


def reduce_f32(steps: Steps[V], x: V) -> tuple[Lanes[V], V, V]:
    """Reduce the magnitude of an f32, in f64; return n modulo 4 in the low bits of an integer, and r."""
    lanes = Lanes(steps, F64)
    size = steps.abs(x)
    wide = steps.cast(size, "f64")
    quadrant, n = nearest_quadrant(lanes, wide)
    high, middle, _ = coefficients.HALF_PI
    r = steps.fma(n, lanes.number(-high), wide)
    r = steps.fma(n, lanes.number(-middle), r)
    usual = steps.lt(size, steps.constant("f32", 2.0**LIMIT_EXPONENT_F32))
    quadrant, r = steps.rarely(steps.logical_not(usual), lambda: reduce_huge_f32(lanes, wide), (quadrant, r))
    return lanes, quadrant, r


def nearest_quadrant(lanes: Lanes[V], x: V) -> tuple[V, V]:
    """Round x / (pi/2) to an integer n; return bits whose lowest are n's, and n as a float."""
    magic = lanes.number(lanes.format.rounding_magic)
    shifted = lanes.steps.fma(x, lanes.number(TWO_OVER_PI), magic)
    return lanes.bits_of(shifted), lanes.steps.sub(shifted, magic)


def reduce_huge_f32(lanes: Lanes[V], x: V) -> tuple[V, V]:
    """Reduce x by the bits of 2/pi that matter at its exponent, in three parts.

    The products with the first two have 53 bits and are exact, and so are their fractions and the sum of
    these where it is small; infinity and NaN give NaN.
    """
    steps = lanes.steps
    first, second, third = band_of(lanes, x)
    quadrant, fraction = nearest_integer(lanes, steps.mul(x, first))
    more, rest = nearest_integer(lanes, steps.mul(x, second))
    last, fraction = nearest_integer(lanes, steps.fma(x, third, steps.add(fraction, rest)))
    quadrant = steps.add(steps.add(quadrant, more), last)
    magic = lanes.number(lanes.format.rounding_magic)
    r = steps.mul(fraction, lanes.number(coefficients.HALF_PI[0]))
    return lanes.bits_of(steps.add(quadrant, magic)), r


def band_of(lanes: Lanes[V], x: V) -> list[V]:
    """Choose the three parts of 2/pi by the exponent of x."""
    steps = lanes.steps
    (_, lowest), *others = coefficients.TWO_OVER_PI_BANDS
    parts = [lanes.number(part) for part in lowest]
    for exponent, band in others:
        here = steps.ge(x, lanes.number(2.0**exponent))
        parts = [steps.select(here, lanes.number(b), a) for a, b in zip(parts, band, strict=True)]
    return parts


def nearest_integer(lanes: Lanes[V], x: V) -> tuple[V, V]:
    """Split into the nearest integer and what is left."""
    integer = lanes.steps.round_even(x)
    return integer, lanes.steps.sub(x, integer)


def sin_f64(steps: Steps[V], x: V) -> V:
    return sine_or_cosine_f64(steps, x, cosine=False)


def cos_f64(steps: Steps[V], x: V) -> V:
    return sine_or_cosine_f64(steps, x, cosine=True)


def tan_f64(steps: Steps[V], x: V) -> V:
    """Divide the parts of sin(r) and cos(r) as in `tan_f32`; the quotient q gets its remainder's share.

    (n + n') / (d + d') = q + (n - q d + n' - q d') / d, up to products of two small parts.
    """
    lanes, quadrant, (r, rest) = reduce_f64(steps, x)
    sine, cosine = sine_parts_f64(lanes, r, rest), cosine_parts_f64(lanes, r, rest)
    odd = is_odd(lanes, quadrant)
    n, n_rest = lanes.fast_two_sum(*select_pair(lanes, odd, cosine, sine))
    d, d_rest = lanes.fast_two_sum(*select_pair(lanes, odd, sine, cosine))
    inverse = steps.div(lanes.number(1.0), d)
    quotient = steps.mul(n, inverse)
    against = steps.neg(quotient)
    remainder = steps.add(steps.fma(against, d, n), steps.fma(against, d_rest, n_rest))
    value = steps.fma(remainder, inverse, quotient)
    sign = steps.ixor(steps.shl(quadrant, lanes.integer(63)), lanes.bits_of(x))
    return with_sign(lanes, value, sign)


def sine_or_cosine_f64(steps: Steps[V], x: V, *, cosine: bool) -> V:
    lanes, quadrant, (r, rest) = reduce_f64(steps, x)
    if cosine:
        quadrant = steps.iadd(quadrant, lanes.integer(1))
    high, low = select_pair(
        lanes, is_odd(lanes, quadrant), cosine_parts_f64(lanes, r, rest), sine_parts_f64(lanes, r, rest)
    )
    sign = steps.shl(quadrant, lanes.integer(62))
    if not cosine:
        sign = steps.ixor(sign, lanes.bits_of(x))
    return with_sign(lanes, steps.add(high, low), sign)


def select_pair(lanes: Lanes[V], condition: V, a: tuple[V, V], b: tuple[V, V]) -> tuple[V, V]:
    return lanes.steps.select(condition, a[0], b[0]), lanes.steps.select(condition, a[1], b[1])


def sine_parts_f64(lanes: Lanes[V], r: V, rest: V) -> tuple[V, V]:
    """sin(r + rest) = r + (rest + r**2 (r P(r**2) - rest/2)), as two terms to be added."""
    steps = lanes.steps
    square = steps.mul(r, r)
    inner = steps.fma(r, lanes.polynomial(square, coefficients.SIN_F64), steps.mul(rest, lanes.number(-0.5)))
    return r, steps.fma(square, inner, rest)


def cosine_parts_f64(lanes: Lanes[V], r: V, rest: V) -> tuple[V, V]:
    """cos(r + rest) = 1 - r**2/2 + (r**4 P(r**2) - r rest), as two terms.

    What 1 - r**2/2 loses is in the second.
    """
    steps = lanes.steps
    square = steps.mul(r, r)
    half = steps.mul(square, lanes.number(0.5))
    high, lost = lanes.fast_two_sum(lanes.number(1.0), steps.neg(half))
    # The rounding of the square itself: half the error of r * r.
    lost = steps.fma(steps.fma(r, r, steps.neg(square)), lanes.number(-0.5), lost)
    inner = steps.mul(square, lanes.polynomial(square, coefficients.COS_F64))
    tail = steps.fma(square, inner, steps.fma(r, steps.neg(rest), lost))
    return high, tail


def reduce_f64(steps: Steps[V], x: V) -> tuple[Lanes[V], V, tuple[V, V]]:
    """Reduce the magnitude of an f64; return n modulo 4 in the low bits of an integer, and r in two parts."""
    lanes = Lanes(steps, F64)
    size = steps.abs(x)
    quadrant, n = nearest_quadrant(lanes, size)
    high, middle, low = coefficients.HALF_PI
    # Exact: both terms are multiples of 2**-53, or of the last place of a smaller x, and nearly equal.
    exact = steps.fma(n, lanes.number(-high), size)
    # A difference and its error, though the first term may be the smaller one: it is a multiple of the
    # other's last place.
    product = steps.mul(n, lanes.number(middle))
    r = steps.sub(exact, product)
    lost = steps.sub(steps.sub(exact, r), product)
    rest = steps.sub(lost, steps.fma(n, lanes.number(middle), steps.neg(product)))
    rest = steps.fma(n, lanes.number(-low), rest)
    usual = steps.lt(size, lanes.number(2.0**LIMIT_EXPONENT_F64))
    quadrant, r, rest = steps.rarely(
        steps.logical_not(usual), lambda: reduce_huge_f64(lanes, size), (quadrant, r, rest)
    )
    return lanes, quadrant, (r, rest)


def reduce_huge_f64(lanes: Lanes[V], x: V) -> tuple[V, V, V]:
    """Reduce x = M 2**e, M of 53 bits, by a window of 192 bits of 2/pi whose first has weight 2 in the
    product.

    No f64 comes nearer to a multiple of pi/2 than about 2**-61, so the first 128 bits of the product leave 65
    bits of the remainder at least.
    """
    steps = lanes.steps
    bits = lanes.bits_of(x)
    offset = steps.isub(lshr(lanes, bits, 52), lanes.integer(F64.bias + LIMIT_EXPONENT_F64))
    words = [lanes.integer(word) for word in coefficients.TWO_OVER_PI_WORDS_F64]
    significand = steps.iand(bits, lanes.integer(F64.fraction_mask))
    significand = steps.ior(significand, lanes.integer(1 << 52))
    high, low = multiply_window(lanes, significand, window(lanes, four_words(lanes, words, offset), offset))
    quadrant, fraction = split_quadrant(lanes, high)
    r, rest = scale_to_angle(lanes, fraction, low)
    return quadrant, only_finite(lanes, x, r), rest


def four_words(lanes: Lanes[V], words: Sequence[V], offset: V) -> Sequence[V]:
    """Choose the four words from `offset` // 64 on, one bit of that index after the other."""
    steps = lanes.steps
    for bit in (3, 2, 1, 0):
        # The bit that counts 2**bit words, moved to the sign.
        ahead = steps.lt(steps.shl(offset, lanes.integer(63 - 6 - bit)), lanes.integer(0))
        step = 1 << bit
        words = [
            steps.select(ahead, late, early)
            for early, late in zip(words[: 3 + step], words[step:], strict=False)
        ]
    return words


def multiply_window(lanes: Lanes[V], significand: V, window: Sequence[V]) -> tuple[V, V]:
    """Multiply 53 bits by 192, modulo 2**192; return the first 128 bits, but for a carry from the last 64.

    Schoolbook, in digits of 32 bits: the product with each digit of the significand is one chain of carries.
    """
    steps = lanes.steps
    mask = lanes.integer(LOW_WORD)
    digits = [part for word in reversed(window) for part in (steps.iand(word, mask), lshr(lanes, word, 32))]
    low_row = carry_chain(lanes, steps.iand(significand, mask), digits)
    high_row = carry_chain(lanes, lshr(lanes, significand, 32), digits[:5])
    columns = []
    carry = lanes.integer(0)
    for a, b in zip(low_row[2:], high_row[1:], strict=True):
        total = steps.iadd(steps.iadd(a, b), carry)
        columns.append(steps.iand(total, mask))
        carry = lshr(lanes, total, 32)
    return join(lanes, columns[3], columns[2]), join(lanes, columns[1], columns[0])


def carry_chain(lanes: Lanes[V], factor: V, digits: Sequence[V]) -> list[V]:
    """Multiply digits, lowest first, by one digit, modulo the power behind the last."""
    steps = lanes.steps
    result = []
    carry = lanes.integer(0)
    for digit in digits:
        total = steps.iadd(steps.imul(factor, digit), carry)
        result.append(steps.iand(total, lanes.integer(LOW_WORD)))
        carry = lshr(lanes, total, 32)
    return result


def join(lanes: Lanes[V], high: V, low: V) -> V:
    return lanes.steps.ior(lanes.steps.shl(high, lanes.integer(32)), low)


def scale_to_angle(lanes: Lanes[V], fraction: V, below: V) -> tuple[V, V]:
    """Multiply a signed fixed-point number (62 bits behind the point, and 64 unsigned ones) by pi/2, in two
    parts.

    The four halves are exact floats; each is larger than the sum of those behind it, or zero.
    """
    steps = lanes.steps
    mask = lanes.integer(LOW_WORD)
    halves = (
        steps.ashr(fraction, lanes.integer(32)),
        steps.iand(fraction, mask),
        lshr(lanes, below, 32),
        steps.iand(below, mask),
    )
    first, second, third, fourth = (
        steps.mul(steps.cast(half, "f64"), lanes.number(2.0 ** (-30 - 32 * i)))
        for i, half in enumerate(halves)
    )
    high, lost = lanes.fast_two_sum(first, second)
    high, low = lanes.fast_two_sum(high, steps.add(lost, steps.add(third, fourth)))
    half_pi, half_pi_rest, _ = (lanes.number(part) for part in coefficients.HALF_PI)
    r = steps.mul(high, half_pi)
    rest = steps.fma(high, half_pi, steps.neg(r))
    rest = steps.fma(high, half_pi_rest, rest)
    return r, steps.fma(low, half_pi, rest)


def lshr(lanes: Lanes[V], value: V, count: int) -> V:
    return lanes.steps.lshr(value, lanes.integer(count))


def window(lanes: Lanes[V], words: Sequence[V], offset: V) -> list[V]:
    """Cut 64-bit words from a bit string, beginning at bit `offset` modulo 64; one word less."""
    steps = lanes.steps
    left = steps.iand(offset, lanes.integer(63))
    right = steps.isub(lanes.integer(63), left)
    return [
        steps.ior(steps.shl(here, left), steps.lshr(lshr(lanes, after, 1), right))
        for here, after in pairwise(words)
    ]


def split_quadrant(lanes: Lanes[V], product: V) -> tuple[V, V]:
    """Split a fixed-point number, two bits before the point, into its nearest integer and a signed rest."""
    steps = lanes.steps
    quadrant = lshr(lanes, steps.iadd(product, lanes.integer(1 << 61)), 62)
    return quadrant, steps.isub(product, steps.shl(quadrant, lanes.integer(62)))


def only_finite(lanes: Lanes[V], x: V, r: V) -> V:
    """Replace the remainder of infinity and NaN, which the integer reduction takes for numbers, by NaN."""
    finite = lanes.steps.lt(x, lanes.number(math.inf))
    return lanes.steps.select(finite, r, lanes.number(math.nan))
