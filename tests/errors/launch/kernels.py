"""Kernels that are launched wrongly."""

# mypy: ignore-errors
from __future__ import annotations

import blocklang as bl
import blocklang.language as tl


@bl.jit
def add(x, y, out, n, BLOCK: bl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(out + offs, tl.load(x + offs, mask=mask) + tl.load(y + offs, mask=mask), mask=mask)


@bl.jit
def typed(x: "*fp32", n: tl.int8, s: tl.float64):  # noqa: F722
    tl.store(x, n + s)


@bl.jit
def variadic(x, *rest):
    tl.store(x, 1)


@bl.jit
def keep(x, rounds, ROWS: bl.constexpr, COLUMNS: bl.constexpr = 1024):
    at = tl.arange(0, ROWS)[:, None] + tl.arange(0, COLUMNS)[None, :]
    table = tl.load(x + at, at < 8)
    for _ in range(rounds):
        table = table + tl.sum(table, 0)[None, :]
    tl.store(x + at, table, at < 8)
