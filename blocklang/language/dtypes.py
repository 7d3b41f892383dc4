"""The types that a kernel can name: `tl.float32`, `tl.pointer_type(tl.int8)`.

A view of `blocklang.ir.types` under the language's names: every object here stands for exactly one IR type,
and `ir_type` and `type_from_ir` convert. Signedness is part of a type; `int1` counts as unsigned.
"""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Sequence
from typing import ClassVar

from blocklang.diagnostics import CompilationError
from blocklang.ir import types as ir
from blocklang.ir.float8 import FLOAT8


class dtype:
    """The type of one number.

    Args:
        name: its short name: int1, int8 ... int64, uint8 ... uint64, fp16, bf16, fp32, fp64, fp8e5, fp8e4nv,
            fp8e4b8, fp8e5b16, fp8e4b15.

    Attributes:
        name: the short name, also `str(dtype)`.
        primitive_bitwidth: bits of a value.
        int_bitwidth: bits of a value of an integer type.
        int_signedness: `SIGNEDNESS` of an integer type.
        fp_mantissa_width: explicit bits of a float's mantissa.
        exponent_bias: bias of a float's exponent.
    """

    SINT_TYPES: ClassVar[tuple[str, ...]] = ("int8", "int16", "int32", "int64")
    UINT_TYPES: ClassVar[tuple[str, ...]] = ("int1", "uint8", "uint16", "uint32", "uint64")
    FP_TYPES: ClassVar[tuple[str, ...]] = (
        *("fp8e4b15", "fp8e4nv", "fp8e4b8", "fp8e5", "fp8e5b16"),
        *("fp16", "bf16", "fp32", "fp64"),
    )
    STANDARD_FP_TYPES: ClassVar[tuple[str, ...]] = ("fp16", "bf16", "fp32", "fp64")
    OTHER_TYPES: ClassVar[tuple[str, ...]] = ("void",)

    class SIGNEDNESS(enum.Enum):
        SIGNED = 0
        UNSIGNED = 1

    class KIND(enum.Enum):
        BOOLEAN = 0
        INTEGRAL = 1
        FLOATING = 2

    _IR_NAMES: ClassVar[dict[str, str]] = {
        "int1": "i1",
        **{f"int{n}": f"i{n}" for n in (8, 16, 32, 64)},
        **{f"uint{n}": f"u{n}" for n in (8, 16, 32, 64)},
        **{f"fp8{kind}": f"f8{kind}" for kind in ("e5", "e4nv", "e4b8", "e5b16", "e4b15")},
        "fp16": "f16",
        "bf16": "bf16",
        "fp32": "f32",
        "fp64": "f64",
    }
    _FLOAT_LAYOUT: ClassVar[dict[str, tuple[int, int]]] = {
        **{name.replace("f8", "fp8"): (form.fraction, form.bias) for name, form in FLOAT8.items()},
        "fp16": (10, 15),
        "bf16": (7, 127),
        "fp32": (23, 127),
        "fp64": (52, 1023),
    }

    def __init__(self, name: str) -> None:
        if name not in self._IR_NAMES:
            raise CompilationError(f"there is no dtype {name!r}", help=f"one of {', '.join(self._IR_NAMES)}")
        self.name = name
        self.ir_type: ir.ScalarType = ir.SCALARS[self._IR_NAMES[name]]
        self.primitive_bitwidth = self.ir_type.bits
        if self.ir_type.is_float:
            self.fp_mantissa_width, self.exponent_bias = self._FLOAT_LAYOUT[name]
        else:
            self.int_bitwidth = self.ir_type.bits
            signed = self.ir_type.is_signed
            self.int_signedness = self.SIGNEDNESS.SIGNED if signed else self.SIGNEDNESS.UNSIGNED

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, dtype):
            return NotImplemented  # a `constexpr` on the right compares the dtype that it holds
        return self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return self.name

    @property
    def long_name(self) -> str:
        """Its name in the language: `float32` of `fp32`."""
        return self.name.replace("bf", "bfloat") if self.name == "bf16" else self.name.replace("fp", "float")

    @property
    def scalar(self) -> dtype:
        return self

    @property
    def element_ty(self) -> dtype:
        return self

    @property
    def shape(self) -> tuple[int, ...]:
        return ()

    @property
    def numel(self) -> int:
        return 1

    @property
    def itemsize(self) -> int:
        """Bytes of one element in memory."""
        return self.ir_type.bytes

    @property
    def cache_key_part(self) -> str:
        """What tells it from other types in a key."""
        return self.name

    def codegen_name(self) -> str:
        return self.name

    def mangle(self) -> str:
        """Its name as a part of an identifier."""
        return re.sub(r"\W+", "_", self.name).strip("_")

    def kind(self) -> dtype.KIND:
        if self.is_floating():
            return self.KIND.FLOATING
        return self.KIND.BOOLEAN if self.is_int1() else self.KIND.INTEGRAL

    def get_int_min_value(self) -> int:
        return self.ir_type.minimum

    def get_int_max_value(self) -> int:
        return self.ir_type.maximum

    def get_block_shapes(self) -> tuple[int, ...]:
        return ()

    def with_element_ty(self, element_ty: dtype) -> dtype:
        return element_ty

    def to(self, *_: object) -> None:
        raise CompilationError(
            f"a dtype has no values to convert: {self.name}.to",
            help="call `.to(dtype)` on a block or a scalar",
        )

    @staticmethod
    def is_dtype(name: str) -> bool:
        return name in dtype._IR_NAMES

    def is_ptr(self) -> bool:
        return False

    def is_block(self) -> bool:
        return False

    def is_void(self) -> bool:
        return False

    def is_const(self) -> bool:
        return False

    def is_numeric(self) -> bool:
        return True

    def is_floating(self) -> bool:
        return self.ir_type.is_float

    def is_standard_floating(self) -> bool:
        return self.ir_type.is_float and not self.ir_type.is_float8

    def is_fp8(self) -> bool:
        return "fp8" in self.name

    def is_fp8e5(self) -> bool:
        return self.name == "fp8e5"

    def is_fp8e4nv(self) -> bool:
        return self.name == "fp8e4nv"

    def is_fp8e4b8(self) -> bool:
        return self.name == "fp8e4b8"

    def is_fp8e5b16(self) -> bool:
        return self.name == "fp8e5b16"

    def is_fp8e4b15(self) -> bool:
        return self.name == "fp8e4b15"

    def is_int(self) -> bool:
        return self.ir_type.is_integer

    def is_int_signed(self) -> bool:
        return self.ir_type.is_signed

    def is_int_unsigned(self) -> bool:
        return self.ir_type.is_integer and not self.ir_type.is_signed

    def is_bool(self) -> bool:
        return self.name == "int1"

    def is_int1(self) -> bool:
        return self.name == "int1"

    def is_int8(self) -> bool:
        return self.name == "int8"

    def is_int16(self) -> bool:
        return self.name == "int16"

    def is_int32(self) -> bool:
        return self.name == "int32"

    def is_int64(self) -> bool:
        return self.name == "int64"

    def is_uint8(self) -> bool:
        return self.name == "uint8"

    def is_uint16(self) -> bool:
        return self.name == "uint16"

    def is_uint32(self) -> bool:
        return self.name == "uint32"

    def is_uint64(self) -> bool:
        return self.name == "uint64"

    def is_fp16(self) -> bool:
        return self.name == "fp16"

    def is_bf16(self) -> bool:
        return self.name == "bf16"

    def is_fp32(self) -> bool:
        return self.name == "fp32"

    def is_fp64(self) -> bool:
        return self.name == "fp64"


