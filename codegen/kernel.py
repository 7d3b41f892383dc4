"""A whole kernel as an LLVM module: the entry of `blocklang.abi`, around the code of one program."""

from __future__ import annotations

from collections.abc import Iterator

from blocklang.abi import SLOT_BYTES
from blocklang.codegen.atomics import atomic_cas, atomic_rmw, fence
from blocklang.codegen.contract import contract_buffers
from blocklang.codegen.emitter import Emitter, Phi, llvm_scalar
from blocklang.codegen.environment import emit_entry, programs_of
from blocklang.codegen.events import Events
from blocklang.codegen.histogram import histogram_buffer
from blocklang.codegen.lanes import LaneEmitter
from blocklang.codegen.lanes_loop import lanes_loop
from blocklang.codegen.loops import Hook, RegionEmitter
from blocklang.codegen.memoise import forget_earlier_launches, memoise
from blocklang.codegen.scan import running_lanes, scan_buffers
from blocklang.codegen.shared import shared
from blocklang.codegen.sort import sort_buffer
from blocklang.codegen.squares import find_turned_nest, turned_nest
from blocklang.codegen.streaming import METADATA, find_large_launches, streaming_loops
from blocklang.codegen.tile_product import ask_for_tiles
from blocklang.codegen.tree import tree_reduce
from blocklang.codegen.values import Lane
from blocklang.ir.core import Kernel, Operation, Value
from blocklang.ir.types import I1, I32, U8, PointerType
from blocklang.ops.atomics import AtomicCas, AtomicRmw, Fence
from blocklang.ops.creation import NumPrograms, ProgramId
from blocklang.ops.events import DeviceAssert, DevicePrint, ReportFault
from blocklang.ops.order import HistogramBuffer, SortBuffer
from blocklang.ops.scan import Running, ScanBuffers
from blocklang.ops.tile import BufferOp, ContractBuffers, Group, Lanes, Memoise, TreeReduce
from blocklang.target import Target

_ADDRESS = PointerType(U8)  # the type of a buffer's address; accesses bring their own element type
_SIGNATURE = (
    "ptr noalias readonly %arguments, ptr noalias readonly %grid, i64 %begin, i64 %end, ptr noalias %scratch"
)


def emit_module(kernel: Kernel, target: Target, symbol: str) -> str:
    """The text of an LLVM module that defines `symbol` for a placed kernel.

    Requires: level placed, every buffer with an offset (`plan_memory`), no mathematical function that is
    not an instruction (`expand_maths`).
    """
    assert kernel.level == "placed"
    emit = Emitter()
    lanes = LaneEmitter(emit, target, {})
    grid: dict[tuple[type[Operation], int], Lane] = {}

    def grid_value(emitter: RegionEmitter, op: Operation) -> None:
        emitter.values[op.result] = grid[op.__class__, op.attributes["axis"]]

    def group(emitter: RegionEmitter, op: Operation) -> None:
        assert isinstance(op, Group)
        nest = find_turned_nest(op, lanes.buffers, target)
        if nest is not None:
            turned_nest(emitter, nest)
        else:
            emitter.group(op)

    events = Events(kernel)
    hooks: dict[type[Operation], Hook] = {
        Lanes: lanes_loop,
        Group: group,
        TreeReduce: tree_reduce,
        ScanBuffers: scan_buffers,
        Running: running_lanes,
        ContractBuffers: shared(contract_buffers),
        Memoise: memoise,
        SortBuffer: sort_buffer,
        HistogramBuffer: histogram_buffer,
        AtomicRmw: atomic_rmw,
        AtomicCas: atomic_cas,
        Fence: fence,
        DevicePrint: events.print,
        DeviceAssert: events.check,
        ReportFault: events.fault,
        ProgramId: grid_value,
        NumPrograms: grid_value,
    }
    emitter = RegionEmitter(lanes, hooks)
    emit.start("entry")
    load_arguments(kernel, lanes)
    place_buffers(kernel, lanes)
    events.load_log(emitter)
    forget_earlier_launches(kernel, emitter)
    ask_for_tiles(kernel, emitter)
    emit_programs(kernel, emitter, grid, events)
    emit.do("ret void")
    declarations, entry = emit_entry(target, symbol, _SIGNATURE)
    return "\n".join(
        [
            f"; kernel {kernel.name}: {', '.join(f'{a.name}: {a.type}' for a in kernel.args)}",
            f'target triple = "{target.triple}"',
            "",
            *sorted({*emit.declarations.values(), *declarations}),
            "",
            *(
                line
                for (result, parameters, *body), name in emit.functions.items()
                for line in (_head_of_part(name, result, parameters), *body, "}", "")
            ),
            f'define internal void @"{programs_of(symbol)}"({_SIGNATURE}) noinline {{',
            *emit.lines,
            "}",
            "",
            *entry,
            "",
            *([METADATA] if streaming_loops(kernel) else []),
        ]
    )


