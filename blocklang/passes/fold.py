"""Compute operations on constants at compile time, to the bit that the operation is declared to give.

    %a = constant value=2147483647 : i32
    %b = constant value=1 : i32
    %c = add %a, %b : i32

folds to

    %c = constant value=-2147483648 : i32

Not a pass by itself: `canonicalise` asks here first. Floats are computed by NumPy in the very type, f32 and
f64 only; what another step would round (the floats of 8 and 16 bits) or a recipe computes (`exp`) is left,
and so is a NaN whose bits matter.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from blocklang.ir.core import Operation
from blocklang.ir.float8 import FLOAT8
from blocklang.ir.types import F16, F32, F64, PointerType, ScalarType, element_type
from blocklang.ops import elementwise as ops
from blocklang.passes.uniform import NUMPY_FLOATS, Number, constant_of, wrap


def is_foldable(kind: type[Operation]) -> bool:
    """True if some operations of the class fold."""
    return kind in _EVALUATORS


def fold(op: Operation) -> Number | None:
    """The number in every lane of `op`'s result; None if it is not constant, or its bits are not known."""
    evaluate = _EVALUATORS.get(type(op))
    if evaluate is None:
        return None
    numbers = []
    for operand in op.operands:
        number = constant_of(operand)
        if number is None:
            return None
        numbers.append(number)
    if any(isinstance(element_type(v.type), PointerType) for v in [*op.operands, *op.results]):
        return None
    return evaluate(op, *numbers)


def _element(op: Operation) -> ScalarType:
    """The element type of the first operand."""
    element = element_type(op.operands[0].type)
    assert isinstance(element, ScalarType)
    return element


def _result_element(op: Operation) -> ScalarType:
    element = element_type(op.result.type)
    assert isinstance(element, ScalarType)
    return element


def truncated_quotient(a: int, b: int) -> int:
    """a / b toward zero; 0 for b = 0."""
    if b == 0:
        return 0
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _shift_left(a: int, b: int, element: ScalarType) -> int:
    count = b % (1 << element.bits)
    return a << count if count < element.bits else 0


def _shift_right(a: int, b: int, element: ScalarType) -> int:
    """Python shifts a negative number arithmetically, and a non-negative one logically."""
    return a >> min(b % (1 << element.bits), element.bits)


def _high_product(a: int, b: int, element: ScalarType) -> int:
    modulus = 1 << element.bits
    return (a % modulus) * (b % modulus) >> element.bits


# On exact integers; the result wraps.
_INTEGER: dict[type[Operation], Callable[[int, int, ScalarType], int]] = {
    ops.Add: lambda a, b, _: a + b,
    ops.Sub: lambda a, b, _: a - b,
    ops.Mul: lambda a, b, _: a * b,
    ops.IntegerDiv: lambda a, b, _: truncated_quotient(a, b),
    ops.Rem: lambda a, b, _: a - b * truncated_quotient(a, b),
    ops.Minimum: lambda a, b, _: min(a, b),
    ops.Maximum: lambda a, b, _: max(a, b),
    ops.And: lambda a, b, _: a & b,
    ops.Or: lambda a, b, _: a | b,
    ops.Xor: lambda a, b, _: a ^ b,
    ops.Shl: _shift_left,
    ops.Shr: _shift_right,
    ops.UnsignedMulHigh: _high_product,
}

_FLOAT: dict[type[Operation], Callable[[Any, Any], Any]] = {
    ops.Add: np.add,
    ops.Sub: np.subtract,
    ops.Mul: np.multiply,
    ops.Div: np.divide,
    ops.Rem: np.fmod,
}


def fold_integers(cls: type[Operation], a: int, b: int, element: ScalarType) -> bool | int:
    """What the binary operation gives for two integers of a type."""
    return wrap(_INTEGER[cls](int(a), int(b), element), element)


