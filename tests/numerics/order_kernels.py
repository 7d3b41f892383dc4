"""Kernels that sort, count and pick lanes."""

# mypy: ignore-errors
from __future__ import annotations

import blocklang as bl
import blocklang.language as tl
from tests.numerics.shape_kernels import offsets_2d, offsets_3d


@bl.jit
def sorted_rows(x, out, M: bl.constexpr, N: bl.constexpr, DESCENDING: bl.constexpr):
    a = tl.load(x + offsets_2d(M, N))
    tl.store(out + offsets_2d(M, N), tl.sort(a, None, DESCENDING))


@bl.jit
def largest(x, out, M: bl.constexpr, N: bl.constexpr, K: bl.constexpr):
    tl.store(out + offsets_2d(M, K), tl.load(x + offsets_2d(M, N)).topk(K))


@bl.jit
def sorted_where(x, out, n, m, BLOCK: bl.constexpr, OTHER: bl.constexpr):
    """A masked load, sorted, and the first m of it stored."""
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.sort(tl.load(x + i, mask=i < n, other=OTHER)), mask=i < m)


@bl.jit
def sorted_view(x, out, M: bl.constexpr, N: bl.constexpr):
    """Columns sorted, through transposed views, and the rows of what comes out merged."""
    a = tl.sort(tl.trans(tl.load(x + offsets_2d(M, N))), dim=1)
    tl.store(out + offsets_2d(M, N), tl.bitonic_merge(tl.trans(a), -1, descending=True))


@bl.jit
def sorted_3d(x, out, L: bl.constexpr, M: bl.constexpr, N: bl.constexpr):
    tl.store(out + offsets_3d(L, M, N), tl.load(x + offsets_3d(L, M, N)).sort(dim=2))


@bl.jit
def sorted_in_loop(x, out, n, M: bl.constexpr, N: bl.constexpr):
    """Sorts inside of control flow, of values that loops carry."""
    a = tl.load(x + offsets_2d(M, N))
    total = tl.zeros((M, N), tl.float32)
    for k in range(n):
        if k % 2 == 0:
            a = tl.sort(a, descending=0) * 0.5
        else:
            a = a + tl.topk(a, N)
        total += a
    tl.store(out + offsets_2d(M, N), total)


@bl.jit
def sorted_in_place(x, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    a = tl.load(x + i)
    tl.store(x + i, tl.sort(a))
    tl.store(x + BLOCK + i, a)


@bl.jit
def median_deviation(x, out, N: bl.constexpr):
    """The element in the middle, by a sort and a reduction, used at once by all lanes."""
    i = tl.arange(0, N)
    a = tl.load(x + i)
    middle = tl.sum(tl.where(i == N // 2, tl.sort(a), 0.0), 0)
    tl.store(out + i, tl.sort(tl.abs(a - middle)))


@bl.jit
def picked(
    x, index, out, L: bl.constexpr, M: bl.constexpr, N: bl.constexpr, S: bl.constexpr, AXIS: bl.constexpr
):
    """A gather along one of the axes of [L, M, N], from a source whose extent there is S."""
    if AXIS == 0:
        source = tl.load(x + offsets_3d(S, M, N))
    elif AXIS == 1:
        source = tl.load(x + offsets_3d(L, S, N))
    else:
        source = tl.load(x + offsets_3d(L, M, S))
    at = offsets_3d(L, M, N)
    tl.store(out + at, tl.gather(source, tl.load(index + at), AXIS))


@bl.jit
def picked_twice(x, index, out, n, N: bl.constexpr):
    """A gather of a gather of computed values, masked, in a loop that the source does not depend on."""
    i = tl.arange(0, N)
    source = tl.exp(tl.load(x + i, mask=i < n, other=0.0))
    total = tl.zeros((N,), tl.float32)
    for k in range(3):
        at = tl.load(index + i, mask=i < n, other=0)
        total += tl.gather(source.gather(at, 0), (at + k) % N, 0)
    tl.store(out + i, total, mask=i < n)


@bl.jit
def counted(x, out, N: bl.constexpr, BINS: bl.constexpr):
    tl.store(out + tl.arange(0, BINS), tl.load(x + tl.arange(0, N)).histogram(BINS))


@bl.jit
def counted_where(x, keep, out, n, N: bl.constexpr, BINS: bl.constexpr):
    i = tl.arange(0, N)
    values = tl.load(x + i, mask=i < n, other=1)
    mask = (i < n) & tl.load(keep + i, mask=i < n, other=False)
    tl.store(out + tl.arange(0, BINS), tl.histogram(values, BINS, mask=mask))


@bl.jit
def sorted_kind(x, out, KIND: bl.constexpr, N: bl.constexpr, DESCENDING: bl.constexpr):
    """The codes of 8-bit floats, sorted as such, then the three largest."""
    i = tl.arange(0, N)
    a = tl.load(x + i).to(KIND, bitcast=True)
    tl.store(out + i, tl.sort(a, descending=DESCENDING).to(tl.uint8, bitcast=True))
    tl.store(out + N + tl.arange(0, 3), tl.topk(a, 3).to(tl.uint8, bitcast=True))
