"""Kernels whose reports are read; `*_ptr` point to f32, `*_index` to i32, the rest is i32 or constant."""

# mypy: ignore-errors
from __future__ import annotations

import blocklang.language as tl
from blocklang.jit import jit


@jit
def gathered(out_ptr, table_ptr, rows_index, n, stride, BLOCK: tl.constexpr):
    """A row per lane: the address of each comes from memory."""
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row = tl.load(rows_index + lanes, mask=lanes < n)
    tl.store(out_ptr + lanes, tl.load(table_ptr + row * stride, mask=lanes < n), mask=lanes < n)


@jit
def rows_of_a_table(out_ptr, table_ptr, rows_index, stride, ROWS: tl.constexpr, COLS: tl.constexpr):
    """A row per row: its address comes from memory, its elements are consecutive."""
    i, j = tl.arange(0, ROWS), tl.arange(0, COLS)
    row = tl.load(rows_index + i)
    x = tl.load(table_ptr + row[:, None] * stride + j[None, :])
    tl.store(out_ptr + i[:, None] * COLS + j[None, :], x)


@jit
def transposed(out_ptr, x_ptr, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    tl.store(out_ptr + j * N + i, tl.load(x_ptr + i * N + j) + 1)


@jit
def strides_of_the_launch(out_ptr, x_ptr, column, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    tl.store(out_ptr + lanes, tl.load(x_ptr + lanes * column))


@jit
def shapes_of_access(out_ptr, x_ptr, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    total = tl.load(x_ptr) + tl.load(x_ptr + 2 * lanes) + tl.load(x_ptr + lanes // 4)
    total += tl.load(x_ptr + (BLOCK - 1) - lanes) + tl.load(x_ptr + 16 * lanes)
    tl.store(out_ptr + lanes, total, mask=(lanes % 3) == 0)


@jit
def histogram_of(out_ptr, keys_index, BLOCK: tl.constexpr):
    tl.atomic_add(out_ptr + tl.load(keys_index + tl.arange(0, BLOCK)), 1.0)
