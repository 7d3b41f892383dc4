"""8-bit floats in both modes: casts over all codes and all f16 numbers, arithmetic, folds, arrays.

The expected codes come from `blocklang.ir.float8`, one number at a time; tests/interpreter/test_float8.py
holds that against tables and against ml_dtypes.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import blocklang as bl
import blocklang.language as tl
from blocklang.ir.float8 import FLOAT8 as FORMATS
from tests.numerics import float8_kernels as kernels
from tests.numerics.launching import Array, Out, assert_same_bits, launch_both, launch_one
from tests.numerics.values import FLOAT8, NUMPY_DTYPES, random_numbers

KINDS: dict[str, Any] = {
    f"fp8{name}": getattr(tl, f"float8{name}") for name in ("e5", "e4nv", "e4b8", "e5b16", "e4b15")
}
CODES = np.arange(256, dtype=np.uint8)
kinds = pytest.mark.parametrize("kind", KINDS)


def form_of(kind: str) -> Any:
    return FORMATS[kind.replace("fp8", "f8")]


def numbers_of(kind: str, codes: Array = CODES) -> Array:
    return np.array([form_of(kind).decode(int(c)) for c in codes.ravel()]).reshape(codes.shape)


def codes_of(kind: str, numbers: Array) -> Array:
    return np.array([form_of(kind).encode(float(v)) for v in numbers.ravel()], np.uint8).reshape(
        numbers.shape
    )


@kinds
@pytest.mark.parametrize("target", ["fp16", "bf16", "fp32", "fp64"])
def test_every_code_widens_exactly(kind: str, target: str) -> None:
    to = {"fp16": tl.float16, "bf16": tl.bfloat16, "fp32": tl.float32, "fp64": tl.float64}[target]
    actual = launch_one(kernels.widened, 1, CODES, Out((256,), target), KIND=KINDS[kind], TO=to, N=256)
    assert_same_bits(actual, numbers_of(kind).astype(NUMPY_DTYPES[target]))


@kinds
@pytest.mark.parametrize("source", ["fp16", "bf16", "fp32", "fp64"])
@pytest.mark.parametrize("rounding", ["rtne", "rtz"])
def test_narrowing(kind: str, source: str, rounding: str) -> None:
    """All f16 numbers; of the wider types also what lies just beside them and far outside."""
    half = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    with np.errstate(all="ignore"):
        values = half.astype(NUMPY_DTYPES[source])
        if source in ("fp32", "fp64"):
            few = values[::5]
            tiny = 2.0**-20 if source == "fp32" else 2.0**-45
            values = np.concatenate(
                [
                    values,
                    few * values.dtype.type(1 + tiny),
                    few * values.dtype.type(1 - tiny),
                    few * few * few * few,
                ]
            )
    n = len(values)
    grid = bl.cdiv(n, 1000)
    codes = launch_one(
        kernels.narrowed, grid, values, Out((n,), "uint8"), n, KIND=KINDS[kind], ROUNDING=rounding, N=1000
    )
    if rounding == "rtne":
        with np.errstate(invalid="ignore"):
            wide = values[::7].astype(np.float64)
        np.testing.assert_array_equal(codes[::7], codes_of(kind, wide))
    else:
        with np.errstate(invalid="ignore"):
            size, cut = np.abs(values.astype(np.float64)), np.abs(numbers_of(kind, codes))
            number = ~np.isnan(values)
            assert (cut[number] <= size[number]).all()
            largest = form_of(kind).decode(form_of(kind).largest)
            following = np.abs(numbers_of(kind, np.minimum(codes & 0x7F, 0x7E) + 1))
            inside = number & (size < largest)
            assert (following[inside] > size[inside]).all()


@kinds
@pytest.mark.parametrize("source", ["int8", "uint8", "int32", "int64", "uint64", "int1"])
def test_integers(kind: str, source: str) -> None:
    values = random_numbers(source, (101,), 4)
    small = np.arange(101) % 2 if source == "int1" else np.arange(101)
    for given in (values, small.astype(NUMPY_DTYPES[source])):
        codes = launch_one(kernels.from_integers, 1, given, Out((101,), "uint8"), KIND=KINDS[kind], N=101)
        np.testing.assert_array_equal(codes, codes_of(kind, given.astype(np.float64)))
    for to in ("int8", "uint8", "int32", "int64", "int1"):
        launch_one(kernels.widened, 1, CODES, Out((256,), to), KIND=KINDS[kind], TO=getattr(tl, to), N=256)


def test_conversion_to_integers_truncates_and_saturates() -> None:
    lanes = codes_of("fp8e4nv", np.array([2.75, -3.5, 240.0, -448.0, np.nan]))
    actual = launch_one(kernels.widened, 1, lanes, Out((5,), "int8"), KIND=tl.float8e4nv, TO=tl.int8, N=5)
    assert actual.tolist() == [2, -3, 127, -128, 0]


@kinds
def test_arithmetic(kind: str) -> None:
    generator = np.random.default_rng(8)
    x, y = generator.integers(0, 256, (2, 777), np.uint8)
    x[:256], y[:256] = CODES, CODES[::-1]
    rows = launch_one(kernels.arithmetic, 1, x, y, Out((19, 777), "uint8"), KIND=KINDS[kind], N=777)
    a, b = numbers_of(kind, x).astype(np.float32), numbers_of(kind, y).astype(np.float32)
    with np.errstate(all="ignore"):
        factor, one = np.float32(form_of(kind).decode(form_of(kind).encode(0.3))), np.float32(1)
        expected = [a + b, a - b, a * b, a / b, a * factor, a + one, one - a, np.float32(0) - a]
        for row, values in enumerate(expected):
            np.testing.assert_array_equal(rows[row], codes_of(kind, values), f"row {row}")
        np.testing.assert_array_equal(numbers_of(kind, rows[8]), np.abs(numbers_of(kind, x)))
        np.testing.assert_array_equal(rows[9], codes_of(kind, a.astype(np.float64) * b + a))
        known = ~(np.isnan(a) | np.isnan(b))
        np.testing.assert_array_equal(numbers_of(kind, rows[10])[known], np.minimum(a, b)[known])
        np.testing.assert_array_equal(numbers_of(kind, rows[11])[known], np.maximum(a, b)[known])
        np.testing.assert_array_equal(rows[12], np.where(a < b, x, y))
        np.testing.assert_array_equal(rows[14], codes_of(kind, np.sqrt(a)))
        np.testing.assert_array_equal(rows[16], codes_of(kind, a))
    assert set(rows[18]) == {form_of(kind).encode(3.1)}


@kinds
@pytest.mark.parametrize("other", KINDS)
def test_two_kinds_compute_in_fp16(kind: str, other: str) -> None:
    x, y = np.random.default_rng(9).integers(0, 256, (2, 333), np.uint8)
    rows = launch_one(
        kernels.two_kinds, 1, x, y, Out((2, 333), "fp32"), LEFT=KINDS[kind], RIGHT=KINDS[other], N=333
    )
    a, b = numbers_of(kind, x).astype(np.float16), numbers_of(other, y).astype(np.float16)
    with np.errstate(all="ignore"):
        total = (a.astype(np.float32) + b.astype(np.float32)).astype(np.float16).astype(np.float32)
    if kind != other:
        assert_same_bits(rows[0], total)
        assert_same_bits(rows[1], numbers_of(other, codes_of(other, numbers_of(kind, x))).astype(np.float32))


@kinds
@pytest.mark.parametrize(("m", "n", "live"), [(1, 1, 1), (3, 37, 37), (5, 100, 61), (4, 64, 0)])
def test_folds(kind: str, m: int, n: int, live: int) -> None:
    x = np.random.default_rng(10).integers(0, 256, (m, n), np.uint8)
    x[numbers_of(kind, x) != numbers_of(kind, x)] = 0x11
    x[0, 0] = form_of(kind).top
    out = launch_one(kernels.folded, 1, x, Out((6 * m + n,), "fp32"), live, KIND=KINDS[kind], M=m, N=n)
    seen = numbers_of(kind, np.where(np.arange(n) < live, x, 0)).astype(np.float32)
    assert_same_bits(out[m : 2 * m], seen.max(1))
    assert_same_bits(out[3 * m : 4 * m] + np.float32(0), seen.min(1) + np.float32(0))
    assert out[2 * m : 3 * m].tolist() == seen.argmax(1).tolist()
    assert out[4 * m : 5 * m].tolist() == seen.argmin(1).tolist()
    assert_same_bits(out[5 * m : 6 * m], seen.max(1))


@pytest.mark.parametrize("kind", FLOAT8)
@pytest.mark.parametrize("extent", [1, 7, 33, 257])
def test_arrays_and_scalars_of_a_kind(kind: str, extent: int) -> None:
    x, y = random_numbers(kind, (300,), 1), random_numbers(kind, (300,), 2)
    scale = NUMPY_DTYPES[kind].type(0.75)
    n = 291
    out = launch_one(kernels.typed, bl.cdiv(300, extent), x, y, Out((300,), "fp32"), n, scale, N=extent)
    wide = (x.astype(np.float32) + y.astype(np.float32)) * np.float32(0.75)
    assert_same_bits(out[:n], wide[:n])
    kept = launch_one(kernels.typed, 1, x, y, Out((300,), kind), n, scale, N=300)
    assert_same_bits(kept[:n].view(np.uint8), codes_of(kind, wide[:n]))


@kinds
def test_every_code_in_order(kind: str) -> None:
    """-0 before +0, NaN last."""
    codes = np.random.default_rng(11).permutation(CODES)
    out = launch_one(kernels.ordered, 1, codes, Out((640,), "fp32"), KIND=KINDS[kind], N=256)
    ascending = np.sort(numbers_of(kind)).astype(np.float32)
    np.testing.assert_array_equal(out[:256], ascending)
    np.testing.assert_array_equal(out[256:512], ascending[::-1])
    np.testing.assert_array_equal(out[512:], ascending[::-1][:128])


def test_an_integer_beside_an_8_bit_float_has_no_common_type() -> None:
    @bl.jit
    def mixed(x, out):  # type: ignore[no-untyped-def]
        tl.store(out, tl.load(x) + tl.program_id(0))

    x = np.zeros(1, ml_dtypes.float8_e5m2)
    with pytest.raises(bl.CompilationError, match="unexpected type int32 beside fp8e5"):
        launch_both(mixed, 1, x, Out((1,), "fp8e5"))


def test_names() -> None:
    assert [str(k) for k in KINDS.values()] == list(KINDS)
    assert [(k.fp_mantissa_width, k.exponent_bias) for k in KINDS.values()] == [
        (2, 15), (3, 7), (3, 8), (2, 16), (3, 15),
    ]  # fmt: skip
    for name, kind in KINDS.items():
        assert (kind.primitive_bitwidth, kind.itemsize) == (8, 1)
        assert (kind.is_fp8(), kind.is_floating(), kind.is_standard_floating()) == (True, True, False)
        assert [getattr(kind, f"is_{other}")() for other in KINDS] == [other == name for other in KINDS]
