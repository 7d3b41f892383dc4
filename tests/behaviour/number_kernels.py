"""Kernels for the rows about numbers."""

# mypy: ignore-errors
from __future__ import annotations

import blocklang as bl
import blocklang.language as tl


@bl.jit
def apply_two(x, y, out, n, BLOCK: bl.constexpr, F: bl.constexpr, RESULT: bl.constexpr):
    """F of two blocks; dead lanes hold zeros."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    r = F(tl.load(x + i, mask=i < n), tl.load(y + i, mask=i < n))
    tl.static_assert(r.dtype == RESULT)
    tl.store(out + i, r, mask=i < n)


@bl.jit
def apply_one(x, out, n, BLOCK: bl.constexpr, F: bl.constexpr, RESULT: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    r = F(tl.load(x + i, mask=i < n))
    tl.static_assert(r.dtype == RESULT)
    tl.store(out + i, r, mask=i < n)


@bl.jit
def common_types(out, LEFT: bl.constexpr, RIGHTS: bl.constexpr, RESULTS: bl.constexpr):
    a = tl.full((4,), 1, LEFT)
    for k in tl.static_range(len(RIGHTS)):
        b = tl.full((4,), 1, RIGHTS[k])
        tl.static_assert((a + b).dtype == RESULTS[k])
        tl.static_assert((a * tl.sum(b).to(RIGHTS[k])).dtype == RESULTS[k])
        tl.static_assert(tl.where(a == b, a, b).dtype == RESULTS[k])
        tl.store(out + k, 1)


@bl.jit
def cast_all(x, out, n, BLOCK: bl.constexpr, TYPE: bl.constexpr):
    """Rows: by a cast, by the store itself."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n)
    tl.store(out + i, a.to(TYPE), mask=i < n)
    tl.store(out + n + i, a, mask=i < n)


@bl.jit
def with_scalar(x, out, s, n, BLOCK: bl.constexpr, RESULT: bl.constexpr):
    """A kernel argument is no weak number: it has a type of its own."""
    i = tl.arange(0, BLOCK)
    r = tl.load(x + i, mask=i < n) + s
    tl.static_assert(r.dtype == RESULT)
    tl.store(out + i, r, mask=i < n)


