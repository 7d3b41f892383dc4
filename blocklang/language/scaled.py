"""Matrix products of numbers with shared scales (microscaling formats): a composition of other functions.

An operand is unpacked and widened to fp32, multiplied by its scales, and goes through `dot`. A number and a
power of two, or an fp8 scale, have an exact product in fp32 unless it leaves fp32's range; so the scaled
operands are exact, and all that is rounded are the sums of `dot`.
"""

from __future__ import annotations

from typing import Any

from blocklang.diagnostics import CompilationError
from blocklang.language import dtypes as tl
from blocklang.language.arithmetic import bitwise, compare, mul
from blocklang.language.casting import bitcast_element, cast_element, to_dtype
from blocklang.language.constexpr import describe, static_bool, static_choice, unwrap
from blocklang.language.creation import arange
from blocklang.language.linear import dot, product_shape
from blocklang.language.maths import where
from blocklang.language.registry import builtin
from blocklang.language.shape import block_shape, broadcast_to, expand_dims, reshape, trans
from blocklang.language.tensor import tensor

_FORMATS = ("e2m1", "e4m3", "e5m2", "bf16", "fp16")
_TYPES = {"e4m3": tl.float8e4nv, "e5m2": tl.float8e5, "bf16": tl.bfloat16, "fp16": tl.float16}
# e2m1 read as fp8e5, whose bias is 15 instead of 1, is too small by this factor.
_E2M1_UNIT = 2.0**14


@builtin
def dot_scaled(
    lhs: Any,
    lhs_scale: Any,
    lhs_format: Any,
    rhs: Any,
    rhs_scale: Any,
    rhs_format: Any,
    acc: Any = None,
    fast_math: Any = False,
    lhs_k_pack: Any = True,
    rhs_k_pack: Any = True,
    out_dtype: Any = tl.float32,
) -> tensor:
    """Multiply two matrices, or each two of a batch, whose elements share scales in groups along K.

    Args:
        lhs: a block [M, K] or [B, M, K] of `lhs_format`.
        lhs_scale: a block [M, K / 32] or [B, M, K / 32] of uint8, each s meaning 2 ** (s - 127) and 255 NaN;
            or [..., M, K / 16] of fp8e4nv; or None for 1.
        lhs_format: 'e4m3' or 'e5m2' (fp8e4nv or fp8e5, or uint8 with their bits), 'bf16' or 'fp16' (or
            uint16), or 'e2m1': uint8 with two numbers each, the first in the lower four bits.
        rhs: a block [K, N] or [B, K, N] of `rhs_format`.
        rhs_scale: as `lhs_scale`, of shape [..., N, K / 32]: not transposed as `rhs` is.
        rhs_format: as `lhs_format`.
        acc: a block [..., M, N] of fp32, added to the product.
        fast_math: accepted; a scale that is NaN gives NaN either way.
        lhs_k_pack: whether the two numbers of a byte of e2m1 are neighbours along K; else along M.
        rhs_k_pack: the same for `rhs`, whose other axis is N.
        out_dtype: fp32.

    Returns:
        A block [..., M, N] of fp32: `tl.dot` of the scaled operands in fp32, with its order of sums. A number
        times its scale is exact unless it leaves the range of fp32.

    Example:
        a, b = tl.zeros((16, 32), tl.uint8), tl.zeros((32, 16), tl.uint8)
        scale = tl.full((16, 1), 127, tl.uint8)
        c = tl.dot_scaled(a, scale, "e4m3", b, None, "e5m2")
    """
    if not to_dtype(out_dtype, "out_dtype").is_fp32():
        raise CompilationError(
            "Only float32 is supported for out_dtype at the moment", help="convert the result with `.to(...)`"
        )
    left = _unpacked(lhs, lhs_format, lhs_k_pack, "lhs", along_k=-1)
    right = _unpacked(rhs, rhs_format, rhs_k_pack, "rhs", along_k=-2)
    if len(block_shape(left)) not in (2, 3):
        raise CompilationError(
            f"lhs of dot_scaled must have rank 2 or 3, got {describe(lhs)}",
            help="reshape the leading axes to one",
        )
    product_shape(left, right)
    if (scale := _spread_scale(lhs_scale, left, "lhs_scale")) is not None:
        left = mul(left, scale)
    if (scale := _spread_scale(rhs_scale, _transposed(right), "rhs_scale")) is not None:
        right = mul(right, _transposed(scale))
    product: tensor = dot(left, right, acc)
    return product