def _head_of_part(name: str, result: str, parameters: str) -> str:
    pure = "" if result == "void" else " nounwind willreturn memory(none)"
    return f"define internal {result} @{name}({parameters}) noinline{pure} {{"


def load_arguments(kernel: Kernel, lanes: LaneEmitter) -> None:
    """Read every argument from its slot, once per call of the entry."""
    for slot, arg in enumerate(kernel.args):
        place = lanes.emit.offset("%arguments", slot * SLOT_BYTES)
        stored = "i8" if arg.type == I1 else llvm_scalar(arg.type)
        text = lanes.emit.op(f"load {stored}, ptr {place}, align 8")
        if arg.type == I1:
            text = lanes.emit.op(f"icmp ne i8 {text}, 0")
        lanes.values[arg] = Lane(text, arg.type)


def buffers_of(kernel: Kernel) -> Iterator[tuple[Value, BufferOp]]:
    """The buffers of a kernel, in order."""
    for op in kernel.body.ops:
        if isinstance(op, BufferOp):
            yield op.result, op


def place_buffers(kernel: Kernel, lanes: LaneEmitter) -> None:
    for value, op in buffers_of(kernel):
        assert op.offset >= 0, f"buffer %{value.name} has no place"
        pointer = lanes.emit.offset("%scratch", op.offset)
        lanes.values[value] = Lane(pointer, _ADDRESS)
        lanes.buffers[value] = op


def emit_programs(
    kernel: Kernel, emitter: RegionEmitter, grid: dict[tuple[type[Operation], int], Lane], events: Events
) -> None:
    """The loop over the programs of this call, each with its place in the grid, which is counted along
    without divisions.
    """
    emit = emitter.emit
    extents = [emit.op(f"load i32, ptr {emit.offset('%grid', 4 * axis)}, align 4") for axis in range(3)]
    firsts = _grid_indices(emitter, extents)
    find_large_launches(kernel, emitter.lanes, extents)
    header, body, done = emit.new_block("program"), emit.new_block("body"), emit.new_block("done")
    before = emit.block
    emit.branch(header)
    emit.start(header)
    number = emit.phi("i64", [("%begin", before)])
    places = [emit.phi("i32", [(first, before)]) for first in firsts]
    emit.branch_if(emit.op(f"icmp slt i64 {number.name}, %end"), body, done)
    emit.start(body)
    for axis in range(3):
        grid[ProgramId, axis] = Lane(places[axis].name, I32)
        grid[NumPrograms, axis] = Lane(extents[axis], I32)
    events.program = number.name
    if events.may_stop:
        events.end = emit.new_block("stop")
    emitter.region(kernel.body)
    if events.may_stop:
        emit.branch(events.end)
        emit.start(events.end)
    number.add(emit.op(f"add i64 {number.name}, 1"), emit.block)
    for phi, text in zip(places, _next_indices(emitter, places, extents), strict=True):
        phi.add(text, emit.block)
    emit.branch(header)
    emit.start(done)
    emitter.lanes.order_streams()


def _grid_indices(emitter: RegionEmitter, extents: list[str]) -> list[str]:
    """x, y and z of the first program."""
    emit = emitter.emit
    wide = [
        emit.call("i64", "llvm.umax.i64", [("i64", emit.op(f"zext i32 {e} to i64")), ("i64", "1")])
        for e in extents
    ]
    x, rest = emit.op(f"urem i64 %begin, {wide[0]}"), emit.op(f"udiv i64 %begin, {wide[0]}")
    y, z = emit.op(f"urem i64 {rest}, {wide[1]}"), emit.op(f"udiv i64 {rest}, {wide[1]}")
    return [emit.op(f"trunc i64 {index} to i32") for index in (x, y, z)]


def _next_indices(emitter: RegionEmitter, places: list[Phi], extents: list[str]) -> list[str]:
    """One program on: x grows; at its extent it restarts and y grows, and so on."""
    emit = emitter.emit
    x = emit.op(f"add i32 {places[0].name}, 1")
    wrapped_x = emit.op(f"icmp eq i32 {x}, {extents[0]}")
    y = emit.op(f"add i32 {places[1].name}, {emit.op(f'zext i1 {wrapped_x} to i32')}")
    wrapped_y = emit.op(f"icmp eq i32 {y}, {extents[1]}")
    z = emit.op(f"add i32 {places[2].name}, {emit.op(f'zext i1 {wrapped_y} to i32')}")
    x = emit.op(f"select i1 {wrapped_x}, i32 0, i32 {x}")
    y = emit.op(f"select i1 {wrapped_y}, i32 0, i32 {y}")
    return [x, y, z]
