"""Kernels that store along another axis than they load."""

# mypy: ignore-errors
from __future__ import annotations

import blocklang as bl
import blocklang.language as tl


@bl.jit
def transpose(x, out, M, N, TALL: bl.constexpr, WIDE: bl.constexpr):
    i = tl.program_id(0) * TALL + tl.arange(0, TALL)
    j = tl.program_id(1) * WIDE + tl.arange(0, WIDE)
    block = tl.load(x + i[:, None] * N + j[None, :], mask=(i[:, None] < M) & (j[None, :] < N))
    tl.store(out + j[:, None] * M + i[None, :], block.T, mask=(j[:, None] < N) & (i[None, :] < M))


@bl.jit
def columns(x, out, M, N, TALL: bl.constexpr, WIDE: bl.constexpr):
    """Rows of the result from an array in column-major order; what lies outside of it becomes 7."""
    i, j = tl.arange(0, TALL)[:, None], tl.arange(0, WIDE)[None, :]
    is_inside = (i >= 3) & (i < M) & (j >= 2) & (j < N)
    block = tl.load(x + i + j * M, mask=is_inside, other=7)
    tl.store(out + i * WIDE + j, block)


@bl.jit
def batches(x, out, A: bl.constexpr, B: bl.constexpr, C: bl.constexpr):
    """Axes (a, b, c) become (c, a, b)."""
    a, b, c = tl.arange(0, A)[:, None, None], tl.arange(0, B)[None, :, None], tl.arange(0, C)[None, None, :]
    block = tl.load(x + (a * B + b) * C + c)
    place = tl.arange(0, A * B * C)
    tl.store(out + tl.reshape(place, (C, A, B)), tl.permute(block, (2, 0, 1)))


@bl.jit
def with_its_own_transpose(x, out, N: bl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    block = tl.load(x + i * N + j)
    tl.store(out + i * N + j, block - block.T * 2)


@bl.jit
def in_place(x, N: bl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    tl.store(x + i * N + j, tl.load(x + i * N + j).T)


@bl.jit
def twice(x, out, steps, N: bl.constexpr):
    """Blocks one below the other, each turned and doubled."""
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    for step in range(steps):
        block = tl.load(x + step * N * N + i * N + j)
        tl.store(out + step * N * N + i * N + j, (block + block).T)
