"""Kernels with operators under a name, swizzled programs, the target, and atomic descriptors."""

from __future__ import annotations

from typing import Any

import blocklang as bl
import blocklang.language as tl


@bl.jit
def operators(x: Any, y: Any, out: Any, n: Any, BLOCK: tl.constexpr) -> None:
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    a, b = tl.load(x + i, mask=mask), tl.load(y + i, mask=mask)
    r = tl.mul(tl.add(a, b), tl.sub(a, b, sanitize_overflow=False))
    tl.store(out + i, r, mask=mask)


@bl.jit
def swizzled(out: Any, ROWS: tl.constexpr, J: tl.constexpr, G: tl.constexpr) -> None:
    i, j = tl.program_id(0), tl.program_id(1)
    k, m = tl.swizzle2d(i, j, ROWS, J, G)
    tl.store(out + i * J + j, k * J + m)


@bl.jit
def target(x: Any, out: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    parts = (i, tl.load(x + i), N)[tl.slice(1, 2)]
    if tl.target_info.is_cuda() or tl.target_info.is_hip() or tl.target_info.cuda_capability_geq(8, 0):
        (out + i).store(i)
    else:
        (out + i).store(parts[0].cdiv(3))


@bl.jit
def reduced(x: Any, out: Any, N: tl.constexpr, WHAT: tl.constexpr) -> None:
    descriptor = tl.make_tensor_descriptor(out, [N], [1], [32])
    tl.static_assert(isinstance(descriptor.type, tl.tensor_descriptor_type))
    i = tl.program_id(0) * 32 + tl.arange(0, 32)
    value = tl.load(x + i)
    if WHAT == "add":
        descriptor.atomic_add([tl.program_id(0) * 16], value)
    elif WHAT == "min":
        descriptor.atomic_min([tl.program_id(0) * 16], value)
    elif WHAT == "max":
        descriptor.atomic_max([tl.program_id(0) * 16], value)
    elif WHAT == "and":
        descriptor.atomic_and([tl.program_id(0) * 16], value)
    elif WHAT == "or":
        descriptor.atomic_or([tl.program_id(0) * 16], value)
    else:
        descriptor.atomic_xor([tl.program_id(0) * 16], value)
