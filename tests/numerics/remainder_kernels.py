"""Kernels with remainders of floats."""

# mypy: ignore-errors
from __future__ import annotations

import blocklang as bl
import blocklang.language as tl


@bl.jit
def remainder(x, y, out, n, BLOCK: bl.constexpr):
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = lanes < n
    tl.store(out + lanes, tl.load(x + lanes, mask=inside) % tl.load(y + lanes, mask=inside), mask=inside)


@bl.jit
def scalar_remainder(x, y, out, n):
    for i in range(n):
        tl.store(out + i, tl.load(x + i) % tl.load(y + i))
