"""What each instruction of PTX computes, in operations of the language.

Approximate instructions give the accurate result. Sums and products are those that nothing fuses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from blocklang.diagnostics import CompilationError
from blocklang.language import dtypes as tl
from blocklang.language import maths
from blocklang.language.casting import bitcast_element, cast_element
from blocklang.language.extra import bits as integer_functions
from blocklang.language.extra import conversions
from blocklang.language.maths import where
from blocklang.language.ptx import values
from blocklang.language.ptx.syntax import Instruction, Operand, Program, refuse
from blocklang.language.tensor import constant, emit, tensor
from blocklang.ops import elementwise as ops

_ROUNDINGS = {"rn": "rn", "rz": "rz", "rm": "rd", "rp": "ru"}
_TYPES = frozenset(
    [
        *(f"{k}{n}" for k in "sub" for n in (8, 16, 32, 64)),
        "f16",
        "f16x2",
        "bf16",
        "bf16x2",
        "f32",
        "f64",
        "pred",
    ]
)
_COMPARISONS = {
    **{name: name for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    "lo": "lt",
    "ls": "le",
    "hi": "gt",
    "hs": "ge",
}
_OPPOSITES = {"eq": "ne", "ne": "eq", "lt": "ge", "le": "gt", "gt": "le", "ge": "lt"}


class Registers:
    """The state while a program is written out: what each register holds."""

    def __init__(self, program: Program, types: dict[str, str], contents: dict[str, tensor]) -> None:
        self.types = {**program.declared, **types}
        self.contents = contents
        for instruction in program.instructions:
            self.run(instruction)

    def read(self, operand: Operand, type_: str) -> tensor:
        if operand.parts:
            return values.as_type(values.join([self.content(p) for p in operand.parts]), type_)
        if not operand.name:
            return values.immediate(operand.text, type_)
        value = values.as_type(self.content(operand), type_)
        return value ^ constant(True, tl.int1) if operand.negated else value

    def content(self, operand: Operand) -> tensor:
        if operand.name not in self.contents:
            raise CompilationError(f"inline_asm_elementwise: `{operand.text}` is read before it is written")
        return self.contents[operand.name]

    def write(self, operand: Operand, value: tensor, instruction: Instruction) -> None:
        if operand.parts:
            parts = values.split(value, len(operand.parts))
            for part, register in zip(parts, operand.parts, strict=True):
                self.write(register, part, instruction)
            return
        if operand.name == "_":
            return
        if operand.name not in self.types:
            raise CompilationError(f"inline_asm_elementwise: `{instruction.text}` writes to `{operand.text}`")
        stored = self.as_stored(value, self.types[operand.name])
        predicate = instruction.predicate
        if predicate is not None and operand.name in self.contents:
            stored = where(self.read(predicate, "pred"), stored, self.contents[operand.name])
        self.contents[operand.name] = stored

    @staticmethod
    def as_stored(value: tensor, type_: str) -> tensor:
        """In the width of the register: a narrower result is extended by its own sign."""
        width = values.width_of(type_)
        if (width == 1) != (value.dtype == tl.int1):
            raise CompilationError("inline_asm_elementwise: a predicate and a number are mixed up")
        if width > 1 and value.dtype.primitive_bitwidth != width:
            source = value if value.dtype.is_int() else values.bits_of(value)
            value = cast_element(source, tl.dtype(f"uint{width}"))
        return values.bits_of(value)

    def run(self, instruction: Instruction) -> None:
        modifiers = [m for m in instruction.modifiers if m not in _TYPES]
        types = [m for m in instruction.modifiers if m in _TYPES]
        handler = _HANDLERS.get(instruction.opcode)
        if handler is None:
            raise refuse(f"`{instruction.opcode}`", "the instruction is not known")
        if not types and instruction.opcode != "mov":
            known = ", ".join(f".{m}" for m in instruction.modifiers)
            raise refuse(
                f"`{instruction.text}`", f"none of {known or 'its modifiers'} is a type that is built"
            )
        handler(self, instruction, modifiers, types)


Handler = Callable[[Registers, Instruction, list[str], list[str]], None]
_HANDLERS: dict[str, Handler] = {}


def _only(instruction: Instruction, modifiers: list[str], *allowed: str) -> None:
    for modifier in modifiers:
        if modifier not in allowed:
            raise refuse(f"`.{modifier}` of `{instruction.text}`", "the modifier is not built")


def _rounding(modifiers: list[str]) -> str:
    return next((_ROUNDINGS[m] for m in modifiers if m in _ROUNDINGS), "rn")


def _finish(value: tensor, modifiers: list[str]) -> tensor:
    if "ftz" in modifiers:
        value = values.flush(value)
    return values.saturate(value) if "sat" in modifiers and value.dtype.is_floating() else value


def _zero_like(value: tensor) -> tensor:
    return constant(0.0 if value.dtype.is_floating() else 0, value.dtype)


# ---- arithmetic: a function of values of one type, on pairs half by half ----

Body = Callable[..., tensor]


def _lanes(
    registers: Registers, instruction: Instruction, modifiers: list[str], type_: str, body: Body
) -> None:
    """Read all operands as one type, compute, write; `f16x2` computes both halves."""
    result, *operands = instruction.operands
    read = [registers.read(operand, type_) for operand in operands]
    if type_.endswith("x2"):
        half = type_[:-2]
        lows, highs = zip(*(values.halves(v, half) for v in read), strict=True)
        parts = [_finish(body(*side), modifiers) for side in (lows, highs)]
        registers.write(result, values.join(parts), instruction)
        return
    if "ftz" in modifiers:
        read = [values.flush(v) for v in read]
    registers.write(result, _finish(body(*read), modifiers), instruction)


def _function(name: str, *arguments: tensor) -> tensor:
    operation = ops.FUNCTIONS.get(name) or ops.FUNCTIONS_OF_SEVERAL[name]
    return emit(operation, *arguments)


def _sum(direction: str) -> Body:
    def body(a: tensor, b: tensor) -> tensor:
        return _function(f"add_{direction}", a, b) if a.dtype.is_floating() else emit(ops.Add, a, b)

    return body


def _difference(direction: str) -> Body:
    def body(a: tensor, b: tensor) -> tensor:
        if a.dtype.is_floating():
            return _function(f"add_{direction}", a, emit(ops.Neg, b))
        return emit(ops.Sub, a, b)

    return body


def _product(direction: str) -> Body:
    return lambda a, b: _function(f"mul_{direction}", a, b)


def _quotient(direction: str) -> Body:
    def body(a: tensor, b: tensor) -> tensor:
        if not a.dtype.is_floating():
            return emit(ops.IntegerDiv, a, b)
        return emit(ops.Div, a, b) if direction == "rn" else _function(f"div_{direction}", a, b)

    return body


def _fused(direction: str) -> Body:
    def body(a: tensor, b: tensor, c: tensor) -> tensor:
        return emit(ops.Fma, a, b, c) if direction == "rn" else _function(f"fma_{direction}", a, b, c)

    return body


def _root(direction: str) -> Body:
    return lambda a: _function("sqrt" if direction == "rn" else f"sqrt_{direction}", a)


def _arithmetic(make: Callable[[str], Body], *allowed: str) -> Handler:
    def handler(
        registers: Registers, instruction: Instruction, modifiers: list[str], types: list[str]
    ) -> None:
        _only(instruction, modifiers, *_ROUNDINGS, "ftz", "sat", *allowed)
        if "sat" in modifiers and types[0] == "s32":
            raise refuse(f"`.sat` of `{instruction.text}`", "saturating integers are not built")
        _lanes(registers, instruction, modifiers, types[0], make(_rounding(modifiers)))

    return handler


def _plain(body: Body, *allowed: str) -> Handler:
    return _arithmetic(lambda direction: body, *allowed)


def _reciprocal(direction: str) -> Body:
    divide = _quotient(direction)
    return lambda a: divide(constant(1.0, a.dtype), a)


def _extremum(cls: Any) -> Handler:
    def handler(
        registers: Registers, instruction: Instruction, modifiers: list[str], types: list[str]
    ) -> None:
        _only(instruction, modifiers, "NaN", "ftz")
        propagate = "NaN" in modifiers
        _lanes(
            registers, instruction, modifiers, types[0], lambda a, b: emit(cls, a, b, propagate_nan=propagate)
        )

    return handler


def _high(a: tensor, b: tensor) -> tensor:
    if a.dtype.primitive_bitwidth >= 32:
        return integer_functions.mulhi(a, b)
    wide = tl.dtype(f"{'uint' if a.dtype.is_int_unsigned() else 'int'}{2 * a.dtype.primitive_bitwidth}")
    product = emit(ops.Mul, cast_element(a, wide), cast_element(b, wide))
    return cast_element(product >> a.dtype.primitive_bitwidth, a.dtype)


def _multiplication(
    registers: Registers, instruction: Instruction, modifiers: list[str], types: list[str]
) -> None:
    """mul, mad and fma-like mad of floats; integers give the low or high half, or all of the product."""
    type_ = types[0]
    if (type_[0] in "fb" and type_[1:2] != "3") or type_.startswith(("f", "bf")):
        _only(instruction, modifiers, *_ROUNDINGS, "ftz", "sat")
        make = _product if instruction.opcode == "mul" else _fused
        _lanes(registers, instruction, modifiers, type_, make(_rounding(modifiers)))
        return
    _only(instruction, modifiers, "lo", "hi", "wide")
    result, *operands = instruction.operands
    a, b = (registers.read(operand, type_) for operand in operands[:2])
    wide = type_
    if "wide" in modifiers:
        wide = f"{type_[0]}{2 * int(type_[1:])}"
        a, b = (cast_element(v, values.dtype_of(wide)) for v in (a, b))
    product = _high(a, b) if "hi" in modifiers else emit(ops.Mul, a, b)
    if len(operands) == 3:
        product = emit(ops.Add, product, registers.read(operands[2], wide))
    registers.write(result, product, instruction)


def _absolute(a: tensor) -> tensor:
    return maths.abs(a)


def _negated(a: tensor) -> tensor:
    return emit(ops.Neg, a)


_HANDLERS.update(
    {
        "add": _arithmetic(_sum),
        "sub": _arithmetic(_difference),
        "mul": _multiplication,
        "mad": _multiplication,
        "fma": _arithmetic(_fused),
        "div": _arithmetic(_quotient, "approx", "full"),
        "rem": _plain(lambda a, b: emit(ops.Rem, a, b)),
        "rcp": _arithmetic(_reciprocal, "approx"),
        "sqrt": _arithmetic(_root, "approx"),
        "rsqrt": _plain(lambda a: _function("rsqrt", a), "approx"),
        "neg": _plain(_negated),
        "abs": _plain(_absolute),
        "min": _extremum(ops.Minimum),
        "max": _extremum(ops.Maximum),
        "ex2": _plain(lambda a: _function("exp2", a), "approx"),
        "lg2": _plain(lambda a: _function("log2", a), "approx"),
        "tanh": _plain(lambda a: _function("tanh", a), "approx"),
        "sin": _plain(lambda a: _function("sin", a), "approx"),
        "cos": _plain(lambda a: _function("cos", a), "approx"),
        "copysign": _plain(lambda sign, size: integer_functions.copysign(size, sign)),
        "mul24": _plain(integer_functions.mul24, "lo"),
    }
)


# ---- bits ----


def _logic(cls: Any) -> Handler:
    def handler(
        registers: Registers, instruction: Instruction, modifiers: list[str], types: list[str]
    ) -> None:
        _only(instruction, modifiers)
        _lanes(registers, instruction, modifiers, types[0], lambda a, b: emit(cls, a, b))

    return handler


def _complement(a: tensor) -> tensor:
    ones = (
        constant(True, tl.int1)
        if a.dtype == tl.int1
        else constant((1 << a.dtype.primitive_bitwidth) - 1, tl.dtype(f"uint{a.dtype.primitive_bitwidth}"))
    )
    return emit(ops.Xor, values.bits_of(a), ones)


def _shift(cls: Any) -> Handler:
    """The count is 32 bits wide; the width or more gives 0, or the sign."""

    def handler(
        registers: Registers, instruction: Instruction, modifiers: list[str], types: list[str]
    ) -> None:
        _only(instruction, modifiers)
        result, operand, amount = instruction.operands
        value = registers.read(operand, types[0])
        count = registers.read(amount, "u32")
        width = value.dtype.primitive_bitwidth
        count = where(count < width, count, constant(width, tl.uint32))
        registers.write(result, emit(cls, value, cast_element(count, value.dtype)), instruction)

    return handler


def _permute(registers: Registers, instruction: Instruction, modifiers: list[str], types: list[str]) -> None:
    """prmt: four bytes of eight; bit 3 of a selector repeats the byte's sign instead."""
    _only(instruction, modifiers)
    result, first, second, chooser = instruction.operands
    a, b = registers.read(first, "b32"), registers.read(second, "b32")
    selector = registers.read(chooser, "b32")
    chosen = values.bits_of(
        integer_functions.byte_perm(*(bitcast_element(v, tl.int32) for v in (a, b, selector)))
    )
    flags: Any = None
    for i in range(4):
        flag = ((selector >> (4 * i + 3)) & 1) << (8 * i)
        flags = flag if flags is None else flags | flag
    signs = ((chosen >> 7) & 0x01010101) * 0xFF
    repeated = flags * 0xFF
    registers.write(result, (chosen & (repeated ^ 0xFFFFFFFF)) | (signs & repeated), instruction)


