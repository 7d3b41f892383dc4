"""Kernels that reduce blocks, and combine functions."""

# mypy: ignore-errors
from __future__ import annotations

import blocklang as bl
import blocklang.language as tl
from tests.numerics.shape_kernels import offsets_2d, offsets_3d


@bl.jit
def along_1d(x, out, n, BLOCK: bl.constexpr, OPS: bl.constexpr, RESULT: bl.constexpr, OTHER: bl.constexpr):
    """All lanes, the masked ones being OTHER, to a scalar each."""
    i = tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n, other=OTHER)
    for k in tl.static_range(len(OPS)):
        r = OPS[k](a, 0, False)
        tl.static_assert(r.dtype == RESULT)
        tl.store(out + k, r)


@bl.jit
def along_2d(x, out, M: bl.constexpr, N: bl.constexpr, OPS: bl.constexpr, RESULT: bl.constexpr):
    """Per operation: axis 0 (N numbers), axis 1 (M)."""
    a = tl.load(x + offsets_2d(M, N))
    for k in tl.static_range(len(OPS)):
        r = OPS[k](a, 0, False)
        tl.static_assert(r.dtype == RESULT)
        tl.store(out + k * (N + M) + tl.arange(0, N), r)
        tl.store(out + k * (N + M) + N + tl.arange(0, M), OPS[k](a, -1, False))


@bl.jit
def axes_kept(x, out, M: bl.constexpr, N: bl.constexpr, OPS: bl.constexpr, RESULT: bl.constexpr):
    """Per operation: axis 0 (N numbers), axis 1 (M) and all axes, kept with extent 1, and no axis left."""
    a = tl.load(x + offsets_2d(M, N))
    for k in tl.static_range(len(OPS)):
        at = out + k * (N + M + 2)
        tl.store(at + tl.arange(0, N)[None, :], OPS[k](a, -2, True))
        tl.store(at + N + tl.arange(0, M)[:, None], OPS[k](a, 1, True))
        tl.store(at + N + M + offsets_2d(1, 1), OPS[k](a, None, True))
        r = OPS[k](a, None, False)
        tl.static_assert(r.dtype == RESULT)
        tl.store(at + N + M + 1, r)


@bl.jit
def along_3d(
    x, out, L: bl.constexpr, M: bl.constexpr, N: bl.constexpr, OPS: bl.constexpr, RESULT: bl.constexpr
):
    a = tl.load(x + offsets_3d(L, M, N))
    for k in tl.static_range(len(OPS)):
        at = out + k * (M * N + L * N + L * M)
        r = OPS[k](a, 0, False)
        tl.static_assert(r.dtype == RESULT)
        tl.store(at + offsets_2d(M, N), r)
        tl.store(at + M * N + offsets_2d(L, N), OPS[k](a, 1, False))
        tl.store(at + M * N + L * N + offsets_2d(L, M), OPS[k](a, 2, False))


@bl.jit
def sum_of(a, AXIS: bl.constexpr, KEEP: bl.constexpr):
    return tl.sum(a, AXIS, keep_dims=KEEP)


@bl.jit
def max_of(a, AXIS: bl.constexpr, KEEP: bl.constexpr):
    return tl.max(a, AXIS, keep_dims=KEEP)


@bl.jit
def min_of(a, AXIS: bl.constexpr, KEEP: bl.constexpr):
    return a.min(AXIS, keep_dims=KEEP)


@bl.jit
def argmax_of(a, AXIS: bl.constexpr, KEEP: bl.constexpr):
    return tl.argmax(a, AXIS, keep_dims=KEEP)


@bl.jit
def argmin_of(a, AXIS: bl.constexpr, KEEP: bl.constexpr):
    return tl.argmin(a, AXIS, tie_break_left=False, keep_dims=KEEP)


@bl.jit
def max_value(a, AXIS: bl.constexpr, KEEP: bl.constexpr):
    return tl.max(a, AXIS, return_indices=True, keep_dims=KEEP)[0]


@bl.jit
def min_value(a, AXIS: bl.constexpr, KEEP: bl.constexpr):
    return tl.min(a, AXIS, return_indices=True, return_indices_tie_break_left=False, keep_dims=KEEP)[0]


@bl.jit
def max_index(a, AXIS: bl.constexpr, KEEP: bl.constexpr):
    return a.max(AXIS, return_indices=True, keep_dims=KEEP)[1]


@bl.jit
def min_index(a, AXIS: bl.constexpr, KEEP: bl.constexpr):
    return a.min(AXIS, return_indices=True, keep_dims=KEEP)[1]


@bl.jit
def xor_of(a, AXIS: bl.constexpr, KEEP: bl.constexpr):
    return tl.xor_sum(a, AXIS, keep_dims=KEEP)


@bl.jit
def or_of(a, AXIS: bl.constexpr, KEEP: bl.constexpr):
    return tl.reduce_or(a, AXIS, keep_dims=KEEP)


@bl.jit
def multiply(a, b):
    return a * b


@bl.jit
def product_of(a, AXIS: bl.constexpr, KEEP: bl.constexpr):
    return tl.reduce(a, AXIS, multiply, keep_dims=KEEP)


@bl.jit
def rightmost(a, b):
    return b


