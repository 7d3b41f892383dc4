"""What the integer functions and the bit patterns of libdevice do, in operations of the language.

Everything is a handful of shifts, masks and selections on vectors. Operands are tensors of the types that the
table of `libdevice` says.
"""

from __future__ import annotations

from typing import Any

from blocklang.language import dtypes as tl
from blocklang.language.casting import bitcast_element, cast_element
from blocklang.language.maths import umulhi, where
from blocklang.language.tensor import constant, tensor

LOW_WORD = 0xFFFFFFFF


def _unsigned(x: tensor) -> tensor:
    return bitcast_element(x, tl.dtype(f"uint{x.dtype.primitive_bitwidth}"))


def _halves(x: tensor) -> tuple[tensor, tensor]:
    """The upper and the lower 32 bits of 64, as uint32."""
    bits = _unsigned(x)
    return cast_element(bits >> 32, tl.uint32), cast_element(bits, tl.uint32)


def _joined(high: tensor, low: tensor) -> Any:
    """64 bits of two words."""
    return (cast_element(high, tl.uint64) << 32) | cast_element(low, tl.uint64)


def clz(x: tensor) -> tensor:
    """Leading zeros, from the exponent of the word as fp64, which is exact."""
    if x.dtype.primitive_bitwidth == 64:
        high, low = _halves(x)
        return where(high != 0, _leading(high), _leading(low) + 32)
    return _leading(_unsigned(x))


def _leading(word: tensor) -> tensor:
    bits = bitcast_element(cast_element(word, tl.float64), tl.int64)
    exponent = cast_element(bits >> 52, tl.int32)
    return where(word != 0, 1023 + 31 - exponent, 32)


def ffs(x: tensor) -> tensor:
    lowest = x & (0 - x)
    return where(x != 0, x.dtype.primitive_bitwidth - clz(lowest), 0)


def popc(x: tensor) -> tensor:
    if x.dtype.primitive_bitwidth == 64:
        high, low = _halves(x)
        total: tensor = _ones(high) + _ones(low)
        return total
    return _ones(_unsigned(x))


def _ones(word: Any) -> tensor:
    """Sums of neighbours: of bits, pairs, nibbles, and of bytes by a product."""
    word = word - ((word >> 1) & 0x55555555)
    word = (word & 0x33333333) + ((word >> 2) & 0x33333333)
    word = (word + (word >> 4)) & 0x0F0F0F0F
    return bitcast_element((word * 0x01010101) >> 24, tl.int32)


def brev(x: tensor) -> tensor:
    if x.dtype.primitive_bitwidth == 64:
        high, low = _halves(x)
        return bitcast_element(_joined(_reversed(low), _reversed(high)), tl.int64)
    return bitcast_element(_reversed(_unsigned(x)), tl.int32)


def _reversed(word: Any) -> Any:
    """Swap halves of ever smaller groups."""
    for count, mask in ((1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F), (8, 0x00FF00FF)):
        word = ((word >> count) & mask) | ((word & mask) << count)
    return (word >> 16) | (word << 16)


def byte_perm(x: tensor, y: tensor, selector: tensor) -> tensor:
    """Byte i of the result is the byte of y:x that three bits of the selector name."""
    source = _joined(_unsigned(y), _unsigned(x))
    result: Any = None
    for i in range(4):
        place = cast_element((_unsigned(selector) >> (4 * i)) & 7, tl.uint64) * 8
        part = cast_element((source >> place) & 0xFF, tl.uint32) << (8 * i)
        result = part if result is None else result | part
    return bitcast_element(result, tl.int32)


def mulhi(x: tensor, y: tensor) -> tensor:
    """The upper half of the product; a negative factor counts 2**width too much as unsigned."""
    high = umulhi(x, y)
    if x.dtype.is_int_unsigned():
        return high
    zero = x ^ x
    less: tensor = high - where(x < 0, y, zero) - where(y < 0, x, zero)
    return less


def mul24(x: tensor, y: tensor) -> Any:
    """The low 32 bits of the product of the low 24 bits, of signed ones extended by their sign."""
    if x.dtype.is_int_unsigned():
        return (x & 0xFFFFFF) * (y & 0xFFFFFF)
    return ((x << 8) >> 8) * ((y << 8) >> 8)


