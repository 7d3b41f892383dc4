"""Matrix products of 8-bit and 4-bit floats, each 32 of them with a scale of their own."""

# mypy: ignore-errors
from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import blocklang.triton as triton
import blocklang.triton.language as tl
from blocklang.triton.tools.tensor_descriptor import TensorDescriptor
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


@triton.jit
def block_scaled_matmul_descriptor_kernel(
    a_desc, a_scale_desc, b_desc, b_scale_desc, c_desc, M, N, K,
    output_type: tl.constexpr, ELEM_PER_BYTE_A: tl.constexpr, ELEM_PER_BYTE_B: tl.constexpr,
    VEC_SIZE: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    rep_m: tl.constexpr, rep_n: tl.constexpr, rep_k: tl.constexpr, NUM_STAGES: tl.constexpr,
):  # fmt: skip
    """Scales come packed, 128 rows by 4 in 512 bytes, as matrix units want them; B lies transposed."""
    if output_type == 0:
        output_dtype = tl.float32
    elif output_type == 1:
        output_dtype = tl.float16
    elif output_type == 2:
        output_dtype = tl.float8e4nv
    pid = tl.program_id(axis=0)
    num_pid_m = tl.cdiv(M, BLOCK_M)
    pid_m = pid % num_pid_m
    pid_n = pid // num_pid_m
    offs_am = pid_m * BLOCK_M
    offs_bn = pid_n * BLOCK_N
    offs_k_a = 0
    offs_k_b = 0
    offs_scale_m = pid_m * rep_m
    offs_scale_n = pid_n * rep_n
    offs_scale_k = 0
    MIXED_PREC: tl.constexpr = ELEM_PER_BYTE_A == 1 and ELEM_PER_BYTE_B == 2
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for _ in tl.range(0, tl.cdiv(K, BLOCK_K), num_stages=NUM_STAGES):
        a = a_desc.load([offs_am, offs_k_a])
        b = b_desc.load([offs_bn, offs_k_b])
        scale_a = a_scale_desc.load([0, offs_scale_m, offs_scale_k, 0, 0])
        scale_b = b_scale_desc.load([0, offs_scale_n, offs_scale_k, 0, 0])
        scale_a = (
            scale_a.reshape(rep_m, rep_k, 32, 4, 4).trans(0, 3, 2, 1, 4).reshape(BLOCK_M, BLOCK_K // VEC_SIZE)
        )
        scale_b = (
            scale_b.reshape(rep_n, rep_k, 32, 4, 4).trans(0, 3, 2, 1, 4).reshape(BLOCK_N, BLOCK_K // VEC_SIZE)
        )
        if MIXED_PREC:
            accumulator = tl.dot_scaled(a, scale_a, "e4m3", b.T, scale_b, "e2m1", accumulator)
        elif ELEM_PER_BYTE_A == 2 and ELEM_PER_BYTE_B == 2:
            accumulator = tl.dot_scaled(a, scale_a, "e2m1", b.T, scale_b, "e2m1", accumulator)
        else:
            accumulator = tl.dot_scaled(a, scale_a, "e4m3", b.T, scale_b, "e4m3", accumulator)
        offs_k_a += BLOCK_K // ELEM_PER_BYTE_A
        offs_k_b += BLOCK_K // ELEM_PER_BYTE_B
        offs_scale_k += rep_k
    c_desc.store([offs_am, offs_bn], accumulator.to(output_dtype))


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


def run_descriptors(mode, a, a_scale, b, b_scale, per_byte, vec, output):
    m, n, k = a.shape[0], b.shape[0], a.shape[1] * per_byte[0]
    c = np.full((m, n), 7, [np.float32, np.float16, ml_dtypes.float8_e4m3fn][output])
    block_m, block_n, block_k = 128, 128, 64 if vec == 16 else 128
    rep_m, rep_n, rep_k = block_m // 128, block_n // 128, block_k // vec // 4
    scales = [
        TensorDescriptor.from_tensor(
            s.reshape(1, len(s) // 128, k // vec // 4, 2, 256), [1, rep, rep_k, 2, 256]
        )
        for s, rep in ((a_scale, rep_m), (b_scale, rep_n))
    ]
    mode(block_scaled_matmul_descriptor_kernel)[(triton.cdiv(m, block_m) * triton.cdiv(n, block_n), 1)](
        TensorDescriptor.from_tensor(a, [block_m, block_k // per_byte[0]]), scales[0],
        TensorDescriptor.from_tensor(b, [block_n, block_k // per_byte[1]]), scales[1],
        TensorDescriptor.from_tensor(c, [block_m, block_n]), m, n, k, output, *per_byte, vec,
        block_m, block_n, block_k, rep_m, rep_n, rep_k, 4,
    )  # fmt: skip
    return (c,)


def packed(scales):
    """128 rows by 4 columns after the other, in each the rows 0, 32, 64, 96, then 1, 33, ..."""
    rows, columns = scales.shape
    tiles = scales.reshape(rows // 128, 4, 32, columns // 4, 4).transpose(0, 3, 2, 1, 4)
    return np.ascontiguousarray(tiles).reshape(rows, columns)


@pytest.mark.parametrize(
    ("a_form", "b_form", "vec", "output"),
    [("e4m3", "e4m3", 32, 1), ("e2m1", "e2m1", 32, 0), ("e4m3", "e2m1", 32, 2), ("e2m1", "e2m1", 16, 1)],
)
def test_descriptors_and_packed_scales(a_form, b_form, vec, output):
    m, n, k = 256, 128, 256
    a, a_values = operand(a_form, m, k, 0)
    b, b_values = operand(b_form, n, k, 1)
    random = np.random.default_rng(2)
    if vec == 32:
        scales = [random.integers(122, 128, size=(rows, k // vec), dtype=np.uint8) for rows in (m, n)]
        factors = [2.0 ** (s.astype(np.float64) - 127) for s in scales]
    else:  # a block of 16 has a scale in 8-bit floats
        scales = [random.uniform(0.1, 0.5, (rows, k // vec)).astype(FORMATS["e4m3"]) for rows in (m, n)]
        factors = [s.astype(np.float64) for s in scales]
    per_byte = [1 + (form == "e2m1") for form in (a_form, b_form)]
    driver = run_descriptors, a, packed(scales[0]), b, packed(scales[1]), per_byte, vec, output
    (c,) = in_both_modes(*driver)
    wide_a, wide_b = (
        values * np.repeat(f, vec, axis=1) for values, f in zip((a_values, b_values), factors, strict=True)
    )
    expected = wide_a @ wide_b.T
    assert_close(c, np.clip(expected, -448, 448) if output == 2 else expected, (1e-5, 1e-3, 0.0626)[output])