def _lookup(registers: Registers, instruction: Instruction, modifiers: list[str], types: list[str]) -> None:
    """lop3: any function of three bits, as a choice by the first of two functions of the others."""
    _only(instruction, modifiers)
    result, *operands, table_operand = instruction.operands
    table = values.integer_immediate(table_operand)
    if table is None:
        raise refuse(f"`{instruction.text}`", "its table must be a number in the text")
    a, b, c = (registers.read(operand, "b32") for operand in operands)
    high, low = _two(table >> 4 & 15, b, c), _two(table & 15, b, c)
    value = high if table >> 4 & 15 == table & 15 else (a & high) | (_complement(a) & low)
    registers.write(result, value, instruction)


def _two(table: int, b: Any, c: Any) -> Any:
    """A function of two bits by its table; bit 2 b + c is its value."""
    zero = constant(0, tl.uint32)
    terms: dict[int, Callable[[], Any]] = {
        0: lambda: zero,
        1: lambda: _complement(b | c),
        2: lambda: _complement(b) & c,
        3: lambda: _complement(b),
        4: lambda: b & _complement(c),
        5: lambda: _complement(c),
        6: lambda: b ^ c,
        7: lambda: _complement(b & c),
        8: lambda: b & c,
        9: lambda: _complement(b ^ c),
        10: lambda: c,
        11: lambda: _complement(b) | c,
        12: lambda: b,
        13: lambda: b | _complement(c),
        14: lambda: b | c,
        15: lambda: _complement(zero),
    }
    return terms[table]()


