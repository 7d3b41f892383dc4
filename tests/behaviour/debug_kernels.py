"""Kernels for the debug mode: some at fault, some that only look as if they were."""

# mypy: ignore-errors
from __future__ import annotations

import blocklang as bl
import blocklang.language as tl

# ---- outside of an array ----


@bl.jit
def tail_without_mask(x, out, n, BLOCK: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i)
    tl.store(out + i, v, mask=i < n)


@bl.jit
def store_one_more(x, out, n, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, i.to(tl.float32), mask=i <= n)


@bl.jit
def before_the_start(x, out, n, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i - 1, mask=i < n), mask=i < n)


@bl.jit
def scalar_past_the_end(x, out, n, BLOCK: bl.constexpr):
    tl.store(out, tl.load(x + n))


@bl.jit
def scalar_store(x, out, n, BLOCK: bl.constexpr):
    tl.store(out + tl.program_id(0) - 1, 1.0)


@bl.jit
def two_axes(x, out, n, BLOCK: bl.constexpr):
    i, j = tl.arange(0, BLOCK)[:, None], tl.arange(0, BLOCK)[None, :]
    v = tl.load(x + i * BLOCK + j, mask=(i < 3) & (j < BLOCK), other=0.0)
    tl.store(out + tl.arange(0, 1), tl.sum(v))


@bl.jit
def walks_too_far(x, out, n, BLOCK: bl.constexpr):
    at = x + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for _ in range(0, n, BLOCK):
        total += tl.load(at)
        at += BLOCK
    tl.store(out + tl.arange(0, BLOCK), total)


@bl.jit
def walks_while(x, out, n, BLOCK: bl.constexpr):
    at = x
    total = 0.0
    steps = 0
    while steps <= n:
        total += tl.load(at)
        at += 1
        steps += 1
    tl.store(out, total)


@bl.jit
def chosen_array(x, out, n, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    p = tl.where(i % 2 == 0, x + i, out + i)
    tl.store(out + i % 2, tl.load(p))


@bl.jit
def into_the_other_array(x, out, n, BLOCK: bl.constexpr):
    """What lies behind the end of `x` is memory of the launch, but not of `x`."""
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + n + i, mask=i < n), mask=i < n)


