"""The kernels that the tests of the host API launch."""

# mypy: ignore-errors
from __future__ import annotations

import blocklang as bl
import blocklang.language as tl

SCALE = 3


@bl.jit
def add(x, y, out, n, BLOCK: bl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(out + offs, tl.load(x + offs, mask=mask) + tl.load(y + offs, mask=mask), mask=mask)


@bl.jit
def copy_rows(x, out, rows, columns, x_row, x_column, out_row, out_column, BLOCK: bl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    mask = offs < columns
    v = tl.load(x + row * x_row + offs * x_column, mask=mask)
    tl.store(out + row * out_row + offs * out_column, v, mask=mask)


@bl.jit
def store_scalar(out, value):
    tl.store(out, value)


@bl.jit
def store_number(out, VALUE: bl.constexpr):
    tl.store(out, VALUE)
    lanes = tl.arange(0, 3)
    tl.store(out + 1 + lanes, tl.load(out + lanes, lanes > 1, other=VALUE), lanes < 2)


@bl.jit
def store_typed(out, value: tl.float32):
    tl.store(out, value)


@bl.jit
def read_only(x, out):
    tl.store(out, tl.load(x))


@bl.jit
def where_am_i(out):
    i = tl.program_id(0) + tl.num_programs(0) * (tl.program_id(1) + tl.num_programs(1) * tl.program_id(2))
    tl.store(out + i, i)


@bl.jit
def scaled(x, out, n, BLOCK: bl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(out + offs, tl.load(x + offs, mask=offs < n) * SCALE, mask=offs < n)


@bl.jit
def shift(x, out, n, BLOCK: bl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(out + offs, tl.load(x + offs, mask=offs < n), mask=offs < n)


@bl.jit(do_not_specialize=["n"])
def unspecialised(out, n):
    tl.store(out, n)


@bl.jit
def with_default(out, n: tl.int64 = 5, BLOCK: bl.constexpr = 4):
    offs = tl.arange(0, BLOCK)
    tl.store(out + offs, n)


@bl.jit
def softmax(x, out, n, BLOCK: bl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + offs, mask=offs < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(out + row * n + offs, e / tl.sum(e, 0), mask=offs < n)


@bl.jit
def python_builtins(out, n, FIVE: bl.constexpr):
    numbers = list(range(FIVE))
    numbers += [n, 7]
    numbers += [i * n for i in tl.static_range(2)]
    tl.store(out, sum(numbers))
    tl.store(out + 1, len(range(1, FIVE)))
    tl.store(out + 2, isinstance(FIVE, int) and not isinstance(FIVE, (float, str)))
    tl.store(out + 3, isinstance(n, tl.tensor) and not isinstance(n, int))
    tl.store(out + 4, isinstance(FIVE, bl.constexpr))
    tl.store(out + 5, round(FIVE / 3))
    tl.store(out + 6, bool(n))
    tl.store(out + 7, bool(FIVE - 5))
