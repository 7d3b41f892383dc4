"""Mathematical functions, lane by lane. `tl.math` holds the same objects.

fp16 and bf16 operands are computed in fp32 and rounded once to the operand's type. Accuracy: docs/maths.md.
"""

from __future__ import annotations

import enum
from typing import Any

from blocklang.diagnostics import CompilationError
from blocklang.language import dtypes as tl
from blocklang.language.arithmetic import promote, truth
from blocklang.language.broadcasting import broadcast_together
from blocklang.language.casting import cast_element
from blocklang.language.constexpr import describe, static_bool, unwrap
from blocklang.language.promotion import computation_type
from blocklang.language.registry import builtin
from blocklang.language.tensor import emit, tensor, to_tensor
from blocklang.ops import elementwise as ops


class PropagateNan(enum.Enum):
    """What `minimum`, `maximum` and `clamp` do with a NaN: NONE ignores it, ALL returns it."""

    NONE = 0
    ALL = 0xFFFF


def _function(name: str, x: Any) -> tensor:
    value = to_tensor(x)
    if not value.dtype.is_floating():
        raise CompilationError(
            f"{name} needs floats, got {describe(x)}", help="convert first, for instance `x.to(tl.float32)`"
        )
    return emit(ops.FUNCTIONS[name], value)


@builtin
def exp(x: Any) -> tensor:
    """e to the power of each element.

    Example:
        y = tl.exp(tl.zeros((8,), tl.float32))
    """
    return _function("exp", x)


@builtin
def exp2(x: Any) -> tensor:
    """2 to the power of each element.

    Example:
        y = tl.exp2(tl.zeros((8,), tl.float32))
    """
    return _function("exp2", x)


@builtin
def expm1(x: Any) -> tensor:
    """e to the power of each element, minus 1, accurate near 0.

    Example:
        y = tl.math.expm1(tl.zeros((8,), tl.float32))
    """
    return _function("expm1", x)


@builtin
def log(x: Any) -> tensor:
    """The natural logarithm of each element; NaN below 0.

    Example:
        y = tl.log(tl.full((8,), 2.0, tl.float32))
    """
    return _function("log", x)


@builtin
def log2(x: Any) -> tensor:
    """The logarithm to base 2 of each element.

    Example:
        y = tl.log2(tl.full((8,), 2.0, tl.float32))
    """
    return _function("log2", x)


@builtin
def log10(x: Any) -> tensor:
    """The logarithm to base 10 of each element.

    Example:
        y = tl.math.log10(tl.full((8,), 2.0, tl.float32))
    """
    return _function("log10", x)


@builtin
def log1p(x: Any) -> tensor:
    """The natural logarithm of 1 plus each element, accurate near 0.

    Example:
        y = tl.math.log1p(tl.zeros((8,), tl.float32))
    """
    return _function("log1p", x)


@builtin
def sin(x: Any) -> tensor:
    """The sine of each element, in radians.

    Example:
        y = tl.sin(tl.zeros((8,), tl.float32))
    """
    return _function("sin", x)


@builtin
def cos(x: Any) -> tensor:
    """The cosine of each element, in radians.

    Example:
        y = tl.cos(tl.zeros((8,), tl.float32))
    """
    return _function("cos", x)


@builtin
def tan(x: Any) -> tensor:
    """The tangent of each element, in radians.

    Example:
        y = tl.math.tan(tl.zeros((8,), tl.float32))
    """
    return _function("tan", x)


@builtin
def tanh(x: Any) -> tensor:
    """The hyperbolic tangent of each element.

    Example:
        y = tl.math.tanh(tl.zeros((8,), tl.float32))
    """
    return _function("tanh", x)


@builtin
def erf(x: Any) -> tensor:
    """The error function of each element.

    Example:
        y = tl.erf(tl.zeros((8,), tl.float32))
    """
    return _function("erf", x)


