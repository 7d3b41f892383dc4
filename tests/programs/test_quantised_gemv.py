"""Matrix times vector with quantised weights: int8 with a scale per row, and 4 bits packed in int32."""

# mypy: ignore-errors
from __future__ import annotations

import numpy as np
import pytest

import blocklang.triton as triton
import blocklang.triton.language as tl
from tests.programs.running import close, compiled, in_both_modes, normal


@triton.jit
def gemv_int8_kernel(
    x_ptr, w_ptr, scale_ptr, bias_ptr, y_ptr, N, K, stride_wn,
    HAS_BIAS: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask_n = n < N
    acc = tl.zeros((BLOCK_N, BLOCK_K), dtype=tl.float32)
    for start in tl.range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        k = tl.max_contiguous(tl.multiple_of(k, BLOCK_K), BLOCK_K)
        mask_k = k < K
        x = tl.load(x_ptr + k, mask=mask_k, other=0.0, eviction_policy="evict_last")
        w = tl.load(
            w_ptr + n[:, None] * stride_wn + k[None, :],
            mask=mask_n[:, None] & mask_k[None, :], other=0, cache_modifier=".cg",
        )  # fmt: skip
        acc += w.to(tl.float32) * x[None, :].to(tl.float32)
    y = tl.sum(acc, axis=1) * tl.load(scale_ptr + n, mask=mask_n, other=1.0)
    if HAS_BIAS:
        y += tl.load(bias_ptr + n, mask=mask_n, other=0.0)
    tl.store(y_ptr + n, y.to(y_ptr.dtype.element_ty), mask=mask_n)


@triton.jit
def dynamic_quant_kernel(x_ptr, q_ptr, scale_ptr, K, BLOCK_K: tl.constexpr):
    row = tl.program_id(0)
    k = tl.arange(0, BLOCK_K)
    x = tl.load(x_ptr + row * K + k, mask=k < K, other=0.0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(x), axis=0), 1e-8) / 127.0
    q = x / scale
    q = tl.where(q >= 0, q + 0.5, q - 0.5)
    tl.store(q_ptr + row * K + k, tl.clamp(q, -127.0, 127.0).to(tl.int8), mask=k < K)
    tl.store(scale_ptr + row, scale)


@triton.jit
def scaled_int8_gemm_kernel(
    a_ptr, b_ptr, a_scale_ptr, b_scale_ptr, c_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (m % M)[:, None] * K + k[None, :]
    b_ptrs = b_ptr + (n % N)[None, :] * K + k[:, None]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.int32)
    for left in range(K, 0, -BLOCK_K):
        a = tl.load(a_ptrs, mask=k[None, :] < left, other=0)
        b = tl.load(b_ptrs, mask=k[:, None] < left, other=0)
        acc = tl.dot(a, b, acc, out_dtype=tl.int32)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K
    a_scale = tl.load(a_scale_ptr + m, mask=m < M, other=0.0)
    b_scale = tl.load(b_scale_ptr + n, mask=n < N, other=0.0)
    c = acc.to(tl.float32) * a_scale[:, None] * b_scale[None, :]
    tl.store(c_ptr + m[:, None] * N + n[None, :], c, mask=(m < M)[:, None] & (n < N)[None, :])


