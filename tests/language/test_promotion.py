"""Promotion: Triton's rules, written down here a second time, as a table and as properties."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import blocklang.language as tl
from blocklang.diagnostics import CompilationError
from blocklang.language.dtypes import dtype
from tests.language.recording import ALL_DTYPES, INTEGERS, block, record, result_dtype

FLOAT8 = [d for d in ALL_DTYPES if d.is_fp8()]
WIDER = [d for d in ALL_DTYPES if not d.is_fp8()]
PAIRS = list(itertools.product(WIDER, repeat=2))
dtypes = st.sampled_from(WIDER)


def expected(a: dtype, b: dtype) -> dtype:
    """The common type of two run-time values, in words of the published rules."""
    for wide in (tl.float64, tl.float32, tl.float16):
        if wide in (a, b):
            return wide
    if tl.bfloat16 in (a, b):
        return tl.bfloat16 if a == b else tl.float32
    if a.int_bitwidth != b.int_bitwidth:
        # The wider one, whatever its sign, unless the narrower is ... never: width decides.
        return max(a, b, key=lambda d: d.int_bitwidth)
    return a if a.is_int_unsigned() else b


@pytest.mark.parametrize(
    "apply", [operator.add, operator.sub, operator.mul, lambda x, y: tl.where(x < y, x, y)]
)
def test_two_run_time_values(apply: Callable[[Any, Any], Any]) -> None:
    for a, b in PAIRS:
        assert result_dtype(apply, a, b) == expected(a, b), (a, b)


def test_two_values_of_which_one_is_fp8() -> None:
    """One kind stays, two give fp16, a wider float wins, bf16 makes fp32; an integer has no common type with
    it."""
    for a, b in itertools.product(FLOAT8, repeat=2):
        assert result_dtype(operator.add, a, b) == (a if a == b else tl.float16)
        assert result_dtype(operator.truediv, a, b) == (a if a == b else tl.float16)
    for a, b in [*itertools.product(FLOAT8, WIDER), *itertools.product(WIDER, FLOAT8)]:
        wide = b if a.is_fp8() else a
        if wide.is_int():
            with pytest.raises(CompilationError, match="unexpected type"):
                result_dtype(operator.mul, a, b)
        else:
            assert result_dtype(operator.mul, a, b) == (tl.float32 if wide.is_bf16() else wide)
    for a in FLOAT8:
        assert result_dtype(lambda x: x * 2, a) == result_dtype(lambda x: 0.5 - x, a) == a
        assert result_dtype(lambda x: x / 3.0, a) == a


def test_comparisons_give_int1() -> None:
    for a, b in PAIRS:
        assert result_dtype(lambda x, y: x == y, a, b) == tl.int1


def test_bit_operations_promote_integers_and_refuse_floats() -> None:
    for a, b in PAIRS:
        if a.is_int() and b.is_int():
            assert result_dtype(operator.and_, a, b) == expected(a, b)
            assert result_dtype(operator.lshift, a, b) == expected(a, b)
        else:
            with pytest.raises(CompilationError, match="needs integers"):
                result_dtype(operator.or_, a, b)


@pytest.mark.parametrize(("apply", "symbol"), [(operator.truediv, "/"), (operator.mod, "%")])
def test_division_widens_half_floats(apply: Callable[[Any, Any], Any], symbol: str) -> None:
    for a, b in PAIRS:
        common = expected(a, b)
        if common.is_int() and a.int_signedness != b.int_signedness:
            with pytest.raises(CompilationError, match="cannot divide"):
                result_dtype(apply, a, b)
            continue
        if common.name in ("fp16", "bf16") or (symbol == "/" and common.is_int()):
            common = tl.float32
        assert result_dtype(apply, a, b) == common, (a, b)


def test_floor_division_is_for_integers_of_one_signedness() -> None:
    for a, b in PAIRS:
        if a.is_int() and b.is_int() and a.int_signedness == b.int_signedness:
            assert result_dtype(operator.floordiv, a, b) == expected(a, b)
        else:
            with pytest.raises(CompilationError):
                result_dtype(operator.floordiv, a, b)


_KINDS = {"bool": 0, "int": 1, "float": 2}


def _kind(d: dtype) -> int:
    return 2 if d.is_floating() else 0 if d.is_int1() else 1


@pytest.mark.parametrize("value", [True, 3, 2.5])
@pytest.mark.parametrize("is_constexpr", [False, True])
def test_numbers_are_weak(value: bool | int | float, is_constexpr: bool) -> None:
    literal = tl.constexpr(value) if is_constexpr else value
    kind = _KINDS[type(value).__name__]
    own = {0: tl.int1, 1: tl.int32, 2: tl.float32}[kind]
    for d in ALL_DTYPES:
        wanted = d if kind <= _kind(d) else expected(own, d)
        assert result_dtype(lambda x: x * literal, d) == wanted, d
        assert result_dtype(lambda x: literal * x, d) == wanted, d


def test_a_run_time_scalar_is_not_weak() -> None:
    assert result_dtype(lambda x: x + tl.to_tensor(2), tl.int8) == tl.int32
    assert result_dtype(lambda x: x + tl.to_tensor(2.0), tl.float16) == tl.float32


def test_a_specialised_argument_promotes_like_every_other_value() -> None:
    assert result_dtype(lambda x: x + tl.constexpr(1, tl.int32), tl.int8) == tl.int32
    assert result_dtype(lambda x: x + tl.constexpr(1), tl.int8) == tl.int8


@given(dtypes, dtypes)
def test_promotion_is_symmetric(a: dtype, b: dtype) -> None:
    assert result_dtype(operator.add, a, b) == result_dtype(operator.add, b, a)


@given(st.sampled_from(INTEGERS), st.integers(-(2**64), 2**65))
def test_a_number_fits_or_is_refused(d: dtype, value: int) -> None:
    fits = d.get_int_min_value() <= value <= d.get_int_max_value()
    if d.is_int1():
        return  # an integer beside a bool is int32 or wider
    if fits:
        assert result_dtype(lambda x: x + value, d) == d
    else:
        with pytest.raises(CompilationError):
            result_dtype(lambda x: x + value, d)


@pytest.mark.parametrize(
    ("value", "own"),
    [
        (0.0, tl.float32),
        (float("inf"), tl.float32),
        (float("nan"), tl.float32),
        (1e38, tl.float32),
        (1e39, tl.float64),
        (1e-40, tl.float64),
        (2**31 - 1, tl.int32),
        (2**31, tl.uint32),
        (2**32, tl.int64),
        (-(2**31) - 1, tl.int64),
        (2**63, tl.uint64),
        (True, tl.int1),
    ],
)
def test_the_type_of_a_number(value: bool | int | float, own: dtype) -> None:
    result, _ = record(lambda: tl.to_tensor(value))
    assert result.dtype == own


def test_pointers_move_by_integers_only() -> None:
    from blocklang.ir.types import F32, PointerType

    pointer = PointerType(F32)
    for d in INTEGERS:
        result, _ = record(lambda p, i: (p + i, i + p, p - i), pointer, block(d))
        assert [r.value.type.shape for r in result] == [(8,)] * 3
    for d in (tl.float32, tl.float16):
        with pytest.raises(CompilationError, match="cannot move"):
            record(operator.add, pointer, block(d))
    with pytest.raises(CompilationError):
        record(operator.mul, pointer, block(tl.int32))


def test_reductions_keep_or_widen() -> None:
    for d in ALL_DTYPES:
        small = d.is_int() and d.int_bitwidth < 32
        summed = (tl.uint32 if d.is_int_unsigned() else tl.int32) if small else d
        assert result_dtype(lambda x: tl.sum(x, axis=0), d) == summed, d
        largest = tl.int32 if small else tl.float32 if d.name in ("fp16", "bf16") else d
        assert result_dtype(lambda x: tl.max(x, axis=0), d) == largest, d
        with_index = tl.float32 if d.is_bf16() else d
        assert result_dtype(lambda x: tl.max(x, axis=0, return_indices=True)[0], d) == with_index, d
        assert result_dtype(lambda x: tl.argmin(x, axis=0), d) == tl.int32
        assert result_dtype(lambda x: tl.reduce(x, 0, lambda u, v: u), d) == d


def test_minimum_counts_numbers_with_their_own_type_and_widens_bf16() -> None:
    assert result_dtype(lambda x: tl.maximum(x, 0.0), tl.float16) == tl.float32
    assert result_dtype(tl.minimum, tl.bfloat16, tl.bfloat16) == tl.float32
    assert result_dtype(tl.minimum, tl.float16, tl.float16) == tl.float16
    assert result_dtype(tl.minimum, tl.int8, tl.uint8) == tl.uint8


def test_functions_keep_the_operands_type() -> None:
    for d in (tl.float16, tl.bfloat16, tl.float32, tl.float64):
        assert result_dtype(tl.exp, d) == d
        assert result_dtype(tl.sigmoid, d) == d


def test_dot_types() -> None:
    def product(element: dtype, **options: Any) -> dtype:
        shape = (16, 16)
        result, _ = record(lambda a, b: tl.dot(a, b, **options), block(element, shape), block(element, shape))
        assert isinstance(result, tl.tensor)
        return result.dtype

    assert product(tl.float32) == product(tl.bfloat16) == product(tl.float16) == tl.float32
    assert product(tl.float16, out_dtype=tl.float16) == tl.float16
    assert product(tl.int8) == tl.int32
    assert product(tl.float64) == tl.float64
    for refused in (tl.uint8, tl.int32, tl.int1):
        with pytest.raises(CompilationError, match="no meaning"):
            product(refused)
