"""Control flow that differs between the lanes of a vector: each lane goes its own way, under a mask.

An arm of an `if` runs if there is a lane that takes it. A loop runs until no lane is live; what a lane
carries stays as it is from the round in which it leaves.

Masks that loops carry are held as integers of the size of what the loop computes with: a vector of i1 that
crosses blocks would be widened and narrowed by every comparison and selection.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from blocklang.codegen.emitter import Phi, llvm_type, splat_constant, vector_of
from blocklang.codegen.values import Lane
from blocklang.ir.core import Operation, Region, Value
from blocklang.ir.types import I1, PointerType, ScalarType, Type
from blocklang.ops.control import For, If, While
from blocklang.ops.creation import Constant
from blocklang.ops.elementwise import FUNCTIONS, And, Div, Elementwise, IntegerDiv, Rem

if TYPE_CHECKING:
    from blocklang.codegen.lanes import LaneEmitter
    from blocklang.codegen.loops import RegionEmitter

FEW = 8  # operations of an arm that cost less than asking whether a lane takes it
_DEAR: tuple[type[Operation], ...] = (Div, IntegerDiv, Rem, *FUNCTIONS.values())


def divergent_if(emitter: RegionEmitter, op: If) -> None:
    """Both arms, each for its lanes."""
    condition = emitter.values[op.condition]
    refused = _not(emitter, condition)
    taken = _arm(emitter, op.then_region, condition)
    passed = _arm(emitter, op.else_region, refused) if op.else_region is not None else []
    for output, one, other in zip(op.outputs, taken, passed, strict=True):
        emitter.values[output] = _select(emitter, condition, output.type, one, other)


def _arm(emitter: RegionEmitter, region: Region, mask: Lane) -> list[str]:
    """What one arm yields, as vectors that hold in the lanes of `mask`; no code costs nothing."""
    emit, width = emitter.emit, emitter.lanes.width
    if _is_cheap(region):
        return [emitter.lanes.vector(v) for v in emitter.region(region)]
    live = emitter.lanes.both(mask, emitter.lanes.live)
    inside, join, before = emit.new_block("arm"), emit.new_block("join"), emit.block
    emit.branch_if(_any(emitter, live), inside, join)
    emit.start(inside)
    inner = emitter.nested(live=live)
    texts = [inner.lanes.vector(v) for v in inner.region(region)]
    end = emit.block
    emit.branch(join)
    emit.start(join)
    kinds = [llvm_type(v.type, width) for v in region.ops[-1].operands]
    edges = [[(text, end), ("zeroinitializer", before)] for text in texts]
    return [emit.phi(kind, edge).name for kind, edge in zip(kinds, edges, strict=True)]


def _is_cheap(region: Region) -> bool:
    """True for an arm that any lane may compute, and in less time than a branch takes."""
    return len(region.ops) <= FEW and all(op.is_terminator or _is_simple(op) for op in region.ops)


def _is_simple(op: Operation) -> bool:
    return isinstance(op, (Elementwise, Constant)) and not op.effects and not isinstance(op, _DEAR)


def divergent_while(emitter: RegionEmitter, op: While) -> None:
    """Until no lane's condition holds.

    What a lane hands on when it leaves is found again in every later round if the first region only
    computes; otherwise it is kept aside. What is one number for all lanes that are left is a scalar, also
    where lanes that leave keep it: each takes it along in its last round. A part of the condition that is one
    for all lanes ends the loop, and is no part of a mask.
    """
    emit, lanes = emitter.emit, emitter.lanes
    mask = _CarriedMask(emitter, [v.type for v in op.inits])
    recomputes = all(
        o.is_terminator or (isinstance(o, (Elementwise, Constant)) and not o.effects) for o in op.before.ops
    )
    handed_on = _handed_on(op) if recomputes else set(op.before.args)
    shared = _shared(emitter, op, handed_on - _passed_as_it_is(op) if recomputes else handed_on)
    taken_along = shared & handed_on
    widths = [0 if arg in shared else lanes.width for arg in op.before.args]
    inits = [_held(lanes, emitter.values[v], w) for v, w in zip(op.inits, widths, strict=True)]
    ends = {
        arg: lanes.vector(emitter.values[v])
        for arg, v in zip(op.before.args, op.inits, strict=True)
        if arg in taken_along
    }
    header, body, done = emit.new_block("while"), emit.new_block("body"), emit.new_block("done")
    start, before = mask.start(lanes.live), emit.block
    emit.branch(header)
    emit.start(header)
    mask.open(start, before)
    phis = [emit.phi(llvm_type(x.type, x.width), [(x.text, before)]) for x in inits]
    carried = [Lane(p.name, x.type, x.width) for p, x in zip(phis, inits, strict=True)]
    taken = {arg: emit.phi(llvm_type(arg.type, lanes.width), [(x, before)]) for arg, x in ends.items()}
    kept = (
        []
        if recomputes
        else [emit.phi(llvm_type(v.type, lanes.width), [("zeroinitializer", before)]) for v in op.outputs]
    )
    live = mask.live()
    inner = emitter.nested(live=live)
    emitter.values.update(zip(op.before.args, carried, strict=True))
    condition, *handed = inner.region(op.before)
    passed = [v if v.is_uniform and not kept else _held(lanes, v, lanes.width) for v in handed]
    if kept:
        passed = [_select(emitter, live, v.type, v.text, k.name) for v, k in zip(passed, kept, strict=True)]
    common, own = _parts_of_condition(emitter, op)
    going = mask.narrowed(lanes, own or [condition])
    still = mask.lanes(going)
    goes_on = mask.any(going)
    for part in common if own else []:
        goes_on = emit.op(f"and i1 {goes_on}, {part.text}")
    emit.branch_if(goes_on, body, done)
    emit.start(body)
    emitter.values.update(zip(op.after.args, passed, strict=True))
    inner = emitter.nested(live=still)
    results = inner.region(op.after)
    yielded = [_held(inner.lanes, v, w) for v, w in zip(results, widths, strict=True)]
    for arg, phi, old, new in zip(op.before.args, phis, carried, yielded, strict=True):
        keeps = arg in handed_on and arg not in taken_along
        chosen = mask.select(going, old.type, new.text, old.text) if keeps else new.text
        if arg in taken:
            taken[arg].add(mask.select(going, new.type, lanes.vector(new), taken[arg].name), emit.block)
        phi.add(chosen, emit.block)
    for k, v in zip(kept, passed, strict=not recomputes):
        k.add(v.text, emit.block)
    mask.add(going, emit.block)
    emit.branch(header)
    emit.start(done)
    handed_values = op.before.ops[-1].segment("values")
    for output, value, lane in zip(op.outputs, handed_values, passed, strict=True):
        at_end = taken.get(value)
        emitter.values[output] = Lane(at_end.name, lane.type, lanes.width) if at_end is not None else lane


def _parts_of_condition(emitter: RegionEmitter, op: While) -> tuple[list[Lane], list[Lane]]:
    """What a loop's condition is a conjunction of: parts that are one for all lanes, and others."""
    stack = [op.before.ops[-1].operands[0]]
    common: list[Lane] = []
    own: list[Lane] = []
    while stack:
        value = stack.pop()
        inner = value.defining_op
        if isinstance(inner, And) and inner.parent is op.before:
            stack += [inner.rhs, inner.lhs]
            continue
        lane = emitter.values[value]
        (common if lane.is_uniform else own).append(lane)
    return common, own


