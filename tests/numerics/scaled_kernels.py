"""Kernels that multiply matrices with shared scales."""

# mypy: ignore-errors
from __future__ import annotations

import blocklang as bl
import blocklang.language as tl
from tests.numerics.shape_kernels import offsets_2d


@bl.jit
def product(
    x, x_scale, y, y_scale, acc, out,
    M: bl.constexpr, N: bl.constexpr, K: bl.constexpr,
    ROWS: bl.constexpr, DEPTH_X: bl.constexpr, DEPTH_Y: bl.constexpr, COLUMNS: bl.constexpr,
    LEFT: bl.constexpr, RIGHT: bl.constexpr, GROUP_X: bl.constexpr, GROUP_Y: bl.constexpr,
    PACK_X: bl.constexpr, PACK_Y: bl.constexpr,
):  # fmt: skip
    """Operands of [ROWS, DEPTH_X] and [DEPTH_Y, COLUMNS] bytes or numbers; a group of 0 is no scale."""
    a, b = tl.load(x + offsets_2d(ROWS, DEPTH_X)), tl.load(y + offsets_2d(DEPTH_Y, COLUMNS))
    if GROUP_X:
        a_scale = tl.load(x_scale + offsets_2d(M, K // GROUP_X))
    else:
        a_scale = None
    if GROUP_Y:
        b_scale = tl.load(y_scale + offsets_2d(N, K // GROUP_Y))
    else:
        b_scale = None
    where = offsets_2d(M, N)
    start = tl.load(acc + where)
    result = tl.dot_scaled(a, a_scale, LEFT, b, b_scale, RIGHT, start, lhs_k_pack=PACK_X, rhs_k_pack=PACK_Y)
    tl.store(out + where, result)


@bl.jit
def batch(x, x_scale, y, y_scale, out, B: bl.constexpr, M: bl.constexpr, N: bl.constexpr, K: bl.constexpr):
    """Batches of e2m1 on the left and e5m2 on the right."""
    a = tl.load(x + offsets_2d(B * M, K // 2)).reshape(B, M, K // 2)
    b = tl.load(y + offsets_2d(B * K, N)).reshape(B, K, N)
    a_scale = tl.load(x_scale + offsets_2d(B * M, K // 32)).reshape(B, M, K // 32)
    b_scale = tl.load(y_scale + offsets_2d(B * N, K // 32)).reshape(B, N, K // 32)
    result = tl.dot_scaled(a, a_scale, "e2m1", b, b_scale, "e5m2")
    tl.store(out + offsets_2d(B * M, N).reshape(B, M, N), result)
