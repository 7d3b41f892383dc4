"""The meaning of events: a print writes to `sys.stdout` at once, a failed assertion or a fault is raised at
once.

Programs run in ascending order, so the lines have the order that a compiled launch gives them.
"""

from __future__ import annotations

import sys

import numpy as np

from blocklang.diagnostics import InterpretedCheckError
from blocklang.interpreter.buffers import Buffer
from blocklang.interpreter.dtypes import Array
from blocklang.interpreter.evaluation import Machine, evaluates
from blocklang.ir.types import element_type, shape_of
from blocklang.ops import events as ops
from blocklang.ops.faults import fault_error, program_note


@evaluates(ops.DevicePrint)
def device_print(op: ops.DevicePrint, machine: Machine) -> None:
    if op.value is None:
        lines = ops.lines_of(machine.program, op.title, None, (), (), hex=op.hex)
    else:
        data = machine[op.value]
        elements = data.matrix() if isinstance(data, Buffer) else data
        lines = ops.lines_of(
            machine.program,
            op.title,
            element_type(op.value.type),
            shape_of(op.value.type),
            _bits(elements),
            hex=op.hex,
        )
    for line in lines:
        sys.stdout.write(line + "\n")


def _bits(elements: Array) -> list[int]:
    flat = np.ascontiguousarray(elements).reshape(-1)
    return [int(bits) for bits in flat.view(f"u{flat.dtype.itemsize}")]


@evaluates(ops.DeviceAssert)
def device_assert(op: ops.DeviceAssert, machine: Machine) -> None:
    lane = int(machine[op.failing])
    if lane < op.lanes:
        raise ops.assertion_failure(op.message, op.location, machine.program, lane, op.shape)


@evaluates(ops.ReportFault)
def report_fault(op: ops.ReportFault, machine: Machine) -> None:
    error = fault_error(
        InterpretedCheckError,
        op.kind,
        op.action,
        ops.index_of(int(machine[op.failing]), op.shape),
        op.size,
        [int(machine[value]) for value in op.details],
        [extent for extent in machine.memory.extents if extent.name in op.arrays],
        op.location,
    )
    error.notes.append(program_note(machine.program))
    raise error
