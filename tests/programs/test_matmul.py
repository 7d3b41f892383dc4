"""Matrix products: swizzled programs, an activation handed in, persistent programs, groups of matrices."""

# mypy: ignore-errors
# ruff: noqa: PIE808 (as people write it)
from __future__ import annotations

import numpy as np
import pytest

import blocklang.triton as triton
import blocklang.triton.language as tl
from tests.programs.running import assert_close, compiled, in_both_modes

BLOCKS = {"BLOCK_SIZE_M": 32, "BLOCK_SIZE_N": 32, "BLOCK_SIZE_K": 16, "GROUP_SIZE_M": 3}


@triton.jit
def leaky_relu(x):
    return tl.where(x >= 0, x, 0.01 * x)


@triton.jit
def silu(x):
    return x * tl.sigmoid(x)


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr,
    M, N, K,
    stride_am, stride_ak,
    stride_bk, stride_bn,
    stride_cm, stride_cn,
    BLOCK_SIZE_M: tl.constexpr, BLOCK_SIZE_N: tl.constexpr, BLOCK_SIZE_K: tl.constexpr,
    GROUP_SIZE_M: tl.constexpr,
    ACTIVATION: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(axis=0)
    num_pid_m = tl.cdiv(M, BLOCK_SIZE_M)
    num_pid_n = tl.cdiv(N, BLOCK_SIZE_N)
    num_pid_in_group = GROUP_SIZE_M * num_pid_n
    group_id = pid // num_pid_in_group
    first_pid_m = group_id * GROUP_SIZE_M
    group_size_m = min(num_pid_m - first_pid_m, GROUP_SIZE_M)
    pid_m = first_pid_m + ((pid % num_pid_in_group) % group_size_m)
    pid_n = (pid % num_pid_in_group) // group_size_m

    tl.assume(pid_m >= 0)
    tl.assume(pid_n >= 0)
    tl.assume(stride_am > 0)
    tl.assume(stride_bn > 0)

    offs_am = (pid_m * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)) % M
    offs_bn = (pid_n * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)) % N
    offs_k = tl.arange(0, BLOCK_SIZE_K)
    a_ptrs = a_ptr + (offs_am[:, None] * stride_am + offs_k[None, :] * stride_ak)
    b_ptrs = b_ptr + (offs_k[:, None] * stride_bk + offs_bn[None, :] * stride_bn)

    accumulator = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_SIZE_K)):
        a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k * BLOCK_SIZE_K, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k * BLOCK_SIZE_K, other=0.0)
        accumulator = tl.dot(a, b, accumulator)
        a_ptrs += BLOCK_SIZE_K * stride_ak
        b_ptrs += BLOCK_SIZE_K * stride_bk
    if ACTIVATION == "leaky_relu":
        accumulator = leaky_relu(accumulator)
    c = accumulator.to(c_ptr.dtype.element_ty)

    offs_cm = pid_m * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)
    offs_cn = pid_n * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)
    c_ptrs = c_ptr + stride_cm * offs_cm[:, None] + stride_cn * offs_cn[None, :]
    c_mask = (offs_cm[:, None] < M) & (offs_cn[None, :] < N)
    tl.store(c_ptrs, c, mask=c_mask)


