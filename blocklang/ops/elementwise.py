"""Operations that work lane by lane: arithmetic, comparison, bits, selection, casts and mathematical
functions.

Operands are scalars or blocks of one shape; a scalar is the same in every lane. Element types are equal
unless said otherwise: promotion has happened before (`blocklang.language`). All are pure and defined for
every input: nothing traps.
"""

from __future__ import annotations

from blocklang.ir.core import Operation
from blocklang.ir.declaration import attribute, operand, operation, result
from blocklang.ir.types import PointerType, ScalarType, element_type, shape_of, with_shape
from blocklang.ops.constraints import (
    AnyLanes,
    Arithmetic,
    Bool,
    Float,
    Integer,
    bool_lanes,
    common_element,
    common_shape,
    lanes_like,
)


class Elementwise(Operation):
    """Base of lane-wise operations: one result, whose lane i depends on lane i of the operands alone."""


class Binary(Elementwise):
    """Base of lane-wise operations on two numbers of one type, with a result of that type."""

    lhs = operand(Arithmetic)
    rhs = operand(Arithmetic)
    output = result(lanes_like("lhs", "rhs"))


class IntegerBinary(Elementwise):
    """Base of lane-wise operations on two integers of one type."""

    lhs = operand(Integer)
    rhs = operand(Integer)
    output = result(lanes_like("lhs", "rhs"))


class FloatUnary(Elementwise):
    """Base of mathematical functions of one float. Floats of 8 and 16 bits are computed in f32 and rounded
    once."""

    source = operand(Float)
    output = result(lanes_like("source"))


@operation("add")
class Add(Binary):
    """Lane-wise sum; integers wrap. Floats of 8 and 16 bits are computed in f32 and rounded once, here and in
    all operations below; an 8-bit float saturates (`blocklang.ir.float8`).

    %c = add %a, %b : block<128xf32>
    """


@operation("sub")
class Sub(Binary):
    """Lane-wise difference; integers wrap.

    %c = sub %a, %b : block<128xf32>
    """


@operation("mul")
class Mul(Binary):
    """Lane-wise product; integers wrap.

    %c = mul %a, %b : block<128xf32>
    """


@operation("div")
class Div(Elementwise):
    """Lane-wise float quotient, correctly rounded (floats of 8 and 16 bits through f32).

    %c = div %a, %b : block<128xf32>
    """

    lhs = operand(Float)
    rhs = operand(Float)
    output = result(lanes_like("lhs", "rhs"))


@operation("idiv")
class IntegerDiv(IntegerBinary):
    """Lane-wise integer quotient, truncated toward zero. x / 0 is 0 and MIN / -1 is MIN.

    %c = idiv %a, %b : block<128xi32>
    """


@operation("rem")
class Rem(Binary):
    """Lane-wise remainder with the sign of the dividend (C's `%` and `fmod`). Integers: x rem 0 is x, MIN
    rem -1 is 0.

    %c = rem %a, %b : block<128xi32>
    """


@operation("fma")
class Fma(Elementwise):
    """Lane-wise `a * b + c` with one rounding (8 and 16 bits: one rounding to f32, then one to the type).

    %d = fma %a, %b, %c : block<128xf32>
    """

    a = operand(Float)
    b = operand(Float)
    c = operand(Float)
    output = result(lanes_like("a", "b", "c"))


@operation("minimum")
class Minimum(Binary):
    """Lane-wise smaller operand; -0.0 is smaller than +0.0. A NaN is ignored if the other operand is a
    number, or wins if `propagate_nan`.

    %c = minimum %a, %b : block<128xf32>
    """

    propagate_nan = attribute(bool, default=False)


@operation("maximum")
class Maximum(Binary):
    """Lane-wise larger operand; +0.0 is larger than -0.0. A NaN is ignored if the other operand is a
    number, or wins if `propagate_nan`.

    %c = maximum %a, %b, propagate_nan=true : block<128xf32>
    """

    propagate_nan = attribute(bool, default=False)


@operation("and")
class And(IntegerBinary):
    """Lane-wise bit and.

    %c = and %a, %b : block<128xi32>
    """


@operation("or")
class Or(IntegerBinary):
    """Lane-wise bit or.

    %c = or %a, %b : block<128xi32>
    """


@operation("xor")
class Xor(IntegerBinary):
    """Lane-wise bit exclusive or.

    %c = xor %a, %b : block<128xi32>
    """


@operation("shl")
class Shl(IntegerBinary):
    """Lane-wise shift left; the count is read as unsigned, and the width or more gives 0.

    %c = shl %a, %b : block<128xi32>
    """


@operation("shr")
class Shr(IntegerBinary):
    """Lane-wise shift right, arithmetic for signed types; the width or more gives 0, or -1 for a negative
    operand.

    %c = shr %a, %b : block<128xi32>
    """


@operation("umulhi")
class UnsignedMulHigh(IntegerBinary):
    """Lane-wise upper half of the double-width product of operands read as unsigned (32 and 64 bits).

    %c = umulhi %a, %b : block<128xu32>
    """


