"""The elementary steps of maths recipes, computed with NumPy: the interpreter's side of
`blocklang.maths.steps`.

Values are arrays (0-d ones for scalars) of exactly the dtype of the step; a mix of dtypes raises. Nothing
warns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from blocklang.interpreter import exact
from blocklang.maths.registry import RECIPES
from blocklang.maths.steps import DType

Array = npt.NDArray[Any]

NUMPY_DTYPES: dict[DType, np.dtype[Any]] = {
    "i1": np.dtype(np.bool_),
    "i32": np.dtype(np.int32),
    "u32": np.dtype(np.uint32),
    "i64": np.dtype(np.int64),
    "u64": np.dtype(np.uint64),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
}

RECIPE_DTYPES: dict[np.dtype[Any], DType] = {np.dtype(np.float32): "f32", np.dtype(np.float64): "f64"}


def silent(operation: Callable[..., Any], *operands: Array) -> Array:
    """Apply a NumPy operation to operands of one dtype, without warnings, giving an array."""
    dtypes = {operand.dtype for operand in operands}
    if len(dtypes) > 1:
        raise TypeError(f"one dtype expected, got {sorted(map(str, dtypes))}")
    with np.errstate(all="ignore"):
        return np.asarray(operation(*operands))


class NumpySteps:
    """`Steps[numpy.ndarray]`."""

    def constant(self, dtype: DType, value: float | int) -> Array:
        kind = NUMPY_DTYPES[dtype]
        if kind.kind in "iu":
            unsigned = np.dtype(f"u{kind.itemsize}")
            return np.array(int(value) % (1 << 8 * kind.itemsize), unsigned).view(kind)
        with np.errstate(all="ignore"):
            return np.array(value, kind)

    def add(self, a: Array, b: Array) -> Array:
        return silent(np.add, a, b)

    def sub(self, a: Array, b: Array) -> Array:
        return silent(np.subtract, a, b)

    def mul(self, a: Array, b: Array) -> Array:
        return silent(np.multiply, a, b)

    def div(self, a: Array, b: Array) -> Array:
        return silent(np.divide, a, b)

    def fma(self, a: Array, b: Array, c: Array) -> Array:
        if a.dtype == np.float32:
            return exact.fma_f32(a, b, c)
        return exact.fma_f64(a, b, c)

    def scale(self, a: Array, shifted: Array) -> Array:
        """Two factors, whose exponents the bits of `shifted` are split into; the first product is exact."""
        bits: Array = np.asarray(shifted).view(np.uint32 if a.dtype == np.float32 else np.uint64)
        half: Array = np.right_shift(bits, 1)
        place = 23 if a.dtype == np.float32 else 52
        first, second = (np.left_shift(part, place).view(a.dtype) for part in (half, bits - half))
        return self.mul(self.mul(a, first), second)

    def sqrt(self, a: Array) -> Array:
        return silent(np.sqrt, a)

    def minimum(self, a: Array, b: Array) -> Array:
        return silent(minimum, a, b)

    def maximum(self, a: Array, b: Array) -> Array:
        return silent(maximum, a, b)

    def abs(self, a: Array) -> Array:
        return silent(np.abs, a)

    def neg(self, a: Array) -> Array:
        return silent(np.negative, a)

    def round_even(self, a: Array) -> Array:
        return silent(np.rint, a)

    def floor(self, a: Array) -> Array:
        return silent(np.floor, a)

    def ceil(self, a: Array) -> Array:
        return silent(np.ceil, a)

    def trunc(self, a: Array) -> Array:
        return silent(np.trunc, a)

    def iadd(self, a: Array, b: Array) -> Array:
        return silent(np.add, a, b)

    def isub(self, a: Array, b: Array) -> Array:
        return silent(np.subtract, a, b)

    def imul(self, a: Array, b: Array) -> Array:
        return silent(np.multiply, a, b)

    def umulhi32(self, a: Array, b: Array) -> Array:
        wide = silent(np.multiply, a.view(np.uint32).astype(np.uint64), b.view(np.uint32).astype(np.uint64))
        return np.asarray((wide >> np.uint64(32)).astype(np.uint32)).view(a.dtype)

    def iand(self, a: Array, b: Array) -> Array:
        return silent(np.bitwise_and, a, b)

    def ior(self, a: Array, b: Array) -> Array:
        return silent(np.bitwise_or, a, b)

    def ixor(self, a: Array, b: Array) -> Array:
        return silent(np.bitwise_xor, a, b)

    def shl(self, a: Array, count: Array) -> Array:
        return silent(np.left_shift, a, count)

    def lshr(self, a: Array, count: Array) -> Array:
        unsigned = np.dtype(f"u{a.dtype.itemsize}")
        return silent(np.right_shift, a.view(unsigned), count.view(unsigned)).view(a.dtype)

    def ashr(self, a: Array, count: Array) -> Array:
        signed = np.dtype(f"i{a.dtype.itemsize}")
        return silent(np.right_shift, a.view(signed), count.view(signed)).view(a.dtype)

    def bitcast(self, a: Array, dtype: DType) -> Array:
        return a.view(NUMPY_DTYPES[dtype])

    def cast(self, a: Array, dtype: DType) -> Array:
        kind = NUMPY_DTYPES[dtype]
        if a.dtype.kind == "f" and kind.kind in "iu":
            return saturating_cast(a, kind)
        return silent(lambda value: value.astype(kind), a)

    def lt(self, a: Array, b: Array) -> Array:
        return silent(np.less, a, b)

    def le(self, a: Array, b: Array) -> Array:
        return silent(np.less_equal, a, b)

    def gt(self, a: Array, b: Array) -> Array:
        return silent(np.greater, a, b)

    def ge(self, a: Array, b: Array) -> Array:
        return silent(np.greater_equal, a, b)

    def eq(self, a: Array, b: Array) -> Array:
        return silent(np.equal, a, b)

    def ne(self, a: Array, b: Array) -> Array:
        return silent(np.not_equal, a, b)

    def logical_and(self, a: Array, b: Array) -> Array:
        return silent(np.logical_and, a, b)

    def logical_or(self, a: Array, b: Array) -> Array:
        return silent(np.logical_or, a, b)

    def logical_not(self, a: Array) -> Array:
        return silent(np.logical_not, a)

    def select(self, condition: Array, a: Array, b: Array) -> Array:
        return silent(lambda x, y: np.where(condition, x, y), a, b)

    def rarely(
        self, condition: Array, compute: Callable[[], tuple[Array, ...]], usual: tuple[Array, ...]
    ) -> tuple[Array, ...]:
        if not condition.any():
            return usual
        return tuple(self.select(condition, a, b) for a, b in zip(compute(), usual, strict=True))


def minimum(a: Array, b: Array) -> Array:
    """The smaller number, -0 below +0; NaN only if both are. Equal numbers differ at most in the sign bit."""
    signed = np.where(np.signbit(a), a, b)
    return np.where(a == b, signed, np.fmin(a, b))


def maximum(a: Array, b: Array) -> Array:
    """The larger number, -0 below +0; NaN only if both are."""
    unsigned = np.where(np.signbit(a), b, a)
    return np.where(a == b, unsigned, np.fmax(a, b))


def saturating_cast(a: Array, dtype: np.dtype[Any]) -> Array:
    """Truncate to an integer; what lies outside the range gives its nearest end, NaN gives 0.

    The upper end may not be a float: compare with the power of two above it, which is.
    """
    info = np.iinfo(dtype)
    beyond = a.dtype.type(float(info.max + 1))
    lowest = a.dtype.type(float(info.min))
    with np.errstate(all="ignore"):
        inside = (a >= lowest) & (a < beyond)
        result = np.where(inside, a, a.dtype.type(0)).astype(dtype)
        result = np.where(a >= beyond, dtype.type(info.max), result)
        return np.asarray(np.where(a < lowest, dtype.type(info.min), result))


def evaluate(name: str, *arguments: Array) -> Array:
    """Evaluate a maths function by its recipe: the bits that compiled kernels compute.

    Args:
        name: A name in `blocklang.maths.registry.RECIPES`.
        arguments: Arrays of float32 or of float64.

    Raises:
        KeyError: There is no recipe of this name.
        TypeError: An argument is of another dtype.
    """
    dtype = RECIPE_DTYPES.get(arguments[0].dtype)
    if dtype is None:
        raise TypeError(f"{name} takes float32 or float64, got {arguments[0].dtype}")
    return RECIPES[name, dtype].apply(NumpySteps(), *arguments)
