"""Gradients of gated linear attention in chunks, for sequences of several lengths packed into one.

Heuristics decide from the arguments whether there are lengths; `cu_seqlens` holds where sequences begin,
and `chunk_indices` which chunk of which sequence a program takes. A chunk at the end of its sequence is
ragged. The state's gradient runs backward through the chunks; the gates' gradient is that of their sums,
summed in reverse.
"""

# mypy: ignore-errors
from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import blocklang.triton as triton
import blocklang.triton.language as tl
from tests.programs.running import close, compiled, in_both_modes, normal

IS_VARLEN = triton.heuristics({"IS_VARLEN": lambda args: args["cu_seqlens"] is not None})


@triton.jit
def states_source(
    k, v, g, h, cu_seqlens, chunk_offsets, T,
    H: tl.constexpr, K: tl.constexpr, V: tl.constexpr, BT: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr,
    IS_VARLEN: tl.constexpr,
):  # fmt: skip
    i_k, i_v, i_nh = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    i_n, i_h = i_nh // H, i_nh % H
    if IS_VARLEN:
        bos, eos = tl.load(cu_seqlens + i_n).to(tl.int32), tl.load(cu_seqlens + i_n + 1).to(tl.int32)
        T = eos - bos
        NT = tl.cdiv(T, BT)
        boh = tl.load(chunk_offsets + i_n).to(tl.int32)
    else:
        bos, eos = i_n * T, i_n * T + T
        NT = tl.cdiv(T, BT)
        boh = i_n * NT
    b_h = tl.zeros([BK, BV], dtype=tl.float32)
    for i_t in range(NT):
        p_k = tl.make_block_ptr(
            k + (bos * H + i_h) * K, (K, T), (1, H * K), (i_k * BK, i_t * BT), (BK, BT), (0, 1)
        )
        p_v = tl.make_block_ptr(
            v + (bos * H + i_h) * V, (T, V), (H * V, 1), (i_t * BT, i_v * BV), (BT, BV), (1, 0)
        )
        p_h = tl.make_block_ptr(
            h + ((boh + i_t) * H + i_h) * K * V, (K, V), (V, 1), (i_k * BK, i_v * BV), (BK, BV), (1, 0)
        )
        tl.store(p_h, b_h.to(p_h.dtype.element_ty), boundary_check=(0, 1))
        last_idx = min(i_t * BT + BT, T) - 1
        b_g_last = tl.load(g + (bos + last_idx) * H + i_h)
        p_g = tl.make_block_ptr(g + bos * H + i_h, (T,), (H,), (i_t * BT,), (BT,), (0,))
        b_g = tl.load(p_g, boundary_check=(0,))
        b_k = tl.load(p_k, boundary_check=(0, 1))
        b_v = tl.load(p_v, boundary_check=(0, 1))
        b_v = (b_v * tl.exp(b_g_last - b_g)[:, None]).to(b_v.dtype)
        b_h = b_h * tl.exp(b_g_last) + tl.dot(b_k, b_v)


@triton.jit
def state_gradients_source(
    q, g, do, dh, cu_seqlens, chunk_offsets, scale, T,
    H: tl.constexpr, K: tl.constexpr, V: tl.constexpr, BT: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr,
    IS_VARLEN: tl.constexpr,
):  # fmt: skip
    i_k, i_v, i_nh = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    i_n, i_h = i_nh // H, i_nh % H
    if IS_VARLEN:
        bos, eos = tl.load(cu_seqlens + i_n).to(tl.int32), tl.load(cu_seqlens + i_n + 1).to(tl.int32)
        T = eos - bos
        NT = tl.cdiv(T, BT)
        boh = tl.load(chunk_offsets + i_n).to(tl.int32)
    else:
        bos, eos = i_n * T, i_n * T + T
        NT = tl.cdiv(T, BT)
        boh = i_n * NT
    b_dh = tl.zeros([BK, BV], dtype=tl.float32)
    for i_t in range(NT - 1, -1, -1):
        p_q = tl.make_block_ptr(
            q + (bos * H + i_h) * K, (K, T), (1, H * K), (i_k * BK, i_t * BT), (BK, BT), (0, 1)
        )
        p_do = tl.make_block_ptr(
            do + (bos * H + i_h) * V, (T, V), (H * V, 1), (i_t * BT, i_v * BV), (BT, BV), (1, 0)
        )
        p_dh = tl.make_block_ptr(
            dh + ((boh + i_t) * H + i_h) * K * V, (K, V), (V, 1), (i_k * BK, i_v * BV), (BK, BV), (1, 0)
        )
        tl.store(p_dh, b_dh.to(p_dh.dtype.element_ty), boundary_check=(0, 1))
        last_idx = min(i_t * BT + BT, T) - 1
        b_g_last = tl.load(g + (bos + last_idx) * H + i_h)
        p_g = tl.make_block_ptr(g + bos * H + i_h, (T,), (H,), (i_t * BT,), (BT,), (0,))
        b_g = tl.load(p_g, boundary_check=(0,))
        b_q = tl.load(p_q, boundary_check=(0, 1))
        b_q = (b_q * scale * tl.exp(b_g)[None, :]).to(b_q.dtype)
        b_do = tl.load(p_do, boundary_check=(0, 1))
        b_dh *= tl.exp(b_g_last)
        b_dh += tl.dot(b_q, b_do.to(b_q.dtype))


