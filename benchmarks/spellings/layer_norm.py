"""Layer norm of rows, with a weight and a bias per column."""

# mypy: ignore-errors
from __future__ import annotations

import numpy as np

import blocklang as bl
import blocklang.language as tl
from benchmarks.spellings.family import Array, Family, Problem

EPS = 1e-5


def make(small: bool) -> Problem:
    rows, cols = (13, 76) if small else (96, 1000)
    random = np.random.default_rng(0)
    x = random.standard_normal((rows, cols)).astype(np.float32)
    weight, bias = (random.standard_normal(cols).astype(np.float32) for _ in range(2))
    exact = x.astype(np.float64)
    centred = exact - exact.mean(1, keepdims=True)
    expected = centred / np.sqrt((centred**2).mean(1, keepdims=True) + EPS) * weight + bias
    return Problem({"x": x, "weight": weight, "bias": bias}, np.empty_like(x), expected, 1e-6)


layer_norm = Family("layer_norm", make)


def _arrays(p: Problem) -> tuple[Array, ...]:
    return p.inputs["x"], p.inputs["weight"], p.inputs["bias"]


def _block(p: Problem) -> int:
    return bl.next_power_of_2(p.out.shape[1])


@bl.jit
def row_offsets(out_ptr, x_ptr, w_ptr, b_ptr, n_cols, stride, eps, BLOCK: bl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride + cols, mask=mask, other=0.0)
    mean = tl.sum(x, 0) / n_cols
    centred = tl.where(mask, x - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, 0) / n_cols + eps)
    weight = tl.load(w_ptr + cols, mask=mask)
    bias = tl.load(b_ptr + cols, mask=mask)
    tl.store(out_ptr + row * stride + cols, centred * scale * weight + bias, mask=mask)


@layer_norm.spelling("offsets of a row, mask")
def _(p: Problem) -> Array:
    rows, cols = p.out.shape
    row_offsets[(rows,)](p.out, *_arrays(p), cols, cols, EPS, BLOCK=_block(p))
    return p.out


@layer_norm.spelling("in place")
def _(p: Problem) -> Array:
    x, weight, bias = _arrays(p)
    rows, cols = x.shape
    row_offsets[(rows,)](x, x, weight, bias, cols, cols, EPS, BLOCK=_block(p))
    return x


@bl.jit
def swapped_mask(out_ptr, x_ptr, w_ptr, b_ptr, n_cols, stride, eps, BLOCK: bl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x_ptr += row * stride
    out_ptr += row * stride
    x = tl.load(x_ptr + cols, mask=n_cols > cols, other=0.0)
    mean = tl.sum(x, 0) / n_cols
    centred = tl.where(n_cols > cols, x - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, 0) / n_cols + eps)
    y = centred * scale * tl.load(w_ptr + cols, mask=n_cols > cols)
    tl.store(out_ptr + cols, y + tl.load(b_ptr + cols, mask=n_cols > cols), mask=n_cols > cols)


@layer_norm.spelling("row pointer first, n > cols")
def _(p: Problem) -> Array:
    rows, cols = p.out.shape
    swapped_mask[(rows,)](p.out, *_arrays(p), cols, cols, EPS, BLOCK=_block(p))
    return p.out


@bl.jit
def whole_block(out_ptr, x_ptr, w_ptr, b_ptr, eps, BLOCK: bl.constexpr):
    cols = tl.arange(0, BLOCK)
    offsets = tl.program_id(0) * BLOCK + cols
    x = tl.load(x_ptr + offsets)
    centred = x - tl.sum(x, 0) / BLOCK
    scale = 1 / tl.sqrt(tl.sum(centred * centred, 0) / BLOCK + eps)
    tl.store(out_ptr + offsets, centred * scale * tl.load(w_ptr + cols) + tl.load(b_ptr + cols))


@layer_norm.spelling("block as long as the row, no mask")
def _(p: Problem) -> Array:
    rows, cols = p.out.shape
    whole_block[(rows,)](p.out, *_arrays(p), EPS, BLOCK=cols)
    return p.out


