"""`dot`: for every element a chain of fused multiply-adds, k ascending, from the accumulator on, to the bit.

Beside that the result is held against the float64 product, by the bound of such a chain of k steps:
|error| <= k u / (1 - k u) * (|a| @ |b|), u = 2**-24.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import blocklang as bl
from tests.numerics import dot_kernels as kernels
from tests.numerics.expected import as_float, exact, fma_f32, fma_f64, hard_to_round, rounded, wrapped
from tests.numerics.launching import Array, Out, assert_same_bits, launch_both, launch_one
from tests.numerics.values import FLOAT8, TYPES, floats, random_numbers

SIZES = ((1, 1, 1), (3, 5, 7), (33, 17, 65), (16, 16, 32), (1, 100, 3), (5, 1, 257), (7, 33, 1))
# Operand, result.
KINDS = (
    ("fp32", "fp32"),
    ("fp16", "fp32"),
    ("fp16", "fp16"),
    ("bf16", "fp32"),
    ("fp64", "fp64"),
    ("int8", "int32"),
    *((name, "fp32") for name in FLOAT8),
    ("fp8e4nv", "fp16"),
)


def chain(a: Array, b: Array, start: Array, name: str) -> Array:
    """`start + a @ b` in the published order, in fp32, float64 or wrapping int32."""
    if name == "int8":
        return wrapped(np.asarray(exact(start) + exact(a) @ exact(b)), "int32")
    fma, total = (fma_f64, start) if name == "fp64" else (fma_f32, start.astype(np.float32))
    if name in FLOAT8:
        a, b = a.astype(np.float32), b.astype(np.float32)
    for k in range(a.shape[-1]):
        total = fma(a[..., k, None], b[..., None, k, :], total)
    return total


def check(
    name: str, result: str, size: tuple[int, int, int], a: Array, b: Array, precision: str = "ieee"
) -> None:
    m, n, k = size
    acc = random_numbers(result, (m, n), 9)
    rows = launch_one(
        kernels.product, 1, a, b, acc, Out((3, m, n), result),
        M=m, N=n, K=k, RESULT=TYPES[result], PRECISION=precision,
    )  # fmt: skip
    if precision == "tf32":
        a, b = (rounded(v.astype(np.float64), "tf32").astype(np.float32) for v in (a, b))
    zero = np.zeros_like(acc)
    plain, started = (in_result_type(chain(a, b, v, name), result) for v in (zero, acc))
    assert_same_bits(rows[0], plain, f"{name} {size}")
    assert_same_bits(rows[1], started, f"{name} {size} from an accumulator")
    with np.errstate(all="ignore"):
        added = (
            plain + acc
            if result != "fp16"
            else (plain.astype(np.float32) + acc.astype(np.float32)).astype(np.float16)
        )
    assert_same_bits(rows[2], added, f"{name} {size} added to an accumulator")


def in_result_type(value: Array, result: str) -> Array:
    return as_float(value.astype(np.float64), result) if result == "fp16" else value


def operands(name: str, size: tuple[int, int, int]) -> tuple[Array, Array]:
    m, n, k = size
    return random_numbers(name, (m, k), 1), random_numbers(name, (k, n), 2)


@pytest.mark.parametrize(("name", "result"), KINDS)
@pytest.mark.parametrize("size", SIZES)
def test_every_type_and_odd_sizes(size: tuple[int, int, int], name: str, result: str) -> None:
    if name == "fp64" and size == (33, 17, 65):  # fractions are slow
        size = (9, 17, 20)
    check(name, result, size, *operands(name, size))


@pytest.mark.parametrize("size", [(3, 5, 7), (17, 33, 40)])
def test_tf32_rounds_the_operands(size: tuple[int, int, int]) -> None:
    check("fp32", "fp32", size, *operands("fp32", size), precision="tf32")


@pytest.mark.parametrize(("name", "result"), KINDS[:4])
def test_special_values(name: str, result: str) -> None:
    """NaN, infinities, subnormal and huge numbers, zeros of both signs."""
    size = (len(floats(name)), 9, 4)
    generator = np.random.default_rng(6)
    a, b = generator.choice(floats(name), (size[0], 4)), generator.choice(floats(name), (4, 9))
    check(name, result, size, a, b)


BATCHES = ((1,), (3,), (2, 3))


@pytest.mark.parametrize(("name", "result"), KINDS)
@pytest.mark.parametrize("batch", BATCHES, ids=str)
@pytest.mark.parametrize("size", [(1, 1, 1), (5, 7, 3), (17, 33, 9)])
def test_a_batch(size: tuple[int, int, int], batch: tuple[int, ...], name: str, result: str) -> None:
    """Each matrix of a batch as if it stood alone; more than one axis of batches is flattened."""
    if name == "fp64":
        size = (3, 5, 4)
    m, n, k = size
    a, b = random_numbers(name, (*batch, m, k), 1), random_numbers(name, (*batch, k, n), 2)
    acc = random_numbers(result, (*batch, m, n), 9)
    kernel = {1: kernels.batched, 2: kernels.batched_twice}[len(batch)]
    extents = dict(zip("BC", batch, strict=False))
    rows = launch_one(
        kernel, 1, a, b, acc, Out((2, *batch, m, n), result), **extents, M=m, N=n, K=k, RESULT=TYPES[result]
    )
    assert_same_bits(rows[0], in_result_type(chain(a, b, acc, name), result))
    zero = np.zeros_like(acc)
    plain = in_result_type(chain(a, b, zero, name), result)
    if result == "fp16":
        assert_same_bits(rows[1], (plain.astype(np.float32) + acc.astype(np.float32)).astype(np.float16))
    else:
        assert_same_bits(rows[1], plain + acc)


def test_a_batch_carried_over_a_loop_with_masks_and_transposed_operands() -> None:
    batch, m, n, k = 3, 5, 9, 14
    a, b = random_numbers("fp32", (batch, m, k), 1), random_numbers("fp32", (batch, n, k), 2)
    result = launch_one(
        kernels.batched_loop, 1, a, b, Out((batch, m, n), "fp32"), batch, m, n, k, B=4, M=8, N=10, K=4
    )
    assert_same_bits(result, chain(a, b.transpose(0, 2, 1), np.zeros((batch, m, n), np.float32), "fp32"))


@pytest.mark.parametrize("left", FLOAT8)
@pytest.mark.parametrize("right", FLOAT8)
def test_fp8_kinds_may_mix(left: str, right: str) -> None:
    m, n, k = 5, 9, 6
    a, b = random_numbers(left, (m, k), 1), random_numbers(right, (k, n), 2)
    acc = random_numbers("fp32", (m, n), 3)
    rows = launch_one(
        kernels.product, 1, a, b, acc, Out((3, m, n), "fp32"),
        M=m, N=n, K=k, RESULT=TYPES["fp32"], PRECISION="ieee",
    )  # fmt: skip
    assert_same_bits(rows[1], chain(a.astype(np.float32), b.astype(np.float32), acc, "fp32"))


@pytest.mark.parametrize("precision", ["tf32x3", "bf16x3", "bf16x6"])
def test_precisions_below_ieee_mean_ieee(precision: str) -> None:
    m, n, k = 4, 6, 5
    a, b = operands("fp32", (m, n, k))
    acc = random_numbers("fp32", (m, n), 9)
    rows = [
        launch_one(
            kernels.product, 1, a, b, acc, Out((3, m, n), "fp32"),
            M=m, N=n, K=k, RESULT=TYPES["fp32"], PRECISION=p,
        )
        for p in (precision, "ieee")
    ]  # fmt: skip
    assert_same_bits(rows[0], rows[1])


def test_one_operand_in_two_precisions() -> None:
    a, b = operands("fp32", (5, 9, 6))
    rows = launch_one(kernels.two_precisions, 1, a, b, Out((2, 5, 9), "fp32"), M=5, N=9, K=6)
    zero = np.zeros((5, 9), np.float32)
    a_tf32, b_tf32 = (rounded(v.astype(np.float64), "tf32").astype(np.float32) for v in (a, b))
    assert_same_bits(rows[0], chain(a, b, zero, "fp32"))
    assert_same_bits(rows[1], chain(a_tf32, b_tf32, zero, "fp32"))


def test_int8_wraps_in_int32() -> None:
    size = (3, 5, 300)
    check("int8", "int32", size, np.full((3, 300), -128, np.int8), np.full((300, 5), -128, np.int8))


def test_fp32_against_float64() -> None:
    for size in SIZES:
        a, b = operands("fp32", size)
        got = chain(a, b, np.zeros(size[:2], np.float32), "fp32")
        unit, k = 2.0**-24, size[2]
        wide = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64))
        error = np.abs(got - a.astype(np.float64) @ b.astype(np.float64))
        assert (error <= k * unit / (1 - k * unit) * wide).all()


def test_products_that_are_hard_to_add() -> None:
    """On the diagonal stand sums that float64 would round to a tie of fp32."""
    a, b, acc = hard_to_round()
    n = len(a)
    rows = launch_one(
        kernels.product, 1, a[:, None], b[None, :], np.tile(acc, (n, 1)), Out((3, n, n), "fp32"),
        M=n, N=n, K=1, RESULT=TYPES["fp32"], PRECISION="ieee",
    )  # fmt: skip
    assert_same_bits(rows[1], fma_f32(a[:, None], b[None, :], acc[None, :]))


@pytest.mark.parametrize("size", [(5, 7, 3), (33, 16, 20)])
def test_transposed_and_computed_operands(size: tuple[int, int, int]) -> None:
    m, n, k = size
    x, y = random_numbers("fp32", (k, m), 1), random_numbers("fp32", (n, k), 2)
    rows = launch_one(kernels.transposed, 1, x, y, Out((3, m, n), "fp32"), M=m, N=n, K=k)
    zero, one = np.zeros((m, n), np.float32), np.float32(1)
    assert_same_bits(rows[0], chain(x.T, y.T, zero, "fp32"))
    assert_same_bits(rows[1], chain(x.T * np.float32(2), y.T + one, zero, "fp32"))
    few = x.copy()
    few[-1] = 0
    assert_same_bits(rows[2], chain(few.T, y.T, zero, "fp32"))


@pytest.mark.parametrize(
    ("size", "tile"),
    [
        ((33, 17, 65), (16, 16, 32)),
        ((5, 100, 40), (8, 33, 16)),
        ((16, 32, 64), (16, 32, 64)),
        ((1, 1, 1), (7, 3, 5)),
    ],
)
@pytest.mark.parametrize("name", ["fp32", "bf16"])
def test_a_whole_matmul(name: str, size: tuple[int, int, int], tile: tuple[int, int, int]) -> None:
    """Tiling M and N changes nothing; the tail of K adds exact zeros."""
    m, n, k = size
    a, b = operands(name, size)
    grid = (bl.cdiv(m, tile[0]), bl.cdiv(n, tile[1]))
    result = launch_one(
        kernels.matmul, grid, a, b, Out((m, n), "fp32"), m, n, k, M=tile[0], N=tile[1], K=tile[2]
    )
    assert_same_bits(result, chain(a, b, np.zeros((m, n), np.float32), name))


@pytest.mark.parametrize(
    ("name", "result", "message"),
    [
        ("uint8", "int32", "only int8 supported"),
        ("int32", "int32", "only int8 supported"),
        ("fp16", "fp64", "out_dtype"),
        ("fp8e5", "bf16", "out_dtype=bfloat16 is unsupported"),
    ],
)
def test_types_that_cannot_be_multiplied(name: str, result: str, message: str) -> None:
    size: Any = (2, 2, 2)
    a, b = operands(name, size)
    acc = random_numbers(result, (2, 2))
    with pytest.raises(bl.CompilationError, match=message):
        launch_both(
            kernels.product, 1, a, b, acc, Out((3, 2, 2), result),
            M=2, N=2, K=2, RESULT=TYPES[result], PRECISION="ieee",
        )  # fmt: skip
