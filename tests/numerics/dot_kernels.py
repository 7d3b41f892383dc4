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