def _passed_as_it_is(op: While) -> set[Value]:
    """What the loop carries and hands on only as it is: no other value that it hands on depends on it."""
    handed = op.before.ops[-1].segment("values")
    mixed: set[Value] = set()
    stack = [
        operand for v in handed if (o := v.defining_op) and o.parent is op.before for operand in o.operands
    ]
    while stack:
        value = stack.pop()
        inner = value.defining_op
        if value not in mixed:
            mixed.add(value)
            stack += inner.operands if inner is not None and inner.parent is op.before else []
    return {arg for arg in op.before.args if arg not in mixed}


def _held(lanes: LaneEmitter, value: Lane, width: int) -> Lane:
    """A value as a vector of `width` lanes, or as the scalar that it is."""
    return Lane(lanes.vector(value) if width else value.text, value.type, width)


def _shared(emitter: RegionEmitter, op: While, kept: set[Value]) -> set[Value]:
    """What the loop carries that is one number in all lanes that are still there: it starts so, and each
    round makes it from such numbers. What is `kept` for lanes that have left is none, nor what it makes.
    """
    starts = zip(op.before.args, op.inits, strict=True)
    shared = {arg for arg, init in starts if arg not in kept and emitter.values[init].is_uniform}
    inside = {v for region in op.regions for v in region.args}
    inside |= {r for region in op.regions for o in region.walk() for r in o.results}
    before, after = op.before.terminator, op.after.terminator
    assert before is not None
    assert after is not None
    while True:
        known = set(shared)

        def is_known(value: Value, known: set[Value] = known) -> bool:
            outer = emitter.values.get(value)
            return value in known if value in inside else outer is not None and outer.is_uniform

        for region, passed in ((op.before, None), (op.after, before.values)):
            if passed is not None:
                known |= {arg for arg, v in zip(region.args, passed, strict=True) if is_known(v)}
            for inner in region.ops:
                simple = isinstance(inner, (Elementwise, Constant)) and not inner.effects
                if simple and all(is_known(v) for v in inner.operands):
                    known |= set(inner.results)
        ends = zip(op.before.args, after.operands, strict=True)
        still = {arg for arg, v in ends if arg in shared and is_known(v)}
        if still == shared:
            return shared
        shared = still


