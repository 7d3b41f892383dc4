"""The meaning of lane-wise operations. Operands broadcast: a scalar is the same in every lane."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from blocklang.diagnostics import InterpreterError
from blocklang.interpreter import exact, numpy_steps
from blocklang.interpreter.dtypes import (
    BOOL,
    F64,
    Array,
    Rounding,
    convert,
    convert_float,
    dtype_of,
    is_float,
    restore_float,
    widen,
    with_sign,
)
from blocklang.interpreter.evaluation import Machine, evaluates
from blocklang.ir import Value
from blocklang.ir.types import PointerType, element_type
from blocklang.maths.registry import RECIPES
from blocklang.ops import elementwise as ops

LaneFunction = Callable[[Array, Array], Array]


def _computed(
    function: Callable[..., Any], *lanes: Array, round_back: Callable[..., Array] = convert_float
) -> Array:
    """Apply a function of numbers: small floats widen and round once, bools are integers of one bit."""
    dtype = lanes[0].dtype
    if dtype == BOOL:
        return np.asarray((function(*(x.astype(np.uint8) for x in lanes)) & 1) != 0)
    result = np.asarray(function(*map(widen, lanes)))
    return round_back(result, dtype) if is_float(dtype) else result


@evaluates(ops.Add)
def add(op: ops.Add, machine: Machine) -> Array:
    return _computed(np.add, machine[op.lhs], machine[op.rhs])


@evaluates(ops.Sub)
def sub(op: ops.Sub, machine: Machine) -> Array:
    return _computed(np.subtract, machine[op.lhs], machine[op.rhs])


@evaluates(ops.Mul)
def mul(op: ops.Mul, machine: Machine) -> Array:
    return _computed(np.multiply, machine[op.lhs], machine[op.rhs])


@evaluates(ops.Div)
def div(op: ops.Div, machine: Machine) -> Array:
    return _computed(np.divide, machine[op.lhs], machine[op.rhs])


def truncated_quotient(a: Array, b: Array) -> Array:
    """Integer quotient toward zero, 0 for a divisor of 0; MIN / -1 wraps to MIN."""
    special = (b == 0) | (b == -1) if b.dtype.kind == "i" else b == 0
    divisor = np.where(special, 1, b).astype(b.dtype)
    floor = np.floor_divide(a, divisor)
    inexact = floor * divisor != a
    quotient = floor + (inexact & ((a < 0) != (divisor < 0))).astype(a.dtype)
    if b.dtype.kind == "i":
        quotient = np.where(b == -1, np.negative(a), quotient)
    return np.where(b == 0, 0, quotient).astype(a.dtype)


@evaluates(ops.IntegerDiv)
def integer_div(op: ops.IntegerDiv, machine: Machine) -> Array:
    return _computed(truncated_quotient, machine[op.lhs], machine[op.rhs])


def remainder(a: Array, b: Array) -> Array:
    if is_float(a.dtype):
        return np.asarray(np.fmod(a, b))
    return np.asarray(a - truncated_quotient(a, b) * b)


@evaluates(ops.Rem)
def rem(op: ops.Rem, machine: Machine) -> Array:
    return _computed(remainder, machine[op.lhs], machine[op.rhs])


def _fma(a: Array, b: Array, c: Array) -> Array:
    return exact.fma_f64(a, b, c) if a.dtype == F64 else exact.fma_f32(a, b, c)


@evaluates(ops.Fma)
def fma(op: ops.Fma, machine: Machine) -> Array:
    return _computed(_fma, machine[op.a], machine[op.b], machine[op.c])


def _chosen(number: LaneFunction, integer: Any, propagate_nan: bool) -> LaneFunction:
    def choose(a: Array, b: Array) -> Array:
        if not is_float(a.dtype):
            return np.asarray(integer(a, b))
        result = number(a, b)
        return np.where(np.isnan(a) | np.isnan(b), a.dtype.type(np.nan), result) if propagate_nan else result

    return choose


@evaluates(ops.Minimum)
def minimum(op: ops.Minimum, machine: Machine) -> Array:
    choose = _chosen(numpy_steps.minimum, np.minimum, op.propagate_nan)
    return _computed(choose, machine[op.lhs], machine[op.rhs], round_back=restore_float)


@evaluates(ops.Maximum)
def maximum(op: ops.Maximum, machine: Machine) -> Array:
    choose = _chosen(numpy_steps.maximum, np.maximum, op.propagate_nan)
    return _computed(choose, machine[op.lhs], machine[op.rhs], round_back=restore_float)


@evaluates(ops.And)
def bit_and(op: ops.And, machine: Machine) -> Array:
    return np.asarray(np.bitwise_and(machine[op.lhs], machine[op.rhs]))


@evaluates(ops.Or)
def bit_or(op: ops.Or, machine: Machine) -> Array:
    return np.asarray(np.bitwise_or(machine[op.lhs], machine[op.rhs]))


@evaluates(ops.Xor)
def bit_xor(op: ops.Xor, machine: Machine) -> Array:
    return np.asarray(np.bitwise_xor(machine[op.lhs], machine[op.rhs]))


def _unsigned(lanes: Array) -> Array:
    return np.asarray(lanes).view(f"u{lanes.dtype.itemsize}")


def _count_in_range(count: Array, width: int) -> tuple[Array, Array]:
    """Shift counts with those of the width or more as 0, and where they were."""
    unsigned = _unsigned(count)
    beyond = np.asarray(unsigned >= width)
    return np.where(beyond, 0, unsigned).astype(count.dtype), beyond


@evaluates(ops.Shl)
def shl(op: ops.Shl, machine: Machine) -> Array:
    a, b = machine[op.lhs], machine[op.rhs]
    if a.dtype == BOOL:
        return np.asarray(a & ~b)
    count, beyond = _count_in_range(b, a.dtype.itemsize * 8)
    return np.where(beyond, 0, np.left_shift(a, count)).astype(a.dtype)


@evaluates(ops.Shr)
def shr(op: ops.Shr, machine: Machine) -> Array:
    a, b = machine[op.lhs], machine[op.rhs]
    if a.dtype == BOOL:
        return np.asarray(a & ~b)
    count, beyond = _count_in_range(b, a.dtype.itemsize * 8)
    return np.where(beyond, np.where(a < 0, -1, 0).astype(a.dtype), np.right_shift(a, count)).astype(a.dtype)


@evaluates(ops.Scale)
def scale(op: ops.Scale, machine: Machine) -> Array:
    return numpy_steps.NumpySteps().scale(machine[op.value], machine[op.shifted])


@evaluates(ops.UnsignedMulHigh)
def umulhi(op: ops.UnsignedMulHigh, machine: Machine) -> Array:
    a, b = machine[op.lhs], machine[op.rhs]
    if a.dtype == BOOL:
        return np.zeros(np.broadcast_shapes(a.shape, b.shape), BOOL)
    x, y = _unsigned(a), _unsigned(b)
    high = _high_product_64(x, y) if a.dtype.itemsize == 8 else _high_product(x, y)
    return np.asarray(high.view(a.dtype))


def _high_product(x: Array, y: Array) -> Array:
    width = np.uint64(x.dtype.itemsize * 8)
    return np.asarray((np.multiply(x.astype(np.uint64), y.astype(np.uint64)) >> width).astype(x.dtype))


def _high_product_64(x: Array, y: Array) -> Array:
    """The schoolbook product in halves of 32 bits; no partial sum overflows."""
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    x_high, x_low, y_high, y_low = x >> half, x & low, y >> half, y & low
    middle = x_high * y_low + ((x_low * y_low) >> half)
    other = x_low * y_high + (middle & low)
    return np.asarray(x_high * y_high + (middle >> half) + (other >> half))


_COMPARISONS: dict[str, np.ufunc] = {
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}


@evaluates(ops.Compare)
def compare(op: ops.Compare, machine: Machine) -> Array:
    function = _COMPARISONS[op.predicate]
    return np.asarray(function(widen(machine[op.lhs]), widen(machine[op.rhs])))


@evaluates(ops.Select)
def select(op: ops.Select, machine: Machine) -> Array:
    result: Array = np.where(machine[op.condition], machine[op.if_true], machine[op.if_false])
    return result


@evaluates(ops.Cast)
def cast_lanes(op: ops.Cast, machine: Machine) -> Array:
    if _is_pointer(op.result) and not _is_pointer(op.source):
        machine.memory.open()
    return convert(machine[op.source], dtype_of(op.result.type), cast("Rounding", op.rounding))


def _is_pointer(value: Value) -> bool:
    return isinstance(element_type(value.type), PointerType)


@evaluates(ops.Bitcast)
def bitcast(op: ops.Bitcast, machine: Machine) -> Array:
    return np.asarray(np.asarray(machine[op.source]).view(dtype_of(op.result.type)))


@evaluates(ops.Abs)
def absolute(op: ops.Abs, machine: Machine) -> Array:
    lanes: Array = machine[op.source]
    if is_float(lanes.dtype):
        return with_sign(lanes, lambda bits, sign: bits & ~sign)
    return np.asarray(np.abs(lanes)) if lanes.dtype.kind == "i" else lanes


@evaluates(ops.Neg)
def negative(op: ops.Neg, machine: Machine) -> Array:
    lanes = machine[op.source]
    if is_float(lanes.dtype):
        return with_sign(lanes, lambda bits, sign: bits ^ sign)
    return lanes if lanes.dtype == BOOL else np.asarray(np.negative(lanes))


def _reciprocal_root(lanes: Array) -> Array:
    return np.asarray(np.divide(lanes.dtype.type(1), np.sqrt(lanes)))


# Functions that are one correctly rounded step, or two; the others run their recipe.
_STEPS: dict[str, Callable[[Array], Any]] = {
    "sqrt": np.sqrt,
    "rsqrt": _reciprocal_root,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "rint": np.rint,
}


@evaluates(*ops.FUNCTIONS.values(), *ops.FUNCTIONS_OF_SEVERAL.values())
def function(op: ops.FloatUnary | ops.FloatFunction, machine: Machine) -> Array:
    lanes = [machine[operand] for operand in op.operands]
    if op.name in _STEPS:
        return _computed(_STEPS[op.name], *lanes)
    if (op.name, "f64" if lanes[0].dtype == F64 else "f32") not in RECIPES:
        raise InterpreterError(f"{op.name} has no recipe for {lanes[0].dtype}", location=op.location)
    return _computed(lambda *wide: numpy_steps.evaluate(op.name, *wide), *lanes)
