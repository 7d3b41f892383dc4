"""Random expressions of a wanted type, built from the top.

What makes a block<3x5xf32>? An operation, whose operands are wanted next. Expressions are valid by
construction. A float is never reinterpreted as an integer while it may be NaN: the bits of a NaN are
promised to nobody.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from blocklang.ir.builder import Builder
from blocklang.ir.core import Kernel, Operation, Region, Value
from blocklang.ir.types import (
    BF16,
    F8E5,
    F16,
    F32,
    F64,
    FLOAT8_TYPES,
    I1,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    BlockType,
    PointerType,
    ScalarType,
    Type,
    element_type,
    shape_of,
    with_element,
    with_shape,
)
from blocklang.ops import creation, elementwise, memory, order, reduction, shape
from tests.fuzz.cases import special_values
from tests.fuzz.choices import Choices
from tests.fuzz.functions import Functions

Shape = tuple[int, ...]

ELEMENTS = (F32, I32, F64, I64, F16, BF16, I8, U8, I16, U16, U32, U64, I1, *FLOAT8_TYPES)
FLOATS = (F32, F64, F16, BF16, *FLOAT8_TYPES)
INTEGERS = (I32, I64, I8, U8, I16, U16, U32, U64)
EXTENTS = (2, 3, 4, 1, 5, 7, 8, 16, 31, 32, 33, 64, 65, 100, 130, 257)
LARGEST = 1000  # lanes of one block

_NUMBER_BINARY = (
    elementwise.Add,
    elementwise.Sub,
    elementwise.Mul,
    elementwise.Minimum,
    elementwise.Maximum,
    elementwise.Rem,
)
_INTEGER_BINARY = (
    elementwise.And,
    elementwise.Or,
    elementwise.Xor,
    elementwise.Shl,
    elementwise.Shr,
    elementwise.IntegerDiv,
)


class Expressions(Functions):
    """Appends random operations to a kernel.

    Attributes:
        choices: every decision comes from here.
        kernel: what is being built; arguments are added when they are wanted.
        pool: the values in scope that expressions may share.
        numbers: per scalar argument, the number that the launch passes.
    """

    def __init__(self, choices: Choices) -> None:
        self.choices = choices
        self.kernel = Kernel("fuzzed")
        self.builder = Builder(self.kernel.body)
        self.pool: list[Value] = []
        self.numbers: dict[Value, Any] = {}
        self.extents = tuple(choices.pick(EXTENTS) for _ in range(3))
        self.in_combiner = False

    # ---- plumbing ----

    def add(self, cls: type[Operation], *operands: Any, **named: Any) -> Value:
        return self.builder.value(cls, *operands, **named)

    def constant(self, value: Any, type_: Type = I32) -> Value:
        element = element_type(type_)
        if isinstance(element, ScalarType):
            value = float(value) if element.is_float else bool(value) if element == I1 else int(value)
        return self.add(creation.Constant, value=value, result_types=[type_])

    def argument(self, type_: ScalarType, number: Any) -> Value:
        """A new scalar argument, for which the launch passes `number`."""
        value = self.kernel.body.add_argument(type_, f"s{len(self.kernel.args)}")
        self.kernel.argument_attributes.append({})
        self.numbers[value] = number
        return value

    def cast(self, value: Value, element: ScalarType, **attributes: Any) -> Value:
        if element_type(value.type) == element:
            return value
        return self.add(
            elementwise.Cast, value, result_types=[with_element(value.type, element)], **attributes
        )

    def fitted(self, value: Value, wanted: Shape) -> Value:
        """`value`, of a shape that broadcasts to `wanted` from the left axes on, as a block of that shape."""
        if not wanted or shape_of(value.type) == wanted:
            return value
        if not shape_of(value.type):
            return self.add(
                creation.Splat, value, result_types=[with_shape(element_type(value.type), wanted)]
            )
        return self.add(shape.Broadcast, value, shape=wanted)

    def along(self, value: Value, axis: int, wanted: Shape) -> Value:
        """A block of rank 1 along one axis of a shape."""
        for position in range(len(wanted)):
            if position != axis:
                value = self.add(shape.ExpandDims, value, axis=position)
        return self.fitted(value, wanted)

    @contextmanager
    def inside(self, region: Region) -> Iterator[None]:
        """Build in a region, whose values are in scope there only."""
        pool = list(self.pool)
        with self.builder.at(region):
            yield
        self.pool = pool

    # ---- shapes ----

    def random_shape(self) -> Shape:
        """A shape over this kernel's few extents, so that shapes meet again."""
        a, b, c = self.extents
        shapes = [
            (a,),
            (a, b),
            (b,),
            (b, a),
            (a * b,),
            (a, 1),
            (1, b),
            (a, b, c),
            (c, a),
            (b, a, c),
            (1,),
            (a, 1, b),
        ]
        return self.limited(self.choices.pick(shapes))

    @staticmethod
    def limited(wanted: Shape) -> Shape:
        """Cut the largest extents until the block is small enough."""
        extents = list(wanted)
        while math.prod(extents) > LARGEST:
            position = extents.index(max(extents))
            extents[position] = extents[position] // 2 + 1
        return tuple(extents)

    # ---- leaves ----

    def number(self, element: ScalarType) -> Any:
        """A number of a type: a plain one, or one of its edges."""
        if self.choices.chance(60):
            return self.choices.pick(special_values(element))
        if element == I1:
            return self.choices.pick([True, False])
        return (
            self.choices.pick([1, 2, 0, 3, 5])
            if element.is_integer
            else self.choices.pick([1.0, 0.5, 3.0, 0.1])
        )

    def leaf(self, element: ScalarType, wanted: Shape) -> Value:
        kind = self.choices.below(4)
        if kind == 0:
            return self.constant(self.number(element), with_shape(element, wanted))
        if kind == 1 or not wanted:
            if self.in_combiner:
                return self.constant(self.number(element), with_shape(element, wanted))
            return self.fitted(self.scalar_leaf(element), wanted)
        axis = self.choices.below(len(wanted))
        return self.cast(self.along(self.arange(wanted[axis]), axis, wanted), element)

    def scalar_leaf(self, element: ScalarType) -> Value:
        if element == I32 and self.choices.chance(40):
            cls = self.choices.pick([creation.ProgramId, creation.NumPrograms])
            return self.add(cls, axis=self.choices.below(3))
        return self.argument(element, self.number(element))

    def arange(self, extent: int) -> Value:
        start = self.choices.pick([0, 0, 0, 1, -3, 1000, 2**31 - extent])
        return self.add(creation.Arange, start=start, end=start + extent)

    # ---- expressions ----

    def expression(self, element: ScalarType, wanted: Shape = (), depth: int = 3) -> Value:
        """A value of a type, at most `depth` operations high."""
        known = [v for v in self.pool if v.type == with_shape(element, wanted)]
        if known and self.choices.chance(50):
            return self.choices.pick(known[-6:])
        if depth <= 0:
            return self.leaf(element, wanted)
        value: Value = self.choices.pick(self.makers(element, wanted))(element, wanted, depth - 1)
        if not self.in_combiner:
            self.pool.append(value)
        return value

    def makers(self, element: ScalarType, wanted: Shape) -> list[Any]:
        makers: list[Any] = [
            self.plain_leaf,
            self.binary,
            self.unary,
            self.binary,
            self.select,
            self.converted,
            self.bitcast,
        ]
        if element == I1:
            makers = [self.compare, self.plain_leaf, self.binary, self.compare, self.select, self.converted]
        if element.is_float:
            makers += [self.function, self.fma, self.function, self.function_of_several]
        if element in (I32, I64, U32, U64):
            makers.append(self.high_product)
        if wanted and not self.in_combiner:
            makers += [self.reshaped, self.transposed, self.broadcast, self.sliced, self.joined]
            makers.append(self.choices.pick([self.in_order, self.largest, self.picked]))
        if len(wanted) == 1 and element == I32 and not self.in_combiner:
            makers += [self.counted] * 3
        if not self.in_combiner and len(wanted) < 3:
            makers += [self.reduced, self.reduced_with, self.arg_reduced]
        if not self.in_combiner and self.can_scan(wanted):
            makers += [self.scanned, self.mapped]
        if len(wanted) in (2, 3) and element in (F32, F64, I32, F16) and max(wanted) <= 70:
            makers += [self.product, self.product]
        return makers

    def plain_leaf(self, element: ScalarType, wanted: Shape, depth: int) -> Value:
        return self.leaf(element, wanted)

    def operand(self, element: ScalarType, wanted: Shape, depth: int) -> Value:
        """An operand of a lane-wise operation: of the shape, or a scalar."""
        return self.expression(element, () if wanted and self.choices.chance(15) else wanted, depth)

    def binary(self, element: ScalarType, wanted: Shape, depth: int) -> Value:
        classes = [*_NUMBER_BINARY, *((elementwise.Div,) if element.is_float else _INTEGER_BINARY)]
        cls = self.choices.pick(classes)
        extra = {"propagate_nan": True} if cls in _NUMBER_BINARY[3:5] and self.choices.chance(40) else {}
        lhs = self.expression(element, wanted, depth)
        rhs = lhs if self.choices.chance(8) else self.operand(element, wanted, depth)
        return self.add(cls, *((rhs, lhs) if self.choices.chance(20) else (lhs, rhs)), **extra)

    def high_product(self, element: ScalarType, wanted: Shape, depth: int) -> Value:
        lhs, rhs = self.expression(element, wanted, depth), self.operand(element, wanted, depth)
        return self.add(elementwise.UnsignedMulHigh, lhs, rhs)

    def unary(self, element: ScalarType, wanted: Shape, depth: int) -> Value:
        return self.add(
            self.choices.pick([elementwise.Neg, elementwise.Abs]), self.expression(element, wanted, depth)
        )

    def function(self, element: ScalarType, wanted: Shape, depth: int) -> Value:
        names = sorted(elementwise.FUNCTIONS)
        return self.add(
            elementwise.FUNCTIONS[self.choices.pick(names)], self.expression(element, wanted, depth)
        )

    def function_of_several(self, element: ScalarType, wanted: Shape, depth: int) -> Value:
        cls = elementwise.FUNCTIONS_OF_SEVERAL[self.choices.pick(sorted(elementwise.FUNCTIONS_OF_SEVERAL))]
        first = self.expression(element, wanted, depth)
        others = len(cls.operand_fields) - 1
        return self.add(cls, first, *(self.operand(element, wanted, depth) for _ in range(others)))

    def fma(self, element: ScalarType, wanted: Shape, depth: int) -> Value:
        a = self.expression(element, wanted, depth)
        return self.add(
            elementwise.Fma, a, self.operand(element, wanted, depth), self.operand(element, wanted, depth)
        )

    def select(self, element: ScalarType, wanted: Shape, depth: int) -> Value:
        condition = self.operand(I1, wanted, depth)
        a, b = self.expression(element, wanted, depth), self.operand(element, wanted, depth)
        return self.add(elementwise.Select, condition, *((a, b) if self.choices.chance(50) else (b, a)))

    def compare(self, element: ScalarType, wanted: Shape, depth: int) -> Value:
        of = self.choices.pick(ELEMENTS)
        lhs, rhs = self.expression(of, wanted, depth), self.operand(of, wanted, depth)
        return self.add(elementwise.Compare, lhs, rhs, predicate=self.choices.pick(elementwise.PREDICATES))

    def converted(self, element: ScalarType, wanted: Shape, depth: int) -> Value:
        source = self.expression(self.choices.pick(ELEMENTS), wanted, depth)
        extra = {"rounding": "rtz"} if self.choices.chance(20) else {}
        if element_type(source.type) == element:
            return self.add(elementwise.Cast, source, result_types=[source.type], **extra)
        return self.cast(source, element, **extra)

    def bitcast(self, element: ScalarType, wanted: Shape, depth: int) -> Value:
        of = self.choices.pick([t for t in ELEMENTS if t.bits == element.bits])
        source = self.expression(of, wanted, depth)
        if of.is_float:
            is_number = self.add(elementwise.Compare, source, source, predicate="eq")
            source = self.add(elementwise.Select, is_number, source, self.constant(1.5, of))
        return self.add(elementwise.Bitcast, source, result_types=[with_shape(element, wanted)])

    # ---- shape operations ----

    def reshaped(self, element: ScalarType, wanted: Shape, depth: int) -> Value:
        total = math.prod(wanted)
        a, b, c = self.extents
        others = [(total,), *[(n, total // n) for n in (a, b, c, 2, 3) if total % n == 0], (1, *wanted)[:3]]
        others += [(total // (a * b), a, b)] if total % (a * b) == 0 else []
        source = self.choices.pick([s for s in others if math.prod(s) == total])
        return self.add(shape.Reshape, self.expression(element, source, depth), shape=wanted)

    def transposed(self, element: ScalarType, wanted: Shape, depth: int) -> Value:
        rank = len(wanted)
        order = self.choices.pick(
            [(1, 0)]
            if rank == 2
            else [(0, 2, 1), (2, 1, 0), (1, 2, 0), (1, 0, 2), (2, 0, 1)]
            if rank == 3
            else [(0,)]
        )
        source = [0] * rank
        for position, axis in enumerate(order):
            source[axis] = wanted[position]
        return self.add(shape.Trans, self.expression(element, tuple(source), depth), order=order)

    def broadcast(self, element: ScalarType, wanted: Shape, depth: int) -> Value:
        axis = self.choices.below(len(wanted))
        if self.choices.chance(50) and len(wanted) > 1:
            narrow = self.expression(element, wanted[:axis] + wanted[axis + 1 :], depth)
            return self.fitted(self.add(shape.ExpandDims, narrow, axis=axis), wanted)
        source = tuple(1 if position == axis else n for position, n in enumerate(wanted))
        return self.fitted(self.expression(element, source, depth), wanted)

    def sliced(self, element: ScalarType, wanted: Shape, depth: int) -> Value:
        """Some lanes of a longer axis, in either direction."""
        axis = self.choices.below(len(wanted))
        extent = wanted[axis]
        step = self.choices.pick([-1, 1, 2, -2, -1, 3])
        reach = (extent - 1) * abs(step) + 1
        if reach * (math.prod(wanted) // extent) > LARGEST:
            step, reach = (1 if step > 0 else -1), extent
        before, after = (self.choices.pick([0, 0, 1, 2, 5]) for _ in range(2))
        source = (*wanted[:axis], before + reach + after, *wanted[axis + 1 :])
        start = before if step > 0 else before + reach - 1
        value = self.expression(element, source, depth)
        return self.add(shape.Slice, value, axis=axis, start=start, step=step, extent=extent)

    def joined(self, element: ScalarType, wanted: Shape, depth: int) -> Value:
        """Two blocks behind each other; of equal extents, of 1 and the rest, or any."""
        axes = [axis for axis, n in enumerate(wanted) if n > 1]
        if not axes:
            return self.leaf(element, wanted)
        axis = self.choices.pick(axes)
        front = self.choices.pick([wanted[axis] // 2, 1, 1 + self.choices.below(wanted[axis] - 1)])
        first, second = (
            self.expression(element, (*wanted[:axis], n, *wanted[axis + 1 :]), depth)
            for n in (front, wanted[axis] - front)
        )
        return self.add(shape.Cat, first, second, axis=axis)

    # ---- order ----

    def in_order(self, element: ScalarType, wanted: Shape, depth: int) -> Value:
        descending = self.choices.chance(50)
        return self.add(order.Sort, self.expression(element, wanted, depth), descending=descending)

    def largest(self, element: ScalarType, wanted: Shape, depth: int) -> Value:
        """`topk` of rows that are as long, or longer."""
        room = max(1, LARGEST // math.prod(wanted[:-1]))
        extent = max(wanted[-1], min(self.choices.pick([*self.extents, *EXTENTS]), room))
        return self.add(order.TopK, self.expression(element, (*wanted[:-1], extent), depth), k=wanted[-1])

    def picked(self, element: ScalarType, wanted: Shape, depth: int) -> Value:
        """A gather; many indices are out of range."""
        axis = self.choices.below(len(wanted))
        room = max(1, LARGEST * wanted[axis] // math.prod(wanted))
        extent = min(self.choices.pick([*self.extents, *EXTENTS]), room)
        source = self.expression(element, (*wanted[:axis], extent, *wanted[axis + 1 :]), depth)
        index = self.expression(self.choices.pick(INTEGERS), wanted, depth)
        return self.add(order.Gather, source, index, axis=axis)

    def counted(self, element: ScalarType, wanted: Shape, depth: int) -> Value:
        extent = self.choices.pick([*self.extents, *EXTENTS])
        numbers = self.expression(self.choices.pick([*INTEGERS, I1]), (extent,), depth)
        mask = {"mask": self.expression(I1, (extent,), depth)} if self.choices.chance(50) else {}
        return self.add(order.Histogram, numbers, bins=wanted[0], **mask)

    # ---- reductions ----

    def widened(self, wanted: Shape) -> tuple[Shape, int]:
        """A shape with one more axis, and its position."""
        axis = self.choices.below(len(wanted) + 1)
        room = max(1, LARGEST // max(math.prod(wanted), 1))
        extent = min(self.choices.pick([*self.extents, *EXTENTS]), room)
        return (*wanted[:axis], extent, *wanted[axis:]), axis

    def reduced(self, element: ScalarType, wanted: Shape, depth: int) -> Value:
        source, axis = self.widened(wanted)
        combine = self.choices.pick(reduction.COMBINES[:3] if element.is_float else reduction.COMBINES)
        return self.add(reduction.Reduce, self.expression(element, source, depth), combine=combine, axis=axis)

    def arg_reduced(self, element: ScalarType, wanted: Shape, depth: int) -> Value:
        source, axis = self.widened(wanted)
        of = self.choices.pick(ELEMENTS) if element == I32 else element
        combine = self.choices.pick(["max", "min"])
        op = self.builder.create(
            reduction.ArgReduce, self.expression(of, source, depth), combine=combine, axis=axis
        )
        value, index = op.results
        if element != I32:
            self.pool.append(index)
            return value
        self.pool.append(value)
        return index

    def elements_with(self, element: ScalarType, most: int) -> list[ScalarType]:
        """A type, and up to `most` others."""
        return [element, *(self.choices.pick(ELEMENTS) for _ in range(self.choices.below(most + 1)))]

    def product(self, element: ScalarType, wanted: Shape, depth: int) -> Value:
        *batch, rows, columns = wanted
        inner = min(self.choices.pick([*self.extents, *EXTENTS]), 70)
        of = {I32: I8, F64: F64, F16: F16}.get(element) or self.choices.pick([F32, F16, BF16, F8E5])
        other_of = of
        if (of == F8E5 or element == F16) and self.choices.chance(40):
            of, other_of = self.choices.pick(FLOAT8_TYPES), self.choices.pick(FLOAT8_TYPES)
        inner = max(1, min(inner, LARGEST // max(math.prod(batch), 1) // max(rows, columns)))
        a = self.expression(of, (*batch, rows, inner), depth)
        b = self.expression(other_of, (*batch, inner, columns), depth)
        start = self.choices.below(3)
        zero = self.constant(0, BlockType(element, wanted))
        acc = self.expression(element, wanted, depth) if start != 1 else zero
        extra: dict[str, Any] = {"input_precision": "tf32"} if self.choices.chance(15) else {}
        extra |= {"start": "add"} if start == 2 else {}
        dot = self.add(reduction.Dot, a, b, acc, **extra)
        if start != 1 or not self.choices.chance(60):
            return dot
        other = self.expression(element, wanted, depth)
        return self.add(elementwise.Add, *((dot, other) if self.choices.chance(50) else (other, dot)))

    # ---- pointers are elsewhere ----

    def offset(self, pointer: Value, *offsets: Value) -> Value:
        for offset in offsets:
            pointer = self.add(memory.Offset, pointer, offset)
        return pointer


def is_scalar_number(value: Value) -> bool:
    """True for a scalar that is no pointer."""
    return not shape_of(value.type) and not isinstance(value.type, PointerType)


def shapes_of(values: Sequence[Value]) -> list[Shape]:
    """The shapes of blocks, each once."""
    return list(dict.fromkeys(shape_of(v.type) for v in values if shape_of(v.type)))
