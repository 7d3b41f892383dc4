"""The 8-bit floats: every code both ways, and rounding over all f16 numbers and many f32, ties included."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from blocklang.interpreter.dtypes import DTYPES, F16, F32, F64, constant, convert, restore_float, widen
from blocklang.ir.float8 import FLOAT8, Float8
from blocklang.ir.types import FLOAT8_TYPES
from blocklang.ops import elementwise as ops
from tests.interpreter.harness import Array, apply

# f8e4b15 has no counterpart.
REFERENCE = {
    "f8e5": ml_dtypes.float8_e5m2,
    "f8e4nv": ml_dtypes.float8_e4m3fn,
    "f8e4b8": ml_dtypes.float8_e4m3fnuz,
    "f8e5b16": ml_dtypes.float8_e5m2fnuz,
}
CODES = np.arange(256, dtype=np.uint8)
ALL_F16 = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
kinds = pytest.mark.parametrize("kind", FLOAT8)


def numbers_of(kind: str) -> Array:
    return np.array([FLOAT8[kind].decode(code) for code in range(256)])


def nearest(form: Float8, values: Array, *, toward_zero: bool = False) -> Array:
    """The codes by search in the table of finite numbers, in exact arithmetic of fractions' order."""
    last = form.largest
    table = np.array([form.decode(code) for code in range(last + 1)])
    middles = (table[1:] + table[:-1]) / 2  # exact in float64
    size = np.abs(values.astype(np.float64))
    below = np.clip(np.searchsorted(table, size, side="right") - 1, 0, last)
    if toward_zero:
        code = below
    else:
        middle = middles[np.minimum(below, last - 1)]
        up = (below < last) & ((size > middle) | ((size == middle) & (below % 2 == 1)))
        code = below + up
    signed = np.signbit(values) & ((code != 0) | form.has_negative_zero)
    code = np.where(signed, code | 0x80, code)
    return np.where(np.isnan(values), form.nan, code).astype(np.uint8)


@kinds
def test_every_code_has_the_number_that_ml_dtypes_gives_it(kind: str) -> None:
    if kind in REFERENCE:
        np.testing.assert_array_equal(numbers_of(kind), CODES.view(REFERENCE[kind]).astype(np.float64))
    np.testing.assert_array_equal(widen(CODES.view(DTYPES[kind])), numbers_of(kind).astype(np.float32))


def test_limits() -> None:
    largest = {kind: form.decode(form.largest) for kind, form in FLOAT8.items()}
    assert largest == {"f8e5": 57344, "f8e4nv": 448, "f8e4b8": 240, "f8e5b16": 57344, "f8e4b15": 1.75}


@kinds
@pytest.mark.parametrize("source", [F16, F32, F64], ids=str)
def test_every_number_comes_back_as_its_code(kind: str, source: Any) -> None:
    form, numbers = FLOAT8[kind], numbers_of(kind)
    back = convert(numbers.astype(source), DTYPES[kind]).view(np.uint8)
    finite = np.isfinite(numbers) & (np.abs(numbers) <= form.decode(form.largest))
    np.testing.assert_array_equal(back[finite], CODES[finite])
    assert set(back[np.isnan(numbers)]) <= {form.nan}
    infinite = np.isinf(numbers)
    np.testing.assert_array_equal(
        back[infinite], np.where(numbers[infinite] > 0, form.largest, form.largest | 0x80)
    )


def samples() -> Array:
    """float32: random bits, and the middles between neighbours of every kind with both their neighbours."""
    generator = np.random.default_rng(3)
    random = generator.integers(0, 1 << 32, 20000, np.uint32).view(np.float32)
    middles: list[Array] = []
    for kind in FLOAT8:
        finite = np.unique(np.abs(numbers_of(kind)[np.isfinite(numbers_of(kind))])).astype(np.float32)
        middle = (finite[1:] + finite[:-1]) / 2
        middles += [
            finite,
            middle,
            np.nextafter(middle, np.float32(0)),
            np.nextafter(middle, np.float32(1e9)),
        ]
        middles += [finite[-1:] * np.float32(f) for f in (1.01, 1.0625, 1.0626, 1.125, 1.126, 1.25, 2, 1e9)]
    positive = np.concatenate(middles)
    special = np.array([0.0, np.inf, np.nan, 2.0**-149, 2.0**-126, 3.4e38], np.float32)
    return np.concatenate([random, positive, -positive, special, -special])


