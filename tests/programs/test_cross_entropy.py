"""Cross entropy over a vocabulary in chunks: one pass for the loss, one that writes the gradient over the
logits.

One program per token, however long its row: the maximum and the sum of exponentials are carried through the
chunks (online logsumexp). Label smoothing, an ignored label, and a penalty on the logsumexp (z-loss).
"""

# mypy: ignore-errors
from __future__ import annotations

import numpy as np
import pytest

import blocklang.triton as triton
import blocklang.triton.language as tl
from blocklang.triton.language.extra.libdevice import tanh
from tests.programs.running import DTYPES, close, compiled, in_both_modes, normal

IGNORED = -100


@triton.jit
def cross_entropy_kernel(
    X_ptr, X_stride, Y_ptr, Y_stride, loss_ptr, z_loss_ptr, lse_ptr, loss_stride,
    n_cols, n_valid, ignore_index,
    lse_square_scale: tl.constexpr, label_smoothing: tl.constexpr, reduction: tl.constexpr,
    RETURN_Z_LOSS: tl.constexpr, softcap, HAS_SOFTCAPPING: tl.constexpr, BLOCK_SIZE: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    Y_ptr += row * Y_stride
    y = tl.load(Y_ptr)
    X_ptr += row * X_stride

    if y == ignore_index:
        for start in range(0, n_cols, BLOCK_SIZE):
            cols = start + tl.arange(0, BLOCK_SIZE)
            tl.store(X_ptr + cols, 0.0, mask=cols < n_cols)
        return

    loss_ptr += row * loss_stride
    m = float("-inf")
    d = 0.0
    smooth_sum = 0.0
    x_y = tl.load(X_ptr + y).cast(tl.float32)
    if HAS_SOFTCAPPING:
        x_y = softcap * tanh(x_y / softcap)
    eps = label_smoothing / n_cols

    for start in range(0, n_cols, BLOCK_SIZE):
        cols = start + tl.arange(0, BLOCK_SIZE)
        x = tl.load(X_ptr + cols, mask=cols < n_cols, other=float("-inf")).cast(tl.float32)
        if HAS_SOFTCAPPING:
            x = tl.where(cols < n_cols, softcap * tanh(x / softcap), float("-inf"))
        if label_smoothing > 0:
            smooth_sum += tl.sum(tl.where(cols < n_cols, -eps * x, 0.0))
        m_new = tl.maximum(m, tl.max(x))
        d = d * tl.exp(m - m_new) + tl.sum(tl.exp(x - m_new))
        m = m_new
    lse = m + tl.log(d)

    for start in range(0, n_cols, BLOCK_SIZE):
        cols = start + tl.arange(0, BLOCK_SIZE)
        x = tl.load(X_ptr + cols, mask=cols < n_cols, other=float("-inf")).cast(tl.float32)
        if HAS_SOFTCAPPING:
            bent = tanh(x / softcap)
            x = softcap * bent
        x = tl.exp(x - m) / d
        x += 2 * lse_square_scale * lse * x
        x += -eps
        x = tl.where(cols != y, x, x - (1 - label_smoothing))
        if reduction == "mean":
            x = x / n_valid
        if HAS_SOFTCAPPING:
            x = x * (1 - bent * bent)
        tl.store(X_ptr + cols, x, mask=cols < n_cols)

    tl.debug_barrier()

    loss = lse - x_y
    if label_smoothing > 0:
        loss = loss * (1 - label_smoothing) + smooth_sum + label_smoothing * lse
    z_loss = lse_square_scale * lse * lse
    loss += z_loss
    if reduction == "mean":
        z_loss = z_loss / n_valid
        loss = loss / n_valid
    tl.store(loss_ptr, loss)
    tl.store(lse_ptr + row, lse)
    if RETURN_Z_LOSS:
        tl.store(z_loss_ptr + row * loss_stride, z_loss)


@triton.jit
def element_mul_kernel(X_ptr, X_stride, grad_ptr, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    X_ptr += row * X_stride
    grad = tl.load(grad_ptr)
    for i in range(0, n_cols, BLOCK_SIZE):
        cols = i + tl.arange(0, BLOCK_SIZE)
        x = tl.load(X_ptr + cols, mask=cols < n_cols)
        tl.store(X_ptr + cols, x * grad, mask=cols < n_cols)


def launch(mode, x, y, smoothing, z_scale, reduction, block, softcap=None):
    rows, cols = x.shape
    x = x.copy()
    losses = np.zeros(rows, np.float32)
    lse = np.zeros(rows, np.float32)
    z_losses = np.zeros(rows, np.float32) if z_scale else None
    valid = int((y != IGNORED).sum())
    mode(cross_entropy_kernel)[(rows,)](
        x, x.strides[0] // x.itemsize, y, 1, losses, z_losses, lse, 1, cols, valid, IGNORED,
        lse_square_scale=z_scale, label_smoothing=smoothing, reduction=reduction,
        RETURN_Z_LOSS=z_losses is not None, softcap=softcap, HAS_SOFTCAPPING=softcap is not None,
        BLOCK_SIZE=block, num_warps=8,
    )  # fmt: skip
    upstream = np.array([0.5], np.float32)
    mode(element_mul_kernel)[(rows,)](x, x.strides[0] // x.itemsize, upstream, cols, BLOCK_SIZE=block)
    return x, losses, lse, losses if z_losses is None else z_losses


def reference(x, y, smoothing, z_scale, reduction, softcap=None):
    x = x.astype(np.float64)
    slope = 1.0
    if softcap is not None:
        slope = 1 - np.tanh(x / softcap) ** 2
        x = softcap * np.tanh(x / softcap)
    rows, cols = x.shape
    top = x.max(axis=1, keepdims=True)
    lse = np.log(np.exp(x - top).sum(axis=1)) + top[:, 0]
    target = np.full((rows, cols), smoothing / cols)
    valid = y != IGNORED
    target[np.arange(rows)[valid], y[valid]] += 1 - smoothing
    z = z_scale * lse**2
    loss = lse - (target * x).sum(axis=1) + z
    grad = np.exp(x - lse[:, None]) * (1 + 2 * z_scale * lse[:, None]) - target
    grad *= slope
    for out in (loss, z, grad, lse):
        out[~valid] = 0
    if reduction == "mean":
        loss, z, grad = (value / valid.sum() for value in (loss, z, grad))
    return grad * 0.5, loss, lse, z if z_scale else loss


def case(seed, rows, cols, dtype="fp32"):
    x = (normal(seed, rows, cols) * 3).astype(DTYPES[dtype])
    y = np.random.default_rng(seed).integers(0, cols, rows).astype(np.int64)
    y[1::4] = IGNORED
    return x, y


@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize(
    ("smoothing", "z_scale", "reduction"),
    [(0.0, 0.0, "none"), (0.1, 0.0, "mean"), (0.0, 1e-3, "mean"), (0.2, 1e-2, "sum")],
)
def test_loss_and_gradient_over_the_logits(dtype, smoothing, z_scale, reduction):
    x, y = case(1, 9, 3001, dtype)
    found = launch(compiled, x, y, smoothing, z_scale, reduction, 1024)
    expected = reference(x, y, smoothing, z_scale, reduction)
    close(found[0], expected[0], dtype)
    for one, other in zip(found[1:], expected[1:], strict=True):
        close(one, other)


@pytest.mark.parametrize("cols", [1, 7, 32, 33, 100])
def test_both_modes(cols):
    x, y = case(cols, 5, cols, "bf16")
    found = in_both_modes(lambda mode: launch(mode, x, y, 0.1, 1e-3, "mean", 32))
    expected = reference(x, y, 0.1, 1e-3, "mean")
    close(found[0], expected[0], "bf16")
    for one, other in zip(found[1:], expected[1:], strict=True):
        close(one, other)


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_logits_bent_by_a_cap(dtype):
    x, y = case(3, 6, 75, dtype)
    found = in_both_modes(lambda mode: launch(mode, x, y, 0.1, 1e-3, "mean", 32, softcap=5.0))
    expected = reference(x, y, 0.1, 1e-3, "mean", softcap=5.0)
    close(found[0], expected[0], dtype)
    for one, other in zip(found[1:], expected[1:], strict=True):
        close(one, other)


def test_a_row_of_minus_infinity_but_for_its_label():
    x = np.full((2, 70), -np.inf, np.float32)
    x[:, 5] = 3
    y = np.array([5, IGNORED], np.int64)
    grad, losses, lse, _ = in_both_modes(lambda mode: launch(mode, x, y, 0.0, 0.0, "none", 128))
    assert not grad.any()
    assert not losses.any()
    assert lse[0] == 3
