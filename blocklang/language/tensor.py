"""`tensor`: a run-time value of a kernel, scalar or block, with the operators and methods that users write.

A `tensor` wraps one IR value and holds nothing else; each operator creates operations with the current
builder. What the operators mean is in the modules imported at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from blocklang.diagnostics import CompilationError
from blocklang.ir import Operation, Value
from blocklang.ir.types import ScalarType, element_type, shape_of, with_shape
from blocklang.language import dtypes
from blocklang.language.constexpr import constexpr, describe, unwrap
from blocklang.language.context import current_builder
from blocklang.language.dtypes import dtype
from blocklang.language.promotion import literal_type
from blocklang.ops.creation import Constant


class tensor:
    """A scalar or a block of values that exists when the kernel runs.

    Attributes:
        value: the IR value; `handle` is another name for it.
    """

    __slots__ = ("value",)
    __hash__ = object.__hash__

    def __init__(self, value: Value) -> None:
        self.value = value

    def __repr__(self) -> str:
        data = getattr(self.value, "data", None)  # the interpreter's values know theirs
        return f"tensor({self.value.type})" if data is None else f"tensor({data}, {self.dtype})"

    @property
    def handle(self) -> Value:
        return self.value

    @property
    def type(self) -> dtype:
        """`block_type` of a block, else the dtype or pointer type."""
        return dtypes.type_from_ir(self.value.type)

    @property
    def dtype(self) -> dtype:
        """The type of one element."""
        return dtypes.type_from_ir(element_type(self.value.type))

    @property
    def shape(self) -> tuple[constexpr, ...]:
        """The extents, each a `constexpr`; () of a scalar."""
        return tuple(constexpr(n) for n in shape_of(self.value.type))

    @property
    def numel(self) -> constexpr:
        """How many elements there are."""
        return constexpr(math.prod(shape_of(self.value.type)))

    @property
    def T(self) -> tensor:
        """The block with its last two axes swapped."""
        return shape.trans(self)

    def __bool__(self) -> bool:
        raise CompilationError(
            f"the truth of a run-time value, {self.value.type}, is not known when the kernel is compiled",
            help="use it as the condition of `if` or `while`, or choose lane by lane with `tl.where`",
        )

    def __index__(self) -> int:
        raise CompilationError(
            f"an integer known at compile time is needed here, got {describe(self)}",
            help="use a `tl.constexpr` parameter, or annotate the variable `: tl.constexpr`",
        )

    def __iter__(self) -> Any:
        raise CompilationError(
            f"{describe(self)} cannot be unpacked or iterated over",
            help="loop with `range`, or split by reshaping",
        )

    def __getitem__(self, index: Any) -> tensor:
        return shape.subscript(self, index)

    def __add__(self, other: Any) -> Any:
        return arithmetic.add(self, other)

    def __radd__(self, other: Any) -> Any:
        return arithmetic.add(other, self)

    def __sub__(self, other: Any) -> Any:
        return arithmetic.sub(self, other)

    def __rsub__(self, other: Any) -> Any:
        return arithmetic.sub(other, self)

    def __mul__(self, other: Any) -> Any:
        return arithmetic.mul(self, other)

    def __rmul__(self, other: Any) -> Any:
        return arithmetic.mul(other, self)

    def __truediv__(self, other: Any) -> Any:
        return arithmetic.truediv(self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return arithmetic.truediv(other, self)

    def __floordiv__(self, other: Any) -> Any:
        return arithmetic.floordiv(self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return arithmetic.floordiv(other, self)

    def __mod__(self, other: Any) -> Any:
        return arithmetic.mod(self, other)

    def __rmod__(self, other: Any) -> Any:
        return arithmetic.mod(other, self)

    def __pow__(self, other: Any) -> Any:
        return arithmetic.power(self, other)

    def __rpow__(self, other: Any) -> Any:
        return arithmetic.power(other, self)

    def __and__(self, other: Any) -> Any:
        return arithmetic.bitwise("&", self, other)

    def __rand__(self, other: Any) -> Any:
        return arithmetic.bitwise("&", other, self)

    def __or__(self, other: Any) -> Any:
        return arithmetic.bitwise("|", self, other)

    def __ror__(self, other: Any) -> Any:
        return arithmetic.bitwise("|", other, self)

    def __xor__(self, other: Any) -> Any:
        return arithmetic.bitwise("^", self, other)

    def __rxor__(self, other: Any) -> Any:
        return arithmetic.bitwise("^", other, self)

    def __lshift__(self, other: Any) -> Any:
        return arithmetic.bitwise("<<", self, other)

    def __rlshift__(self, other: Any) -> Any:
        return arithmetic.bitwise("<<", other, self)

    def __rshift__(self, other: Any) -> Any:
        return arithmetic.bitwise(">>", self, other)

    def __rrshift__(self, other: Any) -> Any:
        return arithmetic.bitwise(">>", other, self)

    def __lt__(self, other: Any) -> Any:
        return arithmetic.compare("<", self, other)

    def __le__(self, other: Any) -> Any:
        return arithmetic.compare("<=", self, other)

    def __gt__(self, other: Any) -> Any:
        return arithmetic.compare(">", self, other)

    def __ge__(self, other: Any) -> Any:
        return arithmetic.compare(">=", self, other)

    def __eq__(self, other: object) -> Any:
        return arithmetic.compare("==", self, other)

    def __ne__(self, other: object) -> Any:
        return arithmetic.compare("!=", self, other)

    def __neg__(self) -> Any:
        return arithmetic.minus(self)

    def __pos__(self) -> Any:
        return self

    def __invert__(self) -> Any:
        return arithmetic.invert(self)

    def logical_not(self) -> tensor:
        """True where the value is 0."""
        return arithmetic.logical_not(self)

    def logical_and(self, other: Any) -> tensor:
        """Lane-wise `and` of bools, both sides evaluated."""
        return arithmetic.logical("and", self, other)

    def logical_or(self, other: Any) -> tensor:
        """Lane-wise `or` of bools, both sides evaluated."""
        return arithmetic.logical("or", self, other)

    # The functions of the language that are methods too; their documentation is the function's.

    def store(
        self,
        value: Any,
        mask: Any = None,
        boundary_check: Any = (),
        cache_modifier: Any = "",
        eviction_policy: Any = "",
    ) -> None:
        """See `store`."""
        memory.store(self, value, mask, boundary_check, cache_modifier, eviction_policy)

    def cdiv(self, div: Any) -> Any:
        """See `cdiv`."""
        return standard.cdiv(self, div)

    def to(self, dtype: Any, fp_downcast_rounding: Any = None, bitcast: Any = False) -> tensor:
        """See `cast`."""
        return casting.cast(self, dtype, fp_downcast_rounding, bitcast)

    def cast(self, dtype: Any, fp_downcast_rounding: Any = None, bitcast: Any = False) -> tensor:
        """See `cast`."""
        return casting.cast(self, dtype, fp_downcast_rounding, bitcast)

    def broadcast_to(self, *extents: Any) -> tensor:
        """See `broadcast_to`."""
        return shape.broadcast_to(self, *extents)

    def expand_dims(self, axis: Any) -> tensor:
        """See `expand_dims`."""
        return shape.expand_dims(self, axis)

    def reshape(self, *extents: Any, can_reorder: Any = False) -> tensor:
        """See `reshape`."""
        return shape.reshape(self, *extents, can_reorder=can_reorder)

    def view(self, *extents: Any) -> tensor:
        """See `view`."""
        return shape.view(self, *extents)

    def ravel(self, can_reorder: Any = False) -> tensor:
        """See `ravel`."""
        return shape.ravel(self, can_reorder)

    def join(self, b: Any) -> tensor:
        """See `join`."""
        return shape.join(self, b)

    def split(self) -> tuple[tensor, tensor]:
        """See `split`."""
        return shape.split(self)

    def interleave(self, b: Any) -> tensor:
        """See `interleave`."""
        return shape.interleave(self, b)

    def cat(self, other: Any, can_reorder: Any = False, dim: Any = 0) -> tensor:
        """See `cat`."""
        return shape.cat(self, other, can_reorder, dim)

    def flip(self, dim: Any = None) -> tensor:
        """See `flip`."""
        return shape.flip(self, dim)

    def trans(self, *axes: Any) -> tensor:
        """See `trans`."""
        return shape.trans(self, *axes)

    def permute(self, *axes: Any) -> tensor:
        """See `permute`."""
        return shape.permute(self, *axes)

    def squeeze(self, dim: Any) -> tensor:
        """See `squeeze`."""
        return shape.squeeze(self, dim)

    def unsqueeze(self, dim: Any) -> tensor:
        """See `unsqueeze`."""
        return shape.unsqueeze(self, dim)

    def item(self) -> tensor:
        """See `item`."""
        return shape.item(self)

    def atomic_add(self, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> tensor:
        """See `atomic_add`."""
        return atomics.atomic_add(self, val, mask, sem, scope)

    def atomic_max(self, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> tensor:
        """See `atomic_max`."""
        return atomics.atomic_max(self, val, mask, sem, scope)

    def atomic_min(self, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> tensor:
        """See `atomic_min`."""
        return atomics.atomic_min(self, val, mask, sem, scope)

    def atomic_and(self, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> tensor:
        """See `atomic_and`."""
        return atomics.atomic_and(self, val, mask, sem, scope)

    def atomic_or(self, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> tensor:
        """See `atomic_or`."""
        return atomics.atomic_or(self, val, mask, sem, scope)

    def atomic_xor(self, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> tensor:
        """See `atomic_xor`."""
        return atomics.atomic_xor(self, val, mask, sem, scope)

    def atomic_xchg(self, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> tensor:
        """See `atomic_xchg`."""
        return atomics.atomic_xchg(self, val, mask, sem, scope)

    def atomic_cas(self, cmp: Any, val: Any, sem: Any = None, scope: Any = None) -> tensor:
        """See `atomic_cas`."""
        return atomics.atomic_cas(self, cmp, val, sem, scope)

    def sum(self, axis: Any = None, keep_dims: Any = False, dtype: Any = None) -> tensor:
        """See `sum`."""
        return reduction.sum(self, axis, keep_dims, dtype)

    def max(
        self,
        axis: Any = None,
        return_indices: Any = False,
        return_indices_tie_break_left: Any = True,
        keep_dims: Any = False,
    ) -> Any:
        """See `max`."""
        return reduction.max(self, axis, return_indices, return_indices_tie_break_left, keep_dims)

    def min(
        self,
        axis: Any = None,
        return_indices: Any = False,
        return_indices_tie_break_left: Any = True,
        keep_dims: Any = False,
    ) -> Any:
        """See `min`."""
        return reduction.min(self, axis, return_indices, return_indices_tie_break_left, keep_dims)

    def argmax(self, axis: Any, tie_break_left: Any = True, keep_dims: Any = False) -> tensor:
        """See `argmax`."""
        return reduction.argmax(self, axis, tie_break_left, keep_dims)

    def argmin(self, axis: Any, tie_break_left: Any = True, keep_dims: Any = False) -> tensor:
        """See `argmin`."""
        return reduction.argmin(self, axis, tie_break_left, keep_dims)

    def xor_sum(self, axis: Any = None, keep_dims: Any = False) -> tensor:
        """See `xor_sum`."""
        return reduction.xor_sum(self, axis, keep_dims)

    def reduce_or(self, axis: Any, keep_dims: Any = False) -> tensor:
        """See `reduce_or`."""
        return reduction.reduce_or(self, axis, keep_dims)

    def reduce(self, axis: Any, combine_fn: Callable[..., Any], keep_dims: Any = False) -> Any:
        """See `reduce`."""
        return reduction.reduce(self, axis, combine_fn, keep_dims)

    def associative_scan(self, axis: Any, combine_fn: Callable[..., Any], reverse: Any = False) -> Any:
        """See `associative_scan`."""
        return scan.associative_scan(self, axis, combine_fn, reverse)

    def cumsum(self, axis: Any = 0, reverse: Any = False, dtype: Any = None) -> tensor:
        """See `cumsum`."""
        return scan.cumsum(self, axis, reverse, dtype)

    def cumprod(self, axis: Any = 0, reverse: Any = False) -> tensor:
        """See `cumprod`."""
        return scan.cumprod(self, axis, reverse)

    def sort(self, dim: Any = None, descending: Any = False) -> tensor:
        """See `sort`."""
        return order.sort(self, dim, descending)

    def topk(self, k: Any, dim: Any = None) -> tensor:
        """See `topk`."""
        return order.topk(self, k, dim)

    def gather(self, index: Any, axis: Any) -> tensor:
        """See `gather`."""
        return order.gather(self, index, axis)

    def histogram(self, num_bins: Any, mask: Any = None) -> tensor:
        """See `histogram`."""
        return order.histogram(self, num_bins, mask)

    def abs(self) -> tensor:
        """See `abs`."""
        return maths.abs(self)

    def exp(self) -> tensor:
        """See `exp`."""
        return maths.exp(self)

    def exp2(self) -> tensor:
        """See `exp2`."""
        return maths.exp2(self)

    def log(self) -> tensor:
        """See `log`."""
        return maths.log(self)

    def log2(self) -> tensor:
        """See `log2`."""
        return maths.log2(self)

    def sin(self) -> tensor:
        """See `sin`."""
        return maths.sin(self)

    def cos(self) -> tensor:
        """See `cos`."""
        return maths.cos(self)

    def sqrt(self) -> tensor:
        """See `sqrt`."""
        return maths.sqrt(self)

    def sqrt_rn(self) -> tensor:
        """See `sqrt_rn`."""
        return maths.sqrt_rn(self)

    def rsqrt(self) -> tensor:
        """See `rsqrt`."""
        return maths.rsqrt(self)

    def erf(self) -> tensor:
        """See `erf`."""
        return maths.erf(self)

    def floor(self) -> tensor:
        """See `floor`."""
        return maths.floor(self)

    def ceil(self) -> tensor:
        """See `ceil`."""
        return maths.ceil(self)

    def sigmoid(self) -> tensor:
        """See `sigmoid`."""
        return standard.sigmoid(self)

    def softmax(self, dim: Any = None, keep_dims: Any = False, ieee_rounding: Any = False) -> tensor:
        """See `softmax`."""
        return standard.softmax(self, dim, keep_dims, ieee_rounding)


def emit(cls: type[Operation], *operands: tensor, **named: Any) -> tensor:
    """Create an operation with one result; named operands are tensors or None, attributes plain values."""
    plain = {k: v.value if isinstance(v, tensor) else v for k, v in named.items() if v is not None}
    return tensor(current_builder().value(cls, *(t.value for t in operands), **plain))


def constant(value: bool | int | float, element: dtype, shape: tuple[int, ...] = ()) -> tensor:
    """A scalar, or a block with one number in every lane.

    Raises:
        CompilationError: an integer does not fit.
    """
    ir_type = dtypes.element_ir_type(element)
    if isinstance(ir_type, ScalarType):
        value = _converted(value, ir_type)
    elif value != 0:
        raise CompilationError(f"{value!r} cannot be a pointer", help="the only pointer constant is 0")
    else:
        value = 0
    return tensor(current_builder().value(Constant, value=value, result_types=[with_shape(ir_type, shape)]))


def _converted(value: bool | int | float, type_: ScalarType) -> bool | int | float:
    if type_.is_float:
        return _as_float(value)
    if type_.kind == "bool":
        return bool(value)
    if isinstance(value, float):
        raise CompilationError(
            f"the float {value!r} cannot be a constant of type {dtypes.type_from_ir(type_)}",
            help="write an integer, or convert with `int(...)`",
        )
    if not type_.minimum <= value <= type_.maximum:
        raise CompilationError(
            f"the integer {int(value)} does not fit into {dtypes.type_from_ir(type_)}, "
            f"which holds {type_.minimum} to {type_.maximum}",
            help="cast the other side to a wider type, for instance `x.to(tl.int64)`",
        )
    return int(value)


def _as_float(value: bool | int | float) -> float:
    try:
        return float(value)
    except OverflowError:
        raise CompilationError(f"the integer {value} is too large for a float") from None


def to_tensor(value: Any) -> tensor:
    """A run-time value as it is, or a Python number as a scalar of its own type."""
    if isinstance(value, tensor):
        return value
    plain = unwrap(value)
    if isinstance(plain, (bool, int, float)):
        declared = value.type if isinstance(value, constexpr) else None
        return constant(plain, declared or literal_type(plain))
    raise CompilationError(f"expected a number, a scalar or a block, got {describe(value)}")


def is_block(value: tensor) -> bool:
    """True for a block, False for a scalar or pointer."""
    return bool(shape_of(value.value.type))


# These modules need the class above, and the class calls them.
from blocklang.language import (  # noqa: E402
    arithmetic,
    atomics,
    casting,
    maths,
    memory,
    order,
    reduction,
    scan,
    shape,
    standard,
)