@triton.jit
def linear_kernel(
    a_ptr, b_ptr, bias_ptr, c_ptr, M, N, K, stride_am, stride_bk, stride_cm,
    BLOCK_SIZE_M: tl.constexpr, BLOCK_SIZE_N: tl.constexpr, BLOCK_SIZE_K: tl.constexpr,
    EVEN_K: tl.constexpr, ACTIVATION: tl.constexpr,
):  # fmt: skip
    """The activation is a function, or None; the bias a pointer, or None; a 2-D grid, K counted down."""
    rm = tl.program_id(0) * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)
    rn = tl.program_id(1) * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)
    ram = tl.max_contiguous(tl.multiple_of(rm % M, BLOCK_SIZE_M), BLOCK_SIZE_M)
    rbn = tl.where(rn < N, rn, 0)
    rk = tl.arange(0, BLOCK_SIZE_K)
    A = a_ptr + ram[:, None] * stride_am + rk[None, :]
    B = b_ptr + rk[:, None] * stride_bk + rbn[None, :]
    acc = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), dtype=tl.float32)
    for k in range(K, 0, -BLOCK_SIZE_K):
        if EVEN_K:
            a, b = tl.load(A), tl.load(B)
        else:
            a = tl.load(A, mask=rk[None, :] < k, other=0.0)
            b = tl.load(B, mask=rk[:, None] < k, other=0.0)
        acc += tl.dot(a, b)
        A += BLOCK_SIZE_K
        B += BLOCK_SIZE_K * stride_bk
    if bias_ptr is not None:
        acc += tl.load(bias_ptr + rn, mask=rn < N, other=0.0)[None, :].to(tl.float32)
    if ACTIVATION is not None:
        acc = ACTIVATION(acc)
    tl.store(
        c_ptr + rm[:, None] * stride_cm + rn[None, :],
        acc.to(c_ptr.type.element_ty),
        mask=(rm < M)[:, None] & (rn < N)[None, :],
    )


@triton.jit
def _compute_pid(tile_id, num_pid_in_group, num_pid_m, GROUP_SIZE_M):
    group_id = tile_id // num_pid_in_group
    first_pid_m = group_id * GROUP_SIZE_M
    group_size_m = min(num_pid_m - first_pid_m, GROUP_SIZE_M)
    pid_m = first_pid_m + (tile_id % group_size_m)
    pid_n = (tile_id % num_pid_in_group) // group_size_m
    return pid_m, pid_n


@triton.jit
def matmul_persistent_kernel(
    a_ptr, b_ptr, c_ptr,
    M, N, K,
    stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_SIZE_M: tl.constexpr, BLOCK_SIZE_N: tl.constexpr, BLOCK_SIZE_K: tl.constexpr,
    GROUP_SIZE_M: tl.constexpr, NUM_SMS: tl.constexpr,
):  # fmt: skip
    """One loop over (tile, k): the tile's accumulator is written and emptied when its last k is done."""
    start_pid = tl.program_id(axis=0)
    num_pid_m = tl.cdiv(M, BLOCK_SIZE_M)
    num_pid_n = tl.cdiv(N, BLOCK_SIZE_N)
    k_tiles = tl.cdiv(K, BLOCK_SIZE_K)
    num_tiles = num_pid_m * num_pid_n

    tiles_per_sm = num_tiles // NUM_SMS
    if start_pid < num_tiles % NUM_SMS:
        tiles_per_sm += 1

    tile_id = start_pid - NUM_SMS
    tile_id_c = start_pid - NUM_SMS
    ki = -1
    offs_k_for_mask = tl.arange(0, BLOCK_SIZE_K)
    num_pid_in_group = GROUP_SIZE_M * num_pid_n
    offs_am = tl.arange(0, BLOCK_SIZE_M)
    offs_bn = tl.arange(0, BLOCK_SIZE_N)
    accumulator = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), dtype=tl.float32)

    for _ in range(0, k_tiles * tiles_per_sm):
        ki = tl.where(ki == k_tiles - 1, 0, ki + 1)
        if ki == 0:
            tile_id += NUM_SMS
            pid_m, pid_n = _compute_pid(tile_id, num_pid_in_group, num_pid_m, GROUP_SIZE_M)
            start_m = pid_m * BLOCK_SIZE_M
            start_n = pid_n * BLOCK_SIZE_N
            offs_am = start_m + tl.arange(0, BLOCK_SIZE_M)
            offs_bn = start_n + tl.arange(0, BLOCK_SIZE_N)
            offs_am = tl.where(offs_am < M, offs_am, 0)
            offs_bn = tl.where(offs_bn < N, offs_bn, 0)
            offs_am = tl.max_contiguous(tl.multiple_of(offs_am, BLOCK_SIZE_M), BLOCK_SIZE_M)
            offs_bn = tl.max_contiguous(tl.multiple_of(offs_bn, BLOCK_SIZE_N), BLOCK_SIZE_N)
        offs_k = ki * BLOCK_SIZE_K + tl.arange(0, BLOCK_SIZE_K)
        a_ptrs = a_ptr + (offs_am[:, None] * stride_am + offs_k[None, :] * stride_ak)
        b_ptrs = b_ptr + (offs_k[:, None] * stride_bk + offs_bn[None, :] * stride_bn)
        a = tl.load(a_ptrs, mask=offs_k_for_mask[None, :] < K - ki * BLOCK_SIZE_K, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k_for_mask[:, None] < K - ki * BLOCK_SIZE_K, other=0.0)
        accumulator = tl.dot(a, b, accumulator)

        if ki == k_tiles - 1:
            tile_id_c += NUM_SMS
            pid_m, pid_n = _compute_pid(tile_id_c, num_pid_in_group, num_pid_m, GROUP_SIZE_M)
            offs_cm = pid_m * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)
            offs_cn = pid_n * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)
            c_ptrs = c_ptr + stride_cm * offs_cm[:, None] + stride_cn * offs_cn[None, :]
            c_mask = (offs_cm[:, None] < M) & (offs_cn[None, :] < N)
            if c_ptr.dtype.element_ty == tl.float16:
                c = accumulator.to(tl.float16)
            else:
                c = accumulator.to(tl.float32)
            tl.store(c_ptrs, c, mask=c_mask)
            accumulator = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), dtype=tl.float32)


