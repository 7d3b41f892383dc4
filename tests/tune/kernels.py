"""Kernels whose result shows how often they were applied, and one that some configs break."""

# The body of a kernel has no types before a launch.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import blocklang as bl
import blocklang.language as tl


@bl.jit
def in_place(x, n, BLOCK: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) * 2 + 1, mask=i < n)


@bl.jit
def atomic(x, n, BLOCK: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(x + i % 8, tl.full((BLOCK,), 1.0, tl.float32), mask=i < n)


@bl.jit
def partial(x, n, BLOCK: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    even = (i < n) & (i % 2 == 0)
    tl.store(x + i, tl.load(x + i, mask=even) + 3, mask=even)


@bl.jit(debug=True)
def breaks(x, n, BLOCK: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)
    tl.device_assert(BLOCK < 64, "too wide")


@bl.jit
def refuses(x, n, BLOCK: bl.constexpr):
    tl.static_assert(BLOCK < 16, "too wide")
    tl.store(x + tl.arange(0, BLOCK), 1.0)
