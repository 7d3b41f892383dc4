"""Conversion of values between types: `cast`, and the implicit conversions of operators."""

from __future__ import annotations

from typing import Any

from blocklang.diagnostics import CompilationError
from blocklang.ir.types import ScalarType, with_element
from blocklang.language import dtypes as tl
from blocklang.language.constexpr import describe, static_bool, static_choice, unwrap
from blocklang.language.dtypes import dtype
from blocklang.language.registry import builtin
from blocklang.language.tensor import emit, tensor, to_tensor
from blocklang.ops.elementwise import Bitcast, Cast, Compare


def to_dtype(value: Any, what: str = "dtype") -> dtype:
    """The element dtype that an argument names. Raises CompilationError if it names none."""
    plain = unwrap(value)
    if isinstance(plain, dtype):
        return plain.scalar
    raise CompilationError(
        f"{what} must be a dtype, got {describe(value)}", help="for instance `tl.float32`, or `x.dtype`"
    )


def cast_element(value: tensor, target: dtype, rounding: str | None = None) -> tensor:
    """`value` with another element type; as it is if the type is the same."""
    source = value.dtype
    if source == target:
        return value
    _check_cast(source, target, rounding)
    if source.is_ptr() and target.is_int1():
        return emit(Compare, value, _null(source), predicate="ne")
    result = with_element(value.value.type, tl.element_ir_type(target))
    return emit(Cast, value, rounding=rounding or "rtne", result_types=[result])


def _null(pointer: dtype) -> tensor:
    from blocklang.language.tensor import constant

    return constant(0, pointer)


def _check_cast(source: dtype, target: dtype, rounding: str | None) -> None:
    narrows = source.is_floating() and target.is_floating()
    narrows = narrows and target.primitive_bitwidth < source.primitive_bitwidth
    if rounding is not None and not narrows:
        raise CompilationError(
            f"fp_downcast_rounding has no meaning from {source} to {target}",
            help="it is for a float to a narrower float only",
        )
    for pointer, other in ((source, target), (target, source)):
        if pointer.is_ptr() and not other.is_ptr():
            is_address = other.is_int() and other.int_bitwidth == 64
            if not is_address and not (pointer is source and other.is_int1()):
                raise CompilationError(
                    f"cannot cast {source} to {target}", help="a pointer converts to and from 64-bit integers"
                )


def bitcast_element(value: tensor, target: dtype) -> tensor:
    """`value` with its bits read as another type of the same width."""
    source = value.dtype
    if source == target:
        return value
    if source.is_ptr() or target.is_ptr():
        return cast_element(value, target)
    if source.primitive_bitwidth != target.primitive_bitwidth:
        raise CompilationError(
            f"cannot bitcast {source} ({source.primitive_bitwidth} bits) to {target} "
            f"({target.primitive_bitwidth} bits)",
            help="a bitcast keeps the width; leave `bitcast` out to convert the value",
        )
    scalar = tl.element_ir_type(target)
    assert isinstance(scalar, ScalarType)
    return emit(Bitcast, value, result_types=[with_element(value.value.type, scalar)])


@builtin
def cast(input: Any, dtype: Any, fp_downcast_rounding: Any = None, bitcast: Any = False) -> tensor:
    """Convert to another element type, by value or by bits.

    Args:
        input: a scalar or block, or a number.
        dtype: the element type of the result.
        fp_downcast_rounding: for a float to a narrower float: 'rtne' (to nearest, ties to even; the default)
            or 'rtz' (toward zero).
        bitcast: True reads the bits as the other type, which has the same width.

    Returns:
        A tensor of the same shape. Every conversion rounds once. Float to fp8 saturates at its largest
        number, infinities too. Float to integer truncates and saturates, NaN gives 0; anything to int1 is `!=
        0`; integers wrap, or extend by their own signedness.

    Example:
        half = tl.cast(tl.arange(0, 8), tl.float16)
    """
    value, target = to_tensor(input), to_dtype(dtype)
    if static_bool(bitcast, "bitcast"):
        return bitcast_element(value, target)
    rounding = unwrap(fp_downcast_rounding)
    if rounding is not None:
        rounding = static_choice(rounding, "fp_downcast_rounding", ("rtne", "rtz"))
    return cast_element(value, target, rounding)
