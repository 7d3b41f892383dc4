"""Recipes of arithmetic rounded toward zero, down or up: add, mul, div, sqrt and fma.

Each computes the nearest result and the sign of what it misses, and steps to the neighbour on the other side
where the direction asks for it. Only that sign is needed, so it may come from any exact or correctly rounded
expression of the rest.

f32: f64 holds products exactly, and a rest is a difference of f64 that has the right sign. f64: the rest of
a sum is exact (Dekker), those of products, quotients and roots are one fma, of operands that are scaled where
it could underflow; the rest of fma follows Boldo and Muller, on operands scaled by the product's exponent.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from blocklang.maths.formats import F32, F64, Format, Lanes
from blocklang.maths.steps import Steps, V

# Below this, the error of a product may underflow; above, no scaled number overflows.
TINY = 2.0**-900
LIFT = 300
# Beyond, the smaller of product and addend only matters by its sign.
FAR = 200


def step(lanes: Lanes[V], near: V, rest: V, direction: str) -> V:
    """The neighbour of the nearest result in a direction, where the exact one lies on that side of it.

    As integers, floats of one sign are ordered by magnitude; a zero has the sign of its rest.
    """
    steps = lanes.steps
    zero, one, minus = lanes.number(0.0), lanes.integer(1), lanes.integer(-1)
    bits = lanes.bits_of(near)
    negative = steps.lt(bits, lanes.integer(0))
    below, above = steps.lt(rest, zero), steps.gt(rest, zero)
    if direction == "rd":
        wanted, move = below, steps.select(negative, one, minus)
    elif direction == "ru":
        wanted, move = above, steps.select(negative, minus, one)
    else:
        inward = steps.logical_and(negative, above)
        wanted = steps.logical_or(inward, steps.logical_and(steps.logical_not(negative), below))
        move = minus
    return lanes.from_bits(steps.iadd(bits, steps.select(wanted, move, lanes.integer(0))))


def signed_zero(lanes: Lanes[V], value: V, rest: V, direction: str, *terms: V) -> V:
    """An exact sum of zero: downwards it is -0, unless all terms are positive."""
    if direction != "rd":
        return value
    steps = lanes.steps
    zero = lanes.number(0.0)
    signs = lanes.bits_of(terms[0])
    for term in terms[1:]:
        signs = steps.ior(signs, lanes.bits_of(term))
    signs = steps.iand(signs, lanes.integer(lanes.format.sign_mask))
    exact = steps.logical_and(steps.eq(value, zero), steps.eq(rest, zero))
    return steps.select(exact, lanes.from_bits(signs), value)


def in_f32(steps: Steps[V], near: V, total: V, error: V, direction: str) -> tuple[V, V]:
    """Step an f32 result whose exact value is the f64 sum `total + error`; return it and its rest."""
    wide = steps.sub(total, steps.cast(near, "f64"))
    rest = steps.add(wide, error)
    # The sign is all that matters, and a cast could lose it.
    narrow = Lanes(steps, F32)
    zero = Lanes(steps, F64).number(0.0)
    sign = steps.select(steps.lt(rest, zero), narrow.number(-1.0), narrow.number(0.0))
    sign = steps.select(steps.gt(rest, zero), narrow.number(1.0), sign)
    return step(narrow, near, sign, direction), sign


def two_sum(steps: Steps[V], a: V, b: V) -> tuple[V, V]:
    """The rounded sum and its error, of operands in any order (Knuth); far from overflow."""
    total = steps.add(a, b)
    b_part = steps.sub(total, a)
    return total, steps.add(steps.sub(a, steps.sub(total, b_part)), steps.sub(b, b_part))


def add_f32(steps: Steps[V], direction: str, a: V, b: V) -> V:
    total, error = two_sum(steps, steps.cast(a, "f64"), steps.cast(b, "f64"))
    value, rest = in_f32(steps, steps.add(a, b), total, error, direction)
    return signed_zero(Lanes(steps, F32), value, rest, direction, a, b)


def mul_f32(steps: Steps[V], direction: str, a: V, b: V) -> V:
    product = steps.mul(steps.cast(a, "f64"), steps.cast(b, "f64"))
    zero = Lanes(steps, F64).number(0.0)
    return in_f32(steps, steps.mul(a, b), product, zero, direction)[0]


def div_f32(steps: Steps[V], direction: str, a: V, b: V) -> V:
    """The rest a - q b, over b: only its sign is used. An overflow has no rest, but a quotient in f64."""
    lanes, narrow = Lanes(steps, F64), Lanes(steps, F32)
    zero, infinity = lanes.number(0.0), lanes.number(math.inf)
    wide_a, wide_b = steps.cast(a, "f64"), steps.cast(b, "f64")
    near = steps.div(a, b)
    wide = steps.cast(near, "f64")
    residual = steps.sub(wide_a, steps.mul(wide, wide_b))
    rest = steps.select(steps.lt(wide_b, zero), steps.neg(residual), residual)
    quotient = steps.div(wide_a, wide_b)
    overflow = steps.logical_and(steps.eq(steps.abs(wide), infinity), steps.lt(steps.abs(quotient), infinity))
    rest = steps.select(overflow, steps.neg(wide), rest)
    sign = steps.select(steps.lt(rest, zero), narrow.number(-1.0), narrow.number(0.0))
    return step(narrow, near, steps.select(steps.gt(rest, zero), narrow.number(1.0), sign), direction)


def sqrt_f32(steps: Steps[V], direction: str, a: V) -> V:
    near, zero = steps.sqrt(a), Lanes(steps, F64).number(0.0)
    wide = steps.cast(near, "f64")
    # x - r**2 and sqrt(x) - r have one sign: let the first stand for the second.
    difference = steps.sub(steps.cast(a, "f64"), steps.mul(wide, wide))
    narrow = Lanes(steps, F32)
    sign = steps.select(steps.lt(difference, zero), narrow.number(-1.0), narrow.number(0.0))
    return step(narrow, near, steps.select(steps.gt(difference, zero), narrow.number(1.0), sign), direction)


def fma_f32(steps: Steps[V], direction: str, a: V, b: V, c: V) -> V:
    product = steps.mul(steps.cast(a, "f64"), steps.cast(b, "f64"))
    total, error = two_sum(steps, product, steps.cast(c, "f64"))
    value, rest = in_f32(steps, steps.fma(a, b, c), total, error, direction)
    narrow = Lanes(steps, F32)
    sign = steps.ixor(narrow.bits_of(a), narrow.bits_of(b))
    return signed_zero(narrow, value, rest, direction, narrow.from_bits(sign), c)


def overflow_rest(lanes: Lanes[V], near: V, rest: V, *operands: V) -> V:
    """Where finite operands gave an infinite result, what it misses points to zero."""
    steps, infinity = lanes.steps, lanes.number(math.inf)
    overflow = steps.eq(steps.abs(near), infinity)
    for operand in operands:
        overflow = steps.logical_and(overflow, steps.lt(steps.abs(operand), infinity))
    return steps.select(overflow, steps.neg(near), rest)


def add_f64(steps: Steps[V], direction: str, a: V, b: V) -> V:
    lanes = Lanes(steps, F64)
    swap = steps.lt(steps.abs(a), steps.abs(b))
    large, small = steps.select(swap, b, a), steps.select(swap, a, b)
    near, rest = lanes.fast_two_sum(large, small)
    rest = overflow_rest(lanes, near, rest, a, b)
    return signed_zero(lanes, step(lanes, near, rest, direction), rest, direction, a, b)


def mul_f64(steps: Steps[V], direction: str, a: V, b: V) -> V:
    lanes = Lanes(steps, F64)
    zero = lanes.number(0.0)
    near = steps.mul(a, b)
    tiny = steps.lt(steps.abs(near), lanes.number(TINY))
    lift = steps.select(tiny, lanes.number(2.0**LIFT), lanes.number(1.0))
    swap = steps.lt(steps.abs(a), steps.abs(b))
    large, small = steps.select(swap, b, a), steps.select(swap, a, b)
    rest = steps.fma(large, steps.mul(small, lift), steps.neg(steps.mul(near, lift)))
    # A product that vanished altogether misses itself.
    both = steps.logical_and(steps.ne(a, zero), steps.ne(b, zero))
    vanished = steps.logical_and(steps.eq(near, zero), both)
    rest = steps.select(vanished, lanes.with_sign_of(lanes.number(1.0), near), rest)
    return step(lanes, near, overflow_rest(lanes, near, rest, a, b), direction)


def split_exponent(lanes: Lanes[V], x: V) -> tuple[V, V]:
    """Split a finite number that is not 0 into one of size 1 to 2, and its exponent."""
    steps, form = lanes.steps, lanes.format
    subnormal = steps.lt(steps.abs(x), lanes.number(form.smallest_normal))
    lift = form.fraction_bits + 1
    bits = lanes.bits_of(steps.select(subnormal, steps.mul(x, lanes.number(2.0**lift)), x))
    field = steps.iand(steps.lshr(bits, lanes.integer(form.fraction_bits)), lanes.integer(2 * form.bias + 1))
    offset = steps.select(subnormal, lanes.integer(form.bias + lift), lanes.integer(form.bias))
    kept = steps.iand(bits, lanes.integer(form.sign_mask | form.fraction_mask))
    return lanes.from_bits(steps.ior(kept, lanes.bits_of(lanes.number(1.0)))), steps.isub(field, offset)


def scale(lanes: Lanes[V], x: V, exponent: V, parts: int) -> V:
    """x 2**exponent in so many factors that each is a normal number; a vanishing result may be off."""
    steps, form = lanes.steps, lanes.format
    shift = parts.bit_length() - 1
    part = steps.ashr(exponent, lanes.integer(shift))
    last = steps.isub(exponent, steps.imul(part, lanes.integer(parts - 1)))
    bias, places = lanes.integer(form.bias), lanes.integer(form.fraction_bits)
    factor = lanes.from_bits(steps.shl(steps.iadd(part, bias), places))
    for _ in range(parts - 1):
        x = steps.mul(x, factor)
    return steps.mul(x, lanes.from_bits(steps.shl(steps.iadd(last, bias), places)))


def is_plain(lanes: Lanes[V], x: V) -> V:
    """True for a finite number that is not 0."""
    steps = lanes.steps
    size = steps.abs(x)
    return steps.logical_and(steps.gt(size, lanes.number(0.0)), steps.lt(size, lanes.number(math.inf)))


def div_f64(steps: Steps[V], direction: str, a: V, b: V) -> V:
    """The rest of m_a / m_b, significands, with the quotient scaled by their exponents: exact but for one
    fma.
    """
    lanes = Lanes(steps, F64)
    zero = lanes.number(0.0)
    near = steps.div(a, b)
    m_a, e_a = split_exponent(lanes, a)
    m_b, e_b = split_exponent(lanes, b)
    scaled = scale(lanes, near, steps.isub(e_b, e_a), 4)
    residual = steps.fma(steps.neg(scaled), m_b, m_a)
    rest = steps.select(steps.lt(m_b, zero), steps.neg(residual), residual)
    plain = steps.logical_and(is_plain(lanes, a), is_plain(lanes, b))
    infinite = steps.eq(steps.abs(near), lanes.number(math.inf))
    rest = steps.select(infinite, steps.neg(near), rest)
    return step(lanes, near, steps.select(plain, rest, zero), direction)


def sqrt_f64(steps: Steps[V], direction: str, a: V) -> V:
    lanes = Lanes(steps, F64)
    near = steps.sqrt(a)
    tiny = steps.lt(a, lanes.number(TINY))
    one = lanes.number(1.0)
    root = steps.mul(near, steps.select(tiny, lanes.number(2.0 ** (LIFT // 2)), one))
    square = steps.mul(a, steps.select(tiny, lanes.number(2.0**LIFT), one))
    return step(lanes, near, steps.fma(steps.neg(root), root, square), direction)


def fma_f64(steps: Steps[V], direction: str, a: V, b: V, c: V) -> V:
    lanes = Lanes(steps, F64)
    zero, far = lanes.number(0.0), lanes.number(2.0**FAR)
    near = steps.fma(a, b, c)
    m_a, e_a = split_exponent(lanes, a)
    m_b, e_b = split_exponent(lanes, b)
    down = steps.isub(lanes.integer(0), steps.iadd(e_a, e_b))
    addend, result = scale(lanes, c, down, 4), scale(lanes, near, down, 4)
    # An addend far below the product counts as a small number of its sign.
    small = steps.logical_and(steps.ne(c, zero), steps.lt(steps.abs(addend), lanes.number(2.0**-FAR)))
    addend = steps.select(small, lanes.with_sign_of(lanes.number(2.0**-FAR), c), addend)
    product, product_error = lanes.two_product(m_a, m_b)
    first, last = two_sum(steps, addend, product_error)
    high, middle = two_sum(steps, product, first)
    rest = steps.add(steps.add(steps.sub(high, result), middle), last)
    # A product far below the addend only has a sign.
    rest = steps.select(steps.gt(steps.abs(addend), far), product, rest)
    # Without a product the sum is exact.
    plain = steps.logical_and(is_plain(lanes, a), is_plain(lanes, b))
    plain = steps.logical_and(plain, steps.lt(steps.abs(c), lanes.number(math.inf)))
    infinite = steps.eq(steps.abs(near), lanes.number(math.inf))
    rest = steps.select(infinite, steps.neg(near), rest)
    rest = steps.select(plain, rest, zero)
    sign = steps.ixor(lanes.bits_of(a), lanes.bits_of(b))
    return signed_zero(lanes, step(lanes, near, rest, direction), rest, direction, lanes.from_bits(sign), c)


OPERATIONS: dict[str, tuple[int, dict[Format, Callable[..., object]]]] = {
    "add": (2, {F32: add_f32, F64: add_f64}),
    "mul": (2, {F32: mul_f32, F64: mul_f64}),
    "div": (2, {F32: div_f32, F64: div_f64}),
    "sqrt": (1, {F32: sqrt_f32, F64: sqrt_f64}),
    "fma": (3, {F32: fma_f32, F64: fma_f64}),
}
DIRECTIONS = ("rz", "rd", "ru")


def recipe_of(name: str, form: Format, direction: str) -> Callable[..., object]:
    """The function of the steps and the operands."""
    operation = OPERATIONS[name][1][form]

    def rounded(steps: Steps[V], *operands: V) -> object:
        return operation(steps, direction, *operands)

    return rounded


def add_nearest(steps: Steps[V], a: V, b: V) -> V:
    return steps.add(a, b)


def mul_nearest(steps: Steps[V], a: V, b: V) -> V:
    return steps.mul(a, b)


def round_away(steps: Steps[V], form: Format, x: V) -> V:
    """The nearest integral value, ties away from zero: one more where at least a half was cut off."""
    lanes = Lanes(steps, form)
    whole = steps.trunc(x)
    cut = steps.abs(steps.sub(x, whole))
    one = lanes.with_sign_of(lanes.number(1.0), x)
    return steps.select(steps.ge(cut, lanes.number(0.5)), steps.add(whole, one), whole)


def positive_difference(steps: Steps[V], form: Format, a: V, b: V) -> V:
    """a - b where a > b, or either is NaN, else 0."""
    zero = Lanes(steps, form).number(0.0)
    return steps.select(steps.le(a, b), zero, steps.sub(a, b))


def round_f32(steps: Steps[V], x: V) -> V:
    return round_away(steps, F32, x)


def round_f64(steps: Steps[V], x: V) -> V:
    return round_away(steps, F64, x)


def fdim_f32(steps: Steps[V], a: V, b: V) -> V:
    return positive_difference(steps, F32, a, b)


def fdim_f64(steps: Steps[V], a: V, b: V) -> V:
    return positive_difference(steps, F64, a, b)
