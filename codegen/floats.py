"""Constants and conversions of floating-point types in LLVM IR, exact for every input.

bf16 never meets LLVM's own type: hardware conversions flush subnormals and software ones are calls. Its
values travel as 16 bits, become floats by a shift, and come from floats by rounding the bits to nearest
even.
"""

from __future__ import annotations

import math
import struct

import ml_dtypes
import numpy as np

from blocklang.codegen.emitter import Emitter, llvm_scalar, splat_constant, vector_of
from blocklang.codegen.float8 import narrow_float8, widen_float8
from blocklang.ir.float8 import FLOAT8
from blocklang.ir.types import BF16, F16, F32, F64, ScalarType


def constant_text(type: ScalarType, value: float) -> str:
    """The LLVM text of a scalar constant of `type`, rounded to it."""
    if not type.is_float:
        return ("true" if value else "false") if type.bits == 1 else str(_signed(int(value), type.bits))
    if type.is_float8:
        return str(_signed(FLOAT8[type.name].encode(value), 8))
    if type == BF16:
        return str(np.array(value, dtype=ml_dtypes.bfloat16).view(np.int16))
    if type == F16:
        with np.errstate(over="ignore"):
            return f"0xH{int(np.float16(value).view(np.uint16)):04X}"
    if type == F32:
        with np.errstate(over="ignore"):
            value = float(np.float32(value))
    bits = struct.unpack("<Q", struct.pack("<d", value))[0] if not math.isnan(value) else 0x7FF8000000000000
    return f"0x{bits:016X}"


def _signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if bits > 1 and value >> (bits - 1) else value


def splat_number(type: ScalarType, value: float, width: int) -> str:
    """A constant in every lane."""
    return splat_constant(llvm_scalar(type), constant_text(type, value), width)


def widen_to_f32(emit: Emitter, type: ScalarType, text: str, width: int, *, hardware: bool) -> str:
    """Lanes of a small float as f32, exactly."""
    if type.is_float8:
        return widen_float8(emit, FLOAT8[type.name], text, width)
    single = vector_of("float", width)
    if type == F16 and hardware:
        return emit.op(f"fpext {vector_of('half', width)} {text} to {single}")
    short, word = vector_of("i16", width), vector_of("i32", width)
    if type == BF16:
        wide = emit.op(f"zext {short} {text} to {word}")
        bits = emit.op(f"shl {word} {wide}, {splat_constant('i32', '16', width)}")
        return emit.op(f"bitcast {word} {bits} to {single}")
    return _half_bits_to_f32(emit, text, width)


def _half_bits_to_f32(emit: Emitter, text: str, width: int) -> str:
    """f16 to f32 with integer operations and one exact product."""
    half, short, word, single = (vector_of(t, width) for t in ("half", "i16", "i32", "float"))

    def number(value: int) -> str:
        return splat_constant("i32", str(value), width)

    bits = emit.op(f"bitcast {half} {text} to {short}")
    wide = emit.op(f"zext {short} {bits} to {word}")
    magnitude = emit.op(f"and {word} {wide}, {number(0x7FFF)}")
    sign = emit.op(f"shl {word} {emit.op(f'and {word} {wide}, {number(0x8000)}')}, {number(16)}")
    shifted = emit.op(f"shl {word} {magnitude}, {number(13)}")
    # As an f32 the shifted bits are the value times 2^-112, subnormals included; infinities and NaN need
    # exponent 255.
    scale = splat_constant("float", "0x46F0000000000000", width)
    scaled = emit.op(f"fmul {single} {emit.op(f'bitcast {word} {shifted} to {single}')}, {scale}")
    finite = emit.op(f"bitcast {single} {scaled} to {word}")
    special = emit.op(f"or {word} {shifted}, {number(0x7F800000)}")
    is_special = emit.op(f"icmp uge {word} {magnitude}, {number(0x7C00)}")
    chosen = emit.op(f"select {vector_of('i1', width)} {is_special}, {word} {special}, {word} {finite}")
    return emit.op(f"bitcast {word} {emit.op(f'or {word} {chosen}, {sign}')} to {single}")


def narrow_from_f32(emit: Emitter, type: ScalarType, text: str, width: int, *, hardware: bool) -> str:
    """f32 lanes rounded to nearest even as a small float."""
    if type.is_float8:
        return narrow_float8(emit, FLOAT8[type.name], text, width)
    single, word = vector_of("float", width), vector_of("i32", width)
    if type == F16 and hardware:
        return emit.op(f"fptrunc {single} {text} to {vector_of('half', width)}")
    bits = emit.op(f"bitcast {single} {text} to {word}")
    if type == BF16:
        return _round_bits(emit, bits, width, drop=16, is_nan=emit.op(f"fcmp uno {single} {text}, {text}"))
    return _f32_bits_to_half(emit, text, bits, width)


