"""Matrix products of 8-bit and 4-bit floats, each 32 of them with a scale of their own."""

# mypy: ignore-errors
from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import blocklang.triton as triton
import blocklang.triton.language as tl
from tests.programs.running import assert_close, in_both_modes


@triton.jit
def block_scaled_matmul_kernel(
    a_ptr, a_scale_ptr, b_ptr, b_scale_ptr, c_ptr, M, N, K,
    stride_am, stride_bk, stride_as, stride_bs, stride_cm,
    A_FORMAT: tl.constexpr, B_FORMAT: tl.constexpr, A_PACK: tl.constexpr, B_PACK: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, VEC_SIZE: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(axis=0)
    num_pid_m = tl.cdiv(M, BLOCK_M)
    pid_m = pid % num_pid_m
    pid_n = pid // num_pid_m
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_ak = tl.arange(0, BLOCK_K // A_PACK)
    offs_bk = tl.arange(0, BLOCK_K // B_PACK)
    offs_s = tl.arange(0, BLOCK_K // VEC_SIZE)
    in_m = offs_m[:, None] < M
    in_n = offs_n < N
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in tl.range(0, tl.cdiv(K, BLOCK_K), num_stages=3):
        ak = k * (BLOCK_K // A_PACK) + offs_ak
        bk = k * (BLOCK_K // B_PACK) + offs_bk
        s = k * (BLOCK_K // VEC_SIZE) + offs_s
        a_mask = in_m & (ak[None, :] < K // A_PACK)
        b_mask = (bk[:, None] < K // B_PACK) & in_n[None, :]
        a = tl.load(a_ptr + offs_m[:, None] * stride_am + ak[None, :], mask=a_mask, other=0)
        b = tl.load(b_ptr + bk[:, None] * stride_bk + offs_n[None, :], mask=b_mask, other=0)
        in_s = s[None, :] < K // VEC_SIZE
        scale_a = tl.load(a_scale_ptr + offs_m[:, None] * stride_as + s[None, :], mask=in_m & in_s, other=127)
        if b_scale_ptr is not None:
            b_scale_ptrs = b_scale_ptr + offs_n[:, None] * stride_bs + s[None, :]
            scale_b = tl.load(b_scale_ptrs, mask=in_n[:, None] & in_s, other=127)
        else:
            scale_b = None
        accumulator = tl.dot_scaled(a, scale_a, A_FORMAT, b, scale_b, B_FORMAT, accumulator)
    c_ptrs = c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :]
    tl.store(c_ptrs, accumulator.to(c_ptr.dtype.element_ty), mask=in_m & in_n[None, :])


FORMATS = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "bf16": ml_dtypes.bfloat16}
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float64)


def operand(form, rows, k, seed):
    """A matrix as it lies in memory (two 4-bit numbers in a byte, the low bits first), and its numbers."""
    random = np.random.default_rng(seed)
    if form != "e2m1":
        stored = random.normal(size=(rows, k)).astype(FORMATS[form])
        return stored, stored.astype(np.float64)
    nibbles = random.integers(0, 16, size=(rows, k), dtype=np.uint8)
    values = np.where(nibbles & 8, -1.0, 1.0) * E2M1[nibbles & 7]
    return nibbles[:, ::2] | nibbles[:, 1::2] << 4, values


def run(mode, a, a_scale, a_form, b, b_scale, b_form, m, n, k):
    c = np.full((m, n), 7, np.float32)
    mode(block_scaled_matmul_kernel)[(triton.cdiv(m, 32) * triton.cdiv(n, 16), 1)](
        a, a_scale, b, b_scale, c, m, n, k, a.shape[1], b.shape[1], k // 32, k // 32, n,
        A_FORMAT=a_form, B_FORMAT=b_form, A_PACK=1 + (a_form == "e2m1"), B_PACK=1 + (b_form == "e2m1"),
        BLOCK_M=32, BLOCK_N=16, BLOCK_K=64, VEC_SIZE=32,
    )  # fmt: skip
    return (c,)


@pytest.mark.parametrize(
    ("a_form", "b_form"),
    [("e4m3", "e4m3"), ("e2m1", "e2m1"), ("e4m3", "e2m1"), ("e2m1", "e5m2"), ("e2m1", "bf16")],
)
@pytest.mark.parametrize("size", [(37, 29, 96), (64, 32, 128)])
def test_block_scaled(a_form, b_form, size):
    m, n, k = size
    a, a_values = operand(a_form, m, k, 0)
    b, b_values = operand(b_form, n, k, 1)
    b = np.ascontiguousarray(b.T)
    random = np.random.default_rng(2)
    a_scale = random.integers(120, 132, size=(m, k // 32), dtype=np.uint8)
    b_scale = random.integers(120, 132, size=(n, k // 32), dtype=np.uint8) if b_form != "bf16" else None
    (c,) = in_both_modes(run, a, a_scale, a_form, b, b_scale, b_form, m, n, k)
    wide_a = a_values * np.repeat(2.0 ** (a_scale.astype(np.float64) - 127), 32, axis=1)
    if b_scale is not None:
        b_values = b_values * np.repeat(2.0 ** (b_scale.astype(np.float64) - 127), 32, axis=1)
    assert_close(c, wide_a @ b_values.T, 1e-5)
