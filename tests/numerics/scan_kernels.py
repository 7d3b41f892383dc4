"""Kernels that scan blocks, and kernels that map functions of scalars."""

# mypy: ignore-errors
from __future__ import annotations

import blocklang as bl
import blocklang.language as tl
from tests.numerics.shape_kernels import offsets_2d, offsets_3d


@bl.jit
def sums(x, out, n, N: bl.constexpr, REVERSE: bl.constexpr, RESULT: bl.constexpr):
    i = tl.arange(0, N)
    r = tl.cumsum(tl.load(x + i, mask=i < n), 0, reverse=REVERSE)
    tl.static_assert(r.dtype == RESULT)
    tl.store(out + i, r, mask=i < n)


@bl.jit
def products(x, out, n, N: bl.constexpr, REVERSE: bl.constexpr, RESULT: bl.constexpr):
    i = tl.arange(0, N)
    r = tl.load(x + i, mask=i < n, other=1).cumprod(0, REVERSE)
    tl.static_assert(r.dtype == RESULT)
    tl.store(out + i, r, mask=i < n)


@bl.jit
def sums_as(x, out, N: bl.constexpr, TYPE: bl.constexpr):
    i = tl.arange(0, N)
    r = tl.load(x + i).cumsum(dtype=TYPE)
    tl.static_assert(r.dtype == TYPE)
    tl.store(out + i, r)


@bl.jit
def digits(a, b):
    """Neither commutative nor associative: the order shows."""
    return a * 31 + b * 17 + 1


@bl.jit
def along(x, out, SHAPE: bl.constexpr, AXIS: bl.constexpr, REVERSE: bl.constexpr):
    """Any rank: the arrays are contiguous."""
    if len(SHAPE) == 1:
        i = tl.arange(0, SHAPE[0])
    elif len(SHAPE) == 2:
        i = offsets_2d(SHAPE[0], SHAPE[1])
    elif len(SHAPE) == 3:
        i = offsets_3d(SHAPE[0], SHAPE[1], SHAPE[2])
    else:
        i = offsets_3d(SHAPE[1], SHAPE[2], SHAPE[3])[None, :, :, :]
        i += tl.arange(0, SHAPE[0])[:, None, None, None] * (SHAPE[1] * SHAPE[2] * SHAPE[3])
    tl.store(out + i, tl.associative_scan(tl.load(x + i), AXIS, digits, reverse=REVERSE))


@bl.jit
def compose(scale, shift, next_scale, next_shift):
    """x -> scale * x + shift, then the next such map."""
    return scale * next_scale, shift * next_scale + next_shift


@bl.jit
def composed(a, b, scale, shift, M: bl.constexpr, N: bl.constexpr, AXIS: bl.constexpr, REVERSE: bl.constexpr):
    i = offsets_2d(M, N)
    s, t = tl.associative_scan((tl.load(a + i), tl.load(b + i)), AXIS, compose, REVERSE)
    tl.store(scale + i, s)
    tl.store(shift + i, t)


@bl.jit
def segment(value, starts, next_value, next_starts):
    return tl.where(next_starts != 0, next_value, value + next_value), starts | next_starts


@bl.jit
def segmented(x, starts, out, N: bl.constexpr):
    """Running sums that begin again where a segment starts; the types of the pair differ."""
    i = tl.arange(0, N)
    r, _ = tl.associative_scan((tl.load(x + i), tl.load(starts + i)), 0, segment)
    tl.store(out + i, r)


@bl.jit
def best(value, index, next_value, next_index):
    if next_value > value:
        return next_value, next_index
    else:
        return value, index


@bl.jit
def best_so_far(x, values, indices, N: bl.constexpr, REVERSE: bl.constexpr):
    i = tl.arange(0, N)
    v, k = tl.associative_scan((tl.load(x + i), i), 0, best, reverse=REVERSE)
    tl.store(values + i, v)
    tl.store(indices + i, k)


@bl.jit
def collatz_sum(a, b):
    """The sum, and then the steps that it takes to 1, at most 40."""
    n = tl.abs(a + b) % 1000 + 1
    steps = 0
    while n > 1 and steps < 40:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return a + b + steps


@bl.jit
def looped(x, scanned, folded, N: bl.constexpr):
    """A function that loops, in a scan and in a reduction."""
    i = tl.arange(0, N)
    a = tl.load(x + i)
    tl.store(scanned + i, tl.associative_scan(a, 0, collatz_sum))
    tl.store(folded, tl.reduce(a, 0, collatz_sum))


@bl.jit
def twice(x, out, M: bl.constexpr, N: bl.constexpr):
    """A scan of a scan, and its operand again."""
    i = offsets_2d(M, N)
    a = tl.load(x + i)
    b = tl.cumsum(a, 1)
    tl.store(out + i, tl.cumsum(b, 0, reverse=True) - tl.max(b, 1)[:, None] + a)


@bl.jit
def carried(x, out, rounds, N: bl.constexpr):
    """Blocks that a loop carries, and one scanned before it."""
    i = tl.arange(0, N)
    a = tl.load(x + i)
    before = tl.cumsum(a, 0)
    for k in range(rounds):
        a = tl.cumsum(a, 0, reverse=True) + before * k
        if k % 2 == 1:
            a = tl.cumsum(a - 1)
    tl.store(out + i, a)


