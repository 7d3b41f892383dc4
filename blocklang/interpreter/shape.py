"""The meaning of operations that rename lanes."""

from __future__ import annotations

import numpy as np

from blocklang.interpreter.dtypes import Array
from blocklang.interpreter.evaluation import Machine, evaluates
from blocklang.ops import shape as ops


@evaluates(ops.ExpandDims)
def expand_dims(op: ops.ExpandDims, machine: Machine) -> Array:
    return np.expand_dims(machine[op.source], op.axis)


@evaluates(ops.Broadcast)
def broadcast(op: ops.Broadcast, machine: Machine) -> Array:
    return np.broadcast_to(machine[op.source], op.shape)


@evaluates(ops.Reshape)
def reshape(op: ops.Reshape, machine: Machine) -> Array:
    return np.reshape(machine[op.source], op.shape)


@evaluates(ops.Slice)
def slice_axis(op: ops.Slice, machine: Machine) -> Array:
    lanes = op.start + op.step * np.arange(op.extent)
    return np.asarray(np.take(machine[op.source], lanes, axis=op.axis))


@evaluates(ops.Cat)
def cat(op: ops.Cat, machine: Machine) -> Array:
    return np.concatenate([machine[op.first], machine[op.second]], axis=op.axis)


@evaluates(ops.Trans)
def trans(op: ops.Trans, machine: Machine) -> Array:
    return np.transpose(machine[op.source], op.order)
