"""Kernels for launches over device arrays."""

# mypy: ignore-errors
from __future__ import annotations

import blocklang as bl
import blocklang.language as tl


@bl.jit
def unmasked(x, out, n, BLOCK: bl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + offs, tl.load(x + offs, mask=offs < n, other=0.0) + 1.0)


@bl.jit
def total(x, out, BLOCK: bl.constexpr):
    tl.store(out, tl.sum(tl.load(x + tl.arange(0, BLOCK)), 0))


@bl.jit
def copy_tile(x, out, B: bl.constexpr):
    at = [tl.program_id(0) * B, tl.program_id(1) * B]
    out.store(at, x.load(at))


@bl.jit
def add_pair(pair, BLOCK: bl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(pair[1] + offs, tl.load(pair[0] + offs) + tl.load(pair[1] + offs))
