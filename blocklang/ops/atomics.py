"""Atomic operations on global memory, and the fence.

Each reads an element and writes it in one step that no other program can come between. Live lanes take effect
one after another in ascending row-major order, so lanes at one address see each other.
"""

from __future__ import annotations

from blocklang.ir.core import Operation
from blocklang.ir.declaration import Effect, attribute, operand, operation, result
from blocklang.ir.types import PointerType, Type, element_type, shape_of, with_shape
from blocklang.ops.constraints import AnyLanes, Bool, Pointer
from blocklang.ops.memory import Load, pointee

KINDS = ("add", "max", "min", "and", "or", "xor", "xchg")
SEMANTICS = ("acq_rel", "acquire", "release", "relaxed")
SCOPES = ("gpu", "cta", "sys")

_EFFECTS = frozenset({Effect.READ, Effect.WRITE, Effect.FENCE})


def _old_type(op: Operation) -> Type:
    pointers = op.segment("pointer")[0].type
    return with_shape(pointee(pointers), shape_of(pointers))


class Atomic(Operation):
    """Base of the operations that change memory in one step and result in what stood there."""

    effects = _EFFECTS

    def verify_op(self) -> None:
        """Values and mask are scalars or of the pointers' shape; values have the element type."""
        pointers = self.segment("pointer")[0].type
        pointer = element_type(pointers)
        assert isinstance(pointer, PointerType)
        if pointer.const:
            raise ValueError(f"{self.name} through a const pointer")
        for value in self.operands:
            if shape_of(value.type) not in ((), shape_of(pointers)):
                raise ValueError("values and mask must be scalars or have the pointers' shape")
        for name in ("value", "compare"):
            if name in self.segments and element_type(self.segment(name)[0].type) != pointer.element:
                raise ValueError(f"{name} must have the element type {pointer.element}")


@operation("atomic_rmw")
class AtomicRmw(Atomic):
    """Replace the element at each address by a function of it and the lane's value, in one step; the result
    is what stood there. Where `mask` is false memory is not touched and the lane is 0.

    `add` wraps for integers, and rounds as the operation `add` does for floats. `max` and `min` of floats
    go by the bits: -NaN < -inf < ... < -0.0 < +0.0 < ... < inf < +NaN. Elements are integers of 32 or 64
    bits, f32 or f64; f16 and bf16 can only be added to, floats have no `and`, `or` and `xor`.

    %old = atomic_rmw %q, %v, mask=%m, kind="add" : block<128xf32>
    """

    pointer = operand(Pointer)
    value = operand(AnyLanes)
    mask = operand(Bool, optional=True)
    kind = attribute(str, choices=KINDS)
    sem = attribute(str, default="acq_rel", choices=SEMANTICS)
    scope = attribute(str, default="gpu", choices=SCOPES)
    old = result(_old_type)

    def verify_op(self) -> None:
        super().verify_op()
        element = pointee(self.pointer.type)
        if element.bits < 32 and not (element.is_float and element.bits == 16 and self.kind == "add"):
            raise ValueError(f"atomic {self.kind} of {element}")
        if element.is_float and self.kind in ("and", "or", "xor"):
            raise ValueError(f"atomic {self.kind} of {element}")


@operation("atomic_cas")
class AtomicCas(Atomic):
    """Store `value` where the element's bits equal those of `compare`, in one step; the result is what stood
    there, stored or not. Elements have 16, 32 or 64 bits.

    %old = atomic_cas %q, %c, %v : block<128xi32>
    """

    pointer = operand(Pointer)
    compare = operand(AnyLanes)
    value = operand(AnyLanes)
    sem = attribute(str, default="acq_rel", choices=SEMANTICS)
    scope = attribute(str, default="gpu", choices=SCOPES)
    old = result(_old_type)

    def verify_op(self) -> None:
        super().verify_op()
        if pointee(self.pointer.type).bits not in (16, 32, 64):
            raise ValueError(f"atomic_cas of {pointee(self.pointer.type)}")


@operation("fence")
class Fence(Operation):
    """No access to memory that the launch writes moves across it, in either direction.

    fence
    """

    effects = frozenset({Effect.FENCE})


def is_fence(op: Operation) -> bool:
    """True if no access to written memory may move across `op`: atomics, fences, volatile loads."""
    return Effect.FENCE in op.effects or (isinstance(op, Load) and op.volatile)
