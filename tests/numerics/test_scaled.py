"""`dot_scaled`: the operands against a reference written from the formats' definitions, the sums as those of
`dot`."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import blocklang as bl
import blocklang.language as tl
from tests.numerics import scaled_kernels as kernels
from tests.numerics.expected import fma_f32
from tests.numerics.launching import Array, Out, assert_same_bits, launch_both, launch_one
from tests.numerics.values import NUMPY_DTYPES, random_numbers

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)
FORMATS = ("e2m1", "e4m3", "e5m2", "bf16", "fp16")
DTYPES: dict[str, Any] = {
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "bf16": ml_dtypes.bfloat16,
    "fp16": np.float16,
}


def operand(form: str, shape: tuple[int, int], axis: int, seed: int) -> tuple[Array, Array]:
    """An operand as it lies in memory, e2m1 packed along an axis, and its numbers."""
    if form != "e2m1":
        given = np.random.default_rng(seed).standard_normal(shape).astype(DTYPES[form])
        return given, given.astype(np.float32)
    codes = np.random.default_rng(seed).integers(0, 16, shape, np.uint8)
    low, high = (np.take(codes, range(start, shape[axis], 2), axis) for start in (0, 1))
    return low | (high << 4), E2M1[codes]


def scales(group: int, rows: int, depth: int, seed: int) -> tuple[Array, Array]:
    """Scales in memory, and one number for each element of [rows, depth]."""
    if not group:
        return np.zeros(1, np.uint8), np.ones((rows, depth), np.float32)
    generator = np.random.default_rng(seed)
    if group == 16:
        given: Array = generator.uniform(0.1, 4, (rows, depth // 16)).astype(ml_dtypes.float8_e4m3fn)
        numbers = given.astype(np.float64)
    else:
        given = generator.integers(110, 140, (rows, depth // 32), np.uint8)
        numbers = 2.0 ** (given.astype(np.float64) - 127)
    return given, np.repeat(numbers, group, axis=1).astype(np.float32)


def chain(a: Array, b: Array, total: Array) -> Array:
    for k in range(a.shape[1]):
        total = fma_f32(a[:, k, None], b[None, k], total)
    return total


def check(
    left: str, right: str, groups: tuple[int, int], packs: tuple[bool, bool] = (True, True),
    size: tuple[int, int, int] = (4, 6, 64),
) -> None:  # fmt: skip
    m, n, k = size
    x, a = operand(left, (m, k), 1 if packs[0] else 0, 1)
    y, b = operand(right, (k, n), 0 if packs[1] else 1, 2)
    x_scale, a_scale = scales(groups[0], m, k, 3)
    y_scale, b_scale = scales(groups[1], n, k, 4)
    acc = random_numbers("fp32", (m, n), 5)
    out = launch_one(
        kernels.product, 1, x, x_scale, y, y_scale, acc, Out((m, n), "fp32"),
        M=m, N=n, K=k, ROWS=x.shape[0], DEPTH_X=x.shape[1], DEPTH_Y=y.shape[0], COLUMNS=y.shape[1],
        LEFT=left, RIGHT=right, GROUP_X=groups[0], GROUP_Y=groups[1], PACK_X=packs[0], PACK_Y=packs[1],
    )  # fmt: skip
    scaled_a, scaled_b = a * a_scale, b * b_scale.T
    assert_same_bits(out, chain(scaled_a, scaled_b, acc))
    exact = (a.astype(np.float64) * a_scale) @ (b.astype(np.float64) * b_scale.T) + acc
    bound = (k + 1) * 2.0**-24 * (np.abs(scaled_a) @ np.abs(scaled_b).astype(np.float64) + np.abs(acc))
    assert (np.abs(out - exact) <= bound).all()


@pytest.mark.parametrize("left", FORMATS)
@pytest.mark.parametrize("right", FORMATS)
def test_formats(left: str, right: str) -> None:
    check(left, right, (32, 32))


@pytest.mark.parametrize("groups", [(0, 32), (32, 0), (0, 0), (16, 16), (16, 32)])
def test_scales(groups: tuple[int, int]) -> None:
    check("e2m1", "e4m3", groups)


@pytest.mark.parametrize("packs", [(False, True), (True, False), (False, False)])
@pytest.mark.parametrize("size", [(4, 6, 64), (2, 2, 32), (34, 18, 96)])
def test_packing_along_the_other_axis(packs: tuple[bool, bool], size: tuple[int, int, int]) -> None:
    check("e2m1", "e2m1", (32, 32), packs, size)


@pytest.mark.parametrize("size", [(1, 1, 32), (3, 5, 32), (17, 33, 160)])
def test_odd_sizes(size: tuple[int, int, int]) -> None:
    check("e2m1", "fp16", (32, 32), (True, True), size)


def test_a_batch() -> None:
    count, m, n, k = 3, 4, 5, 64
    operands = [(operand("e2m1", (m, k), 1, i), operand("e5m2", (k, n), 0, 10 + i)) for i in range(count)]
    both = [(scales(32, m, k, 20 + i), scales(32, n, k, 30 + i)) for i in range(count)]
    x, y = (np.stack([o[side][0] for o in operands]) for side in (0, 1))
    x_scale, y_scale = (np.stack([s[side][0] for s in both]) for side in (0, 1))
    out = launch_one(
        kernels.batch, 1, x, x_scale, y, y_scale, Out((count, m, n), "fp32"), B=count, M=m, N=n, K=k
    )
    for i in range(count):
        a, b = operands[i][0][1] * both[i][0][1], operands[i][1][1] * both[i][1][1].T
        assert_same_bits(out[i], chain(a, b, np.zeros((m, n), np.float32)))


@bl.jit
def every_scale(x, scale, out):  # type: ignore[no-untyped-def]
    k, j = tl.arange(0, 32), tl.arange(0, 256)
    a = tl.load(x + k)[None, :] + tl.zeros((256, 32), tl.bfloat16)
    b = tl.where(k[:, None] == 0, 1.0, 0.0).to(tl.bfloat16)
    scales = tl.load(scale + j)[:, None]
    tl.store(out + j[:, None], tl.dot_scaled(a, scales, "bf16", b, None, "bf16"))


def test_every_scale_is_a_power_of_two_and_255_is_nan() -> None:
    x = np.zeros(32, NUMPY_DTYPES["bf16"])
    x[0] = 1
    out = launch_one(every_scale, 1, x, np.arange(256, dtype=np.uint8), Out((256,), "fp32"))
    expected = 2.0 ** (np.arange(256) - 127.0)
    expected[255] = np.nan
    assert_same_bits(out, expected.astype(np.float32))


@bl.jit
def wrong(x, out, FORMAT: bl.constexpr, SCALE: bl.constexpr, PACK: bl.constexpr, TYPE: bl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.arange(0, 32)
    a = tl.load(x + i)[None, :]
    scale = tl.zeros((1, 2), tl.uint8) if SCALE else None
    b = tl.zeros((32, 1), tl.bfloat16)
    tl.store(
        out + tl.arange(0, 1),
        tl.dot_scaled(a, scale, FORMAT, b, None, "bf16", lhs_k_pack=PACK, out_dtype=TYPE).ravel(),
    )


@pytest.mark.parametrize(
    ("form", "scale", "pack", "result", "message"),
    [
        ("e3m2", False, True, tl.float32, "lhs_format is 'e3m2'"),
        ("bf16", False, True, tl.float32, "Unexpected dtype for bf16. Got uint8"),
        ("e4m3", False, False, tl.float32, "only mxfp4 inputs can be packed"),
        ("e4m3", True, True, tl.float32, "lhs_scale must be a tensor of shape"),
        ("e4m3", False, True, tl.float16, "Only float32 is supported for out_dtype"),
        ("e2m1", False, True, tl.float32, "64 columns meet 32 rows"),
    ],
)
def test_refusals(form: str, scale: bool, pack: bool, result: Any, message: str) -> None:
    with pytest.raises(bl.CompilationError, match=message):
        launch_both(
            wrong,
            1,
            np.zeros(32, np.uint8),
            Out((1,), "fp32"),
            FORMAT=form,
            SCALE=scale,
            PACK=pack,
            TYPE=result,
        )