@bl.jit
def wide_offsets(out_ptr, x_ptr, w_ptr, b_ptr, n_cols, stride, eps, BLOCK: bl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK).to(tl.int64)
    mask = cols < n_cols
    offsets = row * stride + cols
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    mean = tl.sum(x, 0) / n_cols
    centred = tl.where(mask, x - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, 0) / n_cols + eps)
    y = centred * scale * tl.load(w_ptr + cols, mask=mask) + tl.load(b_ptr + cols, mask=mask)
    tl.store(out_ptr + offsets, y, mask=mask)


@layer_norm.spelling("int64 offsets")
def _(p: Problem) -> Array:
    rows, cols = p.out.shape
    wide_offsets[(rows,)](p.out, *_arrays(p), cols, cols, EPS, BLOCK=_block(p))
    return p.out


@bl.jit
def wrapped(out_ptr, x_ptr, w_ptr, b_ptr, n_cols, stride, eps, BLOCK: bl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    inside = cols % n_cols
    mask = cols < n_cols
    x = tl.where(mask, tl.load(x_ptr + row * stride + inside), 0.0)
    mean = tl.sum(x, 0) / n_cols
    centred = tl.where(mask, x - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, 0) / n_cols + eps)
    y = centred * scale * tl.load(w_ptr + inside) + tl.load(b_ptr + inside)
    tl.store(out_ptr + row * stride + cols, y, mask=mask)


@layer_norm.spelling("cols % n")
def _(p: Problem) -> Array:
    rows, cols = p.out.shape
    wrapped[(rows,)](p.out, *_arrays(p), cols, cols, EPS, BLOCK=_block(p))
    return p.out


@bl.jit
def window(out_ptr, x_ptr, w_ptr, b_ptr, n_rows, n_cols, stride, eps, BLOCK: bl.constexpr):
    row = tl.program_id(0)
    source = tl.make_block_ptr(x_ptr, (n_rows, n_cols), (stride, 1), (row, 0), (1, BLOCK), (1, 0))
    target = tl.make_block_ptr(out_ptr, (n_rows, n_cols), (stride, 1), (row, 0), (1, BLOCK), (1, 0))
    weights = tl.make_block_ptr(w_ptr, (n_cols,), (1,), (0,), (BLOCK,), (0,))
    biases = tl.make_block_ptr(b_ptr, (n_cols,), (1,), (0,), (BLOCK,), (0,))
    x = tl.load(source, boundary_check=(0, 1))
    mean = tl.sum(x, 1, keep_dims=True) / n_cols
    centred = tl.where(tl.arange(0, BLOCK)[None, :] < n_cols, x - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, 1, keep_dims=True) / n_cols + eps)
    weight, bias = tl.load(weights, boundary_check=(0,)), tl.load(biases, boundary_check=(0,))
    tl.store(target, centred * scale * weight[None, :] + bias[None, :], boundary_check=(0, 1))


@layer_norm.spelling("block pointers")
def _(p: Problem) -> Array:
    rows, cols = p.out.shape
    window[(rows,)](p.out, *_arrays(p), rows, cols, cols, EPS, BLOCK=_block(p))
    return p.out


@bl.jit
def described(out_ptr, x_ptr, w_ptr, b_ptr, n_rows, n_cols, eps, BLOCK: bl.constexpr):
    row = tl.program_id(0)
    source = tl.make_tensor_descriptor(x_ptr, [n_rows, n_cols], [n_cols, 1], [1, BLOCK])
    target = tl.make_tensor_descriptor(out_ptr, [n_rows, n_cols], [n_cols, 1], [1, BLOCK])
    weights = tl.make_tensor_descriptor(w_ptr, [n_cols], [1], [BLOCK])
    biases = tl.make_tensor_descriptor(b_ptr, [n_cols], [1], [BLOCK])
    x = source.load([row, 0])
    mean = tl.sum(x, 1)[:, None] / n_cols
    centred = tl.where(tl.arange(0, BLOCK)[None, :] < n_cols, x - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, 1)[:, None] / n_cols + eps)
    target.store([row, 0], centred * scale * weights.load([0])[None, :] + biases.load([0])[None, :])


