"""Reductions and contractions: the published orders, written once more, one number at a time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import blocklang.ops  # noqa: F401 - declares the operations
from blocklang.interpreter import run_kernel
from blocklang.interpreter.dtypes import DTYPES, convert_float
from blocklang.ir import parse_kernel, verify
from blocklang.ir.types import SCALARS, ScalarType
from blocklang.ops import reduction as ops
from tests.interpreter.harness import FLOATS, INTEGERS, Array, apply, assert_same_bits, floats, integers
from tests.interpreter.reference import fma_chain

SHAPES = [
    *[((n,), 0) for n in (1, 31, 32, 100)],
    *[((3, 70), 1), ((70, 3), 0), ((70, 1), 0), ((2, 40, 1), 1), ((4, 5, 6), 1)],
]


def rows(array: Array, axis: int) -> list[Array]:
    """Every line along the axis, in row-major order of the other axes."""
    moved = np.moveaxis(array, axis, -1)
    return list(moved.reshape(-1, moved.shape[-1]))


def ordered_sum(row: Array, interleaved: bool) -> Any:
    """The order of the documentation, step by step."""
    step = np.float64 if row.dtype == np.float64 else np.float32
    partials = [step(0.0)] * (32 if interleaved else 1)
    for i, x in enumerate(row):
        partials[i % len(partials)] = step(partials[i % len(partials)] + x.astype(step))
    distance = len(partials) // 2
    while distance:
        for i in range(distance):
            partials[i] = step(partials[i] + partials[i + distance])
        distance //= 2
    return convert_float(np.array(partials[0]), row.dtype)


@pytest.mark.parametrize("type_", FLOATS, ids=str)
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_float_sums_have_the_published_order(shape: tuple[int, ...], axis: int, type_: ScalarType) -> None:
    rng = np.random.default_rng(1)
    source = convert_float(rng.standard_normal(shape) * 2.0 ** rng.integers(-9, 9, shape), DTYPES[type_.name])
    interleaved = math.prod(shape[axis + 1 :]) == 1
    expected = [ordered_sum(row, interleaved) for row in rows(source, axis)]
    actual = apply(ops.Reduce, source, combine="sum", axis=axis)
    assert_same_bits(actual.reshape(-1), np.array(expected, source.dtype))


def test_a_sum_of_negative_zeros_is_zero() -> None:
    source = np.full(40, -0.0, np.float32)
    assert not np.signbit(apply(ops.Reduce, source, combine="sum", axis=0))


COMBINES: dict[str, Callable[[int, int], int]] = {
    "sum": lambda a, b: a + b,
    "max": max,
    "min": min,
    "xor": lambda a, b: a ^ b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
}


@pytest.mark.parametrize("type_", INTEGERS, ids=str)
@pytest.mark.parametrize("combine", COMBINES)
def test_integer_reductions_wrap(combine: str, type_: ScalarType) -> None:
    values = integers(type_)
    source = np.stack([values, np.roll(values, 1), values[::-1]])
    for axis in (0, 1):
        expected = []
        for row in rows(source, axis):
            total = int(row[0])
            for x in row[1:]:
                total = COMBINES[combine](total, int(x))
            total &= (1 << type_.bits) - 1
            expected.append(total - (1 << type_.bits) if total > type_.maximum else total)
        actual = apply(ops.Reduce, source, combine=combine, axis=axis)
        assert [int(v) for v in actual.tolist()] == expected


def extreme(row: list[float], largest: bool) -> float:
    numbers = [v for v in row if not math.isnan(v)]
    key = sorted(numbers, key=lambda v: (v, math.copysign(1, v)))
    return math.nan if not key else key[-1 if largest else 0]


@pytest.mark.parametrize("type_", FLOATS, ids=str)
@pytest.mark.parametrize("combine", ["max", "min"])
def test_extremes_skip_nan_and_order_zeros(combine: str, type_: ScalarType) -> None:
    some = [0.0, -0.0, math.nan, 1.5, -1.5, math.inf, -math.inf]
    source = np.array(list(itertools.product(some, repeat=3))).astype(DTYPES[type_.name])
    expected = [extreme(row, combine == "max") for row in source.astype(float).tolist()]
    actual = apply(ops.Reduce, source, combine=combine, axis=1)
    assert_same_bits(actual, np.array(expected).astype(source.dtype))
    assert_same_bits(apply(ops.Reduce, source.T.copy(), combine=combine, axis=0), actual)


@pytest.mark.parametrize("type_", FLOATS, ids=str)
@pytest.mark.parametrize("combine", ["max", "min"])
def test_arg_reduce_gives_the_first_index(combine: str, type_: ScalarType) -> None:
    some = [0.0, -0.0, math.nan, 1.5, -math.inf]
    source = np.array(list(itertools.product(some, repeat=4))).astype(DTYPES[type_.name])
    values, indices = apply(ops.ArgReduce, source, combine=combine, axis=1)
    for row, value, index in zip(source.astype(float).tolist(), values.astype(float), indices, strict=True):
        numbers = [v for v in row if not math.isnan(v)]
        best = (max if combine == "max" else min)(numbers, default=math.nan)
        expected = next((i for i, v in enumerate(row) if v == best), 0)
        assert index == expected
        assert math.isnan(value) if math.isnan(best) else value == best
        assert math.copysign(1, value) == math.copysign(1, row[expected]) or math.isnan(best)


@pytest.mark.parametrize("type_", INTEGERS, ids=str)
def test_arg_reduce_of_integers(type_: ScalarType) -> None:
    values = integers(type_)
    source = np.stack([np.concatenate([values, values]), np.concatenate([values[::-1], values])])
    for combine, reference in (("max", np.argmax), ("min", np.argmin)):
        best, index = apply(ops.ArgReduce, source, combine=combine, axis=1)
        assert index.tolist() == reference(source, axis=1).tolist()
        assert index.dtype == np.int32
        assert best.tolist() == np.take_along_axis(source, index[:, None], 1)[:, 0].tolist()


# ---- dot ----


def matrices(type_: str, m: int, k: int, n: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(2)
    if type_ == "i8":
        return rng.integers(-128, 128, (m, k), np.int8), rng.integers(-128, 128, (k, n), np.int8)
    dtype = DTYPES[type_]
    return convert_float(rng.standard_normal((m, k)), dtype), convert_float(
        rng.standard_normal((k, n)), dtype
    )


@pytest.mark.parametrize("type_", ["f16", "bf16", "f32"])
@pytest.mark.parametrize("k", [1, 5, 33])
def test_dot_is_a_chain_of_fused_multiply_adds(type_: str, k: int) -> None:
    a, b = matrices(type_, 3, k, 4)
    acc = np.random.default_rng(9).standard_normal((3, 4), np.float32)
    actual = apply(ops.Dot, a, b, acc)
    expected = [[fma_chain(a[i], b[:, j], acc[i, j]) for j in range(4)] for i in range(3)]
    assert_same_bits(actual, np.array(expected, np.float32))


def test_dot_with_a_half_accumulator_rounds_once() -> None:
    a, b = matrices("f16", 3, 20, 4)
    acc = np.random.default_rng(9).standard_normal((3, 4)).astype(np.float16)
    expected = [[fma_chain(a[i], b[:, j], acc[i, j]) for j in range(4)] for i in range(3)]
    assert_same_bits(apply(ops.Dot, a, b, acc), np.array(expected, np.float32).astype(np.float16))


def test_an_accumulator_may_be_added_last() -> None:
    a, b = matrices("f32", 3, 9, 4)
    acc = np.random.default_rng(9).standard_normal((3, 4), np.float32)
    expected = [[fma_chain(a[i], b[:, j], 0.0) + acc[i, j] for j in range(4)] for i in range(3)]
    assert_same_bits(apply(ops.Dot, a, b, acc, start="add"), np.array(expected, np.float32))


def test_dot_of_doubles() -> None:
    a, b = matrices("f64", 3, 20, 4)
    acc = np.ones((3, 4))
    np.testing.assert_allclose(apply(ops.Dot, a, b, acc), 1 + a @ b, rtol=1e-14)


def test_dot_of_bytes_wraps_in_int32() -> None:
    a, b = matrices("i8", 3, 50, 4)
    acc = np.full((3, 4), 2**31 - 1, np.int32)
    exact = a.astype(np.int64) @ b.astype(np.int64) + acc
    assert apply(ops.Dot, a, b, acc).tolist() == exact.astype(np.int32).tolist()


def test_tf32_rounds_the_operands() -> None:
    ties = np.array([[1 + 2.0**-11, 1 + 3 * 2.0**-11, 1 + 2.0**-11 + 2.0**-23, np.inf, 3.4e38]], np.float32)
    one, zero = np.eye(5, dtype=np.float32), np.zeros((1, 5), np.float32)
    chosen = [
        apply(ops.Dot, ties[:, k : k + 1], one[:1, :1], zero[:, :1], input_precision="tf32") for k in range(5)
    ]
    expected = [1.0, 1 + 2 * 2.0**-10, 1 + 2.0**-10, np.inf, 3.4e38]
    for actual, value in zip(chosen, expected, strict=True):
        assert actual[0, 0] == np.float32(value) or value == 3.4e38
    assert chosen[4][0, 0] != np.float32(3.4e38)


# ---- reduce_with ----

AFFINE = """
kernel @fold(%out: ptr<f32>, %x: ptr<f32>, %y: ptr<f32>) {
  %i = arange start=0, end=LENGTH : block<LENGTHxi32>
  %px = offset %x, %i : block<LENGTHxptr<f32>>
  %py = offset %y, %i : block<LENGTHxptr<f32>>
  %a = load %px : block<LENGTHxf32>
  %b = load %py : block<LENGTHxf32>
  %r, %s = reduce_with %a, %b, axis=0 : f32, f32 {
    (%la: f32, %lb: f32, %ra: f32, %rb: f32):
    %m = mul %la, %ra : f32
    %t = mul %lb, %ra : f32
    %u = add %t, %rb : f32
    yield %m, %u
  }
  %one = constant value=1 : i32
  %po = offset %out, %one : ptr<f32>
  store %out, %r
  store %po, %s
  return
}
"""


def tree(items: list[Any], combine: Callable[[Any, Any], Any]) -> Any:
    while len(items) > 1:
        pairs = [combine(items[i], items[i + 1]) for i in range(0, len(items) - 1, 2)]
        items = pairs + items[2 * len(pairs) :]
    return items[0]


@pytest.mark.parametrize("length", [1, 2, 3, 7, 8, 100])
def test_a_users_function_folds_neighbours_in_order(length: int) -> None:
    kernel = parse_kernel(AFFINE.replace("LENGTH", str(length)))
    verify(kernel)
    x, y = np.random.default_rng(length).standard_normal((2, length), np.float32)
    out = np.zeros(2, np.float32)
    run_kernel(kernel, [out, x, y], [1])
    expected = tree(list(zip(x, y, strict=True)), lambda p, q: (p[0] * q[0], p[1] * q[0] + q[1]))
    assert out.tolist() == [float(v) for v in expected]


BRANCHING = """
kernel @fold(%out: ptr<i32>, %x: ptr<i32>) {
  %i = arange start=0, end=30 : block<30xi32>
  %p = offset %x, %i : block<30xptr<i32>>
  %a = load %p : block<30xi32>
  %b = reshape %a, shape=[10, 3] : block<10x3xi32>
  %r = reduce_with %b, axis=0 : block<3xi32> {
    (%l: i32, %m: i32):
    %zero = constant value=0 : i32
    %one = constant value=1 : i32
    %two = constant value=2 : i32
    %even = rem %l, %two : i32
    %is = cmp %even, %zero, predicate="eq" : i1
    %t = if %is : i32 {
      %s = add %l, %m : i32
      yield %s
    } {
      %g, %d = while %l, %m : i32, i32 {
        (%v: i32, %w: i32):
        %more = cmp %w, %two, predicate="gt" : i1
        condition %more, %v, %w
      } {
        (%v2: i32, %w2: i32):
        %v3 = add %v2, %one : i32
        %w3 = idiv %w2, %two : i32
        yield %v3, %w3
      }
      %h = for %zero, %d, %one, %g : i32 {
        (%k: i32, %c: i32):
        %c2 = mul %c, %two : i32
        %c3 = add %c2, %k : i32
        yield %c3
      }
      yield %h
    }
    yield %t
  }
  %j = arange start=0, end=3 : block<3xi32>
  %q = offset %out, %j : block<3xptr<i32>>
  store %q, %r
  return
}
"""


def branching(left: int, right: int) -> int:
    if left % 2 == 0:
        return left + right
    while right > 2:
        left, right = left + 1, right // 2
    for k in range(right):
        left = left * 2 + k
    return left


def test_a_combine_function_with_branches_and_loops_per_lane() -> None:
    kernel = parse_kernel(BRANCHING)
    verify(kernel)
    x = np.random.default_rng(0).integers(0, 50, 30, np.int32)
    out = np.zeros(3, np.int32)
    run_kernel(kernel, [out, x], [1])
    assert out.tolist() == [tree([int(v) for v in x[column::3]], branching) for column in range(3)]


@pytest.mark.parametrize("type_", FLOATS, ids=str)
def test_special_values_sum_like_numbers(type_: ScalarType) -> None:
    values = floats(SCALARS[type_.name])
    finite = values[np.isfinite(values.astype(float)) & (np.abs(values.astype(float)) < 1e4)]
    total = float(apply(ops.Reduce, finite, combine="sum", axis=0))
    np.testing.assert_allclose(total, finite.astype(float).sum(), rtol=1e-2)
    assert np.isnan(float(apply(ops.Reduce, values, combine="sum", axis=0)))