def _transposed(value: tensor) -> tensor:
    rank = len(block_shape(value))
    result: tensor = trans(value, *range(rank - 2), rank - 1, rank - 2)
    return result


def _unpacked(value: Any, format: Any, k_pack: Any, name: str, *, along_k: int) -> tensor:
    """An operand in fp32, one number a lane."""
    form = static_choice(format, f"{name}_format", _FORMATS)
    is_along_k = static_bool(k_pack, f"{name}_k_pack")
    if not isinstance(value, tensor) or len(block_shape(value)) < 2:
        raise CompilationError(f"{name} of dot_scaled must be a block of rank 2 or 3, got {describe(value)}")
    if form == "e2m1":
        if not value.dtype.is_uint8():
            raise CompilationError(
                f"e2m1 format must be packed as uint8. Got {value.dtype}",
                help="two numbers a byte, the first below",
            )
        return _widened_e2m1(_nibbles(value, along_k if is_along_k else -3 - along_k))
    if not is_along_k:
        raise CompilationError(
            f"{name}_k_pack=False with {form}: "
            "only mxfp4 inputs can be packed along a dimension different than K",
            help=f"leave {name}_k_pack out",
        )
    kind = _TYPES[form]
    bits = tl.uint8 if kind.is_fp8() else tl.uint16
    if value.dtype not in (kind, bits):
        raise CompilationError(
            f"Unexpected dtype for {form}. Got {value.dtype}", help=f"pass {kind}, or {bits} with its bits"
        )
    return cast_element(bitcast_element(value, kind), tl.float32)


def _nibbles(value: tensor, axis: int) -> tensor:
    """The lower and the upper four bits of each byte as neighbours along an axis."""
    shape = block_shape(value)
    axis += len(shape)
    places = reshape(arange(0, 2), [2 if i == axis + 1 else 1 for i in range(len(shape) + 1)])
    shifts = cast_element(mul(places, 4), tl.uint8)
    both = bitwise("&", bitwise(">>", expand_dims(value, axis + 1), shifts), 15)
    result: tensor = reshape(both, [n * 2 if i == axis else n for i, n in enumerate(shape)])
    return result


def _widened_e2m1(code: tensor) -> tensor:
    """Sign, two bits of exponent and one of fraction, moved to where fp8e5 has them."""
    sign = bitwise("<<", bitwise("&", code, 8), 4)
    moved = bitwise("|", sign, bitwise("<<", bitwise("&", code, 7), 1))
    return mul(cast_element(bitcast_element(moved, tl.float8e5), tl.float32), _E2M1_UNIT)


def _spread_scale(scale: Any, operand: tensor, name: str) -> tensor | None:
    """The scale of each element of an operand [..., rows, K], in fp32; None for 1."""
    if unwrap(scale) is None:
        return None
    *leading, rows, depth = block_shape(operand)
    if not isinstance(scale, tensor) or not (scale.dtype.is_uint8() or scale.dtype.is_fp8e4nv()):
        raise CompilationError(
            f"{name} must be a block of uint8 or fp8e4nv, or None, got {describe(scale)}",
            help="uint8 holds powers of two: 127 is 1, 128 is 2",
        )
    group = 16 if scale.dtype.is_fp8e4nv() else 32
    if depth % group or block_shape(scale) != (*leading, rows, depth // group):
        raise CompilationError(
            f"{name} must be a tensor of shape [..., {rows}, {depth // group}]. "
            f"Got {list(block_shape(scale))}",
            help=f"one scale for each {group} elements along K, and K is a multiple of {group}",
        )
    number = cast_element(scale, tl.float32) if scale.dtype.is_fp8() else _power_of_two(scale)
    spread = broadcast_to(expand_dims(number, -1), *leading, rows, depth // group, group)
    result: tensor = reshape(spread, (*leading, rows, depth))
    return result


def _power_of_two(scale: tensor) -> tensor:
    """2 ** (scale - 127): the exponent bits of an fp32, but for the subnormal 2**-127 and for NaN."""
    exponent = cast_element(scale, tl.uint32)
    bits = bitwise("<<", exponent, 23)
    bits = where(compare("==", exponent, 0), 0x00400000, bits)
    bits = where(compare("==", exponent, 255), 0x7FC00000, bits)
    return bitcast_element(bits, tl.float32)
