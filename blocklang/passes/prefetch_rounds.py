"""Ask for the memory of a loop's next round where this round reads its own again.

    placed @k(%p: ptr<f32>, %q: ptr<f32>, %rows: i64, %n: i64) alias="disjoint" {
      %zero = constant value=0 : i64
      %one = constant value=1 : i64
      %c512 = constant value=512 : i64
      for %zero, %rows, %one {
        (%row: i64):
        %first = mul %row, %n : i64
        %a = offset %p, %first : ptr<f32>
        %s = lanes %zero, %c512, width=32, combines=["sum"] : f32 {
          (%i: i64):
          %b = offset %a, %i : ptr<f32>
          %x = load %b : f32
          yield %x
        }
        %c = offset %q, %first : ptr<f32>
        lanes %zero, %c512, width=32 {
          (%j: i64):
          %d = offset %a, %j : ptr<f32>
          %y = load %d : f32
          %z = sub %y, %s : f32
          %e = offset %c, %j : ptr<f32>
          store %e, %z
          yield
        }
        yield
      }
      return
    }

becomes

    placed @k(%p: ptr<f32>, %q: ptr<f32>, %rows: i64, %n: i64) alias="disjoint" {
      %zero = constant value=0 : i64
      %one = constant value=1 : i64
      %c512 = constant value=512 : i64
      for %zero, %rows, %one {
        (%row: i64):
        %first = mul %row, %n : i64
        %a = offset %p, %first : ptr<f32>
        %v0 = add %row, %one : i64
        %first_0 = mul %v0, %n : i64
        %a_0 = offset %p, %first_0 : ptr<f32>
        %s = lanes %zero, %c512, width=32, combines=["sum"] : f32 {
          (%i: i64):
          %b = offset %a, %i : ptr<f32>
          %b_0 = offset %a_0, %i : ptr<f32>
          prefetch %b_0
          %x = load %b : f32
          yield %x
        }
        %c = offset %q, %first : ptr<f32>
        %v1 = add %row, %one : i64
        %first_1 = mul %v1, %n : i64
        %c_0 = offset %q, %first_1 : ptr<f32>
        lanes %zero, %c512, width=32 {
          (%j: i64):
          %d = offset %a, %j : ptr<f32>
          %y = load %d : f32
          %z = sub %y, %s : f32
          %e = offset %c, %j : ptr<f32>
          %e_0 = offset %c_0, %j : ptr<f32>
          prefetch %e_0, writes=true
          store %e, %z
          yield
        }
        yield
      }
      return
    }

A row that two loops use was asked for by the round before, so memory has nothing to do meanwhile; what it
brings now is what the next round begins with, and what it stores to. The loops share the requests evenly.
Rows that follow each other in memory are found by the machine's own prefetchers, rows that are `num_programs`
apart are not. Where the next round reads is computed as this round computed its own address, from the next
index, or from what the loop hands on. Without a loop around the rows the next round is the next program along
axis 0, where the schedule, which sees rows of one axis and a known stride, asks for nothing.

Requires: level placed; loops that read the same have been fused. Keeps: all results; every effect and its
order.
"""

from __future__ import annotations

from blocklang.analysis.index_steps import IndexSteps
from blocklang.ir.builder import Builder
from blocklang.ir.core import Kernel, Operation, Region, Value
from blocklang.ir.rewriting import clone_operation
from blocklang.ir.types import PointerType
from blocklang.ops.control import For, If
from blocklang.ops.creation import Constant, ProgramId
from blocklang.ops.elementwise import Add, Maximum, Minimum
from blocklang.ops.memory import Load, Offset, Store, pointee
from blocklang.ops.tile import Lanes, Prefetch
from blocklang.passes.schedule import PREFETCH_BYTES

Place = tuple[Value, ...]