def _field(registers: Registers, instruction: Instruction, modifiers: list[str], types: list[str]) -> None:
    """bfe: bits from a position on, extended by the last of them if signed (or that of the register)."""
    _only(instruction, modifiers)
    result, operand, begin, size = instruction.operands
    value = registers.read(operand, types[0])
    unsigned, width = tl.dtype(f"uint{value.dtype.primitive_bitwidth}"), value.dtype.primitive_bitwidth
    position = cast_element(registers.read(begin, "u32") & 0xFF, unsigned)
    length = cast_element(registers.read(size, "u32") & 0xFF, unsigned)
    length = where(length < width, length, constant(width, unsigned))
    if value.dtype.is_int_unsigned():
        mask = _complement(_complement(constant(0, unsigned)) << length)
        registers.write(result, (value >> position) & mask, instruction)
        return
    shifted = value >> bitcast_element(where(position < width, position, width - 1), value.dtype)
    spare = bitcast_element(width - length, value.dtype)
    extended = where(length == 0, constant(0, value.dtype), (shifted << spare) >> spare)
    registers.write(result, extended, instruction)


def _insert(registers: Registers, instruction: Instruction, modifiers: list[str], types: list[str]) -> None:
    """bfi: the low bits of the first operand in the second, from a position on."""
    _only(instruction, modifiers)
    result, source, base, begin, size = instruction.operands
    a, b = registers.read(source, types[0]), registers.read(base, types[0])
    position = cast_element(registers.read(begin, "u32") & 0xFF, a.dtype)
    length = cast_element(registers.read(size, "u32") & 0xFF, a.dtype)
    mask = _complement(_complement(constant(0, a.dtype)) << length) << position
    registers.write(result, (b & _complement(mask)) | ((a << position) & mask), instruction)


