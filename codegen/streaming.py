"""Streaming stores: when a loop uses them, and what orders them.

A loop that may stream is emitted twice, behind one test: the launch is large, and the address that its stores
start at is a multiple of 16. Registers longer than that are stored in pieces of 16 bytes: arrays are seldom
aligned to more (NumPy's start 16 bytes into a page), and a core joins the pieces of a line.

Streaming stores are not ordered with other stores, so a fence stands before all that other programs
synchronise by, and at the end of the programs of a call.
"""

from __future__ import annotations

from blocklang.codegen.lanes import LaneEmitter
from blocklang.codegen.values import Lane
from blocklang.ir.core import Kernel, Operation, Value
from blocklang.ir.types import PointerType
from blocklang.ops.creation import Constant
from blocklang.ops.elementwise import Elementwise
from blocklang.ops.memory import Load, Offset, Store
from blocklang.ops.tile import Lanes

METADATA = "!0 = !{i32 1}"  # what LLVM wants `!nontemporal` to point to


def streaming_loops(kernel: Kernel) -> list[Lanes]:
    """The loops whose stores may stream."""
    return [op for op in kernel.walk() if isinstance(op, Lanes) and op.stream]


def find_large_launches(kernel: Kernel, lanes: LaneEmitter, extents: list[str]) -> None:
    """Compute once, from the grid's extents, whether the launch is large enough for each loop."""
    emit = lanes.emit
    for loop in streaming_loops(kernel):
        key = (loop.stream, loop.stream_axes)
        if key in lanes.large_launches:
            continue
        wide = [emit.op(f"zext i32 {extents[axis]} to i64") for axis in loop.stream_axes]
        programs = "1"
        for text in wide:  # extents are below 2^31, and all programs of a launch below 2^63
            programs = emit.mul(programs, text)
        lanes.large_launches[key] = emit.op(f"icmp uge i64 {programs}, {loop.stream}")


def may_stream(emitter: LaneEmitter, loop: Lanes, index: Lane) -> str | None:
    """The flag that says whether the loop streams from `index` on; None if it never does.

    Args:
        emitter: for `loop.width` lanes; what it emits here is the address alone.
    """
    store = next((op for op in loop.body.ops if isinstance(op, Store)), None)
    if store is None:
        return None
    needed = _address_of(store, loop)
    if needed is None:
        return None
    emitter.values[loop.body.args[0]] = index
    for op in needed:
        emitter.operation(op)
    address = emitter.get(store.pointer)
    assert isinstance(address.type, PointerType)
    size = address.type.element.bytes
    if address.width or address.step != str(size) or size * emitter.width % 16:
        return None
    emit = emitter.emit
    bits = emit.op(f"ptrtoint ptr {address.text} to i64")
    aligned = emit.op(f"icmp eq i64 {emit.op(f'and i64 {bits}, 15')}, 0")
    return emit.op(f"and i1 {aligned}, {emitter.large_launches[loop.stream, loop.stream_axes]}")


def _address_of(store: Store, loop: Lanes) -> list[Operation] | None:
    """The operations of the body that make the store's address, in order; None if they are more than
    arithmetic.
    """
    needed: set[Operation] = set()
    stack: list[Value] = [store.pointer]
    while stack:
        value = stack.pop()
        op = value.defining_op
        if op is None or op.parent is not loop.body:
            continue
        if isinstance(op, Load) or not isinstance(op, (Constant, Elementwise, Offset)):
            return None
        if op not in needed:
            needed.add(op)
            stack += op.operands
    return [op for op in loop.body.ops if op in needed]
