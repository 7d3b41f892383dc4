"""Flash attention over tensor descriptors that the host or the kernel makes, tuned; and with atomic sums."""

# mypy: ignore-errors
from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import blocklang as bl
import blocklang.triton as triton
import blocklang.triton.language as tl
from blocklang.triton.tools.tensor_descriptor import TensorDescriptor
from tests.programs.running import assert_close, compiled, in_both_modes
from tests.programs.test_attention import attention_in_numpy, gradients_in_numpy, numbers


@triton.jit
def _attn_fwd_inner(
    acc, l_i, m_i, q,
    desc_k, desc_v,
    offset_y, dtype: tl.constexpr, start_m, qk_scale,
    BLOCK_M: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_N: tl.constexpr,
    STAGE: tl.constexpr, offs_m: tl.constexpr, offs_n: tl.constexpr,
    N_CTX: tl.constexpr, warp_specialize: tl.constexpr,
):  # fmt: skip
    if STAGE == 1:
        lo, hi = 0, start_m * BLOCK_M
    elif STAGE == 2:
        lo, hi = start_m * BLOCK_M, (start_m + 1) * BLOCK_M
        lo = tl.multiple_of(lo, BLOCK_M)
    else:
        lo, hi = 0, N_CTX
    offsetk_y = offset_y + lo
    if dtype == tl.float8e5:
        offsetv_y = offset_y + lo  # of a column
    else:
        offsetv_y = offset_y + lo
    for start_n in tl.range(lo, hi, BLOCK_N, warp_specialize=warp_specialize):
        start_n = tl.multiple_of(start_n, BLOCK_N)
        k = desc_k.load([offsetk_y, 0]).T
        qk = tl.dot(q, k)
        if STAGE == 2:
            mask = offs_m[:, None] >= (start_n + offs_n[None, :])
            qk = qk * qk_scale + tl.where(mask, 0, -1.0e6)
            m_ij = tl.maximum(m_i, tl.max(qk, 1))
            qk -= m_ij[:, None]
        else:
            m_ij = tl.maximum(m_i, tl.max(qk, 1) * qk_scale)
            qk = qk * qk_scale - m_ij[:, None]
        p = tl.math.exp2(qk)
        alpha = tl.math.exp2(m_i - m_ij)
        l_ij = tl.sum(p, 1)
        if not warp_specialize and BLOCK_M == 128 and HEAD_DIM == 128:
            BM: tl.constexpr = acc.shape[0]
            BN: tl.constexpr = acc.shape[1]
            acc0, acc1 = acc.reshape([BM, 2, BN // 2]).permute(0, 2, 1).split()
            acc0 = acc0 * alpha[:, None]
            acc1 = acc1 * alpha[:, None]
            acc = tl.join(acc0, acc1).permute(0, 2, 1).reshape([BM, BN])
        else:
            acc = acc * alpha[:, None]
        if dtype == tl.float8e5:
            v = desc_v.load([0, offsetv_y]).T
        else:
            v = desc_v.load([offsetv_y, 0])
        p = p.to(dtype)
        acc = tl.dot(p, v, acc)
        l_i = l_i * alpha + l_ij
        m_i = m_ij
        offsetk_y += BLOCK_N
        offsetv_y += BLOCK_N
    return acc, l_i, m_i


@triton.jit
def _maybe_make_tensor_desc(desc_or_ptr, shape, strides, block_shape):
    if isinstance(desc_or_ptr, tl.tensor_descriptor):
        return desc_or_ptr
    else:
        return tl.make_tensor_descriptor(desc_or_ptr, shape, strides, block_shape)


@triton.jit
def _attn_fwd(
    sm_scale, M, Z, H, desc_q, desc_k, desc_v, desc_o, N_CTX,
    HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    FP8_OUTPUT: tl.constexpr, STAGE: tl.constexpr, warp_specialize: tl.constexpr,
):  # fmt: skip
    dtype = tl.float8e5 if FP8_OUTPUT else tl.float16
    tl.static_assert(BLOCK_N <= HEAD_DIM)
    start_m = tl.program_id(0)
    off_hz = tl.program_id(1)
    off_z = off_hz // H
    off_h = off_hz % H

    y_dim = Z * H * N_CTX
    desc_q = _maybe_make_tensor_desc(
        desc_q, shape=[y_dim, HEAD_DIM], strides=[HEAD_DIM, 1], block_shape=[BLOCK_M, HEAD_DIM]
    )
    if FP8_OUTPUT:
        desc_v = _maybe_make_tensor_desc(
            desc_v, shape=[HEAD_DIM, y_dim], strides=[y_dim, 1], block_shape=[HEAD_DIM, BLOCK_N]
        )
    else:
        desc_v = _maybe_make_tensor_desc(
            desc_v, shape=[y_dim, HEAD_DIM], strides=[HEAD_DIM, 1], block_shape=[BLOCK_N, HEAD_DIM]
        )
    desc_k = _maybe_make_tensor_desc(
        desc_k, shape=[y_dim, HEAD_DIM], strides=[HEAD_DIM, 1], block_shape=[BLOCK_N, HEAD_DIM]
    )
    desc_o = _maybe_make_tensor_desc(
        desc_o, shape=[y_dim, HEAD_DIM], strides=[HEAD_DIM, 1], block_shape=[BLOCK_M, HEAD_DIM]
    )

    offset_y = off_z * (N_CTX * H) + off_h * N_CTX
    qo_offset_y = offset_y + start_m * BLOCK_M
    offs_m = start_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    m_i = tl.zeros([BLOCK_M], dtype=tl.float32) - float("inf")
    l_i = tl.zeros([BLOCK_M], dtype=tl.float32) + 1.0
    acc = tl.zeros([BLOCK_M, HEAD_DIM], dtype=tl.float32)
    qk_scale = sm_scale
    qk_scale *= 1.44269504
    q = desc_q.load([qo_offset_y, 0])
    if STAGE & 1:
        acc, l_i, m_i = _attn_fwd_inner(
            acc, l_i, m_i, q, desc_k, desc_v, offset_y, dtype, start_m, qk_scale,
            BLOCK_M, HEAD_DIM, BLOCK_N, 4 - STAGE, offs_m, offs_n, N_CTX, warp_specialize,
        )  # fmt: skip
    if STAGE & 2:
        acc, l_i, m_i = _attn_fwd_inner(
            acc, l_i, m_i, q, desc_k, desc_v, offset_y, dtype, start_m, qk_scale,
            BLOCK_M, HEAD_DIM, BLOCK_N, 2, offs_m, offs_n, N_CTX, warp_specialize,
        )  # fmt: skip
    m_i += tl.math.log2(l_i)
    acc = acc / l_i[:, None]
    m_ptrs = M + off_hz * N_CTX + offs_m
    tl.store(m_ptrs, m_i)
    desc_o.store([qo_offset_y, 0], acc.to(dtype))


@triton.jit
def _attn_bwd_atomic(
    Q, K, V, sm_scale, DO, DQ, DK, DV, LSE, D, stride_h, N_CTX,
    HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """A program owns columns; what it knows of dq is added atomically."""
    start_n = tl.program_id(0) * BLOCK_N
    off_h = tl.program_id(1)
    base = off_h.to(tl.int64) * stride_h
    offs_n = start_n + tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, HEAD_DIM)
    kv_at = base + offs_n[:, None] * HEAD_DIM + offs_d[None, :]
    kv_mask = offs_n[:, None] < N_CTX
    k = tl.load(K + kv_at, mask=kv_mask, other=0.0)
    v = tl.load(V + kv_at, mask=kv_mask, other=0.0)
    dk = tl.zeros([BLOCK_N, HEAD_DIM], dtype=tl.float32)
    dv = tl.zeros([BLOCK_N, HEAD_DIM], dtype=tl.float32)
    begin = (start_n // BLOCK_M) * BLOCK_M if CAUSAL else 0
    for start_m in range(begin, N_CTX, BLOCK_M):
        offs_m = start_m + tl.arange(0, BLOCK_M)
        m_mask = offs_m < N_CTX
        at = base + offs_m[:, None] * HEAD_DIM + offs_d[None, :]
        q = tl.load(Q + at, mask=m_mask[:, None], other=0.0)
        do = tl.load(DO + at, mask=m_mask[:, None], other=0.0)
        lse = tl.load(LSE + off_h * N_CTX + offs_m, mask=m_mask, other=float("inf"))
        delta = tl.load(D + off_h * N_CTX + offs_m, mask=m_mask, other=0.0)
        p = tl.exp(tl.dot(q, tl.trans(k)) * sm_scale - lse[:, None])
        if CAUSAL:
            p = tl.where(offs_m[:, None] >= offs_n[None, :], p, 0.0)
        dv += tl.dot(tl.trans(p.to(do.dtype)), do)
        dp = tl.dot(do, tl.trans(v))
        ds = (p * (dp - delta[:, None]) * sm_scale).to(q.dtype)
        dk += tl.dot(tl.trans(ds), q)
        dq = tl.dot(ds, k)
        tl.atomic_add(DQ + at, dq, mask=m_mask[:, None], sem="relaxed")
    tl.store(DK + kv_at, dk.to(DK.dtype.element_ty), mask=kv_mask)
    tl.store(DV + kv_at, dv.to(DV.dtype.element_ty), mask=kv_mask)


def _host_descriptor_pre_hook(nargs):
    tall, wide, d = nargs["BLOCK_M"], nargs["BLOCK_N"], nargs["HEAD_DIM"]
    if not isinstance(nargs["desc_q"], TensorDescriptor):
        return
    nargs["desc_q"].block_shape = [tall, d]
    nargs["desc_v"].block_shape = [wide, d]
    nargs["desc_k"].block_shape = [wide, d]
    nargs["desc_o"].block_shape = [tall, d]


CONFIGS = [
    triton.Config(
        {"BLOCK_M": tall, "BLOCK_N": wide}, num_stages=s, num_warps=4, pre_hook=_host_descriptor_pre_hook
    )
    for tall, wide, s in [(32, 16, 2), (32, 32, 3), (64, 16, 2), (16, 32, 2)]
]


def prune_invalid_configs(configs, named_args, **kwargs):
    n = kwargs["N_CTX"]
    return [c for c in configs if c.kwargs["BLOCK_M"] <= n and c.kwargs["BLOCK_M"] >= c.kwargs["BLOCK_N"]]


def forward(mode, q, k, v, causal, scale, from_host, tuned):
    z, h, n, d = q.shape
    out, m = np.full_like(q, 7), np.full((z, h, n), 7, np.float32)
    tensors = [q, k, v, out]
    if from_host:
        tensors = [TensorDescriptor(x, [z * h * n, d], [d, 1], [1, 1]) for x in tensors]
    else:
        triton.set_allocator(lambda size, align, _: np.empty(size, np.int8))
    kernel = triton.autotune(
        configs=CONFIGS if tuned else CONFIGS[:1],
        key=["N_CTX", "HEAD_DIM", "FP8_OUTPUT", "warp_specialize"],
        prune_configs_by={"early_config_prune": prune_invalid_configs},
    )(mode(_attn_fwd))

    def grid(META):
        return (triton.cdiv(n, META["BLOCK_M"]), z * h, 1)

    kernel[grid](
        scale, m, z, h, *tensors, N_CTX=n, HEAD_DIM=d, FP8_OUTPUT=False, STAGE=3 if causal else 1,
        warp_specialize=False,
    )  # fmt: skip
    return out, m


def forward_in_8_bits(mode, q, k, v, scale, from_host):
    z, h, n, d = q.shape
    out, m = np.full_like(q, 7), np.full((z, h, n), 7, np.float32)
    rows = z * h * n
    tensors = [q, k, v, out]
    if from_host:
        tensors = [
            TensorDescriptor(q, [rows, d], [d, 1], [32, d]),
            TensorDescriptor(k, [rows, d], [d, 1], [16, d]),
            TensorDescriptor(v, [d, rows], [rows, 1], [d, 16]),
            TensorDescriptor(out, [rows, d], [d, 1], [32, d]),
        ]
    mode(_attn_fwd)[(triton.cdiv(n, 32), z * h)](
        scale, m, z, h, *tensors, N_CTX=n, HEAD_DIM=d, BLOCK_M=32, BLOCK_N=16, FP8_OUTPUT=True, STAGE=3,
        warp_specialize=False,
    )  # fmt: skip
    return out, m


def backward(mode, q, k, v, out, lse, do, causal, scale):
    z, h, n, d = q.shape
    dk, dv, dq = np.full_like(k, 7), np.full_like(v, 7), np.zeros(q.shape, np.float32)
    delta = (out.astype(np.float64) * do).sum(axis=-1).astype(np.float32)
    mode(_attn_bwd_atomic)[(triton.cdiv(n, 32), z * h)](
        q, k, v, scale, do, dq, dk, dv, lse, delta, n * d, n,
        HEAD_DIM=d, BLOCK_M=16, BLOCK_N=32, CAUSAL=causal,
    )  # fmt: skip
    return dq, dk, dv


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("from_host", [True, False])
def test_forward(causal, from_host):
    q, k, v = (numbers(1, 2, 64, 32, dtype=np.float16, seed=i) for i in range(3))
    out, m = in_both_modes(forward, q, k, v, causal, 0.3, from_host, False)
    expected, _, lse = attention_in_numpy(q, k, v, causal, 0.3)
    assert_close(out, expected, 4e-3)
    assert_close(m, lse / np.log(2), 1e-5)


@pytest.mark.parametrize("from_host", [True, False])
def test_forward_in_8_bits(from_host):
    """V lies transposed, as matrix units of 8-bit floats want it."""
    fp8 = ml_dtypes.float8_e5m2
    q, k, v = (numbers(1, 2, 64, 32, seed=i).astype(fp8) for i in range(3))
    transposed = np.ascontiguousarray(v.transpose(3, 0, 1, 2).reshape(32, -1))
    out, _ = in_both_modes(forward_in_8_bits, q, k, transposed, 0.3, from_host)
    expected, p, _ = attention_in_numpy(q, k, v, True, 0.3)
    # The probabilities are rounded to 2 bits after the leading one, and so is the result.
    allowed = (p @ np.abs(v.astype(np.float64)) + np.abs(expected)) / 8 + 1e-4
    assert (np.abs(out.astype(np.float64) - expected) <= allowed).all()


@pytest.mark.slow
@pytest.mark.parametrize("from_host", [True, False])
def test_forward_tuned(from_host):
    q, k, v = (numbers(1, 2, 128, 32, dtype=np.float16, seed=i) for i in range(3))
    out, _ = forward(compiled, q, k, v, True, 0.3, from_host, True)
    assert_close(out, attention_in_numpy(q, k, v, True, 0.3)[0], 4e-3)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("causal", [True, False])
def test_backward_with_atomic_sums(dtype, causal):
    q, k, v, do = (numbers(1, 2, 45, 16, dtype=dtype, seed=i) for i in range(4))
    out, _, lse = attention_in_numpy(q, k, v, causal, 0.5)
    with bl.num_threads(1):  # one program after the other: the sums have an order
        gradients = in_both_modes(backward, q, k, v, out, lse.astype(np.float32), do, causal, 0.5)
    tolerance = 1e-2 if dtype == np.float16 else 5e-5
    for name, actual, expected in zip(
        ("dq", "dk", "dv"), gradients, gradients_in_numpy(q, k, v, do, causal, 0.5), strict=True
    ):
        assert_close(actual, expected, tolerance, name)
