"""Kernels that create blocks and rename their lanes; results are stored in row-major order."""

# mypy: ignore-errors
from __future__ import annotations

import blocklang as bl
import blocklang.language as tl


@bl.jit
def offsets_2d(M: bl.constexpr, N: bl.constexpr):
    return tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]


@bl.jit
def offsets_3d(L: bl.constexpr, M: bl.constexpr, N: bl.constexpr):
    return tl.arange(0, L)[:, None, None] * (M * N) + offsets_2d(M, N)[None, :, :]


@bl.jit
def aranges(out, START: bl.constexpr, END: bl.constexpr):
    i = tl.arange(START, END)
    tl.static_assert(i.dtype == tl.int32)
    tl.store(out + (i - START), i)


@bl.jit
def constants(out, VALUES: bl.constexpr, TYPE: bl.constexpr, M: bl.constexpr, N: bl.constexpr):
    where = offsets_2d(M, N)
    for k in tl.static_range(len(VALUES)):
        block = tl.full((M, N), VALUES[k], TYPE)
        tl.static_assert(block.dtype == TYPE)
        tl.store(out + k * (M * N) + where, block)


@bl.jit
def zeros_and_splats(out, x, value, TYPE: bl.constexpr, M: bl.constexpr, N: bl.constexpr):
    """Zeros in two ways, a run-time scalar, and a block of one element."""
    where = offsets_2d(M, N)
    tl.store(out + where, tl.zeros((M, N), dtype=TYPE))
    block = tl.full((M, N), value, TYPE)
    tl.store(out + M * N + where, tl.zeros_like(block))
    tl.store(out + 2 * M * N + where, block)
    one = tl.load(x + tl.arange(0, 1))
    tl.store(out + 3 * M * N + where, tl.full([M, N], one, TYPE))


@bl.jit
def shapes_2d(x, out, M: bl.constexpr, N: bl.constexpr):
    """Each round writes M * N elements of a renamed [M, N]."""
    where, flat = offsets_2d(M, N), tl.arange(0, M * N)
    a = tl.load(x + where)
    back = offsets_2d(N, M)
    tl.store(out + back, a.T)
    tl.store(out + M * N + back, tl.trans(a))
    tl.store(out + 2 * M * N + back, tl.permute(a, (1, 0)) + tl.trans(a, 1, 0))
    tl.store(out + 3 * M * N + flat, tl.ravel(a))
    tl.store(out + 4 * M * N + flat, a.reshape(M * N))
    tl.store(out + 5 * M * N + back, tl.reshape(a, (N, M)))
    tl.store(out + 6 * M * N + where, tl.view(tl.trans(a), [M, N]))
    tl.store(out + 7 * M * N + flat, tl.reshape(tl.trans(tl.reshape(tl.trans(a), (M, N))), (M * N,)))
    tl.store(out + 8 * M * N + where, tl.squeeze(tl.unsqueeze(a, 1), 1))
    tl.store(out + 9 * M * N + where, tl.trans(tl.trans(a) + tl.trans(a)))


@bl.jit
def broadcasts(x, y, out, M: bl.constexpr, N: bl.constexpr):
    """A column and a row of different arrays meet in every way that has a name."""
    where = offsets_2d(M, N)
    column, row = tl.load(x + tl.arange(0, M)), tl.load(y + tl.arange(0, N))
    a, b = tl.broadcast(column[:, None], row[None, :])
    tl.store(out + where, a - b)
    tl.store(out + M * N + where, column[:, None] - row[None, :])
    tl.store(out + 2 * M * N + where, tl.broadcast_to(tl.expand_dims(column, 1), (M, N)))
    tl.store(out + 3 * M * N + where, tl.broadcast_to(tl.expand_dims(row, -2), M, N))
    tl.store(out + 4 * M * N + where, column.expand_dims(-1) - tl.full((M, N), 1, column.dtype))
    tl.store(out + 5 * M * N + where, tl.broadcast_to(tl.load(x), (M, N)))
    tl.store(out + 6 * M * N + where, tl.full((M, N), 2, row.dtype) - row)  # the rank is padded on the left
    tl.store(
        out + 7 * M * N + where,
        tl.expand_dims(tl.load(y), (0, 1)) - row[None, :] + tl.zeros((M, 1), row.dtype),
    )


@bl.jit
def shapes_3d(x, out, L: bl.constexpr, M: bl.constexpr, N: bl.constexpr):
    n: tl.constexpr = L * M * N
    a = tl.load(x + offsets_3d(L, M, N))
    tl.store(out + offsets_3d(L, M, N), a)
    tl.store(out + n + offsets_3d(L, N, M), tl.trans(a))
    tl.store(out + 2 * n + offsets_3d(N, L, M), tl.permute(a, (2, 0, 1)))
    tl.store(out + 3 * n + offsets_3d(M, N, L), a.permute(1, 2, 0))
    tl.store(out + 4 * n + offsets_2d(L * M, N), tl.reshape(a, (L * M, N)))
    tl.store(out + 5 * n + offsets_2d(M, L * N), tl.reshape(tl.permute(a, (1, 0, 2)), (M, L * N)))
    tl.store(out + 6 * n + tl.arange(0, n), tl.ravel(tl.permute(a, (2, 1, 0))))
    tl.store(out + 7 * n + offsets_3d(N, M, L), tl.reshape(tl.trans(tl.reshape(a, (L, M * N))), (N, M, L)))


