"""The kernels that the tests of Triton's host API launch."""

# mypy: ignore-errors
from __future__ import annotations

import blocklang.triton as triton
import blocklang.triton.language as tl
from blocklang.triton.language.extra import libdevice

FACTOR: tl.constexpr = tl.constexpr(3)


@triton.jit
def scale(x, n, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) * factor, mask=i < n)


@triton.jit
def helper(v):
    return v * FACTOR


@triton.jit
def calls_helper(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, helper(tl.load(x + i)) + libdevice.exp(tl.math.exp(0.0) - 1.0))


@triton.jit(do_not_specialize=["value"])
def store_value(out, value):
    tl.store(out, value)


@triton.jit
def store_wide(out, value: tl.int64, real: tl.float64):
    tl.store(out, value)
    tl.store(out + 1, (real * 1e9).to(tl.int64))


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out + i, tl.load(x + i, mask=mask) + tl.load(y + i, mask=mask), mask=mask)


@triton.constexpr_function
def largest_power(n):
    return 1 << (n.bit_length() - 1)


@tl.core._aggregate
class Span:
    start: tl.tensor
    length: tl.constexpr

    @triton.constexpr_function
    def __init__(self, start, length):
        self.start = start
        self.length = tl.constexpr(length)

    @triton.jit
    def offsets(self):
        return self.start + tl.arange(0, self.length)


@triton.jit
def fill_span(out, N: tl.constexpr):
    span = Span(tl.program_id(0) * 0 + 1, largest_power(N))
    tl.store(out + span.offsets(), 1)


@triton.jit
def copy_strided(x, out, rows, columns, x_row, x_column, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * x_row + i * x_column, mask=i < columns)
    tl.store(out + row * columns + i, v, mask=i < columns)