def _handed_on(op: While) -> set[Value]:
    """What the loop carries that lanes which have left must keep: results that are read depend on it. What
    only the other lanes' condition depends on may go on.
    """
    end = op.before.terminator
    assert end is not None
    stack = [v for v, output in zip(end.values, op.outputs, strict=True) if output.uses]
    found: set[Value] = set()
    while stack:
        value = stack.pop()
        inner = value.defining_op
        if value not in found:
            found.add(value)
            stack += inner.operands if inner is not None and inner.parent is op.before else []
    return found & set(op.before.args)


def divergent_for(emitter: RegionEmitter, op: For) -> None:
    """Each lane its own range; `left` is how far its index is from its end, without a sign."""
    emit, lanes, width = emitter.emit, emitter.lanes, emitter.lanes.width
    index_type = op.start.type
    assert isinstance(index_type, ScalarType)
    kind = llvm_type(index_type, width)
    sign = "s" if index_type.is_signed else "u"
    first, stop, step = (lanes.vector(emitter.values[v]) for v in (op.start, op.stop, op.step))
    inits = [lanes.vector(emitter.values[v]) for v in op.inits]
    # Up if the step is positive, down if it is negative; no round if it is 0.
    zero, masks = "zeroinitializer", vector_of("i1", width)
    goes_up = emit.op(f"icmp {sign}gt {kind} {step}, {zero}")
    goes_down = (
        emit.op(f"icmp slt {kind} {step}, {zero}") if sign == "s" else splat_constant("i1", "false", width)
    )
    up = emit.op(f"and {masks} {goes_up}, {emit.op(f'icmp {sign}lt {kind} {first}, {stop}')}")
    down = emit.op(f"and {masks} {goes_down}, {emit.op(f'icmp {sign}gt {kind} {first}, {stop}')}")
    ahead, behind = emit.op(f"sub {kind} {stop}, {first}"), emit.op(f"sub {kind} {first}, {stop}")
    distance = emit.op(f"select {masks} {goes_down}, {kind} {behind}, {kind} {ahead}")
    size = emit.op(
        f"select {masks} {goes_down}, {kind} {emit.op(f'sub {kind} {zero}, {step}')}, {kind} {step}"
    )
    some = lanes.both(Lane(emit.op(f"or {masks} {up}, {down}"), I1, width), lanes.live)
    mask = _CarriedMask(emitter, [index_type, *(v.type for v in op.inits)])
    start = mask.start(some)
    header, body, done = emit.new_block("for"), emit.new_block("body"), emit.new_block("done")
    before = emit.block
    emit.branch(header)
    emit.start(header)
    mask.open(start, before)
    index, left = emit.phi(kind, [(first, before)]), emit.phi(kind, [(distance, before)])
    phis = [emit.phi(llvm_type(v.type, width), [(x, before)]) for v, x in zip(op.inits, inits, strict=True)]
    carried = [Lane(p.name, v.type, width) for p, v in zip(phis, op.inits, strict=True)]
    live = mask.live()
    emit.branch_if(mask.any([phi.name for phi in mask.phis]), body, done)
    emit.start(body)
    emitter.values.update(zip(op.body.args, [Lane(index.name, index_type, width), *carried], strict=True))
    inner = emitter.nested(live=live)
    yielded = [inner.lanes.vector(v) for v in inner.region(op.body)]
    for phi, old, new in zip(phis, carried, yielded, strict=True):
        phi.add(_select(emitter, live, old.type, new, old.text).text, emit.block)
    more = Lane(emit.op(f"icmp ugt {kind} {left.name}, {size}"), I1, width)
    mask.add(mask.narrowed(lanes, [more]), emit.block)
    index.add(emit.op(f"add {kind} {index.name}, {step}"), emit.block)
    left.add(emit.op(f"sub {kind} {left.name}, {size}"), emit.block)
    emit.branch(header)
    emit.start(done)
    emitter.values.update(zip(op.outputs, carried, strict=True))


