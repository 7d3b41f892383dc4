"""The same operators on operands of other forms: scalars, one scalar beside a block, constants, ranges."""

# mypy: ignore-errors
from __future__ import annotations

import blocklang as bl
import blocklang.language as tl


@bl.jit
def scalars(x, y, out, n, OPS: bl.constexpr, RESULT: bl.constexpr):
    """One pair a program, no block anywhere."""
    p = tl.program_id(0)
    a, b = tl.load(x + p), tl.load(y + p)
    for k in tl.static_range(len(OPS)):
        r = OPS[k](a, b)
        tl.static_assert(r.dtype == RESULT)
        tl.store(out + k * n + p, r)


@bl.jit
def scalar_and_block(x, y, out, n, BLOCK: bl.constexpr, OPS: bl.constexpr):
    """Program p: element p of `x` on the left, then on the right of all of `y`."""
    p, i = tl.program_id(0), tl.arange(0, BLOCK)
    a, b = tl.load(x + p), tl.load(y + i)
    for k in tl.static_range(len(OPS)):
        tl.store(out + (2 * k * n + p) * BLOCK + i, OPS[k](a, b))
        tl.store(out + ((2 * k + 1) * n + p) * BLOCK + i, OPS[k](b, a))


@bl.jit
def constants(out, VALUES: bl.constexpr, TYPE: bl.constexpr, OPS: bl.constexpr):
    """Operations on constants, which are done when the kernel is compiled."""
    n: tl.constexpr = len(VALUES)
    for k in tl.static_range(len(OPS)):
        for i in tl.static_range(n):
            for j in tl.static_range(n):
                r = OPS[k](tl.full((), VALUES[i], TYPE), tl.full((), VALUES[j], TYPE))
                tl.store(out + (k * n + i) * n + j, r)


@bl.jit
def constant_and_block(
    x, out, VALUES: bl.constexpr, TYPE: bl.constexpr, OPS: bl.constexpr, BLOCK: bl.constexpr
):
    """A constant on either side: x + 0, x * 1 and their kin are simplified only where that is exact."""
    i = tl.arange(0, BLOCK)
    a = tl.load(x + i)
    for k in tl.static_range(len(OPS)):
        for v in tl.static_range(len(VALUES)):
            c = tl.full((), VALUES[v], TYPE)
            at = out + 2 * (k * len(VALUES) + v) * BLOCK + i
            tl.store(at, OPS[k](a, c))
            tl.store(at + BLOCK, OPS[k](c, a))


@bl.jit
def with_itself(x, out, OPS: bl.constexpr, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    a = tl.load(x + i)
    for k in tl.static_range(len(OPS)):
        tl.store(out + k * BLOCK + i, OPS[k](a, a))


@bl.jit
def ranges(out, factor, start, BLOCK: bl.constexpr, TYPE: bl.constexpr):
    """What starts as an arithmetic progression, wraps in its own type, and is used in every way; as int64."""
    i = tl.arange(0, BLOCK)
    v = (i * factor + start).to(TYPE)
    w = v * 3 + 1
    at = out + i
    tl.store(at, v.to(tl.int64))
    tl.store(at + BLOCK, w.to(tl.int64))
    tl.store(at + 2 * BLOCK, w.to(tl.uint32).to(tl.int64))
    tl.store(at + 3 * BLOCK, w.to(tl.int8).to(tl.int64))
    tl.store(at + 4 * BLOCK, w.to(tl.uint16).to(tl.int64))
    tl.store(at + 5 * BLOCK, w.to(tl.float64).to(tl.int64))
    tl.store(at + 6 * BLOCK, (w // 7).to(tl.int64))
    tl.store(at + 7 * BLOCK, (w % 7).to(tl.int64))
    tl.store(at + 8 * BLOCK, (w >> 3).to(tl.int64))
    tl.store(at + 9 * BLOCK, (w << 2).to(tl.int64))
    tl.store(at + 10 * BLOCK, (-w).to(tl.int64))
    tl.store(at + 11 * BLOCK, (~w).to(tl.int64))
    tl.store(at + 12 * BLOCK, (w & 100).to(tl.int64))
    tl.store(at + 13 * BLOCK, (w * w).to(tl.int64))
    tl.store(at + 14 * BLOCK, (w < 5).to(tl.int64))
    tl.store(at + 15 * BLOCK, tl.maximum(w, v).to(tl.int64))
    tl.store(at + 16 * BLOCK, tl.abs(w).to(tl.int64))
    tl.store(at + 17 * BLOCK, (w.to(tl.uint64) >> 1).to(tl.int64))
    tl.store(at + 18 * BLOCK, (w - v).to(tl.int64) + w)


@bl.jit
def addressed_by_ranges(x, out, start, CENTRE: bl.constexpr, BLOCK: bl.constexpr, TYPE: bl.constexpr):
    """Offsets that wrap in a narrow type before they are widened, loaded and stored through."""
    i = tl.arange(0, BLOCK)
    by = i.to(TYPE) * 3 + start.to(TYPE)
    tl.static_assert(by.dtype == TYPE)
    tl.store(out + i, tl.load(x + CENTRE + by))
    inside = by < 100
    tl.store(out + BLOCK + i, tl.load(x + CENTRE + by, mask=inside, other=-1))
    tl.store(out + 2 * BLOCK + (by.to(tl.int32) + CENTRE), i)


@bl.jit
def equal_addresses(x, o, n, s, B: bl.constexpr):
    r, i = tl.program_id(0), tl.arange(0, B)
    p = x + r * s + i
    q = x + r.to(tl.int64) * s.to(tl.int64) + i.to(tl.int64)
    tl.store(o + r, tl.min(tl.where((p != q) & (i < n), i, B)))
    tl.store(o + 4 + r, tl.sum(((p < q + (i % 3) - 1) & (i < n)).to(tl.int32)))
