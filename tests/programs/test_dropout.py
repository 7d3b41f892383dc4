"""Dropout whose mask nobody stores: the gradient draws the same numbers again from the seed."""

# mypy: ignore-errors
from __future__ import annotations

import numpy as np
import pytest

import blocklang.triton as triton
import blocklang.triton.language as tl
from tests.programs.running import assert_close, compiled, in_both_modes


@triton.jit
def _seeded_dropout(x_ptr, output_ptr, n_elements, p, seed, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(axis=0)
    block_start = pid * BLOCK_SIZE
    offsets = block_start + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    random = tl.rand(seed, offsets)
    x_keep = random > p
    output = tl.where(x_keep, x / (1 - p), 0.0)
    tl.store(output_ptr + offsets, output, mask=mask)


@triton.jit
def _row_dropout(x_ptr, seeds_ptr, out_ptr, n_cols, stride, p, BLOCK_SIZE: tl.constexpr):
    """A seed a row, four numbers a draw: columns c, c + BLOCK / 4, ... share one counter."""
    row = tl.program_id(0)
    seed = tl.load(seeds_ptr + row)
    QUARTER: tl.constexpr = BLOCK_SIZE // 4
    for start in range(0, n_cols, BLOCK_SIZE):
        draw = start // 4 + tl.arange(0, QUARTER)
        r = tl.rand4x(seed, draw)
        for i in tl.static_range(4):
            cols = start + i * QUARTER + tl.arange(0, QUARTER)
            x = tl.load(x_ptr + row * stride + cols, mask=cols < n_cols, other=0.0)
            kept = tl.where(r[i] > p, x / (1 - p), 0.0)
            tl.store(out_ptr + row * stride + cols, kept.to(x.dtype), mask=cols < n_cols)


@triton.jit
def _bias_dropout_residual_fwd(
    x_ptr, bias_ptr, residual_ptr, out_ptr, n_elements, n_cols, p, seed, BLOCK: tl.constexpr
):
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n_elements
    x = tl.load(x_ptr + offs, mask=mask) + tl.load(bias_ptr + offs % n_cols, mask=mask)
    keep = tl.rand(seed, offs) >= p
    scaled = tl.where(keep, x * (1.0 / (1.0 - p)), 0.0)
    tl.store(out_ptr + offs, scaled + tl.load(residual_ptr + offs, mask=mask), mask=mask)


@triton.jit
def _bias_dropout_residual_bwd(
    dout_ptr, dx_ptr, dbias_ptr, n_rows, n_cols, p, seed, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    """dx of every row of some columns, and their sum for the bias; the mask is drawn anew."""
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros([BLOCK_N], dtype=tl.float32)
    for start in range(0, n_rows, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M)
        offs = rows[:, None].to(tl.int64) * n_cols + cols[None, :]
        mask = (rows[:, None] < n_rows) & (cols[None, :] < n_cols)
        dout = tl.load(dout_ptr + offs, mask=mask, other=0.0)
        dx = tl.where(tl.rand(seed, offs) >= p, dout * (1.0 / (1.0 - p)), 0.0)
        tl.store(dx_ptr + offs, dx, mask=mask)
        total += tl.sum(dx, axis=0)
    tl.store(dbias_ptr + cols, total, mask=cols < n_cols)


def philox(seed, counter):
    """The four words of Philox4x32-10 for each counter of 64 bits or less."""
    key = [np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32 & 0xFFFFFFFF)]
    low = np.uint64(0xFFFFFFFF)
    counter = counter.astype(np.uint64)
    c = [counter & low, counter >> np.uint64(32), np.zeros_like(counter), np.zeros_like(counter)]
    for _ in range(10):
        first, second = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [
            second >> np.uint64(32) ^ c[1] ^ key[0],
            second & low,
            first >> np.uint64(32) ^ c[3] ^ key[1],
            first & low,
        ]
        key = [(k + np.uint64(g)) & low for k, g in zip(key, (0x9E3779B9, 0xBB67AE85), strict=True)]
    return [word.astype(np.uint32) for word in c]


def uniform(word):
    signed = word.view(np.int32)
    return np.where(signed < 0, -signed - 1, signed).astype(np.float32) * np.float32(4.6566127342e-10)


def numbers(*shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def run_seeded(mode, x, p, seed):
    out = np.full_like(x, 7)
    mode(_seeded_dropout)[lambda meta: (triton.cdiv(x.size, meta["BLOCK_SIZE"]),)](
        x, out, x.size, p, seed, BLOCK_SIZE=64
    )
    return (out,)


def run_rows(mode, x, seeds, p):
    out = np.full_like(x, 7)
    mode(_row_dropout)[(len(x),)](x, seeds, out, x.shape[1], x.shape[1], p, BLOCK_SIZE=64)
    return (out,)


def run_forward(mode, x, bias, residual, p, seed):
    out = np.full_like(x, 7)
    mode(_bias_dropout_residual_fwd)[(triton.cdiv(x.size, 128),)](
        x, bias, residual, out, x.size, x.shape[1], p, seed, BLOCK=128
    )
    return (out,)


def run_backward(mode, dout, p, seed):
    dx, dbias = np.full_like(dout, 7), np.full(dout.shape[1], 7, np.float32)
    mode(_bias_dropout_residual_bwd)[(triton.cdiv(dout.shape[1], 32),)](
        dout, dx, dbias, *dout.shape, p, seed, BLOCK_M=8, BLOCK_N=32
    )
    return dx, dbias


@pytest.mark.parametrize("seed", [123, -5, 2**40 + 7])
@pytest.mark.parametrize("size", [1, 10, 1000])
def test_seeded(seed, size):
    x = numbers(size)
    (out,) = in_both_modes(run_seeded, x, 0.5, seed)
    keep = uniform(philox(seed, np.arange(size))[0]) > 0.5
    assert_close(out, np.where(keep, x / 0.5, 0), 1e-6)
    assert ((out == 0) == ~keep).all()
    (again,) = run_seeded(compiled, x, 0.5, seed)
    assert (again == out).all()
    if size == 1000:
        (other,) = run_seeded(compiled, x, 0.5, seed + 1)
        assert 400 < (out == 0).sum() < 600
        assert 400 < ((other == 0) != (out == 0)).sum() < 600


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_a_seed_a_row(dtype):
    x, seeds = numbers(5, 150, dtype=dtype), np.array([0, 1, 7, 99, 2**31 - 1], np.int32)
    (out,) = in_both_modes(run_rows, x, seeds, 0.3)
    for row, seed in enumerate(seeds.tolist()):
        draws = philox(seed, np.arange(48))
        random = np.concatenate([uniform(w[s : s + 16]) for s in (0, 16, 32) for w in draws])[:150]
        expected = np.where(random > np.float32(0.3), x[row].astype(np.float64) / 0.7, 0)
        assert_close(out[row], expected, 1e-3 if dtype == np.float16 else 1e-6)


@pytest.mark.parametrize("shape", [(3, 40), (17, 33), (64, 64)])
def test_forward_and_backward_draw_the_same(shape):
    p, seed = 0.25, 42
    x, residual, dout = (numbers(*shape, seed=i) for i in range(3))
    bias = numbers(shape[1])
    (out,) = in_both_modes(run_forward, x, bias, residual, p, seed)
    dx, dbias = in_both_modes(run_backward, dout, p, seed)
    keep = (uniform(philox(seed, np.arange(x.size))[0]) >= p).reshape(shape)
    assert_close(out, np.where(keep, (x.astype(np.float64) + bias) / 0.75, 0) + residual, 1e-6)
    expected = np.where(keep, dout.astype(np.float64) / 0.75, 0)
    assert_close(dx, expected, 1e-6)
    assert_close(dbias, expected.sum(axis=0), 1e-5)
