"""The meaning of operations on global memory."""

from __future__ import annotations

import numpy as np

from blocklang.interpreter.dtypes import BOOL, Array, memory_dtype_of
from blocklang.interpreter.evaluation import Machine, evaluates
from blocklang.ops import memory as ops


@evaluates(ops.Offset)
def offset(op: ops.Offset, machine: Machine) -> Array:
    size = np.uint64(ops.pointee(op.pointer.type).bytes)
    return np.asarray(np.add(machine[op.pointer], np.multiply(machine[op.offset].astype(np.uint64), size)))


@evaluates(ops.Load)
def load(op: ops.Load, machine: Machine) -> Array:
    element = ops.pointee(op.pointer.type)
    mask = machine.optional(op.mask)
    loaded = machine.memory.load(
        machine[op.pointer], machine.live(mask), memory_dtype_of(element), op.location
    )
    if element.name == "i1":
        loaded = np.asarray(loaded != 0)
    return loaded if op.other is None else np.where(mask, loaded, machine[op.other])


@evaluates(ops.Store)
def store(op: ops.Store, machine: Machine) -> None:
    value = machine[op.value]
    if value.dtype == BOOL:
        value = value.astype(np.uint8)
    live = machine.live(machine.optional(op.mask))
    machine.memory.store(machine[op.pointer], value, live, op.location)
