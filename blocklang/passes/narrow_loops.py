"""End loops where their masks do.

    placed @k(%x: ptr<f32>, %y: ptr<f32>, %n: i64) {
      %c0 = constant value=0 : i64
      %c99 = constant value=99 : i64
      %one = constant value=1.0 : f32
      %s = lanes %c0, %c99, width=32, combines=["sum"], extent=99 : f32 {
        (%i: i64):
        %m = in_bounds %i, %c0, %n : i1
        %p = offset %x, %i : ptr<f32>
        %v = load %p, mask=%m, other=%one : f32
        yield %v
      }
      lanes %c0, %c99, width=64 {
        (%j: i64):
        %l = in_bounds %j, %c0, %n : i1
        %q = offset %y, %j : ptr<f32>
        store %q, %s, mask=%l
        yield
      }
      return
    }

becomes

    placed @k(%x: ptr<f32>, %y: ptr<f32>, %n: i64) {
      %c0 = constant value=0 : i64
      %c99 = constant value=99 : i64
      %one = constant value=1.0 : f32
      %v0 = minimum %c99, %n : i64
      %v1 = maximum %v0, %c0 : i64
      %s = lanes %c0, %v1, %one, width=32, combines=["sum"], extent=99 : f32 {
        (%i: i64):
        %m = constant value=true : i1
        %p = offset %x, %i : ptr<f32>
        %v = load %p, mask=%m, other=%one : f32
        yield %v
      }
      %v2 = minimum %c99, %n : i64
      %v3 = maximum %v2, %c0 : i64
      lanes %c0, %v3, width=64 {
        (%j: i64):
        %l = constant value=true : i1
        %q = offset %y, %j : ptr<f32>
        store %q, %s, mask=%l
        yield
      }
      return
    }

A loop that only stores ends with the mask of its stores. One that folds lanes ends early if all lanes that
it leaves out yield one value, which is computed by running the body with the mask false (its loads give
`other`, and a buffer that holds such loads has it there); `lanes` folds that padding in without visiting the
lanes. A loop that writes a buffer ends early only if every loop that reads the buffer does so for the same
bounds.

Requires: level placed, equal masks are equal values. Keeps: all results; every effect and its order.
"""

from __future__ import annotations

from blocklang.ir.builder import Builder
from blocklang.ir.core import Kernel, Operation, Region, Value
from blocklang.ir.rewriting import clone_operation
from blocklang.ir.types import I1, I32, PointerType, element_type
from blocklang.ops.atomics import AtomicCas, AtomicRmw
from blocklang.ops.control import If
from blocklang.ops.creation import Constant
from blocklang.ops.elementwise import And, Cast, Elementwise, Maximum, Minimum, Select
from blocklang.ops.memory import Load, Store
from blocklang.ops.scan import Running
from blocklang.ops.tile import BufferOp, Group, InBounds, Lanes, Read, View, Write

Bounds = tuple[Value, Value]


def conjuncts(mask: Value | None) -> list[Value]:
    """The masks whose conjunction `mask` is."""
    if mask is None:
        return []
    op = mask.defining_op
    if isinstance(op, And):
        return conjuncts(op.lhs) + conjuncts(op.rhs)
    return [mask]


def _own_bounds(mask: Value | None, loop: Operation) -> dict[Bounds, Value]:
    """The ranges of the loop's index, with bounds from outside of it, that `mask` implies."""
    found: dict[Bounds, Value] = {}
    index = loop.regions[0].args[0]
    for part in conjuncts(mask):
        op = part.defining_op
        if isinstance(op, InBounds) and op.index is index and _outside(loop, op.low, op.high):
            found[(op.low, op.high)] = part
    return found


def _outside(loop: Operation, *values: Value) -> bool:
    body = loop.regions[0]
    return all(
        v not in body.args
        and (v.defining_op is None or not body.encloses(v.defining_op))
        and not _is_inner_arg(v, loop)
        for v in values
    )


def _is_inner_arg(value: Value, loop: Operation) -> bool:
    owner = value.owner
    parent = getattr(owner, "parent", None)
    return value.defining_op is None and isinstance(parent, Operation) and loop.regions[0].encloses(parent)