@triton.jit
def grouped_matmul_kernel(
    group_a_ptrs, group_b_ptrs, group_c_ptrs, group_gemm_sizes, g_lds, group_size,
    NUM_SM: tl.constexpr, DTYPE: tl.constexpr,
    BLOCK_SIZE_M: tl.constexpr, BLOCK_SIZE_N: tl.constexpr, BLOCK_SIZE_K: tl.constexpr,
):  # fmt: skip
    """Products of different sizes; where their matrices lie stands in arrays of addresses."""
    tile_idx = tl.program_id(0)
    last_problem_end = 0
    for g in range(group_size):
        gm = tl.load(group_gemm_sizes + g * 3)
        gn = tl.load(group_gemm_sizes + g * 3 + 1)
        gk = tl.load(group_gemm_sizes + g * 3 + 2)
        num_m_tiles = tl.cdiv(gm, BLOCK_SIZE_M)
        num_n_tiles = tl.cdiv(gn, BLOCK_SIZE_N)
        num_tiles = num_m_tiles * num_n_tiles
        while tile_idx >= last_problem_end and tile_idx < last_problem_end + num_tiles:
            k = gk
            lda = tl.load(g_lds + g * 3)
            ldb = tl.load(g_lds + g * 3 + 1)
            ldc = tl.load(g_lds + g * 3 + 2)
            a_ptr = tl.load(group_a_ptrs + g).to(tl.pointer_type(DTYPE))
            b_ptr = tl.load(group_b_ptrs + g).to(tl.pointer_type(DTYPE))
            c_ptr = tl.load(group_c_ptrs + g).to(tl.pointer_type(DTYPE))
            tile_idx_in_gemm = tile_idx - last_problem_end
            tile_m_idx = tile_idx_in_gemm // num_n_tiles
            tile_n_idx = tile_idx_in_gemm % num_n_tiles
            offs_am = tile_m_idx * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)
            offs_bn = tile_n_idx * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)
            offs_k = tl.arange(0, BLOCK_SIZE_K)
            a_ptrs = a_ptr + offs_am[:, None] * lda + offs_k[None, :]
            b_ptrs = b_ptr + offs_k[:, None] * ldb + offs_bn[None, :]
            accumulator = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), dtype=tl.float32)
            for kk in range(0, tl.cdiv(k, BLOCK_SIZE_K)):
                tl.multiple_of(a_ptrs, [1, 1])
                in_k = offs_k < k - kk * BLOCK_SIZE_K
                a = tl.load(a_ptrs, mask=(offs_am < gm)[:, None] & in_k[None, :], other=0.0)
                b = tl.load(b_ptrs, mask=in_k[:, None] & (offs_bn < gn)[None, :], other=0.0)
                accumulator += tl.dot(a, b)
                a_ptrs += BLOCK_SIZE_K
                b_ptrs += BLOCK_SIZE_K * ldb
            c_ptrs = c_ptr + offs_am[:, None] * ldc + offs_bn[None, :]
            tl.store(c_ptrs, accumulator.to(DTYPE), mask=(offs_am < gm)[:, None] & (offs_bn < gn)[None, :])
            tile_idx += NUM_SM
        last_problem_end = last_problem_end + num_tiles


