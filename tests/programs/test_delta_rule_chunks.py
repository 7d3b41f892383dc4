"""The delta rule in chunks: products of many small reflections as one triangular system per chunk.

Four kernels, as in libraries of linear attention: the lower triangle of beta K K^T; its inverse, by rows for
blocks of 16 that are then merged to 32; the chunk's corrected keys and values; the chunk loop with the state.

    u[t] = beta[t] * (v[t] - h[t - 1]^T k[t])
    h[t] = h[t - 1] + outer(k[t], u[t])
    o[t] = scale * h[t]^T q[t]
"""

# mypy: ignore-errors
from __future__ import annotations

import numpy as np
import pytest

import blocklang.triton as triton
import blocklang.triton.language as tl
from tests.programs.running import close, compiled, in_both_modes, normal

BT = 32


@triton.jit
def scaled_dot_kkt_kernel(
    k, beta, A, T, H: tl.constexpr, K: tl.constexpr, BT: tl.constexpr, BK: tl.constexpr
):
    i_t, i_bh = tl.program_id(0), tl.program_id(1)
    i_b, i_h = i_bh // H, i_bh % H
    bos = i_b * T
    o_t = i_t * BT + tl.arange(0, BT)
    m_t = o_t < T
    p_beta = tl.make_block_ptr(beta + bos * H + i_h, (T,), (H,), (i_t * BT,), (BT,), (0,))
    b_beta = tl.load(p_beta, boundary_check=(0,))
    b_A = tl.zeros([BT, BT], dtype=tl.float32)
    for i_k in range(tl.cdiv(K, BK)):
        p_k = tl.make_block_ptr(
            k + (bos * H + i_h) * K, (T, K), (H * K, 1), (i_t * BT, i_k * BK), (BT, BK), (1, 0)
        )
        b_k = tl.load(p_k, boundary_check=(0, 1))
        b_kb = b_k * b_beta[:, None]
        b_A += tl.dot(b_kb.to(b_k.dtype), tl.trans(b_k))
    m_A = (o_t[:, None] > o_t[None, :]) & (m_t[:, None] & m_t)
    b_A = tl.where(m_A, b_A, 0)
    p_A = tl.make_block_ptr(A + (bos * H + i_h) * BT, (T, BT), (BT * H, 1), (i_t * BT, 0), (BT, BT), (1, 0))
    tl.store(p_A, b_A.to(p_A.dtype.element_ty), boundary_check=(0, 1))


@triton.jit
def inverse_of_16(A, begin, column, T, stride):
    """(I + A)^-1 of one diagonal block, row by row."""
    o_i = tl.arange(0, 16)
    p_A = tl.make_block_ptr(A, (T, column + 16), (stride, 1), (begin, column), (16, 16), (1, 0))
    b_A = tl.load(p_A, boundary_check=(0, 1)).to(tl.float32)
    b_A = -tl.where(o_i[:, None] > o_i[None, :], b_A, 0)
    for i in range(2, min(16, T - begin)):
        b_a = -tl.load(A + (begin + i) * stride + column + o_i).to(tl.float32)
        b_a = tl.where(o_i < i, b_a, 0.0)
        b_a += tl.sum(b_a[:, None] * b_A, 0)
        b_A = tl.where((o_i == i)[:, None], b_a[None, :], b_A)
    return b_A + (o_i[:, None] == o_i[None, :])


@triton.jit
def solve_tril_32_kernel(A, Ai, T, H: tl.constexpr, BT: tl.constexpr):
    i_t, i_bh = tl.program_id(0), tl.program_id(1)
    i_b, i_h = i_bh // H, i_bh % H
    A += (i_b * T * H + i_h) * BT
    Ai += (i_b * T * H + i_h) * BT
    b_Ai_11 = inverse_of_16(A, i_t * BT, 0, T, H * BT)
    b_Ai_22 = inverse_of_16(A, i_t * BT + 16, 16, T, H * BT)
    p_A_21 = tl.make_block_ptr(A, (T, BT), (H * BT, 1), (i_t * BT + 16, 0), (16, 16), (1, 0))
    b_A_21 = tl.load(p_A_21, boundary_check=(0, 1)).to(tl.float32)
    b_Ai_21 = -tl.dot(tl.dot(b_Ai_22, b_A_21, input_precision="ieee"), b_Ai_11, input_precision="ieee")
    p_Ai_11 = tl.make_block_ptr(Ai, (T, BT), (H * BT, 1), (i_t * BT, 0), (16, 16), (1, 0))
    p_Ai_22 = tl.make_block_ptr(Ai, (T, BT), (H * BT, 1), (i_t * BT + 16, 16), (16, 16), (1, 0))
    p_Ai_21 = tl.advance(p_Ai_11, (16, 0))
    tl.store(p_Ai_11, b_Ai_11.to(Ai.dtype.element_ty, fp_downcast_rounding="rtne"), boundary_check=(0, 1))
    tl.store(p_Ai_22, b_Ai_22.to(Ai.dtype.element_ty, fp_downcast_rounding="rtne"), boundary_check=(0, 1))
    tl.store(p_Ai_21, b_Ai_21.to(Ai.dtype.element_ty, fp_downcast_rounding="rtne"), boundary_check=(0, 1))