@kinds
@pytest.mark.parametrize("toward_zero", [False, True])
def test_rounding(kind: str, toward_zero: bool) -> None:
    rounding: Any = "rtz" if toward_zero else "rtne"
    with np.errstate(invalid="ignore"):
        wide = samples().astype(np.float64)
        beside = np.concatenate([wide * (1 + 2.0**-40), wide * (1 - 2.0**-40)])
    for values in (ALL_F16, samples(), wide, beside):
        with np.errstate(invalid="ignore"):  # a signalling NaN
            actual = convert(values, DTYPES[kind], rounding).view(np.uint8)
            expected = nearest(FLOAT8[kind], values, toward_zero=toward_zero)
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("kind", REFERENCE)
def test_rounding_is_that_of_ml_dtypes_where_nothing_overflows(kind: str) -> None:
    form = FLOAT8[kind]
    values = samples()
    values = values[np.abs(values) <= form.decode(form.largest)]
    expected = values.astype(REFERENCE[kind]).view(np.uint8)
    np.testing.assert_array_equal(convert(values, DTYPES[kind]).view(np.uint8), expected)


@kinds
def test_one_number_at_a_time_is_the_same(kind: str) -> None:
    values = samples()[::37]
    expected = convert(values, DTYPES[kind]).view(np.uint8)
    assert [FLOAT8[kind].encode(float(v)) for v in values] == expected.tolist()
    assert constant(0.3, DTYPES[kind]).view(np.uint8) == FLOAT8[kind].encode(0.3)


@kinds
def test_integers_round_once_and_saturate(kind: str) -> None:
    values = np.array([0, 1, -1, 9, 17, 18, 20, 27, 100, -250, 447, 464, 1 << 40, -(1 << 62)], np.int64)
    expected = [FLOAT8[kind].encode(float(Fraction(int(v)))) for v in values]
    assert convert(values, DTYPES[kind]).view(np.uint8).tolist() == expected


def test_to_integers() -> None:
    lanes = convert(np.array([2.75, -3.5, 240.0, np.nan], np.float32), DTYPES["f8e4nv"])
    assert convert(lanes, np.dtype(np.int8)).tolist() == [2, -3, 127, 0]
    infinity = np.array([0x7C, 0xFC], np.uint8).view(DTYPES["f8e5"])
    assert convert(infinity, np.dtype(np.int16)).tolist() == [32767, -32768]


@kinds
def test_arithmetic_computes_in_f32_and_rounds_once(kind: str) -> None:
    left, right = (x.reshape(-1).view(DTYPES[kind]) for x in np.meshgrid(CODES, CODES))
    with np.errstate(all="ignore"):
        for cls, function in (
            (ops.Add, np.add),
            (ops.Sub, np.subtract),
            (ops.Mul, np.multiply),
            (ops.Div, np.divide),
        ):
            expected = nearest(FLOAT8[kind], function(widen(left), widen(right)))
            np.testing.assert_array_equal(apply(cls, left, right).view(np.uint8), expected)


@kinds
def test_extrema_and_signs_keep_what_they_choose(kind: str) -> None:
    """Nothing saturates that is not computed: an infinity, and the codes that no conversion gives."""
    lanes, numbers = CODES.view(DTYPES[kind]), numbers_of(kind)
    known = ~np.isnan(numbers)
    for cls in (ops.Minimum, ops.Maximum):
        np.testing.assert_array_equal(apply(cls, lanes, lanes).view(np.uint8)[known], CODES[known])
    np.testing.assert_array_equal(
        restore_float(widen(lanes), lanes.dtype).view(np.uint8)[known], CODES[known]
    )
    np.testing.assert_array_equal(widen(apply(ops.Abs, lanes)), np.abs(numbers).astype(np.float32))
    np.testing.assert_array_equal(widen(apply(ops.Neg, lanes)), -numbers.astype(np.float32))


def test_there_is_a_type_for_every_format() -> None:
    assert [t.name for t in FLOAT8_TYPES] == list(FLOAT8)
    assert all(t.bits == 8 and t.is_float and t.is_small_float for t in FLOAT8_TYPES)
