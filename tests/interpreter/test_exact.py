"""The fused multiply-add in NumPy, against exact fractions and against the machine's own instruction."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blocklang.interpreter.exact import add_product_f32, fma_f32, fma_f64
from blocklang.maths.registry import Recipe
from blocklang.maths.steps import DType
from tests.maths.native import LANES, NativeRecipe
from tests.maths.reference import DTYPES, FORMATS, random_bits

Array = npt.NDArray[Any]
FUNCTIONS: dict[str, Callable[..., Array]] = {"f32": fma_f32, "f64": fma_f64}
COUNT = 4_000 * LANES


def machine_fma(dtype: DType) -> NativeRecipe:
    return NativeRecipe(Recipe("fma", dtype, 3, 0.5, lambda steps, a, b, c: steps.fma(a, b, c)))


def fma_by_fractions(a: float, b: float, c: float, dtype: str) -> float:
    """The rounded result; zeros, infinities and NaN, which fractions do not have, by the plain operations."""
    kind = DTYPES[dtype]
    if not all(map(math.isfinite, (a, b, c))):
        product = a * b if not (math.isfinite(a) and math.isfinite(b)) else 0.0
        return product + c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact:
        return float(round_fraction(exact, dtype))
    sign_of_product = math.copysign(1.0, a) * math.copysign(1.0, b)
    if 0 in (a, b) and math.copysign(1.0, c) == sign_of_product and c == 0:
        return float(kind(math.copysign(0.0, c)))
    return 0.0


def all_by_fractions(arguments: list[Array], dtype: str) -> Array:
    rows = zip(*(a.tolist() for a in arguments), strict=True)
    values: Array = np.array([fma_by_fractions(a, b, c, dtype) for a, b, c in rows], DTYPES[dtype])
    return values


def round_fraction(exact: Fraction, dtype: str) -> float:
    """Round to nearest, ties to even, in integers."""
    form = FORMATS[dtype]
    size = abs(exact)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if Fraction(2) ** exponent > size:
        exponent -= 1
    quantum = Fraction(2) ** (max(exponent, 1 - form.bias) - form.fraction_bits)
    rounded = round(size / quantum) * quantum
    value = math.inf if rounded >= Fraction(2) ** (form.bias + 1) else float(rounded)
    return math.copysign(value, 1 if exact > 0 else -1)


def assert_same_bits(got: Array, want: Array, case: str = "") -> None:
    unsigned = f"u{got.itemsize}"
    same = (got.view(unsigned) == want.view(unsigned)) | (np.isnan(got) & np.isnan(want))
    assert same.all(), (case, np.flatnonzero(~same)[:5])


def few_bits(generator: np.random.Generator, dtype: str, bits: int, low: int, high: int) -> Array:
    """Random signs, exponents in a range, and significands of a few bits, so that ties are common."""
    significand = 1 + generator.integers(0, 1 << bits, COUNT) * 2.0**-bits
    values = np.ldexp(significand, generator.integers(low, high, COUNT))
    signed: Array = values * generator.choice([-1.0, 1.0], COUNT)
    return signed.astype(DTYPES[dtype])


def cases(dtype: str, generator: np.random.Generator) -> list[tuple[str, list[Array]]]:
    form = FORMATS[dtype]
    least, half, top = 1 - form.bias - form.fraction_bits, -form.bias // 2, form.bias + 1
    middle = top // 2
    result = [("all bit patterns", [random_bits(dtype, COUNT, generator) for _ in range(3)])]
    for bits in (1, 4, form.fraction_bits // 2, form.fraction_bits):
        ranges = {
            "moderate": ((-5, 5), (-60, 60)),
            "subnormal": ((half - 20, half + 20), (least, least + 60)),
            "overflow": ((middle - 3, middle + 3), (top - 5, top)),
        }
        for name, (factors, addend) in ranges.items():
            a, b = (few_bits(generator, dtype, bits, *factors) for _ in range(2))
            result.append((f"{name}, {bits} bits", [a, b, few_bits(generator, dtype, bits, *addend)]))
        a, b = (few_bits(generator, dtype, bits, half - 5, 5) for _ in range(2))
        with np.errstate(all="ignore"):
            result.append((f"cancelling, {bits} bits", [a, b, -(a * b)]))
    return result


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_fma_is_the_machine_instruction(dtype: DType) -> None:
    machine = machine_fma(dtype)
    for name, arguments in cases(dtype, np.random.default_rng(11)):
        assert_same_bits(FUNCTIONS[dtype](*arguments), machine(*arguments), name)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_fma_is_the_rounded_exact_value(dtype: DType) -> None:
    for name, arguments in cases(dtype, np.random.default_rng(12)):
        few = [a[:300] for a in arguments]
        assert_same_bits(FUNCTIONS[dtype](*few), all_by_fractions(few, dtype), name)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_fma_of_every_kind_of_number(dtype: DType) -> None:
    info = np.finfo(DTYPES[dtype])
    sizes: list[Any] = [
        0.0,
        info.smallest_subnormal,
        info.tiny,
        0.5,
        1.0,
        1 + info.eps,
        2.0,
        info.max,
        math.inf,
        math.nan,
    ]
    values = [sign * float(size) for size in sizes for sign in (1.0, -1.0)]
    table = np.array(list(itertools.product(values, repeat=3)), DTYPES[dtype])
    arguments = [np.ascontiguousarray(column) for column in table.T]
    assert_same_bits(FUNCTIONS[dtype](*arguments), all_by_fractions(arguments, dtype))


finite = st.floats(allow_nan=False)


@given(finite, finite, finite)
def test_fma_f64_of_any_numbers(a: float, b: float, c: float) -> None:
    got = fma_f64(*(np.array(value) for value in (a, b, c)))
    assert_same_bits(got, np.array(fma_by_fractions(a, b, c, "f64")))


def test_arguments_broadcast_and_nothing_warns() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for dtype, function in FUNCTIONS.items():
            kind = DTYPES[dtype]
            column, row = np.array([[3e38], [1e-40]], kind), np.array([2.0, -np.inf, np.nan], kind)
            got = function(column, row, np.array(1.0, kind))
            assert got.shape == (2, 3)
            assert got.dtype == kind


def test_empty_arrays() -> None:
    for dtype, function in FUNCTIONS.items():
        empty = np.zeros(0, DTYPES[dtype])
        assert function(empty, empty, empty).shape == (0,)


def test_other_dtypes_are_refused() -> None:
    single, double = np.zeros(1, np.float32), np.zeros(1, np.float64)
    with pytest.raises(TypeError, match="expected float32, got float64"):
        fma_f32(single, single, double)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="expected float64, got float32"):
        fma_f64(single, double, double)  # type: ignore[arg-type]


def test_add_product_takes_products_in_f64() -> None:
    generator = np.random.default_rng(3)
    a, b, c = (few_bits(generator, "f32", 4, -20, 20) for _ in range(3))
    assert_same_bits(add_product_f32(a.astype(np.float64) * b, c), fma_f32(a, b, c))
