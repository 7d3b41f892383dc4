"""When a load may be moved to where its value is read, and when it must happen where it stands (abstract
Tile IR).

Rules: an array that the launch may write is loaded once per lane, and no load moves past an operation that
may write its memory, or past a fence (an atomic, a volatile load, a barrier); loads of other arrays may be
moved and repeated. Which arguments may share memory is the kernel attribute `alias`: "disjoint" (no two
arguments with a writer among them overlap), "same" (those that do are the same array), "unknown".
"""

from __future__ import annotations

from blocklang.analysis.lane_strides import LaneStrides
from blocklang.ir.core import Kernel, Operation, Region, Value
from blocklang.ir.declaration import Effect
from blocklang.ir.types import PointerType
from blocklang.ops.atomics import Atomic, is_fence
from blocklang.ops.memory import Load, Offset
from blocklang.ops.tile import Iterate


def base_pointer(value: Value) -> Value | None:
    """The scalar pointer that a pointer value is an offset of; None if it is not known to be one."""
    seen: set[Value] = set()
    while value not in seen:
        seen.add(value)
        op = value.defining_op
        if isinstance(op, Offset):
            value = op.pointer
        elif isinstance(op, Iterate):
            value = op.body.terminator.operands[op.results.index(value)]
        elif op is None and isinstance(value.owner, Region) and isinstance(value.owner.parent, Iterate):
            iterate = value.owner.parent
            value = iterate.inputs[value.owner.args.index(value) - len(iterate.space)]
        elif op is None and isinstance(value.owner.parent, Kernel) and isinstance(value.type, PointerType):
            return value
        else:
            return None
    return None


class MemoryHazards:
    """Answers for the loads of one kernel."""

    def __init__(self, kernel: Kernel) -> None:
        self.alias = kernel.attributes.get("alias", "unknown")
        self.writers = [op for op in kernel.walk() if Effect.WRITE in op.effects]
        self.readers = [op for op in kernel.walk() if isinstance(op, (Load, Atomic))]
        self.strides = LaneStrides(kernel)

    def is_read(self, writer: Operation) -> bool:
        """True if the kernel may load, or change with an atomic, memory that the store writes."""
        return any(self.may_share(reader, writer) for reader in self.readers)

    def may_share(self, load: Operation, writer: Operation) -> bool:
        """True if the load may read memory that the store or atomic writes."""
        read, written = base_pointer(load.segment("pointer")[0]), base_pointer(writer.segment("pointer")[0])
        if read is None or written is None:
            return True
        return read is written or self.alias != "disjoint"

    def reason_to_keep(self, op: Iterate, load: Load) -> str:
        """Why the values that `op` loads must be stored in a buffer where they are loaded; '' if they need
        not be.
        """
        if load.volatile:
            return "volatile"
        writers = [writer for writer in self.writers if self.may_share(load, writer)]
        if not writers:
            return ""
        reader = self._single_reader(op)
        if reader is None:
            return "loaded once: its array may be written"
        between = self._between(op, reader)
        if between is not None and any(map(_holds_fence, between)):
            return "loaded before a fence"
        for store in writers:
            if between is None or any(_contains(other, store) for other in between):
                return "loaded before a store that may overwrite it"
            if store.parent_op is reader and not self._same_lanes(load, store):
                return "loaded before the store that may overwrite it"
        return ""

    def _single_reader(self, op: Iterate) -> Operation | None:
        """The one loop in which the loaded value ends up, if it is reached lane by lane."""
        current: Operation = op
        while True:
            users = {u for r in current.results for u in r.users}
            if len(users) != 1:
                return None
            user = users.pop()
            if not isinstance(user, Iterate) or user.parent is not op.parent or user.space != op.space:
                return None
            if not all(
                m.is_identity for v, m in zip(user.inputs, user.maps, strict=True) if v in current.results
            ):
                return None
            if user.combine or not user.results or has_atomic(user):
                return user
            current = user

    def _between(self, first: Operation, last: Operation) -> list[Operation] | None:
        region = first.parent
        if region is None or region is not last.parent:
            return None
        return region.ops[region.ops.index(first) + 1 : region.ops.index(last)]

    def _same_lanes(self, load: Load, store: Operation) -> bool:
        """True if lane i of the load and lane i of the store have one address, as far as they share memory
        at all, and no two lanes share one.
        """
        pointer = store.segment("pointer")[0]
        read, written = _offsets(load.pointer), _offsets(pointer)
        if self.alias not in ("disjoint", "same") or read is None or written is None or read[1] != written[1]:
            return False
        # `alias` speaks of arguments. What else two pointers begin at, such as integers, may lie anywhere.
        if None in (base_pointer(load.pointer), base_pointer(pointer)) and read[0] is not written[0]:
            return False
        owner = store.parent_op
        assert isinstance(owner, Iterate)
        (form,) = self.strides.accesses(owner, [pointer])
        return form.is_distinct(owner.space)


def has_atomic(op: Iterate) -> bool:
    """True if the lanes of `op` are atomic operations."""
    return any(isinstance(inner, Atomic) for inner in op.body.ops)


def _holds_fence(op: Operation) -> bool:
    return is_fence(op) or any(is_fence(inner) for region in op.regions for inner in region.walk())


def _contains(op: Operation, inner: Operation) -> bool:
    """True if `inner` is `op` or lies in it."""
    return op is inner or any(region.encloses(inner) for region in op.regions)


def _offsets(pointer: Value) -> tuple[Value, list[Value]] | None:
    """The base pointer and the offsets added to it, outermost first, as values of the blocks they are in."""
    offsets: list[Value] = []
    value = pointer
    while True:
        op = value.defining_op
        if isinstance(op, Iterate):
            value = op.body.terminator.operands[op.results.index(value)]
        elif isinstance(op, Offset):
            offsets.append(_block_source(op.offset))
            value = op.pointer
        elif op is None and isinstance(value.owner, Region) and isinstance(value.owner.parent, Iterate):
            iterate = value.owner.parent
            position = value.owner.args.index(value) - len(iterate.space)
            if not iterate.maps[position].is_identity:
                return None
            value = iterate.inputs[position]
        else:
            return value, offsets


def _block_source(value: Value) -> Value:
    """The block or scalar outside the iteration that a lane value stands for."""
    owner = value.owner
    if (
        isinstance(owner, Region)
        and isinstance(owner.parent, Iterate)
        and value in owner.args[len(owner.parent.space) :]
    ):
        source: Value = owner.parent.inputs[owner.args.index(value) - len(owner.parent.space)]
        return source
    return value
