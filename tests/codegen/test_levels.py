"""CPUs without FMA, SSE4.1 or F16C: machine code calls nothing for a lane, of any operation and type."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from blocklang.compiler import CompileOptions, compile_kernel
from blocklang.ir import parse_kernel
from blocklang.ir.core import Kernel
from blocklang.ir.types import SCALARS
from blocklang.ops.elementwise import FUNCTIONS, FUNCTIONS_OF_SEVERAL
from blocklang.runtime.elf import read_object
from blocklang.target import target_for
from tests.codegen.kernels import byte_product, product, square_in_place
from tests.codegen.test_compile_effort import REFERENCES, block_ir

LEVELS = ("x86-64", "x86-64-v2")
# What code may call: these move whole blocks of memory, and once per program or group of lanes at most.
PER_BLOCK = {"memcpy", "memset"}
LANES = 100  # whole vectors, and a rest
NUMBERS = [name for name in SCALARS if name != "i1"]
FLOATS = [name for name in NUMBERS if SCALARS[name].is_float]
INTEGERS = [name for name in NUMBERS if not SCALARS[name].is_float]


def lanewise(operation: str, operands: list[str], result: str) -> str:
    """The text of a kernel: one operation on blocks from arrays of these types, stored to an array."""
    arguments = [f"%p{n}: ptr<{type_}>" for n, type_ in enumerate(operands)]
    lines = [
        f'kernel @k({", ".join([*arguments, f"%q: ptr<{result}>"])}) alias="disjoint" {{',
        f"  %i = arange start=0, end={LANES} : block<{LANES}xi32>",
    ]
    for n, type_ in enumerate(operands):
        lines.append(f"  %a{n} = offset %p{n}, %i : block<{LANES}xptr<{type_}>>")
        lines.append(f"  %x{n} = load %a{n} : block<{LANES}x{type_}>")
    name, _, attributes = operation.partition(" ")
    values = ", ".join([*(f"%x{n}" for n in range(len(operands))), *([attributes] if attributes else [])])
    lines.append(f"  %y = {name} {values} : block<{LANES}x{result}>")
    lines.append(f"  %b = offset %q, %i : block<{LANES}xptr<{result}>>")
    return "\n".join([*lines, "  store %b, %y", "  return", "}"])


def functions() -> Iterator[str]:
    """Every mathematical function of the three formats that compute in different ways."""
    for name in FUNCTIONS:
        for type_ in ("f16", "f32", "f64"):
            yield lanewise(name, [type_], type_)
    for name, cls in FUNCTIONS_OF_SEVERAL.items():
        count = len(cls.operand_fields)
        for type_ in ("f32", "f64"):
            yield lanewise(name, [type_] * count, type_)


def arithmetic() -> Iterator[str]:
    for type_ in FLOATS:
        for name in ("add", "sub", "mul", "div", "rem", "minimum", "maximum"):
            yield lanewise(name, [type_] * 2, type_)
        yield lanewise("fma", [type_] * 3, type_)
    for type_ in INTEGERS:
        for name in ("mul", "idiv", "rem", "minimum", "maximum", "shl", "shr"):
            yield lanewise(name, [type_] * 2, type_)


def casts() -> Iterator[str]:
    for source in NUMBERS:
        for target in NUMBERS:
            if source != target:
                yield lanewise("cast", [source], target)
                yield lanewise('cast rounding="rtz"', [source], target)


def undefined_symbols(kernel: Kernel, level: str) -> set[str]:
    """What the object code of a kernel asks of the process that loads it."""
    compiled = compile_kernel(kernel, options=CompileOptions(target=target_for(level)))
    code = read_object(compiled.object_code)
    return {r.symbol.name for r in code.relocations if r.symbol.section is None}


@pytest.mark.parametrize("level", LEVELS)
def test_what_used_to_be_calls(level: str) -> None:
    """One kernel for each: fma, roundings, the remainder, conversions of f16."""
    for name, type_ in (("exp", "f64"), ("sin", "f32"), ("floor", "f32"), ("ceil", "f64"), ("trunc", "f64"),
                        ("rint", "f32"), ("rint", "f16"), ("tgamma", "f64")):  # fmt: skip
        assert not undefined_symbols(parse_kernel(lanewise(name, [type_], type_)), level), name
    for name, type_ in (("rem", "f32"), ("rem", "f64"), ("pow", "f64"), ("add", "f16")):
        assert not undefined_symbols(parse_kernel(lanewise(name, [type_] * 2, type_)), level), name
    for source, target in (("f64", "f16"), ("f16", "f64"), ("f64", "bf16"), ("u64", "f16")):
        assert not undefined_symbols(parse_kernel(lanewise("cast", [source], target)), level)


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("family", [functions, arithmetic, casts], ids=lambda f: str(f.__name__))
def test_no_operation_calls(family: object, level: str) -> None:
    assert callable(family)
    called = {text: names for text in family() if (names := undefined_symbols(parse_kernel(text), level))}
    assert not called


@pytest.mark.parametrize("level", LEVELS)
def test_products_of_every_format(level: str) -> None:
    """Conversions are part of packing, and f64 multiplies and adds in a function of the module."""
    sizes = {"BM": 32, "BN": 32, "BK": 32}
    for types in ("*fp16,*fp16,*fp32", "*bf16,*bf16,*fp32", "*fp8e5,*fp8e4nv,*fp32"):
        kernel = product.block_ir(product.specialise(f"{types},i32,i32,i32", sizes))
        assert undefined_symbols(kernel, level) <= PER_BLOCK
    kernel = byte_product.block_ir(byte_product.specialise("*i8,*i8,*i32,i32,i32,i32", sizes))
    assert undefined_symbols(kernel, level) <= PER_BLOCK
    kernel = square_in_place.block_ir(square_in_place.specialise("*fp64", {"N": 32}))
    assert undefined_symbols(kernel, level) <= PER_BLOCK


@pytest.mark.parametrize("name", REFERENCES)
@pytest.mark.parametrize("level", LEVELS)
def test_reference_kernels_move_blocks_at_most(level: str, name: str) -> None:
    assert undefined_symbols(block_ir(name), level) <= PER_BLOCK