@bl.jit
def gathered(x, indices, out, n, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    at = tl.load(indices + i, mask=i < n, other=1 << 30)
    tl.store(out + i, tl.load(x + at, mask=i < n), mask=i < n)


@bl.jit
def gathered_twice(x, indices, out, n, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    at = tl.load(indices + tl.load(indices + i, mask=i < n), mask=i < n)
    tl.store(out + i, tl.load(x + at, mask=i < n), mask=i < n)


@bl.jit
def counted(x, out, n, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.atomic_add(out + i * 2, 1.0, mask=i < n)


@bl.jit
def in_an_arm(x, out, n, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    if n > 5:
        tl.store(out + i, 1.0)
    else:
        tl.store(out + i, 2.0, mask=i < n)


@bl.jit
def block_pointer(x, out, n, BLOCK: bl.constexpr):
    at = tl.make_block_ptr(x, (n,), (1,), (0,), (BLOCK,), (0,))
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(at), mask=i < n)


@bl.jit
def helper(x, at):
    return tl.load(x + at)


@bl.jit
def in_a_helper(x, out, n, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, helper(x, i), mask=i < n)


@bl.jit
def rows_masked_alone(x, out, n, BLOCK: bl.constexpr):
    """The mask speaks of rows; the columns of the same block of numbers go on."""
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i[None, :], mask=(i < 3)[:, None] & (i < BLOCK)[None, :], other=0.0)
    tl.store(out + tl.arange(0, 1), tl.sum(v))


@bl.jit
def masked_backwards(x, out, n, BLOCK: bl.constexpr):
    """The mask speaks of the lanes in another order than the address."""
    i = tl.arange(0, BLOCK)
    tl.store(out + i, 1.0, mask=tl.flip(i < 5))


@bl.jit
def masked_by_another_shape(x, out, n, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    m = tl.trans(tl.reshape(i < BLOCK // 2, [2, BLOCK // 2]), 1, 0)
    tl.store(out + tl.reshape(i, [BLOCK // 2, 2]), 1.0, mask=m)


# ---- wrapped addresses ----


@bl.jit
def wrapped_product(x, out, stride, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i * stride, mask=i != 1)
    tl.store(out + i, v)


@bl.jit
def wrapped_scalar(x, out, stride, BLOCK: bl.constexpr):
    row = tl.program_id(0) * stride * 4
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + row + i))


@bl.jit
def wrapped_behind_a_mask(x, out, stride, BLOCK: bl.constexpr):
    """The product wraps to a small number, and its mask lets it through."""
    i = tl.arange(0, BLOCK) * stride
    tl.store(out + i, 1.0, mask=i < BLOCK)


@bl.jit
def wrapped_remainder(x, out, stride, BLOCK: bl.constexpr):
    i = (tl.arange(0, BLOCK) * stride) % 5
    tl.store(out + tl.where(i < 0, -i, i), 1.0)


@bl.jit
def wrapped_shift(x, out, stride, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + (i << 30), 1.0, mask=i % 4 == 0)


@bl.jit
def wrapped_cast(x, out, stride, BLOCK: bl.constexpr):
    i = (tl.arange(0, BLOCK).to(tl.int64) * stride * 4).to(tl.int32)
    tl.store(out + i, 1.0)


@bl.jit
def wrapped_in_a_loop(x, out, stride, BLOCK: bl.constexpr):
    """Four times a quarter of the range: the last address is the first again."""
    i = tl.arange(0, BLOCK)
    for _ in range(5):
        tl.store(out + i, 1.0, mask=(i >= 0) & (i < BLOCK))
        i += stride


@bl.jit
def wrapped_in_a_while(x, out, stride, BLOCK: bl.constexpr):
    at = 0
    rounds = 0
    while rounds < 5:
        tl.store(out + at, 1.0, mask=at == 0)
        at = at + stride
        rounds += 1


@bl.jit
def wrapped_in_an_arm(x, out, stride, BLOCK: bl.constexpr):
    at = tl.program_id(0)
    if stride > 5:
        at = at * stride * 4
    tl.store(out + at + tl.arange(0, BLOCK), 1.0)


@bl.jit
def wrapped_step_of_a_pointer(x, out, stride, BLOCK: bl.constexpr):
    at = out + tl.arange(0, BLOCK)
    for _ in range(3):
        tl.store(at, 1.0)
        at += stride * 4


@bl.jit
def wrapped_between_lanes(x, out, stride, BLOCK: bl.constexpr):
    """Each lane has a step of its own: the block of offsets is carried."""
    i = tl.arange(0, BLOCK)
    at = i
    for _ in range(5):
        tl.store(out + at, 1.0, mask=(at >= 0) & (at < BLOCK))
        at += (i % 2) * stride


# ---- nothing wrong ----


@bl.jit
def masked_tail(x, out, n, BLOCK: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)


@bl.jit
def dead_lanes_wrap(x, out, n, BLOCK: bl.constexpr):
    """Lanes that are not live have addresses that wrap, or lie anywhere."""
    i = tl.arange(0, BLOCK)
    far = i * (1 << 28)
    tl.store(out + i + far * 8, tl.load(x + far, mask=i < 1, other=3.0), mask=i < 1)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)


@bl.jit
def walks_beyond(x, out, n, BLOCK: bl.constexpr):
    """The pointer stands behind its array when the loop ends."""
    i = tl.arange(0, BLOCK)
    at, to = x + i, out + i
    for start in range(0, n, BLOCK):
        live = start + i < n
        tl.store(to, tl.load(at, mask=live), mask=live)
        at += BLOCK
        to += BLOCK


@bl.jit
def walks_backwards(x, out, n, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    at = x + n - 1 - i
    for start in range(0, n, BLOCK):
        live = start + i < n
        tl.store(out + n - 1 - start - i, tl.load(at, mask=live), mask=live)
        at -= BLOCK


@bl.jit
def jumps(x, out, n, BLOCK: bl.constexpr):
    """The step differs between lanes and rounds."""
    i = tl.arange(0, BLOCK)
    at = i
    for k in range(n):
        tl.store(out + at % n, tl.load(x + at % n))
        at += i + k


@bl.jit
def in_place(x, out, n, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(x + n - 1 - i, v, mask=i < n)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)


@bl.jit
def overlapping_tiles(x, out, n, BLOCK: bl.constexpr):
    """Programs read what their neighbours read, too; the first and last see less."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    left = tl.load(x + i - 1, mask=(i > 0) & (i <= n), other=0.0)
    right = tl.load(x + i + 1, mask=i + 1 < n, other=0.0)
    tl.store(out + i, left + right, mask=i < n)


@bl.jit
def remainders(x, out, n, BLOCK: bl.constexpr):
    i = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)) % n
    tl.store(out + i, tl.load(x + i))


@bl.jit
def clamped(x, out, n, BLOCK: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = tl.minimum(tl.maximum(i - 3, 0), n - 1)
    tl.store(out + i, tl.load(x + at), mask=i < n)


@bl.jit
def hashed(x, out, n, BLOCK: bl.constexpr):
    """Unsigned arithmetic wraps on purpose."""
    i = tl.arange(0, BLOCK)
    at = (i.to(tl.uint32) * 2654435761) % 16
    v = tl.load(x + at % 4, mask=i < n)
    tl.store(out + i, v, mask=i < n)


@bl.jit
def strided(x, out, m, n, sx, sy, M: bl.constexpr, N: bl.constexpr):
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    live = (i < m) & (j < n)
    tl.store(out + i * n + j, tl.load(x + i * sx + j * sy, mask=live), mask=live)


@bl.jit
def long_stride(x, out, n, stride, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i.to(tl.int64) * stride, mask=i < n), mask=i < n)


@bl.jit
def scalars(x, out):
    tl.store(out, tl.load(x) * 2)


@bl.jit
def made_of_an_integer(x, out, address, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    p = address.to(tl.pointer_type(tl.float32))
    tl.store(out + i, tl.load(p + i))


@bl.jit
def maybe_null(x, out, n, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(tl.where(i < n, x + i, x), mask=i < n), mask=i < n)


@bl.jit
def descriptor(x, out, n, BLOCK: bl.constexpr):
    """Blocks hang over both ends; what is outside is not touched."""
    source = tl.make_tensor_descriptor(x, (n, n), (n, 1), (BLOCK, BLOCK))
    target = tl.make_tensor_descriptor(out, (n, n), (n, 1), (BLOCK, BLOCK))
    for r in range(-1, tl.cdiv(n, BLOCK) + 1):
        for c in range(-1, tl.cdiv(n, BLOCK) + 1):
            target.store((r * BLOCK, c * BLOCK), source.load((r * BLOCK, c * BLOCK)))


@bl.jit
def matrix_product(a, b, out, M, N, K, BM: bl.constexpr, BN: bl.constexpr, BK: bl.constexpr):
    rows = (tl.program_id(0) * BM + tl.arange(0, BM)) % M
    columns = (tl.program_id(1) * BN + tl.arange(0, BN)) % N
    inner = tl.arange(0, BK)
    pa = a + rows[:, None] * K + inner[None, :]
    pb = b + inner[:, None] * N + columns[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(tl.cdiv(K, BK)):
        x = tl.load(pa, mask=inner[None, :] < K - k * BK, other=0.0)
        y = tl.load(pb, mask=inner[:, None] < K - k * BK, other=0.0)
        acc = tl.dot(x, y, acc)
        pa += BK
        pb += BK * N
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    live = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(out + rows[:, None] * N + columns[None, :], acc, mask=live)


# ---- NaN and poison ----


@bl.jit
def quotient(x, y, out, n, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) / tl.load(y + i, mask=i < n), mask=i < n)


@bl.jit
def root(x, y, out, n, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.sqrt(tl.load(x + i, mask=i < n) - 1.0), mask=i < n)


@bl.jit
def difference_of_infinities(x, y, out, n, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    big = tl.load(x + i, mask=i < n) * 3.4e38
    tl.store(out + i, big - big, mask=i < n)


@bl.jit
def sum_of_infinities(x, y, out, n, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0.0)
    tl.store(out, tl.sum(v / tl.load(y + i, mask=i < n, other=1.0)))


@bl.jit
def product_in_a_loop(x, y, out, n, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    for _ in range(3):
        v = v * tl.load(y + i, mask=i < n)
    tl.store(out + i, v, mask=i < n)


@bl.jit
def padding_in_a_sum(x, y, out, n, BLOCK: bl.constexpr):
    """What is beyond n is 0 / 0, and nobody takes it out of the sum."""
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0.0) / tl.load(y + i, mask=i < n, other=0.0)
    tl.store(out, tl.sum(v))


@bl.jit
def padding(x, y, out, n, BLOCK: bl.constexpr):
    """What is beyond n is 0 / 0, and is taken out before it matters."""
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0.0) / tl.load(y + i, mask=i < n, other=0.0)
    w = tl.sqrt(v) - v * v
    total = tl.sum(tl.where(i < n, w, 0.0))
    tl.store(out + i, w + total, mask=i < n)


@bl.jit
def softmax(x, y, out, n, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(out + i, e / tl.sum(e, 0), mask=i < n)


@bl.jit
def relies_on_zeros(x, out, n, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out, tl.sum(tl.load(x + i, mask=i < n)))


@bl.jit
def asks_for_zeros(x, out, n, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    at = tl.load(x + i, mask=i < n, other=0)
    also = tl.sum(tl.make_tensor_descriptor(x, (n,), (1,), (BLOCK,)).load((0,)))
    tl.store(out, tl.sum(at) + also - also)


@bl.jit
def doubled(x, out, n, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(out + i, v + v, mask=i < n)


@bl.jit
def fused_sum(x, out, n, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(out + i, v * v - v, mask=i < n)


# ---- what an `if` hands on ----


@bl.jit
def offsets_that_an_arm_renews(x, out, n, BLOCK: bl.constexpr):
    tile = -1
    i = tl.arange(0, BLOCK)
    for step in range(n):
        if step % 2 == 0:
            tile += 1
            i = tile * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i))