@builtin
def sqrt(x: Any) -> tensor:
    """The square root of each element, correctly rounded; NaN below 0.

    Example:
        y = tl.sqrt(tl.full((8,), 2.0, tl.float32))
    """
    return _function("sqrt", x)


@builtin
def sqrt_rn(x: Any) -> tensor:
    """The square root of each element, correctly rounded: the same as `sqrt`.

    Example:
        y = tl.sqrt_rn(tl.full((8,), 2.0, tl.float32))
    """
    return _function("sqrt", x)


@builtin
def rsqrt(x: Any) -> tensor:
    """1 divided by the square root of each element.

    Example:
        y = tl.rsqrt(tl.full((8,), 2.0, tl.float32))
    """
    return _function("rsqrt", x)


@builtin
def floor(x: Any) -> tensor:
    """The largest integral value not above each element, as a float.

    Example:
        y = tl.floor(tl.full((8,), 2.5, tl.float32))
    """
    return _function("floor", x)


@builtin
def ceil(x: Any) -> tensor:
    """The smallest integral value not below each element, as a float.

    Example:
        y = tl.ceil(tl.full((8,), 2.5, tl.float32))
    """
    return _function("ceil", x)


@builtin
def trunc(x: Any) -> tensor:
    """The integral part of each element, as a float.

    Example:
        y = tl.math.trunc(tl.full((8,), 2.5, tl.float32))
    """
    return _function("trunc", x)


@builtin
def rint(x: Any) -> tensor:
    """The nearest integral value of each element, ties to even, as a float.

    Example:
        y = tl.math.rint(tl.full((8,), 2.5, tl.float32))
    """
    return _function("rint", x)


@builtin
def abs(x: Any) -> tensor:
    """The absolute value of each element; that of the smallest integer is itself.

    Example:
        y = tl.abs(tl.arange(0, 8) - 4)
    """
    value = to_tensor(x)
    if value.dtype.is_ptr():
        raise CompilationError("abs needs numbers, got a pointer")
    return value if value.dtype.is_int_unsigned() else emit(ops.Abs, value)


@builtin
def fma(x: Any, y: Any, z: Any) -> tensor:
    """`x * y + z` of floats with one rounding (fp8, fp16 and bf16: one to fp32, then one to the type).

    The operands are promoted together, as those of an operator are; a number is fp32 or int32 here, not weak.

    Example:
        y = tl.fma(tl.zeros((8,), tl.float32), 2.0, 1.0)
    """
    values = [to_tensor(v) for v in (x, y, z)]
    common = values[0].dtype
    for value in values[1:]:
        common = computation_type(value.dtype, False, common, False)
    if not common.is_floating():
        raise CompilationError(f"fma needs floats, got {common}", help="write `x * y + z` for integers")
    return emit(ops.Fma, *broadcast_together(*(cast_element(v, common) for v in values)))


def _floats(x: Any, y: Any, what: str, *, division: bool = False) -> tuple[tensor, tensor]:
    left, right = promote(to_tensor(x), to_tensor(y), what, division=division)
    if not left.dtype.is_floating():
        raise CompilationError(
            f"{what} needs floats, got {left.dtype}", help="write `x / y`, or convert first"
        )
    return left, right


@builtin
def fdiv(x: Any, y: Any, ieee_rounding: Any = False) -> tensor:
    """The correctly rounded quotient of floats, of the type that `/` gives; a number is fp32, not weak.

    Args:
        ieee_rounding: accepted; the quotient is always correctly rounded.

    Example:
        y = tl.fdiv(tl.full((8,), 1.0, tl.float32), 3.0)
    """
    static_bool(ieee_rounding, "ieee_rounding")
    return emit(ops.Div, *_floats(x, y, "fdiv", division=True))


@builtin
def div_rn(x: Any, y: Any) -> tensor:
    """The quotient of floats, correctly rounded.

    Example:
        y = tl.div_rn(tl.full((8,), 1.0, tl.float32), 3.0)
    """
    return emit(ops.Div, *_floats(x, y, "div_rn"))