@triton.jit
def token_gradients_source(
    q, k, v, g, h, do, dh, dq, dk, dv, dg, cu_seqlens, chunk_indices, scale, T,
    H: tl.constexpr, K: tl.constexpr, V: tl.constexpr, BT: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr,
    IS_VARLEN: tl.constexpr,
):  # fmt: skip
    i_t, i_bh = tl.program_id(0), tl.program_id(1)
    i_b, i_h = i_bh // H, i_bh % H
    if IS_VARLEN:
        i_tg = i_t
        i_n, i_t = (
            tl.load(chunk_indices + i_t * 2).to(tl.int32),
            tl.load(chunk_indices + i_t * 2 + 1).to(tl.int32),
        )
        bos, eos = tl.load(cu_seqlens + i_n).to(tl.int32), tl.load(cu_seqlens + i_n + 1).to(tl.int32)
        T = eos - bos
    else:
        NT = tl.cdiv(T, BT)
        i_tg = i_b * NT + i_t
        bos, eos = i_b * T, i_b * T + T

    q, k, dq, dk = [p + (bos * H + i_h) * K for p in (q, k, dq, dk)]
    v, do, dv = [p + (bos * H + i_h) * V for p in (v, do, dv)]
    h, dh = [p + (i_tg * H + i_h) * K * V for p in (h, dh)]
    g += bos * H + i_h
    dg += bos * H + i_h

    p_q = tl.make_block_ptr(q, (T, K), (H * K, 1), (i_t * BT, 0), (BT, BK), (1, 0))
    p_k = tl.make_block_ptr(k, (T, K), (H * K, 1), (i_t * BT, 0), (BT, BK), (1, 0))
    b_q = tl.load(p_q, boundary_check=(0, 1))
    b_k = tl.load(p_k, boundary_check=(0, 1))
    p_g = tl.make_block_ptr(g, (T,), (H,), (i_t * BT,), (BT,), (0,))
    b_g = tl.load(p_g, boundary_check=(0,))
    last = min(i_t * BT + BT, T) - 1
    b_g_last = tl.load(g + last * H)

    o_t = i_t * BT + tl.arange(0, BT)
    m_t = o_t < T
    m_A = (o_t[:, None] >= o_t[None, :]) & (m_t[:, None] & m_t)
    b_A = tl.where(m_A, tl.dot(b_q, tl.trans(b_k)) * tl.exp(b_g[:, None] - b_g[None, :]), 0) * scale

    b_dq = tl.zeros([BT, BK], dtype=tl.float32)
    b_dk = tl.zeros([BT, BK], dtype=tl.float32)
    b_ds = tl.zeros([BT, BT], dtype=tl.float32)
    b_dg_last = tl.zeros([1], dtype=tl.float32)
    for i_v in range(tl.cdiv(V, BV)):
        p_v = tl.make_block_ptr(v, (T, V), (H * V, 1), (i_t * BT, i_v * BV), (BT, BV), (1, 0))
        p_do = tl.make_block_ptr(do, (T, V), (H * V, 1), (i_t * BT, i_v * BV), (BT, BV), (1, 0))
        p_dv = tl.make_block_ptr(dv, (T, V), (H * V, 1), (i_t * BT, i_v * BV), (BT, BV), (1, 0))
        p_h = tl.make_block_ptr(h, (V, K), (1, V), (i_v * BV, 0), (BV, BK), (0, 1))
        p_dh = tl.make_block_ptr(dh, (V, K), (1, V), (i_v * BV, 0), (BV, BK), (0, 1))
        b_v = tl.load(p_v, boundary_check=(0, 1))
        b_do = tl.load(p_do, boundary_check=(0, 1))
        b_h = tl.load(p_h, boundary_check=(0, 1))
        b_dh = tl.load(p_dh, boundary_check=(0, 1))
        b_dg_last += tl.sum(b_h.to(tl.float32) * b_dh.to(tl.float32))
        b_ds += tl.dot(b_do, tl.trans(b_v))
        b_dq += tl.dot(b_do, b_h.to(b_do.dtype))
        b_dk += tl.dot(b_v, b_dh.to(b_v.dtype))
        b_dv = tl.dot(b_k, tl.trans(b_dh).to(b_k.dtype)) * tl.exp(b_g_last - b_g)[:, None]
        b_dv += tl.dot(tl.trans(b_A).to(b_do.dtype), b_do)
        tl.store(p_dv, b_dv.to(p_dv.dtype.element_ty), boundary_check=(0, 1))

    b_dg = tl.zeros([BT], dtype=tl.float32)
    b_dg_last *= tl.exp(b_g_last)
    b_dq = b_dq * tl.exp(b_g)[:, None] * scale
    b_dg += tl.sum(b_dq * b_q, axis=1)
    b_dk = b_dk * tl.where(m_t, tl.exp(-b_g + b_g_last), 0)[:, None]
    b_dg -= tl.sum(b_k * b_dk, axis=1)
    b_dg_last += tl.sum(b_dk * b_k)
    b_ds = tl.where(m_A, b_ds * tl.exp(b_g[:, None] - b_g[None, :]), 0) * scale
    b_ds2 = b_ds * tl.dot(b_q, tl.trans(b_k))
    b_dg += tl.sum(b_ds2, axis=1)
    b_dg -= tl.sum(b_ds2, axis=0)
    b_ds = b_ds.to(b_k.dtype)
    b_dq += tl.dot(b_ds, b_k)
    b_dk += tl.dot(tl.trans(b_ds), b_q)
    p_dq = tl.make_block_ptr(dq, (T, K), (H * K, 1), (i_t * BT, 0), (BT, BK), (1, 0))
    p_dk = tl.make_block_ptr(dk, (T, K), (H * K, 1), (i_t * BT, 0), (BT, BK), (1, 0))
    p_dg = tl.make_block_ptr(dg, (T,), (H,), (i_t * BT,), (BT,), (0,))
    b_dg = tl.where(o_t < last, b_dg, b_dg + b_dg_last)
    b_dg = tl.cumsum(tl.where(m_t, b_dg, 0), axis=0, reverse=True)
    tl.store(p_dq, b_dq.to(p_dq.dtype.element_ty), boundary_check=(0, 1))
    tl.store(p_dk, b_dk.to(p_dk.dtype.element_ty), boundary_check=(0, 1))
    tl.store(p_dg, b_dg.to(p_dg.dtype.element_ty), boundary_check=(0,))


