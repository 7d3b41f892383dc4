"""Softmax of rows, one program a row unless the spelling says otherwise."""

# mypy: ignore-errors
from __future__ import annotations

import numpy as np

import blocklang as bl
import blocklang.language as tl
from benchmarks.spellings.family import Array, Family, Problem


def make(small: bool) -> Problem:
    rows, cols = (13, 76) if small else (96, 1000)
    x = np.random.default_rng(0).standard_normal((rows, cols)).astype(np.float32)
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    return Problem({"x": x}, np.empty_like(x), e / e.sum(1, keepdims=True), 1e-6)


softmax = Family("softmax", make)


def _block(p: Problem) -> int:
    return bl.next_power_of_2(p.out.shape[1])


@bl.jit
def row_offsets(out_ptr, x_ptr, n_cols, stride, BLOCK: bl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride + cols, mask=mask, other=-float("inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(out_ptr + row * stride + cols, e / tl.sum(e, 0), mask=mask)


@softmax.spelling("offsets of a row, mask")
def _(p: Problem) -> Array:
    rows, cols = p.out.shape
    row_offsets[(rows,)](p.out, p.inputs["x"], cols, cols, BLOCK=_block(p))
    return p.out


@softmax.spelling("in place")
def _(p: Problem) -> Array:
    x = p.inputs["x"]
    rows, cols = x.shape
    row_offsets[(rows,)](x, x, cols, cols, BLOCK=_block(p))
    return x


@bl.jit
def swapped_mask(out_ptr, x_ptr, n_cols, stride, BLOCK: bl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x_ptr += row * stride
    out_ptr += row * stride
    x = tl.load(x_ptr + cols, mask=n_cols > cols, other=-float("inf"))
    x = x - tl.max(x, 0)
    tl.store(out_ptr + cols, tl.exp(x) / tl.sum(tl.exp(x), 0), mask=n_cols > cols)


@softmax.spelling("row pointer first, n > cols")
def _(p: Problem) -> Array:
    rows, cols = p.out.shape
    swapped_mask[(rows,)](p.out, p.inputs["x"], cols, cols, BLOCK=_block(p))
    return p.out


@bl.jit
def whole_block(out_ptr, x_ptr, stride, BLOCK: bl.constexpr):
    start = tl.program_id(0) * stride
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + start + cols)
    e = tl.exp(x - tl.max(x, 0))
    tl.store(out_ptr + start + cols, e / tl.sum(e, 0))


@softmax.spelling("block as long as the row, no mask")
def _(p: Problem) -> Array:
    rows, cols = p.out.shape
    whole_block[(rows,)](p.out, p.inputs["x"], cols, BLOCK=cols)
    return p.out


@bl.jit
def wide_offsets(out_ptr, x_ptr, n_cols, stride, BLOCK: bl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK).to(tl.int64)
    offsets = row * stride + cols
    mask = cols < n_cols
    x = tl.load(x_ptr + offsets, mask=mask, other=-float("inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(out_ptr + offsets, e / tl.sum(e, 0), mask=mask)


@softmax.spelling("int64 offsets")
def _(p: Problem) -> Array:
    rows, cols = p.out.shape
    wide_offsets[(rows,)](p.out, p.inputs["x"], cols, cols, BLOCK=_block(p))
    return p.out


@bl.jit
def wrapped(out_ptr, x_ptr, n_cols, stride, BLOCK: bl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + cols % n_cols)
    x = tl.where(cols < n_cols, x, -float("inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(out_ptr + row * stride + cols, e / tl.sum(e, 0), mask=cols < n_cols)


@softmax.spelling("cols % n")
def _(p: Problem) -> Array:
    rows, cols = p.out.shape
    wrapped[(rows,)](p.out, p.inputs["x"], cols, cols, BLOCK=_block(p))
    return p.out


@bl.jit
def window(out_ptr, x_ptr, n_rows, n_cols, stride, BLOCK: bl.constexpr):
    row = tl.program_id(0)
    source = tl.make_block_ptr(x_ptr, (n_rows, n_cols), (stride, 1), (row, 0), (1, BLOCK), (1, 0))
    target = tl.make_block_ptr(out_ptr, (n_rows, n_cols), (stride, 1), (row, 0), (1, BLOCK), (1, 0))
    x = tl.load(source, boundary_check=(0, 1))
    x = tl.where(tl.arange(0, BLOCK)[None, :] < n_cols, x, -float("inf"))
    e = tl.exp(x - tl.max(x, 1, keep_dims=True))
    tl.store(target, e / tl.sum(e, 1, keep_dims=True), boundary_check=(0, 1))


@softmax.spelling("block pointers")
def _(p: Problem) -> Array:
    rows, cols = p.out.shape
    window[(rows,)](p.out, p.inputs["x"], rows, cols, cols, BLOCK=_block(p))
    return p.out


@bl.jit
def described(out_ptr, x_ptr, n_rows, n_cols, BLOCK: bl.constexpr):
    row = tl.program_id(0)
    source = tl.make_tensor_descriptor(x_ptr, [n_rows, n_cols], [n_cols, 1], [1, BLOCK])
    target = tl.make_tensor_descriptor(out_ptr, [n_rows, n_cols], [n_cols, 1], [1, BLOCK])
    x = tl.where(tl.arange(0, BLOCK)[None, :] < n_cols, source.load([row, 0]), -float("inf"))
    e = tl.exp(x - tl.max(x, 1)[:, None])
    target.store([row, 0], e / tl.sum(e, 1)[:, None])


@softmax.spelling("descriptors")
def _(p: Problem) -> Array:
    rows, cols = p.out.shape
    described[(rows,)](p.out, p.inputs["x"], rows, cols, BLOCK=_block(p))
    return p.out


@bl.jit
def persistent(out_ptr, x_ptr, n_rows, n_cols, stride, BLOCK: bl.constexpr):
    first, step = tl.program_id(0), tl.num_programs(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x_ptrs = x_ptr + first * stride + cols
    out_ptrs = out_ptr + first * stride + cols
    for _ in tl.range(first, n_rows, step):
        x = tl.load(x_ptrs, mask=mask, other=-float("inf"))
        e = tl.exp(x - tl.max(x, 0))
        tl.store(out_ptrs, e / tl.sum(e, 0), mask=mask)
        x_ptrs += step * stride
        out_ptrs += step * stride


@softmax.spelling("carried pointers")
def _(p: Problem) -> Array:
    rows, cols = p.out.shape
    persistent[(8,)](p.out, p.inputs["x"], rows, cols, cols, BLOCK=_block(p))
    return p.out


@bl.jit(do_not_specialize=["row_stride", "col_stride"])
def any_strides(out_ptr, x_ptr, n_cols, row_stride, col_stride, BLOCK: bl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    offsets = row * row_stride + cols * col_stride
    x = tl.load(x_ptr + offsets, mask=mask, other=-float("inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(out_ptr + offsets, e / tl.sum(e, 0), mask=mask)


@softmax.spelling("strides unknown")
def _(p: Problem) -> Array:
    rows, cols = p.out.shape
    any_strides[(rows,)](p.out, p.inputs["x"], cols, cols, 1, BLOCK=_block(p))
    return p.out


@bl.jit
def several_rows(out_ptr, x_ptr, n_rows, n_cols, stride, ROWS: bl.constexpr, BLOCK: bl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    mask = (rows[:, None] < n_rows) & (cols[None, :] < n_cols)
    offsets = rows[:, None] * stride + cols[None, :]
    x = tl.load(x_ptr + offsets, mask=mask, other=-float("inf"))
    e = tl.exp(x - tl.max(x, 1)[:, None])
    tl.store(out_ptr + offsets, e / tl.sum(e, 1)[:, None], mask=mask)


@softmax.spelling("four rows a program")
def _(p: Problem) -> Array:
    rows, cols = p.out.shape
    several_rows[(bl.cdiv(rows, 4),)](p.out, p.inputs["x"], rows, cols, cols, ROWS=4, BLOCK=_block(p))
    return p.out


@softmax.spelling("five rows a program")
def _(p: Problem) -> Array:
    rows, cols = p.out.shape
    several_rows[(bl.cdiv(rows, 5),)](p.out, p.inputs["x"], rows, cols, cols, ROWS=5, BLOCK=cols + 1)
    return p.out
