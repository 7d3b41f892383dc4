"""Types of IR values: scalars, pointers, blocks and buffers.

Types are immutable and compared by value; `str(type)` is their text and `parse_type` reads it back.
Integer types carry their signedness, so no operation needs a signed and an unsigned variant.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import Literal

from blocklang.ir.float8 import FLOAT8
from blocklang.lazy import cached_property

Kind = Literal["bool", "int", "uint", "float"]


@dataclass(frozen=True)
class Type:
    """Base of all types."""


@dataclass(frozen=True)
class ScalarType(Type):
    """A number: `i1` (bool), `i8`..`i64`, `u8`..`u64`, `f16`, `bf16`, `f32`, `f64`, and the 8-bit floats
    `f8e5`, `f8e4nv`, `f8e4b8`, `f8e5b16`, `f8e4b15` (`blocklang.ir.float8`).

    Attributes:
        name: its text, unique.
        kind: bool, int, uint or float.
        bits: value width; an `i1` takes one byte in memory.
    """

    name: str
    kind: Kind
    bits: int

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"ScalarType({self.name})"

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def bytes(self) -> int:
        """Bytes of one element in memory."""
        return max(self.bits // 8, 1)

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_float8(self) -> bool:
        return self.kind == "float" and self.bits == 8

    @property
    def is_small_float(self) -> bool:
        """True for floats of 8 and 16 bits: they are computed in f32, and rounded once."""
        return self.kind == "float" and self.bits < 32

    @property
    def is_integer(self) -> bool:
        """True for every integer type, `i1` included."""
        return self.kind != "float"

    @property
    def is_signed(self) -> bool:
        return self.kind == "int"

    @property
    def minimum(self) -> int:
        """Smallest value of an integer type."""
        return -(1 << (self.bits - 1)) if self.kind == "int" else 0

    @property
    def maximum(self) -> int:
        """Largest value of an integer type."""
        return (1 << (self.bits - 1)) - 1 if self.kind == "int" else (1 << self.bits) - 1


I1 = ScalarType("i1", "bool", 1)
I8, I16, I32, I64 = (ScalarType(f"i{n}", "int", n) for n in (8, 16, 32, 64))
U8, U16, U32, U64 = (ScalarType(f"u{n}", "uint", n) for n in (8, 16, 32, 64))
F16 = ScalarType("f16", "float", 16)
BF16 = ScalarType("bf16", "float", 16)
F32 = ScalarType("f32", "float", 32)
F64 = ScalarType("f64", "float", 64)
FLOAT8_TYPES = tuple(ScalarType(name, "float", 8) for name in FLOAT8)
F8E5, F8E4NV, F8E4B8, F8E5B16, F8E4B15 = FLOAT8_TYPES

SCALARS: dict[str, ScalarType] = {
    t.name: t for t in (I1, I8, I16, I32, I64, U8, U16, U32, U64, *FLOAT8_TYPES, F16, BF16, F32, F64)
}


@dataclass(frozen=True)
class PointerType(Type):
    """The address of an element of global memory; `const` refuses stores."""

    element: ScalarType
    const: bool = False

    def __str__(self) -> str:
        return f"ptr<{'const ' if self.const else ''}{self.element}>"

    @property
    def bytes(self) -> int:
        return 8


@dataclass(frozen=True)
class ShapedType(Type):
    """Common part of blocks and buffers: an element type and a static shape."""

    element: ScalarType | PointerType
    shape: tuple[int, ...]

    @cached_property
    def numel(self) -> int:
        return math.prod(self.shape)

    @property
    def rank(self) -> int:
        return len(self.shape)

    def _text(self, name: str) -> str:
        return f"{name}<{''.join(f'{n}x' for n in self.shape)}{self.element}>"


@dataclass(frozen=True)
class BlockType(ShapedType):
    """A block of values of static shape, rank at least 1; extents may be any positive size."""

    def __str__(self) -> str:
        return self._text("block")

    def with_element(self, element: ScalarType | PointerType) -> BlockType:
        return replace(self, element=element)


@dataclass(frozen=True)
class BufferType(ShapedType):
    """Memory that a kernel owns while it runs: a named, typed, shaped place in an on-chip space."""

    def __str__(self) -> str:
        return self._text("buffer")


_POINTER = re.compile(r"ptr<(const )?(\w+)>$")
_SHAPED = re.compile(r"(block|buffer)<((?:\d+x)*)(.+)>$")


def parse_type(text: str) -> Type:
    """Read a type from its text. Raises ValueError if the text names no type."""
    if text in SCALARS:
        return SCALARS[text]
    if match := _POINTER.match(text):
        if match[2] in SCALARS:
            return PointerType(SCALARS[match[2]], const=match[1] is not None)
    elif match := _SHAPED.match(text):
        element = parse_type(match[3])
        shape = tuple(int(n) for n in match[2].split("x")[:-1])
        if isinstance(element, (ScalarType, PointerType)) and all(n > 0 for n in shape):
            return (BlockType if match[1] == "block" else BufferType)(element, shape)
    raise ValueError(f"not a type: {text!r}")


def element_type(type_: Type) -> ScalarType | PointerType:
    """The type of one lane: the element of a block or buffer, or the scalar or pointer itself."""
    if isinstance(type_, ShapedType):
        return type_.element
    assert isinstance(type_, (ScalarType, PointerType)), type_
    return type_


def shape_of(type_: Type) -> tuple[int, ...]:
    """The shape of a block or buffer; () for scalars and pointers."""
    return type_.shape if isinstance(type_, ShapedType) else ()


def as_shaped(type_: Type) -> ShapedType:
    """`type_` itself, which must be a block or a buffer."""
    assert isinstance(type_, ShapedType), f"{type_} has no shape"
    return type_


def with_shape(element: ScalarType | PointerType, shape: tuple[int, ...]) -> Type:
    """A block of `element` of that shape, or the element itself for shape ()."""
    return BlockType(element, shape) if shape else element


def with_element(type_: Type, element: ScalarType | PointerType) -> Type:
    """`type_` with another element type and the same shape."""
    return with_shape(element, shape_of(type_))