def chunks_of(cu_seqlens, BT):
    counts = [-(-int(n) // BT) for n in np.diff(cu_seqlens)]
    indices = [(i, t) for i, n in enumerate(counts) for t in range(n)]
    return np.array(indices, np.int64), np.cumsum([0, *counts]).astype(np.int64)


def within_chunks(g, cu_seqlens, BT):
    """Sums of the gates within each chunk of each sequence."""
    out = np.zeros(g.shape, np.float32)
    for b in range(g.shape[0]):
        for begin, end in pairwise(cu_seqlens):
            for t in range(begin, end, BT):
                out[b, t : min(t + BT, end)] = g[b, t : min(t + BT, end)].cumsum(axis=0)
    return out


def launch(mode, q, k, v, g, do, cu_seqlens, BT, BV):
    B, T, H, K = q.shape
    V = v.shape[-1]
    whole = np.array([0, T]) if cu_seqlens is None else cu_seqlens
    gates = within_chunks(g, whole, BT)
    indices, offsets = chunks_of(whole, BT)
    NT, N = len(indices), B * (len(whole) - 1)
    BK = triton.next_power_of_2(K)
    h, dh = (np.full((B * NT, H, K, V), np.nan, np.float32) for _ in range(2))
    dq, dk, dv, dg = (np.full(x.shape, np.nan, np.float32) for x in (q, k, v, g))
    sizes = {"H": H, "K": K, "V": V, "BT": BT, "BK": BK, "BV": BV}
    scale = K**-0.5
    varlen = (cu_seqlens, offsets if cu_seqlens is not None else None)
    grid = (1, triton.cdiv(V, BV), N * H)
    IS_VARLEN(mode(states_source))[grid](k, v, gates, h, *varlen, T, **sizes)
    IS_VARLEN(mode(state_gradients_source))[grid](q, gates, do, dh, *varlen, scale, T, **sizes)
    IS_VARLEN(mode(token_gradients_source))[(NT, B * H)](
        q, k, v, gates, h, do, dh, dq, dk, dv, dg, cu_seqlens, indices if cu_seqlens is not None else None,
        scale, T, **sizes,
    )  # fmt: skip
    return dq, dk, dv, dg


def reference(q, k, v, g, do, cu_seqlens):
    q, k, v, g, do = (x.astype(np.float64) for x in (q, k, v, g, do))
    B, _, H, K = q.shape
    scale = K**-0.5
    dq, dk, dv, dg = (np.zeros_like(x) for x in (q, k, v, g))
    for begin, end in pairwise(cu_seqlens):
        states = [np.zeros((B, H, K, v.shape[-1]))]
        for t in range(begin, end):
            decay = np.exp(g[:, t])[:, :, None, None]
            states.append(states[-1] * decay + k[:, t, :, :, None] * v[:, t, :, None, :])
        dh = np.zeros_like(states[0])
        for t in reversed(range(begin, end)):
            before, after = states[t - begin], states[t - begin + 1]
            dh = dh + scale * q[:, t, :, :, None] * do[:, t, :, None, :]
            dq[:, t] = scale * np.einsum("bhkv,bhv->bhk", after, do[:, t])
            dk[:, t] = np.einsum("bhkv,bhv->bhk", dh, v[:, t])
            dv[:, t] = np.einsum("bhkv,bhk->bhv", dh, k[:, t])
            dg[:, t] = (before * dh).sum(axis=(2, 3)) * np.exp(g[:, t])
            dh = dh * np.exp(g[:, t])[:, :, None, None]
    return dq, dk, dv, dg


def case(B, T, H, K, V, dtype):
    q, k = normal(1, B, T, H, K, dtype=dtype), normal(2, B, T, H, K, dtype=dtype)
    v, do = normal(3, B, T, H, V, dtype=dtype), normal(4, B, T, H, V, dtype=dtype)
    return q, k, v, -np.abs(normal(5, B, T, H)) * np.float32(0.3), do


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
@pytest.mark.parametrize(
    ("size", "begins"), [((2, 70, 2, 24, 40), None), ((1, 90, 2, 16, 32), [0, 1, 33, 65, 90])]
)
def test_gradients(size, begins, dtype):
    arrays = case(*size, dtype)
    cu_seqlens = None if begins is None else np.array(begins, np.int64)
    found = launch(compiled, *arrays, cu_seqlens, 32, 32)
    whole = [0, size[1]] if begins is None else begins
    for one, expected in zip(found, reference(*arrays, whole), strict=True):
        close(one, expected, dtype, factor=2)


@pytest.mark.parametrize("begins", [None, [0, 3, 20, 29]])
def test_both_modes(begins):
    arrays = case(1, 29, 2, 6, 10, "fp32")
    cu_seqlens = None if begins is None else np.array(begins, np.int64)
    found = in_both_modes(lambda mode: launch(mode, *arrays, cu_seqlens, 16, 8))
    for one, expected in zip(found, reference(*arrays, begins or [0, 29]), strict=True):
        close(one, expected, factor=2)
