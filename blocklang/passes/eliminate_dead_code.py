"""Remove what nobody reads: operations, values that loops carry, results of `if`.

    kernel @k(%p: ptr<i32>, %n: i32) {
      %zero = constant value=0 : i32
      %one = constant value=1 : i32
      %twice = add %n, %n : i32
      %sum, %product = for %zero, %n, %one, %zero, %one : i32, i32 {
        (%i: i32, %s: i32, %m: i32):
        %s_next = add %s, %i : i32
        %m_next = mul %m, %n : i32
        yield %s_next, %m_next
      }
      store %p, %sum
      return
    }

becomes

    kernel @k(%p: ptr<i32>, %n: i32) {
      %zero = constant value=0 : i32
      %one = constant value=1 : i32
      %sum = for %zero, %n, %one, %zero : i32 {
        (%i: i32, %s: i32):
        %s_next = add %s, %i : i32
        yield %s_next
      }
      store %p, %sum
      return
    }

Liveness goes backward from effects, through the values that control flow hands on, so a value that a loop
carries only to compute itself is dead. Loads and reads are removed when unused, volatile ones excepted. A
`while` stays, and with it what holds it: whether it ends is not known.

Requires: nothing.
Keeps: the order and the operands of everything that stays; every level.
"""

from __future__ import annotations

from collections.abc import Sequence

from blocklang.ir.core import Kernel, Operation, Region, Value
from blocklang.ir.declaration import Effect
from blocklang.ops.control import Condition, For, If, Return, While, Yield
from blocklang.ops.memory import Load

_READS = frozenset({Effect.READ, Effect.READ_BUFFER})


def eliminate_dead_code(kernel: Kernel) -> None:
    """Remove every operation, carried value and result of `if` that no effect depends on."""
    live = _Liveness(kernel)
    dead = [op for op in kernel.walk() if op not in live.operations]
    for op in dead:
        op.drop_operands()
    structured = [op for op in live.operations if isinstance(op, (If, For, While))]
    for op in structured:
        _drop_dead_operands(op, live.values)
    for op in structured:
        _drop_dead_definitions(op, live.values)
    _drop_operations(kernel.body, live.operations)


class _Liveness:
    """The operations that must run, and the values that they need."""

    def __init__(self, kernel: Kernel) -> None:
        self.operations: set[Operation] = set()
        self.values: set[Value] = set()
        self._unvisited: list[Value] = []
        for op in kernel.walk():
            if _must_run(op):
                self._run(op)
        while self._unvisited:
            self._visit(self._unvisited.pop())

    def _run(self, op: Operation) -> None:
        """`op` runs: so does what holds it and what ends its regions."""
        if op in self.operations:
            return
        self.operations.add(op)
        self._need(*_control_operands(op))
        for region in op.regions:
            self._run(end_of(region))
        if op.parent_op is not None:
            self._run(op.parent_op)

    def _need(self, *values: Value) -> None:
        for value in values:
            if value not in self.values:
                self.values.add(value)
                self._unvisited.append(value)

    def _visit(self, value: Value) -> None:
        """Need where `value` comes from."""
        owner = value.owner
        if isinstance(owner, Region):
            holder = owner.parent_op
            if holder is not None:
                self._need(*_sources(holder, owner, owner.args.index(value)))
            return
        self._run(owner)
        self._need(*_sources(owner, None, owner.results.index(value)))


def end_of(region: Region) -> Operation:
    """The terminator of a verified region."""
    assert region.terminator is not None, "a region ends in a terminator"
    return region.terminator


def _must_run(op: Operation) -> bool:
    if isinstance(op, Load) and op.volatile:
        return True
    return isinstance(op, (While, Return)) or not op.effects <= _READS


def _control_operands(op: Operation) -> Sequence[Value]:
    """The operands that are needed whenever `op` runs; what it only hands on is not among them."""
    match op:
        case If():
            return [op.condition]
        case For():
            return [op.start, op.stop, op.step]
        case Condition():
            return [op.condition]
        case While():
            return []
        case Yield() if isinstance(op.parent_op, (If, For, While)):
            return []
    return op.operands


def _sources(holder: Operation, region: Region | None, index: int) -> Sequence[Value]:
    """What control flow hands on into result `index` of `holder`, or into that argument of its region."""
    match holder:
        case If():
            return [end_of(arm).operands[index] for arm in holder.regions]
        case For():
            slot = index if region is None else index - 1
            return [holder.inits[slot], end_of(holder.body).operands[slot]] if slot >= 0 else []
        case While() if region is holder.before:
            return [holder.inits[index], end_of(holder.after).operands[index]]
        case While():
            return [end_of(holder.before).segment("values")[index]]
    return []


def _live_slots(results: Sequence[Value], arguments: Sequence[Value], live: set[Value]) -> list[int]:
    pairs = enumerate(zip(results, arguments, strict=True))
    return [i for i, (result, argument) in pairs if result in live or argument in live]


def _kept_slots(op: Operation, live: set[Value]) -> tuple[list[int], list[int]]:
    """Which values stay: those that `op` carries, then those that it results in."""
    match op:
        case For():
            slots = _live_slots(op.results, op.body.args[1:], live)
            return slots, slots
        case While():
            carried = _live_slots(op.before.args, op.before.args, live)
            return carried, _live_slots(op.results, op.after.args, live)
    return [], _live_slots(op.results, op.results, live)


def _keep(op: Operation, segment: str, slots: list[int]) -> None:
    values = op.segment(segment)
    if len(slots) != len(values):
        op.set_segment(segment, [values[i] for i in slots])


def _drop_dead_operands(op: Operation, live: set[Value]) -> None:
    carried, passed = _kept_slots(op, live)
    if isinstance(op, If):
        for arm in op.regions:
            _keep(end_of(arm), "values", passed)
        return
    _keep(op, "inits", carried)
    _keep(end_of(op.regions[-1]), "values", carried)
    if isinstance(op, While):
        _keep(end_of(op.before), "values", passed)


def _drop_dead_definitions(op: Operation, live: set[Value]) -> None:
    carried, passed = _kept_slots(op, live)
    match op:
        case For():
            op.body.args[1:] = [op.body.args[1 + i] for i in carried]
        case While():
            op.before.args[:] = [op.before.args[i] for i in carried]
            op.after.args[:] = [op.after.args[i] for i in passed]
    op.results[:] = [op.results[i] for i in passed]


def _drop_operations(region: Region, live: set[Operation]) -> None:
    for op in region.ops:
        if op in live:
            for inner in op.regions:
                _drop_operations(inner, live)
        else:
            op.parent = None
    region.ops[:] = [op for op in region.ops if op in live]
