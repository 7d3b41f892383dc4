"""Attention of one new token per sequence over keys and values in pages: a block table says where pages lie.

Two stages, as in serving engines: each program takes one split of a sequence's tokens and leaves a partial
output with its logsumexp; a second kernel merges the splits. Query heads share key heads in groups.
"""

# mypy: ignore-errors
from __future__ import annotations

import numpy as np
import pytest

import blocklang.triton as triton
import blocklang.triton.language as tl
from tests.programs.running import close, compiled, in_both_modes, normal


@triton.jit
def decode_stage1_kernel(
    Q, K_Cache, V_Cache, block_tables, context_lens, Mid_O, Mid_LSE, sm_scale,
    stride_qb, stride_qh, stride_kp, stride_kt, stride_kh, stride_vp, stride_vt, stride_vh, stride_bt,
    stride_mb, stride_mh, stride_ms,
    kv_group_num: tl.constexpr, q_head_num: tl.constexpr, PAGE: tl.constexpr, BLOCK_D: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_H: tl.constexpr, NUM_SPLITS: tl.constexpr, Lk: tl.constexpr,
    logit_cap: tl.constexpr,
):  # fmt: skip
    cur_batch = tl.program_id(0)
    cur_head_id = tl.program_id(1)
    cur_kv_head = cur_head_id // tl.cdiv(kv_group_num, BLOCK_H)
    split = tl.program_id(2)

    VALID_H: tl.constexpr = BLOCK_H if kv_group_num > BLOCK_H else kv_group_num
    cur_head = cur_head_id * VALID_H + tl.arange(0, BLOCK_H)
    mask_h = cur_head < (cur_head_id + 1) * VALID_H
    mask_h = mask_h & (cur_head < q_head_num)
    offs_d = tl.arange(0, BLOCK_D)
    mask_d = offs_d < Lk

    seq_len = tl.load(context_lens + cur_batch)
    per_split = tl.cdiv(seq_len, NUM_SPLITS)
    split_start = per_split * split
    split_end = tl.minimum(split_start + per_split, seq_len)

    e_max = tl.zeros([BLOCK_H], dtype=tl.float32) - float("inf")
    e_sum = tl.zeros([BLOCK_H], dtype=tl.float32)
    acc = tl.zeros([BLOCK_H, BLOCK_D], dtype=tl.float32)

    if split_end > split_start:
        offs_q = cur_batch * stride_qb + cur_head[:, None] * stride_qh + offs_d[None, :]
        q = tl.load(Q + offs_q, mask=mask_h[:, None] & mask_d[None, :], other=0.0)
        for start_n in range(split_start, split_end, BLOCK_N):
            offs_n = start_n + tl.arange(0, BLOCK_N)
            mask_n = offs_n < split_end
            page = tl.load(block_tables + cur_batch * stride_bt + offs_n // PAGE, mask=mask_n, other=0)
            page = page.to(tl.int64)
            offs_k = page[None, :] * stride_kp + (offs_n % PAGE)[None, :] * stride_kt
            k = tl.load(
                K_Cache + offs_k + cur_kv_head * stride_kh + offs_d[:, None],
                mask=mask_n[None, :] & mask_d[:, None], other=0.0,
            )  # fmt: skip
            qk = tl.dot(q, k.to(q.dtype))
            qk *= sm_scale
            if logit_cap > 0:
                qk = logit_cap * (2 * tl.sigmoid(2 * qk / logit_cap) - 1)
            qk = tl.where(mask_h[:, None] & mask_n[None, :], qk, float("-inf"))
            offs_v = page[:, None] * stride_vp + (offs_n % PAGE)[:, None] * stride_vt
            v = tl.load(
                V_Cache + offs_v + cur_kv_head * stride_vh + offs_d[None, :],
                mask=mask_n[:, None] & mask_d[None, :], other=0.0,
            )  # fmt: skip
            n_e_max = tl.maximum(tl.max(qk, 1), e_max)
            re_scale = tl.exp(e_max - n_e_max)
            p = tl.exp(qk - n_e_max[:, None])
            acc *= re_scale[:, None]
            acc += tl.dot(p.to(v.dtype), v)
            e_sum = e_sum * re_scale + tl.sum(p, 1)
            e_max = n_e_max

        offs_mid = cur_batch * stride_mb + cur_head * stride_mh + split * stride_ms
        tl.store(
            Mid_O + offs_mid[:, None] + offs_d[None, :], acc / e_sum[:, None],
            mask=mask_h[:, None] & mask_d[None, :],
        )  # fmt: skip
        tl.store(Mid_LSE + offs_mid // Lk, e_max + tl.log(e_sum), mask=mask_h)


@triton.jit
def decode_stage2_kernel(
    Mid_O, Mid_LSE, Out, context_lens, stride_mb, stride_mh, stride_ms, stride_ob, stride_oh,
    NUM_SPLITS: tl.constexpr, BLOCK_D: tl.constexpr, Lv: tl.constexpr,
):  # fmt: skip
    cur_batch = tl.program_id(0)
    cur_head = tl.program_id(1)
    seq_len = tl.load(context_lens + cur_batch)
    offs_d = tl.arange(0, BLOCK_D)
    mask_d = offs_d < Lv
    e_sum = 0.0
    e_max = -float("inf")
    acc = tl.zeros([BLOCK_D], dtype=tl.float32)
    offs_v = cur_batch * stride_mb + cur_head * stride_mh + offs_d
    offs_logic = (cur_batch * stride_mb + cur_head * stride_mh) // Lv
    for split in range(NUM_SPLITS):
        per_split = tl.cdiv(seq_len, NUM_SPLITS)
        start = per_split * split
        end = tl.minimum(start + per_split, seq_len)
        if end > start:
            tv = tl.load(Mid_O + offs_v + split * stride_ms, mask=mask_d, other=0.0)
            tlogic = tl.load(Mid_LSE + offs_logic + split * stride_ms // Lv)
            n_e_max = tl.maximum(tlogic, e_max)
            old_scale = tl.exp(e_max - n_e_max)
            acc *= old_scale
            exp_logic = tl.exp(tlogic - n_e_max)
            acc += exp_logic * tv
            e_sum = e_sum * old_scale + exp_logic
            e_max = n_e_max
    tl.store(Out + cur_batch * stride_ob + cur_head * stride_oh + offs_d, acc / e_sum, mask=mask_d)


def elements(x):
    return tuple(s // x.itemsize for s in x.strides)


def launch(mode, q, k_cache, v_cache, tables, lengths, splits, block_n, logit_cap):
    batch, heads, head_dim = q.shape
    page, kv_heads = k_cache.shape[1:3]
    group = heads // kv_heads
    block_h = max(2, min(16, triton.next_power_of_2(group)))
    block_d = triton.next_power_of_2(head_dim)
    mid = np.full((batch, heads, splits, head_dim), np.nan, np.float32)
    lse = np.full((batch, heads, splits), np.nan, np.float32)
    out = np.full_like(q, np.nan)
    grid = (batch, triton.cdiv(heads, min(block_h, group)), splits)
    mode(decode_stage1_kernel)[grid](
        q, k_cache, v_cache, tables, lengths, mid, lse, head_dim**-0.5,
        *elements(q)[:2], *elements(k_cache)[:3], *elements(v_cache)[:3], tables.shape[1], *elements(mid)[:3],
        kv_group_num=group, q_head_num=heads, PAGE=page, BLOCK_D=block_d, BLOCK_N=block_n, BLOCK_H=block_h,
        NUM_SPLITS=splits, Lk=head_dim, logit_cap=logit_cap, num_warps=4, num_stages=2,
    )  # fmt: skip
    mode(decode_stage2_kernel)[(batch, heads)](
        mid, lse, out, lengths, *elements(mid)[:3], *elements(out)[:2],
        NUM_SPLITS=splits, BLOCK_D=block_d, Lv=head_dim,
    )  # fmt: skip
    return (out,)


def reference(q, k_cache, v_cache, tables, lengths, logit_cap):
    batch, heads, head_dim = q.shape
    page, kv_heads = k_cache.shape[1:3]
    out = np.zeros(q.shape)
    for b in range(batch):
        token = np.arange(lengths[b])
        where = tables[b, token // page], token % page
        k, v = (np.repeat(c[where].astype(np.float64), heads // kv_heads, axis=1) for c in (k_cache, v_cache))
        scores = np.einsum("hd,thd->ht", q[b].astype(np.float64), k) * head_dim**-0.5
        if logit_cap:
            scores = logit_cap * np.tanh(scores / logit_cap)
        p = np.exp(scores - scores.max(axis=1, keepdims=True))
        out[b] = np.einsum("ht,thd->hd", p / p.sum(axis=1, keepdims=True), v)
    return out


def case(lengths, heads, kv_heads, head_dim, page, dtype):
    random = np.random.default_rng(7)
    lengths = np.array(lengths, np.int32)
    needed = [-(-int(n) // page) for n in lengths]
    order = random.permutation(sum(needed) + 3).astype(np.int32)
    tables = np.full((len(lengths), max(needed)), 1 << 30, np.int32)  # where no page is, nobody may look
    for row, n in enumerate(needed):
        tables[row, :n] = order[sum(needed[:row]) :][:n]
    pages = sum(needed) + 3
    q = normal(1, len(lengths), heads, head_dim, dtype=dtype)
    k, v = (normal(s, pages, page, kv_heads, head_dim, dtype=dtype) for s in (2, 3))
    return q, k, v, tables, lengths


@pytest.mark.parametrize(
    ("heads", "kv_heads", "head_dim", "page", "splits", "cap"),
    [(8, 2, 64, 16, 4, 0.0), (6, 2, 40, 5, 3, 0.0), (4, 4, 64, 32, 1, 30.0), (64, 2, 24, 1, 2, 0.0)],
)
@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_pages_in_any_order(dtype, heads, kv_heads, head_dim, page, splits, cap):
    arrays = case([1, 77, 200, 32], heads, kv_heads, head_dim, page, dtype)
    (found,) = launch(compiled, *arrays, splits, 32, cap)
    close(found, reference(*arrays, cap), dtype)


@pytest.mark.parametrize("cap", [0.0, 5.0])
def test_both_modes(cap):
    arrays = case([1, 9, 30], 6, 2, 12, 4, "bf16")
    (found,) = in_both_modes(lambda mode: launch(mode, *arrays, 2, 8, cap))
    close(found, reference(*arrays, cap), "bf16")
