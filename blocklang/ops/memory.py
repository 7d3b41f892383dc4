"""Operations on global memory: the user's arrays, reached by pointers."""

from __future__ import annotations

from blocklang.ir.core import Operation
from blocklang.ir.declaration import Effect, attribute, operand, operation, result
from blocklang.ir.types import PointerType, ScalarType, Type, element_type, shape_of, with_shape
from blocklang.ops.constraints import AnyLanes, Arithmetic, Bool, Integer, Pointer, common_shape
from blocklang.ops.elementwise import Elementwise


def _offset_type(op: Operation) -> Type:
    return with_shape(element_type(op.segment("pointer")[0].type), common_shape(op))


@operation("offset")
class Offset(Elementwise):
    """The address `offset` elements past a pointer. The offset widens to 64 bits by its own signedness; the
    sum wraps modulo 2^64.

    %q = offset %p, %i : block<128xptr<f32>>
    """

    pointer = operand(Pointer)
    offset = operand(Integer)
    output = result(_offset_type)


def _loaded_type(op: Operation) -> Type:
    pointer = element_type(op.segment("pointer")[0].type)
    assert isinstance(pointer, PointerType)
    return with_shape(pointer.element, shape_of(op.segment("pointer")[0].type))


CACHE_MODIFIERS_LOAD = ("", ".ca", ".cg", ".cv")
CACHE_MODIFIERS_STORE = ("", ".wb", ".cg", ".cs", ".wt")
EVICTION_POLICIES = ("", "evict_first", "evict_last", "evict_normal")


@operation("load")
class Load(Elementwise):
    """The elements at the addresses. Where `mask` is false memory is not touched and the lane is `other`,
    or 0 without one. An i1 element is one byte, read as `!= 0`. `mask` and `other` are scalars or of the
    pointers' shape.

    %v = load %q, mask=%m, other=%o : block<128xf32>
    """

    pointer = operand(Pointer)
    mask = operand(Bool, optional=True)
    other = operand(Arithmetic, optional=True)
    cache_modifier = attribute(str, default="", choices=CACHE_MODIFIERS_LOAD)
    eviction_policy = attribute(str, default="", choices=EVICTION_POLICIES)
    volatile = attribute(bool, default=False)
    output = result(_loaded_type)
    effects = frozenset({Effect.READ})

    def verify_op(self) -> None:
        shape = shape_of(self.pointer.type)
        for value in self.operands:
            if shape_of(value.type) not in ((), shape):
                raise ValueError("mask and other must be scalars or have the pointers' shape")
        if self.other is not None:
            if self.mask is None:
                raise ValueError("other needs a mask")
            if element_type(self.other.type) != element_type(self.result.type):
                raise ValueError("other must have the element type")


@operation("store")
class Store(Operation):
    """Write the values to the addresses where `mask` holds; other memory is not touched. An i1 is stored as
    a byte 0 or 1. If lanes share an address, the last one in row-major order wins.

    store %q, %v, mask=%m
    """

    pointer = operand(Pointer)
    value = operand(AnyLanes)
    mask = operand(Bool, optional=True)
    cache_modifier = attribute(str, default="", choices=CACHE_MODIFIERS_STORE)
    eviction_policy = attribute(str, default="", choices=EVICTION_POLICIES)
    effects = frozenset({Effect.WRITE})

    def verify_op(self) -> None:
        pointer = element_type(self.pointer.type)
        assert isinstance(pointer, PointerType)
        if pointer.const:
            raise ValueError("cannot store through a const pointer")
        if element_type(self.value.type) != pointer.element:
            raise ValueError(f"cannot store {self.value.type} through {self.pointer.type}")
        shape = shape_of(self.pointer.type)
        for value in self.operands:
            if shape_of(value.type) not in ((), shape):
                raise ValueError("value and mask must be scalars or have the pointers' shape")


def pointee(type_: Type) -> ScalarType:
    """The element type behind a pointer or block of pointers."""
    pointer = element_type(type_)
    assert isinstance(pointer, PointerType)
    return pointer.element
