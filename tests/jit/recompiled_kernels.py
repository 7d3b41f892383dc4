"""A kernel that is compiled again for many reasons."""

# mypy: ignore-errors
from __future__ import annotations

import blocklang as bl
import blocklang.language as tl

SCALE = 2


@bl.jit
def optional(x, y, out, n, flag, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    if y is not None:
        v += tl.load(y + i, mask=i < n)
    tl.store(out + i, v * SCALE + flag, mask=i < n)
