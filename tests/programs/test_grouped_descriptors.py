"""Products of many matrices: descriptors made of addresses that a kernel reads, and K shared out."""

# mypy: ignore-errors
# ruff: noqa: PIE808 (as people write it)
from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import blocklang as bl
import blocklang.triton as triton
import blocklang.triton.language as tl
from tests.programs.running import assert_close, in_both_modes


@triton.jit
def grouped_matmul_tma_kernel(
    group_a_ptrs, group_b_ptrs, group_c_ptrs, group_gemm_sizes, g_lds, group_size,
    NUM_SM: tl.constexpr, BLOCK_SIZE_M: tl.constexpr, BLOCK_SIZE_N: tl.constexpr,
    BLOCK_SIZE_K: tl.constexpr, FP8: tl.constexpr,
):  # fmt: skip
    dtype = tl.float8e4nv if FP8 else tl.float16
    tile_idx = tl.program_id(0)
    last_problem_end = 0
    for g in range(group_size):
        gm = tl.load(group_gemm_sizes + g * 3)
        gn = tl.load(group_gemm_sizes + g * 3 + 1)
        gk = tl.load(group_gemm_sizes + g * 3 + 2)
        num_m_tiles = tl.cdiv(gm, BLOCK_SIZE_M)
        num_n_tiles = tl.cdiv(gn, BLOCK_SIZE_N)
        num_tiles = num_m_tiles * num_n_tiles
        if tile_idx >= last_problem_end and tile_idx < last_problem_end + num_tiles:
            lda = tl.load(g_lds + g * 3)
            ldb = tl.load(g_lds + g * 3 + 1)
            ldc = tl.load(g_lds + g * 3 + 2)
            a_ptr = tl.load(group_a_ptrs + g).to(tl.pointer_type(dtype))
            b_ptr = tl.load(group_b_ptrs + g).to(tl.pointer_type(dtype))
            c_ptr = tl.load(group_c_ptrs + g).to(tl.pointer_type(dtype))
            a_desc = tl.make_tensor_descriptor(
                a_ptr, shape=[gm, gk], strides=[lda, 1], block_shape=[BLOCK_SIZE_M, BLOCK_SIZE_K]
            )
            b_desc = tl.make_tensor_descriptor(
                b_ptr, shape=[gn, gk], strides=[ldb, 1], block_shape=[BLOCK_SIZE_N, BLOCK_SIZE_K]
            )
            c_desc = tl.make_tensor_descriptor(
                c_ptr, shape=[gm, gn], strides=[ldc, 1], block_shape=[BLOCK_SIZE_M, BLOCK_SIZE_N]
            )
            while tile_idx >= last_problem_end and tile_idx < last_problem_end + num_tiles:
                tile_idx_in_gemm = tile_idx - last_problem_end
                tile_m_idx = tile_idx_in_gemm // num_n_tiles
                tile_n_idx = tile_idx_in_gemm % num_n_tiles
                offs_am = tile_m_idx * BLOCK_SIZE_M
                offs_bn = tile_n_idx * BLOCK_SIZE_N
                accumulator = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), dtype=tl.float32)
                for kk in range(0, tl.cdiv(gk, BLOCK_SIZE_K)):
                    a = a_desc.load([offs_am, kk * BLOCK_SIZE_K])
                    b = b_desc.load([offs_bn, kk * BLOCK_SIZE_K])
                    accumulator += tl.dot(a, b.T)
                offs_cm = tile_m_idx * BLOCK_SIZE_M
                offs_cn = tile_n_idx * BLOCK_SIZE_N
                c = accumulator.to(dtype)
                c_desc.store([offs_cm, offs_cn], c)
                tile_idx += NUM_SM
        last_problem_end = last_problem_end + num_tiles


