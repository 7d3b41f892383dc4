"""What is loaded to know where other accesses go, or whether they happen: indices, page tables, masks.

A device computes addresses and bounds beside everything else, at no cost; what it has to load for that, it
has to wait for. Found here are the values of control flow that hand loaded addresses and masks on, from round
to round.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from blocklang.ir.core import Kernel, Operation, Value
from blocklang.ops.atomics import Atomic
from blocklang.ops.memory import Load, Store

Carriers = Mapping[Value, tuple[Value, ...]]


def ways(op: Operation) -> Iterator[Value]:
    """What says where an access goes, and whether: its pointer, and its mask if it has one."""
    for name in ("pointer", "mask"):
        value = getattr(op, name, None)
        if value is not None:
            yield value


def loaded_indices(kernel: Kernel, carriers: Carriers) -> set[Value]:
    """The values of control flow that accesses find their way by, and that come from loads.

    Args:
        carriers: for each value that control flow hands on, where it comes from.
    """
    loaded = _loaded(kernel, carriers)
    pending = [v for op in kernel.walk() if isinstance(op, (Load, Store, Atomic)) for v in ways(op)]
    seen: set[Value] = set()
    while pending:
        value = pending.pop()
        if value not in seen and value in loaded:
            seen.add(value)
            pending.extend(carriers.get(value, ()))
            if value.defining_op is not None:
                pending.extend(value.defining_op.operands)
    return {value for value in seen if value in carriers}


def _loaded(kernel: Kernel, carriers: Carriers) -> set[Value]:
    """Everything that depends on a load or an atomic operation."""
    found: set[Value] = set()
    before = -1
    while before != len(found):
        before = len(found)
        for op in kernel.walk():
            if isinstance(op, (Load, Atomic)) or not found.isdisjoint(op.operands):
                found.update(r for r in op.results if r not in carriers)
        found.update(v for v, sources in carriers.items() if not found.isdisjoint(sources))
    return found