@triton.jit
def gemv_int4_kernel(
    x_ptr, qweight_ptr, scales_ptr, qzeros_ptr, y_ptr, N, K, group_size,
    BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    # qweight[K // 8, N]: eight 4-bit rows per word; qzeros[groups, N // 8]: eight 4-bit columns per word.
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask_n = n < N
    offs_k = tl.arange(0, BLOCK_K)
    shifts = (offs_k % 8) * 4
    zero_shifts = (n % 8) * 4
    acc = tl.zeros((BLOCK_N,), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + offs_k
        mask = (k < K)[:, None] & mask_n[None, :]
        group = start // group_size
        packed = tl.load(qweight_ptr + (k // 8)[:, None] * N + n[None, :], mask=mask, other=0)
        scales = tl.load(scales_ptr + group * N + n, mask=mask_n, other=0.0)
        zeros = tl.load(qzeros_ptr + group * (N // 8) + n // 8, mask=mask_n, other=0)
        zeros = (zeros >> zero_shifts) & 0xF
        w = ((packed >> shifts[:, None]) & 0xF) - zeros[None, :]
        w = w.to(scales.dtype) * scales[None, :]
        x = tl.load(x_ptr + k, mask=k < K, other=0.0)
        acc += tl.sum(w * x[:, None], axis=0).to(tl.float32)
    tl.store(y_ptr + n, acc, mask=mask_n)


def gemv_int8(mode, x, w, scale, bias, block_n, block_k):
    n, k = w.shape
    y = np.full(n, np.nan, x.dtype)
    mode(gemv_int8_kernel)[(triton.cdiv(n, block_n),)](
        x, w, scale, bias, y, n, k, w.strides[0], HAS_BIAS=bias is not None, BLOCK_N=block_n, BLOCK_K=block_k
    )
    return (y,)


def int8_case(n, k, dtype):
    w = np.random.default_rng(n).integers(-128, 128, (n, k + 3)).astype(np.int8)[:, :k]
    return normal(1, k, dtype=dtype), w, np.abs(normal(2, n)), normal(3, n)


@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("size", [(1, 1), (67, 300), (64, 1024)])
@pytest.mark.parametrize("has_bias", [True, False])
def test_int8_gemv(size, dtype, has_bias):
    x, w, scale, bias = int8_case(*size, dtype)
    bias = bias if has_bias else None
    expected = w.astype(np.float64) @ x.astype(np.float64) * scale + (bias if has_bias else 0)
    scale_of_error = (np.abs(w.astype(np.float64)) @ np.abs(x.astype(np.float64)) * scale).max()
    (y,) = gemv_int8(compiled, x, w, scale, bias, 16, 256)
    close(y, expected, dtype, scale=scale_of_error)


def test_int8_gemv_in_both_modes():
    x, w, scale, bias = int8_case(13, 50, "bf16")
    in_both_modes(lambda mode: gemv_int8(mode, x, w, scale, bias, 4, 16))


def quantised_matmul(mode, x, w, w_scale):
    (m, k), n = x.shape, w.shape[0]
    q, scale = np.zeros(x.shape, np.int8), np.zeros(m, np.float32)
    mode(dynamic_quant_kernel)[(m,)](x, q, scale, k, BLOCK_K=triton.next_power_of_2(k))
    c = np.full((m, n), np.nan, np.float32)
    mode(scaled_int8_gemm_kernel)[(triton.cdiv(m, 16), triton.cdiv(n, 16))](
        q, w, scale, w_scale, c, m, n, k, BLOCK_M=16, BLOCK_N=16, BLOCK_K=32
    )
    return q, scale, c


@pytest.mark.parametrize("size", [(1, 1, 1), (19, 35, 100)])
def test_rows_quantised_then_multiplied(size):
    m, n, k = size
    x = normal(1, m, k)
    w = np.random.default_rng(0).integers(-128, 128, (n, k)).astype(np.int8)
    w_scale = np.abs(normal(2, n))
    q, scale, c = in_both_modes(lambda mode: quantised_matmul(mode, x, w, w_scale))
    np.testing.assert_allclose(scale, np.abs(x).max(axis=1) / 127, rtol=1e-6)
    assert np.abs(q * scale[:, None] - x).max() <= 0.5001 * scale.max()
    product = q.astype(np.int64) @ w.T.astype(np.int64)
    close(c, product * scale[:, None].astype(np.float64) * w_scale)


def gemv_int4(mode, x, qweight, scales, qzeros, group, block_n):
    k, n = x.size, scales.shape[1]
    y = np.full(n, np.nan, np.float32)
    mode(gemv_int4_kernel)[(triton.cdiv(n, block_n),)](
        x, qweight, scales, qzeros, y, n, k, group, BLOCK_N=block_n, BLOCK_K=32
    )
    return (y,)


def pack(nibbles):
    """Eight along the first axis per int32, the lowest bits first."""
    words = nibbles.reshape(-1, 8, *nibbles.shape[1:]).astype(np.uint32)
    return sum(words[:, i] << np.uint32(4 * i) for i in range(8)).astype(np.uint32).view(np.int32)


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
@pytest.mark.parametrize("size", [(8, 32, 32), (40, 96, 32), (24, 200, 64)])
def test_int4_gemv(size, dtype):
    n, k, group = size
    random = np.random.default_rng(k)
    groups = -(-k // group)
    w, zeros = random.integers(0, 16, (k, n)), random.integers(0, 16, (groups, n))
    scales, x = np.abs(normal(1, groups, n, dtype=dtype)), normal(2, k, dtype=dtype)
    qweight, qzeros = pack(w), np.ascontiguousarray(pack(zeros.T).T)
    (y,) = in_both_modes(lambda mode: gemv_int4(mode, x, qweight, scales, qzeros, group, 16))
    of = np.arange(k) // group
    dense = (w - zeros[of]) * scales.astype(np.float64)[of]
    scale_of_error = (np.abs(x.astype(np.float64)) @ np.abs(dense)).max()
    close(y, x.astype(np.float64) @ dense, dtype, scale=scale_of_error)