def _candidate(loop: Operation, kept: _KeptLoads) -> set[Bounds]:
    """Bounds outside of which the loop does nothing but write buffers; their readers are checked later."""
    if isinstance(loop, Lanes) and loop.combines:
        return _foldable(loop, kept)
    common: set[Bounds] | None = None
    for op in loop.regions[0].walk():
        if isinstance(op, AtomicCas):  # has no mask: every lane counts
            return set()
        if isinstance(op, (Store, AtomicRmw)):
            own = set(_own_bounds(op.mask, loop))
            common = own if common is None else common & own
        elif isinstance(op, Write) and isinstance(loop, Group):
            return set()
    if common is None:  # only writes: where all loads agree
        common = _common_load_bounds(loop) if isinstance(loop, Lanes) else set()
    if any(isinstance(op, Running) for op in loop.regions[0].ops):  # what comes first is part of the rest
        common = {b for b in common if b[0] is loop.operands[0]}
    return common


def _common_load_bounds(loop: Operation) -> set[Bounds]:
    common: set[Bounds] | None = None
    for op in loop.regions[0].walk():
        if isinstance(op, Load):
            own = set(_own_bounds(op.mask, loop))
            common = own if common is None else common & own
    return common or set()


def _foldable(loop: Lanes, kept: _KeptLoads) -> set[Bounds]:
    """Bounds outside of which a fold sees one padding value: of its masked loads, kept ones included, and of
    what chooses lanes; low end included.
    """
    found: set[Bounds] = set()
    for op in loop.body.walk():
        if isinstance(op, Load) and op.volatile:
            return set()
        if isinstance(op, (Load, Select)):
            found |= set(_own_bounds(op.mask if isinstance(op, Load) else op.condition, loop))
        elif isinstance(op, Read):
            found |= set(kept.of(op, loop))
    return {b for b in found if b[0] is loop.low and _Padding(loop, b, kept).is_possible()}


class _KeptLoads:
    """Buffers that hold masked loads and nothing else: what stands in them outside of the masks' bounds."""

    def __init__(self, kernel: Kernel) -> None:
        self._others: dict[Value, dict[Bounds, Value | None]] = {}
        for op in kernel.walk():
            if isinstance(op, BufferOp):
                self._others[op.result] = self._outside_of(op.result)

    def _outside_of(self, buffer: Value) -> dict[Bounds, Value | None]:
        """Per bounds that all writers share, what their loads give where the mask is false (None is 0)."""
        if not all(isinstance(user, (Read, Write)) for user in buffer.users):
            return {}
        common: dict[Bounds, Value | None] | None = None
        for write in [user for user in buffer.users if isinstance(user, Write)]:
            loop, load = write.parent_op, write.value.defining_op
            if not isinstance(loop, Lanes) or not isinstance(load, Load) or load.parent_op is not loop:
                return {}
            if write.indices[-1] is not loop.body.args[0]:
                return {}
            own = dict.fromkeys(_own_bounds(load.mask, loop), load.other)
            common = own if common is None else {b: o for b, o in common.items() if own.get(b, self) is o}
        return common or {}

    def of(self, read: Read, loop: Operation) -> dict[Bounds, Value | None]:
        """The same for a read at the index of `loop`, where the bounds and the value exist before it."""
        if read.indices[-1] is not loop.regions[0].args[0]:
            return {}
        found = self._others.get(read.buffer, {})
        return {
            bounds: other
            for bounds, other in found.items()
            if all(_exists_before(v, loop) for v in (*bounds, other) if v is not None)
        }


def _exists_before(value: Value, loop: Operation) -> bool:
    """True if a value that an earlier loop uses is defined in a region around `loop`, too."""
    owner = value.owner
    region = owner if isinstance(owner, Region) else owner.parent
    return region is not None and region.encloses(loop)


