"""No cliffs: one function, many spellings, and the slowest must be nearly as fast as the fastest.

    python -m benchmarks.spellings                      # softmax, layer norm, matmul and attention
    python -m benchmarks.spellings matmul --turns 20

What a kernel costs must not depend on how its author writes offsets, masks, loops and pointers. Each module
holds one family of spellings; `family` says what a family is, `__main__` times them in turns.
"""

from __future__ import annotations

from benchmarks.spellings.attention import attention
from benchmarks.spellings.family import Family, Problem
from benchmarks.spellings.layer_norm import layer_norm
from benchmarks.spellings.matmul import matmul
from benchmarks.spellings.softmax import softmax

FAMILIES: dict[str, Family] = {one.name: one for one in (softmax, layer_norm, matmul, attention)}

__all__ = ["FAMILIES", "Family", "Problem"]
