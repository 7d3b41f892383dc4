"""Rules of `canonicalise` for addresses, loads and stores: offsets of 0 and masks that are known.

    %true = constant value=true : i1
    %false = constant value=false : i1
    %q = offset %p, %zero : ptr<f32>
    %v = load %q, mask=%true, other=%o : f32
    store %q, %v, mask=%false

becomes

    %v = load %p : f32
"""

from __future__ import annotations

from blocklang.ir.builder import Builder
from blocklang.ir.core import Operation
from blocklang.ops.atomics import AtomicRmw
from blocklang.ops.memory import Load, Offset, Store
from blocklang.passes.uniform import constant_of, make_constant, replace

MEMORY = (Offset, Load, Store, AtomicRmw)


def simplify_memory(op: Operation) -> bool:
    """Apply the first rule that fits an offset, load or store. True if one did."""
    match op:
        case Offset() if constant_of(op.offset) == 0:
            replace(op, op.pointer)
        case Load() if op.mask is not None and constant_of(op.mask) is not None:
            _load_without_mask(op)
        case Store() if op.mask is not None and constant_of(op.mask) is not None:
            _store_without_mask(op)
        case AtomicRmw() if op.mask is not None and constant_of(op.mask):
            op.set_segment("mask", [])
        case _:
            return False
    return True


def _load_without_mask(op: Load) -> None:
    if constant_of(op.mask):
        op.set_segment("other", [])
        op.set_segment("mask", [])
    elif op.other is not None:
        replace(op, op.other)
    else:
        replace(op, make_constant(Builder.before_op(op), 0, op.result.type))


def _store_without_mask(op: Store) -> None:
    if constant_of(op.mask):
        op.set_segment("mask", [])
    else:
        op.erase()