def _fold_binary(op: Operation, a: Any, b: Any) -> Number | None:
    element = _element(op)
    if element.is_integer:
        return fold_integers(type(op), a, b, element)
    dtype = NUMPY_FLOATS.get(element)
    if dtype is None or type(op) not in _FLOAT:
        return None
    with np.errstate(all="ignore"):
        return float(_FLOAT[type(op)](dtype(a), dtype(b)))


def _fold_extremum(op: Operation, a: Any, b: Any) -> Number | None:
    """Numbers only; -0.0 is below +0.0."""
    element = _element(op)
    if element.is_integer:
        return fold_integers(type(op), a, b, element)
    if element not in NUMPY_FLOATS or math.isnan(a) or math.isnan(b):
        return None
    choose = min if isinstance(op, ops.Minimum) else max
    return float(choose(a, b, key=lambda x: (x, math.copysign(1.0, x))))


_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
}


def _fold_compare(op: ops.Compare, a: Any, b: Any) -> bool | None:
    element = _element(op)
    if element.is_float and element not in NUMPY_FLOATS:
        return None
    return _COMPARISONS[op.predicate](a, b)


def _fold_cast(op: ops.Cast, a: Any) -> Number | None:
    source, target = _element(op), _result_element(op)
    if source.is_small_float or op.rounding != "rtne":
        return None
    if target.bits == 1:
        return bool(a != 0)
    if target.is_float:
        return _to_float(a, target)
    if source.is_float:
        return 0 if math.isnan(a) else int(min(max(a, target.minimum), target.maximum))
    return wrap(int(a), target)


def _to_float(number: Any, target: ScalarType) -> float | None:
    """The nearest float; for floats of 8 and 16 bits only if it is the very number."""
    with np.errstate(all="ignore"):
        if target == F64:
            return float(np.float64(number))
        # An integer rounds to f32 once, not by way of f64.
        whole = isinstance(number, int)
        single = np.array(int(number), np.uint64 if number > 0 else np.int64) if whole else np.float64(number)
        rounded = float(single.astype(np.float32))
        if target == F32:
            return rounded
        return rounded if rounded == number and _fits_small(rounded, target) else None


def _fits_small(number: float, target: ScalarType) -> bool:
    if target.is_float8:
        form = FLOAT8[target.name]
        return math.isfinite(number) and form.decode(form.encode(number)) == number
    if target == F16:
        return float(np.float16(number)) == number
    return int(np.float32(number).view(np.uint32)) & 0xFFFF == 0


def _fold_bitcast(op: ops.Bitcast, a: Any) -> Number | None:
    source, target = _element(op), _result_element(op)
    if source.is_integer and target.is_integer:
        return wrap(int(a), target)
    if target.bits < 32 or source.is_float == target.is_float or (source.is_float and math.isnan(a)):
        return None
    unsigned = np.dtype(f"u{target.bytes}")
    if source.is_float:
        return wrap(int(NUMPY_FLOATS[source](a).view(unsigned)), target)
    number = float(np.array(int(a) % (1 << source.bits), unsigned).view(NUMPY_FLOATS[target]))
    return None if math.isnan(number) else number


def _fold_sign(op: ops.Abs | ops.Neg, a: Any) -> Number | None:
    element = _element(op)
    change = operator.neg if isinstance(op, ops.Neg) else abs
    if element.is_integer:
        return wrap(change(int(a)), element)
    if element not in NUMPY_FLOATS or math.isnan(a):
        return None
    return float(change(a))


_EVALUATORS: dict[type[Operation], Callable[..., Number | None]] = {
    **dict.fromkeys(_INTEGER, _fold_binary),
    ops.Div: _fold_binary,
    ops.Minimum: _fold_extremum,
    ops.Maximum: _fold_extremum,
    ops.Compare: _fold_compare,
    ops.Cast: _fold_cast,
    ops.Bitcast: _fold_bitcast,
    ops.Abs: _fold_sign,
    ops.Neg: _fold_sign,
}
