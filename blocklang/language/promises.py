"""What hints promise, looked at while the kernel runs: only where a launch asks for it, as those of
`blocklang check` do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from blocklang.ir.core import Region
from blocklang.ir.types import I64, shape_of
from blocklang.language import dtypes as tl
from blocklang.language.arithmetic import logical
from blocklang.language.casting import cast_element
from blocklang.language.context import current_builder
from blocklang.language.creation import arange
from blocklang.language.maths import where
from blocklang.language.order import gather
from blocklang.language.reduction import max as largest
from blocklang.language.reduction import min as smallest
from blocklang.language.shape import broadcast_to, reshape
from blocklang.language.tensor import constant, tensor
from blocklang.ops.control import If, Yield
from blocklang.ops.events import ReportFault
from blocklang.ops.faults import HINT


def is_asked() -> bool:
    """True if hints are to be checked where the builder stands."""
    builder = current_builder()
    return builder.hints and not builder.is_per_lane


def check_promise(input: tensor, numbers: Sequence[int], what: str) -> None:
    """Report the first element for which `multiple_of`, `max_contiguous` or `max_constancy` does not hold.

    `multiple_of` speaks of the elements at which runs of consecutive ones begin, in a block of more than one
    axis of the first element alone; addresses count in bytes.
    """
    if not is_asked():
        return
    shape, element = shape_of(input.value.type), input.dtype
    if not (element.is_int() or element.is_ptr()):
        return
    step = element.element_ty.primitive_bitwidth // 8 if element.is_ptr() else 1
    words = cast_element(input, tl.int64)
    for axis, number in enumerate(numbers):
        if number > 1:
            _report(_broken(words, shape, axis, number, step, what), words, number, what)


def check_assumption(condition: tensor) -> None:
    """Report that what `assume` says is false."""
    if is_asked():
        _report(condition == 0, cast_element(condition, tl.int64), 0, "assume")


def _broken(words: tensor, shape: tuple[int, ...], axis: int, number: int, step: int, what: str) -> Any:
    if not shape:
        return words % number != 0 if what == "multiple_of" else words != words
    place = _along(shape, axis)
    before: Any = gather(words, where(place > 0, place - 1, 0), axis)
    if what == "multiple_of":
        first: Any = place == 0
        if len(shape) == 1:
            first = logical("or", first, words != before + step)
        for other in range(len(shape)):
            first = logical("and", first, _along(shape, other) == 0) if other != axis else first
        return logical("and", first, words % number != 0)
    expected = before + step if what == "max_contiguous" else before
    broken = logical("and", place % number != 0, words != expected)
    # Rows behind the end are usual, modulo their number or clamped: such a run starts again at 0.
    return logical("and", broken, words != 0) if what == "max_contiguous" else broken


def _along(shape: tuple[int, ...], axis: int) -> Any:
    """The index of each lane along an axis."""
    extents = tuple(n if i == axis else 1 for i, n in enumerate(shape))
    return broadcast_to(reshape(arange(0, shape[axis]), extents), shape)


def _report(bad: Any, words: tensor, number: int, what: str) -> None:
    shape = shape_of(words.value.type)
    count = math.prod(shape)
    builder = current_builder()
    if shape:
        flat, numbers = reshape(bad, (count,)), arange(0, count)
        lane: Any = smallest(where(flat, numbers, constant(count, tl.int32)), 0)
        chosen = where(numbers == lane, reshape(words, (count,)), constant(I64.minimum, tl.int64))
        value: Any = largest(chosen, 0)
        some: Any = lane < count
    else:
        lane, value, some = constant(0, tl.int32), words, bad
    region = Region()
    with builder.at(region):
        details = [value.value, constant(number, tl.int64).value]
        builder.create(ReportFault, lane.value, details, kind=HINT, action=what, shape=shape)
        builder.create(Yield)
    builder.create(If, some.value, regions=[region])