@layer_norm.spelling("descriptors")
def _(p: Problem) -> Array:
    rows, cols = p.out.shape
    described[(rows,)](p.out, *_arrays(p), rows, cols, EPS, BLOCK=_block(p))
    return p.out


@bl.jit
def persistent(out_ptr, x_ptr, w_ptr, b_ptr, n_rows, n_cols, stride, eps, BLOCK: bl.constexpr):
    first, step = tl.program_id(0), tl.num_programs(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x_ptrs = x_ptr + first * stride + cols
    out_ptrs = out_ptr + first * stride + cols
    for _ in tl.range(first, n_rows, step):
        x = tl.load(x_ptrs, mask=mask, other=0.0)
        mean = tl.sum(x, 0) / n_cols
        centred = tl.where(mask, x - mean, 0.0)
        scale = 1 / tl.sqrt(tl.sum(centred * centred, 0) / n_cols + eps)
        y = centred * scale * tl.load(w_ptr + cols, mask=mask) + tl.load(b_ptr + cols, mask=mask)
        tl.store(out_ptrs, y, mask=mask)
        x_ptrs += step * stride
        out_ptrs += step * stride


@layer_norm.spelling("carried pointers")
def _(p: Problem) -> Array:
    rows, cols = p.out.shape
    persistent[(8,)](p.out, *_arrays(p), rows, cols, cols, EPS, BLOCK=_block(p))
    return p.out


@bl.jit(do_not_specialize=["row_stride", "col_stride"])
def any_strides(out_ptr, x_ptr, w_ptr, b_ptr, n_cols, row_stride, col_stride, eps, BLOCK: bl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    offsets = row * row_stride + cols * col_stride
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    mean = tl.sum(x, 0) / n_cols
    centred = tl.where(mask, x - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, 0) / n_cols + eps)
    y = centred * scale * tl.load(w_ptr + cols, mask=mask) + tl.load(b_ptr + cols, mask=mask)
    tl.store(out_ptr + offsets, y, mask=mask)


@layer_norm.spelling("strides unknown")
def _(p: Problem) -> Array:
    rows, cols = p.out.shape
    any_strides[(rows,)](p.out, *_arrays(p), cols, cols, 1, EPS, BLOCK=_block(p))
    return p.out


@bl.jit
def several_rows(
    out_ptr, x_ptr, w_ptr, b_ptr, n_rows, n_cols, stride, eps, ROWS: bl.constexpr, BLOCK: bl.constexpr
):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    mask = (rows[:, None] < n_rows) & (cols[None, :] < n_cols)
    offsets = rows[:, None] * stride + cols[None, :]
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    mean = tl.sum(x, 1) / n_cols
    centred = tl.where(cols[None, :] < n_cols, x - mean[:, None], 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, 1) / n_cols + eps)
    weight = tl.load(w_ptr + cols, mask=cols < n_cols)
    bias = tl.load(b_ptr + cols, mask=cols < n_cols)
    tl.store(out_ptr + offsets, centred * scale[:, None] * weight[None, :] + bias[None, :], mask=mask)


@layer_norm.spelling("four rows a program")
def _(p: Problem) -> Array:
    rows, cols = p.out.shape
    several_rows[(bl.cdiv(rows, 4),)](p.out, *_arrays(p), rows, cols, cols, EPS, ROWS=4, BLOCK=_block(p))
    return p.out


@layer_norm.spelling("five rows a program")
def _(p: Problem) -> Array:
    rows, cols = p.out.shape
    several_rows[(bl.cdiv(rows, 5),)](p.out, *_arrays(p), rows, cols, cols, EPS, ROWS=5, BLOCK=cols + 1)
    return p.out
