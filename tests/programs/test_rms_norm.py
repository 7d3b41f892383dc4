"""RMS norm: forward keeps 1/rms per row; backward sums the weight's gradient per program over its rows."""

# mypy: ignore-errors
from __future__ import annotations

import numpy as np
import pytest

import blocklang.triton as triton
import blocklang.triton.language as tl
from tests.programs.running import close, compiled, in_both_modes, normal

NONE: tl.constexpr = tl.constexpr(-1)
LLAMA: tl.constexpr = tl.constexpr(0)
GEMMA: tl.constexpr = tl.constexpr(1)


@triton.jit
def rms_norm_forward_kernel(
    Y_ptr, Y_row_stride, X_ptr, X_row_stride, W_ptr, RSTD_ptr,
    n_cols, eps, offset, casting_mode: tl.constexpr, BLOCK_SIZE: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    Y_ptr += row * Y_row_stride
    X_ptr += row * X_row_stride

    x = tl.load(X_ptr + cols, mask=mask, other=0)
    x_dtype = x.dtype
    w = tl.load(W_ptr + cols, mask=mask, other=0)
    if casting_mode == LLAMA:
        x = x.to(tl.float32)
    if casting_mode == GEMMA:
        w = w.to(tl.float32)
        x = x.to(tl.float32)
    if casting_mode == NONE:
        eps = eps.to(x_dtype)
        offset = offset.to(x_dtype)

    mean_square = tl.sum(x * x, axis=0) / n_cols
    rstd = tl.rsqrt(mean_square + eps)
    tl.store(RSTD_ptr + row, rstd)
    x = x * rstd
    if casting_mode == LLAMA:
        x = x.to(x_dtype)
    y = x * (offset + w)
    if casting_mode == GEMMA:
        y = y.to(x_dtype)
    tl.store(Y_ptr + cols, y, mask=mask)


@triton.jit
def rms_norm_backward_kernel(
    dY_ptr, dY_row_stride, dX_ptr, dX_row_stride, X_ptr, X_row_stride, W_ptr, RSTD_ptr, dW_ptr, dW_row_stride,
    n_rows, n_cols, offset, rows_per_program: tl.constexpr, BLOCK_SIZE: tl.constexpr,
):  # fmt: skip
    block = tl.program_id(0).to(tl.int64)
    row_start = block * rows_per_program
    row_end = min((block + 1) * rows_per_program, n_rows)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    dw = tl.zeros((BLOCK_SIZE,), dtype=tl.float32)
    w = tl.load(W_ptr + cols, mask=mask, other=0.0) + offset

    for row in range(row_start, row_end):
        dy = tl.load(dY_ptr + row * dY_row_stride + cols, mask=mask, other=0.0)
        x = tl.load(X_ptr + row * X_row_stride + cols, mask=mask, other=0.0)
        rstd = tl.load(RSTD_ptr + row)
        x = x.to(tl.float32)
        m = (dy * w).to(tl.float32)
        dx = rstd * m
        dx += rstd * (-(1 / n_cols) * rstd * rstd * tl.sum(m * x, axis=0) * x)
        dw += dy * (x * rstd)
        tl.store(dX_ptr + row * dX_row_stride + cols, dx.to(X_ptr.dtype.element_ty), mask=mask)
    tl.store(dW_ptr + block * dW_row_stride + cols, dw, mask=mask)


def launch(mode, x, w, dy, offset, casting, programs):
    rows, cols = x.shape
    y, rstd, dx = np.zeros_like(x), np.zeros(rows, np.float32), np.zeros_like(x)
    block = triton.next_power_of_2(cols)
    mode(rms_norm_forward_kernel)[(rows,)](
        y, cols, x, cols, w, rstd, cols, 1e-6, offset, casting_mode=casting.value, BLOCK_SIZE=block
    )
    dw = np.zeros((programs, cols), np.float32)
    mode(rms_norm_backward_kernel)[(programs,)](
        dy, cols, dx, cols, x, cols, w, rstd, dw, cols, rows, cols, offset,
        rows_per_program=triton.cdiv(rows, programs), BLOCK_SIZE=block,
    )  # fmt: skip
    return y, rstd, dx, dw


def reference(x, w, dy, offset):
    x, dy = x.astype(np.float64), dy.astype(np.float64)
    w = w.astype(np.float64) + offset
    rstd = 1 / np.sqrt((x * x).mean(axis=1) + 1e-6)
    n = x * rstd[:, None]
    m = dy * w
    dx = rstd[:, None] * (m - n * (m * n).mean(axis=1, keepdims=True))
    return n * w, rstd, dx, (dy * n).sum(axis=0)


@pytest.mark.parametrize("cols", [1, 40, 513, 2048])
@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("casting", [LLAMA, GEMMA])
def test_forward_and_backward(dtype, cols, casting):
    offset = 1.0 if casting is GEMMA else 0.0
    x, dy = normal(1, 13, cols, dtype=dtype), normal(2, 13, cols, dtype=dtype)
    w = normal(3, cols, dtype=dtype)
    y, rstd, dx, dw = launch(compiled, x, w, dy, offset, casting, 4)
    expected = reference(x, w, dy, offset)
    close(y, expected[0], dtype)
    close(rstd, expected[1])
    # With one column the two terms of dx cancel but for eps: the error is that of the terms.
    term = expected[1][:, None] * dy.astype(np.float64) * (w.astype(np.float64) + offset)
    close(dx, expected[2], dtype, scale=np.abs(term).max())
    close(dw.sum(axis=0), expected[3], dtype)


@pytest.mark.parametrize("casting", [NONE, LLAMA, GEMMA])
@pytest.mark.parametrize("cols", [5, 64])
def test_both_modes(casting, cols):
    dtype = "fp32" if casting is NONE else "bf16"
    x, dy = normal(1, 5, cols, dtype=dtype), normal(2, 5, cols, dtype=dtype)
    w = normal(3, cols, dtype=dtype)
    in_both_modes(lambda mode: launch(mode, x, w, dy, 0.25, casting, 2))