def elements(x):
    return [s // x.itemsize for s in x.strides]


def numbers(*shape, dtype=np.float16, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def run_matmul(mode, a, b, activation, blocks=BLOCKS):
    (m, k), n = a.shape, b.shape[1]
    c = np.full((m, n), 7, a.dtype)

    def grid(meta):
        return (triton.cdiv(m, meta["BLOCK_SIZE_M"]) * triton.cdiv(n, meta["BLOCK_SIZE_N"]),)

    mode(matmul_kernel)[grid](
        a, b, c, m, n, k, *elements(a), *elements(b), *elements(c), ACTIVATION=activation, **blocks
    )
    return (c,)


def run_linear(mode, a, b, bias, activation):
    (m, k), n = a.shape, b.shape[1]
    c = np.full((m, n), 7, a.dtype)

    def grid(META):
        return (triton.cdiv(m, META["BLOCK_SIZE_M"]), triton.cdiv(n, META["BLOCK_SIZE_N"]))

    mode(linear_kernel)[grid](
        a, b, bias, c, m, n, k, a.shape[1], b.shape[1], c.shape[1],
        BLOCK_SIZE_M=16, BLOCK_SIZE_N=32, BLOCK_SIZE_K=16, EVEN_K=k % 16 == 0, ACTIVATION=activation,
    )  # fmt: skip
    return (c,)


def run_persistent(mode, a, b, programs):
    (m, k), n = a.shape, b.shape[1]
    c = np.full((m, n), 7, a.dtype)
    mode(matmul_persistent_kernel)[
        lambda META: (
            min(
                META["NUM_SMS"],
                triton.cdiv(m, META["BLOCK_SIZE_M"]) * triton.cdiv(n, META["BLOCK_SIZE_N"]),
            ),
        )
    ](a, b, c, m, n, k, *elements(a), *elements(b), *elements(c), NUM_SMS=programs, **BLOCKS)
    return (c,)


def run_grouped(mode, group_a, group_b, programs):
    group_c = tuple(
        np.full((a.shape[0], b.shape[1]), 7, a.dtype) for a, b in zip(group_a, group_b, strict=True)
    )
    sizes, strides = [], []
    for a, b, c in zip(group_a, group_b, group_c, strict=True):
        sizes += [a.shape[0], b.shape[1], a.shape[1]]
        strides += [elements(a)[0], elements(b)[0], elements(c)[0]]
    addresses = [np.array([x.ctypes.data for x in group], np.int64) for group in (group_a, group_b, group_c)]
    mode(grouped_matmul_kernel)[lambda META: (META["NUM_SM"],)](
        *addresses, np.array(sizes, np.int32), np.array(strides, np.int32), len(group_a),
        NUM_SM=programs, DTYPE=tl.float16 if group_a[0].dtype == np.float16 else tl.float32,
        BLOCK_SIZE_M=32, BLOCK_SIZE_N=16, BLOCK_SIZE_K=32,
    )  # fmt: skip
    return group_c


def product(a, b):
    return a.astype(np.float64) @ b.astype(np.float64)


def leaky_relu_in_numpy(x):
    return np.where(x >= 0, x, 0.01 * x)


TOLERANCES = {np.dtype(np.float16): 1e-3, np.dtype(np.float32): 1e-5}


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("shape", [(1, 1, 1), (37, 53, 29), (64, 96, 32), (100, 33, 70)])
@pytest.mark.parametrize("activation", ["", "leaky_relu"])
def test_swizzled(dtype, shape, activation):
    m, n, k = shape
    a, b = numbers(m, k, dtype=dtype), numbers(k, n, dtype=dtype, seed=1)
    (c,) = in_both_modes(run_matmul, a, b, activation)
    expected = product(a, b)
    assert_close(c, leaky_relu_in_numpy(expected) if activation else expected, TOLERANCES[a.dtype])


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_swizzled_transposed_operands(dtype):
    a, b = numbers(70, 45, dtype=dtype).T, numbers(60, 70, dtype=dtype, seed=1).T
    (c,) = in_both_modes(run_matmul, a, b, "leaky_relu")
    assert_close(c, leaky_relu_in_numpy(product(a, b)), TOLERANCES[a.dtype])


def test_swizzled_at_the_size_people_use():
    blocks = {"BLOCK_SIZE_M": 128, "BLOCK_SIZE_N": 64, "BLOCK_SIZE_K": 64, "GROUP_SIZE_M": 8}
    a, b = numbers(512, 500), numbers(500, 520, seed=1)
    (c,) = run_matmul(compiled, a, b, "", blocks)
    assert_close(c, product(a, b), 1e-3)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("k", [48, 50])
def test_linear_with_a_function_as_activation(dtype, k):
    a, b, bias = numbers(35, k, dtype=dtype), numbers(k, 41, dtype=dtype, seed=1), numbers(41, dtype=dtype)
    expected = product(a, b)
    (plain,) = in_both_modes(run_linear, a, b, None, None)
    assert_close(plain, expected, TOLERANCES[a.dtype])
    expected = expected + bias
    (leaky,) = in_both_modes(run_linear, a, b, bias, leaky_relu)
    assert_close(leaky, leaky_relu_in_numpy(expected), TOLERANCES[a.dtype])
    (swish,) = in_both_modes(run_linear, a, b, bias, silu)
    assert_close(swish, expected / (1 + np.exp(-expected)), TOLERANCES[a.dtype])


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize(("shape", "programs"), [((37, 53, 29), 3), ((100, 70, 33), 5), ((20, 20, 20), 4)])
def test_persistent(dtype, shape, programs):
    m, n, k = shape
    a, b = numbers(m, k, dtype=dtype), numbers(k, n, dtype=dtype, seed=1)
    (c,) = in_both_modes(run_persistent, a, b, programs)
    assert_close(c, product(a, b), TOLERANCES[a.dtype])
    (swizzled,) = run_matmul(compiled, a, b, "")
    assert (c == swizzled).all()


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("programs", [1, 4])
def test_grouped(dtype, programs):
    shapes = [(33, 40, 17), (1, 1, 1), (64, 32, 64), (50, 7, 90)]
    group_a = [numbers(m, k, dtype=dtype, seed=i) for i, (m, _, k) in enumerate(shapes)]
    group_b = [numbers(k, n, dtype=dtype, seed=i + 9) for i, (_, n, k) in enumerate(shapes)]
    group_c = in_both_modes(run_grouped, group_a, group_b, programs)
    for a, b, c in zip(group_a, group_b, group_c, strict=True):
        assert_close(c, product(a, b), TOLERANCES[a.dtype], str(a.shape))