class _Padding:
    """What the body of a fold yields where a range mask is false: the body, partially evaluated."""

    def __init__(self, loop: Lanes, bounds: Bounds, kept: _KeptLoads) -> None:
        self.loop = loop
        self.bounds = bounds
        self.kept = kept
        self.masks = {
            op.result
            for op in loop.body.walk()
            if isinstance(op, InBounds) and op.index is loop.body.args[0] and (op.low, op.high) == bounds
        }
        self.uniform = self._find_uniform()

    def is_possible(self) -> bool:
        """True if all that is folded is one value where the mask is false."""
        values = self.loop.body.ops[-1].operands
        if self.loop.combines[0].startswith("arg"):
            values = values[:1]
        return all(self._is_known(v) for v in values)

    def _is_false(self, mask: Value | None) -> bool:
        return any(part in self.masks for part in conjuncts(mask))

    def _is_known(self, value: Value) -> bool:
        return value in self.uniform or _outside(self.loop, value)

    def _find_uniform(self) -> set[Value]:
        """The values of the body that are the same in all lanes outside of the bounds; in program order."""
        self.uniform = set()
        for op in self.loop.body.ops:
            decided = all(self._is_known(v) for v in self.needs(op)) and self._is_silent(op)
            if decided or any(self._is_false(r) for r in op.results):
                self.uniform |= set(op.results)
        return self.uniform

    def _is_silent(self, op: Operation) -> bool:
        """True for what can be computed anew and touches no memory outside of the bounds."""
        if isinstance(op, Load):
            return self._is_false(op.mask)
        if isinstance(op, Read):
            return self.bounds in self.kept.of(op, self.loop)
        return isinstance(op, (Constant, Elementwise)) and not op.effects

    def needs(self, op: Operation) -> list[Value]:
        """The operands that decide the result outside of the bounds."""
        match op:
            case Select() if self._is_false(op.condition):
                return [op.if_false]
            case Load() if self._is_false(op.mask):
                return [op.other] if op.other is not None else []
            case Read() if self.bounds in (others := self.kept.of(op, self.loop)):
                other = others[self.bounds]
                return [other] if other is not None else []
        return list(op.operands)

    def evaluate(self, builder: Builder, values: list[Value]) -> list[Value]:
        """The padding as values before the loop: the body once more, with the mask false."""
        needed: set[Value] = set(values)
        for op in reversed(self.loop.body.ops):
            if any(r in needed for r in op.results) and not any(self._is_false(r) for r in op.results):
                needed |= set(self.needs(op))
        known: dict[Value, Value] = {}
        for op in self.loop.body.ops:
            if any(r in needed for r in op.results):
                known[op.results[0]] = self._copy(builder, op, known)
        return [known.get(v, v) for v in values]

    def _copy(self, builder: Builder, op: Operation, known: dict[Value, Value]) -> Value:
        result = op.results[0]
        if self._is_false(result):
            return builder.value(Constant, value=False, result_types=[I1])
        if isinstance(op, Select) and self._is_false(op.condition):
            chosen: Value = op.if_false
            return known.get(chosen, chosen)
        if isinstance(op, (Load, Read)):
            other = op.other if isinstance(op, Load) else self.kept.of(op, self.loop)[self.bounds]
            return known.get(other, other) if other is not None else _zero(builder, result)
        return builder.insert(clone_operation(op, dict(known))).results[0]


def _zero(builder: Builder, value: Value) -> Value:
    element = element_type(value.type)
    if isinstance(element, PointerType):
        return builder.value(Constant, value=0, result_types=[element])
    number: int | float | bool = 0.0 if element.is_float else False if element.bits == 1 else 0
    return builder.value(Constant, value=number, result_types=[value.type])


# ---- buffers shared between loops ----


def _readers_agree(loop: Operation, bounds: Bounds, candidates: dict[Operation, set[Bounds]]) -> bool:
    """True if every reader of a buffer that `loop` writes reads only inside the same bounds, at its own
    index.
    """
    is_lasting = not any(_is_repeated(value) for value in bounds)
    for op in loop.regions[0].walk():
        if not isinstance(op, Write):
            continue
        if op.indices[-1] is not loop.regions[0].args[0]:
            return False
        for user in op.buffer.users:
            if isinstance(user, View):
                return False
            if user.parent_op is loop:
                if isinstance(user, Read) and user.indices[-1] is not loop.regions[0].args[0]:
                    return False
                continue
            reader = user.parent_op
            if isinstance(user, Write) and is_lasting:  # what nobody reads may be written or not
                continue
            if (
                not isinstance(user, (Read, Write))
                or reader is None
                or bounds not in candidates.get(reader, set())
            ):
                return False
            if user.indices[-1] is not reader.regions[0].args[0]:
                return False
    return True