class pointer_type(dtype):
    """The type of an address of elements in global memory.

    Args:
        element_ty: type of one element.
        address_space: accepted as Triton does; there is one global memory.
        const: True refuses stores.
    """

    def __init__(self, element_ty: dtype, address_space: int = 1, const: bool = False) -> None:
        if isinstance(element_ty, (pointer_type, block_type)):
            raise CompilationError(f"a pointer points at numbers, not at {element_ty}")
        self._element = element_ty
        self.address_space = address_space
        self.const = const
        self.pointer_ir_type = ir.PointerType(element_ty.ir_type, const=const)
        self.name = f"pointer<{'const ' if const else ''}{element_ty.name}>"
        self.primitive_bitwidth = 64

    @property
    def element_ty(self) -> dtype:
        return self._element

    @property
    def itemsize(self) -> int:
        return 8

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, dtype):
            return NotImplemented
        return isinstance(other, pointer_type) and self.pointer_ir_type == other.pointer_ir_type

    def __hash__(self) -> int:
        return hash(self.pointer_ir_type)

    def is_ptr(self) -> bool:
        return True

    def is_const(self) -> bool:
        return self.const

    def is_numeric(self) -> bool:
        return False

    def is_floating(self) -> bool:
        return False

    def is_standard_floating(self) -> bool:
        return False

    def is_int(self) -> bool:
        return False

    def is_int_signed(self) -> bool:
        return False

    def is_int_unsigned(self) -> bool:
        return False


class block_type(dtype):
    """The type of a block of values.

    Args:
        element_ty: type of one lane, a number or a pointer.
        shape: extents, at least one axis.
    """

    def __init__(self, element_ty: dtype, shape: Sequence[int]) -> None:
        self._element = element_ty
        self._shape = tuple(int(n) for n in shape)
        if not self._shape or any(n < 1 for n in self._shape):
            raise CompilationError(f"a block needs positive extents, got {list(self._shape)}")
        self.name = f"<{list(self._shape)}, {element_ty.name}>"

    @property
    def scalar(self) -> dtype:
        return self._element

    @property
    def element_ty(self) -> dtype:
        return self._element

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape

    @property
    def numel(self) -> int:
        return math.prod(self._shape)

    @property
    def nbytes(self) -> int:
        """Bytes of a block in memory."""
        return self.numel * self._element.itemsize

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, dtype):
            return NotImplemented
        return (
            isinstance(other, block_type) and self._shape == other._shape and self._element == other._element
        )

    def __hash__(self) -> int:
        return hash((self._element, self._shape))

    def get_block_shapes(self) -> tuple[int, ...]:
        return self._shape

    def with_element_ty(self, element_ty: dtype) -> dtype:
        return block_type(element_ty, self._shape)

    def is_block(self) -> bool:
        return True

    def is_ptr(self) -> bool:
        return False

    def is_numeric(self) -> bool:
        return False

    def is_floating(self) -> bool:
        return False

    def is_int(self) -> bool:
        return False

    def is_int1(self) -> bool:
        return self._element.is_int1()

    def is_bool(self) -> bool:
        return self.is_int1()


