"""The meaning of operations that make values from constants and the program's place in the grid."""

from __future__ import annotations

import numpy as np

from blocklang.interpreter.dtypes import Array, constant, dtype_of
from blocklang.interpreter.evaluation import Machine, evaluates
from blocklang.ir.types import shape_of
from blocklang.ops import creation as ops


@evaluates(ops.Constant)
def constant_lanes(op: ops.Constant, machine: Machine) -> Array:
    type_ = op.result.type
    return np.broadcast_to(constant(op.value, dtype_of(type_)), shape_of(type_))


@evaluates(ops.ProgramId)
def program_id(op: ops.ProgramId, machine: Machine) -> Array:
    return np.array(machine.program[op.axis], np.int32)


@evaluates(ops.NumPrograms)
def num_programs(op: ops.NumPrograms, machine: Machine) -> Array:
    return np.array(machine.grid[op.axis], np.int32)


@evaluates(ops.Arange)
def arange(op: ops.Arange, machine: Machine) -> Array:
    return np.arange(op.start, op.end, dtype=np.int64).astype(np.int32)


@evaluates(ops.Splat)
def splat(op: ops.Splat, machine: Machine) -> Array:
    return np.broadcast_to(machine[op.source], shape_of(op.result.type))