@operation("scale")
class Scale(Elementwise):
    """Lane-wise value times 2**n, rounded once. n is integral; `shifted` is the float n + 1.5 *
    2**fraction_bits + 2 * bias of its format, f32 or f64, so that n stands in its low bits, or NaN.

    %c = scale %a, %shifted : block<128xf32>
    """

    value = operand(Float)
    shifted = operand(Float)
    output = result(lanes_like("value", "shifted"))


PREDICATES = ("lt", "le", "gt", "ge", "eq", "ne")


@operation("cmp")
class Compare(Elementwise):
    """Lane-wise comparison; with a NaN every predicate is false but `ne`. Pointers compare as unsigned
    addresses.

    %c = cmp %a, %b, predicate="lt" : block<128xi1>
    """

    lhs = operand(AnyLanes)
    rhs = operand(AnyLanes)
    predicate = attribute(str, choices=PREDICATES)
    output = result(bool_lanes("lhs", "rhs"))


@operation("select")
class Select(Elementwise):
    """Lane-wise choice: the second operand where the condition holds, else the third.

    %c = select %m, %a, %b : block<128xf32>
    """

    condition = operand(Bool)
    if_true = operand(AnyLanes)
    if_false = operand(AnyLanes)
    output = result(lambda op: with_shape(common_element(op, "if_true", "if_false"), common_shape(op)))


@operation("cast")
class Cast(Elementwise):
    """Lane-wise conversion to another element type by value.

    Float to a narrower float rounds to nearest even, or toward zero with rounding="rtz"; an 8-bit float
    saturates at its largest number, infinities too. Float to integer truncates and saturates; NaN gives 0.
    Anything to i1 is `!= 0`. Integers wrap or extend by their own signedness. A pointer converts to and from
    64-bit integers and to other pointer types.

    %c = cast %a : block<128xf16>
    """

    source = operand(AnyLanes)
    rounding = attribute(str, default="rtne", choices=("rtne", "rtz"))
    output = result()

    def verify_op(self) -> None:
        if shape_of(self.source.type) != shape_of(self.result.type):
            raise ValueError("a cast keeps the shape")
        source, target = element_type(self.source.type), element_type(self.result.type)
        for one, other in ((source, target), (target, source)):
            if (
                isinstance(one, PointerType)
                and isinstance(other, ScalarType)
                and (other.bits != 64 or other.is_float)
            ):
                raise ValueError("a pointer converts to 64-bit integers only")


@operation("bitcast")
class Bitcast(Elementwise):
    """Lane-wise reinterpretation of the bits as another type of the same width.

    %c = bitcast %a : block<128xi32>
    """

    source = operand(AnyLanes)
    output = result()

    def verify_op(self) -> None:
        source, target = element_type(self.source.type), element_type(self.result.type)
        widths = {t.bits if isinstance(t, ScalarType) else 64 for t in (source, target)}
        if len(widths) != 1 or shape_of(self.source.type) != shape_of(self.result.type):
            raise ValueError("a bitcast keeps shape and width")


@operation("abs")
class Abs(Elementwise):
    """Lane-wise absolute value: clears a float's sign bit; |MIN| is MIN; unsigned is unchanged.

    %c = abs %a : block<128xf32>
    """

    source = operand(Arithmetic)
    output = result(lanes_like("source"))


@operation("neg")
class Neg(Elementwise):
    """Lane-wise sign flip of a float (also of a NaN and a zero), or wrapping negation of an integer.

    %c = neg %a : block<128xf32>
    """

    source = operand(Arithmetic)
    output = result(lanes_like("source"))