def prefetch_rounds(kernel: Kernel) -> None:
    """Add the requests of a placed kernel's `for` loops and of its programs, in place."""
    assert kernel.level == "placed"
    is_disjoint = kernel.attributes.get("alias", "unknown") == "disjoint"
    for loop in [op for op in kernel.walk() if isinstance(op, For)]:
        _Rounds(loop.body, loop, is_disjoint=is_disjoint).run()
    if not any(isinstance(op, Lanes) and op.prefetch for op in kernel.walk()):
        _Rounds(kernel.body, None, is_disjoint=is_disjoint).run()


class _Rounds:
    """The loops over lanes of one round of a loop, or of a program where there is no loop."""

    def __init__(self, body: Region, loop: For | None, *, is_disjoint: bool) -> None:
        self.body = body
        self.loop = loop
        self.is_disjoint = is_disjoint
        self.steps = IndexSteps()

    def run(self) -> None:
        for lanes, accesses in self.requests().items():
            following = _Following(self.body, self.loop, Builder.before_op(lanes))
            for access in accesses:
                self.ask(access, lanes, following)

    def requests(self) -> dict[Lanes, list[Load | Store]]:
        """The accesses whose next round each loop asks for: of what one loop reads and another one reads or
        stores to, and of what else is stored. Of both loops the one asks that has less to ask for, or the
        later one. Where arguments may be one array, what is stored to the same place of another one is taken
        for what was read.
        """
        users: dict[Place, list[tuple[Lanes, Load | Store]]] = {}
        wanted: dict[Lanes, list[Load | Store]] = {}
        for lanes in _rows(self.body):
            wanted[lanes] = []
            for access in self.rows_of(lanes):
                if not _is_worth_asking(access, lanes):
                    continue
                place = self.place(access, lanes)
                if isinstance(access, Store) and not self.is_disjoint:
                    row = _without_array(place)
                    place = next((other for other in users if _without_array(other) == row), place)
                if isinstance(access, Load) or place in users:
                    users.setdefault(place, []).append((lanes, access))
                else:
                    wanted[lanes].append(access)
        again = [found[:2] for found in users.values() if len(found) > 1]
        for (first, one), (second, other) in again:
            lanes, access = (first, one) if len(wanted[first]) < len(wanted[second]) else (second, other)
            wanted[lanes].append(access)
        return wanted if again else {}

    def rows_of(self, lanes: Lanes) -> list[Load | Store]:
        """The accesses of consecutive lanes, one for each row."""
        found: dict[Place, Load | Store] = {}
        for op in lanes.body.ops:
            if isinstance(op, (Load, Store)) and self.is_consecutive(op, lanes):
                found.setdefault(self.place(op, lanes), op)
        found.pop((), None)
        return list(found.values())

    def place(self, access: Load | Store, lanes: Lanes) -> Place:
        """The values from outside of the loop over lanes that make an address; none if it is not made by
        arithmetic alone.
        """
        needed = _needed(access.pointer, lanes.body)
        if needed is None:
            return ()
        inside = {lanes.body.args[0], *(r for op in needed for r in op.results)}
        used = [access.pointer, *(v for op in needed for v in op.operands)]
        return tuple(dict.fromkeys(v for v in used if v not in inside))

    def is_consecutive(self, access: Load | Store, lanes: Lanes) -> bool:
        steps = [self.steps.of(op.offset, lanes.body.args[0]) for op in _offsets(access.pointer, lanes.body)]
        return None not in steps and sum(s for s in steps if s) == 1

    def ask(self, access: Load | Store, lanes: Lanes, following: _Following) -> None:
        there = {value: following.of(value) for value in self.place(access, lanes)}
        moved = {value: next for value, next in there.items() if next is not None and next is not value}
        if None in there.values() or not moved:
            return
        inside = Builder.before_op(access)
        for op in _needed(access.pointer, lanes.body) or ():
            inside.insert(clone_operation(op, moved))
        inside.create(Prefetch, moved[access.pointer], writes=isinstance(access, Store))


