"""Kernels with block pointers and tensor descriptors."""

# mypy: ignore-errors
from __future__ import annotations

import blocklang as bl
import blocklang.language as tl
from tests.numerics.shape_kernels import offsets_2d


@bl.jit
def copy_2d(
    x, out, M, N, row, column, r0, c0, TALL: bl.constexpr, WIDE: bl.constexpr, CHECK: bl.constexpr,
    PADDING: bl.constexpr,
):  # fmt: skip
    """The block at [r0, c0], padded, to a dense array."""
    p = tl.make_block_ptr(x, (M, N), (row, column), (r0, c0), (TALL, WIDE), (1, 0))
    block = tl.load(p, boundary_check=CHECK, padding_option=PADDING)
    tl.store(out + offsets_2d(TALL, WIDE), block)


@bl.jit
def write_2d(x, out, M, N, r0, c0, TALL: bl.constexpr, WIDE: bl.constexpr, CHECK: bl.constexpr):
    """A dense block to the place [r0, c0] of an array, as far as it lies inside."""
    p = tl.make_block_ptr(out, [M, N], [N, 1], [r0, c0], [TALL, WIDE], [0, 1])
    tl.store(p, tl.load(x + offsets_2d(TALL, WIDE)), boundary_check=CHECK)


@bl.jit
def transposed(x, out, M, N, TALL: bl.constexpr, WIDE: bl.constexpr):
    """One tile of the transpose: the array read with its axes exchanged."""
    i, j = tl.program_id(0) * TALL, tl.program_id(1) * WIDE
    source = tl.make_block_ptr(
        base=x, shape=(N, M), strides=(1, N), offsets=(j, i), block_shape=(WIDE, TALL), order=(0, 1)
    )
    target = tl.make_block_ptr(out, (N, M), (M, 1), (j, i), (WIDE, TALL), (1, 0))
    tl.store(target, tl.load(source, boundary_check=(0, 1)), boundary_check=(1, 0))


@bl.jit
def moved(p, by):
    return tl.advance(p, (by,))


@bl.jit
def total_of(p, steps, BLOCK: tl.constexpr):
    """The sum of some blocks, and where the pointer stands then."""
    total = tl.zeros((BLOCK,), tl.int32)
    for _ in range(steps):
        total += tl.load(p, boundary_check=(0,))
        p = moved(p, BLOCK)
    return total, p


@bl.jit
def walks(x, out, n, steps, BLOCK: bl.constexpr):
    """A block pointer through functions, loops, branches, tuples and `while`."""
    p = tl.make_block_ptr(x, (n,), (1,), (0,), (BLOCK,), (0,))
    i = tl.arange(0, BLOCK)
    first, p = total_of(p, steps, BLOCK)
    tl.store(out + i, first)
    tl.store(out + BLOCK + i, tl.load(p, boundary_check=(0,)))
    if steps > 2:
        p = p.advance((-2 * BLOCK,))
    else:
        p = p.advance([1])
    tl.store(out + 2 * BLOCK + i, tl.load(p, boundary_check=[0]))
    q = p if steps % 2 == 0 else moved(p, -1)
    tl.store(out + 3 * BLOCK + i, tl.load(q, None, None, (0,)) if n > 0 else tl.zeros((BLOCK,), tl.int32))
    pair = (p, tl.zeros((BLOCK,), tl.int32))
    left = steps
    while left > 0:
        block, so_far = pair
        pair = (tl.advance(block, (1,)), so_far + tl.load(block, boundary_check=(0,)))
        left -= 1
        if left == 2:
            break
    tl.store(out + 4 * BLOCK + i, pair[1])
    tl.store(out + 5 * BLOCK + i, tl.load(pair[0], boundary_check=(0,)))


@bl.jit
def product(
    a, b, c, M, N, K, am, ak, bk, bn, BM: bl.constexpr, BN: bl.constexpr, BK: bl.constexpr
):  # fmt: skip
    """A tile of a matrix product with block pointers that a loop moves."""
    i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
    left = tl.make_block_ptr(a, (M, K), (am, ak), (i, 0), (BM, BK), (1, 0))
    right = tl.make_block_ptr(b, (K, N), (bk, bn), (0, j), (BK, BN), (1, 0))
    total = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, K, BK):
        x = tl.load(left, boundary_check=(0, 1), padding_option="zero")
        total = tl.dot(x, tl.load(right, boundary_check=(0, 1)), total)
        left, right = tl.advance(left, (0, BK)), tl.advance(right, (BK, 0))
    out = tl.make_block_ptr(c, (M, N), (N, 1), (i, j), (BM, BN), (1, 0))
    tl.store(out, total.to(out.dtype.element_ty), boundary_check=(0, 1))


