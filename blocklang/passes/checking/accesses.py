"""The operations on memory that the checks look at, where something can be reported."""

from __future__ import annotations

from collections.abc import Iterator

from blocklang.analysis.pointer_origins import pointer_origins
from blocklang.ir.core import Kernel, Operation, Region, Value
from blocklang.ops.atomics import Atomic
from blocklang.ops.control import For, If, While
from blocklang.ops.memory import Load, Store


def accesses_of(region: Region) -> Iterator[Operation]:
    """Loads, stores and atomics; those that a function makes for every lane are left out."""
    for op in region.ops:
        if isinstance(op, (Load, Store, Atomic)):
            yield op
        elif isinstance(op, (If, For, While)):
            for inner in op.regions:
                yield from accesses_of(inner)


def pointer_of(op: Operation) -> Value:
    """The address, or block of addresses, of an access."""
    pointer: Value = op.segment("pointer")[0]
    return pointer


def mask_of(op: Operation) -> Value | None:
    """The mask of an access; None if all its lanes are live."""
    values = op.segment("mask") if "mask" in op.segments else []
    return values[0] if values else None


def action_of(op: Operation) -> str:
    """What messages call an access."""
    return "atomic" if isinstance(op, Atomic) else op.name


def arrays_behind(kernel: Kernel, pointer: Value) -> list[Value] | None:
    """The pointer arguments that an address may come from, in their order; None if it may lie anywhere."""
    origins = pointer_origins(pointer)
    return None if origins is None else [a for a in kernel.args if a in origins]
