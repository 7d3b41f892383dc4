"""Registers: bits, read and written as one of PTX's types, in operations of the language."""

from __future__ import annotations

import re
import struct
from typing import Any

from blocklang.diagnostics import CompilationError
from blocklang.language import dtypes as tl
from blocklang.language.casting import bitcast_element, cast_element
from blocklang.language.dtypes import dtype
from blocklang.language.maths import where
from blocklang.language.ptx.syntax import Operand, refuse
from blocklang.language.tensor import constant, tensor

_FLOATS = {"f16": tl.float16, "bf16": tl.bfloat16, "f32": tl.float32, "f64": tl.float64}
TYPE = re.compile(r"(?P<kind>[subf]|bf|pred)(?P<bits>\d*)(?P<pair>x2)?")


def width_of(type_: str) -> int:
    """Bits of a PTX type: 1 for a predicate."""
    if type_ == "pred":
        return 1
    match = re.fullmatch(r"[a-z]+(\d+)(x2)?", type_)
    if match is None:
        raise refuse(f"the type `.{type_}`", "it is not one of 8 to 64 bits")
    return int(match[1]) * (2 if match[2] else 1)


def dtype_of(type_: str) -> dtype:
    """The language's type of a PTX type; bits are unsigned."""
    if type_ in _FLOATS:
        return _FLOATS[type_]
    if type_ == "pred":
        return tl.int1
    if re.fullmatch(r"[sub](8|16|32|64)", type_):
        return tl.dtype(f"{'int' if type_[0] == 's' else 'uint'}{type_[1:]}")
    if type_ in ("f16x2", "bf16x2"):
        return tl.uint32
    raise refuse(f"the type `.{type_}`", "fp8 and narrower types are not built for inline assembly")


def is_float(type_: str) -> bool:
    return type_ in _FLOATS


def bits_of(value: tensor) -> tensor:
    """As an unsigned integer of its width; a predicate as it is."""
    if value.dtype == tl.int1:
        return value
    return bitcast_element(value, tl.dtype(f"uint{value.dtype.primitive_bitwidth}"))


def as_type(value: tensor, type_: str) -> tensor:
    """Read a register as a type: the low bits of a wider register, with zeros above those of a narrower."""
    wanted = dtype_of(type_)
    if wanted == tl.int1 or value.dtype == tl.int1:
        if value.dtype != wanted:
            raise CompilationError("inline_asm_elementwise: a predicate stands where a number is expected")
        return value
    if value.dtype.primitive_bitwidth != wanted.primitive_bitwidth:
        value = cast_element(bits_of(value), tl.dtype(f"uint{wanted.primitive_bitwidth}"))
    return bitcast_element(value, wanted)


def immediate(text: str, type_: str) -> tensor:
    """A number in the text, as PTX writes them."""
    wanted = dtype_of(type_)
    negative, digits = text.startswith("-"), text.lstrip("-").rstrip("U")
    number: int | float
    if digits[:2].lower() == "0f" and len(digits) == 10:
        number = struct.unpack(">f", bytes.fromhex(digits[2:]))[0]
    elif digits[:2].lower() == "0d" and len(digits) == 18:
        number = struct.unpack(">d", bytes.fromhex(digits[2:]))[0]
    elif "." in digits or ("e" in digits.lower() and digits[:2].lower() != "0x"):
        number = float(digits)
    else:
        number = int(digits, 8 if re.fullmatch(r"0[0-7]+", digits) else 0)
    number = -number if negative else number
    if wanted.is_floating():
        return constant(float(number), wanted)
    if isinstance(number, float):
        if wanted.primitive_bitwidth in (32, 64):  # a float where bits are expected
            real = tl.float32 if wanted.primitive_bitwidth == 32 else tl.float64
            return bitcast_element(constant(number, real), wanted)
        raise CompilationError(f"inline_asm_elementwise: `{text}` is not an integer")
    if wanted == tl.int1:
        return constant(bool(number), tl.int1)
    bits = number % (1 << wanted.primitive_bitwidth)
    unsigned = tl.dtype(f"uint{wanted.primitive_bitwidth}")
    return bitcast_element(constant(bits, unsigned), wanted)


def integer_immediate(operand: Operand) -> int | None:
    """The value of an operand that is an integer in the text."""
    if operand.name or operand.parts:
        return None
    try:
        digits = operand.text.rstrip("U")
        return int(digits, 8 if re.fullmatch(r"0[0-7]+", digits) else 0)
    except ValueError:
        return None


def halves(value: tensor, type_: str) -> tuple[tensor, tensor]:
    """The low and the high 16 bits of 32, each as the type."""
    word = bits_of(value)
    low, high = cast_element(word, tl.uint16), cast_element(word >> 16, tl.uint16)
    return bitcast_element(low, dtype_of(type_)), bitcast_element(high, dtype_of(type_))


def join(parts: list[tensor]) -> Any:
    """Registers side by side, the first lowest."""
    width = parts[0].dtype.primitive_bitwidth
    whole = tl.dtype(f"uint{width * len(parts)}")
    result: Any = None
    for index, part in enumerate(parts):
        piece = cast_element(bits_of(part), whole)
        piece = piece << (width * index) if index else piece
        result = piece if result is None else result | piece
    return result


def split(value: tensor, count: int) -> list[tensor]:
    """Equal parts of a register, the lowest first."""
    word = bits_of(value)
    width = word.dtype.primitive_bitwidth // count
    part = tl.dtype(f"uint{width}")
    return [cast_element(word >> (width * i) if i else word, part) for i in range(count)]


def flush(value: tensor) -> tensor:
    """A subnormal fp32 as a zero of its sign: `.ftz`."""
    if value.dtype != tl.float32:
        return value
    bits = bits_of(value)
    small = (bits & 0x7F800000) == 0
    return bitcast_element(where(small, bits & 0x80000000, bits), tl.float32)


def saturate(value: tensor) -> tensor:
    """Limit to [0, 1]; NaN gives 0: `.sat`."""
    return where(
        value > 0.0, where(value < 1.0, value, constant(1.0, value.dtype)), constant(0.0, value.dtype)
    )