@builtin
def umulhi(x: Any, y: Any) -> tensor:
    """The upper half of the double-width product of 32- or 64-bit integers, read as unsigned.

    Example:
        high = tl.umulhi(tl.arange(0, 8), 1 << 30)
    """
    left, right = promote(x, y, "umulhi")
    if not left.dtype.is_int() or left.dtype.int_bitwidth < 32:
        raise CompilationError(f"umulhi needs integers of 32 or 64 bits, got {left.dtype}")
    return emit(ops.UnsignedMulHigh, left, right)


def _bf16_widened(value: Any) -> tensor:
    converted = to_tensor(value)
    return cast_element(converted, tl.float32) if converted.dtype.is_bf16() else converted


def _propagates(propagate_nan: Any) -> bool:
    plain = unwrap(propagate_nan)
    if not isinstance(plain, PropagateNan):
        raise CompilationError(
            f"propagate_nan is {describe(propagate_nan)}",
            help="`tl.PropagateNan.NONE` or `tl.PropagateNan.ALL`",
        )
    return plain is PropagateNan.ALL


@builtin
def minimum(x: Any, y: Any, propagate_nan: Any = PropagateNan.NONE) -> tensor:
    """The smaller element of each pair; -0.0 is smaller than +0.0. bf16 gives fp32.

    Args:
        x, y: scalars or blocks, or numbers, which count with their own type: 0.0 is fp32.
        propagate_nan: `PropagateNan.NONE`: the element that is not NaN; `ALL`: NaN.

    Example:
        y = tl.minimum(tl.arange(0, 8), 3)
    """
    left, right = promote(_bf16_widened(x), _bf16_widened(y), "minimum")
    return emit(ops.Minimum, left, right, propagate_nan=_propagates(propagate_nan))


@builtin
def maximum(x: Any, y: Any, propagate_nan: Any = PropagateNan.NONE) -> tensor:
    """The larger element of each pair; otherwise as `minimum`.

    Example:
        y = tl.maximum(tl.arange(0, 8), 3)
    """
    left, right = promote(_bf16_widened(x), _bf16_widened(y), "maximum")
    return emit(ops.Maximum, left, right, propagate_nan=_propagates(propagate_nan))


@builtin
def clamp(x: Any, min: Any, max: Any, propagate_nan: Any = PropagateNan.NONE) -> tensor:
    """Each float limited to the range from `min` to `max`. bf16 gives fp32.

    Example:
        y = tl.clamp(tl.full((8,), 2.5, tl.float32), 0.0, 1.0)
    """
    value, low, high = _bf16_widened(x), _bf16_widened(min), _bf16_widened(max)
    propagate = _propagates(propagate_nan)
    low, high = promote(low, high, "clamp")
    value, low = promote(value, low, "clamp")
    value, high = promote(value, high, "clamp")
    if not value.dtype.is_floating():
        raise CompilationError(
            f"clamp needs floats, got {value.dtype}", help="use `tl.minimum` and `tl.maximum`"
        )
    raised = emit(ops.Maximum, *promote(value, low, "clamp"), propagate_nan=propagate)
    return emit(ops.Minimum, raised, high, propagate_nan=propagate)


@builtin
def where(condition: Any, x: Any, y: Any) -> tensor:
    """`x` where the condition holds, else `y`, lane by lane; both are evaluated.

    Args:
        condition: int1; another number type counts as `!= 0`.
        x, y: values, promoted as in arithmetic; pointers of one type are allowed.

    Example:
        y = tl.where(tl.arange(0, 8) < 4, 1.0, 0.0)
    """
    chosen = cast_element(to_tensor(condition), tl.int1)
    left, right = promote(x, y, "where", pointers=True)
    chosen, left, right = broadcast_together(truth(chosen, "where"), left, right)
    return emit(ops.Select, chosen, left, right)
