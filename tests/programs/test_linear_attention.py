"""Gated linear attention in chunks: the state is carried from chunk to chunk, gates are logs of decays.

Three kernels: the sum of the gates within each chunk; the state before each chunk; the output of each chunk
from the state before it and from its own keys. And the recurrence itself, one token at a time, as a fourth
kernel.

    h[t] = exp(g[t]) * h[t - 1] + outer(k[t], v[t])        o[t] = scale * q[t] @ h[t]
"""

# mypy: ignore-errors
from __future__ import annotations

import numpy as np
import pytest

import blocklang.triton as triton
import blocklang.triton.language as tl
from tests.programs.running import close, compiled, in_both_modes, normal


@triton.jit
def safe_exp(x):
    return tl.exp(tl.where(x <= 0, x, float("-inf")))


@triton.jit
def chunk_local_cumsum_kernel(
    s, o, T, H: tl.constexpr, BT: tl.constexpr, REVERSE: tl.constexpr, HEAD_FIRST: tl.constexpr
):
    i_t, i_bh = tl.program_id(0), tl.program_id(1)
    i_b, i_h = i_bh // H, i_bh % H
    if HEAD_FIRST:
        p_s = tl.make_block_ptr(s + i_bh * T, (T,), (1,), (i_t * BT,), (BT,), (0,))
        p_o = tl.make_block_ptr(o + i_bh * T, (T,), (1,), (i_t * BT,), (BT,), (0,))
    else:
        p_s = tl.make_block_ptr(s + i_b * T * H + i_h, (T,), (H,), (i_t * BT,), (BT,), (0,))
        p_o = tl.make_block_ptr(o + i_b * T * H + i_h, (T,), (H,), (i_t * BT,), (BT,), (0,))
    b_s = tl.load(p_s, boundary_check=(0,)).to(tl.float32)
    b_o = tl.cumsum(b_s, axis=0)
    if REVERSE:
        b_z = tl.sum(b_s, axis=0)
        b_o = -b_o + b_z[None] + b_s
    tl.store(p_o, b_o.to(p_o.dtype.element_ty), boundary_check=(0,))


@triton.jit
def chunk_state_kernel(
    k, v, h, g, h0, ht, T,
    H: tl.constexpr, K: tl.constexpr, V: tl.constexpr, BT: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr,
    USE_G: tl.constexpr, USE_INITIAL_STATE: tl.constexpr, STORE_FINAL_STATE: tl.constexpr,
):  # fmt: skip
    i_k, i_v, i_nh = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    i_n, i_h = i_nh // H, i_nh % H
    NT = tl.cdiv(T, BT)
    b_h = tl.zeros([BK, BV], dtype=tl.float32)
    if USE_INITIAL_STATE:
        p_h0 = tl.make_block_ptr(h0 + i_nh * K * V, (K, V), (V, 1), (i_k * BK, i_v * BV), (BK, BV), (1, 0))
        b_h = tl.load(p_h0, boundary_check=(0, 1)).to(tl.float32)
    for i_t in range(NT):
        p_k = tl.make_block_ptr(
            k + (i_n * T * H + i_h) * K, (K, T), (1, H * K), (i_k * BK, i_t * BT), (BK, BT), (0, 1)
        )
        p_v = tl.make_block_ptr(
            v + (i_n * T * H + i_h) * V, (T, V), (H * V, 1), (i_t * BT, i_v * BV), (BT, BV), (1, 0)
        )
        o_h = ((i_n * NT + i_t) * H + i_h).to(tl.int64) * K * V
        p_h = tl.make_block_ptr(h + o_h, (K, V), (V, 1), (i_k * BK, i_v * BV), (BK, BV), (1, 0))
        tl.store(p_h, b_h.to(p_h.dtype.element_ty), boundary_check=(0, 1))
        b_k = tl.load(p_k, boundary_check=(0, 1))
        b_v = tl.load(p_v, boundary_check=(0, 1))
        last_idx = min((i_t + 1) * BT, T) - 1
        if USE_G:
            b_g_last = tl.load(g + i_n * T * H + last_idx * H + i_h)
            p_g = g + i_n * T * H + (i_t * BT + tl.arange(0, BT)) * H + i_h
            b_h *= tl.exp(b_g_last)
            b_g = tl.load(p_g, mask=(i_t * BT + tl.arange(0, BT) < T), other=0.0)
            b_v = (b_v * tl.exp(b_g_last - b_g)[:, None]).to(b_v.dtype)
        b_h += tl.dot(b_k, b_v)
    if STORE_FINAL_STATE:
        p_ht = tl.make_block_ptr(ht + i_nh * K * V, (K, V), (V, 1), (i_k * BK, i_v * BV), (BK, BV), (1, 0))
        tl.store(p_ht, b_h.to(p_ht.dtype.element_ty), boundary_check=(0, 1))