def _count(function: Callable[[tensor], tensor]) -> Handler:
    def handler(
        registers: Registers, instruction: Instruction, modifiers: list[str], types: list[str]
    ) -> None:
        _only(instruction, modifiers)
        value = registers.read(instruction.operands[1], types[0])
        signed = bitcast_element(value, tl.dtype(f"int{value.dtype.primitive_bitwidth}"))
        registers.write(instruction.operands[0], function(signed), instruction)

    return handler


def _move(registers: Registers, instruction: Instruction, modifiers: list[str], types: list[str]) -> None:
    _only(instruction, modifiers)
    result, operand = instruction.operands
    if operand.parts:
        registers.write(result, values.join([registers.content(p) for p in operand.parts]), instruction)
        return
    type_ = types[0] if types else "b32"
    registers.write(result, values.bits_of(registers.read(operand, type_)), instruction)


_HANDLERS.update(
    {
        "and": _logic(ops.And),
        "or": _logic(ops.Or),
        "xor": _logic(ops.Xor),
        "not": _plain(_complement),
        "shl": _shift(ops.Shl),
        "shr": _shift(ops.Shr),
        "prmt": _permute,
        "lop3": _lookup,
        "bfe": _field,
        "bfi": _insert,
        "popc": _count(integer_functions.popc),
        "clz": _count(integer_functions.clz),
        "brev": _count(integer_functions.brev),
        "mov": _move,
    }
)


