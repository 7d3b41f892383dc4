"""Conversions of the 8-bit floats in LLVM IR, lane by lane with integer arithmetic, exact for every input.

Their values travel as 8 bits. Neither direction depends on what the CPU can do, makes a subnormal f32, or
looks anything up in memory.
"""

from __future__ import annotations

import struct

from blocklang.codegen.emitter import Emitter, splat_constant, vector_of
from blocklang.ir.float8 import Float8


class _Words:
    """Operations on 32-bit words, and floats, of `width` lanes."""

    def __init__(self, emit: Emitter, width: int) -> None:
        self.emit = emit
        self.width = width
        self.word, self.single = vector_of("i32", width), vector_of("float", width)

    def number(self, value: int) -> str:
        return splat_constant("i32", str(value), self.width)

    def real(self, value: float) -> str:
        bits = struct.unpack("<Q", struct.pack("<d", value))[0]
        return splat_constant("float", f"0x{bits:016X}", self.width)

    def binary(self, opcode: str, a: str, b: int | str) -> str:
        return self.emit.op(f"{opcode} {self.word} {a}, {self.number(b) if isinstance(b, int) else b}")

    def compare(self, predicate: str, a: str, b: int) -> str:
        return self.emit.op(f"icmp {predicate} {self.word} {a}, {self.number(b)}")

    def select(self, condition: str, a: str, b: str) -> str:
        mask = vector_of("i1", self.width)
        return self.emit.op(f"select {mask} {condition}, {self.word} {a}, {self.word} {b}")

    def as_float(self, text: str) -> str:
        return self.emit.op(f"bitcast {self.word} {text} to {self.single}")

    def as_word(self, text: str) -> str:
        return self.emit.op(f"bitcast {self.single} {text} to {self.word}")


def widen_float8(emit: Emitter, form: Float8, text: str, width: int) -> str:
    """8-bit lanes as f32.

    A normal number is its bits moved to the place of f32's and its exponent biased anew; a subnormal one is
    an integer times the format's quantum.
    """
    w = _Words(emit, width)
    wide = emit.op(f"zext {vector_of('i8', width)} {text} to {w.word}")
    magnitude = w.binary("and", wide, 0x7F)
    moved = w.binary("shl", magnitude, 23 - form.fraction)
    value = w.binary("add", moved, (127 - form.bias) << 23)
    count = emit.op(f"sitofp {w.word} {magnitude} to {w.single}")
    small = emit.op(f"fmul {w.single} {count}, {w.real(2.0 ** (1 - form.bias - form.fraction))}")
    value = w.select(w.compare("ult", magnitude, 1 << form.fraction), w.as_word(small), value)
    if form.has_infinity:
        value = w.select(w.compare("uge", magnitude, form.top), w.number(0x7F800000), value)
    if form.has_nan and form.has_negative_zero:
        value = w.select(w.compare("ugt", magnitude, form.top), w.number(0x7FC00000), value)
    value = w.binary("or", value, w.binary("shl", w.binary("lshr", wide, 7), 31))
    if not form.has_negative_zero:
        value = w.select(w.compare("eq", wide, 0x80), w.number(0x7FC00000), value)
    return w.as_float(value)


def narrow_float8(
    emit: Emitter, form: Float8, text: str, width: int, *, toward_zero: bool = False, limit: int | None = None
) -> str:
    """f32 lanes rounded to 8 bits, to nearest even or toward zero.

    Args:
        limit: the code at which magnitudes end; the default is the largest number's. With `form.top` an
            infinity stays one.
    """
    w = _Words(emit, width)
    bits = w.as_word(text)
    magnitude = w.binary("and", bits, 0x7FFFFFFF)
    drop = 23 - form.fraction
    biased = w.binary("add", magnitude, (form.bias - 127) * (1 << 23))
    if not toward_zero:
        odd = w.binary("and", w.binary("lshr", magnitude, drop), 1)
        biased = w.binary("add", w.binary("add", biased, (1 << (drop - 1)) - 1), odd)
    normal = w.binary("lshr", biased, drop)
    value = w.select(
        w.compare("ult", magnitude, (128 - form.bias) << 23),
        _subnormal(w, form, magnitude, toward_zero),
        normal,
    )
    value = emit.call(
        w.word,
        f"llvm.umin.{f'v{width}' if width else ''}i32",
        [(w.word, value), (w.word, w.number(form.largest if limit is None else limit))],
    )
    sign = w.binary("shl", w.binary("lshr", bits, 31), 7)
    if not form.has_negative_zero:
        sign = w.select(w.compare("eq", value, 0), w.number(0), sign)
    value = w.binary("or", value, sign)
    value = w.select(w.compare("ugt", magnitude, 0x7F800000), w.number(form.nan), value)
    return emit.op(f"trunc {w.word} {value} to {vector_of('i8', width)}")


def _subnormal(w: _Words, form: Float8, magnitude: str, toward_zero: bool) -> str:
    """Magnitudes below the smallest normal number, counted in quanta.

    To nearest: added to a number whose last place is the quantum, which the addition rounds. Toward zero:
    divided by the quantum, which is exact, and cut. Larger magnitudes give nothing of use.
    """
    quantum = 1 - form.bias - form.fraction
    number = w.as_float(magnitude)
    if toward_zero:
        count = w.emit.op(f"fmul {w.single} {number}, {w.real(2.0**-quantum)}")
        return w.emit.op(f"fptosi {w.single} {count} to {w.word}")
    anchor = 2.0 ** (23 + quantum)
    total = w.emit.op(f"fadd {w.single} {number}, {w.real(anchor)}")
    return w.binary("sub", w.as_word(total), (127 + 23 + quantum) << 23)
