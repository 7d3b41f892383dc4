"""`sanitize_overflow`: sums, differences and products of integers that must not wrap."""

from __future__ import annotations

from blocklang.ir import Operation
from blocklang.language import dtypes as tl
from blocklang.language.casting import cast_element
from blocklang.language.context import current_builder
from blocklang.language.tensor import constant, emit, tensor
from blocklang.ops import elementwise as ops

_CHECKED = (ops.Add, ops.Sub, ops.Mul)


def assert_no_overflow(cls: type[Operation], left: tensor, right: tensor) -> None:
    """Let the launch fail if an operation on two signed integers of at most 32 bits wraps in any lane.

    Nothing is checked inside of functions that `reduce`, `associative_scan` and `map_elementwise` call, where
    nothing can be said.
    """
    from blocklang.language.arithmetic import logical
    from blocklang.language.events import assert_holds

    element, builder = left.dtype, current_builder()
    if cls not in _CHECKED or not builder.sanitize_overflow or builder.is_per_lane:
        return
    if not element.is_int_signed() or element.int_bitwidth == 64:
        return
    exact = emit(cls, cast_element(left, tl.int64), cast_element(right, tl.int64))
    limit = 1 << (element.int_bitwidth - 1)
    lowest, highest = constant(-limit, tl.int64), constant(limit - 1, tl.int64)
    fits = logical("and", exact >= lowest, exact <= highest)
    assert_holds(fits, f"int{element.int_bitwidth} overflow detected for operation {cls.name}")
