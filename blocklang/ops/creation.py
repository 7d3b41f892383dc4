"""Operations that make values from nothing but constants and the program's place in the grid."""

from __future__ import annotations

from blocklang.ir.core import Operation
from blocklang.ir.declaration import attribute, operand, operation, result
from blocklang.ir.types import I32, BlockType, PointerType, element_type, shape_of
from blocklang.ops.constraints import ScalarOrPointer


@operation("constant")
class Constant(Operation):
    """A number known at compile time, the same in every lane; a float is rounded to the type. For i1: true
    or false.

    %c = constant value=1.5 : block<128xf32>
    """

    value = attribute((bool, int, float))
    output = result()

    def verify_op(self) -> None:
        element = element_type(self.result.type)
        if isinstance(element, PointerType):
            if self.value != 0:
                raise ValueError("the only constant pointer is 0")
        elif element.is_float != isinstance(self.value, float) or (element.bits == 1) != isinstance(
            self.value, bool
        ):
            raise ValueError(f"{self.value!r} is not a constant of type {element}")
        elif element.is_integer and not element.minimum <= self.value <= element.maximum:
            raise ValueError(f"{self.value} is out of the range of {element}")


@operation("program_id")
class ProgramId(Operation):
    """This program's index along a grid axis.

    %pid = program_id axis=0 : i32
    """

    axis = attribute(int, choices=(0, 1, 2))
    output = result(lambda op: I32)


@operation("num_programs")
class NumPrograms(Operation):
    """The grid's extent along an axis.

    %n = num_programs axis=0 : i32
    """

    axis = attribute(int, choices=(0, 1, 2))
    output = result(lambda op: I32)


@operation("arange")
class Arange(Operation):
    """The integers start, start + 1, ..., end - 1.

    %i = arange start=0, end=128 : block<128xi32>
    """

    start = attribute(int)
    end = attribute(int)
    output = result(lambda op: BlockType(I32, (op.end - op.start,)))

    def verify_op(self) -> None:
        if not I32.minimum <= self.start < self.end <= I32.maximum + 1:
            raise ValueError("arange needs int32 bounds with start < end")


@operation("splat")
class Splat(Operation):
    """A block with one scalar in every lane.

    %b = splat %s : block<128xf32>
    """

    source = operand(ScalarOrPointer)
    output = result()

    def verify_op(self) -> None:
        if not shape_of(self.result.type) or element_type(self.result.type) != self.source.type:
            raise ValueError("splat makes a block of its operand's type")