@triton.jit
def recompute_w_u_kernel(
    k, v, beta, w, u, Ai, T,
    H: tl.constexpr, K: tl.constexpr, V: tl.constexpr, BT: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr,
):  # fmt: skip
    i_t, i_bh = tl.program_id(0), tl.program_id(1)
    i_b, i_h = i_bh // H, i_bh % H
    bos = i_b * T
    p_beta = tl.make_block_ptr(beta + bos * H + i_h, (T,), (H,), (i_t * BT,), (BT,), (0,))
    p_Ai = tl.make_block_ptr(Ai + (bos * H + i_h) * BT, (T, BT), (H * BT, 1), (i_t * BT, 0), (BT, BT), (1, 0))
    b_beta = tl.load(p_beta, boundary_check=(0,))
    b_Ai = tl.load(p_Ai, boundary_check=(0, 1))
    p_v = tl.make_block_ptr(v + (bos * H + i_h) * V, (T, V), (H * V, 1), (i_t * BT, 0), (BT, BV), (1, 0))
    p_u = tl.make_block_ptr(u + (bos * H + i_h) * V, (T, V), (H * V, 1), (i_t * BT, 0), (BT, BV), (1, 0))
    for _ in range(tl.cdiv(V, BV)):
        b_v = tl.load(p_v, boundary_check=(0, 1))
        b_vb = (b_v * b_beta[:, None]).to(b_v.dtype)
        b_u = tl.dot(b_Ai.to(b_vb.dtype), b_vb, allow_tf32=False)
        tl.store(p_u, b_u.to(p_u.dtype.element_ty), boundary_check=(0, 1))
        p_v = tl.advance(p_v, (0, BV))
        p_u = tl.advance(p_u, (0, BV))
    for i_k in range(tl.cdiv(K, BK)):
        p_k = tl.make_block_ptr(
            k + (bos * H + i_h) * K, (T, K), (H * K, 1), (i_t * BT, i_k * BK), (BT, BK), (1, 0)
        )
        p_w = tl.make_block_ptr(
            w + (bos * H + i_h) * K, (T, K), (H * K, 1), (i_t * BT, i_k * BK), (BT, BK), (1, 0)
        )
        b_k = tl.load(p_k, boundary_check=(0, 1))
        b_kb = (b_k * b_beta[:, None]).to(b_k.dtype)
        tl.store(p_w, tl.dot(b_Ai.to(b_k.dtype), b_kb).to(p_w.dtype.element_ty), boundary_check=(0, 1))


@triton.jit
def chunk_delta_rule_kernel(
    q, k, w, u, o, ht, scale, T,
    H: tl.constexpr, K: tl.constexpr, V: tl.constexpr, BT: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr,
):  # fmt: skip
    """The state in two halves of the key's dimension, as it does not fit one block of registers."""
    i_v, i_nh = tl.program_id(0), tl.program_id(1)
    i_n, i_h = i_nh // H, i_nh % H
    q += (i_n * T * H + i_h) * K
    k += (i_n * T * H + i_h) * K
    w += (i_n * T * H + i_h) * K
    u += (i_n * T * H + i_h) * V
    o += (i_n * T * H + i_h) * V
    b_h1 = tl.zeros([BK, BV], dtype=tl.float32)
    if K > BK:
        b_h2 = tl.zeros([BK, BV], dtype=tl.float32)
    m_s = tl.arange(0, BT)[:, None] >= tl.arange(0, BT)[None, :]
    for i_t in range(tl.cdiv(T, BT)):
        p_u = tl.make_block_ptr(u, (T, V), (H * V, 1), (i_t * BT, i_v * BV), (BT, BV), (1, 0))
        p_w = tl.make_block_ptr(w, (T, K), (H * K, 1), (i_t * BT, 0), (BT, BK), (1, 0))
        p_q = tl.make_block_ptr(q, (T, K), (H * K, 1), (i_t * BT, 0), (BT, BK), (1, 0))
        p_k = tl.make_block_ptr(k, (K, T), (1, H * K), (0, i_t * BT), (BK, BT), (0, 1))
        b_w = tl.load(p_w, boundary_check=(0, 1))
        b_q = tl.load(p_q, boundary_check=(0, 1))
        b_k = tl.load(p_k, boundary_check=(0, 1))
        b_u = tl.load(p_u, boundary_check=(0, 1)).to(tl.float32)
        b_u -= tl.dot(b_w, b_h1.to(b_w.dtype))
        b_o = tl.dot(b_q, b_h1.to(b_q.dtype))
        b_s = tl.dot(b_q, b_k)
        if K > BK:
            b_w2 = tl.load(tl.advance(p_w, (0, BK)), boundary_check=(0, 1))
            b_q2 = tl.load(tl.advance(p_q, (0, BK)), boundary_check=(0, 1))
            b_k2 = tl.load(tl.advance(p_k, (BK, 0)), boundary_check=(0, 1))
            b_u -= tl.dot(b_w2, b_h2.to(b_w2.dtype))
            b_o += tl.dot(b_q2, b_h2.to(b_q2.dtype))
            b_s += tl.dot(b_q2, b_k2)
        b_s = tl.where(m_s, b_s, 0)
        b_un = b_u.to(b_k.dtype)
        b_o += tl.dot(b_s.to(b_q.dtype), b_un)
        b_h1 += tl.dot(b_k, b_un)
        if K > BK:
            b_h2 += tl.dot(b_k2, b_un)
        p_o = tl.make_block_ptr(o, (T, V), (H * V, 1), (i_t * BT, i_v * BV), (BT, BV), (1, 0))
        tl.store(p_o, (b_o * scale).to(p_o.dtype.element_ty), boundary_check=(0, 1))
    p_ht = tl.make_block_ptr(ht + i_nh * K * V, (K, V), (V, 1), (0, i_v * BV), (BK, BV), (1, 0))
    tl.store(p_ht, b_h1, boundary_check=(0, 1))
    if K > BK:
        tl.store(tl.advance(p_ht, (BK, 0)), b_h2, boundary_check=(0, 1))