class _Following:
    """What values of a round are in the next one, computed in this one."""

    def __init__(self, body: Region, loop: For | None, builder: Builder) -> None:
        self.body = body
        self.loop = loop
        self.builder = builder
        self.moved: dict[Value, Value] = {}

    def of(self, value: Value) -> Value | None:
        """The value in the next round; `value` itself if it is the same, None if it is not known yet."""
        needed = _needed(value, self.body)
        if needed is None:
            return None
        sources = dict.fromkeys([value, *(v for op in needed for v in op.operands)])
        if self.loop is not None and not all(
            self.hand_on(v, self.loop) for v in sources if v in self.body.args
        ):
            return None
        for op in needed:
            if op.result in self.moved:
                continue
            if self.loop is None and isinstance(op, ProgramId) and op.axis == 0:
                one = self.builder.value(Constant, value=1, result_types=[op.result.type])
                self.moved[op.result] = self.builder.value(Add, op.result, one)
            elif any(v in self.moved for v in op.operands):
                self.builder.insert(clone_operation(op, self.moved))
        return self.moved.get(value, value)

    def hand_on(self, argument: Value, loop: For) -> bool:
        """Find the loop's index, or a value that it carries, in the next round; False if that is made by more
        than arithmetic.
        """
        position = self.body.args.index(argument)
        if argument in self.moved:
            return True
        if position == 0:
            self.moved[argument] = self.builder.value(Add, argument, loop.step)
            return True
        carried = self.body.ops[-1].operands[position - 1]
        needed = _needed(carried, self.body)
        if needed is None:
            return False
        now: dict[Value, Value] = {}
        for op in needed:
            self.builder.insert(clone_operation(op, now))
        self.moved[argument] = now.get(carried, carried)
        return True


def _needed(value: Value, region: Region) -> list[Operation] | None:
    """The operations of a region and of those in it that compute `value`, in order; None if they are more
    than arithmetic.
    """
    needed: dict[Operation, None] = {}
    pending = [(value, False)]
    while pending:
        current, is_done = pending.pop()
        op = current.defining_op
        if op is None:
            owner = current.owner.parent
            if current.owner is not region and isinstance(owner, Operation) and region.encloses(owner):
                return None  # of an inner loop
            continue
        if op in needed or not region.encloses(op):
            continue
        if op.effects or op.regions:
            return None
        if is_done:
            needed[op] = None
            continue
        pending.append((current, True))
        pending += [(v, False) for v in op.operands]
    return list(needed)


def _offsets(pointer: Value, region: Region) -> list[Offset]:
    """The offsets that a region adds to a pointer."""
    found: list[Offset] = []
    while (op := pointer.defining_op) is not None and isinstance(op, Offset) and region.encloses(op):
        found.append(op)
        pointer = op.pointer
    return found


def _without_array(place: Place) -> Place:
    """What is added to the arguments that a place is counted from."""
    added: list[Value] = []
    for value in place:
        while isinstance(op := value.defining_op, Offset):
            added.append(op.offset)
            value = op.pointer
        if not isinstance(value.type, PointerType):
            added.append(value)
    return tuple(added)


def _rows(region: Region) -> list[Lanes]:
    """The loops over lanes that a region runs once, in order."""
    found: list[Lanes] = []
    for op in region.ops:
        if isinstance(op, Lanes) and not op.general:
            found.append(op)
        elif isinstance(op, If):
            found += [lanes for arm in op.regions for lanes in _rows(arm)]
    return found


def _is_worth_asking(access: Load | Store, lanes: Lanes) -> bool:
    extent = _most(lanes.high)
    size = pointee(access.pointer.type).bytes
    return extent is not None and PREFETCH_BYTES[0] <= extent * size <= PREFETCH_BYTES[1]


def _most(value: Value) -> int | None:
    """A constant that an index does not exceed."""
    op = value.defining_op
    match op:
        case Constant():
            return int(op.value)
        case Minimum():
            known = [n for v in op.operands if (n := _most(v)) is not None]
            return min(known) if known else None
        case Maximum():
            both = [_most(v) for v in op.operands]
            return max(n for n in both if n is not None) if None not in both else None
    return None
