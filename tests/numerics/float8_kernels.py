"""Kernels on 8-bit floats. Arrays are bytes, which the kernels read as a kind: so fp8e4b15 needs nothing
special."""

# mypy: ignore-errors
from __future__ import annotations

import blocklang as bl
import blocklang.language as tl


@bl.jit
def widened(x, out, KIND: bl.constexpr, TO: bl.constexpr, N: bl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i).to(KIND, bitcast=True).to(TO))


@bl.jit
def narrowed(x, out, n, KIND: bl.constexpr, ROUNDING: bl.constexpr, N: bl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    value = tl.load(x + i, mask=i < n).to(KIND, fp_downcast_rounding=ROUNDING)
    tl.store(out + i, value.to(tl.uint8, bitcast=True), mask=i < n)


@bl.jit
def from_integers(x, out, KIND: bl.constexpr, N: bl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i).to(KIND).to(tl.uint8, bitcast=True))


@bl.jit
def arithmetic(x, y, out, KIND: bl.constexpr, N: bl.constexpr):
    """Rows of N: operators with one kind on both sides, a weak number, fma, extrema, signs, a choice."""
    i = tl.arange(0, N)
    a, b = tl.load(x + i).to(KIND, bitcast=True), tl.load(y + i).to(KIND, bitcast=True)
    tl.static_assert((a + b).dtype == KIND)
    tl.static_assert((a * 2.0).dtype == KIND)
    results = (
        a + b, a - b, a * b, a / b, a * 0.3, a + 1, 1 - a, -a, tl.abs(a),
        tl.fma(a, b, a), tl.minimum(a, b), tl.maximum(a, b), tl.where(a < b, a, b), tl.where(a == b, a, 0.5),
        tl.sqrt(a), tl.exp(b), a * 1.0, a + 0.0, tl.full((N,), 3.1, KIND),
    )  # fmt: skip
    for row in tl.static_range(19):
        tl.store(out + row * N + i, results[row].to(tl.uint8, bitcast=True))


@bl.jit
def two_kinds(x, y, out, LEFT: bl.constexpr, RIGHT: bl.constexpr, N: bl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(x + i).to(LEFT, bitcast=True), tl.load(y + i).to(RIGHT, bitcast=True)
    tl.static_assert((a + b).dtype == (LEFT if LEFT == RIGHT else tl.float16))
    tl.store(out + i, (a + b).to(tl.float32))
    tl.store(out + N + i, a.to(RIGHT).to(tl.float32))


@bl.jit
def folded(x, out, n, KIND: bl.constexpr, M: bl.constexpr, N: bl.constexpr):
    """Sum along either axis, and extrema with indices; lanes from `n` on are masked off."""
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    a = tl.load(x + i * N + j, mask=j < n, other=0).to(KIND, bitcast=True)
    rows = tl.arange(0, M)
    most, where_most = tl.max(a, 1, return_indices=True)
    least, where_least = tl.min(a, 1, return_indices=True)
    tl.static_assert(most.dtype == KIND)
    tl.store(out + rows, tl.sum(a, 1).to(tl.float32))
    tl.store(out + M + rows, most.to(tl.float32))
    tl.store(out + 2 * M + rows, where_most.to(tl.float32))
    tl.store(out + 3 * M + rows, least.to(tl.float32))
    tl.store(out + 4 * M + rows, where_least.to(tl.float32))
    tl.store(out + 5 * M + rows, tl.max(a, 1))
    tl.store(out + 6 * M + tl.arange(0, N), tl.sum(a, 0).to(tl.float32))


@bl.jit
def typed(x, y, out, n, scale, N: bl.constexpr):
    """Arrays of the kinds themselves: load, masked, add, store; and a scalar argument."""
    i = tl.program_id(0) * N + tl.arange(0, N)
    a, b = tl.load(x + i, mask=i < n, other=1.5), tl.load(y + i, mask=i < n)
    tl.store(out + i, (a.to(tl.float32) + b.to(tl.float32)) * scale.to(tl.float32), mask=i < n)


@bl.jit
def ordered(x, out, KIND: bl.constexpr, N: bl.constexpr):
    """Both directions, and the first half of one."""
    i = tl.arange(0, N)
    a = tl.load(x + i).to(KIND, bitcast=True)
    tl.store(out + i, tl.sort(a).to(tl.float32))
    tl.store(out + N + i, tl.sort(a, descending=True).to(tl.float32))
    tl.store(out + 2 * N + tl.arange(0, N // 2), tl.topk(a, N // 2).to(tl.float32))
