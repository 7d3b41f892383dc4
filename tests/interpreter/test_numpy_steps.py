"""The steps whose meaning is easy to get wrong, one by one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from blocklang.interpreter.numpy_steps import NUMPY_DTYPES, NumpySteps
from blocklang.maths.steps import DType

STEPS = NumpySteps()
INF, NAN = math.inf, math.nan


def array(dtype: DType, *values: float) -> npt.NDArray[Any]:
    return np.array(values, NUMPY_DTYPES[dtype])


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_minimum_and_maximum_order_zeros_and_ignore_nan(dtype: DType) -> None:
    a = array(dtype, 0.0, -0.0, NAN, 1.0, NAN, -INF)
    b = array(dtype, -0.0, 0.0, 2.0, NAN, NAN, 3.0)
    low, high = STEPS.minimum(a, b), STEPS.maximum(a, b)
    assert np.signbit(low[:2]).all()
    assert not np.signbit(high[:2]).any()
    np.testing.assert_array_equal(low[2:], array(dtype, 2.0, 1.0, NAN, -INF))
    np.testing.assert_array_equal(high[2:], array(dtype, 2.0, 1.0, NAN, 3.0))


@pytest.mark.parametrize("dtype", ["i32", "u32", "i64", "u64"])
@pytest.mark.parametrize("source", ["f32", "f64"])
def test_casts_to_integers_saturate(source: DType, dtype: DType) -> None:
    info = np.iinfo(NUMPY_DTYPES[dtype])
    got = STEPS.cast(array(source, INF, 1e30, -INF, -1e30, NAN, 2.9, -0.9), dtype)
    assert got.tolist() == [info.max, info.max, info.min, info.min, 0, 2, 0]
    edge = float(info.max + 1)
    below = np.nextafter(NUMPY_DTYPES[source].type(edge), NUMPY_DTYPES[source].type(0))
    assert STEPS.cast(array(source, edge, below), dtype).tolist() == [info.max, int(below)]


def test_casts_of_integers_wrap_and_extend_by_signedness() -> None:
    assert STEPS.cast(array("i64", (1 << 32) + 5, -1), "i32").tolist() == [5, -1]
    assert STEPS.cast(array("i32", -1), "i64").tolist() == [-1]
    assert STEPS.cast(array("u32", 0xFFFFFFFF), "u64").tolist() == [0xFFFFFFFF]
    assert STEPS.cast(array("f64", 1e300, 1e-50), "f32").tolist() == [INF, 0.0]


@pytest.mark.parametrize("dtype", ["i32", "u32"])
def test_shifts_have_the_kind_of_the_step(dtype: DType) -> None:
    x, one = STEPS.constant(dtype, 0x80000000), STEPS.constant(dtype, 1)
    assert int(STEPS.lshr(x, one)) == 0x40000000
    assert int(STEPS.ashr(x, one)) % (1 << 32) == 0xC0000000
    assert STEPS.lshr(x, one).dtype == NUMPY_DTYPES[dtype]


@pytest.mark.parametrize("dtype", ["i32", "u32"])
def test_high_product_is_of_unsigned_numbers(dtype: DType) -> None:
    x = STEPS.constant(dtype, 0xFFFFFFFF)
    high = STEPS.umulhi32(x, x)
    assert int(high) % (1 << 32) == 0xFFFFFFFE
    assert high.dtype == NUMPY_DTYPES[dtype]


def test_integers_wrap_without_a_warning() -> None:
    largest = STEPS.constant("i32", 0x7FFFFFFF)
    assert int(STEPS.iadd(largest, STEPS.constant("i32", 1))) == -(1 << 31)
    assert int(STEPS.imul(largest, largest)) == 1


def test_comparisons_with_nan() -> None:
    nan, one = array("f64", NAN), array("f64", 1.0)
    for step in (STEPS.lt, STEPS.le, STEPS.gt, STEPS.ge, STEPS.eq):
        assert not step(nan, one).any()
    assert STEPS.ne(nan, nan).all()


def test_signs_are_bits() -> None:
    x = array("f32", 0.0, -NAN)
    assert np.signbit(STEPS.neg(x)).tolist() == [True, False]
    assert np.signbit(STEPS.abs(array("f32", -0.0, -NAN))).tolist() == [False, False]


def test_dtypes_are_not_mixed() -> None:
    with pytest.raises(TypeError, match="one dtype expected"):
        STEPS.add(array("f32", 1.0), array("f64", 1.0))
    with pytest.raises(TypeError, match="expected float32"):
        STEPS.fma(array("f32", 1.0), array("f32", 1.0), array("f64", 1.0))


def test_rare_values_are_computed_only_where_needed() -> None:
    usual = (array("f32", 1.0, 2.0),)

    def compute() -> tuple[npt.NDArray[Any], ...]:
        return (array("f32", 3.0, 4.0),)

    def never() -> tuple[npt.NDArray[Any], ...]:
        raise AssertionError("no lane needs it")

    assert STEPS.rarely(np.array([False, False]), never, usual)[0].tolist() == [1.0, 2.0]
    assert STEPS.rarely(np.array([False, True]), compute, usual)[0].tolist() == [1.0, 4.0]
