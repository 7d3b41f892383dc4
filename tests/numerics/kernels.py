"""Kernels that several families share: they apply compile-time tuples of functions, one output row each.

Each function's result must have the type `RESULT`, which is that of `out`.
"""

# mypy: ignore-errors
from __future__ import annotations

import blocklang as bl
import blocklang.language as tl


@bl.jit
def unary(x, out, n, BLOCK: bl.constexpr, OPS: bl.constexpr, RESULT: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    a = tl.load(x + i, mask=mask)
    for k in tl.static_range(len(OPS)):
        r = OPS[k](a)
        tl.static_assert(r.dtype == RESULT)
        tl.store(out + k * n + i, r, mask=mask)


@bl.jit
def binary(x, y, out, n, BLOCK: bl.constexpr, OPS: bl.constexpr, RESULT: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    a = tl.load(x + i, mask=mask)
    b = tl.load(y + i, mask=mask)
    for k in tl.static_range(len(OPS)):
        r = OPS[k](a, b)
        tl.static_assert(r.dtype == RESULT)
        tl.store(out + k * n + i, r, mask=mask)


@bl.jit
def arithmetic(
    x, y, out, divided, n, BLOCK: bl.constexpr,
    OPS: bl.constexpr, DIVISIONS: bl.constexpr, RESULT: bl.constexpr, DIVIDED: bl.constexpr,
):  # fmt: skip
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    a = tl.load(x + i, mask=mask)
    b = tl.load(y + i, mask=mask)
    for k in tl.static_range(len(OPS)):
        r = OPS[k](a, b)
        tl.static_assert(r.dtype == RESULT)
        tl.store(out + k * n + i, r, mask=mask)
    for k in tl.static_range(len(DIVISIONS)):
        q = DIVISIONS[k](a, b)
        tl.static_assert(q.dtype == DIVIDED)
        tl.store(divided + k * n + i, q, mask=mask)


@bl.jit
def with_literals(
    x, out, n, BLOCK: bl.constexpr, OPS: bl.constexpr, LITERALS: bl.constexpr, RESULT: bl.constexpr
):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    a = tl.load(x + i, mask=mask)
    for p in tl.static_range(len(OPS)):
        for k in tl.static_range(len(LITERALS)):
            r = OPS[p](a, LITERALS[k])
            tl.static_assert(r.dtype == RESULT)
            tl.store(out + 2 * (p * len(LITERALS) + k) * n + i, r, mask=mask)
            r2 = OPS[p](LITERALS[k], a)
            tl.static_assert(r2.dtype == RESULT)
            tl.store(out + (2 * (p * len(LITERALS) + k) + 1) * n + i, r2, mask=mask)


@bl.jit
def ternary(x, y, z, out, n, BLOCK: bl.constexpr, OPS: bl.constexpr, RESULT: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    a = tl.load(x + i, mask=mask)
    b = tl.load(y + i, mask=mask)
    c = tl.load(z + i, mask=mask)
    for k in tl.static_range(len(OPS)):
        r = OPS[k](a, b, c)
        tl.static_assert(r.dtype == RESULT)
        tl.store(out + k * n + i, r, mask=mask)


@bl.jit
def quaternary(w, x, y, z, out, n, BLOCK: bl.constexpr, OPS: bl.constexpr, RESULT: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    a = tl.load(w + i, mask=mask)
    b = tl.load(x + i, mask=mask)
    c = tl.load(y + i, mask=mask)
    d = tl.load(z + i, mask=mask)
    for k in tl.static_range(len(OPS)):
        r = OPS[k](a, b, c, d)
        tl.static_assert(r.dtype == RESULT)
        tl.store(out + k * n + i, r, mask=mask)


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
def remainder(a, b):
    return a % b


@bl.jit
def bit_and(a, b):
    return a & b


@bl.jit
def bit_or(a, b):
    return a | b


@bl.jit
def bit_xor(a, b):
    return a ^ b


@bl.jit
def shift_left(a, b):
    return a << b


@bl.jit
def shift_right(a, b):
    return a >> b


@bl.jit
def less(a, b):
    return a < b


@bl.jit
def less_equal(a, b):
    return a <= b


@bl.jit
def greater(a, b):
    return a > b


@bl.jit
def greater_equal(a, b):
    return a >= b


@bl.jit
def equal(a, b):
    return a == b


@bl.jit
def not_equal(a, b):
    return a != b


OPERATORS = {
    "+": add,
    "-": subtract,
    "*": multiply,
    "/": divide,
    "//": floor_divide,
    "%": remainder,
    "&": bit_and,
    "|": bit_or,
    "^": bit_xor,
    "<<": shift_left,
    ">>": shift_right,
    "<": less,
    "<=": less_equal,
    ">": greater,
    ">=": greater_equal,
    "==": equal,
    "!=": not_equal,
}


@bl.jit
def invert(a):
    return ~a


@bl.jit
def negate(a):
    return -a


@bl.jit
def positive(a):
    return +a


@bl.jit
def logical_not(a):
    return not a


@bl.jit
def logical_and(a, b):
    return a.logical_and(b)


@bl.jit
def logical_or(a, b):
    return a.logical_or(b)


@bl.jit
def cast_to_all(
    x, int1, int8, int16, int32, int64, uint8, uint16, uint32, uint64, fp16, bf16, fp32, fp64, n,
    BLOCK: bl.constexpr, TYPES: bl.constexpr,
):  # fmt: skip
    """Convert to `TYPES[k]`, and store through the k-th pointer, which converts too."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    value = tl.load(x + i, mask=mask)
    outs = (int1, int8, int16, int32, int64, uint8, uint16, uint32, uint64, fp16, bf16, fp32, fp64)
    for k in tl.static_range(len(outs)):
        converted = value.to(TYPES[k])
        tl.static_assert(converted.dtype == TYPES[k])
        tl.store(outs[k] + i, converted, mask=mask)


@bl.jit
def cast_toward_zero(x, out, n, BLOCK: bl.constexpr, TYPE: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    value = tl.load(x + i, mask=mask)
    tl.store(out + i, value.to(TYPE, fp_downcast_rounding="rtz"), mask=mask)
    tl.store(out + n + i, tl.cast(value, TYPE, "rtne"), mask=mask)


@bl.jit
def bitcast_to(x, out, n, BLOCK: bl.constexpr, TYPE: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    bits = tl.load(x + i, mask=mask).to(TYPE, bitcast=True)
    tl.static_assert(bits.dtype == TYPE)
    tl.store(out + i, bits, mask=mask)


@bl.jit
def sigmoid(a):
    return tl.sigmoid(a)


@bl.jit
def minimum_or_nan(a, b):
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)


@bl.jit
def maximum_or_nan(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@bl.jit
def clamp_or_nan(a, low, high):
    return tl.clamp(a, low, high, tl.PropagateNan.ALL)


@bl.jit
def relu(a, i):
    return tl.maximum(a, 0.0)


@bl.jit
def at_most_three(a, i):
    return tl.minimum(3, a)


@bl.jit
def nonzero_or_one(a, i):
    return tl.where(i > 4, a, 1)


@bl.jit
def unit_clamp(a, i):
    return tl.clamp(a, 0.0, 1.0)


@bl.jit
def where_pointers(x, y, out, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    pointers = tl.where(i % 3 == 0, x + i, y + i)
    tl.store(out + i, tl.load(pointers))


@bl.jit
def where_by_index(out, LIMIT: bl.constexpr, BLOCK: bl.constexpr):
    """A choice between 64-bit integers by the lane's own index."""
    i = tl.arange(0, BLOCK).to(tl.int64)
    tl.store(out + i, tl.where(i < LIMIT, i + 100, i + 1000))
    tl.store(out + BLOCK + i, tl.where(i >= LIMIT, i + 100, i + 1000))