# Mathematical functions: name, what it computes. Their ULP bounds are in docs/maths.md.
_FUNCTIONS = {
    "exp": "e to the power of each lane",
    "exp2": "2 to the power of each lane",
    "expm1": "e to the power of each lane, minus 1, without cancellation",
    "log": "natural logarithm of each lane",
    "log2": "logarithm to base 2 of each lane",
    "log10": "logarithm to base 10 of each lane",
    "log1p": "natural logarithm of 1 plus each lane, without cancellation",
    "sin": "sine of each lane, in radians",
    "cos": "cosine of each lane, in radians",
    "tan": "tangent of each lane, in radians",
    "tanh": "hyperbolic tangent of each lane",
    "erf": "error function of each lane",
    "sqrt": "square root of each lane, correctly rounded",
    "rsqrt": "1 divided by the square root of each lane, each step correctly rounded",
    "floor": "largest integral value not above each lane",
    "ceil": "smallest integral value not below each lane",
    "trunc": "integral part of each lane",
    "rint": "nearest integral value of each lane, ties to even",
    "asin": "inverse sine of each lane, NaN outside of -1 to 1",
    "acos": "inverse cosine of each lane, NaN outside of -1 to 1",
    "atan": "inverse tangent of each lane",
    "sinh": "hyperbolic sine of each lane",
    "cosh": "hyperbolic cosine of each lane",
    "asinh": "inverse hyperbolic sine of each lane",
    "acosh": "inverse hyperbolic cosine of each lane, NaN below 1",
    "atanh": "inverse hyperbolic tangent of each lane, infinite at 1 and -1 and NaN beyond",
    "exp10": "10 to the power of each lane",
    "sinpi": "sine of pi times each lane",
    "cospi": "cosine of pi times each lane",
    "cbrt": "cube root of each lane",
    "rcbrt": "1 divided by the cube root of each lane",
    "erfc": "1 minus the error function of each lane, without cancellation",
    "erfcx": "exp(x * x) erfc(x) of each lane",
    "erfinv": "inverse of the error function of each lane, NaN outside of -1 to 1",
    "erfcinv": "inverse of erfc of each lane, NaN outside of 0 to 2",
    "normcdf": "probability of a standard normal number below each lane",
    "normcdfinv": "inverse of normcdf of each lane, NaN outside of 0 to 1",
    "tgamma": "gamma function of each lane, NaN at negative integers",
    "lgamma": "natural logarithm of the size of the gamma function of each lane",
    "j0": "Bessel function of the first kind and order 0 of each lane",
    "j1": "Bessel function of the first kind and order 1 of each lane",
    "y0": "Bessel function of the second kind and order 0 of each lane, NaN below 0",
    "y1": "Bessel function of the second kind and order 1 of each lane, NaN below 0",
    "cyl_bessel_i0": "modified Bessel function of the first kind and order 0 of each lane",
    "cyl_bessel_i1": "modified Bessel function of the first kind and order 1 of each lane",
    "round": "nearest integral value of each lane, ties away from zero",
    "sqrt_rz": "square root of each lane, rounded toward zero",
    "sqrt_rd": "square root of each lane, rounded down",
    "sqrt_ru": "square root of each lane, rounded up",
}

_DIRECTIONS = {"rz": "toward zero", "rd": "down", "ru": "up"}
# Functions of several floats: name, how many, what it computes.
_FUNCTIONS_OF_SEVERAL = {
    "atan2": (2, "angle of the point with these lanes as y and x"),
    "pow": (2, "first lane to the power of the second"),
    "hypot": (2, "length of a vector of two lanes, without overflow on the way"),
    "norm3d": (3, "length of a vector of three lanes, without overflow on the way"),
    "norm4d": (4, "length of a vector of four lanes, without overflow on the way"),
    "rhypot": (2, "1 divided by the length of a vector of two lanes"),
    "rnorm3d": (3, "1 divided by the length of a vector of three lanes"),
    "rnorm4d": (4, "1 divided by the length of a vector of four lanes"),
    "fdim": (2, "first lane less the second, or 0 where that is negative"),
    "add_rn": (2, "sum of two lanes, rounded to nearest: an `add` that nothing fuses"),
    "mul_rn": (2, "product of two lanes, rounded to nearest: a `mul` that nothing fuses"),
    **{f"add_{d}": (2, f"sum of two lanes, rounded {text}") for d, text in _DIRECTIONS.items()},
    **{f"mul_{d}": (2, f"product of two lanes, rounded {text}") for d, text in _DIRECTIONS.items()},
    **{f"div_{d}": (2, f"quotient of two lanes, rounded {text}") for d, text in _DIRECTIONS.items()},
    **{f"fma_{d}": (3, f"a * b + c of three lanes, rounded {text}") for d, text in _DIRECTIONS.items()},
}


class FloatFunction(Elementwise):
    """Base of mathematical functions of several floats of one type, as `FloatUnary` is of one."""


def _declare_function(name: str, text: str) -> type[FloatUnary]:
    doc = f"{text[0].upper()}{text[1:]}.\n\n    %c = {name} %a : block<128xf32>\n    "
    cls = type(name.capitalize(), (FloatUnary,), {"__doc__": doc, "__module__": __name__})
    return operation(name)(cls)


FUNCTIONS: dict[str, type[FloatUnary]] = {
    name: _declare_function(name, text) for name, text in _FUNCTIONS.items()
}


def _declare_function_of_several(name: str, count: int, text: str) -> type[FloatFunction]:
    names = ("a", "b", "c", "d")[:count]
    inputs = ", ".join(f"%{n}" for n in names)
    doc = f"{text[0].upper()}{text[1:]}.\n\n    %e = {name} {inputs} : block<128xf32>\n    "
    body = {"__doc__": doc, "__module__": __name__}
    operands = {n: operand(Float) for n in names}
    class_name = "".join(part.capitalize() for part in name.split("_"))
    cls = type(class_name, (FloatFunction,), {**body, **operands, "output": result(lanes_like(*names))})
    return operation(name)(cls)


FUNCTIONS_OF_SEVERAL: dict[str, type[FloatFunction]] = {
    name: _declare_function_of_several(name, *facts) for name, facts in _FUNCTIONS_OF_SEVERAL.items()
}
