"""Softmax over rows: one program a row, persistent programs that stride over the rows, and its gradient."""

# mypy: ignore-errors
from __future__ import annotations

import numpy as np
import pytest

import blocklang.triton as triton
import blocklang.triton.language as tl
from tests.programs.running import assert_close, compiled, in_both_modes


@triton.jit
def softmax_row(out_ptr, in_ptr, in_row_stride, out_row_stride, n_cols, BLOCK_SIZE: tl.constexpr):
    row_idx = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    row = tl.load(in_ptr + row_idx * in_row_stride + cols, mask=cols < n_cols, other=-float("inf"))
    shifted = row - tl.max(row, axis=0)
    numerator = tl.exp(shifted)
    tl.store(
        out_ptr + row_idx * out_row_stride + cols,
        numerator / tl.sum(numerator, axis=0),
        mask=cols < n_cols,
    )


@triton.jit
def softmax_persistent(
    out_ptr,
    in_ptr,
    in_row_stride,
    out_row_stride,
    n_rows,
    n_cols,
    BLOCK_SIZE: tl.constexpr,
    num_stages: tl.constexpr,
):
    first = tl.program_id(0)
    step = tl.num_programs(0)
    for row_idx in tl.range(first, n_rows, step, num_stages=num_stages):
        start_ptr = in_ptr + row_idx * in_row_stride
        cols = tl.arange(0, BLOCK_SIZE)
        mask = cols < n_cols
        row = tl.load(start_ptr + cols, mask=mask, other=-float("inf"))
        numerator = tl.exp(row - tl.max(row, axis=0))
        result = numerator / tl.sum(numerator, axis=0)
        out_start_ptr = out_ptr + row_idx * out_row_stride
        tl.store(out_start_ptr + cols, result, mask=mask)