@triton.jit
def chunk_output_kernel(
    q, k, v, h, g, o, scale, T,
    H: tl.constexpr, K: tl.constexpr, V: tl.constexpr, BT: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr,
    USE_G: tl.constexpr,
):  # fmt: skip
    i_v, i_t, i_bh = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    i_b, i_h = i_bh // H, i_bh % H
    NT = tl.cdiv(T, BT)
    i_tg = i_b * NT + i_t
    bos = i_b * T

    q += (bos * H + i_h) * K
    k += (bos * H + i_h) * K
    v += (bos * H + i_h) * V
    o += (bos * H + i_h) * V
    h += (i_tg * H + i_h).to(tl.int64) * K * V

    b_o = tl.zeros([BT, BV], dtype=tl.float32)
    b_A = tl.zeros([BT, BT], dtype=tl.float32)
    for i_k in range(tl.cdiv(K, BK)):
        p_q = tl.make_block_ptr(q, (T, K), (H * K, 1), (i_t * BT, i_k * BK), (BT, BK), (1, 0))
        p_k = tl.make_block_ptr(k, (K, T), (1, H * K), (i_k * BK, i_t * BT), (BK, BT), (0, 1))
        p_h = tl.make_block_ptr(h, (K, V), (V, 1), (i_k * BK, i_v * BV), (BK, BV), (1, 0))
        b_q = tl.load(p_q, boundary_check=(0, 1))
        b_k = tl.load(p_k, boundary_check=(0, 1))
        b_h = tl.load(p_h, boundary_check=(0, 1))
        b_o += tl.dot(b_q, b_h)
        b_A += tl.dot(b_q, b_k)

    o_i = tl.arange(0, BT)
    if USE_G:
        g += bos * H + i_h
        p_g = tl.make_block_ptr(g, (T,), (H,), (i_t * BT,), (BT,), (0,))
        b_g = tl.load(p_g, boundary_check=(0,))
        b_o = b_o * tl.exp(b_g)[:, None]
        b_A = b_A * safe_exp(b_g[:, None] - b_g[None, :])
    m_A = o_i[:, None] >= o_i[None, :]
    b_A = tl.where(m_A, b_A, 0)

    p_v = tl.make_block_ptr(v, (T, V), (H * V, 1), (i_t * BT, i_v * BV), (BT, BV), (1, 0))
    p_o = tl.make_block_ptr(o, (T, V), (H * V, 1), (i_t * BT, i_v * BV), (BT, BV), (1, 0))
    b_v = tl.load(p_v, boundary_check=(0, 1))
    b_o = b_o * scale + tl.dot(b_A.to(b_v.dtype), b_v) * scale
    tl.store(p_o, b_o.to(p_o.dtype.element_ty), boundary_check=(0, 1))


@triton.jit
def fused_recurrent_kernel(
    q, k, v, g, o, ht, scale, T,
    H: tl.constexpr, K: tl.constexpr, V: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr,
):  # fmt: skip
    i_v, i_nh = tl.program_id(0).to(tl.int64), tl.program_id(1).to(tl.int64)
    i_n, i_h = i_nh // H, i_nh % H
    p_q = q + (i_n * T * H + i_h) * K + tl.arange(0, BK)
    p_k = k + (i_n * T * H + i_h) * K + tl.arange(0, BK)
    p_v = v + (i_n * T * H + i_h) * V + i_v * BV + tl.arange(0, BV)
    p_o = o + (i_n * T * H + i_h) * V + i_v * BV + tl.arange(0, BV)
    p_g = g + i_n * T * H + i_h
    m_k = tl.arange(0, BK) < K
    m_v = i_v * BV + tl.arange(0, BV) < V
    b_h = tl.zeros([BV, BK], dtype=tl.float32)
    for _ in range(T):
        b_q = tl.load(p_q, mask=m_k, other=0).to(tl.float32) * scale
        b_k = tl.load(p_k, mask=m_k, other=0).to(tl.float32)
        b_v = tl.load(p_v, mask=m_v, other=0).to(tl.float32)
        b_h = b_h * tl.exp(tl.load(p_g).to(tl.float32))
        b_h += b_k[None, :] * b_v[:, None]
        b_o = tl.sum(b_h * b_q[None, :], axis=1)
        tl.store(p_o, b_o.to(p_o.dtype.element_ty), mask=m_v)
        p_q += H * K
        p_k += H * K
        p_v += H * V
        p_o += H * V
        p_g += H
    p_ht = ht + i_nh * K * V + tl.arange(0, BK)[None, :] * V + (i_v * BV + tl.arange(0, BV)[:, None])
    tl.store(p_ht, b_h.to(p_ht.dtype.element_ty), mask=m_k[None, :] & m_v[:, None])


