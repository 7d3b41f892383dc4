"""What checks remember of every element: arguments with a word per element, and where a lane's word lies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from blocklang.ir.builder import Builder
from blocklang.ir.core import Kernel, Value
from blocklang.ir.types import I1, I64, PointerType, ScalarType, Type, element_type, shape_of, with_element
from blocklang.ops.creation import Splat
from blocklang.ops.elementwise import And, Bitcast, Cast, Compare, IntegerDiv, Sub
from blocklang.ops.faults import CHECKS_FIRST, CHECKS_STATE, HIGH_OF, LOW_OF
from blocklang.ops.memory import Load, Offset, Store, pointee
from blocklang.ops.shape import ShapeOperation
from blocklang.passes.checking.reports import among, shaped
from blocklang.passes.uniform import make_constant

_WORD = PointerType(I64)
_FLAG = PointerType(I1)


class SystemArguments:
    """Arguments that the user did not write, found by their attributes or made when first asked for."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def of(self, what: str, type_: Type, array: str = "") -> Value:
        """The argument that is `what` of an array."""
        pairs = zip(self.kernel.args, self.kernel.argument_attributes, strict=True)
        for argument, attributes in pairs:
            if attributes.get(what) == array:
                return argument
        name = what.removesuffix("_of")
        argument = self.kernel.body.add_argument(type_, f"{array}.{name}" if array else name)
        self.kernel.argument_attributes.append({what: array})
        return argument

    def words(self, what: str, array: Value) -> Value:
        """The address of the word that belongs to the element at which an array starts."""
        return self.of(what, _WORD, array.name)

    def flags(self, what: str, array: Value) -> Value:
        """As `words`, of flags of one byte."""
        return self.of(what, _FLAG, array.name)

    def end(self, what: str, array: Value) -> Value:
        """The lowest address of an array, or the one behind its highest."""
        return self.of(what, I64, array.name)

    @property
    def first(self) -> Value:
        """The number of the launch's first program, counted over all launches."""
        return self.of(CHECKS_FIRST, I64)

    @property
    def state(self) -> Value:
        """The address of the state of a launch's checks."""
        return self.of(CHECKS_STATE, _WORD)


@dataclass(frozen=True)
class Elements:
    """The lanes of an access that lie in one array.

    Attributes:
        pointer: of the access.
        array: the argument.
        live: the lanes that are live and lie in the array; None if all do.
    """

    builder: Builder
    pointer: Value
    array: Value
    live: Value | None

    def words(self, plane: Value) -> Value:
        """The addresses of the lanes' words, of which `plane` is that of the array's first element."""
        moved = _moved(self.builder, self.pointer, self.array, plane)
        return self._by_distance(plane) if moved is None else moved

    def load(self, where: Value) -> Value:
        """The words at addresses; those of other lanes are 0."""
        mask = [] if self.live is None else [self.live]
        return self.builder.value(Load, where, mask=mask)

    def store(self, where: Value, word: Value) -> None:
        """Leave a word, or words, at addresses."""
        mask = [] if self.live is None else [self.live]
        self.builder.create(Store, where, word, mask=mask)

    def _by_distance(self, plane: Value) -> Value:
        builder, shape = self.builder, shape_of(self.pointer.type)
        size = pointee(self.array.type).bytes
        here = builder.value(Cast, self.pointer, result_types=[with_element(self.pointer.type, I64)])
        start = builder.value(Cast, self.array, result_types=[I64])
        distance = builder.value(Sub, here, shaped(builder, start, shape))
        index = builder.value(IntegerDiv, distance, make_constant(builder, size, distance.type))
        return builder.value(Offset, shaped(builder, plane, shape), index)


def elements_of(
    arguments: SystemArguments,
    builder: Builder,
    pointer: Value,
    mask: Value | None,
    arrays: Sequence[Value],
) -> list[Elements]:
    """Of each array that the lanes of an access may lie in, those that do."""
    if len(arrays) == 1:
        return [Elements(builder, pointer, arrays[0], mask)]
    shape = shape_of(pointer.type)
    address = builder.value(Cast, pointer, result_types=[with_element(pointer.type, I64)])
    found = []
    for array in arrays:
        low, high = (shaped(builder, arguments.end(end, array), shape) for end in (LOW_OF, HIGH_OF))
        inside = builder.value(
            And,
            builder.value(Compare, address, low, predicate="ge"),
            builder.value(Compare, address, high, predicate="lt"),
        )
        found.append(Elements(builder, pointer, array, among(builder, inside, mask)))
    return found


def _moved(builder: Builder, pointer: Value, array: Value, plane: Value) -> Value | None:
    """The operations behind a pointer once more, from `plane` instead of `array`, so that what is affine
    stays affine; None where an operation does not count in elements of the array.
    """
    if pointer is array:
        return plane
    size = pointee(array.type).bytes
    owner = pointer.owner
    match owner:
        case Offset() if pointee(owner.pointer.type).bytes == size:
            source = _moved(builder, owner.pointer, array, plane)
            return None if source is None else builder.value(Offset, source, owner.offset)
        case Cast() | Bitcast() if _is_pointer(owner.source) and pointee(owner.source.type).bytes == size:
            return _moved(builder, owner.source, array, plane)
        case Splat():
            source = _moved(builder, owner.source, array, plane)
            if source is None:
                return None
            element = element_type(plane.type)
            assert isinstance(element, (ScalarType, PointerType))
            return builder.value(Splat, source, result_types=[with_element(pointer.type, element)])
        case ShapeOperation() if len(owner.operands) == 1:
            source = _moved(builder, owner.source, array, plane)
            return None if source is None else builder.value(type(owner), source, **owner.attributes)
    return None


def _is_pointer(value: Value) -> bool:
    return isinstance(element_type(value.type), PointerType)
