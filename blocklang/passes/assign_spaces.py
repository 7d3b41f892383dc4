"""Assign every buffer to a memory space of a device.

    placed @k(%x: ptr<f32>) {
      %a = buffer offset=0 : buffer<4x8xf32>
      %b = buffer offset=640, panel=8 : buffer<8x8xf32>
      %c = buffer offset=1408 : buffer<4x8xf32>
      contract_buffers %a, %b, %c, rows=4, columns=8
      return
    }

becomes

    placed @k(%x: ptr<f32>) {
      %a = buffer offset=0 : buffer<4x8xf32>
      %b = buffer offset=640, panel=8 : buffer<8x8xf32>
      %c = buffer space="accumulator", offset=1408 : buffer<4x8xf32>
      contract_buffers %a, %b, %c, rows=4, columns=8
      return
    }

What a matrix product adds to is in `accumulator`, everything else in `scratch`. Offsets stay those of the
host's one arena, which all spaces share there: on the device each space has a place of its own
(`blocklang.emulation.placement`).

Requires: level placed, memory planned; a device with a space called accumulator.
Keeps: everything but spaces.
"""

from __future__ import annotations

from blocklang.ir.core import Kernel, Value
from blocklang.ops.tile import BufferOp, ContractBuffers, View


def assign_spaces(kernel: Kernel) -> None:
    """Set the space of every buffer."""
    assert kernel.level == "placed"
    for op in kernel.walk():
        if isinstance(op, ContractBuffers):
            buffer_behind(op.acc).attributes["space"] = "accumulator"


def buffer_behind(value: Value) -> BufferOp:
    """The buffer that a value of buffer type is, or is a view of."""
    op = value.defining_op
    while isinstance(op, View):
        op = op.buffer.defining_op
    assert isinstance(op, BufferOp)
    return op