def chunked(mode, q, k, v, g, h0, scale, BT, BK, BV):
    B, T, H, K = q.shape
    V = v.shape[-1]
    NT = triton.cdiv(T, BT)
    gates = np.zeros((B, T, H), np.float32)
    if g is not None:
        mode(chunk_local_cumsum_kernel)[(NT, B * H)](g, gates, T, H=H, BT=BT, REVERSE=False, HEAD_FIRST=False)
    h = np.full((B, NT, H, K, V), np.nan, q.dtype)
    ht = np.full((B, H, K, V), np.nan, np.float32)
    mode(chunk_state_kernel)[(triton.cdiv(K, BK), triton.cdiv(V, BV), B * H)](
        k, v, h, gates if g is not None else None, h0, ht, T, H, K, V, BT, BK, BV,
        USE_G=g is not None, USE_INITIAL_STATE=h0 is not None, STORE_FINAL_STATE=True,
    )  # fmt: skip
    o = np.full_like(v, np.nan)
    mode(chunk_output_kernel)[(triton.cdiv(V, BV), NT, B * H)](
        q, k, v, h, gates if g is not None else None, o, scale, T, H, K, V, BT, BK, BV, USE_G=g is not None
    )
    return o, ht, gates


def reference(q, k, v, g, h0, scale):
    q, k, v = (value.astype(np.float64) for value in (q, k, v))
    B, T, H, K = q.shape
    h = np.zeros((B, H, K, v.shape[-1])) if h0 is None else h0.astype(np.float64)
    o = np.zeros_like(v)
    for t in range(T):
        if g is not None:
            h = h * np.exp(g[:, t].astype(np.float64))[:, :, None, None]
        h = h + k[:, t, :, :, None] * v[:, t, :, None, :]
        o[:, t] = np.einsum("bhk,bhkv->bhv", q[:, t], h) * scale
    return o, h


def case(B, T, H, K, V, dtype="fp32"):
    q, k = normal(1, B, T, H, K, dtype=dtype), normal(2, B, T, H, K, dtype=dtype)
    v = normal(3, B, T, H, V, dtype=dtype)
    g = -np.abs(normal(4, B, T, H)) * np.float32(0.3)
    return q, k, v, g, normal(5, B, H, K, V)


@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("gated", [True, False])
@pytest.mark.parametrize("size", [(2, 100, 2, 24, 40), (1, 64, 3, 64, 32), (1, 1, 1, 16, 16)])
def test_chunks_are_the_recurrence(dtype, gated, size):
    q, k, v, g, h0 = case(*size, dtype)
    g = g if gated else None
    scale = size[3] ** -0.5
    o, ht, _ = chunked(compiled, q, k, v, g, h0, scale, 32, 32, 32)
    expected_o, expected_ht = reference(q, k, v, g, h0, scale)
    close(o, expected_o, dtype)
    close(ht, expected_ht, dtype if gated else "fp32")


@pytest.mark.parametrize("gated", [True, False])
def test_both_modes(gated):
    q, k, v, g, h0 = case(1, 37, 2, 12, 20, "bf16")
    in_both_modes(lambda mode: chunked(mode, q, k, v, g if gated else None, h0, 0.3, 16, 16, 16))


@pytest.mark.parametrize("head_first", [True, False])
@pytest.mark.parametrize("reverse", [True, False])
@pytest.mark.parametrize("T", [1, 64, 75])
def test_cumsum_within_chunks(T, reverse, head_first):
    B, H, BT = 2, 3, 16
    g = normal(1, *((B, H, T) if head_first else (B, T, H)))

    def launch(mode):
        out = np.full_like(g, np.nan)
        mode(chunk_local_cumsum_kernel)[(triton.cdiv(T, BT), B * H)](
            g, out, T, H=H, BT=BT, REVERSE=reverse, HEAD_FIRST=head_first
        )
        return (out,)

    axis = 2 if head_first else 1
    pieces = np.split(g.astype(np.float64), range(BT, T, BT), axis=axis)
    sums = [np.flip(np.flip(p, axis).cumsum(axis), axis) if reverse else p.cumsum(axis) for p in pieces]
    close(in_both_modes(launch)[0], np.concatenate(sums, axis=axis))


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
@pytest.mark.parametrize("size", [(2, 33, 2, 24, 40), (1, 1, 1, 16, 16)])
def test_recurrent_kernel(dtype, size):
    B, T, H, K, V = size
    q, k, v, g, _ = case(*size, dtype)

    def launch(mode):
        o, ht = np.full_like(v, np.nan), np.full((B, H, K, V), np.nan, np.float32)
        mode(fused_recurrent_kernel)[(triton.cdiv(V, 16), B * H)](
            q, k, v, g, o, ht, 0.25, T, H=H, K=K, V=V, BK=triton.next_power_of_2(K), BV=16
        )
        return o, ht

    o, ht = in_both_modes(launch)
    expected_o, expected_ht = reference(q, k, v, g, None, 0.25)
    close(o, expected_o, dtype)
    close(ht, expected_ht)
