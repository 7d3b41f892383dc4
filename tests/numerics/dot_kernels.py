"""Kernels that multiply matrices."""

# mypy: ignore-errors
from __future__ import annotations

import blocklang as bl
import blocklang.language as tl
from tests.numerics.shape_kernels import offsets_2d


@bl.jit
def product(
    x, y, acc, out,
    M: bl.constexpr, N: bl.constexpr, K: bl.constexpr, RESULT: bl.constexpr, PRECISION: bl.constexpr,
):  # fmt: skip
    """Rows of M * N: without an accumulator, with one, and with one that is added by `+`."""
    a, b = tl.load(x + offsets_2d(M, K)), tl.load(y + offsets_2d(K, N))
    where = offsets_2d(M, N)
    start = tl.load(acc + where)
    plain = tl.dot(a, b, input_precision=PRECISION, out_dtype=RESULT)
    tl.static_assert(plain.dtype == RESULT)
    tl.store(out + where, plain)
    tl.store(out + M * N + where, tl.dot(a, b, start, input_precision=PRECISION, out_dtype=RESULT))
    tl.store(out + 2 * M * N + where, start + tl.dot(a, b, input_precision=PRECISION, out_dtype=RESULT))


@bl.jit
def transposed(x, y, out, M: bl.constexpr, N: bl.constexpr, K: bl.constexpr):
    """Operands that are transposed, computed, and masked along K."""
    a, b = tl.load(x + offsets_2d(K, M)), tl.load(y + offsets_2d(N, K))
    where = offsets_2d(M, N)
    tl.store(out + where, tl.dot(a.T, tl.trans(b)))
    tl.store(out + M * N + where, tl.dot(a.T * 2.0, tl.trans(b) + 1.0, allow_tf32=False))
    k = tl.arange(0, K)
    few = tl.load(x + k[:, None] * M + tl.arange(0, M)[None, :], mask=k[:, None] < K - 1)
    tl.store(out + 2 * M * N + where, tl.dot(tl.trans(few), b.T))


@bl.jit
def matmul(x, y, out, m, n, k, M: bl.constexpr, N: bl.constexpr, K: bl.constexpr):
    """Tiles of any extent over matrices of any size, carried over K."""
    i = tl.program_id(0) * M + tl.arange(0, M)
    j = tl.program_id(1) * N + tl.arange(0, N)
    acc = tl.zeros((M, N), dtype=tl.float32)
    for start in range(0, k, K):
        s = start + tl.arange(0, K)
        a = tl.load(x + i[:, None] * k + s[None, :], mask=(i[:, None] < m) & (s[None, :] < k), other=0.0)
        b = tl.load(y + s[:, None] * n + j[None, :], mask=(s[:, None] < k) & (j[None, :] < n), other=0.0)
        acc = tl.dot(a, b, acc)
    tl.store(out + i[:, None] * n + j[None, :], acc, mask=(i[:, None] < m) & (j[None, :] < n))


@bl.jit
def offsets_3d(A: bl.constexpr, B: bl.constexpr, C: bl.constexpr):
    inner = tl.arange(0, B)[:, None] * C + tl.arange(0, C)[None, :]
    return tl.arange(0, A)[:, None, None] * (B * C) + inner[None, :, :]


@bl.jit
def batched(
    x, y, acc, out, B: bl.constexpr, M: bl.constexpr, N: bl.constexpr, K: bl.constexpr, RESULT: bl.constexpr
):
    """With an accumulator, and with one that is added by `+`."""
    a, b = tl.load(x + offsets_3d(B, M, K)), tl.load(y + offsets_3d(B, K, N))
    where = offsets_3d(B, M, N)
    start = tl.load(acc + where)
    tl.store(out + where, tl.dot(a, b, start, out_dtype=RESULT))
    tl.store(out + B * M * N + where, start + tl.dot(a, b, out_dtype=RESULT))


@bl.jit
def batched_twice(
    x, y, acc, out,
    B: bl.constexpr, C: bl.constexpr, M: bl.constexpr, N: bl.constexpr, K: bl.constexpr, RESULT: bl.constexpr,
):  # fmt: skip
    """The same for two axes of batches."""
    a = tl.load(x + offsets_3d(B * C, M, K)).reshape(B, C, M, K)
    b = tl.load(y + offsets_3d(B * C, K, N)).reshape(B, C, K, N)
    where = offsets_3d(B * C, M, N).reshape(B, C, M, N)
    start = tl.load(acc + where)
    tl.store(out + where, tl.dot(a, b, start, out_dtype=RESULT))
    tl.store(out + B * C * M * N + where, start + tl.dot(a, b, out_dtype=RESULT))


@bl.jit
def batched_loop(
    x, y, out, batch, m, n, k, B: bl.constexpr, M: bl.constexpr, N: bl.constexpr, K: bl.constexpr
):
    """Carried over K, every axis masked; the second operand is transposed, and negated twice."""
    p, i = tl.arange(0, B)[:, None, None], tl.arange(0, M)[None, :, None]
    j = tl.arange(0, N)[None, :, None]
    acc = tl.zeros((B, M, N), dtype=tl.float32)
    for start in range(0, k, K):
        s = start + tl.arange(0, K)[None, None, :]
        a = tl.load(x + (p * m + i) * k + s, mask=(p < batch) & (i < m) & (s < k), other=0.0)
        b = tl.load(y + (p * n + j) * k + s, mask=(p < batch) & (j < n) & (s < k), other=0.0)
        acc = tl.dot(0.0 - a, 0.0 - tl.trans(b, 0, 2, 1), acc)
    j = tl.arange(0, N)[None, None, :]
    tl.store(out + (p * m + i) * n + j, acc, mask=(p < batch) & (i < m) & (j < n))


@bl.jit
def two_precisions(x, y, out, M: bl.constexpr, N: bl.constexpr, K: bl.constexpr):
    """The same operands as they are, and rounded."""
    a, b = tl.load(x + offsets_2d(M, K)), tl.load(y + offsets_2d(K, N))
    where = offsets_2d(M, N)
    tl.store(out + where, tl.dot(a, b))
    tl.store(out + M * N + where, tl.dot(a, b, input_precision="tf32"))
