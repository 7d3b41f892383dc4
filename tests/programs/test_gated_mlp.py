"""SwiGLU and GEGLU (by tanh), forward and backward in place, in the manner of fused MLP kernels."""

# mypy: ignore-errors
from __future__ import annotations

import math

import numpy as np
import pytest

import blocklang.triton as triton
import blocklang.triton.language as tl
from blocklang.triton.language.extra.libdevice import tanh
from tests.programs.running import close, compiled, in_both_modes, normal


def calculate_settings(n):
    block = triton.next_power_of_2(n)
    num_warps = 4
    if block >= 32768:
        num_warps = 32
    elif block >= 8192:
        num_warps = 16
    elif block >= 2048:
        num_warps = 8
    return block, num_warps


@triton.jit
def silu(x):
    return x * tl.sigmoid(x)


@triton.jit
def swiglu_forward_kernel(a_ptr, b_ptr, c_ptr, stride, n_cols: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    a_ptr += row * stride
    b_ptr += row * stride
    c_ptr += row * stride
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    a = tl.load(a_ptr + cols, mask=mask, other=0).to(tl.float32)
    b = tl.load(b_ptr + cols, mask=mask, other=0)
    c = silu(a).cast(b.dtype) * b
    tl.store(c_ptr + cols, c, mask=mask)


@triton.jit
def swiglu_backward_kernel(dc_ptr, a_ptr, b_ptr, stride, n_cols: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    dc_ptr += row * stride
    a_ptr += row * stride
    b_ptr += row * stride
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    dc = tl.load(dc_ptr + cols, mask=mask, other=0)
    a = tl.load(a_ptr + cols, mask=mask, other=0).to(tl.float32)
    b = tl.load(b_ptr + cols, mask=mask, other=0)
    s = tl.sigmoid(a)
    silu_a = a * s
    db = dc * silu_a
    da = dc * (silu_a * (1 - s) + s) * b
    tl.store(a_ptr + cols, da, mask=mask)
    tl.store(b_ptr + cols, db, mask=mask)


@triton.jit
def geglu_forward_kernel(a, b, c, stride, n_cols: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    a += row * stride
    b += row * stride
    c += row * stride
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    a_row = tl.load(a + cols, mask=mask, other=0).to(tl.float32)
    b_row = tl.load(b + cols, mask=mask, other=0)
    sqrt_2_over_pi = 0.7978845608028654
    inner = sqrt_2_over_pi * (a_row + 0.044715 * a_row * a_row * a_row)
    gelu = 0.5 * a_row * (1 + tanh(inner))
    tl.store(c + cols, gelu.cast(b_row.dtype) * b_row, mask=mask)


@triton.jit
def geglu_backward_kernel(dc, a, b, stride, n_cols: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    dc += row * stride
    a += row * stride
    b += row * stride
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    dc_row = tl.load(dc + cols, mask=mask, other=0)
    a_row = tl.load(a + cols, mask=mask, other=0).to(tl.float32)
    b_row = tl.load(b + cols, mask=mask, other=0)
    sqrt_2_over_pi = 0.7978845608028654
    inner = sqrt_2_over_pi * (a_row + 0.044715 * a_row * a_row * a_row)
    t = tanh(inner)
    gelu = 0.5 * a_row * (1 + t)
    db_row = dc_row.cast(tl.float32) * gelu
    term1 = 0.5 * (1 + t)
    term2 = 0.5 * a_row * (1 - t * t) * (sqrt_2_over_pi * (1.0 + 3.0 * 0.044715 * a_row * a_row))
    da_row = dc_row * b_row * (term1 + term2)
    tl.store(a + cols, da_row, mask=mask)
    tl.store(b + cols, db_row.to(dc_row.dtype), mask=mask)


KERNELS = {
    "swiglu": (swiglu_forward_kernel, swiglu_backward_kernel),
    "geglu": (geglu_forward_kernel, geglu_backward_kernel),
}


def launch(mode, name, a, b, dc):
    forward, backward = KERNELS[name]
    rows, cols = a.shape
    c = np.empty_like(a)
    block, num_warps = calculate_settings(cols)
    stride = a.strides[0] // a.itemsize
    mode(forward)[(rows,)](a, b, c, stride, n_cols=cols, BLOCK_SIZE=block, num_warps=num_warps)
    da, db = a.copy(), b.copy()
    mode(backward)[(rows,)](dc, da, db, stride, n_cols=cols, BLOCK_SIZE=block, num_warps=num_warps)
    return c, da, db


def reference(name, a, b, dc):
    a, b, dc = (value.astype(np.float64) for value in (a, b, dc))
    if name == "swiglu":
        s = 1 / (1 + np.exp(-a))
        act, slope = a * s, s * (1 + a * (1 - s))
    else:
        k = math.sqrt(2 / math.pi)
        t = np.tanh(k * (a + 0.044715 * a**3))
        act = 0.5 * a * (1 + t)
        slope = 0.5 * (1 + t) + 0.5 * a * (1 - t * t) * k * (1 + 3 * 0.044715 * a * a)
    return act * b, dc * b * slope, dc * act


@pytest.mark.parametrize("cols", [1, 77, 4097])
@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("name", ["swiglu", "geglu"])
def test_forward_and_backward(name, dtype, cols):
    a, b, dc = (normal(seed, 6, cols, dtype=dtype) for seed in (1, 2, 3))
    for found, expected in zip(launch(compiled, name, a, b, dc), reference(name, a, b, dc), strict=True):
        close(found, expected, dtype)


@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("name", ["swiglu", "geglu"])
def test_both_modes(name, dtype):
    a, b, dc = (normal(seed, 3, 37, dtype=dtype) for seed in (1, 2, 3))
    in_both_modes(lambda mode: launch(mode, name, a, b, dc))


@pytest.mark.parametrize("name", ["swiglu", "geglu"])
def test_large_gates_saturate(name):
    a = np.array([[-100, -30, 30, 88, 1000, 0, -0.0]], np.float32)
    b = np.ones_like(a)
    c, da, db = in_both_modes(lambda mode: launch(mode, name, a, b, b))
    np.testing.assert_allclose(c, np.maximum(a, 0), atol=1e-10)
    np.testing.assert_allclose(db, np.maximum(a, 0), atol=1e-10)
    np.testing.assert_allclose(da, np.where(a == 0, 0.5, (a > 0).astype(float)), atol=1e-10)
