"""Events of a running program: prints, failed assertions and faults, as records for the launching thread.

A record is memory of its own, taken from the C library, and pushed on the launch's list, whose layout is in
`blocklang.abi`. Threads push without a lock; a thread's own records stay in order. Nothing is formatted here.
"""

from __future__ import annotations

from blocklang.abi import EVENT_HEADER_BYTES, EVENTS_HEAD, EVENTS_LOST, SLOT_BYTES
from blocklang.codegen.emitter import llvm_scalar
from blocklang.codegen.lanes import memory_type
from blocklang.codegen.loops import RegionEmitter
from blocklang.codegen.values import Lane
from blocklang.ir.core import Kernel, Operation
from blocklang.ir.types import I1, ShapedType, element_type
from blocklang.ops.events import DeviceAssert, DevicePrint, Event, ReportFault


def events_of(kernel: Kernel) -> list[Event]:
    """The events of a kernel; a record names one by its position."""
    return [op for op in kernel.walk() if isinstance(op, Event)]


class Events:
    """Emits the events of one kernel.

    Attributes:
        program: the register with the program's linear id.
        end: the block behind the end of the program; empty if nothing stops a program.
    """

    def __init__(self, kernel: Kernel) -> None:
        operations = events_of(kernel)
        self.slot = len(kernel.args)
        self.numbers = {op: number for number, op in enumerate(operations)}
        self.may_stop = any(isinstance(op, (DeviceAssert, ReportFault)) for op in operations)
        self.log = ""
        self.program = ""
        self.end = ""

    def load_log(self, emitter: RegionEmitter) -> None:
        """Read the list's address from the slot behind the arguments."""
        if self.numbers:
            place = emitter.emit.offset("%arguments", self.slot * SLOT_BYTES)
            self.log = emitter.emit.op(f"load ptr, ptr {place}, align 8")
            emitter.emit.declarations["malloc"] = "declare ptr @malloc(i64)"

    def print(self, emitter: RegionEmitter, op: Operation) -> None:
        """Record all lanes of a value."""
        assert isinstance(op, DevicePrint)
        emit = emitter.emit
        if op.value is None:
            self._record(emitter, op)
            return
        lane = emitter.values[op.value]
        element = element_type(op.value.type)
        if isinstance(op.value.type, ShapedType):
            assert not emitter.lanes.buffers[op.value].panel, "a printed block lies in rows"
            copied = op.value.type.numel * memory_type(element).bytes
            self._record(emitter, op, copied=(lane.text, copied))
            return
        text = emitter.text(op.value)
        if element == I1:
            text = emit.op(f"zext i1 {text} to i8")
        self._record(emitter, op, Lane(text, memory_type(element)))

    def check(self, emitter: RegionEmitter, op: Operation) -> None:
        """Record the first lane that fails, and end the program."""
        assert isinstance(op, DeviceAssert)
        emit, type = emitter.emit, llvm_scalar(op.failing.type)
        failing = emitter.text(op.failing)
        then, holds = emit.new_block("fails"), emit.new_block("holds")
        emit.branch_if(emit.op(f"icmp slt {type} {failing}, {op.lanes}"), then, holds)
        emit.start(then)
        self._record(emitter, op, Lane(failing, op.failing.type))
        emit.branch(self.end)
        emit.start(holds)

    def fault(self, emitter: RegionEmitter, op: Operation) -> None:
        """Record the lane at fault with its details, and end the program unless it goes on."""
        assert isinstance(op, ReportFault)
        self._record(emitter, op, *(Lane(emitter.text(v), v.type) for v in op.operands))
        if op.goes_on:
            return
        emitter.emit.branch(self.end)
        emitter.emit.start(emitter.emit.new_block("unreachable"))

    def _record(
        self, emitter: RegionEmitter, op: Event, *values: Lane, copied: tuple[str, int] | None = None
    ) -> None:
        """Push a record that holds registers, one in a slot, or so many bytes from an address."""
        emit = emitter.emit
        size = EVENT_HEADER_BYTES + (SLOT_BYTES * len(values) if copied is None else copied[1])
        record = emit.op(f"call ptr @malloc(i64 {size})")
        lost, filled, done = emit.new_block("lost"), emit.new_block("record"), emit.new_block("recorded")
        emit.branch_if(emit.op(f"icmp eq ptr {record}, null"), lost, filled)
        emit.start(lost)
        emit.op(f"atomicrmw add ptr {emit.offset(self.log, EVENTS_LOST)}, i64 1 monotonic, align 8")
        emit.branch(done)
        emit.start(filled)
        emit.do(f"store i64 {self.numbers[op]}, ptr {emit.offset(record, 8)}, align 8")
        emit.do(f"store i64 {self.program}, ptr {emit.offset(record, 16)}, align 8")
        payload = emit.offset(record, EVENT_HEADER_BYTES)
        for number, value in enumerate(values):
            place = emit.offset(payload, number * SLOT_BYTES)
            emit.do(f"store {llvm_scalar(value.type)} {value.text}, ptr {place}, align 8")
        if copied is not None:
            source, count = copied
            emit.declarations["memcpy"] = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"
            emit.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {payload}, ptr {source}, i64 {count}, i1 false)")
        self._push(emitter, record, done)
        emit.start(done)

    def _push(self, emitter: RegionEmitter, record: str, done: str) -> None:
        emit = emitter.emit
        head = emit.offset(self.log, EVENTS_HEAD)
        first = emit.op(f"load atomic ptr, ptr {head} monotonic, align 8")
        before, again = emit.block, emit.new_block("push")
        emit.branch(again)
        emit.start(again)
        following = emit.phi("ptr", [(first, before)])
        emit.do(f"store ptr {following.name}, ptr {record}, align 8")
        pair = emit.op(f"cmpxchg ptr {head}, ptr {following.name}, ptr {record} release monotonic, align 8")
        following.add(emit.op(f"extractvalue {{ ptr, i1 }} {pair}, 0"), emit.block)
        emit.branch_if(emit.op(f"extractvalue {{ ptr, i1 }} {pair}, 1"), done, again)
