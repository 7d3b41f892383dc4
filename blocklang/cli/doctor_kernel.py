"""The kernel of `blocklang doctor`'s self-test."""

from __future__ import annotations

from typing import Any

import blocklang as bl
import blocklang.language as tl


@bl.jit
def add_one(x: Any, n: Any, BLOCK: bl.constexpr) -> None:
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(x + offsets, tl.load(x + offsets, mask=mask) + 1, mask=mask)
