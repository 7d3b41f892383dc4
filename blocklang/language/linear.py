"""Matrix products."""

from __future__ import annotations

import math
from typing import Any

from blocklang.diagnostics import CompilationError
from blocklang.language import dtypes as tl
from blocklang.language.casting import to_dtype
from blocklang.language.constexpr import describe, static_bool, static_choice, static_int, unwrap
from blocklang.language.dtypes import dtype
from blocklang.language.registry import builtin
from blocklang.language.shape import block_shape, reshape
from blocklang.language.tensor import constant, emit, tensor
from blocklang.ops.reduction import Dot

_PRECISIONS = ("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6")


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
    """Multiply two matrices, or each two of a batch, and add an accumulator.

    Args:
        input: a block of shape [M, K], or [..., M, K].
        other: a block of shape [K, N], or [..., K, N] with the same leading axes, and the same element type:
            int8, fp16, bf16, fp32 or fp64. Two fp8 kinds may mix.
        acc: a block of shape [..., M, N] and the result's type, added to the product.
        input_precision: 'ieee' (the default), or 'tf32' to round fp32 operands to tf32 first. 'tf32x3',
            'bf16x3' and 'bf16x6' ask for sums of products of parts, which 'ieee' is more precise than: they
            mean it.
        allow_tf32: the older way to ask for 'tf32'; not together with `input_precision`.
        max_num_imprecise_acc: for fp8, at most K; every partial sum is exact to fp32.
        out_dtype: fp32 or fp16, the result's type for fp16 and fp8 operands.

    Returns:
        A block [..., M, N]: fp32 for fp32 and bf16, `out_dtype` for fp16 and fp8, fp64 for fp64, int32 for
        int8. Each element is a chain of fused multiply-adds, k ascending, from the accumulator on: in fp32
        (fp64 for fp64, int32 for int8), and rounded once at its end if the result is fp16.

    Example:
        c = tl.dot(tl.zeros((16, 32), tl.float32), tl.zeros((32, 16), tl.float32))
    """
    left, right = _operand(input, "first"), _operand(other, "second")
    shape = product_shape(left, right)
    result = _result_type(left.dtype, right.dtype, to_dtype(out_dtype, "out_dtype"))
    precision = _precision(input_precision, allow_tf32, left.dtype)
    _check_imprecise(max_num_imprecise_acc, left)
    start = accumulator(acc, result, shape)
    if len(shape) <= 3:
        return emit(Dot, left, right, start, input_precision=precision)
    batch = math.prod(shape[:-2])
    flat = [reshape(v, (batch, *block_shape(v)[-2:])) for v in (left, right, start)]
    product: tensor = reshape(emit(Dot, *flat, input_precision=precision), shape)
    return product


def _operand(value: Any, what: str) -> tensor:
    if not isinstance(value, tensor) or len(block_shape(value)) < 2:
        raise CompilationError(
            f"the {what} operand of dot must be a block of rank 2 or more, got {describe(value)}",
            help="add an axis, for instance `x[:, None]`",
        )
    return value


def product_shape(left: tensor, right: tensor) -> tuple[int, ...]:
    """The shape of a product. Raises CompilationError if the operands do not fit."""
    a, b = block_shape(left), block_shape(right)
    if len(a) != len(b) or a[:-2] != b[:-2]:
        raise CompilationError(
            f"cannot multiply {left.value.type} by {right.value.type}: "
            "input and other must have equal batch shapes",
            help="reshape one side, or repeat it with `tl.broadcast_to`",
        )
    if a[-1] != b[-2]:
        raise CompilationError(
            f"cannot multiply {left.value.type} by {right.value.type}: {a[-1]} columns meet {b[-2]} rows",
            help="transpose one side with `tl.trans`, or load it with other offsets",
        )
    return (*a[:-1], b[-1])


def _result_type(left: dtype, right: dtype, out_dtype: dtype) -> dtype:
    if left != right and not (left.is_fp8() and right.is_fp8()):
        raise CompilationError(
            f"dot needs one element type, got {left} and {right}",
            help="convert one with `.to(...)`; only fp8 kinds may mix",
        )
    if left.is_int8():
        return tl.int32
    if left.is_int():
        raise CompilationError(
            f"dot has no meaning for {left}: only int8 supported among the integers",
            help="convert with `.to(tl.int8)` if the numbers fit, or to a float",
        )
    if out_dtype.is_bf16():
        raise CompilationError(
            "out_dtype=bfloat16 is unsupported",
            help="use out_dtype=tl.float32, and `.to(tl.bfloat16)` after it",
        )
    if left.is_fp64():
        return tl.float64
    if left.is_fp16() or left.is_fp8():
        if out_dtype.name not in ("fp16", "fp32"):
            raise CompilationError(f"out_dtype of {left} operands must be fp16 or fp32, got {out_dtype}")
        return out_dtype
    return tl.float32


def accumulator(acc: Any, element: dtype, shape: tuple[int, ...]) -> tensor:
    """The accumulator of a product as a block: zeros for None. Raises CompilationError if it does not fit."""
    if unwrap(acc) is None:
        return constant(0, element, shape)
    if not isinstance(acc, tensor) or block_shape(acc) != shape or acc.dtype != element:
        raise CompilationError(
            f"acc must be a block of {element} with shape {list(shape)}, got {describe(acc)}",
            help=f"start with `tl.zeros({shape}, dtype=tl.{element.long_name})`",
        )
    return acc


def _precision(input_precision: Any, allow_tf32: Any, element: dtype) -> str:
    """'ieee' or 'tf32': what is done to the operands."""
    precision, legacy = unwrap(input_precision), unwrap(allow_tf32)
    if precision is not None and legacy is not None:
        raise CompilationError(
            "only one of input_precision and allow_tf32 can be specified",
            help="leave out allow_tf32, the older of the two",
        )
    if precision is None:
        precision = "tf32" if legacy is not None and static_bool(legacy, "allow_tf32") else "ieee"
    precision = static_choice(precision, "input_precision", _PRECISIONS)
    return "tf32" if precision == "tf32" and element.is_fp32() else "ieee"


def _check_imprecise(limit: Any, left: tensor) -> None:
    if unwrap(limit) is None:
        return
    count, depth = static_int(limit, "max_num_imprecise_acc"), block_shape(left)[-1]
    if left.dtype.is_fp8() and count > depth:
        raise CompilationError(
            f"max_num_imprecise_acc ({count}) must be <= K ({depth})",
            help="leave it out: it changes nothing here",
        )