def _is_repeated(value: Value) -> bool:
    """True if the value may be another one each time that the place of its definition is passed."""
    owner = value.owner
    region = owner if isinstance(owner, Region) else owner.parent
    while region is not None and isinstance(region.parent, Operation):
        if not isinstance(region.parent, If):
            return True
        region = region.parent.parent
    return False


def _settle(candidates: dict[Operation, set[Bounds]]) -> None:
    """Drop candidates until all that are left agree about the buffers that they share."""
    changed = True
    while changed:
        changed = False
        for loop, bounds in candidates.items():
            for one in list(bounds):
                if not _readers_agree(loop, one, candidates):
                    bounds.discard(one)
                    changed = True


# ---- the change ----


def _drop_implied(loop: Operation) -> None:
    """A range of the loop's index that holds all of the loop is true."""
    low, high = loop.operands[0], loop.operands[1]
    for op in loop.regions[0].args[0].users:
        if isinstance(op, InBounds) and _at_most(op.low, low) and _at_most(high, op.high):
            op.replace_with(Builder.before_op(op).value(Constant, value=True, result_types=[I1]))


def _at_most(one: Value, other: Value) -> bool:
    a, b = one.defining_op, other.defining_op
    return one is other or (isinstance(a, Constant) and isinstance(b, Constant) and a.value <= b.value)


def _narrow(loop: Operation, bounds: set[Bounds], kept: _KeptLoads) -> None:
    builder = Builder.before_op(loop)
    low, high = loop.operands[0], loop.operands[1]
    new_low, new_high = low, high
    for start, end in sorted(bounds, key=lambda b: (b[0].name, b[1].name)):
        if start is not low:
            new_low = builder.value(Maximum, new_low, start)
        if end is not high:
            new_high = builder.value(Minimum, new_high, end)
    if new_high is not high:
        new_high = builder.value(Maximum, new_high, low)
    if isinstance(loop, Lanes) and loop.combines:
        _set_pads(loop, bounds, builder, new_high, kept)
    loop.set_operand(0, new_low)
    loop.set_operand(1, new_high)
    _assume_inside(loop, bounds)


def _set_pads(loop: Lanes, bounds: set[Bounds], builder: Builder, high: Value, kept: _KeptLoads) -> None:
    (bound,) = bounds
    padding = _Padding(loop, bound, kept)
    values = loop.body.terminator.operands
    pads = padding.evaluate(builder, values[:1])
    if loop.combines[0].startswith("arg"):
        pads.append(builder.value(Cast, high, result_types=[I32]))
    loop.set_segment("pads", pads)


def _assume_inside(loop: Operation, bounds: set[Bounds]) -> None:
    """Inside the narrowed loop the masks of its bounds hold."""
    index = loop.regions[0].args[0]
    ends = {high for _, high in bounds}
    for op in list(loop.regions[0].walk()):
        if isinstance(op, InBounds) and op.index is index:
            holds = (op.low, op.high) in bounds
            if holds or op.low in ends:  # or it begins where the loop ends now
                op.replace_with(Builder.before_op(op).value(Constant, value=holds, result_types=[I1]))


def narrow_loops(kernel: Kernel) -> None:
    """Narrow every loop of a placed kernel as far as its masks allow."""
    assert kernel.level == "placed"
    loops: list[Operation] = [op for op in kernel.walk() if isinstance(op, (Group, Lanes))]
    for loop in loops:
        _drop_implied(loop)
    kept = _KeptLoads(kernel)
    candidates = {op: _candidate(op, kept) for op in loops}
    for loop, bounds in candidates.items():
        if isinstance(loop, Lanes) and loop.combines:
            # One padding value describes one bound only, and several folds of one loop may disagree.
            keep = sorted(bounds, key=lambda b: b[1].name)[:1] if len(loop.combines) == 1 else []
            candidates[loop] = set(keep)
    _settle(candidates)
    for loop, bounds in candidates.items():
        if bounds:
            _narrow(loop, bounds, kept)