@bl.jit
def last_of(a, AXIS: bl.constexpr, KEEP: bl.constexpr):
    return tl.reduce(a, AXIS, rightmost, keep_dims=KEEP)


@bl.jit
def digits(a, b):
    """Neither commutative nor associative: the shape of the tree shows."""
    return a * 31 + b * 17 + 1


@bl.jit
def digits_of(a, AXIS: bl.constexpr, KEEP: bl.constexpr):
    return tl.reduce(a, AXIS, digits, keep_dims=KEEP)


@bl.jit
def sum_as(x, out, M: bl.constexpr, N: bl.constexpr, TYPE: bl.constexpr):
    a = tl.load(x + offsets_2d(M, N))
    r = tl.sum(a, 1, dtype=TYPE)
    tl.static_assert(r.dtype == TYPE)
    tl.store(out + tl.arange(0, M), r)
    tl.store(out + M, tl.sum(a, dtype=TYPE))


@bl.jit
def compose(a, b, c, d):
    """x -> a x + b, then x -> c x + d."""
    return a * c, b * c + d


@bl.jit
def composed(x, y, out, other, M: bl.constexpr, N: bl.constexpr, AXIS: bl.constexpr, R: bl.constexpr):
    """Affine functions composed along an axis, wrapping: associative, but not commutative."""
    a, b = tl.reduce((tl.load(x + offsets_2d(M, N)), tl.load(y + offsets_2d(M, N))), AXIS, compose)
    tl.store(out + tl.arange(0, R), a)
    tl.store(other + tl.arange(0, R), b)


@bl.jit
def join_moments(n, mean, m2, k, mean_b, m2_b):
    total = n + k
    share = k / total
    delta = mean_b - mean
    return total, mean + delta * share, m2 + m2_b + delta * delta * n * share


@bl.jit
def moments(x, out, N: bl.constexpr):
    """Welford's mean and sum of squared deviations: three states of a tuple."""
    a = tl.load(x + tl.arange(0, N))
    count, mean, m2 = tl.reduce((a * 0 + 1, a, a * 0), 0, join_moments)
    tl.store(out, count)
    tl.store(out + 1, mean)
    tl.store(out + 2, m2)


@bl.jit
def later_if_longer(value, length, value_b, length_b):
    """A branch per lane: of two the longer, the left one on a tie."""
    if length_b > length:
        value, length = value_b, length_b
    return value, length


@bl.jit
def longest(x, lengths, out, M: bl.constexpr, N: bl.constexpr):
    a, b = tl.load(x + offsets_2d(M, N)), tl.load(lengths + offsets_2d(M, N))
    value, length = tl.reduce((a, b), 0, later_if_longer)
    tl.store(out + tl.arange(0, N), value)
    tl.store(out + N + tl.arange(0, N), length)


@bl.jit
def softmax(x, out, n, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    mask = i < n
    a = tl.load(x + i, mask=mask, other=-float("inf"))
    tl.store(out + i, tl.softmax(a), mask=mask)


@bl.jit
def softmax_rows(x, out, M: bl.constexpr, N: bl.constexpr, AXIS: bl.constexpr):
    tl.store(out + offsets_2d(M, N), tl.softmax(tl.load(x + offsets_2d(M, N)), AXIS))


@bl.jit
def centred(x, out, M: bl.constexpr, N: bl.constexpr):
    """Reductions whose results meet the block again."""
    a = tl.load(x + offsets_2d(M, N))
    tl.store(out + offsets_2d(M, N), a - tl.max(a, 1)[:, None] + tl.min(a, 0)[None, :])
    total = tl.sum(tl.sum(a, 1), 0)
    tl.store(out + M * N + offsets_2d(M, N), a * total)


@bl.jit
def hashed(a, b):
    return a * 31 + b * 17 + 1


@bl.jit
def long_tree(x, out, SHAPE: bl.constexpr, AXIS: bl.constexpr, KEPT: bl.constexpr):
    if len(SHAPE) == 1:
        tl.store(out, tl.reduce(tl.load(x + tl.arange(0, SHAPE[0])), AXIS, hashed))
    else:
        if len(SHAPE) == 2:
            a = tl.load(x + offsets_2d(SHAPE[0], SHAPE[1]))
        else:
            a = tl.load(x + offsets_3d(SHAPE[0], SHAPE[1], SHAPE[2]))
        tl.store(out + tl.arange(0, KEPT), tl.reshape(tl.reduce(a, AXIS, hashed), (KEPT,)))


@bl.jit
def better(a, i, b, j):
    if b > a:
        return b, j
    else:
        return a, i


@bl.jit
def long_best(x, value, index, N: bl.constexpr):
    i = tl.arange(0, N)
    v, k = tl.reduce((tl.load(x + i), i), 0, better)
    tl.store(value, v)
    tl.store(index, k)


@bl.jit
def places(x, out, n, N: bl.constexpr):
    row, columns = tl.program_id(0), tl.arange(0, N)
    a = tl.load(x + row * N + columns)
    ends = tl.load(x + row * N + columns, mask=columns < n, other=0)
    tl.store(out + row * 4, tl.argmax(a, 0))
    tl.store(out + row * 4 + 1, tl.argmin(a, 0))
    tl.store(out + row * 4 + 2, tl.argmax(ends, 0))
    tl.store(out + row * 4 + 3, tl.argmin(ends, 0))
