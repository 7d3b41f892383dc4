"""Products of bytes with the tile registers of x86-64 (AMX): `contract_buffers` of form "tiles".

A tile register holds up to 16 rows of 64 bytes. One instruction multiplies a tile of A, 16 rows of 64
numbers, by a tile of B, 16 rows of 16 columns with four numbers each, into a tile of 16 by 16 i32. The
accumulator is walked in squares of up to 32 by 32, four tiles that stay in registers while k runs.

The Intel 64 and IA-32 Architectures Software Developer's Manual describes the registers (volume 1, chapter
18). They are configured for each product and released after it, so that nothing else ever sees them.
"""

from __future__ import annotations

from blocklang.codegen.emitter import Emitter
from blocklang.codegen.loops import RegionEmitter
from blocklang.ir.core import Kernel
from blocklang.ops.tile import ContractBuffers
from blocklang.target.cpu import ARCH_PRCTL, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA

_SIDE = 16  # rows of a tile, and i32 in each
_ROW_BYTES = 64
# Accumulators, then A's and B's tiles.
_A, _B = 4, 6
_REGISTERS = 8


def tile_product(emitter: RegionEmitter, op: ContractBuffers) -> None:
    """Emit a product: 16 divides rows and columns of the accumulator; 64 the depth, or it is at most that."""
    emit = emitter.emit
    (rows, depth), columns = op.a.type.shape, op.b.type.shape[1]
    step = min(depth, _ROW_BYTES)
    _configure(emit, step)
    a, b, acc = (emitter.text(value) for value in (op.a, op.b, op.acc))
    panel_bytes = op.columns * 4

    def square(i: str, j: str) -> None:
        place = emit.offset(acc, emit.add(emit.mul(i, op.rows * columns * 4), emit.mul(j, panel_bytes)))
        left = emit.offset(a, emit.mul(i, op.rows * depth))
        right = emit.offset(b, emit.mul(j, depth // 4 * panel_bytes))
        cells = [(r, c) for r in range(op.rows // _SIDE) for c in range(op.columns // _SIDE)]
        for r, c in cells:
            if op.start == "zero":
                _do(emit, "tilezero", 2 * r + c)
            else:
                _do(emit, "tileloadd64", 2 * r + c, _cell(emit, place, r, c, columns), columns * 4)

        def multiply(k: str) -> None:
            for r in range(op.rows // _SIDE):
                row = emit.offset(left, emit.add(emit.mul(k, step), r * _SIDE * depth))
                _do(emit, "tileloadd64", _A + r, row, depth)
            for c in range(op.columns // _SIDE):
                column = emit.offset(right, emit.add(emit.mul(k, step // 4 * panel_bytes), c * _ROW_BYTES))
                _do(emit, "tileloadd64", _B + c, column, panel_bytes)
            for r, c in cells:
                _do(emit, "tdpbssd", 2 * r + c, _A + r, _B + c)

        emitter.counted("0", str(depth // step), 1, multiply)
        for r, c in cells:
            _do(emit, "tilestored64", 2 * r + c, _cell(emit, place, r, c, columns), columns * 4)

    def panel(j: str) -> None:
        emitter.counted("0", str(rows // op.rows), 1, lambda i: square(i, j))

    emitter.counted("0", str(columns // op.columns), 1, panel)
    emit.call("void", "llvm.x86.tilerelease", [])


def ask_for_tiles(kernel: Kernel, emitter: RegionEmitter) -> None:
    """At the entry: ask the system for the registers if the kernel uses them. The code may run in another
    process than the one that asked when it was compiled.
    """
    if not any(isinstance(op, ContractBuffers) and op.form == "tiles" for op in kernel.walk()):
        return
    numbers = f"i64 {ARCH_PRCTL}, i64 {ARCH_REQ_XCOMP_PERM}, i64 {XFEATURE_XTILEDATA}"
    emitter.emit.declarations["syscall"] = "declare i64 @syscall(i64, ...)"
    emitter.emit.op(f"call i64 (i64, ...) @syscall({numbers})")


def _cell(emit: Emitter, place: str, r: int, c: int, columns: int) -> str:
    return emit.offset(place, r * _SIDE * columns * 4 + c * _ROW_BYTES)


def _configure(emit: Emitter, step: int) -> None:
    """Set the shapes of all tile registers: `step` numbers of a row of A are multiplied at once."""
    rows = [_SIDE] * _B + [step // 4] * (_REGISTERS - _B)
    row_bytes = [_ROW_BYTES] * _A + [step] * (_B - _A) + [_ROW_BYTES] * (_REGISTERS - _B)
    shapes = bytearray(64)
    shapes[0] = 1  # the palette
    for register in range(_REGISTERS):
        shapes[16 + 2 * register] = row_bytes[register]
        shapes[48 + register] = rows[register]
    name = f"@blocklang.tiles.{step}"
    text = "".join(f"\\{byte:02x}" for byte in shapes)
    emit.declarations[name] = f'{name} = internal constant [64 x i8] c"{text}", align 64'
    emit.call("void", "llvm.x86.ldtilecfg", [("ptr", name)])


def _do(emit: Emitter, name: str, *operands: int | str) -> None:
    """An instruction on tile registers, named by number; memory is a pointer and bytes from row to row."""
    types = {"tileloadd64": ("i8", "ptr", "i64"), "tilestored64": ("i8", "ptr", "i64")}.get(name, ("i8",) * 3)
    emit.call("void", f"llvm.x86.{name}", [(t, str(o)) for t, o in zip(types, operands, strict=False)])
