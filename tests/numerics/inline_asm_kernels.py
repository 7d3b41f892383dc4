"""Kernels with inline assembly, as they are written in the wild."""

# mypy: ignore-errors
from __future__ import annotations

import blocklang as bl
import blocklang.language as tl


@bl.jit
def one(x, out, n, BLOCK: bl.constexpr, ASM: bl.constexpr, C: bl.constexpr, T: bl.constexpr, P: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n)
    r = tl.inline_asm_elementwise(ASM, C, [a], T, True, P)
    tl.store(out + i, r, mask=i < n)


@bl.jit
def two(
    x, y, out, n, BLOCK: bl.constexpr, ASM: bl.constexpr, C: bl.constexpr, T: bl.constexpr, P: bl.constexpr
):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n)
    b = tl.load(y + i, mask=i < n)
    r = tl.inline_asm_elementwise(ASM, constraints=C, args=[a, b], dtype=T, is_pure=True, pack=P)
    tl.store(out + i, r, mask=i < n)


@bl.jit
def unpack_and_max(x, y, ints, largest, n, BLOCK: bl.constexpr):
    """Two results of four elements a run: bytes to integers, and their maximum with a float."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n)
    b = tl.load(y + i, mask=i < n)
    c, d = tl.inline_asm_elementwise(
        asm="""
        {
            .reg .b8 t<4>;
            mov.b32 {t0, t1, t2, t3}, $8;  // four bytes
            cvt.u32.u8 $0, t0; cvt.u32.u8 $1, t1; cvt.u32.u8 $2, t2; cvt.u32.u8 $3, t3;
        }
        cvt.rn.f32.s32 $4, $0; cvt.rn.f32.s32 $5, $1; cvt.rn.f32.s32 $6, $2; cvt.rn.f32.s32 $7, $3;
        max.f32 $4, $4, $9; max.f32 $5, $5, $10; max.f32 $6, $6, $11; max.f32 $7, $7, $12;
        """,
        constraints="=r,=r,=r,=r,=r,=r,=r,=r,r,r,r,r,r",
        args=[a, b],
        dtype=(tl.int32, tl.float32),
        is_pure=True,
        pack=4,
    )
    tl.store(ints + i, c, mask=i < n)
    tl.store(largest + i, d, mask=i < n)