@bl.jit
def items(x, out):
    one = tl.load(x + tl.arange(0, 1))
    tl.store(out, tl.item(one))
    tl.store(out + 1, one[:, None].item())
    tl.store(out + 2, tl.reshape(tl.load(x + 1 + tl.arange(0, 1)), ()))


@bl.jit
def pairs(x, y, out, N: bl.constexpr):
    """Rows of 2N elements: blocks of rank 1 joined, interleaved, put behind each other, and taken apart."""
    i, both = tl.arange(0, N), tl.arange(0, 2 * N)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(out + tl.reshape(both, (N, 2)), tl.join(a, b))
    tl.store(out + 2 * N + both, tl.interleave(a, b))
    tl.store(out + 4 * N + both, tl.cat(a, b))
    tl.store(out + 6 * N + both, tl.cat(a, b, can_reorder=True).flip())
    even, odd = tl.split(tl.load(x + both).reshape(N, 2))
    tl.store(out + 8 * N + both, even.cat(odd, dim=-1))
    first, second = tl.join(a, b).split()
    tl.store(out + 10 * N + both, tl.cat(second, first))
    tl.store(out + 12 * N + both, a.interleave(tl.load(y)))  # the scalar is spread
    tl.store(out + 14 * N + both, tl.ravel(tl.flip(a.join(b), 0)))


@bl.jit
def pairs_2d(x, y, out, M: bl.constexpr, N: bl.constexpr):
    """Rows of 2 * M * N elements."""
    n: tl.constexpr = 2 * M * N
    where = offsets_2d(M, N)
    flat = tl.arange(0, n)
    a, b = tl.load(x + where), tl.load(y + where)
    tl.store(out + flat, tl.ravel(tl.join(a, b)))
    tl.store(out + n + offsets_2d(M, 2 * N), tl.interleave(a, b))
    tl.store(out + 2 * n + offsets_2d(2 * M, N), tl.cat(a, b))
    tl.store(out + 3 * n + offsets_2d(M, 2 * N), tl.cat(a, b, dim=-1))
    left, right = tl.split(tl.trans(tl.cat(a[None, :, :], b[None, :, :], dim=0), (1, 2, 0)))
    tl.store(out + 4 * n + offsets_2d(M, N), right)
    tl.store(out + 4 * n + M * N + offsets_2d(M, N), left)
    row = tl.load(y + tl.arange(0, N))
    tl.store(out + 5 * n + offsets_2d(M * N, 2), tl.reshape(tl.join(a, row[None, :]), (M * N, 2)))
    tl.store(out + 6 * n + offsets_2d(M, 2 * N), tl.flip(tl.interleave(a, b)).flip(0))
    tl.store(out + 7 * n + flat, tl.ravel(tl.flip(tl.trans(tl.flip(tl.interleave(a, b), 0)), 1)))


@bl.jit
def uneven(x, y, out, L: bl.constexpr, M: bl.constexpr, N: bl.constexpr):
    """[L, N] and [M, N] along the first axis, [N, L] and [N, M] along the last; then sums of them."""
    a, b = tl.load(x + offsets_2d(L, N)), tl.load(y + offsets_2d(M, N))
    n: tl.constexpr = (L + M) * N
    tl.store(out + offsets_2d(L + M, N), tl.cat(a, b))
    tl.store(out + n + offsets_2d(N, L + M), tl.cat(a.T, b.T, dim=1))
    tl.store(out + 2 * n + offsets_2d(N, L + M), tl.flip(tl.cat(b.T, a.T, dim=1)))
    tl.store(out + 3 * n + tl.arange(0, N), tl.max(tl.flip(tl.cat(a, b), 0), 0))


@bl.jit
def scalar_pairs(x, out):
    a, b = tl.load(x), tl.load(x + 1)
    two = tl.arange(0, 2)
    tl.store(out + two, tl.join(a, b))
    tl.store(out + 2 + two, tl.interleave(b, a))
    first, second = tl.split(tl.flip(tl.load(x + two)))
    tl.store(out + 4, first)
    tl.store(out + 5, second)
    for _ in range(3):  # carried as whole blocks
        first, second = tl.split(tl.join(second, first))
    tl.store(out + 6, first)
    tl.store(out + 7, second)


@bl.jit
def rotations(x, out, n, N: bl.constexpr):
    """Renamed blocks that a loop carries, and masks that are renamed themselves."""
    i = tl.arange(0, N)
    a, mask = tl.load(x + i), i < n
    for _ in range(3):
        left, right = tl.split(tl.reshape(a, (N // 2, 2)))
        a = tl.cat(right, tl.flip(left))
    tl.store(out + i, a, mask=tl.flip(mask))
    tl.store(out + N + i, tl.load(x + tl.flip(i), mask=tl.flip(mask), other=0))