def launch(mode, q, k, v, beta, BK, BV):
    B, T, H, K = q.shape
    V = v.shape[-1]
    grid = (triton.cdiv(T, BT), B * H)
    A, Ai = np.zeros((B, T, H, BT), np.float32), np.zeros((B, T, H, BT), np.float32)
    mode(scaled_dot_kkt_kernel)[grid](k, beta, A, T, H=H, K=K, BT=BT, BK=BK)
    mode(solve_tril_32_kernel)[grid](A, Ai, T, H=H, BT=BT)
    w, u, o = np.full_like(k, np.nan), np.full_like(v, np.nan), np.full_like(v, np.nan)
    ht = np.full((B, H, K, V), np.nan, np.float32)
    mode(recompute_w_u_kernel)[grid](k, v, beta, w, u, Ai, T, H, K, V, BT, BK, BV)
    mode(chunk_delta_rule_kernel)[(triton.cdiv(V, BV), B * H)](
        q, k, w, u, o, ht, K**-0.5, T, H, K, V, BT, BK, BV
    )
    return A, Ai, o, ht


def check(q, k, v, beta, dtype, found):
    A, Ai, o, ht = found
    q, k, v, beta = (x.astype(np.float64) for x in (q, k, v, beta))
    B, T, H, K = q.shape
    for t in range(0, T, BT):
        n = min(BT, T - t)
        lower = np.eye(n) + A[:, t : t + n, :, :n].astype(np.float64).transpose(0, 2, 1, 3)
        close(Ai[:, t : t + n, :, :n].transpose(0, 2, 1, 3), np.linalg.inv(lower))
    h, expected = np.zeros((B, H, K, v.shape[-1])), np.zeros_like(v)
    for t in range(T):
        u = beta[:, t, :, None] * (v[:, t] - np.einsum("bhkv,bhk->bhv", h, k[:, t]))
        h = h + k[:, t, :, :, None] * u[:, :, None, :]
        expected[:, t] = np.einsum("bhkv,bhk->bhv", h, q[:, t]) * K**-0.5
    close(o, expected, dtype, factor=2)
    close(ht, h, dtype, factor=2)


def case(B, T, H, K, V, dtype):
    q, k = normal(1, B, T, H, K), normal(2, B, T, H, K)
    k = k / np.linalg.norm(k, axis=-1, keepdims=True)
    v = normal(3, B, T, H, V, dtype=dtype)
    beta = 1 / (1 + np.exp(-normal(4, B, T, H)))
    return q.astype(v.dtype), k.astype(v.dtype), v, beta.astype(v.dtype)


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
@pytest.mark.parametrize("size", [(2, 75, 2, 24, 40), (1, 64, 1, 32, 16), (1, 1, 1, 8, 8)])
def test_chunks_are_the_recurrence(size, dtype):
    arrays = case(*size, dtype)
    check(*arrays, dtype, launch(compiled, *arrays, 16, 32))


def test_both_modes():
    arrays = case(1, 50, 2, 12, 10, "bf16")
    check(*arrays, "bf16", in_both_modes(lambda mode: launch(mode, *arrays, 8, 8)))