@triton.jit
def softmax_online(out_ptr, in_ptr, in_row_stride, out_row_stride, n_cols, BLOCK_SIZE: tl.constexpr):
    """A row longer than a block: its maximum and its sum in one pass over the columns."""
    row_idx = tl.program_id(0).to(tl.int64)
    in_ptr += row_idx * in_row_stride
    out_ptr += row_idx * out_row_stride
    m = -float("inf")
    total = 0.0
    for start in range(0, n_cols, BLOCK_SIZE):
        cols = start + tl.arange(0, BLOCK_SIZE)
        x = tl.load(in_ptr + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
        new_m = tl.maximum(m, tl.max(x, 0))
        total = total * tl.exp(m - new_m) + tl.sum(tl.exp(x - new_m), 0)
        m = new_m
    for start in range(0, n_cols, BLOCK_SIZE):
        cols = start + tl.arange(0, BLOCK_SIZE)
        x = tl.load(in_ptr + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
        tl.store(out_ptr + cols, (tl.exp(x - m) / total).to(out_ptr.dtype.element_ty), mask=cols < n_cols)


@triton.jit
def softmax_backward(dx_ptr, dy_ptr, y_ptr, stride, n_cols, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(axis=0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    y = tl.load(y_ptr + pid * stride + cols, mask=mask, other=0.0)
    dy = tl.load(dy_ptr + pid * stride + cols, mask=mask, other=0.0)
    dot = tl.sum(y * dy, axis=0)
    tl.store(dx_ptr + pid * stride + cols, y * (dy - dot), mask=mask)


def softmax_in_numpy(x):
    numerator = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    return numerator / numerator.sum(axis=1, keepdims=True)


def run_rows(mode, x):
    out = np.full_like(x, 7)
    block = triton.next_power_of_2(x.shape[1])
    row = x.strides[0] // x.itemsize
    mode(softmax_row)[(x.shape[0],)](out, x, row, out.shape[1], x.shape[1], BLOCK_SIZE=block, num_warps=4)
    return (out,)


def run_persistent(mode, x, programs):
    n_rows, n_cols = x.shape
    out = np.full_like(x, 7)
    mode(softmax_persistent)[(programs, 1, 1)](
        out, x, x.strides[0] // x.itemsize, n_cols, n_rows, n_cols,
        BLOCK_SIZE=triton.next_power_of_2(n_cols), num_stages=4, num_warps=8,
    )  # fmt: skip
    return (out,)


def run_online(mode, x, block):
    out = np.full_like(x, 7)
    mode(softmax_online)[(x.shape[0],)](
        out, x, x.strides[0] // x.itemsize, x.shape[1], x.shape[1], BLOCK_SIZE=block
    )
    return (out,)


def run_backward(mode, y, dy):
    dx = np.full_like(y, 7)
    mode(softmax_backward)[(y.shape[0],)](
        dx, dy, y, y.shape[1], y.shape[1], BLOCK_SIZE=triton.next_power_of_2(y.shape[1])
    )
    return (dx,)


def numbers(*shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


@pytest.mark.parametrize("shape", [(1, 1), (5, 33), (3, 128), (7, 1000)])
def test_rows(shape):
    x = 5 * numbers(*shape)
    (out,) = in_both_modes(run_rows, x)
    assert_close(out, softmax_in_numpy(x), 1e-5)


def test_rows_of_a_larger_array():
    x = numbers(823, 1400)[:, 100:881]
    (out,) = run_rows(compiled, x)
    assert_close(out, softmax_in_numpy(x), 1e-5)


@pytest.mark.parametrize("programs", [1, 3, 8, 16])
def test_persistent_programs(programs):
    x = numbers(11, 77)
    (out,) = in_both_modes(run_persistent, x, programs)
    assert_close(out, softmax_in_numpy(x), 1e-5)
    (rows,) = run_rows(compiled, x)
    assert (out == rows).all()


def test_persistent_programs_over_many_rows():
    x = numbers(1823, 781)
    (out,) = run_persistent(compiled, x, 6)
    assert_close(out, softmax_in_numpy(x), 1e-5)


def test_as_many_programs_as_the_machine_holds():
    """The compiled kernel says what it needs, the driver what there is, and the launch skips the compiler."""
    properties = triton.runtime.driver.active.utils.get_device_properties(0)
    x = numbers(100, 333)
    n_rows, n_cols = x.shape
    y, block, stages, warps = np.full_like(x, 7), triton.next_power_of_2(n_cols), 4, 8
    kernel = softmax_persistent.warmup(
        y, x, n_cols, n_cols, n_rows, n_cols, BLOCK_SIZE=block, num_stages=stages, num_warps=warps, grid=(1,)
    )
    kernel._init_handles()
    occupancy = properties["max_num_regs"] // (kernel.n_regs * properties["warpSize"] * warps)
    occupancy = min(occupancy, properties["max_shared_mem"] // kernel.metadata.shared)
    programs = min(properties["multiprocessor_count"] * occupancy, n_rows)
    kernel[(programs, 1, 1)](y, x, n_cols, n_cols, n_rows, n_cols, block, stages)
    assert_close(y, softmax_in_numpy(x), 1e-5)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("cols", [1, 64, 259])
def test_online(dtype, cols):
    x = (4 * numbers(5, cols)).astype(dtype)
    (out,) = in_both_modes(run_online, x, 64)
    assert_close(out, softmax_in_numpy(x.astype(np.float32)), 1e-5 if dtype == np.float32 else 1e-3)


@pytest.mark.parametrize("shape", [(4, 31), (9, 256)])
def test_backward(shape):
    y = softmax_in_numpy(numbers(*shape)).astype(np.float32)
    dy = numbers(*shape, seed=1)
    (dx,) = in_both_modes(run_backward, y, dy)
    wide_y, wide_dy = y.astype(np.float64), dy.astype(np.float64)
    expected = wide_y * (wide_dy - (wide_y * wide_dy).sum(axis=1, keepdims=True))
    assert_close(dx, expected, 1e-5)
