"""Layer norm as it is trained: forward, and backward with the weights' gradients summed behind locks."""

# mypy: ignore-errors
from __future__ import annotations

import numpy as np
import pytest

import blocklang as bl
import blocklang.triton as triton
import blocklang.triton.language as tl
from tests.programs.running import assert_close, compiled, in_both_modes


@triton.jit
def _layer_norm_fwd_fused(X, Y, W, B, Mean, Rstd, stride, N, eps, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    Y += row * stride
    X += row * stride
    mean = 0
    _mean = tl.zeros([BLOCK_SIZE], dtype=tl.float32)
    for off in range(0, N, BLOCK_SIZE):
        cols = off + tl.arange(0, BLOCK_SIZE)
        a = tl.load(X + cols, mask=cols < N, other=0.0).to(tl.float32)
        _mean += a
    mean = tl.sum(_mean, axis=0) / N
    _var = tl.zeros([BLOCK_SIZE], dtype=tl.float32)
    for off in range(0, N, BLOCK_SIZE):
        cols = off + tl.arange(0, BLOCK_SIZE)
        x = tl.load(X + cols, mask=cols < N, other=0.0).to(tl.float32)
        x = tl.where(cols < N, x - mean, 0.0)
        _var += x * x
    var = tl.sum(_var, axis=0) / N
    rstd = 1 / tl.sqrt(var + eps)
    tl.store(Mean + row, mean)
    tl.store(Rstd + row, rstd)
    for off in range(0, N, BLOCK_SIZE):
        cols = off + tl.arange(0, BLOCK_SIZE)
        mask = cols < N
        w = tl.load(W + cols, mask=mask)
        b = tl.load(B + cols, mask=mask)
        x = tl.load(X + cols, mask=mask, other=0.0).to(tl.float32)
        x_hat = (x - mean) * rstd
        y = x_hat * w + b
        tl.store(Y + cols, y, mask=mask)


@triton.jit
def _layer_norm_bwd_dx_fused(
    DX, DY, DW, DB, X, W, Mean, Rstd, Lock, stride, N,
    GROUP_SIZE_M: tl.constexpr, BLOCK_SIZE_N: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE_N)
    mask = cols < N
    X += row * stride
    DY += row * stride
    DX += row * stride
    lock_id = row % GROUP_SIZE_M
    Lock += lock_id
    Count = Lock + GROUP_SIZE_M
    DW = DW + lock_id * N + cols
    DB = DB + lock_id * N + cols
    x = tl.load(X + cols, mask=mask, other=0).to(tl.float32)
    dy = tl.load(DY + cols, mask=mask, other=0).to(tl.float32)
    w = tl.load(W + cols, mask=mask).to(tl.float32)
    mean = tl.load(Mean + row)
    rstd = tl.load(Rstd + row)
    xhat = (x - mean) * rstd
    wdy = w * dy
    xhat = tl.where(mask, xhat, 0.0)
    wdy = tl.where(mask, wdy, 0.0)
    c1 = tl.sum(xhat * wdy, axis=0) / N
    c2 = tl.sum(wdy, axis=0) / N
    dx = (wdy - (xhat * c1 + c2)) * rstd
    tl.store(DX + cols, dx, mask=mask)
    partial_dw = (dy * xhat).to(w.dtype)
    partial_db = (dy).to(w.dtype)
    while tl.atomic_cas(Lock, 0, 1) == 1:
        pass
    count = tl.load(Count)
    # The first one of a group stores without adding.
    if count == 0:
        tl.atomic_xchg(Count, 1)
    else:
        partial_dw += tl.load(DW, mask=mask)
        partial_db += tl.load(DB, mask=mask)
    tl.store(DW, partial_dw, mask=mask)
    tl.store(DB, partial_db, mask=mask)
    # Nobody may see the lock free before all of this is written.
    tl.debug_barrier()
    tl.atomic_xchg(Lock, 0)


@triton.jit
def _layer_norm_bwd_dwdb(
    DW, DB, FINAL_DW, FINAL_DB, M, N, BLOCK_SIZE_M: tl.constexpr, BLOCK_SIZE_N: tl.constexpr
):
    pid = tl.program_id(0)
    cols = pid * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)
    dw = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), dtype=tl.float32)
    db = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), dtype=tl.float32)
    for i in range(0, M, BLOCK_SIZE_M):
        rows = i + tl.arange(0, BLOCK_SIZE_M)
        mask = (rows[:, None] < M) & (cols[None, :] < N)
        offs = rows[:, None] * N + cols[None, :]
        dw += tl.load(DW + offs, mask=mask, other=0.0)
        db += tl.load(DB + offs, mask=mask, other=0.0)
    sum_dw = tl.sum(dw, axis=0)
    sum_db = tl.sum(db, axis=0)
    tl.store(FINAL_DW + cols, sum_dw, mask=cols < N)
    tl.store(FINAL_DB + cols, sum_db, mask=cols < N)


