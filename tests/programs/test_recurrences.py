"""Recurrences: a first-order linear scan of pairs, forward and backward, and the delta rule one token at a
time.
"""

# mypy: ignore-errors
from __future__ import annotations

import numpy as np
import pytest

import blocklang.triton as triton
import blocklang.triton.language as tl
from tests.programs.running import close, compiled, in_both_modes, normal


@triton.jit
def combine(a_left, b_left, a_right, b_right):
    return a_right * a_left, a_right * b_left + b_right


@triton.jit
def linear_scan_forward_kernel(a_ptr, x_ptr, h_ptr, T, D, BLOCK_T: tl.constexpr, BLOCK_D: tl.constexpr):
    batch = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    base = batch * T * D
    carry = tl.zeros([BLOCK_D], dtype=tl.float32)
    for start in range(0, T, BLOCK_T):
        rows = start + tl.arange(0, BLOCK_T)
        offsets = base + rows[:, None] * D + cols[None, :]
        mask = (rows < T)[:, None] & (cols < D)[None, :]
        a = tl.load(a_ptr + offsets, mask=mask, other=1.0).to(tl.float32)
        x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
        decay, h = tl.associative_scan((a, x), 0, combine)
        h += decay * carry[None, :]
        tl.store(h_ptr + offsets, h, mask=mask)
        last = tl.arange(0, BLOCK_T) == BLOCK_T - 1
        carry = tl.sum(tl.where(last[:, None], h, 0.0), axis=0)


