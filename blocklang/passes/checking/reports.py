"""The operations that look for the first lane at fault, and report it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from blocklang.ir.builder import Builder
from blocklang.ir.core import Region, Value
from blocklang.ir.types import I1, I32, I64, element_type, shape_of, with_element, with_shape
from blocklang.ops.control import If, Yield
from blocklang.ops.creation import Arange, Splat
from blocklang.ops.elementwise import And, Cast, Compare, Or, Select
from blocklang.ops.reduction import Reduce
from blocklang.ops.shape import Reshape
from blocklang.passes.uniform import constant_of, make_constant


@contextmanager
def only_if(builder: Builder, condition: Value) -> Iterator[None]:
    """What the builder makes inside of the `with` block runs only where the scalar condition holds."""
    region = Region()
    with builder.at(region):
        yield
        builder.create(Yield)
    builder.create(If, condition, regions=[region])


def shaped(builder: Builder, value: Value, shape: Sequence[int]) -> Value:
    """A scalar or block in every lane of `shape`."""
    type_ = with_shape(element_type(value.type), tuple(shape))
    if value.type == type_:
        return value
    number = constant_of(value)
    if number is not None:
        return make_constant(builder, number, type_)
    return builder.value(Splat, value, result_types=[type_])


def among(builder: Builder, bad: Value, live: Value | None) -> Value:
    """The lanes of `bad` that are live."""
    return bad if live is None else builder.value(And, bad, shaped(builder, live, shape_of(bad.type)))


Words = list[Value]


def at_first(
    builder: Builder,
    bad: Value,
    blocks: Sequence[Callable[[], Value]],
    report: Callable[[Value, Words], None],
) -> None:
    """Call `report` for the first lane that is bad, if there is one, with its number and its lane of each of
    some blocks of i64, which are made where they are wanted.
    """
    shape = shape_of(bad.type)
    if not shape:
        with only_if(builder, bad):
            report(make_constant(builder, 0, I32), [block() for block in blocks])
        return
    count = math.prod(shape)
    flat = builder.value(Reshape, bad, shape=(count,)) if len(shape) > 1 else bad
    numbers = builder.value(Arange, start=0, end=count)
    none = make_constant(builder, count, numbers.type)
    first = builder.value(Reduce, builder.value(Select, flat, numbers, none), combine="min", axis=0)
    some = builder.value(Compare, first, make_constant(builder, count, I32), predicate="lt")
    with only_if(builder, some):
        is_first = builder.value(Compare, numbers, shaped(builder, first, (count,)), predicate="eq")
        report(first, [_at(builder, is_first, block()) for block in blocks])


def as_word(builder: Builder, value: Value) -> Value:
    """A pointer or an integer as an i64."""
    type_ = with_element(value.type, I64)
    return value if value.type == type_ else builder.value(Cast, value, result_types=[type_])


def _at(builder: Builder, is_here: Value, block: Value) -> Value:
    """The one lane of a block, in row-major order, for which `is_here` holds, as an i64."""
    words = block
    if len(shape_of(words.type)) > 1:
        words = builder.value(Reshape, words, shape=shape_of(is_here.type))
    lowest = make_constant(builder, I64.minimum, words.type)
    return builder.value(Reduce, builder.value(Select, is_here, words, lowest), combine="max", axis=0)


def all_of(builder: Builder, conditions: Sequence[Value]) -> Value:
    """All of some conditions, of which there may be none."""
    if not conditions:
        return make_constant(builder, True, I1)
    result = conditions[0]
    for condition in conditions[1:]:
        result = builder.value(And, result, condition)
    return result


def any_of(builder: Builder, conditions: Sequence[Value]) -> Value:
    """Where any of some conditions holds; there is at least one."""
    result = conditions[0]
    for condition in conditions[1:]:
        result = builder.value(Or, result, condition)
    return result
