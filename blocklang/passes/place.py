"""Place abstract Tile IR for a device: apply the schedule.

Before (abstract), one operation at a time; after (placed), fused loops over lanes:

    tile @scale(%p: ptr<f32>) {
      %i = iterate space=[64] : block<64xi32> { ... }
      %q = iterate %i, ... : block<64xptr<f32>> { ... }
      %v = iterate %q, ... : block<64xf32> { ... load ... }
      iterate %q, %v, ... { ... store ... }
      return
    }

    placed @scale(%p: ptr<f32>) {
      lanes %c0, %c64, width=64 {
        (%d0: i64):
        %a = cast %d0 : i32
        %b = offset %p, %a : ptr<f32>
        %c = load %b : f32
        store %b, %c
        yield
      }
      return
    }

Every root (a store, an atomic, a reduction, a scan, a sort, a matrix product, a value carried by control
flow) becomes a nest of `group` loops around one `lanes` loop. What it reads is computed inside,
recursively, at the lane's indices, except for values that the schedule keeps: those live in buffers. A kept
value is written by the first loop that reads it lane by lane, or else by a loop of its own.

Requires: level tile; a schedule for exactly this kernel. Keeps: the order of effects, and which memory each
of them touches.
"""

from __future__ import annotations

from blocklang.analysis.memory_hazards import has_atomic
from blocklang.ir.core import Kernel, Operation, Region
from blocklang.ir.rewriting import clone_operation
from blocklang.ir.types import BlockType
from blocklang.ops.control import For, If, While
from blocklang.ops.events import DevicePrint
from blocklang.ops.memory import Load
from blocklang.ops.order import WholeBlock
from blocklang.ops.scan import Scan
from blocklang.ops.tile import Contract, Iterate
from blocklang.passes.placing.contractions import place_contract
from blocklang.passes.placing.control import ControlFlowPlacement
from blocklang.passes.placing.nests import Nests
from blocklang.passes.placing.order import place_whole_block
from blocklang.passes.placing.reductions import place_reduction
from blocklang.passes.placing.scans import place_scan
from blocklang.passes.schedule import Schedule, is_running


class _Placer:
    """Walks the abstract kernel in program order and places each operation."""

    def __init__(self, source: Kernel, schedule: Schedule) -> None:
        self.source = source
        self.nests = Nests(source, schedule)
        self.control = ControlFlowPlacement(self.nests, self.region)

    def run(self) -> Kernel:
        self.region(self.source.body)
        self.operation(self.source.body.ops[-1])
        kernel = self.nests.kernel
        for position, op in enumerate(list(self.nests.top.ops)):
            kernel.body.insert(position, op.detach())
        return kernel

    def region(self, region: Region) -> None:
        """Place everything in a region but its terminator."""
        for op in region.ops[:-1]:
            self.operation(op)
        self.nests.builder.location = region.ops[-1].location

    def operation(self, op: Operation) -> None:
        nests = self.nests
        nests.builder.location = op.location
        match op:
            case Iterate() if op.combine:
                place_reduction(nests, op)
            case Iterate() if not op.results or has_atomic(op):
                nests.effect(op)
            case Iterate():
                self.producer(op)
            case DevicePrint() if op.value is not None and isinstance(op.value.type, BlockType):
                nests.builder.create(DevicePrint, nests.in_memory(op.value), **op.attributes)
            case Contract():
                place_contract(nests, op)
            case Scan():
                place_scan(nests, op)
            case WholeBlock():
                place_whole_block(nests, op)
            case For():
                self.control.for_loop(op)
            case While():
                self.control.while_loop(op)
            case If():
                self.control.conditional(op)
            case _:
                nests.builder.insert(clone_operation(op, nests.scalars))

    def producer(self, op: Iterate) -> None:
        """Kept loads happen here, in program order, and kept scans, whose loops are their own; everything
        else waits for its first reader.
        """
        is_now = is_running(op) or any(isinstance(inner, Load) for inner in op.body.walk())
        kept = [value for value in op.results if self.nests.is_kept(value)]
        if is_now and kept:
            self.nests.materialise(kept[0])


def place(kernel: Kernel, schedule: Schedule) -> Kernel:
    """The placed form of `kernel` (level tile) under `schedule`; the abstract kernel is not changed."""
    assert kernel.level == "tile"
    return _Placer(kernel, schedule).run()
