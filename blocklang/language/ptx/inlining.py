"""One run of PTX text on every element: registers from blocks, instructions, blocks from registers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from blocklang.diagnostics import CompilationError
from blocklang.language import dtypes as tl
from blocklang.language.broadcasting import broadcast_together
from blocklang.language.casting import bitcast_element, cast_element, to_dtype
from blocklang.language.constexpr import describe, static_bool, static_int, unwrap
from blocklang.language.dtypes import dtype
from blocklang.language.ptx import values
from blocklang.language.ptx.instructions import Registers
from blocklang.language.ptx.sharing import check_independence
from blocklang.language.ptx.syntax import parse, refuse
from blocklang.language.tensor import constant, tensor, to_tensor

_LETTERS = {"h": "b16", "r": "b32", "f": "b32", "l": "b64", "d": "b64"}


@dataclass(frozen=True)
class Constraints:
    """The types of the registers, and which input begins in which output's register."""

    outputs: tuple[str, ...]
    inputs: tuple[str, ...]
    tied: dict[int, int]


def _constraints(text: str) -> Constraints:
    outputs: list[str] = []
    inputs: list[str] = []
    tied: dict[int, int] = {}
    for part in filter(None, (p.strip() for p in text.split(","))):
        if part.startswith("~"):
            continue  # a clobber: nothing is kept in registers that a text could spoil
        output = re.fullmatch(r"=&?([a-z])", part)
        letter = output[1] if output else part
        if part.isdigit() and int(part) < len(outputs):
            tied[len(inputs)] = int(part)
            inputs.append(outputs[int(part)])
        elif letter in _LETTERS and (output or len(part) == 1):
            (outputs if output else inputs).append(_LETTERS[letter])
        else:
            raise refuse(
                f"the constraint `{part}`", "registers are `h`, `r`, `f`, `l` and `d`, outputs with `=`"
            )
    return Constraints(tuple(outputs), tuple(inputs), tied)


def _count(element: dtype, pack: int) -> int:
    """How many registers hold a pack: small elements share registers of 32 bits."""
    return -(-pack * element.primitive_bitwidth // 32) if element.primitive_bitwidth < 32 else pack


def _packed(value: tensor, register: str, pack: int) -> tensor:
    """A register full of one element: every element of a pack is computed as this one is."""
    bits = values.bits_of(value)
    width, whole = bits.dtype.primitive_bitwidth, values.width_of(register)
    if width > whole:
        raise CompilationError(
            f"inline_asm_elementwise: an element of {width} bits does not fit a register of {whole}"
        )
    word = cast_element(bits, tl.dtype(f"uint{whole}"))
    copies = min(pack, whole // width) if width < 32 else 1
    factor = sum(1 << (width * i) for i in range(copies))
    product: tensor = word * constant(factor, word.dtype) if copies > 1 else word
    return product


def inline(asm: Any, constraints: Any, args: Any, dtype: Any, is_pure: Any, pack: Any) -> Any:
    """`tl.inline_asm_elementwise`, which has the arguments' meaning."""
    static_bool(is_pure, "is_pure")
    text, letters, size = unwrap(asm), unwrap(constraints), static_int(pack, "pack")
    if not isinstance(text, str) or not isinstance(letters, str):
        raise CompilationError(f"inline_asm_elementwise needs strings, got {describe(asm)}")
    if size < 1:
        raise CompilationError(f"inline_asm_elementwise: pack is {size}, at least 1 is needed")
    wanted = unwrap(dtype)
    several = isinstance(wanted, (tuple, list))
    results = [to_dtype(d) for d in (wanted if several else (wanted,))]
    arguments = list(broadcast_together(*(to_tensor(a) for a in unwrap(args)))) if len(unwrap(args)) else []
    for element in (*results, *(a.dtype for a in arguments)):
        if element.is_ptr() or element == tl.int1:
            raise refuse(f"the type {element}", "registers hold integers and floats of 8 to 64 bits")
    kinds = _constraints(letters)
    counts = [_count(element, size) for element in (*results, *(a.dtype for a in arguments))]
    outputs = sum(counts[: len(results)])
    given = (len(kinds.outputs), len(kinds.inputs))
    if given != (outputs, sum(counts) - outputs):
        raise CompilationError(
            f"inline_asm_elementwise: {given[0]} outputs and {given[1]} inputs in the constraints, "
            f"but pack={size} of these types needs {outputs} and {sum(counts) - outputs}",
            help="elements of less than 32 bits share registers of 32 bits",
        )
    program = parse(text)
    contents: dict[str, tensor] = {}
    holders: dict[str, tuple[int, int, int]] = {}
    index = outputs
    for argument, count in zip(arguments, counts[len(results) :], strict=True):
        for part in range(count):
            register = kinds.inputs[index - outputs]
            value = _packed(argument, register, size)
            contents[f"${index}"] = value
            elements = (argument.dtype.primitive_bitwidth, part, values.width_of(register))
            holders[f"${index}"] = elements
            if index - outputs in kinds.tied:
                contents[f"${kinds.tied[index - outputs]}"] = value
                holders[f"${kinds.tied[index - outputs]}"] = elements
            index += 1
    types = {f"${i}": kind for i, kind in enumerate((*kinds.outputs, *kinds.inputs))}
    if size > 1:
        places = [(d.primitive_bitwidth, count) for d, count in zip(results, counts, strict=False)]
        check_independence(program, types, holders, places, size)
    registers = Registers(program, types, contents)
    found = []
    index = 0
    for element, count in zip(results, counts, strict=False):
        name = f"${index}"
        if name not in registers.contents:
            raise CompilationError(f"inline_asm_elementwise: the text does not write `{name}`")
        found.append(_element(registers.contents[name], element))
        index += count
    return tuple(found) if several else found[0]


def _element(register: tensor, element: dtype) -> tensor:
    """The first element that a register holds."""
    width = element.primitive_bitwidth
    if register.dtype.primitive_bitwidth < width:
        raise CompilationError(f"inline_asm_elementwise: {element} needs a register of {width} bits")
    return bitcast_element(cast_element(register, tl.dtype(f"uint{width}")), element)