@bl.jit
def divided_where_dead(x, y, out, n, live, BLOCK: bl.constexpr):
    """Quotients by zero, and of the least number by -1, on lanes whose results nobody takes."""
    i = tl.arange(0, BLOCK)
    a, b = tl.load(x + i, mask=i < n), tl.load(y + i, mask=i < n)
    tl.store(out + i, a // b, mask=(i < live) & (i < n))
    tl.store(out + n + i, a % b, mask=(i < live) & (i < n))
    tl.store(out + 2 * n + i, tl.where(b == 0, a, a // b), mask=i < n)


@bl.jit
def divided_scalars(out, a, b, rounds):
    """A quotient that is the same in each round of a loop that may run no round, and one in a branch."""
    total = a * 0
    for _ in range(rounds):
        total += a // b
    tl.store(out, total)
    if b != 0:
        tl.store(out + 1, a % b)
    tl.store(out + 2, a // b)
    tl.store(out + 3, a % b)


@bl.jit
def divided_by_constants(x, out, n, BLOCK: bl.constexpr, DIVISORS: bl.constexpr):
    i = tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n)
    for k in tl.static_range(len(DIVISORS)):
        tl.store(out + (2 * k) * n + i, a // DIVISORS[k], mask=i < n)
        tl.store(out + (2 * k + 1) * n + i, a % DIVISORS[k], mask=i < n)


@bl.jit
def folded_and_not(out, a, b, A: bl.constexpr, B: bl.constexpr):
    tl.store(out, a // b)
    tl.store(out + 1, a % b)
    tl.store(out + 2, A // B)
    tl.store(out + 3, A % B)
    tl.store(out + 4, tl.cdiv(a, b))


@bl.jit
def wrapped(x, out, n, BLOCK: bl.constexpr):
    """Rows: x + 1 > x, (x * 2) // 2, -x, x - 1 < x, abs(x)."""
    i = tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n)
    tl.store(out + i, (a + 1 > a).to(a.dtype), mask=i < n)
    tl.store(out + n + i, (a * 2) // 2, mask=i < n)
    tl.store(out + 2 * n + i, -a, mask=i < n)
    tl.store(out + 3 * n + i, (a - 1 < a).to(a.dtype), mask=i < n)
    tl.store(out + 4 * n + i, tl.abs(a), mask=i < n)


@bl.jit
def wrapped_offsets(x, out, start, stride, BLOCK: bl.constexpr):
    """The product wraps in 32 bits, then widens: never as if it had been computed in 64."""
    i = tl.arange(0, BLOCK)
    at = start + i * stride
    tl.store(out + i, tl.load(x + at))


@bl.jit
def bytes_as_offsets(x, offsets, out, BLOCK: bl.constexpr):
    """8-bit offsets: twice an offset wraps in 8 bits, and the pointer sees the wrapped number."""
    i = tl.arange(0, BLOCK)
    by = tl.load(offsets + i)
    tl.store(out + i, tl.load(x + 128 + (by + by)))


@bl.jit
def rounds_at_the_end(out, start, stop, step):
    count = 0
    for _ in range(start, stop, step):
        count += 1
    tl.store(out, count)


@bl.jit
def shifts(x, counts, out, n, BLOCK: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, by = tl.load(x + i, mask=i < n), tl.load(counts + i, mask=i < n)
    tl.store(out + i, a << by, mask=i < n)
    tl.store(out + n + i, a >> by, mask=i < n)


@bl.jit
def shifted_scalars(out, a, by, BY: bl.constexpr):
    tl.store(out, a << by)
    tl.store(out + 1, a >> by)
    tl.store(out + 2, a << BY)
    tl.store(out + 3, a >> BY)


@bl.jit
def literals_to(out, VALUES: bl.constexpr, TYPE: bl.constexpr):
    """Casts of constants, which the compiler folds."""
    for k in tl.static_range(len(VALUES)):
        tl.store(out + k, tl.full((), VALUES[k], tl.float32).to(TYPE))


@bl.jit
def literals_not_folded(x, out, COUNT: bl.constexpr, TYPE: bl.constexpr):
    for k in tl.static_range(COUNT):
        tl.store(out + k, tl.load(x + k).to(TYPE))


@bl.jit
def extremes(x, out, at, M: bl.constexpr, N: bl.constexpr):
    """Per row: max, min; argmax, argmin; and the same by return_indices."""
    i, j = tl.arange(0, M), tl.arange(0, N)
    a = tl.load(x + i[:, None] * N + j[None, :])
    tl.store(out + i, tl.max(a, axis=1))
    tl.store(out + M + i, tl.min(a, axis=1))
    tl.store(at + i, tl.argmax(a, axis=1))
    tl.store(at + M + i, tl.argmin(a, axis=1))
    high, highest = tl.max(a, axis=1, return_indices=True)
    low, lowest = tl.min(a, axis=1, return_indices=True)
    tl.store(out + 2 * M + i, high)
    tl.store(out + 3 * M + i, low)
    tl.store(at + 2 * M + i, highest)
    tl.store(at + 3 * M + i, lowest)


@bl.jit
def extremes_of_two(x, y, out, n, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    a, b = tl.load(x + i, mask=i < n), tl.load(y + i, mask=i < n)
    tl.store(out + i, tl.maximum(a, b), mask=i < n)
    tl.store(out + n + i, tl.minimum(a, b), mask=i < n)
    tl.store(out + 2 * n + i, tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL), mask=i < n)
    tl.store(out + 3 * n + i, tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL), mask=i < n)


@bl.jit
def summed(x, out, N: bl.constexpr, RESULT: bl.constexpr, DTYPE: bl.constexpr):
    s = tl.sum(tl.load(x + tl.arange(0, N)), dtype=DTYPE)
    tl.static_assert(s.dtype == RESULT)
    tl.store(out, s)


@bl.jit
def left(a, b):
    return a


@bl.jit
def right(a, b):
    return b


@bl.jit
def compose(a, b, c, d):
    """First x -> a * x + b, then x -> c * x + d: associative, and not commutative."""
    return a * c, b * c + d


@bl.jit
def scanned(x, y, out, N: bl.constexpr, REVERSE: bl.constexpr):
    """Rows: the two parts of a composition, the left operand, the right one."""
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(y + i)
    slope, offset = tl.associative_scan((a, b), 0, compose, reverse=REVERSE)
    tl.store(out + i, slope)
    tl.store(out + N + i, offset)
    tl.store(out + 2 * N + i, tl.associative_scan(a, 0, left, reverse=REVERSE))
    tl.store(out + 3 * N + i, tl.associative_scan(a, 0, right, reverse=REVERSE))


@bl.jit
def running_sums(x, out, N: bl.constexpr, REVERSE: bl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.cumsum(tl.load(x + i), reverse=REVERSE))


@bl.jit
def add(a, b):
    return a + b


@bl.jit
def subtract(a, b):
    return a - b


@bl.jit
def multiply(a, b):
    return a * b


@bl.jit
def divide(a, b):
    return a / b


@bl.jit
def floor_divide(a, b):
    return a // b


@bl.jit
def modulo(a, b):
    return a % b


@bl.jit
def choose_smaller(a, b):
    return tl.where(a < b, a, b)


@bl.jit
def plus_two(a):
    return a + 2


@bl.jit
def plus_assigned_two(a):
    s = 2
    return a + s


@bl.jit
def plus_two_and_a_half(a):
    return a + 2.5


@bl.jit
def times_huge(a):
    return a * 1e300


@bl.jit
def plus_true(a):
    return a + True


@bl.jit
def there_and_back(a):
    """Not a: 1e8 takes its last digits away, unless somebody reorders the sum."""
    return (a + 1e8) - 1e8


@bl.jit
def times_zero(a):
    return a * 0.0


@bl.jit
def over_three(a):
    return a / 3.0


@bl.jit
def itself_less_itself(a):
    return a - a


@bl.jit
def plus_zero(a):
    return a + 0.0


@bl.jit
def product_and_sum(a, b):
    """Rounded twice: what is left is 0 unless a fused multiply-add keeps the product's rounding error."""
    return a * b - (a * b)


@bl.jit
def product_then_sum(a, b):
    return a * b + b


@bl.jit
def matrix_product(x, y, out, M: bl.constexpr, N: bl.constexpr, K: bl.constexpr, PRECISION: bl.constexpr):
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(x + i[:, None] * K + k[None, :])
    b = tl.load(y + k[:, None] * N + j[None, :])
    c = tl.dot(a, b, input_precision=PRECISION)
    tl.store(out + i[:, None] * N + j[None, :], c)


@bl.jit
def many_operations(x, y, out, n, BLOCK: bl.constexpr):
    """Sums, products, quotients, roots, a fold and a conversion."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, b = tl.load(x + i, mask=i < n, other=1.0), tl.load(y + i, mask=i < n, other=1.0)
    tl.store(out + i, a + b, mask=i < n)
    tl.store(out + n + i, a * b, mask=i < n)
    tl.store(out + 2 * n + i, a / b, mask=i < n)
    tl.store(out + 3 * n + i, tl.sqrt(tl.abs(a)) - tl.exp(b), mask=i < n)
    tl.store(out + 4 * n + i, tl.cumsum(a) + tl.sum(b), mask=i < n)


@bl.jit
def folded_floats(out, A: bl.constexpr, B: bl.constexpr):
    """Arithmetic of constants: Python's, and that of run-time values which the compiler knows."""
    a, b = tl.full((), A, tl.float64), tl.full((), B, tl.float64)
    tl.store(out, A / B)
    tl.store(out + 1, a / b)
    tl.store(out + 2, b / 7.0)
    tl.store(out + 3, a * a + B / 49.0)


@bl.jit
def to_bool(x, out, n, BLOCK: bl.constexpr):
    """Rows: by a cast, by the store itself, by a comparison, and as a condition."""
    i = tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n)
    tl.store(out + i, a.to(tl.int1), mask=i < n)
    tl.store(out + n + i, a, mask=i < n)
    tl.store(out + 2 * n + i, a != 0, mask=i < n)
    tl.store(out + 3 * n + i, tl.where(a.to(tl.int1), True, False), mask=i < n)


@bl.jit
def bools(x, y, out, counts, n, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    a, b = tl.load(x + i, mask=i < n), tl.load(y + i, mask=i < n)
    tl.store(out + i, a & b, mask=i < n)
    tl.store(out + n + i, a | b, mask=i < n)
    tl.store(out + 2 * n + i, a ^ b, mask=i < n)
    tl.store(out + 3 * n + i, ~a, mask=i < n)
    tl.store(out + 4 * n + i, a + b, mask=i < n)
    tl.store(out + 5 * n + i, a, mask=i < n)
    tl.store(counts, tl.sum(a.to(tl.int32)))
    tl.store(counts + 1, tl.sum(tl.where(a, 1, 0)))
    tl.store(counts + 2, tl.sum(a).to(tl.int32))
    tl.store(counts + 3, tl.load(x).to(tl.int32))
