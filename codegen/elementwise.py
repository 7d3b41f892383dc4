"""Machine code of lane-wise operations, for any number of lanes (0: scalars).

A lowering takes the emitter, the operation and its operands' registers, all with `width` lanes, and returns
the register of the result. Floats of 8 and 16 bits are computed in f32 and rounded once. Every result is
defined for every input.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from blocklang.codegen.context import Context
from blocklang.codegen.emitter import splat_constant, vector_of
from blocklang.codegen.float8 import narrow_float8
from blocklang.codegen.floats import round_f64_to_odd_f32
from blocklang.codegen.fused import fused_multiply_add
from blocklang.codegen.remainder import float_remainder
from blocklang.codegen.roundings import Rounding, round_to_integral
from blocklang.ir.core import Operation
from blocklang.ir.float8 import FLOAT8
from blocklang.ir.types import F16, F32, F64, I64, PointerType, ScalarType, Type, element_type
from blocklang.ops import elementwise as ops

Lowering = Callable[[Context, Operation, list[str]], str]
LOWERINGS: dict[type[Operation], Lowering] = {}


def lowers(*classes: type[Operation]) -> Callable[[Lowering], Lowering]:
    """Register the lowering of operations. Raises ValueError if one has a lowering already."""

    def register(function: Lowering) -> Lowering:
        for cls in classes:
            if cls in LOWERINGS:
                raise ValueError(f"{cls.name} has two lowerings")
            LOWERINGS[cls] = function
        return function

    return register


def scalar_type(op: Operation, index: int = 0) -> ScalarType:
    """The element type of an operand."""
    element = element_type(op.operands[index].type)
    assert isinstance(element, ScalarType)
    return element


def working_type(type: ScalarType) -> ScalarType:
    """The type that arithmetic on `type` is done in."""
    return F32 if type.is_small_float else type


_FLOAT_OPCODES: dict[type[Operation], str] = {
    ops.Add: "fadd",
    ops.Sub: "fsub",
    ops.Mul: "fmul",
    ops.Div: "fdiv",
}
_INTEGER_OPCODES: dict[type[Operation], str] = {
    ops.Add: "add",
    ops.Sub: "sub",
    ops.Mul: "mul",
    ops.And: "and",
    ops.Or: "or",
    ops.Xor: "xor",
}


@lowers(ops.Add, ops.Sub, ops.Mul, ops.Div, ops.And, ops.Or, ops.Xor)
def _arithmetic(c: Context, op: Operation, args: list[str]) -> str:
    type = scalar_type(op)
    if type.is_float:
        lhs, rhs = (c.widen(type, a) for a in args)
        return c.narrow(
            type, c.emit.op(f"{_FLOAT_OPCODES[op.__class__]} {c.type(working_type(type))} {lhs}, {rhs}")
        )
    return c.emit.op(f"{_INTEGER_OPCODES[op.__class__]} {c.type(type)} {args[0]}, {args[1]}")


@lowers(ops.IntegerDiv)
def _integer_division(c: Context, op: Operation, args: list[str]) -> str:
    type = scalar_type(op)
    zero = c.emit.op(f"icmp eq {c.type(type)} {args[1]}, {c.number(type, 0)}")
    return c.select(zero, type, c.number(type, 0), quotient(c, type, args[0], args[1], zero))


def quotient(c: Context, type: ScalarType, lhs: str, rhs: str, zero: str) -> str:
    """lhs / rhs truncated, with every divisor made harmless; lanes where `zero` holds divide by 1."""
    if c.width and type.bits <= 32 and type.bits > 1:
        return _quotient_in_f64(c, type, lhs, rhs, zero)
    divisor = c.select(zero, type, c.number(type, 1), rhs)
    if type.is_signed:
        lowest = c.emit.op(f"icmp eq {c.type(type)} {lhs}, {c.number(type, type.minimum)}")
        minus_one = c.emit.op(f"icmp eq {c.type(type)} {rhs}, {c.number(type, -1)}")
        overflow = c.emit.op(f"and {c.mask_type} {lowest}, {minus_one}")
        divisor = c.select(overflow, type, c.number(type, 1), divisor)
    return c.emit.op(f"{'sdiv' if type.is_signed else 'udiv'} {c.type(type)} {lhs}, {divisor}")


def _quotient_in_f64(c: Context, type: ScalarType, lhs: str, rhs: str, zero: str) -> str:
    """A 32-bit quotient by a correctly rounded f64 division: a non-integral a / b is at least 1 / b away
    from an integer, and |a / b| * 2^-53 < 1 / b, so that truncation is right. CPUs have no vector integer
    division.
    """
    double = c.type(F64)
    divisor = c.select(zero, type, c.number(type, 1), rhs)
    convert = "sitofp" if type.is_signed else "uitofp"
    a, b = (c.emit.op(f"{convert} {c.type(type)} {v} to {double}") for v in (lhs, divisor))
    real = c.emit.op(f"fdiv {double} {a}, {b}")
    wide = c.emit.op(f"{'fptosi' if type.is_signed else 'fptoui'} {double} {real} to {c.type(I64)}")
    return c.emit.op(f"trunc {c.type(I64)} {wide} to {c.type(type)}")


@lowers(ops.Rem)
def _remainder(c: Context, op: Operation, args: list[str]) -> str:
    type = scalar_type(op)
    if type.is_float:
        lhs, rhs = (c.widen(type, a) for a in args)
        return c.narrow(type, float_remainder(c, working_type(type), lhs, rhs))
    zero = c.emit.op(f"icmp eq {c.type(type)} {args[1]}, {c.number(type, 0)}")
    whole = c.emit.op(f"mul {c.type(type)} {quotient(c, type, args[0], args[1], zero)}, {args[1]}")
    # x rem 0 is x: the product above is x * 0.
    return c.emit.op(f"sub {c.type(type)} {args[0]}, {whole}")


@lowers(ops.Fma)
def _fma(c: Context, op: Operation, args: list[str]) -> str:
    type = scalar_type(op)
    a, b, addend = (c.widen(type, v) for v in args)
    return c.narrow(type, fused_multiply_add(c, working_type(type), a, b, addend))


@lowers(ops.Minimum, ops.Maximum)
def _extremum(c: Context, op: Operation, args: list[str]) -> str:
    smaller = isinstance(op, ops.Minimum)
    return extremum(
        c,
        scalar_type(op),
        args[0],
        args[1],
        smaller=smaller,
        propagate=bool(op.attributes.get("propagate_nan")),
    )


def extremum(c: Context, type: ScalarType, a: str, b: str, *, smaller: bool, propagate: bool = False) -> str:
    """The smaller or larger of two lanes, as the operations `minimum` and `maximum` say."""
    if type.is_float:
        name = ("minimum" if smaller else "maximum") + ("" if propagate else "num")
        working = working_type(type)
        operands = [c.widen(type, a), c.widen(type, b)]
        if c.width <= 1 and c.target.vector_bytes >= 64 and not propagate:
            # LLVM's AVX-512 code for a scalar gives NaN where one operand is NaN and the other is known to
            # be a number (a converted integer, another extremum): hide what is known.
            operands = [c.intrinsic("arithmetic.fence", working, v) for v in operands]
        return c.restore(type, c.intrinsic(name, working, *operands))
    name = ("s" if type.is_signed else "u") + ("min" if smaller else "max")
    return c.intrinsic(name, type, a, b)


@lowers(ops.Shl, ops.Shr)
def _shift(c: Context, op: Operation, args: list[str]) -> str:
    type = scalar_type(op)
    text = c.type(type)
    if isinstance(op, ops.Shr) and type.is_signed:
        count = c.intrinsic("umin", type, args[1], c.number(type, type.bits - 1))
        return c.emit.op(f"ashr {text} {args[0]}, {count}")
    shifted = c.emit.op(f"{'shl' if isinstance(op, ops.Shl) else 'lshr'} {text} {args[0]}, {args[1]}")
    small = (
        c.emit.op(f"icmp ult {text} {args[1]}, {c.number(type, type.bits)}")
        if type.bits > 1
        else (c.emit.op(f"icmp eq {text} {args[1]}, {c.number(type, 0)}"))
    )
    return c.select(small, type, shifted, c.number(type, 0))


@lowers(ops.Scale)
def _scale(c: Context, op: Operation, args: list[str]) -> str:
    type = scalar_type(op)
    value, shifted = args
    fraction, bias = (23, 127) if type == F32 else (52, 1023)
    text = c.type(type)
    if c.target.has_scaling and c.width * type.bits >= 128:
        magic = c.number(type, 1.5 * 2.0**fraction + 2 * bias)
        return _scale_registers(c, type, value, c.emit.op(f"fsub {text} {shifted}, {magic}"))
    word = vector_of(f"i{type.bits}", c.width)

    def integer(number: int) -> str:
        return splat_constant(f"i{type.bits}", str(number), c.width)

    # Two factors, whose exponents the bits are split into; the first product is exact.
    bits = c.emit.op(f"bitcast {text} {shifted} to {word}")
    half = c.emit.op(f"lshr {word} {bits}, {integer(1)}")
    for part in (half, c.emit.op(f"sub {word} {bits}, {half}")):
        power = c.emit.op(f"shl {word} {part}, {integer(fraction)}")
        value = c.emit.op(f"fmul {text} {value}, {c.emit.op(f'bitcast {word} {power} to {text}')}")
    return value


def _scale_registers(c: Context, type: ScalarType, value: str, power: str) -> str:
    """AVX-512's exact product with a power of two, which takes one register at a time."""
    text, bits = c.type(type), c.width * type.bits
    if bits > 512:
        half = Context(c.emit, c.target, c.width // 2)
        lanes = [range(half.width), range(half.width, c.width)]
        first, second = (
            _scale_registers(
                half, type, _shuffled(c, type, value, value, part), _shuffled(c, type, power, power, part)
            )
            for part in lanes
        )
        return _shuffled(half, type, first, second, range(c.width))
    name = f"llvm.x86.avx512.mask.scalef.{'ps' if type == F32 else 'pd'}.{bits}"
    mask = (f"i{max(c.width, 8)}", "-1")
    arguments = [(text, value), (text, power), (text, "zeroinitializer"), mask]
    return c.emit.call(text, name, arguments + [("i32", "4")] * (bits == 512))


def _shuffled(c: Context, type: ScalarType, a: str, b: str, lanes: range) -> str:
    """Lanes of two vectors that stand behind each other, as one vector."""
    numbers = ", ".join(f"i32 {lane}" for lane in lanes)
    text = c.type(type)
    return c.emit.op(f"shufflevector {text} {a}, {text} {b}, <{len(lanes)} x i32> <{numbers}>")


@lowers(ops.UnsignedMulHigh)
def _multiply_high(c: Context, op: Operation, args: list[str]) -> str:
    type = scalar_type(op)
    if c.width and type.bits == 64:
        return _multiply_high_64(c, type, args[0], args[1])
    wide = vector_of(f"i{2 * type.bits}", c.width)
    a, b = (c.emit.op(f"zext {c.type(type)} {v} to {wide}") for v in args)
    product = c.emit.op(f"mul {wide} {a}, {b}")
    count = splat_constant(f"i{2 * type.bits}", str(type.bits), c.width)
    return c.emit.op(f"trunc {wide} {c.emit.op(f'lshr {wide} {product}, {count}')} to {c.type(type)}")


def _multiply_high_64(c: Context, type: ScalarType, a: str, b: str) -> str:
    """The schoolbook product in halves of 32 bits: CPUs multiply vectors of 32-bit lanes to 64 bits, and no
    wider. No partial sum overflows.
    """
    word, half = c.type(type), c.number(type, 32)
    mask = splat_constant("i64", str(0xFFFFFFFF), c.width)

    def high(v: str) -> str:
        return c.emit.op(f"lshr {word} {v}, {half}")

    def low(v: str) -> str:
        return c.emit.op(f"and {word} {v}, {mask}")

    def product(v: str, w: str) -> str:
        return c.emit.op(f"mul {word} {v}, {w}")

    def total(v: str, w: str) -> str:
        return c.emit.op(f"add {word} {v}, {w}")

    a_high, a_low, b_high, b_low = high(a), low(a), high(b), low(b)
    middle = total(product(a_high, b_low), high(product(a_low, b_low)))
    other = total(product(a_low, b_high), low(middle))
    return total(total(product(a_high, b_high), high(middle)), high(other))


_ORDERED = {"lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "eq": "oeq", "ne": "une"}


@lowers(ops.Compare)
def _compare(c: Context, op: Operation, args: list[str]) -> str:
    predicate = op.attributes["predicate"]
    element = element_type(op.operands[0].type)
    if isinstance(element, ScalarType) and element.is_float:
        lhs, rhs = (c.widen(element, a) for a in args)
        return c.emit.op(f"fcmp {_ORDERED[predicate]} {c.type(working_type(element))} {lhs}, {rhs}")
    signed = isinstance(element, ScalarType) and element.is_signed
    code = predicate if predicate in ("eq", "ne") else f"{'s' if signed else 'u'}{predicate}"
    if c.width and not isinstance(element, ScalarType):
        return _compare_addresses(c, code, *args)
    return c.emit.op(f"icmp {code} {c.type(element)} {args[0]}, {args[1]}")


def _compare_addresses(c: Context, code: str, lhs: str, rhs: str) -> str:
    """Lane by lane: where the lanes' parts of two vectors of addresses cancel, LLVM 22 compares scalars in
    their place, and fails.
    """
    mask = "poison"
    for lane in range(c.width):
        a, b = (
            c.emit.op(f"extractelement <{c.width} x ptr> {pointers}, i64 {lane}") for pointers in (lhs, rhs)
        )
        holds = c.emit.op(f"icmp {code} ptr {a}, {b}")
        mask = c.emit.op(f"insertelement {c.mask_type} {mask}, i1 {holds}, i64 {lane}")
    return mask


@lowers(ops.Select)
def _select(c: Context, op: Operation, args: list[str]) -> str:
    return c.select(args[0], element_type(op.operands[1].type), args[1], args[2])


@lowers(ops.Abs, ops.Neg)
def _sign(c: Context, op: Operation, args: list[str]) -> str:
    type = scalar_type(op)
    text = c.type(type)
    absolute = isinstance(op, ops.Abs)
    if type.is_small_float:
        scalar = f"i{type.bits}"
        short = vector_of(scalar, c.width)
        bits = c.emit.op(f"bitcast {text} {args[0]} to {short}") if type == F16 else args[0]
        lowest = 1 << (type.bits - 1)
        number = splat_constant(scalar, str(lowest - 1 if absolute else -lowest), c.width)
        changed = c.emit.op(f"{'and' if absolute else 'xor'} {short} {bits}, {number}")
        if type.is_float8 and not FLOAT8[type.name].has_negative_zero:  # zero and NaN have no sign
            magnitude = c.emit.op(f"and {short} {bits}, {splat_constant(scalar, str(lowest - 1), c.width)}")
            plain = c.emit.op(f"icmp eq {short} {magnitude}, {splat_constant(scalar, '0', c.width)}")
            changed = c.select(plain, type, bits, changed)
        return c.emit.op(f"bitcast {short} {changed} to {text}") if type == F16 else changed
    if type.is_float:
        return c.intrinsic("fabs", type, args[0]) if absolute else c.emit.op(f"fneg {text} {args[0]}")
    if absolute and not type.is_signed:
        return args[0]
    negated = c.emit.op(f"sub {text} {c.number(type, 0)}, {args[0]}")
    if not absolute:
        return negated
    return c.select(c.emit.op(f"icmp slt {text} {args[0]}, {c.number(type, 0)}"), type, negated, args[0])


@lowers(ops.FUNCTIONS["sqrt"])
def _square_root(c: Context, op: Operation, args: list[str]) -> str:
    type = scalar_type(op)
    return c.narrow(type, c.intrinsic("sqrt", working_type(type), c.widen(type, args[0])))


_ROUNDINGS: dict[str, Rounding] = {"floor": "floor", "ceil": "ceil", "trunc": "trunc", "rint": "roundeven"}


@lowers(*(ops.FUNCTIONS[name] for name in _ROUNDINGS))
def _round(c: Context, op: Operation, args: list[str]) -> str:
    type = scalar_type(op)
    value = c.widen(type, args[0])
    return c.narrow(type, round_to_integral(c, working_type(type), _ROUNDINGS[op.name], value))


@lowers(ops.Bitcast)
def _bitcast(c: Context, op: Operation, args: list[str]) -> str:
    source, target = element_type(op.operands[0].type), element_type(op.results[0].type)
    from_text, to_text = c.type(source), c.type(target)
    if from_text == to_text:
        return args[0]
    opcode = (
        "ptrtoint"
        if isinstance(source, PointerType)
        else "inttoptr"
        if isinstance(target, PointerType)
        else "bitcast"
    )
    return c.emit.op(f"{opcode} {from_text} {args[0]} to {to_text}")


@lowers(ops.Cast)
def _cast(c: Context, op: Operation, args: list[str]) -> str:
    source, target = element_type(op.operands[0].type), element_type(op.results[0].type)
    toward_zero = op.attributes.get("rounding") == "rtz"
    return convert(c, source, target, args[0], toward_zero=toward_zero)


def convert(c: Context, source: Type, target: Type, text: str, *, toward_zero: bool = False) -> str:
    """Convert lanes by value, as the operation `cast` says."""
    if source == target or (isinstance(source, PointerType) and isinstance(target, PointerType)):
        return text
    if isinstance(source, PointerType):
        return c.emit.op(f"ptrtoint {c.type(source)} {text} to {c.type(target)}")
    if isinstance(target, PointerType):
        return c.emit.op(f"inttoptr {c.type(source)} {text} to {c.type(target)}")
    assert isinstance(source, ScalarType)
    assert isinstance(target, ScalarType)
    if target.bits == 1:
        return _to_bool(c, source, text)
    if source.is_float:
        wide, value = working_type(source), c.widen(source, text)
        if target.is_float:
            return _float_to_float(c, wide, target, value, toward_zero)
        return _float_to_integer(c, wide, target, value)
    if target.is_float:
        return _integer_to_float(c, source, target, text)
    if target.bits == source.bits:
        return text
    opcode = "trunc" if target.bits < source.bits else "sext" if source.is_signed else "zext"
    return c.emit.op(f"{opcode} {c.type(source)} {text} to {c.type(target)}")


def _to_bool(c: Context, source: ScalarType, text: str) -> str:
    if source.is_float:
        value = c.widen(source, text)
        wide = working_type(source)
        return c.emit.op(f"fcmp une {c.type(wide)} {value}, {c.number(wide, 0.0)}")
    return c.emit.op(f"icmp ne {c.type(source)} {text}, {c.number(source, 0)}")


def _float_to_float(c: Context, source: ScalarType, target: ScalarType, text: str, toward_zero: bool) -> str:
    if source == target:
        return text
    if target == F64:
        return c.emit.op(f"fpext {c.type(source)} {text} to {c.type(target)}")
    if toward_zero:
        return _toward_zero(c, source, target, text)
    if source == F64 and target == F32:
        # The fence keeps LLVM from moving the signs of `copysign` behind two roundings, f64 to f32 to f16: it
        # would round the f64 that gives the sign with a call.
        single = c.emit.op(f"fptrunc {c.type(source)} {text} to {c.type(target)}")
        name = f"llvm.arithmetic.fence.{'v' + str(c.width) if c.width else ''}f32"
        return c.emit.call(c.type(target), name, [(c.type(target), single)])
    if source == F64:
        text = round_f64_to_odd_f32(c.emit, text, c.width)
    return c.narrow(target, text)


def _toward_zero(c: Context, source: ScalarType, target: ScalarType, text: str) -> str:
    """Round to nearest, then step back where the result is larger in magnitude. Two truncations are one
    truncation.
    """
    if source == F64 and target != F32:
        text, source = _toward_zero(c, F64, F32, text), F32
    if target.is_float8:
        return narrow_float8(c.emit, FLOAT8[target.name], text, c.width, toward_zero=True)
    near = _float_to_float(c, source, target, text, toward_zero=False)
    back = convert(c, target, source, near)
    larger = c.emit.op(
        f"fcmp ogt {c.type(source)} {c.intrinsic('fabs', source, back)}, {c.intrinsic('fabs', source, text)}"
    )
    word = vector_of(f"i{target.bits}", c.width)
    same = c.type(target) == word
    bits = near if same else c.emit.op(f"bitcast {c.type(target)} {near} to {word}")
    one = splat_constant(f"i{target.bits}", "1", c.width)
    stepped = c.emit.op(f"sub {word} {bits}, {one}")
    chosen = c.emit.op(f"select {c.mask_type} {larger}, {word} {stepped}, {word} {bits}")
    return chosen if same else c.emit.op(f"bitcast {word} {chosen} to {c.type(target)}")


def _float_to_integer(c: Context, source: ScalarType, target: ScalarType, text: str) -> str:
    """Truncate; what is out of range goes to the nearest limit, NaN to 0.

    Limits that the float holds clamp it before it is converted, all in lanes of one size. The largest
    integer may have too many digits for that: its lanes are replaced behind the conversion, which is
    undefined for them.
    """
    real = c.type(source)
    low, high = float(target.minimum), float(target.maximum)
    # Vectors convert to 32- or 64-bit lanes, and to signed ones best.
    via = target if target.bits >= 32 else ScalarType("i32", "int", 32)
    is_exact = int(high) == target.maximum and math.ldexp(1, _PRECISION[source]) > high
    value = _clamp(c, source, text, "ogt", low)
    if is_exact:
        value = _clamp(c, source, value, "olt", high)
    is_number = c.emit.op(f"fcmp ord {real} {text}, {c.number(source, 0.0)}")
    value = c.select(is_number, source, value, c.number(source, 0.0))
    value = c.emit.op(f"{'fptosi' if via.is_signed else 'fptoui'} {real} {value} to {c.type(via)}")
    if is_exact:
        return value if via is target else c.emit.op(f"trunc {c.type(via)} {value} to {c.type(target)}")
    too_large = c.emit.op(f"fcmp oge {real} {text}, {c.number(source, float(target.maximum + 1))}")
    return c.select(too_large, target, c.number(target, target.maximum), value)


_PRECISION = {F32: 24, F64: 53}


def _clamp(c: Context, type: ScalarType, text: str, order: str, limit: float) -> str:
    """The lane if it is beyond the limit in that order, else the limit: one instruction."""
    inside = c.emit.op(f"fcmp {order} {c.type(type)} {text}, {c.number(type, limit)}")
    return c.select(inside, type, text, c.number(type, limit))


def _integer_to_float(c: Context, source: ScalarType, target: ScalarType, text: str) -> str:
    opcode = "sitofp" if source.is_signed else "uitofp"
    if target in (F32, F64):
        return c.emit.op(f"{opcode} {c.type(source)} {text} to {c.type(target)}")
    if source.bits == 64:
        text = _sticky_53_bits(c, source, text)
    exact = c.emit.op(f"{opcode} {c.type(source)} {text} to {c.type(F64)}")
    return c.narrow(target, round_f64_to_odd_f32(c.emit, exact, c.width))


def _sticky_53_bits(c: Context, type: ScalarType, text: str) -> str:
    """A 64-bit integer that f64 can hold and that rounds to fewer bits as the original does: where it has
    more than 53 bits, the lowest 11 are folded into the bit above them.
    """
    word = c.type(type)
    low = c.emit.op(f"and {word} {text}, {c.number(type, 0x7FF)}")
    sticky = c.emit.op(
        f"and {word} {c.emit.op(f'add {word} {low}, {c.number(type, 0x7FF)}')}, {c.number(type, 0x800)}"
    )
    high = c.emit.op(f"xor {word} {text}, {low}")
    folded = c.emit.op(f"or {word} {high}, {sticky}")
    if type.is_signed:
        shifted = c.emit.op(f"add {word} {text}, {c.number(type, 1 << 53)}")
        small = c.emit.op(f"icmp ule {word} {shifted}, {c.number(type, 1 << 54)}")
    else:
        small = c.emit.op(f"icmp ule {word} {text}, {c.number(type, 1 << 53)}")
    return c.select(small, type, text, folded)