# ---- predicates ----


def _compared(name: str, a: tensor, b: tensor) -> Any:
    """An ordered comparison, or with `u` one that a NaN makes true; num and nan."""
    if name in ("num", "nan"):
        unordered: Any = (a != a) | (b != b)
        return unordered if name == "nan" else unordered ^ True
    if a.dtype.is_floating() and name.endswith("u"):
        opposite = _OPPOSITES[name[:-1]]
        if opposite == "ne":  # equ: equal, or a NaN
            equal: Any = (a == b) | (a != a) | (b != b)
            return equal
        if opposite == "eq":
            return emit(ops.Compare, a, b, predicate="ne")
        return _complement(emit(ops.Compare, a, b, predicate=opposite))
    if name not in _COMPARISONS:
        raise refuse(f"the comparison `.{name}`", "it is not known")
    predicate = _COMPARISONS[name]
    result = emit(ops.Compare, a, b, predicate=predicate)
    if predicate == "ne" and a.dtype.is_floating():  # `ne` of PTX is ordered
        ordered: Any = result & (a == a) & (b == b)
        return ordered
    return result


def _set_predicate(
    registers: Registers, instruction: Instruction, modifiers: list[str], types: list[str]
) -> None:
    combine = [m for m in modifiers if m in ("and", "or", "xor")]
    comparison = [m for m in modifiers if m not in ("and", "or", "xor", "ftz")]
    if len(comparison) != 1 or types[0].endswith("x2"):
        raise refuse(f"`{instruction.text}`", "one comparison of one type is expected")
    operands = list(instruction.operands)
    inputs = 3 if combine else 2
    results, (left, right, *rest) = operands[:-inputs], operands[-inputs:]
    a, b = registers.read(left, types[0]), registers.read(right, types[0])
    if "ftz" in modifiers:
        a, b = values.flush(a), values.flush(b)
    holds = _compared(comparison[0], a, b)
    outcomes = [holds, _complement(holds)]
    if combine:
        cls = {"and": ops.And, "or": ops.Or, "xor": ops.Xor}[combine[0]]
        outcomes = [emit(cls, outcome, registers.read(rest[0], "pred")) for outcome in outcomes]
    for result, outcome in zip(results, outcomes, strict=False):
        registers.write(result, outcome, instruction)


def _select(registers: Registers, instruction: Instruction, modifiers: list[str], types: list[str]) -> None:
    _only(instruction, modifiers)
    result, first, second, predicate = instruction.operands
    a, b = registers.read(first, types[0]), registers.read(second, types[0])
    registers.write(result, emit(ops.Select, registers.read(predicate, "pred"), a, b), instruction)


_HANDLERS.update({"setp": _set_predicate, "selp": _select})


# ---- conversions ----