def sad(x: tensor, y: tensor, z: tensor) -> tensor:
    """|x - y| + z, the difference as unsigned."""
    distance = where(x > y, x - y, y - x)
    return bitcast_element(_unsigned(distance) + z, x.dtype)


def hadd(x: tensor, y: tensor) -> Any:
    """(x + y) >> 1 without overflow: what both have, and half of what one has."""
    return (x & y) + ((x ^ y) >> 1)


def rhadd(x: tensor, y: tensor) -> Any:
    """(x + y + 1) >> 1 without overflow."""
    return (x | y) - ((x ^ y) >> 1)


def low_word(x: tensor) -> tensor:
    return bitcast_element(_halves(bitcast_element(x, tl.int64))[1], tl.int32)


def high_word(x: tensor) -> tensor:
    return bitcast_element(_halves(bitcast_element(x, tl.int64))[0], tl.int32)


def double_of_words(high: tensor, low: tensor) -> tensor:
    return bitcast_element(_joined(_unsigned(high), _unsigned(low)), tl.float64)


def integer_bits(x: tensor) -> tensor:
    """The bits of a float as the signed integer of its width."""
    return bitcast_element(x, tl.dtype(f"int{x.dtype.primitive_bitwidth}"))


def signbit(x: tensor) -> tensor:
    return cast_element(integer_bits(x) < 0, tl.int32)


def copysign(x: tensor, y: tensor) -> tensor:
    bits, sign = integer_bits(x), integer_bits(y)
    lowest = bits.dtype.get_int_min_value()
    return bitcast_element((bits & ~lowest) | (sign & lowest), x.dtype)


def nextafter(x: tensor, y: tensor) -> tensor:
    """One step of the bits, which order floats of one sign by magnitude; from zero, to the smallest."""
    bits = integer_bits(x)
    outward = (x < y) == (bits >= 0)
    stepped = where(outward, bits + 1, bits - 1)
    lowest = bits.dtype.get_int_min_value()
    first = (integer_bits(y) & lowest) | 1
    moved = bitcast_element(where(x == 0.0, first, stepped), x.dtype)
    return where(x == y, y, where((x != x) | (y != y), float("nan"), moved))


def exponent(x: tensor) -> tuple[tensor, tensor]:
    """floor(log2(|x|)) as int32 of a finite number that is not 0; and the size."""
    bits_of_fraction, bias = (23, 127) if x.dtype == tl.float32 else (52, 1023)
    size = bitcast_element(integer_bits(x) & integer_bits(x).dtype.get_int_max_value(), x.dtype)
    small = size < 2.0 ** (1 - bias)
    lift = bits_of_fraction + 1
    lifted = where(small, size * 2.0**lift, size)
    field = cast_element(integer_bits(lifted) >> bits_of_fraction, tl.int32)
    return where(small, field - (bias + lift), field - bias), size


def ilogb(x: tensor) -> tensor:
    value, size = exponent(x)
    lowest, highest = tl.int32.get_int_min_value(), tl.int32.get_int_max_value()
    value = where(size == float("inf"), highest, value)
    return where((size == 0.0) | (x != x), lowest, value)


def logb(x: tensor) -> tensor:
    value, size = exponent(x)
    result = cast_element(value, x.dtype)
    result = where(size == 0.0, float("-inf"), result)
    return where(size < float("inf"), result, size)


def power_of_two(exponent: tensor) -> tensor:
    """2**n as fp64 for an int32 n of a normal result."""
    return bitcast_element((cast_element(exponent, tl.int64) + 1023) << 52, tl.float64)


def _clamped(n: tensor, limit: int) -> tensor:
    n = where(n > limit, limit, n)
    return where(n < -limit, -limit, n)


def ldexp(x: tensor, n: tensor) -> tensor:
    """x 2**n, rounded once. fp32: in fp64, where the product is exact. fp64: far down, 2**64 is kept for the
    last factor, so that only that one can round.
    """
    if x.dtype == tl.float32:
        return cast_element(cast_element(x, tl.float64) * power_of_two(_clamped(n, 300)), tl.float32)
    n = _clamped(n, 2200)
    far = n < -100
    rest = where(far, n + 64, n)
    for _ in range(3):
        part = _clamped(rest, 1000)
        x, rest = x * power_of_two(part), rest - part
    last: tensor = x * where(far, constant(2.0**-64, tl.float64), constant(1.0, tl.float64))
    return last