@triton.jit
def linear_scan_backward_kernel(
    a_ptr, h_ptr, dh_ptr, da_ptr, dx_ptr, T, D, BLOCK_T: tl.constexpr, BLOCK_D: tl.constexpr
):
    batch = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    base = batch * T * D
    carry = tl.zeros([BLOCK_D], dtype=tl.float32)
    for i in range(tl.cdiv(T, BLOCK_T)):
        start = (tl.cdiv(T, BLOCK_T) - 1 - i) * BLOCK_T
        rows = start + tl.arange(0, BLOCK_T)
        offsets = base + rows[:, None] * D + cols[None, :]
        in_cols = (cols < D)[None, :]
        mask = (rows < T)[:, None] & in_cols
        # What reaches step t from step t + 1 decays by a[t + 1].
        a_next = tl.load(a_ptr + offsets + D, mask=(rows + 1 < T)[:, None] & in_cols, other=1.0).to(
            tl.float32
        )
        dh = tl.load(dh_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
        decay, dx = tl.associative_scan((a_next, dh), axis=0, combine_fn=combine, reverse=True)
        dx += decay * carry[None, :]
        h_before = tl.load(h_ptr + offsets - D, mask=mask & (rows > 0)[:, None], other=0.0)
        tl.store(dx_ptr + offsets, dx, mask=mask)
        tl.store(da_ptr + offsets, dx * h_before, mask=mask)
        carry = tl.sum(tl.where((tl.arange(0, BLOCK_T) == 0)[:, None], dx, 0.0), axis=0)


def scan_launch(mode, a, x, dh, block_t, block_d):
    B, T, D = a.shape
    h, da, dx = (np.full(a.shape, np.nan, np.float32) for _ in range(3))
    grid = (B, triton.cdiv(D, block_d))
    mode(linear_scan_forward_kernel)[grid](a, x, h, T, D, BLOCK_T=block_t, BLOCK_D=block_d)
    mode(linear_scan_backward_kernel)[grid](a, h, dh, da, dx, T, D, BLOCK_T=block_t, BLOCK_D=block_d)
    return h, da, dx


def scan_reference(a, x, dh):
    a, x, dh = (value.astype(np.float64) for value in (a, x, dh))
    T = a.shape[1]
    h, dx, da = np.zeros_like(a), np.zeros_like(a), np.zeros_like(a)
    for t in range(T):
        h[:, t] = x[:, t] + (a[:, t] * h[:, t - 1] if t else 0)
    for t in reversed(range(T)):
        dx[:, t] = dh[:, t] + (a[:, t + 1] * dx[:, t + 1] if t + 1 < T else 0)
        da[:, t] = dx[:, t] * (h[:, t - 1] if t else 0)
    return h, da, dx


def scan_case(B, T, D, dtype):
    a = (1 / (1 + np.exp(-2 - normal(1, B, T, D)))).astype(normal(0, 1, dtype=dtype).dtype)
    return a, normal(2, B, T, D, dtype=dtype), normal(3, B, T, D, dtype=dtype)


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
@pytest.mark.parametrize("size", [(1, 1, 1), (2, 65, 19), (1, 300, 40), (3, 128, 32)])
def test_linear_scan(dtype, size):
    arrays = scan_case(*size, dtype)
    for found, expected in zip(scan_launch(compiled, *arrays, 64, 16), scan_reference(*arrays), strict=True):
        close(found, expected)


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_linear_scan_in_both_modes(dtype):
    arrays = scan_case(2, 45, 5, dtype)
    in_both_modes(lambda mode: scan_launch(mode, *arrays, 16, 4))


@triton.jit
def delta_rule_kernel(
    q, k, v, beta, o, h0, ht, scale, T,
    H: tl.constexpr, K: tl.constexpr, V: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr,
    USE_INITIAL_STATE: tl.constexpr, IS_BETA_HEADWISE: tl.constexpr, USE_QK_L2NORM: tl.constexpr,
):  # fmt: skip
    i_v, i_nh = tl.program_id(0), tl.program_id(1)
    i_n, i_h = i_nh // H, i_nh % H
    o_k = tl.arange(0, BK)
    o_v = i_v * BV + tl.arange(0, BV)
    p_q = q + (i_n * T * H + i_h) * K + o_k
    p_k = k + (i_n * T * H + i_h) * K + o_k
    p_v = v + (i_n * T * H + i_h) * V + o_v
    p_o = o + (i_n * T * H + i_h) * V + o_v
    if IS_BETA_HEADWISE:
        p_beta = beta + (i_n * T * H + i_h) * V + o_v
    else:
        p_beta = beta + i_n * T * H + i_h
    mask_k = o_k < K
    mask_v = o_v < V
    mask_h = mask_k[:, None] & mask_v[None, :]
    b_h = tl.zeros([BK, BV], dtype=tl.float32)
    if USE_INITIAL_STATE:
        b_h += tl.load(h0 + i_nh * K * V + o_k[:, None] * V + o_v[None, :], mask=mask_h, other=0).to(
            tl.float32
        )
    for _ in range(T):
        b_q = tl.load(p_q, mask=mask_k, other=0).to(tl.float32)
        b_k = tl.load(p_k, mask=mask_k, other=0).to(tl.float32)
        b_v = tl.load(p_v, mask=mask_v, other=0).to(tl.float32)
        if USE_QK_L2NORM:
            b_q = b_q / tl.sqrt(tl.sum(b_q * b_q) + 1e-6)
            b_k = b_k / tl.sqrt(tl.sum(b_k * b_k) + 1e-6)
        b_q = b_q * scale
        b_v -= tl.sum(b_h * b_k[:, None], 0)
        if IS_BETA_HEADWISE:
            b_beta = tl.load(p_beta, mask=mask_v, other=0).to(tl.float32)
        else:
            b_beta = tl.load(p_beta).to(tl.float32)
        b_v *= b_beta
        b_h += b_k[:, None] * b_v[None, :]
        b_o = tl.sum(b_h * b_q[:, None], 0)
        tl.store(p_o, b_o.to(p_o.dtype.element_ty), mask=mask_v)
        p_q += H * K
        p_k += H * K
        p_v += H * V
        p_o += H * V
        p_beta += H * (V if IS_BETA_HEADWISE else 1)
    if ht is not None:
        tl.store(ht + i_nh * K * V + o_k[:, None] * V + o_v[None, :], b_h, mask=mask_h)


def delta_launch(mode, q, k, v, beta, h0, scale, norm):
    B, T, H, K = q.shape
    V = v.shape[-1]
    o = np.full_like(v, np.nan)
    ht = np.full((B, H, K, V), np.nan, np.float32)
    mode(delta_rule_kernel)[(triton.cdiv(V, 8), B * H)](
        q, k, v, beta, o, h0, ht, scale, T, H=H, K=K, V=V, BK=triton.next_power_of_2(K), BV=8,
        USE_INITIAL_STATE=h0 is not None, IS_BETA_HEADWISE=beta.ndim == v.ndim, USE_QK_L2NORM=norm,
    )  # fmt: skip
    return o, ht


def delta_reference(q, k, v, beta, h0, scale, norm):
    q, k, v, beta = (value.astype(np.float64) for value in (q, k, v, beta))
    if norm:
        q, k = (x / np.sqrt((x * x).sum(-1, keepdims=True) + 1e-6) for x in (q, k))
    beta = beta if beta.ndim == v.ndim else beta[..., None]
    B, T, H, K = q.shape
    h = np.zeros((B, H, K, v.shape[-1])) if h0 is None else h0.astype(np.float64)
    o = np.zeros_like(v)
    for t in range(T):
        u = (v[:, t] - np.einsum("bhkv,bhk->bhv", h, k[:, t])) * beta[:, t]
        h = h + k[:, t, :, :, None] * u[:, :, None, :]
        o[:, t] = np.einsum("bhkv,bhk->bhv", h, q[:, t]) * scale
    return o, h


@pytest.mark.parametrize("headwise", [True, False])
@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
@pytest.mark.parametrize("size", [(2, 50, 2, 24, 20), (1, 1, 1, 1, 3), (1, 33, 2, 16, 16)])
def test_delta_rule(size, dtype, headwise):
    B, T, H, K, V = size
    q, k, v = (normal(s, B, T, H, n, dtype=dtype) for s, n in ((1, K), (2, K), (3, V)))
    beta = (1 / (1 + np.exp(-normal(4, *((B, T, H, V) if headwise else (B, T, H)))))).astype(q.dtype)
    h0 = normal(5, B, H, K, V) if headwise else None
    o, ht = delta_launch(compiled, q, k, v, beta, h0, K**-0.5, True)
    expected_o, expected_ht = delta_reference(q, k, v, beta, h0, K**-0.5, True)
    close(o, expected_o, dtype)
    close(ht, expected_ht)


@pytest.mark.parametrize("headwise", [True, False])
def test_delta_rule_in_both_modes(headwise):
    q, k, v = (normal(s, 1, 11, 2, n, dtype="bf16") for s, n in ((1, 6), (2, 6), (3, 9)))
    beta = np.abs(normal(4, *((1, 11, 2, 9) if headwise else (1, 11, 2)), dtype="bf16"))
    h0 = normal(5, 1, 2, 6, 9) if headwise else None
    in_both_modes(lambda mode: delta_launch(mode, q, k, v, beta, h0, 0.5, headwise))
