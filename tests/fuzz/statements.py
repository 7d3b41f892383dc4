"""Random kernels: statements with nested control flow around the accesses and expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from blocklang.ir.core import Region, Value
from blocklang.ir.types import (
    BF16,
    F16,
    F32,
    F64,
    I1,
    I8,
    I16,
    I32,
    I64,
    U16,
    U32,
    U64,
    BlockType,
    PointerType,
    ScalarType,
    Type,
    element_type,
    shape_of,
    with_shape,
)
from blocklang.ops import atomics, control, elementwise, memory, reduction, shape
from tests.fuzz.addresses import Addresses
from tests.fuzz.choices import Choices
from tests.fuzz.expressions import ELEMENTS, Shape

_DEPTH = 2  # of nested control flow


class Statements(Addresses):
    """Builds a whole kernel."""

    def __init__(self, choices: Choices) -> None:
        super().__init__(choices)
        self.depth = 0

    def run(self) -> None:
        """Fill the kernel."""
        self.statements(self.choices.between(1, 3))
        self.store_something()
        self.builder.create(control.Return)

    def statements(self, count: int) -> None:
        for _ in range(count):
            self.statement()

    def statement(self) -> None:
        plain: list[Callable[[], None]] = [
            self.store_something,
            self.define,
            self.update_in_place,
            self.store_something,
            self.row,
            self.atomic,
            self.fence,
            self.in_some_order,
            self.compare_and_swap,
            self.functions_of_one,
        ]
        nested: list[Callable[[], None]] = [
            self.for_loop,
            self.conditional,
            self.while_loop,
            self.for_loop,
            self.walk,
        ]
        self.choices.pick([*plain, *nested] if self.depth < _DEPTH else plain)()

    # ---- plain ----

    def known_or_new_type(self) -> tuple[ScalarType, Shape]:
        """The type of a value in scope, most of the time, so that what was computed is stored."""
        numbers = [v for v in self.pool if not isinstance(element_type(v.type), PointerType)]
        if numbers and self.choices.chance(60):
            type_ = self.choices.pick(numbers[-8:]).type
            element = element_type(type_)
            assert isinstance(element, ScalarType)
            return element, shape_of(type_)
        return self.choices.pick(ELEMENTS), self.random_shape()

    def store_something(self) -> None:
        self.store(*self.known_or_new_type())

    def define(self) -> None:
        element, wanted = self.choices.pick(ELEMENTS), self.random_shape()
        self.pool.append(
            self.load(element, wanted) if self.choices.chance(40) else self.expression(element, wanted, 3)
        )

    def update_in_place(self) -> None:
        """Load from an array, compute, store to the same array: at the same addresses, or near them."""
        element, wanted = self.choices.pick(ELEMENTS), self.random_shape()
        pointing = self.pointer_to(element)
        source, mask = self.address(pointing, wanted)
        loaded = self.add(memory.Load, source, **self.masked(mask, element, wanted))
        self.pool.append(loaded)
        value = self.choices.pick([self.binary, self.binary, self.unary, self.select])(element, wanted, 1)
        used = self.add(
            self.choices.pick([elementwise.Add, elementwise.Maximum, elementwise.Sub]), loaded, value
        )
        if self.choices.chance(40):
            target, other = self.address(self.pointer_to(element), wanted)
        else:
            target, other = source, mask
        self.write(target, used, other)

    def row(self) -> None:
        """A row as softmax walks it: load, reduce, combine with the lanes, store under the same mask."""
        element, wanted = self.choices.pick(ELEMENTS), self.random_shape()
        pointer, mask = self.address(self.pointer_to(element), wanted)
        loaded = self.add(memory.Load, pointer, **self.masked(mask, element, wanted))
        axis = self.choices.below(len(wanted))
        value = self.unary(element, wanted, 0) if self.choices.chance(50) else loaded
        combine = self.choices.pick(["max", "sum", "min"])
        folded = self.add(reduction.Reduce, value, combine=combine, axis=axis)
        if shape_of(folded.type):
            folded = self.fitted(self.add(shape.ExpandDims, folded, axis=axis), wanted)
        result = self.add(self.choices.pick([elementwise.Sub, elementwise.Mul]), loaded, folded)
        if element.is_float and self.choices.chance(40):
            result = self.add(elementwise.FUNCTIONS["exp"], result)
        again = self.add(reduction.Reduce, result, combine=self.choices.pick(["sum", "max"]), axis=axis)
        self.pool += [folded, result, again]
        target, other = self.address(self.pointer_to(element), wanted)
        if self.choices.chance(60):
            other = mask
        self.write(target, result, other)

    def atomic(self) -> None:
        """An atomic, whose result may be read. Floats are not compared: bits of a NaN are not promised."""
        element = self.choices.pick([I32, U32, I64, U64, F32, F64, F16, BF16])
        wanted = self.choices.pick([self.random_shape(), self.random_shape(), ()])
        pointing = self.pointer_to(element)
        pointer, mask = self.address(pointing, wanted) if wanted else (pointing.value, None)
        value = self.expression(element, self.choices.pick([wanted, ()]), 2)
        order = self.memory_order()
        kinds = ("add", "xchg") if element.bits >= 32 else ("add",)
        kind = self.choices.pick(atomics.KINDS if element.is_integer else kinds)
        named = {} if mask is None else {"mask": mask}
        old = self.add(atomics.AtomicRmw, pointer, value, kind=kind, **order, **named)
        if self.choices.chance(60):
            self.pool.append(old)

    def memory_order(self) -> dict[str, str]:
        return {"sem": self.choices.pick(atomics.SEMANTICS), "scope": self.choices.pick(atomics.SCOPES)}

    def compare_and_swap(self) -> None:
        """A swap whose comparison holds for some lanes, and twice at one address now and then."""
        element = self.choices.pick([I32, U32, I64, U64, I16, U16])
        wanted = self.choices.pick([self.random_shape(), ()])
        pointing = self.pointer_to(element)
        offset, _ = self.any_offset(wanted, self.arrays[pointing.array].count)
        pointer = self.offset(pointing.value, offset)
        compare, value = (self.expression(element, self.choices.pick([wanted, ()]), 1) for _ in range(2))
        if self.choices.chance(40):
            compare = self.add(memory.Load, pointer)
        self.pool.append(self.add(atomics.AtomicCas, pointer, compare, value, **self.memory_order()))

    def in_some_order(self) -> None:
        """What moves lanes by their values, stored."""
        element, wanted = self.choices.pick(ELEMENTS), self.random_shape()
        kind = self.choices.below(5)
        if kind == 4:
            element, wanted = I32, wanted[:1]
        make = (self.in_order, self.largest, self.picked, self.joined, self.counted)[kind]
        self.store(element, wanted, make(element, wanted, 2))

    def functions_of_one(self) -> None:
        """A few functions of the same lanes, each stored."""
        element, wanted = self.choices.pick([F32, F64, F16, BF16]), self.random_shape()
        lanes = self.load(element, wanted) if self.choices.chance(70) else self.expression(element, wanted, 1)
        for _ in range(self.choices.between(1, 4)):
            several = self.choices.chance(40)
            table = elementwise.FUNCTIONS_OF_SEVERAL if several else elementwise.FUNCTIONS
            cls = table[self.choices.pick(sorted(table))]
            others = [self.operand(element, wanted, 1) for _ in cls.operand_fields[1:]]
            self.store(element, wanted, self.add(cls, lanes, *others))

    def fence(self) -> None:
        self.builder.create(atomics.Fence)

    # ---- control flow ----

    def carried_types(self) -> list[Type]:
        """Types of what a loop carries, several of one type now and then."""
        types: list[Type] = []
        for _ in range(self.choices.below(4)):
            if types and self.choices.chance(50):
                types.append(types[-1])
            else:
                types.append(
                    with_shape(self.choices.pick(ELEMENTS), self.choices.pick([self.random_shape(), ()]))
                )
        return types

    def of_type(self, type_: Type, depth: int = 2) -> Value:
        element = element_type(type_)
        assert isinstance(element, ScalarType)
        return self.expression(element, shape_of(type_), depth)

    def block(self, region: Region, finish: Callable[[], None]) -> Region:
        """A region with a few statements, then what `finish` adds."""
        self.depth += 1
        recent, masks = list(self.recent), list(self.recent_masks)
        with self.inside(region):
            self.pool += region.args
            self.statements(self.choices.below(3))
            finish()
        self.recent, self.recent_masks = recent, masks
        self.depth -= 1
        return region

    def yielding(self, types: Sequence[Type], carried: Sequence[Value] = ()) -> Callable[[], None]:
        """End a region with new values, or with the carried ones in another order."""

        def finish() -> None:
            values = []
            for type_ in types:
                same = [c for c in carried if c.type == type_]
                values.append(
                    self.choices.pick(same) if same and self.choices.chance(45) else self.of_type(type_, 2)
                )
            self.builder.create(control.Yield, values)

        return finish

    def for_loop(self) -> None:
        types = self.carried_types()
        index = self.choices.pick([I32, I32, I32, I64, U32, I8])
        start, stop, step = self.choices.pick(
            [
                (0, 2, 1),
                (0, 3, 1),
                (0, 0, 1),
                (5, 0, -2),
                (0, 1, 1),
                (1, 7, 3),
                (3, 1, 1),
                (0, 4, 7),
                (2, -3, -1),
                (index.maximum - 3, index.maximum, 2),
            ]
        )
        if not index.is_signed and (step < 0 or stop < 0):
            start, stop, step = 0, 2, 1
        bounds = [self.scalar(index, [n]) for n in (start, stop, step)]
        inits = [self.of_type(t) for t in types]
        body = Region([index, *types], ["i", *(f"c{k}" for k in range(len(types)))])
        region = self.block(body, self.yielding(types, body.args[1:]))
        op = self.builder.create(control.For, *bounds, inits=inits, result_types=types, regions=[region])
        self.pool += op.results

    def walk(self) -> None:
        """A loop that carries pointers, and an accumulator."""
        element, wanted = self.choices.pick(ELEMENTS), self.choices.pick([self.random_shape(), ()])
        pointing = self.pointer_to(element)
        pointer = self.offset(pointing.value, self.affine(wanted) if wanted else self.scalar(I32, [0, 3]))
        acc_type = with_shape(element, wanted)
        body = Region([I32, pointer.type, acc_type], ["i", "q", "acc"])
        step = self.scalar(self.choices.pick([I32, I64]), [1, 0, 16, -1, 64])

        def finish() -> None:
            _, carried, acc = body.args
            mask = self.mask(wanted)
            value = self.add(memory.Load, carried, **self.masked(mask, element, wanted))
            self.pool.append(value)
            new = self.add(
                self.choices.pick([elementwise.Add, elementwise.Maximum, elementwise.Mul]), acc, value
            )
            if self.choices.chance(30):
                self.write(carried, new, mask)
            self.builder.create(control.Yield, self.offset(carried, step), new)

        trips = self.scalar(I32, [2, 1, 0, 3])
        zero, one = self.constant(0), self.constant(1)
        inits = [pointer, self.of_type(acc_type, 1)]
        region = self.block(body, finish)
        op = self.builder.create(
            control.For,
            zero,
            trips,
            one,
            inits=inits,
            result_types=[pointer.type, acc_type],
            regions=[region],
        )
        self.pool.append(op.results[1])

    def conditional(self) -> None:
        types = self.carried_types()
        condition = self.expression(I1, (), 2)
        regions = [self.block(Region(), self.yielding(types))]
        if types or self.choices.chance(50):
            regions.append(self.block(Region(), self.yielding(types)))
        op = self.builder.create(control.If, condition, result_types=types, regions=regions)
        self.pool += op.results

    def while_loop(self) -> None:
        """Counts down a value of its own; may stop early for another reason."""
        types = [I32, *self.carried_types()]
        inits = [self.scalar(I32, [2, 1, 0, 3]), *(self.of_type(t) for t in types[1:])]
        passed = [I32, *self.passed_types(types[1:])]
        before, after = Region(types, ["n", *(f"c{k}" for k in range(len(types) - 1))]), Region(passed)

        def test() -> None:
            go = self.add(elementwise.Compare, before.args[0], self.constant(0), predicate="gt")
            if self.choices.chance(30):
                go = self.add(elementwise.And, go, self.expression(I1, (), 1))
            values = []
            for type_ in passed[1:]:
                same = [c for c in before.args[1:] if c.type == type_]
                values.append(
                    self.choices.pick(same) if same and self.choices.chance(60) else self.of_type(type_, 1)
                )
            self.builder.create(control.Condition, go, [before.args[0], *values])

        def step() -> None:
            count = self.add(elementwise.Sub, after.args[0], self.constant(1))
            values = []
            for type_ in types[1:]:
                same = [c for c in after.args[1:] if c.type == type_]
                values.append(
                    self.choices.pick(same) if same and self.choices.chance(45) else self.of_type(type_, 2)
                )
            self.builder.create(control.Yield, [count, *values])

        regions = [self.block(before, test), self.block(after, step)]
        op = self.builder.create(control.While, inits, result_types=passed, regions=regions)
        self.pool += op.results

    def passed_types(self, carried: Sequence[Type]) -> list[Type]:
        return (
            list(carried) if not self.choices.chance(20) else [*carried, BlockType(I32, (self.extents[0],))]
        )
