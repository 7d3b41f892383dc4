"""Random accesses to memory: offsets, masks, loads and stores.

An offset may be anything whose lanes stay near its pointer: memories are made as large as a dry run finds
them to be used. What depends on loaded data is clamped, or masked to a range.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from blocklang.ir.core import Value
from blocklang.ir.types import (
    I1,
    I8,
    I16,
    I32,
    I64,
    U8,
    U32,
    U64,
    PointerType,
    ScalarType,
    element_type,
    shape_of,
    with_shape,
)
from blocklang.ops import creation, elementwise, memory, shape
from tests.fuzz.choices import Choices
from tests.fuzz.expressions import INTEGERS, Expressions, Shape

_INVERSE_OF_3 = -1431655765  # 3 times this is 1 modulo 2^32


@dataclass
class ArrayPlan:
    """A memory to be: its element, and how many elements data-dependent accesses may reach."""

    element: ScalarType
    count: int
    fill: str
    seed: int
    misaligned: int


@dataclass
class Pointing:
    """A pointer argument: where it points."""

    value: Value
    array: int
    offset: int


class Addresses(Expressions):
    """Adds accesses to expressions.

    Attributes:
        arrays: the memories of the launch.
        pointers: the pointer arguments.
        recent: offsets used before, by shape, so that accesses meet.
    """

    def __init__(self, choices: Choices) -> None:
        super().__init__(choices)
        self.arrays: list[ArrayPlan] = []
        self.pointers: list[Pointing] = []
        self.recent: list[Value] = []
        self.recent_masks: list[Value] = []

    # ---- arrays ----

    def new_array(self, element: ScalarType) -> Pointing:
        fill = self.choices.pick(["small", "special", "ramp", "special"])
        misaligned = self.choices.pick([0, 0, 0, 1, 2, 4]) if element.bytes > 1 else self.choices.below(4)
        self.arrays.append(
            ArrayPlan(element, self.choices.pick([64, 7, 300]), fill, self.choices.below(1000), misaligned)
        )
        return self.new_pointer(len(self.arrays) - 1, 0)

    def new_pointer(self, array: int, offset: int) -> Pointing:
        element = self.arrays[array].element
        value = self.kernel.body.add_argument(PointerType(element), f"p{len(self.kernel.args)}")
        self.kernel.argument_attributes.append({})
        self.pointers.append(Pointing(value, array, offset))
        return self.pointers[-1]

    def pointer_to(self, element: ScalarType) -> Pointing:
        """A pointer argument: of an array used before, another name for one, or of a new one."""
        known = [p for p in self.pointers if self.arrays[p.array].element == element]
        if known and self.choices.chance(45):
            return self.choices.pick(known)
        if known and self.choices.chance(25):
            return self.new_pointer(self.choices.pick(known).array, self.choices.pick([0, 0, 1, 5, 64]))
        return self.new_array(element)

    # ---- offsets ----

    def scalar(self, element: ScalarType, numbers: list[int]) -> Value:
        """One of some numbers, as a constant or as an argument of the kernel."""
        number = self.choices.pick(numbers)
        return self.argument(element, number) if self.choices.chance(60) else self.constant(number, element)

    def integer(self) -> ScalarType:
        return self.choices.pick([I32, I32, I32, I64, U32, U64, I16])

    def affine(self, wanted: Shape) -> Value:
        """Sum of index times stride over the axes; row-major, column-major, or with strides of any kind."""
        element = self.integer()
        strides = self.strides(wanted)
        total: Value | None = None
        for axis, extent in enumerate(wanted):
            term = self.cast(self.arange_near_zero(extent), element)
            if strides[axis] != 1 or self.choices.chance(20):
                stride = strides[axis] if element.is_signed else abs(strides[axis])
                # Rows that overlap by a stride given at run time have no promised order: those are constants.
                regular = stride in (0, 1) or abs(strides[axis]) >= extent
                factor = self.scalar(element, [stride]) if regular else self.constant(stride, element)
                term = self.add(elementwise.Mul, term, factor)
            term = self.along(term, axis, wanted)
            total = term if total is None else self.add(elementwise.Add, total, term)
        assert total is not None
        return self.disguised(self.shifted(total, element), element)

    def arange_near_zero(self, extent: int) -> Value:
        start = self.choices.pick([0, 0, 0, 0, 1, 16])
        return self.add(creation.Arange, start=start, end=start + extent)

    def strides(self, wanted: Shape) -> list[int]:
        axes = list(range(len(wanted)))
        if self.choices.chance(30):
            axes.reverse()
        strides, step = [0] * len(wanted), 1
        for axis in reversed(axes):
            strides[axis] = step
            step *= wanted[axis] + self.choices.pick([0, 0, 0, 1, 3])
        for axis in axes:
            if self.choices.chance(12):
                strides[axis] = self.choices.pick([0, 2, -1, -strides[axis], 3, 7])
        return strides

    def shifted(self, offset: Value, element: ScalarType) -> Value:
        """Plus the program's place, or some other scalar."""
        kind = self.choices.below(5)
        if kind == 0:
            return offset
        if kind == 1:
            shift = self.scalar(element, [1, 0, 3, 8, 100] + ([-1] if element.is_signed else []))
        else:
            program = self.cast(self.add(creation.ProgramId, axis=self.choices.pick([0, 0, 1, 2])), element)
            step = max(math.prod(shape_of(offset.type)), 1)
            shift = self.add(elementwise.Mul, program, self.scalar(element, [step, 1, step // 2]))
        return self.add(elementwise.Add, *((offset, shift) if self.choices.chance(70) else (shift, offset)))

    def disguised(self, offset: Value, element: ScalarType) -> Value:
        """The same numbers by a way on which arithmetic wraps, or that takes a detour."""
        if not self.choices.chance(25):
            return offset
        kind = self.choices.below(5)
        if kind == 0:
            big = self.scalar(element, [element.maximum, element.maximum // 2 + 1])
            return self.add(elementwise.Sub, self.add(elementwise.Add, offset, big), big)
        if kind == 1 and element == I32:
            tripled = self.add(elementwise.Mul, offset, self.scalar(I32, [3]))
            return self.add(elementwise.Mul, tripled, self.scalar(I32, [_INVERSE_OF_3]))
        if kind == 2:
            return self.cast(offset, self.choices.pick([I8, U8, I16]))
        if kind == 3:
            divisor = self.scalar(element, [2, 3, 7, 64, 1])
            cls = self.choices.pick([elementwise.IntegerDiv, elementwise.Rem])
            return self.add(cls, offset, divisor)
        return self.cast(offset, self.choices.pick([I64, U32, U64, I32]))

    def modulo(self, wanted: Shape) -> Value:
        offset = self.affine(wanted)
        element = element_type(offset.type)
        assert isinstance(element, ScalarType)
        limit = math.prod(wanted)
        numbers = [n for n in (limit, limit - 1, limit + 5, limit // 2, 1, 3, 50) if 0 < n <= element.maximum]
        return self.add(elementwise.Rem, offset, self.scalar(element, numbers))

    def flat(self, wanted: Shape) -> Value:
        """A row of indices under another shape."""
        row = self.add(creation.Arange, start=0, end=math.prod(wanted))
        row = self.add(shape.Reshape, row, shape=wanted) if len(wanted) > 1 else row
        return self.shifted(row, I32)

    def clamped(self, wanted: Shape, count: int) -> Value:
        """Any integers, modulo the size of the array."""
        value = self.expression(self.choices.pick(INTEGERS), wanted, 2)
        wide = self.cast(value, self.choices.pick([U32, U64]))
        return self.add(elementwise.Rem, wide, self.constant(count, element_type(wide.type)))

    def gathered(self, wanted: Shape, count: int) -> Value:
        """Indices that are loaded."""
        source = self.pointer_to(self.choices.pick([I32, I64, U8, I16]))
        loaded = self.add(memory.Load, self.offset(source.value, self.affine(wanted)))
        wide = self.cast(loaded, U32)
        return self.add(elementwise.Rem, wide, self.constant(count, U32))

    def any_offset(self, wanted: Shape, count: int) -> tuple[Value, bool]:
        """An offset, and whether it depends on data and therefore lies in [0, count)."""
        if not wanted:
            number = self.expression(I32, (), 1) if self.choices.chance(30) else None
            if number is not None:
                return self.add(elementwise.Rem, self.cast(number, U32), self.constant(count, U32)), True
            program = self.add(creation.ProgramId, axis=0)
            return program if self.choices.chance(50) else self.scalar(I32, [0, 1, 5]), False
        known = [o for o in self.recent if shape_of(o.type) == wanted]
        if known and self.choices.chance(45):
            return self.neighbour(self.choices.pick(known)), False
        kind = self.choices.below(8)
        if kind >= 6:  # not for `recent`: another array may be smaller
            return (self.clamped if kind == 6 else self.gathered)(wanted, count), True
        offset = (self.affine, self.flat, self.affine, self.modulo, self.affine, self.affine)[kind](wanted)
        self.recent.append(offset)
        return offset, False

    def neighbour(self, offset: Value) -> Value:
        """An offset used before, or one that overlaps it: shifted, reversed."""
        element = element_type(offset.type)
        assert isinstance(element, ScalarType)
        kind = self.choices.below(6)
        if kind < 3:
            return offset
        if kind == 3:
            return self.add(
                elementwise.Add, offset, self.scalar(element, [1, 2, 8] + ([-1] if element.is_signed else []))
            )
        if kind == 4 and element.is_signed:
            last = self.scalar(element, [min(math.prod(shape_of(offset.type)) - 1, element.maximum)])
            return self.add(elementwise.Sub, last, offset)
        return self.add(elementwise.Xor, offset, self.constant(1, element))

    # ---- masks ----

    def mask(self, wanted: Shape) -> Value | None:
        known = [m for m in self.recent_masks if shape_of(m.type) == wanted]
        if known and self.choices.chance(40):
            return self.choices.pick(known)
        kind = self.choices.below(9)
        if kind <= 1:
            return None
        if not wanted or kind == 2:
            return self.expression(I1, self.choices.pick([wanted, ()]), 2)
        if kind == 3:
            return self.constant(self.choices.pick([1, 0]), with_shape(I1, wanted))
        mask = self.range_mask(wanted) if kind < 8 or len(wanted) < 2 else self.causal_mask(wanted)
        if self.choices.chance(40):
            cls = self.choices.pick(
                [elementwise.And, elementwise.And, elementwise.And, elementwise.Or, elementwise.Xor]
            )
            mask = self.add(
                cls,
                mask,
                self.range_mask(wanted) if self.choices.chance(70) else self.expression(I1, wanted, 1),
            )
        self.recent_masks.append(mask)
        return mask

    def range_mask(self, wanted: Shape) -> Value:
        """lo <= index < hi along one axis, either side alone, in some spelling."""
        axis = self.choices.below(len(wanted))
        index, element = self.axis_index(wanted[axis])
        extent = wanted[axis]
        high = [
            n
            for n in (extent // 2, extent, 0, 1, extent - 1, extent + 3, -2, element.maximum, element.minimum)
            if element.minimum <= n <= element.maximum
        ]
        low = [
            n
            for n in (1, 0, extent // 3, extent, -1, element.minimum)
            if element.minimum <= n <= element.maximum
        ]
        kind = self.choices.below(4)
        narrow = self.choices.chance(70)
        spread = self.along(index, axis, wanted) if not narrow else index
        if kind == 0:
            mask = self.compare_spelled(spread, self.scalar(element, high), self.choices.pick(["lt", "le"]))
        elif kind == 1:
            mask = self.compare_spelled(spread, self.scalar(element, low), self.choices.pick(["ge", "gt"]))
        elif kind == 2:
            below = self.compare_spelled(spread, self.scalar(element, high), self.choices.pick(["lt", "le"]))
            above = self.compare_spelled(spread, self.scalar(element, low), self.choices.pick(["ge", "gt"]))
            mask = self.add(elementwise.And, below, above)
        else:
            mask = self.compare_spelled(
                spread, self.scalar(element, high), self.choices.pick(["eq", "ne", "lt"])
            )
        return self.along(mask, axis, wanted) if narrow else mask

    def axis_index(self, extent: int) -> tuple[Value, ScalarType]:
        """An index along an axis, as people write it: plain, plus the program's place, times something."""
        element = self.choices.pick([I32, I32, I32, I64, U32, I8])
        index = self.cast(self.add(creation.Arange, start=0, end=extent), element)
        kind = self.choices.below(6)
        if kind == 1:
            program = self.cast(self.add(creation.ProgramId, axis=0), element)
            index = self.add(
                elementwise.Add,
                index,
                self.add(elementwise.Mul, program, self.scalar(element, [min(extent, element.maximum)])),
            )
        elif kind == 2:
            numbers = [n for n in (1, 3, element.maximum, element.maximum - 2) if n <= element.maximum]
            cls = self.choices.pick([elementwise.Add, elementwise.Sub])
            index = self.add(cls, index, self.scalar(element, numbers))
        elif kind == 3:
            numbers = [2, 3, 0, element.maximum // 4, 64] + ([-1] if element.is_signed else [])
            index = self.add(
                elementwise.Mul, index, self.scalar(element, [n for n in numbers if n <= element.maximum])
            )
        elif kind == 4:
            index = self.add(elementwise.Sub, self.scalar(element, [min(extent - 1, element.maximum)]), index)
        return index, element

    def compare_spelled(self, lhs: Value, rhs: Value, predicate: str) -> Value:
        """A comparison, with its sides exchanged now and then."""
        if self.choices.chance(25):
            mirrored = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}.get(predicate, predicate)
            return self.add(elementwise.Compare, rhs, lhs, predicate=mirrored)
        return self.add(elementwise.Compare, lhs, rhs, predicate=predicate)

    def causal_mask(self, wanted: Shape) -> Value:
        """i >= j, or another comparison of the indices along two axes, shifted."""
        first, second = self.choices.pick([(0, 1), (1, 0), (len(wanted) - 1, 0)])
        i = self.add(creation.Arange, start=0, end=wanted[first])
        j = self.add(creation.Arange, start=0, end=wanted[second])
        if self.choices.chance(40):
            j = self.add(elementwise.Add, j, self.scalar(I32, [1, 0, -1, 5]))
        predicate = self.choices.pick(["ge", "lt", "gt", "le"])
        return self.add(
            elementwise.Compare,
            self.along(i, first, wanted),
            self.along(j, second, wanted),
            predicate=predicate,
        )

    # ---- accesses ----

    def address(self, pointing: Pointing, wanted: Shape) -> tuple[Value, Value | None]:
        """A pointer (block) and a mask for an access."""
        count = self.arrays[pointing.array].count
        if self.choices.chance(12) and wanted:
            return self.wild(pointing, wanted)
        offset, clamped = self.any_offset(wanted, count)
        pointer = pointing.value
        if self.choices.chance(20) and not clamped:
            pointer = self.offset(pointer, self.scalar(self.choices.pick([I32, I64]), [2, 0, 17, -1]))
        if wanted and self.choices.chance(15):
            pointer = self.fitted(pointer, wanted)
        return self.offset(pointer, offset), self.mask(wanted)

    def wild(self, pointing: Pointing, wanted: Shape) -> tuple[Value, Value]:
        """Any integers as offsets, with a mask for those that lie in the array."""
        element = self.choices.pick([I32, I64, U32])
        if self.choices.chance(50):
            offset = self.cast(self.affine(wanted), element)
        else:
            offset = self.expression(element, wanted, 2)
        high = self.constant(self.arrays[pointing.array].count, element)
        below = self.compare_spelled(offset, high, "lt")
        above = self.compare_spelled(offset, self.constant(0, element), "ge")
        return self.offset(pointing.value, offset), self.add(elementwise.And, below, above)

    def load(self, element: ScalarType, wanted: Shape) -> Value:
        pointing = self.pointer_to(element)
        pointer, mask = self.address(pointing, wanted)
        value = self.add(memory.Load, pointer, **self.masked(mask, element, wanted), **self.flags())
        self.pool.append(value)
        return value

    def flags(self) -> dict[str, Any]:
        return {"volatile": True} if self.choices.chance(4) else {}

    def masked(self, mask: Value | None, element: ScalarType, wanted: Shape) -> dict[str, Any]:
        if mask is None:
            return {}
        if not self.choices.chance(60):
            return {"mask": mask}
        shape_ = self.choices.pick([(), wanted])
        other = (
            self.constant(self.number(element), with_shape(element, shape_))
            if self.choices.chance(70)
            else self.expression(element, shape_, 1)
        )
        return {"mask": mask, "other": other}

    def store(self, element: ScalarType, wanted: Shape, value: Value | None = None) -> None:
        pointing = self.pointer_to(element)
        pointer, mask = self.address(pointing, wanted)
        value = self.operand(element, wanted, 3) if value is None else value
        self.write(pointer, value, mask)

    def write(self, pointer: Value, value: Value, mask: Value | None) -> None:
        named: dict[str, Any] = {} if mask is None else {"mask": mask}
        self.builder.create(memory.Store, pointer, value, **named)

    def makers(self, element: ScalarType, wanted: Shape) -> list[Any]:
        makers = super().makers(element, wanted)
        if not self.in_combiner:
            makers = [*makers, *[self.loaded] * 4]
        return makers

    def loaded(self, element: ScalarType, wanted: Shape, depth: int) -> Value:
        return self.load(element, wanted)
