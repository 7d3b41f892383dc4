"""Random small kernels for property tests, and what they compute.

Values are scalars and blocks of four lanes, of several dtypes; control flow nests. A kernel reads `%x`, `%y`
at masked indices, so every access is inside, and writes values one after another to `%out_i`, `%out_f`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from blocklang.interpreter import run_kernel
from blocklang.ir.builder import Builder
from blocklang.ir.core import Kernel, Operation, Region, Value
from blocklang.ir.types import (
    F16,
    F32,
    I1,
    I8,
    I32,
    U32,
    PointerType,
    ScalarType,
    Type,
    element_type,
    shape_of,
    with_element,
    with_shape,
)
from blocklang.ops import control, creation, elementwise, memory, reduction, shape

LANES = 4
INPUTS = 16
OUTPUTS = 64

_INTEGER = [
    elementwise.IntegerDiv,
    elementwise.And,
    elementwise.Or,
    elementwise.Xor,
    elementwise.Shl,
    elementwise.Shr,
    elementwise.UnsignedMulHigh,
]
_NUMBER = [
    elementwise.Add,
    elementwise.Sub,
    elementwise.Mul,
    elementwise.Rem,
    elementwise.Minimum,
    elementwise.Maximum,
]
_ELEMENTS = [I1, I8, I32, U32, F16, F32]
_FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, 3.0e38, 1.0e-40, float("inf"), float("-inf"), float("nan"), 0.1]


class _Generator:
    """Draws operations and appends them; `pool` holds the values that may be read."""

    def __init__(self, draw: Any, kernel: Kernel) -> None:
        self.draw = draw
        self.builder = Builder(kernel.body)
        self.x, self.y, self.out_i, self.out_f = kernel.args[:4]
        self.pool: list[Value] = list(kernel.args[4:])
        self.stored = 0

    def one_of(self, items: Any) -> Any:
        return self.draw(st.sampled_from(list(items)))

    def number(self, element: ScalarType) -> Any:
        if element.is_float:
            return self.one_of(_FLOATS)
        if element == I1:
            return self.draw(st.booleans())
        special = [element.minimum, element.maximum, 0, 1, 2, element.minimum + 1]
        return self.one_of(special + ([-1] if element.is_signed else []))

    def constant(self, type_: Type) -> Value:
        value = self.number(element_type(type_))  # type: ignore[arg-type]
        return self.add(creation.Constant, value=value, result_types=[type_])

    def add(self, cls: type[Operation], *operands: Any, **named: Any) -> Value:
        value = self.builder.value(cls, *operands, **named)
        self.pool.append(value)
        return value

    def value(self, element: Any = None, scalar: bool | None = None) -> Value:
        """A value of the pool, or a new constant."""
        fits = [
            v
            for v in self.pool
            if (element is None or element_type(v.type) == element)
            and (scalar is None or scalar == (shape_of(v.type) == ()))
        ]
        if fits and self.draw(st.integers(0, 4)):
            found: Value = self.one_of(fits[-8:])
            return found
        element = element or self.one_of(_ELEMENTS)
        block = not scalar if scalar is not None else self.draw(st.booleans())
        return self.constant(with_shape(element, (LANES,) if block else ()))

    # ---- statements ----

    def binary(self) -> None:
        lhs = self.value()
        element = element_type(lhs.type)
        rhs = lhs if not self.draw(st.integers(0, 7)) else self.value(element)
        assert isinstance(element, ScalarType)
        number = self.one_of(_NUMBER + ([elementwise.Div] if element.is_float else _INTEGER))
        self.add(number, lhs, rhs)

    def unary(self) -> None:
        source = self.value()
        self.add(self.one_of([elementwise.Neg, elementwise.Abs]), source)

    def cast(self) -> None:
        source = self.value()
        element = self.one_of(_ELEMENTS)
        self.add(elementwise.Cast, source, result_types=[with_element(source.type, element)])

    def bitcast(self) -> None:
        source = self.value(self.one_of([I32, U32]))
        element = self.one_of([I32, U32, F32])
        self.add(elementwise.Bitcast, source, result_types=[with_element(source.type, element)])

    def compare(self) -> None:
        lhs = self.value()
        rhs = lhs if not self.draw(st.integers(0, 5)) else self.value(element_type(lhs.type))
        self.add(elementwise.Compare, lhs, rhs, predicate=self.one_of(elementwise.PREDICATES))

    def select(self) -> None:
        lhs = self.value()
        self.add(elementwise.Select, self.value(I1), lhs, self.value(element_type(lhs.type)))

    def splat(self) -> None:
        source = self.value(scalar=True)
        self.add(creation.Splat, source, result_types=[with_shape(element_type(source.type), (LANES,))])

    def shape(self) -> None:
        source = self.value(scalar=False)
        builder = self.builder
        square = builder.value(shape.Reshape, source, shape=(2, 2))
        if self.draw(st.booleans()):
            square = builder.value(shape.Trans, square, order=(1, 0))
        else:
            row = builder.value(shape.Reshape, source, shape=(4, 1))
            wide = builder.value(shape.Broadcast, row, shape=(4, 2))
            if not element_type(source.type).is_float:  # type: ignore[union-attr]
                square = builder.value(
                    shape.Reshape,
                    builder.value(reduction.Reduce, wide, combine="sum", axis=1),
                    shape=(2, 2),
                )
        self.add(shape.Reshape, square, shape=(LANES,))

    def arange(self) -> None:
        start = self.draw(st.integers(-3, 3))
        self.add(creation.Arange, start=start, end=start + LANES)

    def load(self) -> None:
        index = self.builder.value(
            elementwise.And,
            self.value(I32),
            self.builder.value(creation.Constant, value=INPUTS - 1, result_types=[I32]),
        )
        array = self.one_of([self.x, self.y])
        pointer = self.builder.value(memory.Offset, array, index)
        named: dict[str, Any] = {}
        if self.draw(st.booleans()):
            named["mask"] = self.value(I1, scalar=None if shape_of(pointer.type) else True)
            if self.draw(st.booleans()):
                element = I32 if array is self.x else F32
                named["other"] = self.value(element, scalar=None if shape_of(pointer.type) else True)
        self.add(memory.Load, pointer, **named)

    def store(self) -> None:
        value = self.value(self.one_of([I32, F32]))
        start = (self.stored * LANES) % OUTPUTS
        self.stored += 1
        index = self.builder.value(creation.Arange, start=start, end=start + LANES)
        array = self.out_i if element_type(value.type) == I32 else self.out_f
        pointer = self.builder.value(memory.Offset, array, index)
        named: dict[str, Any] = {"mask": self.value(I1)} if self.draw(st.booleans()) else {}
        self.builder.create(memory.Store, pointer, value, **named)

    # ---- control flow ----

    def region(self, arguments: list[Type], depth: int, end: type[Operation], results: list[Type]) -> Region:
        """A region with random contents that hands on random values of the result types."""
        region = Region(arguments)
        outer = list(self.pool)
        self.pool += region.args
        with self.builder.at(region):
            self.statements(self.draw(st.integers(0, 4)), depth + 1)
            self.builder.create(end, [self.of_type(t) for t in results])
        self.pool = outer
        return region

    def of_type(self, type_: Type) -> Value:
        fits = [v for v in self.pool if v.type == type_]
        return self.one_of(fits[-6:]) if fits else self.constant(type_)

    def carried_types(self) -> list[Type]:
        count = self.draw(st.integers(0, 3))
        return [
            with_shape(self.one_of(_ELEMENTS), (LANES,) if self.draw(st.booleans()) else ())
            for _ in range(count)
        ]

    def if_(self, depth: int) -> None:
        types = self.carried_types()
        condition = self.value(I1, scalar=True)
        regions = [self.region([], depth, control.Yield, types) for _ in range(2)]
        self.pool += self.builder.create(control.If, condition, result_types=types, regions=regions).results

    def for_(self, depth: int) -> None:
        types = self.carried_types()
        bounds = [
            self.builder.value(creation.Constant, value=self.draw(st.integers(*limits)), result_types=[I32])
            for limits in ((-1, 2), (-1, 3))
        ]
        step = self.builder.value(creation.Constant, value=self.one_of([-1, 1, 2]), result_types=[I32])
        inits = [self.of_type(t) for t in types]
        body = self.region([I32, *types], depth, control.Yield, types)
        loop = self.builder.create(control.For, *bounds, step, inits, result_types=types, regions=[body])
        self.pool += loop.results

    def while_(self, depth: int) -> None:
        """A loop that counts down a value of its own."""
        types = [I32, *self.carried_types()]
        count = self.builder.value(creation.Constant, value=self.draw(st.integers(0, 3)), result_types=[I32])
        inits = [count, *(self.of_type(t) for t in types[1:])]
        before = Region(types)
        outer = list(self.pool)
        self.pool += before.args
        with self.builder.at(before):
            self.statements(self.draw(st.integers(0, 2)), depth + 1)
            zero = self.builder.value(creation.Constant, value=0, result_types=[I32])
            go = self.builder.value(elementwise.Compare, before.args[0], zero, predicate="gt")
            passed = [before.args[0], *(self.of_type(t) for t in types[1:])]
            self.builder.create(control.Condition, go, passed)
        self.pool = outer
        after = self.region(list(types), depth, control.Yield, list(types))
        end = after.terminator
        assert end is not None
        one = Builder.before_op(end).value(creation.Constant, value=1, result_types=[I32])
        end.set_operand(0, Builder.before_op(end).value(elementwise.Sub, after.args[0], one))
        loop = self.builder.create(control.While, inits, result_types=types, regions=[before, after])
        self.pool += loop.results

    def statements(self, count: int, depth: int) -> None:
        plain = [
            self.binary,
            self.binary,
            self.unary,
            self.cast,
            self.bitcast,
            self.compare,
            self.select,
            self.splat,
            self.shape,
            self.arange,
            self.load,
            self.store,
        ]
        nested = [self.if_, self.for_, self.while_] if depth < 2 else []
        for _ in range(count):
            statement = self.one_of([*plain, *nested])
            if statement in nested:
                statement(depth)
            else:
                statement()


@st.composite
def random_kernels(draw: st.DrawFn) -> Kernel:
    """A kernel of level block with arguments x, y, out_i, out_f and two scalars."""
    kernel = Kernel(
        "random",
        [PointerType(I32), PointerType(F32), PointerType(I32), PointerType(F32), I32, F32],
        ["x", "y", "out_i", "out_f", "n", "a"],
    )
    generator = _Generator(draw, kernel)
    generator.statements(draw(st.integers(2, 14)), 0)
    for _ in range(4):
        generator.store()
    generator.builder.create(control.Return)
    return kernel


def outputs_of(kernel: Kernel, n: int = 3, a: float = 0.7) -> list[npt.NDArray[Any]]:
    """What a random kernel writes, for fixed inputs."""
    x = (np.arange(INPUTS, dtype=np.int32) * np.int32(0x3779B1)) ^ np.int32(0x55AA)
    y = np.array([*_FLOATS, 2.5, -7.25, 1e10, 65504.0, 1e-8], np.float32)
    out_i = np.full(OUTPUTS, -7, np.int32)
    out_f = np.full(OUTPUTS, -7, np.float32)
    run_kernel(kernel, [x, y, out_i, out_f, n, a], (1,))
    return [out_i, out_f]


def assert_same_bits(before: list[npt.NDArray[Any]], after: list[npt.NDArray[Any]]) -> None:
    """Equal to the bit, a NaN being equal to every NaN."""
    for one, other in zip(before, after, strict=True):
        number = one == one
        np.testing.assert_array_equal(number, other == other)
        np.testing.assert_array_equal(one.view(np.uint32)[number], other.view(np.uint32)[number])