def forward(mode, x, w, b, eps, block):
    rows, n = x.shape
    y, mean, rstd = np.full_like(x, 7), np.full(rows, 7, np.float32), np.full(rows, 7, np.float32)
    mode(_layer_norm_fwd_fused)[(rows,)](
        x, y, w, b, mean, rstd, x.strides[0] // x.itemsize, n, eps, BLOCK_SIZE=block, num_warps=4, num_ctas=1
    )
    return y, mean, rstd


def backward(mode, x, w, dy, mean, rstd, groups):
    rows, n = x.shape
    locks = np.zeros(2 * groups, np.int32)
    part_w, part_b = np.zeros((groups, n), x.dtype), np.zeros((groups, n), x.dtype)
    dx, dw, db = np.full_like(x, 7), np.full_like(w, 7), np.full_like(w, 7)
    mode(_layer_norm_bwd_dx_fused)[(rows,)](
        dx, dy, part_w, part_b, x, w, mean, rstd, locks, x.strides[0] // x.itemsize, n,
        BLOCK_SIZE_N=triton.next_power_of_2(n), GROUP_SIZE_M=groups, num_warps=4,
    )  # fmt: skip
    assert (locks[:groups] == 0).all()
    assert (locks[groups:] == (np.arange(groups) < rows)).all()
    mode(_layer_norm_bwd_dwdb)[lambda meta: (triton.cdiv(n, meta["BLOCK_SIZE_N"]),)](
        part_w, part_b, dw, db, min(groups, rows), n, BLOCK_SIZE_M=8, BLOCK_SIZE_N=32
    )
    return dx, dw, db


def numbers(*shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).normal(0.3, 1, size=shape).astype(dtype)


def statistics(x, eps):
    wide = x.astype(np.float64)
    mean, rstd = wide.mean(axis=1, keepdims=True), 1 / np.sqrt(wide.var(axis=1, keepdims=True) + eps)
    return mean, rstd, (wide - mean) * rstd


def gradients_in_numpy(x, w, dy, eps):
    _, rstd, x_hat = statistics(x, eps)
    dy = dy.astype(np.float64)
    wdy = w * dy
    dx = rstd * (wdy - x_hat * (x_hat * wdy).mean(axis=1, keepdims=True) - wdy.mean(axis=1, keepdims=True))
    return dx, (dy * x_hat).sum(axis=0), dy.sum(axis=0)


TOLERANCES = {np.dtype(np.float16): 5e-3, np.dtype(np.float32): 2e-5}


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize(("shape", "block"), [((3, 37), 64), ((5, 130), 64), ((2, 1), 16)])
def test_forward(dtype, shape, block):
    x, w, b = numbers(*shape, dtype=dtype), numbers(shape[1], dtype=dtype, seed=1), numbers(shape[1], seed=2)
    b = b.astype(dtype)
    y, mean, rstd = in_both_modes(forward, x, w, b, 1e-5, block)
    expected_mean, expected_rstd, x_hat = statistics(x, 1e-5)
    assert_close(mean, expected_mean[:, 0], 1e-5)
    if shape[1] > 1:
        assert_close(rstd, expected_rstd[:, 0], 1e-5)
        assert_close(y, x_hat * w + b, TOLERANCES[x.dtype])


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize(("rows", "n", "groups"), [(7, 37, 3), (5, 64, 8), (9, 100, 1)])
def test_backward_in_both_modes(dtype, rows, n, groups):
    x, w, dy = numbers(rows, n, dtype=dtype), numbers(n, dtype=dtype, seed=1), numbers(rows, n, seed=2)
    dy = dy.astype(dtype)
    mean, rstd, _ = statistics(x, 1e-5)
    mean, rstd = mean[:, 0].astype(np.float32), rstd[:, 0].astype(np.float32)
    with bl.num_threads(1):  # one program after the other: the sums have an order
        results = in_both_modes(backward, x, w, dy, mean, rstd, groups)
    for name, actual, expected in zip(
        ("dx", "dw", "db"), results, gradients_in_numpy(x, w, dy, 1e-5), strict=True
    ):
        assert_close(actual, expected, TOLERANCES[x.dtype], name)


@pytest.mark.parametrize("groups", [1, 5, 64])
def test_backward_with_many_programs_at_a_lock(groups):
    x, w, dy = numbers(1151, 500), numbers(500, seed=1), numbers(1151, 500, seed=2)
    _, mean, rstd = forward(compiled, x, w, w, 1e-5, 512)
    with bl.num_threads(4):
        results = backward(compiled, x, w, dy, mean, rstd, groups)
    for name, actual, expected in zip(
        ("dx", "dw", "db"), results, gradients_in_numpy(x, w, dy, 1e-5), strict=True
    ):
        assert_close(actual, expected, 5e-5, name)