class void_type(dtype):
    """The type of what a function without a result gives; no value has it."""

    def __init__(self) -> None:
        self.name = "void"
        self.primitive_bitwidth = 0

    def is_void(self) -> bool:
        return True

    def is_floating(self) -> bool:
        return False

    def is_int(self) -> bool:
        return False

    def is_int_signed(self) -> bool:
        return False

    def is_int_unsigned(self) -> bool:
        return False


class constexpr_type:
    """The type of one compile-time value: two are equal if their values are."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, constexpr_type) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return f"constexpr_type[{self.value}]"


class tuple_type:
    """The types of a tuple's elements, and their names if it has names."""

    def __init__(self, types: Sequence[object], fields: Sequence[str] | None = None) -> None:
        self.types = tuple(types)
        self.fields = None if fields is None else tuple(fields)
        self.name = f"[{', '.join(map(str, self.types))}]"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, tuple_type) and (self.types, self.fields) == (other.types, other.fields)

    def __hash__(self) -> int:
        return hash(self.types)

    def __len__(self) -> int:
        return len(self.types)

    def __getitem__(self, index: int) -> object:
        return self.types[index]

    def __repr__(self) -> str:
        return f"tuple_type{self.name}"


class tensor_descriptor_type:
    """The type of a tensor descriptor: that of its blocks."""

    def __init__(self, block_type: block_type) -> None:
        self.block_type = block_type

    def __eq__(self, other: object) -> bool:
        return isinstance(other, tensor_descriptor_type) and self.block_type == other.block_type

    def __hash__(self) -> int:
        return hash(self.block_type)

    def __repr__(self) -> str:
        return f"tensor_descriptor<{self.block_type}>"


class const:
    """Annotation of a pointer parameter that the kernel only reads: `x: tl.const`."""


int1 = dtype("int1")
int8, int16, int32, int64 = (dtype(f"int{n}") for n in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (dtype(f"uint{n}") for n in (8, 16, 32, 64))
float8e5, float8e4nv = dtype("fp8e5"), dtype("fp8e4nv")
float8e4b8, float8e5b16, float8e4b15 = dtype("fp8e4b8"), dtype("fp8e5b16"), dtype("fp8e4b15")
float16 = dtype("fp16")
bfloat16 = dtype("bf16")
float32 = dtype("fp32")
float64 = dtype("fp64")
pi32_t = pointer_type(int32)
void = void_type()

DTYPES: tuple[dtype, ...] = (
    int1,
    *(int8, int16, int32, int64),
    *(uint8, uint16, uint32, uint64),
    *(float8e5, float8e4nv, float8e4b8, float8e5b16, float8e4b15),
    *(float16, bfloat16, float32, float64),
)
_BY_IR = {d.ir_type: d for d in DTYPES}


def type_from_ir(type_: ir.Type) -> dtype:
    """The language's object for an IR type."""
    match type_:
        case ir.ScalarType():
            return _BY_IR[type_]
        case ir.PointerType():
            return pointer_type(_BY_IR[type_.element], const=type_.const)
        case ir.BlockType():
            return block_type(type_from_ir(type_.element), type_.shape)
    raise ValueError(f"no type of the language: {type_}")


def element_ir_type(type_: dtype) -> ir.ScalarType | ir.PointerType:
    """The IR type of one number or pointer. Raises CompilationError for a block type."""
    if isinstance(type_, pointer_type):
        return type_.pointer_ir_type
    if isinstance(type_, block_type):
        return element_ir_type(type_.scalar)
    return type_.ir_type


def ir_type(type_: dtype) -> ir.Type:
    """The IR type that `type_` stands for."""
    return ir.with_shape(element_ir_type(type_), type_.shape)


def str_to_ty(name: str, c: object = None) -> dtype:
    """The type that a signature names: `i32`, `fp16`, `*fp32`, `*ki8` for a pointer that is only read."""
    if name.startswith("*"):
        const = name.startswith("*k")
        return pointer_type(str_to_ty(name[2 if const else 1 :], c), const=const)
    if name == "void":
        return void
    short = name[1:] if name[:1] in ("i", "u") else ""
    if short.isdecimal():
        return dtype("int1" if short == "1" else f"{'u' if name[0] == 'u' else ''}int{short}")
    return dtype(name)
