"""Lane-wise operations against Python's integers and fractions, over all dtypes and special values."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from blocklang.interpreter import numpy_steps
from blocklang.interpreter.dtypes import DTYPES, convert_float
from blocklang.ir.types import F32, F64, I1, I32, I64, SCALARS, U32, U64, BlockType, ScalarType
from blocklang.maths.registry import RECIPES
from blocklang.ops import elementwise as ops
from tests.interpreter.harness import (
    FLOATS,
    INTEGERS,
    Array,
    apply,
    assert_same_bits,
    floats,
    integers,
    numbers,
    pairs,
)
from tests.interpreter.reference import rounded


def wrap(value: int, type_: ScalarType) -> int:
    """An integer modulo 2**bits, in the range of the type."""
    value &= (1 << type_.bits) - 1
    return value - (1 << type_.bits) if value > type_.maximum else value


def as_integers(values: Array) -> list[int]:
    return [int(v) for v in values.tolist()]


def wide(value: Any) -> float:
    return float(np.asarray(value).astype(np.float64))


def quotient(a: int, b: int) -> int:
    return 0 if b == 0 else (abs(a) // abs(b)) * (-1 if (a < 0) != (b < 0) else 1)


INTEGER_MEANING: dict[str, Callable[[int, int, ScalarType], int]] = {
    "add": lambda a, b, t: a + b,
    "sub": lambda a, b, t: a - b,
    "mul": lambda a, b, t: a * b,
    "idiv": lambda a, b, t: quotient(a, b),
    "rem": lambda a, b, t: a - quotient(a, b) * b,
    "minimum": lambda a, b, t: min(a, b),
    "maximum": lambda a, b, t: max(a, b),
    "and": lambda a, b, t: a & b,
    "or": lambda a, b, t: a | b,
    "xor": lambda a, b, t: a ^ b,
    "shl": lambda a, b, t: a << unsigned(b, t) if unsigned(b, t) < t.bits else 0,
    "shr": lambda a, b, t: a >> min(unsigned(b, t), t.bits),
    "umulhi": lambda a, b, t: (unsigned(a, t) * unsigned(b, t)) >> t.bits,
}
INTEGER_OPS = {
    cls.name: cls
    for cls in (
        *(ops.Add, ops.Sub, ops.Mul, ops.IntegerDiv, ops.Rem, ops.Minimum, ops.Maximum),
        *(ops.And, ops.Or, ops.Xor, ops.Shl, ops.Shr, ops.UnsignedMulHigh),
    )
}


def unsigned(value: int, type_: ScalarType) -> int:
    return value & ((1 << type_.bits) - 1)


@pytest.mark.parametrize("type_", INTEGERS, ids=str)
@pytest.mark.parametrize("name", INTEGER_OPS)
def test_integer_operations(name: str, type_: ScalarType) -> None:
    a, b = pairs(integers(type_))
    actual = apply(INTEGER_OPS[name], a, b)
    expected = [wrap(INTEGER_MEANING[name](int(x), int(y), type_), type_) for x, y in zip(a, b, strict=True)]
    assert as_integers(actual) == expected


def test_scalars_spread_over_blocks_and_stay_scalars_alone() -> None:
    block, scalar = np.arange(4, dtype=np.int32), np.array(3, np.int32)
    assert apply(ops.Add, block, scalar).tolist() == [3, 4, 5, 6]
    assert apply(ops.Sub, scalar, block).tolist() == [3, 2, 1, 0]
    assert apply(ops.Mul, scalar, scalar) == 9


def exact_result(name: str, x: float, y: float, type_: ScalarType) -> float:
    """One rounding of the exact result; through f32 for 16 bits. What is not finite follows IEEE."""
    with np.errstate(all="ignore"):
        plain = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}[name](
            np.float64(x), np.float64(y)
        )
    if not (math.isfinite(x) and math.isfinite(y)) or (name == "div" and y == 0) or x == 0 or y == 0:
        return (
            float(plain)
            if not (name in ("add", "sub") and plain != 0)
            else rounded_again(float(plain), type_)
        )
    a, b = Fraction(x), Fraction(y)
    value = {"add": lambda: a + b, "sub": lambda: a - b, "mul": lambda: a * b, "div": lambda: a / b}[name]()
    if value == 0:
        return 0.0
    sign = -1.0 if value < 0 else 1.0
    middle = rounded(value, "f64" if type_.name == "f64" else "f32")
    return math.copysign(rounded_again(middle, type_), sign)


def rounded_again(value: float, type_: ScalarType) -> float:
    if not math.isfinite(value) or value == 0:
        return value
    return math.copysign(rounded(Fraction(value), type_.name), value)


@pytest.mark.parametrize("type_", FLOATS, ids=str)
@pytest.mark.parametrize("cls", [ops.Add, ops.Sub, ops.Mul, ops.Div], ids=lambda c: c.name)
def test_float_arithmetic_rounds_the_exact_result(cls: Any, type_: ScalarType) -> None:
    a, b = pairs(floats(type_))
    expected = [exact_result(cls.name, wide(x), wide(y), type_) for x, y in zip(a, b, strict=True)]
    assert_same_bits(apply(cls, a, b), np.array(expected).astype(DTYPES[type_.name]))


@pytest.mark.parametrize("type_", FLOATS, ids=str)
def test_float_remainder_is_exact(type_: ScalarType) -> None:
    a, b = pairs(floats(type_))
    expected = []
    for x, y in zip(map(wide, a), map(wide, b), strict=True):
        if math.isnan(x) or math.isnan(y) or math.isinf(x) or y == 0:
            expected.append(math.nan)
        else:
            expected.append(math.fmod(x, y))
    assert_same_bits(apply(ops.Rem, a, b), np.array(expected).astype(DTYPES[type_.name]))


@pytest.mark.parametrize("type_", FLOATS, ids=str)
def test_fma_rounds_once(type_: ScalarType) -> None:
    rng = np.random.default_rng(7)
    dtype = DTYPES[type_.name]
    a, b, c = (
        convert_float(rng.standard_normal(300) * 2.0 ** rng.integers(-6, 6, 300), dtype) for _ in "abc"
    )
    c[::3] = convert_float(-(a[::3].astype(np.float64) * b[::3].astype(np.float64)), dtype)
    expected = []
    for x, y, z in zip(a, b, c, strict=True):
        value = Fraction(wide(x)) * Fraction(wide(y)) + Fraction(wide(z))
        expected.append(rounded_again(rounded(value, "f64" if type_.name == "f64" else "f32"), type_))
    assert_same_bits(apply(ops.Fma, a, b, c), np.array(expected).astype(dtype))


@pytest.mark.parametrize(("type_", "place", "bias"), [(F32, 23, 127), (F64, 52, 1023)], ids=str)
def test_scaling_by_powers_of_two_rounds_once(type_: ScalarType, place: int, bias: int) -> None:
    rng = np.random.default_rng(8)
    dtype = DTYPES[type_.name]
    n = rng.integers(-bias - place - 3, bias + 3, 500)
    values = (rng.uniform(0.5, 2.0, 500) * rng.choice([-1, 1], 500)).astype(dtype)
    shifted = (n + (1.5 * 2.0**place + 2 * bias)).astype(dtype)
    expected = [
        math.copysign(rounded(Fraction(v) * Fraction(2) ** by, type_.name), v)
        for v, by in zip(map(wide, values), n.tolist(), strict=True)
    ]
    assert_same_bits(apply(ops.Scale, values, shifted), np.array(expected).astype(dtype))


def extreme(x: float, y: float, largest: bool, propagate: bool) -> float:
    if math.isnan(x) or math.isnan(y):
        return math.nan if propagate or (math.isnan(x) and math.isnan(y)) else y if math.isnan(x) else x
    key = sorted([x, y], key=lambda v: (v, math.copysign(1, v)))
    return key[1] if largest else key[0]


@pytest.mark.parametrize("type_", FLOATS, ids=str)
@pytest.mark.parametrize("propagate", [False, True])
@pytest.mark.parametrize("cls", [ops.Minimum, ops.Maximum], ids=lambda c: c.name)
def test_extremes_of_floats(cls: Any, propagate: bool, type_: ScalarType) -> None:
    a, b = pairs(floats(type_))
    expected = [extreme(wide(x), wide(y), cls is ops.Maximum, propagate) for x, y in zip(a, b, strict=True)]
    actual = apply(cls, a, b, propagate_nan=propagate)
    assert_same_bits(actual, np.array(expected).astype(DTYPES[type_.name]))


@pytest.mark.parametrize("type_", [*INTEGERS, *FLOATS], ids=str)
@pytest.mark.parametrize("predicate", ops.PREDICATES)
def test_comparisons(predicate: str, type_: ScalarType) -> None:
    a, b = pairs(numbers(type_))
    compare: Callable[[Any, Any], bool] = {
        "lt": lambda x, y: x < y,
        "le": lambda x, y: x <= y,
        "gt": lambda x, y: x > y,
        "ge": lambda x, y: x >= y,
        "eq": lambda x, y: x == y,
        "ne": lambda x, y: x != y,
    }[predicate]
    convert: Callable[[Any], Any] = wide if type_.is_float else int
    expected = [compare(convert(x), convert(y)) for x, y in zip(a, b, strict=True)]
    assert apply(ops.Compare, a, b, predicate=predicate).tolist() == expected


def test_pointers_compare_as_unsigned_addresses() -> None:
    a, b = np.array([1, 1 << 63], np.uint64), np.array([1 << 63, 1], np.uint64)
    pointers = {0: I32, 1: I32}
    assert apply(ops.Compare, a, b, predicate="lt", pointers=pointers).tolist() == [True, False]


@pytest.mark.parametrize("type_", [*INTEGERS, *FLOATS], ids=str)
def test_select_moves_bits(type_: ScalarType) -> None:
    a, b = pairs(numbers(type_))
    condition = np.arange(a.size) % 3 == 0
    expected = np.array([x if c else y for c, x, y in zip(condition, a, b, strict=True)], a.dtype)
    assert_same_bits(apply(ops.Select, condition, a, b), expected)
    assert_same_bits(apply(ops.Select, np.array(True), a, b), a)


# ---- casts ----


def cast(values: Array, type_: ScalarType, **attributes: Any) -> Array:
    result: Array = apply(ops.Cast, values, result_types=[BlockType(type_, values.shape)], **attributes)
    return result


@pytest.mark.parametrize("target", INTEGERS, ids=str)
@pytest.mark.parametrize("source", INTEGERS, ids=str)
def test_integers_wrap_or_extend(source: ScalarType, target: ScalarType) -> None:
    values = integers(source)
    expected = [int(v != 0) if target == I1 else wrap(int(v), target) for v in values]
    assert as_integers(cast(values, target)) == expected


@pytest.mark.parametrize("target", INTEGERS, ids=str)
@pytest.mark.parametrize("source", FLOATS, ids=str)
def test_floats_truncate_and_saturate(source: ScalarType, target: ScalarType) -> None:
    values = np.concatenate([floats(source), convert_float(saturating_edges(target), DTYPES[source.name])])
    expected = []
    for v in map(wide, values):
        if target == I1:
            expected.append(int(v != 0))
        elif math.isnan(v):
            expected.append(0)
        else:
            expected.append(
                target.maximum if v >= target.maximum else max(int(max(v, -1e30)), target.minimum)
            )
    assert as_integers(cast(values, target)) == expected


def saturating_edges(target: ScalarType) -> Array:
    ends = np.array([float(target.maximum), float(target.minimum)])
    return np.concatenate([ends, ends * 2, ends / 2, np.nextafter(ends, 0), ends + 0.5, ends - 0.5])


@pytest.mark.parametrize("target", FLOATS, ids=str)
@pytest.mark.parametrize("source", INTEGERS, ids=str)
def test_integers_round_once(source: ScalarType, target: ScalarType) -> None:
    rng = np.random.default_rng(3)
    dtype = DTYPES[source.name]
    random = rng.integers(
        source.minimum, source.maximum, 200, endpoint=True, dtype=np.uint8 if source == I1 else dtype
    )
    values = np.concatenate([integers(source), random.astype(dtype), np.array(integer_ties(source), dtype)])
    expected = [rounded(Fraction(int(v)), target.name) for v in values]
    assert_same_bits(cast(values, target), np.array(expected).astype(DTYPES[target.name]))


def integer_ties(source: ScalarType) -> list[int]:
    """Integers in the middle between two floats of some format, and right beside."""
    gaps = [(k, j) for k in range(source.bits) for j in (k - 9, k - 11, k - 12, k - 25) if j > 0]
    return [wrap((1 << k) + (1 << j) + d, source) for k, j in gaps for d in (-1, 0, 1)]


def toward_zero(value: Fraction, target: ScalarType) -> float:
    nearest = rounded(value, target.name)
    candidates = convert_float(np.array([nearest]), DTYPES[target.name])
    bits = candidates.view(f"u{candidates.dtype.itemsize}")
    while math.isinf(wide(candidates[0])) or abs(Fraction(wide(candidates[0]))) > abs(value):
        bits -= bits.dtype.type(1)
    return wide(candidates[0])


@pytest.mark.parametrize("rounding", ["rtne", "rtz"])
@pytest.mark.parametrize("target", FLOATS, ids=str)
@pytest.mark.parametrize("source", FLOATS, ids=str)
def test_floats_round_once(source: ScalarType, target: ScalarType, rounding: str) -> None:
    values = np.concatenate([floats(source), tie_cases(source)])
    expected = []
    for v in map(wide, values):
        if not math.isfinite(v) or v == 0:
            expected.append(v)
        else:
            exact = Fraction(v)
            number = rounded(exact, target.name) if rounding == "rtne" else toward_zero(exact, target)
            expected.append(math.copysign(number, v))
    assert_same_bits(cast(values, target, rounding=rounding), np.array(expected).astype(DTYPES[target.name]))


def tie_cases(source: ScalarType) -> Array:
    """Numbers in the middle between two of a narrower format, and right beside, over the whole range."""
    rng = np.random.default_rng(5)
    exponents = rng.integers(-150, 130, 400).astype(np.float64)
    fractions = rng.integers(0, 64, 400) / 64.0
    step = 2.0 ** rng.choice([-8.0, -11.0, -24.0, -9.0, -12.0, -25.0, -40.0], 400)
    values = (1 + fractions + step) * 2.0**exponents
    values[::3] = np.nextafter(values[::3], 0)
    values[1::7] *= -1
    extra = np.array(
        [65519.99, 65520.0, 65535.0, 3.4e38, 3.4028235677973366e38, 2.0**-25, 2.0**-25 * 1.001, 1e-46]
    )
    return convert_float(np.concatenate([values, extra]), DTYPES[source.name])


def test_double_to_half_has_no_second_rounding() -> None:
    value = np.array([1 + 2.0**-11 + 2.0**-40, 1 + 2.0**-8 + 2.0**-40])
    assert cast(value[:1], SCALARS["f16"]).astype(float).tolist() == [1 + 2.0**-10]
    assert cast(value[1:], SCALARS["bf16"]).astype(float).tolist() == [1 + 2.0**-7]


def test_pointers_and_integers() -> None:
    addresses = np.array([0, 5, (1 << 64) - 1], np.uint64)
    pointers = {0: I32}
    block = BlockType(I64, (3,))
    assert apply(ops.Cast, addresses, pointers=pointers, result_types=[block]).tolist() == [0, 5, -1]


@pytest.mark.parametrize(
    ("source", "target"), [("f32", "i32"), ("i64", "f64"), ("bf16", "u16"), ("i16", "f16")]
)
def test_bitcast(source: str, target: str) -> None:
    values = numbers(SCALARS[source])
    actual = apply(ops.Bitcast, values, result_types=[BlockType(SCALARS[target], values.shape)])
    assert actual.dtype == DTYPES[target]
    assert actual.tobytes() == values.tobytes()


# ---- functions ----


@pytest.mark.parametrize("type_", FLOATS, ids=str)
def test_signs_of_floats_are_bits(type_: ScalarType) -> None:
    values = numbers(type_)
    raw = values.view(f"u{values.dtype.itemsize}")
    sign = raw.dtype.type(1 << (type_.bits - 1))
    assert apply(ops.Neg, values).tobytes() == (raw ^ sign).tobytes()
    assert apply(ops.Abs, values).tobytes() == (raw & ~sign).tobytes()


@pytest.mark.parametrize("type_", INTEGERS, ids=str)
def test_signs_of_integers(type_: ScalarType) -> None:
    values = integers(type_)
    assert as_integers(apply(ops.Neg, values)) == [wrap(-v, type_) for v in as_integers(values)]
    assert as_integers(apply(ops.Abs, values)) == [wrap(abs(v), type_) for v in as_integers(values)]


ROUNDINGS: dict[str, Callable[[float], float]] = {
    "floor": math.floor,
    "ceil": math.ceil,
    "trunc": math.trunc,
    "rint": round,
}


@pytest.mark.parametrize("type_", FLOATS, ids=str)
@pytest.mark.parametrize("name", ROUNDINGS)
def test_rounding_functions(name: str, type_: ScalarType) -> None:
    values = np.concatenate(
        [floats(type_), np.array([0.5, 1.5, 2.5, -0.5, -1.5, 0.3, -0.3]).astype(DTYPES[type_.name])]
    )
    expected = [math.copysign(ROUNDINGS[name](v), v) if math.isfinite(v) else v for v in map(wide, values)]
    assert_same_bits(apply(ops.FUNCTIONS[name], values), np.array(expected).astype(DTYPES[type_.name]))


@pytest.mark.parametrize("type_", FLOATS, ids=str)
def test_roots_are_correctly_rounded(type_: ScalarType) -> None:
    values = floats(type_)
    dtype = DTYPES[type_.name]
    step = np.float64 if type_.name == "f64" else np.float32
    with np.errstate(all="ignore"):
        root = np.sqrt(values.astype(step))
        assert_same_bits(apply(ops.FUNCTIONS["sqrt"], values), convert_float(root, dtype))
        assert_same_bits(apply(ops.FUNCTIONS["rsqrt"], values), convert_float(step(1) / root, dtype))


@pytest.mark.parametrize("type_", FLOATS, ids=str)
@pytest.mark.parametrize("name", sorted({name for name, _ in RECIPES} & set(ops.FUNCTIONS)))
def test_functions_are_their_recipes(name: str, type_: ScalarType) -> None:
    values = floats(type_)
    dtype = DTYPES[type_.name]
    wide_values = values.astype(np.float64 if type_.name == "f64" else np.float32)
    assert_same_bits(
        apply(ops.FUNCTIONS[name], values), convert_float(numpy_steps.evaluate(name, wide_values), dtype)
    )


@pytest.mark.parametrize("type_", [U32, U64])
def test_high_products_of_random_numbers(type_: ScalarType) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, type_.maximum, (2, 500), DTYPES[type_.name], endpoint=True)
    expected = [(int(x) * int(y)) >> type_.bits for x, y in zip(a, b, strict=True)]
    assert apply(ops.UnsignedMulHigh, a, b).tolist() == expected
