"""The operators: promotion, broadcasting, then one operation.

Operands are tensors, or Python numbers and `constexpr`s (weak, see `promotion`); at least one is a tensor, or
the result of two numbers is that of Python.
"""

from __future__ import annotations

from typing import Any

from blocklang.diagnostics import CompilationError
from blocklang.ir import Operation
from blocklang.language import dtypes as tl
from blocklang.language.broadcasting import broadcast_together
from blocklang.language.casting import cast_element
from blocklang.language.constexpr import constexpr, describe, unwrap
from blocklang.language.context import current_builder
from blocklang.language.dtypes import dtype
from blocklang.language.overflow import assert_no_overflow
from blocklang.language.promotion import computation_type, literal_type
from blocklang.language.tensor import constant, emit, tensor, to_tensor
from blocklang.ops import elementwise as ops
from blocklang.ops.memory import Offset

_BITWISE: dict[str, type[Operation]] = {
    "&": ops.And,
    "|": ops.Or,
    "^": ops.Xor,
    "<<": ops.Shl,
    ">>": ops.Shr,
}
_PREDICATES = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}


def operand(value: Any, symbol: str) -> tensor | bool | int | float:
    """A tensor, or the plain number of a weak operand."""
    if isinstance(value, constexpr) and value.type is not None:
        return to_tensor(value)
    plain = unwrap(value)
    if isinstance(plain, (tensor, bool, int, float)):
        return plain
    raise CompilationError(
        f"`{symbol}` cannot take {describe(value)}", help="both sides must be numbers, scalars or blocks"
    )


def _element(value: tensor | bool | int | float) -> dtype:
    return value.dtype if isinstance(value, tensor) else literal_type(value)


def promote(
    a: Any, b: Any, symbol: str, *, division: bool = False, pointers: bool = False
) -> tuple[tensor, tensor]:
    """Both operands as tensors of one element type and shape (scalars stay scalars).

    Args:
        symbol: the operator, for messages.
        division: use the rule of `/`, `//` and `%`.
        pointers: accept two pointers of one type.
    """
    left, right = operand(a, symbol), operand(b, symbol)
    if _element(left).is_ptr() or _element(right).is_ptr():
        return _promote_pointers(left, right, symbol, allowed=pointers)
    weak = [not isinstance(v, tensor) for v in (left, right)]
    common = computation_type(_element(left), weak[0], _element(right), weak[1], division=division)
    first, second = broadcast_together(_converted(left, common, symbol), _converted(right, common, symbol))
    return first, second


def _converted(value: tensor | bool | int | float, common: dtype, symbol: str) -> tensor:
    if isinstance(value, tensor):
        return cast_element(value, common)
    if common.is_int_unsigned() and value < 0:
        raise CompilationError(
            f"`{symbol}` cannot take the negative number {value} beside {common}",
            help="cast the unsigned side to a signed type first, for instance `x.to(tl.int32)`",
        )
    return constant(value, common)


def _promote_pointers(
    left: tensor | bool | int | float, right: tensor | bool | int | float, symbol: str, *, allowed: bool
) -> tuple[tensor, tensor]:
    types = [_element(v) for v in (left, right)]
    if allowed and types[0] == types[1]:
        first, second = broadcast_together(to_tensor(left), to_tensor(right))
        return first, second
    raise CompilationError(
        f"`{symbol}` cannot take {types[0]} and {types[1]}",
        help="a pointer takes part in pointer + integer, pointer - integer and comparisons of "
        "equal pointer types",
    )


def _binary(cls: type[Operation], a: Any, b: Any, symbol: str, *, sanitize_overflow: bool = False) -> tensor:
    left, right = promote(a, b, symbol)
    if sanitize_overflow and current_builder().sanitize_overflow:
        assert_no_overflow(cls, left, right)
    return emit(cls, left, right)


def add(a: Any, b: Any, *, sanitize_overflow: bool = True) -> tensor:
    """`a + b`; a pointer moves by elements. The launch may want integers checked; not so without
    `sanitize_overflow`, here and below.
    """
    left, right = operand(a, "+"), operand(b, "+")
    if _element(left).is_ptr() != _element(right).is_ptr():
        pointer, offset = (left, right) if _element(left).is_ptr() else (right, left)
        return _offset(to_tensor(pointer), to_tensor(offset), "+")
    return _binary(ops.Add, left, right, "+", sanitize_overflow=sanitize_overflow)


