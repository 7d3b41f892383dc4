"""Conversions of libdevice with a direction of rounding in their name: rn, rz, rd or ru."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from blocklang.language import dtypes as tl
from blocklang.language.casting import bitcast_element, cast_element
from blocklang.language.dtypes import dtype
from blocklang.language.extra.bits import integer_bits
from blocklang.language.maths import ceil, floor, rint, where
from blocklang.language.tensor import emit, tensor
from blocklang.ops import elementwise as ops

DIRECTIONS = ("rn", "rz", "rd", "ru")
_TO_INTEGRAL: dict[str, Callable[[Any], tensor]] = {"rn": rint, "rd": floor, "ru": ceil}


def float_to_integer(direction: str, target: dtype) -> Callable[[tensor], tensor]:
    """To an integral value in the direction, then saturating; an unsigned result is read as signed bits."""

    def convert(x: tensor) -> tensor:
        integral = _TO_INTEGRAL[direction](x) if direction != "rz" else x
        value = cast_element(integral, target)
        return bitcast_element(value, tl.dtype(f"int{target.primitive_bitwidth}"))

    return convert


def narrow(x: tensor, direction: str) -> tensor:
    """fp64 to fp32: to nearest, then one step where that went over."""
    if direction == "rn":
        return cast_element(x, tl.float32)
    if direction == "rz":
        return cast_element(x, tl.float32, "rtz")
    near = cast_element(x, tl.float32)
    wide, bits = cast_element(near, tl.float64), integer_bits(near)
    if direction == "rd":
        over, move = wide > x, where(bits < 0, 1, -1)
    else:
        over, move = wide < x, where(bits < 0, -1, 1)
    return bitcast_element(where(over, bits + move, bits), tl.float32)


def double_to_float(direction: str) -> Callable[[tensor], tensor]:
    return lambda x: narrow(x, direction)


def integer_to_double(x: tensor, direction: str) -> tensor:
    """A 64-bit integer: both halves are exact, and their sum is rounded in the direction."""
    if direction == "rn" or x.dtype.primitive_bitwidth < 64:
        return cast_element(x, tl.float64)
    high = cast_element(x >> 32, tl.float64) * 2.0**32
    low = cast_element(x & 0xFFFFFFFF, tl.float64)
    return emit(ops.FUNCTIONS_OF_SEVERAL[f"add_{direction}"], high, low)


def integer_to_float(direction: str, target: dtype) -> Callable[[tensor], tensor]:
    """To fp32 by way of fp64: two roundings in one direction are one."""

    def convert(x: tensor) -> tensor:
        if direction == "rn":
            return cast_element(x, target)
        wide = integer_to_double(x, direction)
        return wide if target == tl.float64 else narrow(wide, direction)

    return convert


def bits(target: dtype) -> Callable[[tensor], tensor]:
    return lambda x: bitcast_element(x, target)