class _CarriedMask:
    """A mask that a loop carries. Where the machine has registers for masks, in pieces of bits, one for each
    register of lanes; or else as one vector of -1 in the lanes where it holds and 0 in the others.
    """

    def __init__(self, emitter: RegionEmitter, types: Sequence[Type]) -> None:
        self.emitter = emitter
        self.emit = emitter.emit
        self.width = emitter.lanes.width
        bits = max(
            (
                64 if isinstance(t, PointerType) else t.bits
                for t in types
                if isinstance(t, (PointerType, ScalarType))
            ),
            default=32,
        )
        self.bits = max(bits, 8)
        vector_bytes = emitter.lanes.target.vector_bytes
        self.has_bits = vector_bytes >= 64
        self.lanes_each = min(vector_bytes * 8 // self.bits, self.width) if self.has_bits else self.width
        self.kind = vector_of("i1" if self.has_bits else f"i{self.bits}", self.lanes_each)
        self.phis: list[Phi] = []

    def open(self, start: list[str], before: str) -> None:
        """Begin the loop's first block."""
        self.phis = [self.emit.phi(self.kind, [(piece, before)]) for piece in start]

    def add(self, pieces: list[str], block: str) -> None:
        """What the loop carries on from a block."""
        for phi, piece in zip(self.phis, pieces, strict=True):
            phi.add(piece, block)

    def start(self, live: Lane | None) -> list[str]:
        if live is not None:
            return self._pieces(self.emitter.lanes.vector(live))
        scalar, one = ("i1", "true") if self.has_bits else (f"i{self.bits}", "-1")
        return [splat_constant(scalar, one, self.lanes_each)] * (self.width // self.lanes_each)

    def _pieces(self, mask: str) -> list[str]:
        narrow = vector_of("i1", self.width)
        if not self.has_bits:
            return [self.emit.op(f"sext {narrow} {mask} to {self.kind}")]
        if self.lanes_each == self.width:
            return [mask]
        return [self._picked(mask, mask, narrow, first, self.lanes_each) for first in self._firsts()]

    def _firsts(self) -> range:
        return range(0, self.width, self.lanes_each)

    def _picked(self, a: str, b: str, kind: str, first: int, count: int) -> str:
        picks = ", ".join(f"i32 {lane}" for lane in range(first, first + count))
        return self.emit.op(f"shufflevector {kind} {a}, {kind} {b}, <{count} x i32> <{picks}>")

    def narrowed(self, lanes: LaneEmitter, masks: Sequence[Lane]) -> list[str]:
        """The carried mask, where all of `masks` hold too."""
        found = [phi.name for phi in self.phis]
        for mask in masks:
            pieces = self._pieces(lanes.vector(mask))
            found = [
                self.emit.op(f"and {self.kind} {one}, {piece}")
                for one, piece in zip(found, pieces, strict=True)
            ]
        return found

    def live(self) -> Lane:
        """The lanes that have come into this round."""
        return self.lanes([phi.name for phi in self.phis])

    def lanes(self, pieces: list[str]) -> Lane:
        if not self.has_bits:
            text = self.emit.op(f"icmp slt {self.kind} {pieces[0]}, zeroinitializer")
            return Lane(text, I1, self.width)
        return Lane(self._joined(pieces, lambda lanes: vector_of("i1", lanes)), I1, self.width)

    def select(self, pieces: list[str], type: Type, one: str, other: str) -> str:
        """Lanes of `one` where the mask of these pieces holds, of `other` elsewhere."""
        kind = llvm_type(type, self.width)
        size = 64 if isinstance(type, PointerType) else type.bits if isinstance(type, ScalarType) else 0
        if len(pieces) == 1 or size != self.bits:
            return _select(self.emitter, self.lanes(pieces), type, one, other).text
        narrow, chosen = llvm_type(type, self.lanes_each), []
        for piece, first in zip(pieces, self._firsts(), strict=True):
            a, b = (self._picked(x, x, kind, first, self.lanes_each) for x in (one, other))
            chosen.append(self.emit.op(f"select {self.kind} {piece}, {narrow} {a}, {narrow} {b}"))
        return self._joined(chosen, lambda lanes: llvm_type(type, lanes))

    def _joined(self, pieces: list[str], kind: Callable[[int], str]) -> str:
        count = self.lanes_each
        while len(pieces) > 1:
            pairs = zip(pieces[::2], pieces[1::2], strict=True)
            pieces = [self._picked(low, high, kind(count), 0, 2 * count) for low, high in pairs]
            count *= 2
        return pieces[0]

    def any(self, pieces: list[str]) -> str:
        """Whether the mask of these pieces holds in any lane."""
        if not self.has_bits:
            return _any(self.emitter, self.lanes(pieces))
        some, *others = pieces
        for piece in others:
            some = self.emit.op(f"or {self.kind} {some}, {piece}")
        whole = f"i{self.lanes_each}"
        return self.emit.op(f"icmp ne {whole} {self.emit.op(f'bitcast {self.kind} {some} to {whole}')}, 0")


def _any(emitter: RegionEmitter, mask: Lane) -> str:
    """Whether the mask holds in any lane."""
    width = emitter.lanes.width
    kind = vector_of("i1", width)
    return emitter.emit.call("i1", f"llvm.vector.reduce.or.v{width}i1", [(kind, emitter.lanes.vector(mask))])


def _not(emitter: RegionEmitter, mask: Lane) -> Lane:
    width = emitter.lanes.width
    text = emitter.emit.op(f"xor {vector_of('i1', width)} {mask.text}, {splat_constant('i1', 'true', width)}")
    return Lane(text, mask.type, mask.width)


def _select(emitter: RegionEmitter, mask: Lane, type: Type, one: str, other: str) -> Lane:
    width = emitter.lanes.width
    text = emitter.lanes.context(width).select(emitter.lanes.vector(mask), type, one, other)
    return Lane(text, type, width)