def _offset(pointer: tensor, offset: tensor, symbol: str) -> tensor:
    if not offset.dtype.is_int():
        raise CompilationError(
            f"`{symbol}` cannot move {pointer.dtype} by {offset.dtype}", help="a pointer moves by integers"
        )
    if offset.dtype.is_int1():
        offset = cast_element(offset, tl.int32)
    return emit(Offset, *broadcast_together(pointer, offset))


def sub(a: Any, b: Any, *, sanitize_overflow: bool = True) -> tensor:
    """`a - b`; a pointer moves back by elements."""
    left, right = operand(a, "-"), operand(b, "-")
    if _element(left).is_ptr() and not _element(right).is_ptr():
        if not isinstance(right, tensor) and isinstance(right, int):
            return _offset(to_tensor(left), to_tensor(-right), "-")
        offset = to_tensor(right)
        if offset.dtype.is_int() and (offset.dtype.is_int_unsigned() or offset.dtype.int_bitwidth < 64):
            offset = cast_element(offset, tl.int64)  # so that the negation does not wrap
        return _offset(to_tensor(left), minus(offset), "-")
    return _binary(ops.Sub, left, right, "-", sanitize_overflow=sanitize_overflow)


def mul(a: Any, b: Any, *, sanitize_overflow: bool = True) -> tensor:
    """`a * b`."""
    return _binary(ops.Mul, a, b, "*", sanitize_overflow=sanitize_overflow)


def truediv(a: Any, b: Any) -> tensor:
    """`a / b`: fp32 for integers of any width, and for fp16 and bf16."""
    left, right = promote(a, b, "/", division=True)
    if left.dtype.is_int():
        left, right = cast_element(left, tl.float32), cast_element(right, tl.float32)
    return emit(ops.Div, left, right)


def floordiv(a: Any, b: Any) -> tensor:
    """`a // b` of integers, truncated toward zero."""
    left, right = promote(a, b, "//", division=True)
    if not left.dtype.is_int():
        raise CompilationError(
            f"`//` needs integers, got {left.dtype}", help="write `tl.floor(a / b)` for floats"
        )
    return emit(ops.IntegerDiv, left, right)


def mod(a: Any, b: Any) -> tensor:
    """`a % b` with the sign of the dividend."""
    return emit(ops.Rem, *promote(a, b, "%", division=True))


def power(a: Any, b: Any) -> tensor:
    """`**` exists between compile-time numbers only."""
    raise CompilationError(
        f"`**` needs numbers known at compile time, got {describe(a)} and {describe(b)}",
        help="write the product out, or `tl.exp2(y * tl.log2(x))`",
    )


def bitwise(symbol: str, a: Any, b: Any) -> tensor:
    """`&`, `|`, `^`, `<<` and `>>` of integers."""
    left, right = promote(a, b, symbol)
    if not left.dtype.is_int():
        raise CompilationError(
            f"`{symbol}` needs integers, got {left.dtype}",
            help="reinterpret floats with `x.to(tl.int32, bitcast=True)`",
        )
    return emit(_BITWISE[symbol], left, right)


def compare(symbol: str, a: Any, b: Any) -> tensor:
    """A comparison, with an int1 result."""
    return emit(ops.Compare, *promote(a, b, symbol, pointers=True), predicate=_PREDICATES[symbol])


def minus(value: tensor) -> tensor:
    """`-x`, which is `0 - x`: minus +0.0 is +0.0."""
    if value.dtype.is_ptr():
        raise CompilationError("`-` cannot take a pointer")
    return emit(ops.Sub, constant(0, value.dtype), value)


def invert(value: tensor) -> tensor:
    """`~x`: every bit flipped; `not` for int1."""
    if not value.dtype.is_int():
        raise CompilationError(f"`~` needs integers, got {value.dtype}")
    ones = -1 if value.dtype.is_int_signed() else value.dtype.get_int_max_value()
    return emit(ops.Xor, value, constant(ones, value.dtype))


def truth(value: tensor, use: str) -> tensor:
    """The value as int1: `!= 0` for scalars; a block must be int1 already, as in Triton."""
    if value.dtype.is_int1():
        return value
    if value.value.type != tl.element_ir_type(value.dtype):
        raise CompilationError(
            f"`{use}` needs a block of int1, got {value.value.type}",
            help="compare first, for instance `x != 0`",
        )
    return cast_element(value, tl.int1)


def logical_not(value: tensor) -> tensor:
    """`not x`."""
    return invert(truth(value, "not"))


def logical(name: str, a: Any, b: Any) -> tensor:
    """`a and b`, `a or b` on bools with both sides evaluated."""
    left, right = truth(to_tensor(a), name), truth(to_tensor(b), name)
    return emit(ops.And if name == "and" else ops.Or, *broadcast_together(left, right))