@bl.jit
def described_product(a, b, c, M, N, K, BM: bl.constexpr, BN: bl.constexpr, BK: bl.constexpr):
    """The same with tensor descriptors; b is given with its axes exchanged."""
    left = tl.make_tensor_descriptor(a, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    right = tl.make_tensor_descriptor(b, [N, K], [K, 1], [BN, BK])
    out = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        total = tl.dot(left.load([i, k]), right.load([j, k]).T, total)
    out.store([i, j], total)


@bl.jit
def described_copy(x, out, M, N, row, r0, c0, TALL: bl.constexpr, WIDE: bl.constexpr, PADDING: bl.constexpr):
    d = tl.make_tensor_descriptor(x, [M, N], [row, 1], [TALL, WIDE], padding_option=PADDING)
    tl.static_assert(d.dtype == x.dtype.element_ty)
    tl.static_assert(d.block_shape[0] == TALL)
    tl.static_assert(len(d.shape) == 2)
    tl.store(out + offsets_2d(TALL, WIDE), d.load((r0, c0)))


@bl.jit
def described_write(x, out, M, N, r0, c0, TALL: bl.constexpr, WIDE: bl.constexpr):
    """The value is cast to the element type."""
    d = tl.make_tensor_descriptor(out, [M, N], [N, 1], [TALL, WIDE])
    tl.store_tensor_descriptor(d, [r0, c0], tl.load(x + offsets_2d(TALL, WIDE)))
    tl.static_assert(d.block_type == tl.block_type(out.dtype.element_ty, [TALL, WIDE]))


@bl.jit
def ranks(x, out, A, B, C, D, E, start, N: bl.constexpr):
    """A block of rank 5, one of rank 1 and one of rank 3 with extents of 1."""
    five = tl.make_tensor_descriptor(
        x, [A, B, C, D, E], [B * C * D * E, C * D * E, D * E, E, 1], [2, 1, 3, 2, 4]
    )
    tl.store(out + tl.arange(0, 48), five.load([0, start, 1, start, 1]).reshape(48))
    one = tl.make_tensor_descriptor(x, [A * B * C * D * E], [1], [N])
    one.store([start * N], tl.load_tensor_descriptor(one, [start]) + 1)
    three = tl.make_tensor_descriptor(out, [A, B, E], [B * E, E, 1], [1, 1, 4])
    three.store([start, 0, 0], three.load([A - 1, B - 1, start]))


@bl.jit
def rows_of(x, out, indices, M, N, column, ROWS: bl.constexpr, WIDE: bl.constexpr):
    """Rows gathered, doubled, and scattered to the same places of another array."""
    where = tl.load(indices + tl.arange(0, ROWS))
    source = tl.make_tensor_descriptor(x, [M, N], [N, 1], [1, WIDE])
    target = tl.make_tensor_descriptor(out, [M, N], [N, 1], [1, WIDE])
    target.scatter(source.gather(where, column) * 2, where, column)


@bl.jit
def described_pick(x, out, n, k, BLOCK: bl.constexpr):
    """A descriptor through branches and functions."""
    low = tl.make_tensor_descriptor(x, [n], [1], [BLOCK])
    high = tl.make_tensor_descriptor(x + n // 2, [n - n // 2], [1], [BLOCK])
    d = low
    for _ in range(k):
        d = high
    if k == 1:
        d = low
    tl.store(out + tl.arange(0, BLOCK), load_first(d, 1) if isinstance(d, tl.tensor_descriptor) else 0)


@bl.jit
def load_first(d, at):
    return d.load([at])


@bl.jit
def described_atomic(x, out, M, N, r0, c0, KIND: bl.constexpr, TALL: bl.constexpr, WIDE: bl.constexpr):
    """Every program changes the same block."""
    d = tl.make_tensor_descriptor(out, [M, N], [N, 1], [TALL, WIDE])
    value = tl.load(x + tl.program_id(0) * TALL * WIDE + offsets_2d(TALL, WIDE))
    if KIND == "add":
        tl.static_assert(d.atomic_add([r0, c0], value) is None)
    elif KIND == "min":
        d.atomic_min([r0, c0], value)
    elif KIND == "max":
        d.atomic_max([r0, c0], value)
    elif KIND == "and":
        d.atomic_and([r0, c0], value)
    elif KIND == "or":
        d.atomic_or([r0, c0], value)
    else:
        d.atomic_xor([r0, c0], value)