def _round_bits(emit: Emitter, bits: str, width: int, *, drop: int, is_nan: str) -> str:
    """The upper 16 bits of a word, rounded to nearest even; NaN becomes a quiet NaN."""
    word, short = vector_of("i32", width), vector_of("i16", width)

    def number(value: int) -> str:
        return splat_constant("i32", str(value), width)

    odd = emit.op(f"and {word} {emit.op(f'lshr {word} {bits}, {number(drop)}')}, {number(1)}")
    biased = emit.op(f"add {word} {bits}, {number((1 << (drop - 1)) - 1)}")
    rounded = emit.op(f"lshr {word} {emit.op(f'add {word} {biased}, {odd}')}, {number(drop)}")
    quiet = emit.op(f"or {word} {emit.op(f'lshr {word} {bits}, {number(drop)}')}, {number(0x40)}")
    chosen = emit.op(f"select {vector_of('i1', width)} {is_nan}, {word} {quiet}, {word} {rounded}")
    return emit.op(f"trunc {word} {chosen} to {short}")


def _f32_bits_to_half(emit: Emitter, text: str, bits: str, width: int) -> str:
    """f32 to f16 with integer operations; the subnormal range is rounded by a float addition."""
    single, word, short = (vector_of(t, width) for t in ("float", "i32", "i16"))
    mask = vector_of("i1", width)

    def number(value: int) -> str:
        return splat_constant("i32", str(value), width)

    def choose(condition: str, a: str, b: str) -> str:
        return emit.op(f"select {mask} {condition}, {word} {a}, {word} {b}")

    magnitude = emit.op(f"and {word} {bits}, {number(0x7FFFFFFF)}")
    sign = emit.op(f"and {word} {emit.op(f'lshr {word} {bits}, {number(16)}')}, {number(0x8000)}")
    # Below 2^-14: adding 0.5 puts the f16 subnormal's last bit at the last bit of the sum.
    as_float = emit.op(f"bitcast {word} {magnitude} to {single}")
    summed = emit.op(f"fadd {single} {as_float}, {splat_constant('float', '0x3FE0000000000000', width)}")
    small = emit.op(f"sub {word} {emit.op(f'bitcast {single} {summed} to {word}')}, {number(0x3F000000)}")
    odd = emit.op(f"and {word} {emit.op(f'lshr {word} {magnitude}, {number(13)}')}, {number(1)}")
    biased = emit.op(f"add {word} {magnitude}, {number(((15 - 127) << 23) + 0xFFF)}")
    normal = emit.op(f"lshr {word} {emit.op(f'add {word} {biased}, {odd}')}, {number(13)}")
    value = choose(emit.op(f"icmp ult {word} {magnitude}, {number(113 << 23)}"), small, normal)
    value = choose(emit.op(f"icmp uge {word} {magnitude}, {number(0x47800000)}"), number(0x7C00), value)
    value = choose(emit.op(f"icmp ugt {word} {magnitude}, {number(0x7F800000)}"), number(0x7E00), value)
    packed = emit.op(f"trunc {word} {emit.op(f'or {word} {value}, {sign}')} to {short}")
    return emit.op(f"bitcast {short} {packed} to {vector_of('half', width)}")


def round_f64_to_odd_f32(emit: Emitter, text: str, width: int) -> str:
    """f64 to f32, rounded to odd: inexact results get an odd last bit, so that a second rounding is exact."""
    double, single, word = (vector_of(t, width) for t in ("double", "float", "i32"))
    mask = vector_of("i1", width)
    nearest = emit.op(f"fptrunc {double} {text} to {single}")
    back = emit.op(f"fpext {single} {nearest} to {double}")
    bits = emit.op(f"bitcast {single} {nearest} to {word}")
    inexact = emit.op(f"fcmp one {double} {back}, {text}")
    one = splat_constant("i32", "1", width)
    even = emit.op(
        f"icmp eq {word} {emit.op(f'and {word} {bits}, {one}')}, {splat_constant('i32', '0', width)}"
    )
    # Rounded to an even neighbour: move one step toward the value, which is the odd one.
    away = emit.op(f"fcmp ogt {double} {_absolute(emit, back, width)}, {_absolute(emit, text, width)}")
    step = emit.op(f"select {mask} {away}, {word} {splat_constant('i32', '-1', width)}, {word} {one}")
    moved = emit.op(f"add {word} {bits}, {step}")
    fix = emit.op(f"and {mask} {inexact}, {even}")
    chosen = emit.op(f"select {mask} {fix}, {word} {moved}, {word} {bits}")
    return emit.op(f"bitcast {word} {chosen} to {single}")


def _absolute(emit: Emitter, text: str, width: int) -> str:
    double = vector_of("double", width)
    return emit.call(double, f"llvm.fabs.{'v' + str(width) if width else ''}f64", [(double, text)])


WIDE = {F16: F32, BF16: F32, F32: F32, F64: F64}