def _convert(registers: Registers, instruction: Instruction, modifiers: list[str], types: list[str]) -> None:
    if "tf32" in modifiers and types == ["f32"]:
        _to_tf32(registers, instruction, modifiers)
        return
    for modifier in modifiers:
        if modifier.startswith(("e4m3", "e5m2", "e2m1", "e2m3", "e3m2", "ue8m0")):
            raise refuse(f"`.{modifier}` of `{instruction.text}`", "fp8 and narrower floats are not built")
    _only(instruction, modifiers, *_ROUNDINGS, "rni", "rzi", "rmi", "rpi", "sat", "satfinite", "ftz", "relu")
    if "satfinite" in modifiers:
        raise refuse(f"`.satfinite` of `{instruction.text}`", "it is for fp8")
    target, source = types[0], types[1]
    result, *operands = instruction.operands
    direction = _rounding(modifiers)
    if target.endswith("x2"):
        high, low = (registers.read(operand, source) for operand in operands)
        parts = [
            _to_float(_rectified(v, modifiers), target[:-2], direction, instruction) for v in (low, high)
        ]
        registers.write(result, values.join(parts), instruction)
        return
    value = _rectified(registers.read(operands[0], source), modifiers)
    if "ftz" in modifiers:
        value = values.flush(value)
    registers.write(
        result, _finish(_converted(value, target, modifiers, direction, instruction), modifiers), instruction
    )


def _rectified(value: tensor, modifiers: list[str]) -> tensor:
    """Negative numbers become 0: `.relu`; a NaN stays."""
    return where(value < 0.0, _zero_like(value), value) if "relu" in modifiers else value


def _converted(
    value: tensor, target: str, modifiers: list[str], direction: str, instruction: Instruction
) -> tensor:
    integral = next((m[:2] for m in modifiers if m in ("rni", "rzi", "rmi", "rpi")), None)
    if value.dtype.is_floating() and (integral or not values.is_float(target)):
        functions = {"rn": maths.rint, "rz": maths.trunc, "rm": maths.floor, "rp": maths.ceil}
        value = functions[integral or "rz"](value)
    if not values.is_float(target):
        return _to_integer(value, target, saturating="sat" in modifiers)
    return _to_float(value, target, direction, instruction)


def _to_integer(value: tensor, target: str, *, saturating: bool) -> tensor:
    wanted = values.dtype_of(target)
    if saturating and not value.dtype.is_floating():
        low, high = wanted.get_int_min_value(), wanted.get_int_max_value()
        if value.dtype.get_int_min_value() < low:
            value = where(value < low, constant(low, value.dtype), value)
        if value.dtype.get_int_max_value() > high:
            value = where(value > high, constant(high, value.dtype), value)
    return cast_element(value, wanted)


def _to_float(value: tensor, target: str, direction: str, instruction: Instruction) -> tensor:
    wanted = values.dtype_of(target)
    if not value.dtype.is_floating():
        if direction == "rn" or target in ("f16", "bf16"):
            if direction != "rn":
                raise refuse(f"`{instruction.text}`", "16-bit floats round to nearest, or `.rz` from floats")
            return cast_element(value, wanted)
        wide = conversions.integer_to_double(value, direction)
        return wide if target == "f64" else conversions.narrow(wide, direction)
    if value.dtype.primitive_bitwidth <= wanted.primitive_bitwidth or direction == "rn":
        return cast_element(value, wanted)
    if direction == "rz":
        return cast_element(value, wanted, "rtz")
    if wanted != tl.float32:
        raise refuse(f"`{instruction.text}`", "16-bit floats round to nearest or toward zero")
    return conversions.narrow(value, direction)


def _to_tf32(registers: Registers, instruction: Instruction, modifiers: list[str]) -> None:
    """Keep 10 bits of the fraction: ties away from zero (`rna`), to even (`rn`), or cut (`rz`)."""
    mode = modifiers[0]
    _only(instruction, modifiers, "rna", "rn", "rz", "tf32")
    bits = values.bits_of(registers.read(instruction.operands[1], "f32"))
    added = {"rna": bits + 0x1000, "rn": bits + 0xFFF + ((bits >> 13) & 1), "rz": bits}[mode]
    finite = (bits & 0x7F800000) != 0x7F800000
    rounded = where(finite, added & 0xFFFFE000, bits)
    registers.write(instruction.operands[0], rounded, instruction)


_HANDLERS["cvt"] = _convert
