"""Matrix products."""

from __future__ import annotations

from typing import Any

from blocklang.diagnostics import CompilationError
from blocklang.language import dtypes as tl
from blocklang.language.casting import to_dtype
from blocklang.language.constexpr import describe, static_bool, unwrap
from blocklang.language.dtypes import dtype
from blocklang.language.registry import builtin
from blocklang.language.shape import block_shape
from blocklang.language.tensor import constant, emit, tensor
from blocklang.ops.reduction import Dot

_PRECISIONS = ("ieee", "tf32")


@builtin
def dot(
    input: Any,
    other: Any,
    acc: Any = None,
    input_precision: Any = None,
    allow_tf32: Any = None,
    max_num_imprecise_acc: Any = None,
    out_dtype: Any = tl.float32,
) -> tensor:
    """Multiply two matrices, and add an accumulator.

    Args:
        input: a block of shape [M, K].
        other: a block of shape [K, N] and the same element type: fp16, bf16, fp32, fp64 or int8.
        acc: a block of shape [M, N] and the result's type, added to the product.
        input_precision: 'ieee' (the default), or 'tf32' to round fp32 operands to tf32 first.
        allow_tf32: the older way to ask for 'tf32'; not together with `input_precision`.
        max_num_imprecise_acc: accepted; every partial sum is exact to fp32.
        out_dtype: fp32 or fp16, the result's type for fp16 operands.

    Returns:
        A block [M, N]: fp32 for fp32 and bf16, `out_dtype` for fp16, fp64 for fp64, int32 for int8. Each
        element is a chain of fused multiply-adds, k ascending, from the accumulator on.

    Example:
        c = tl.dot(tl.zeros((16, 32), tl.float32), tl.zeros((32, 16), tl.float32))
    """
    for value, what in ((input, "first"), (other, "second")):
        if not isinstance(value, tensor) or len(block_shape(value)) != 2:
            raise CompilationError(
                f"the {what} operand of dot must be a block of rank 2, got {describe(value)}",
                help="reshape, or loop over the batch",
            )
    (m, k), (k2, n) = block_shape(input), block_shape(other)
    if k != k2:
        raise CompilationError(
            f"cannot multiply {input.value.type} by {other.value.type}: {k} columns meet {k2} rows",
            help="transpose one side with `tl.trans`, or load it with other offsets",
        )
    if input.dtype != other.dtype:
        raise CompilationError(
            f"dot needs one element type, got {input.dtype} and {other.dtype}",
            help="convert one with `.to(...)`",
        )
    result = _result_type(input.dtype, to_dtype(out_dtype, "out_dtype"))
    return emit(
        Dot,
        input,
        other,
        _accumulator(acc, result, (m, n)),
        input_precision=_precision(input_precision, allow_tf32, input.dtype),
    )


def _result_type(element: dtype, out_dtype: dtype) -> dtype:
    if element.is_int8():
        return tl.int32
    if element.is_fp64():
        return tl.float64
    if element.name in ("fp32", "bf16"):
        return tl.float32
    if element.is_fp16():
        if out_dtype.name not in ("fp16", "fp32"):
            raise CompilationError(f"out_dtype of fp16 operands must be fp16 or fp32, got {out_dtype}")
        return out_dtype
    raise CompilationError(
        f"dot has no meaning for {element}",
        help="use int8, fp16, bf16, fp32 or fp64; convert with `.to(...)`",
    )


def _accumulator(acc: Any, element: dtype, shape: tuple[int, int]) -> tensor:
    if unwrap(acc) is None:
        return constant(0, element, shape)
    if not isinstance(acc, tensor) or block_shape(acc) != shape or acc.dtype != element:
        raise CompilationError(
            f"acc must be a block of {element} with shape {list(shape)}, got {describe(acc)}",
            help=f"start with `tl.zeros(({shape[0]}, {shape[1]}), dtype=tl.{element.long_name})`",
        )
    return acc


def _precision(input_precision: Any, allow_tf32: Any, element: dtype) -> str:
    precision, legacy = unwrap(input_precision), unwrap(allow_tf32)
    if precision is not None and legacy is not None:
        raise CompilationError("dot takes input_precision or allow_tf32, not both")
    if precision is None:
        precision = "tf32" if legacy is not None and static_bool(legacy, "allow_tf32") else "ieee"
    if precision in ("tf32x3", "bf16x3", "bf16x6"):
        raise CompilationError(f"input_precision {precision!r} is not built yet", help="use 'ieee' or 'tf32'")
    if precision not in _PRECISIONS:
        raise CompilationError(f"input_precision is {precision!r}", help="'ieee' or 'tf32'")
    return precision if element.is_fp32() else "ieee"
