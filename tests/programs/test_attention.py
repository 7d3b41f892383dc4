"""Flash attention against attention in NumPy: forward, packed sequences, and the three gradients."""

# mypy: ignore-errors
from __future__ import annotations

import numpy as np
import pytest

import blocklang.triton as triton
from tests.programs import attention_kernels as kernels
from tests.programs.running import assert_close, compiled, in_both_modes

TOLERANCES = {np.dtype(np.float16): 4e-3, np.dtype(np.float32): 2e-5}


def elements(x):
    return [s // x.itemsize for s in x.strides]


def numbers(*shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).normal(0, 0.5, size=shape).astype(dtype)


def attention_in_numpy(q, k, v, causal, scale):
    """Output, probabilities and the logarithm of their sums; causal is aligned to the lower right."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    scores = q @ k.swapaxes(-1, -2) * scale
    if causal:
        visible = np.tri(*scores.shape[-2:], k=scores.shape[-1] - scores.shape[-2], dtype=bool)
        scores = np.where(visible, scores, -np.inf)
    top = scores.max(axis=-1, keepdims=True, initial=-1e300)
    p = np.exp(scores - top)
    total = p.sum(axis=-1, keepdims=True)
    p = p / np.where(total == 0, 1, total)
    with np.errstate(divide="ignore"):
        return p @ v, p, np.where(total == 0, -np.inf, top + np.log(total))[..., 0]


def forward(mode, q, k, v, causal, scale, block_m=32, block_n=16):
    z, h, n, d = q.shape
    out, m = np.full_like(q, 7), np.full((z, h, n), 7, np.float32)
    mode(kernels._attn_fwd)[lambda args: (triton.cdiv(n, args["BLOCK_M"]), z * h, 1)](
        q, k, v, scale, m, out, *elements(q), *elements(k), *elements(v), *elements(out), z, h, N_CTX=n,
        HEAD_DIM=d, BLOCK_M=block_m, BLOCK_N=block_n, STAGE=3 if causal else 1, num_warps=4, num_stages=3,
    )  # fmt: skip
    return out, m


def forward_packed(mode, q, k, v, starts_q, starts_k, causal, scale):
    (total, h, d), groups = q.shape, q.shape[1] // k.shape[1]
    out, lse = np.full_like(q, 7), np.full((h, total), 7, np.float32)
    longest = int(np.diff(starts_q).max())
    mode(kernels._attn_fwd_varlen)[(triton.cdiv(longest, 32), len(starts_q) - 1, h)](
        q, k, v, out, lse, starts_q, starts_k, scale,
        *elements(q)[:2], *elements(k)[:2], *elements(v)[:2], *elements(out)[:2], total, h,
        GROUPS=groups, HEAD_DIM=d, BLOCK_D=triton.next_power_of_2(d),
        BLOCK_M=32, BLOCK_N=16, IS_CAUSAL=causal,
    )  # fmt: skip
    return out, lse


def backward(mode, q, k, v, out, m, do, causal, scale, small=16, large=32):
    z, h, n, d = q.shape
    dq, dk, dv = (np.full_like(x, 7) for x in (q, k, v))
    delta = np.full_like(m, 7)
    mode(kernels._attn_bwd_preprocess)[(triton.cdiv(n, large), z * h)](
        out, do, delta, n, BLOCK_M=large, HEAD_DIM=d
    )
    scaled = (k.astype(np.float32) * np.float32(scale * 1.4426950408889634)).astype(k.dtype)
    mode(kernels._attn_bwd)[(triton.cdiv(n, large), 1, z * h)](
        q, scaled, v, scale, do, dq, dk, dv, m, delta, *elements(q), h, n,
        BLOCK_M1=small, BLOCK_N1=large, BLOCK_M2=large, BLOCK_N2=small,
        BLK_SLICE_FACTOR=2, HEAD_DIM=d, CAUSAL=causal, num_warps=4, num_stages=5,
    )  # fmt: skip
    return delta, dq, dk, dv


def gradients_in_numpy(q, k, v, do, causal, scale):
    out, p, _ = attention_in_numpy(q, k, v, causal, scale)
    q, k, v, do = (x.astype(np.float64) for x in (q, k, v, do))
    dp = do @ v.swapaxes(-1, -2)
    ds = p * (dp - (do * out).sum(axis=-1, keepdims=True))
    return ds @ k * scale, ds.swapaxes(-1, -2) @ q * scale, p.swapaxes(-1, -2) @ do


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("n", [64, 45, 1])
def test_forward(dtype, causal, n):
    q, k, v = (numbers(1, 2, n, 16, dtype=dtype, seed=i) for i in range(3))
    out, m = in_both_modes(forward, q, k, v, causal, 0.5)
    expected, _, lse = attention_in_numpy(q, k, v, causal, 0.5)
    assert_close(out, expected, TOLERANCES[out.dtype])
    assert_close(m, lse / np.log(2), 1e-5)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("causal", [True, False])
def test_forward_at_the_size_people_use(dtype, causal):
    q, k, v = (numbers(2, 3, 300, 64, dtype=dtype, seed=i) for i in range(3))
    out, _ = forward(compiled, q, k, v, causal, 0.125, block_m=128, block_n=64)
    assert_close(out, attention_in_numpy(q, k, v, causal, 0.125)[0], TOLERANCES[out.dtype])


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("causal", [True, False])
def test_forward_of_packed_sequences(dtype, causal):
    starts_q = np.array([0, 33, 33, 34, 50], np.int32)
    starts_k = np.array([0, 40, 45, 45, 55], np.int32)
    q = numbers(50, 4, 24, dtype=dtype)
    k, v = (numbers(55, 2, 24, dtype=dtype, seed=i) for i in (1, 2))
    out, lse = in_both_modes(forward_packed, q, k, v, starts_q, starts_k, causal, 0.3)
    for i in range(len(starts_q) - 1):
        rows, columns = slice(*starts_q[i : i + 2]), slice(*starts_k[i : i + 2])
        if rows.start == rows.stop:
            continue
        for head in range(4):
            expected, _, sums = attention_in_numpy(
                q[rows, head], k[columns, head // 2], v[columns, head // 2], causal, 0.3
            )
            assert_close(out[rows, head], expected, TOLERANCES[out.dtype], f"sequence {i}, head {head}")
            hidden = np.isneginf(sums)
            assert (np.isneginf(lse[head, rows]) == hidden).all()
            assert_close(lse[head, rows][~hidden], sums[~hidden], 1e-5)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("n", [64, 45])
def test_backward(dtype, causal, n):
    q, k, v, do = (numbers(1, 2, n, 16, dtype=dtype, seed=i) for i in range(4))
    out, m = forward(compiled, q, k, v, causal, 0.5)
    delta, *gradients = in_both_modes(backward, q, k, v, out, m, do, causal, 0.5)
    assert_close(delta, (out.astype(np.float64) * do).sum(axis=-1), 1e-5)
    tolerance = {np.dtype(np.float16): 1e-2, np.dtype(np.float32): 5e-5}[q.dtype]
    for name, actual, expected in zip(
        ("dq", "dk", "dv"), gradients, gradients_in_numpy(q, k, v, do, causal, 0.5), strict=True
    ):
        assert_close(actual, expected, tolerance, name)