# ---- maps ----


@bl.jit
def escape(re, im, limit):
    x = 0.0 * re
    y = 0.0 * im
    steps = 0
    while x * x + y * y <= 4.0 and steps < limit:
        t = x * x - y * y + re
        y = 2.0 * x * y + im
        x = t
        steps += 1
    return steps


@bl.jit
def mandelbrot(re, im, out, limit, M: bl.constexpr, N: bl.constexpr):
    """Blocks that broadcast, and a scalar."""
    a = tl.load(re + tl.arange(0, N))[None, :]
    b = tl.load(im + tl.arange(0, M))[:, None]
    tl.store(out + offsets_2d(M, N), tl.map_elementwise(escape, a, b, limit))


@bl.jit
def ranged(start, stop, step):
    total = start * 0
    last = start
    for k in range(start, stop, step):
        total = total * 3 + k
        last = k
    return total, last


@bl.jit
def ranges(starts, stops, steps, totals, lasts, N: bl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.map_elementwise(ranged, tl.load(starts + i), tl.load(stops + i), tl.load(steps + i))
    tl.store(totals + i, a)
    tl.store(lasts + i, b)


@bl.jit
def gcd(a, b):
    while b != 0:
        a, b = b, a % b
    return a


@bl.jit
def depth(x):
    """Loops in loops in branches."""
    n = 0
    if x > 0:
        for i in range(x % 5):
            k = i
            while k > 0:
                if (k + x) % 3 == 0:
                    n += k
                k -= 1
    else:
        n = -x
        while n > 10:
            n -= 7
    return n


@bl.jit
def divisors(x, y, gcds, depths, N: bl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    tl.store(gcds + i, tl.map_elementwise(gcd, a, tl.load(y + i)))
    tl.store(depths + i, tl.map_elementwise(depth, a))


@bl.jit
def triangle(n, limit):
    """How many rounds it takes is one number for all that are left, and makes what decides who is."""
    i, j = 0, 0
    while j < n and i < limit:
        j = j + i + 1
        i += 1
    return i, j


@bl.jit
def halvings(x, limit):
    """Lanes of another size than what counts them."""
    n = 0
    while n < limit and x > 1.0:
        x = x * 0.5
        n += 1
    return n


@bl.jit
def rounds(x, y, counts, sums, halved, limit, N: bl.constexpr):
    i = tl.arange(0, N)
    n, total = tl.map_elementwise(triangle, tl.load(x + i), limit)
    tl.store(counts + i, n)
    tl.store(sums + i, total)
    tl.store(halved + i, tl.map_elementwise(halvings, tl.load(y + i), limit))


@bl.jit
def rotate_3(a, b, c, w0, w1, w2):
    return b, c, a, a * w0, b * w1, c * w2


@bl.jit
def packs(x, w, rotated, scaled, M: bl.constexpr, N: bl.constexpr):
    i = offsets_2d(M, N)
    r, s = tl.map_elementwise(rotate_3, tl.load(x + i), tl.load(w + i), pack=3)
    tl.store(rotated + i, r)
    tl.store(scaled + i, s)


@bl.jit
def chase(p, start):
    """Loads in a loop, from addresses that depend on what was loaded."""
    at = start
    for _ in range(3):
        at = tl.load(p + at)
    return at


@bl.jit
def chased(table, x, out, N: bl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.map_elementwise(chase, table + i * 0, tl.load(x + i)))


@bl.jit
def several_readers(x, out, N: bl.constexpr):
    """A loop's result that is read by two loops, another lane, and a scan."""
    i = tl.arange(0, N)
    a = tl.map_elementwise(depth, tl.load(x + i))
    tl.store(out + i, a - tl.sum(a, 0))
    tl.store(out + N + i, tl.cumsum(a, 0))


# ---- what functions may hold ----


@bl.jit
def product(a, b):
    return a * b


@bl.jit
def of_products(a, b):
    return product(a, b) + product(b, b)


@bl.jit
def captured(x, out, s, N: bl.constexpr):
    """Functions that call others, and that use scalars of the kernel; a scan under a condition."""
    i = tl.arange(0, N)
    a = tl.load(x + i)
    t = tl.load(x)
    tl.store(out + i, tl.associative_scan(a, 0, lambda a, b: a * s + b + t))
    tl.store(out + N + i, tl.associative_scan(a, 0, of_products))
    tl.store(out + 2 * N, tl.reduce(a, 0, lambda a, b: a * s - b))
    if s > 2:
        y = tl.cumsum(a)
    else:
        y = tl.cumprod(a)
    tl.store(out + 2 * N + 1 + i, y)


@bl.jit
def early(x):
    if x < 0:
        return 0
    while x > 5:
        if x == 17:
            return x
        x -= 3
    return -x


@bl.jit
def returning(x, out, N: bl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.map_elementwise(early, tl.load(x + i)))


@bl.jit
def pointers(x, out, N: bl.constexpr):
    i = tl.arange(0, N)
    p = tl.associative_scan(x + i, 0, lambda a, b: b)
    tl.store(out + i, tl.load(p) + 1)
    tl.store(out + N + i, tl.map_elementwise(lambda q: tl.load(q), p) * 2)