@triton.jit
def split_k_kernel(
    A, B, C, M, N, K, stride_am, stride_bk, stride_cm,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr, SPLIT_K: tl.constexpr, acc_dtype: tl.constexpr,
):  # fmt: skip
    """Each program of axis 1 adds its share of K; the tiles are walked group by group."""
    pid = tl.program_id(0)
    pid_z = tl.program_id(1)
    grid_m = tl.cdiv(M, BLOCK_M)
    grid_n = tl.cdiv(N, BLOCK_N)
    pid_m, pid_n = tl.swizzle2d(pid // grid_n, pid % grid_n, grid_m, grid_n, GROUP_M)
    rm = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    rk = pid_z * BLOCK_K + tl.arange(0, BLOCK_K)
    a_ptrs = A + (rm % M)[:, None] * stride_am + rk[None, :]
    b_ptrs = B + rk[:, None] * stride_bk + (rn % N)[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=acc_dtype)
    for k in range(0, tl.cdiv(K, BLOCK_K * SPLIT_K)):
        k_remaining = K - k * (BLOCK_K * SPLIT_K)
        a = tl.load(a_ptrs, mask=rk[None, :] < k_remaining, other=0.0)
        b = tl.load(b_ptrs, mask=rk[:, None] < k_remaining, other=0.0)
        acc = tl.dot(a, b, acc, out_dtype=acc_dtype, allow_tf32=False)
        a_ptrs += BLOCK_K * SPLIT_K
        b_ptrs += BLOCK_K * SPLIT_K * stride_bk
    acc = acc.to(C.dtype.element_ty)
    c_ptrs = C + rm[:, None] * stride_cm + rn[None, :]
    mask = (rm < M)[:, None] & (rn < N)[None, :]
    if SPLIT_K == 1:
        tl.store(c_ptrs, acc, mask=mask)
    else:
        tl.atomic_add(c_ptrs, acc, mask=mask)


def run_grouped(mode, group_a, group_b, programs):
    group_c = tuple(
        np.zeros((a.shape[0], b.shape[0]), a.dtype) for a, b in zip(group_a, group_b, strict=True)
    )
    sizes, strides = [], []
    for a, b, c in zip(group_a, group_b, group_c, strict=True):
        sizes += [a.shape[0], b.shape[0], a.shape[1]]
        strides += [x.strides[0] // x.itemsize for x in (a, b, c)]
    addresses = [np.array([x.ctypes.data for x in group], np.int64) for group in (group_a, group_b, group_c)]
    triton.set_allocator(lambda size, alignment, stream: np.empty(size, np.int8))
    mode(grouped_matmul_tma_kernel)[(programs,)](
        *addresses, np.array(sizes, np.int32), np.array(strides, np.int32), len(group_a), NUM_SM=programs,
        BLOCK_SIZE_M=32, BLOCK_SIZE_N=16, BLOCK_SIZE_K=32, FP8=group_a[0].dtype != np.float16,
    )  # fmt: skip
    return group_c


def run_split(mode, a, b, split, dtype, acc_dtype):
    (m, k), n = a.shape, b.shape[1]
    c = np.zeros((m, n), dtype)
    mode(split_k_kernel)[lambda META: (triton.cdiv(m, 32) * triton.cdiv(n, 16), META["SPLIT_K"])](
        a, b, c, m, n, k, k, n, n, BLOCK_M=32, BLOCK_N=16, BLOCK_K=16, GROUP_M=2, SPLIT_K=split,
        acc_dtype=acc_dtype,
    )  # fmt: skip
    return (c,)


def numbers(*shape, dtype=np.float16, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.float8_e4m3fn])
@pytest.mark.parametrize("programs", [1, 4])
def test_grouped(dtype, programs):
    shapes = [(33, 48, 32), (64, 32, 64), (1, 16, 16), (50, 16, 96)]
    group_a = [numbers(m, k, seed=i).astype(dtype) for i, (m, _, k) in enumerate(shapes)]
    group_b = [numbers(n, k, seed=i + 9).astype(dtype) for i, (_, n, k) in enumerate(shapes)]
    group_c = in_both_modes(run_grouped, group_a, group_b, programs)
    for a, b, c in zip(group_a, group_b, group_c, strict=True):
        expected = a.astype(np.float64) @ b.astype(np.float64).T
        assert_close(c, expected, 1e-3 if dtype == np.float16 else 0.0626, str(a.shape))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64, np.int8])
@pytest.mark.parametrize("split", [1, 3])
def test_split_along_k(dtype, split):
    a, b = (10 * numbers(37, 75)).astype(dtype), (10 * numbers(75, 29, seed=1)).astype(dtype)
    acc = {np.dtype(np.int8): tl.int32, np.dtype(np.float64): tl.float64}.get(a.dtype, tl.float32)
    out = np.dtype(np.int32) if a.dtype == np.int8 else a.dtype
    with bl.num_threads(1):  # one program after the other: the sums have an order
        (c,) = in_both_modes(run_split, a, b, split, out, acc)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    tolerance = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 1e-5, "float64": 1e-14, "int32": 0}[out.name]
    assert_close(c, expected, tolerance)
