"""Control flow that differs between the lanes of a vector: each lane goes its own way, under a mask.

An arm of an `if` runs if there is a lane that takes it. A loop runs until no lane is live; what a lane
carries stays as it is from the round in which it leaves.

Masks that loops carry are held as integers of the size of what the loop computes with: a vector of i1 that
crosses blocks would be widened and narrowed by every comparison and selection.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from blocklang.codegen.emitter import Phi, llvm_type, splat_constant, vector_of
from blocklang.codegen.values import Lane
from blocklang.ir.core import Operation, Region, Value
from blocklang.ir.types import I1, PointerType, ScalarType, Type
from blocklang.ops.control import For, If, While
from blocklang.ops.creation import Constant
from blocklang.ops.elementwise import FUNCTIONS, Div, Elementwise, IntegerDiv, Rem

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
    computes; otherwise it is kept aside.
    """
    emit, lanes = emitter.emit, emitter.lanes
    mask = _CarriedMask(emitter, [v.type for v in op.inits])
    recomputes = all(
        o.is_terminator or (isinstance(o, (Elementwise, Constant)) and not o.effects) for o in op.before.ops
    )
    handed_on = _handed_on(op) if recomputes else set(op.before.args)
    shared = _shared(emitter, op, handed_on)
    widths = [0 if arg in shared else lanes.width for arg in op.before.args]
    inits = [_held(lanes, emitter.values[v], w) for v, w in zip(op.inits, widths, strict=True)]
    header, body, done = emit.new_block("while"), emit.new_block("body"), emit.new_block("done")
    start, before = mask.start(lanes.live), emit.block
    emit.branch(header)
    emit.start(header)
    mask.phi = emit.phi(mask.kind, [(start, before)])
    phis = [emit.phi(llvm_type(x.type, x.width), [(x.text, before)]) for x in inits]
    carried = [Lane(p.name, x.type, x.width) for p, x in zip(phis, inits, strict=True)]
    kept = (
        []
        if recomputes
        else [emit.phi(llvm_type(v.type, lanes.width), [("zeroinitializer", before)]) for v in op.outputs]
    )
    live = mask.lanes(mask.phi.name)
    inner = emitter.nested(live=live)
    emitter.values.update(zip(op.before.args, carried, strict=True))
    condition, *handed = inner.region(op.before)
    passed = [v if v.is_uniform and not kept else _held(lanes, v, lanes.width) for v in handed]
    if kept:
        passed = [_select(emitter, live, v.type, v.text, k.name) for v, k in zip(passed, kept, strict=True)]
    going = mask.narrowed(Lane(lanes.vector(condition), I1, lanes.width))
    still = mask.lanes(going)
    emit.branch_if(_any(emitter, still), body, done)
    emit.start(body)
    emitter.values.update(zip(op.after.args, passed, strict=True))
    inner = emitter.nested(live=still)
    results = inner.region(op.after)
    yielded = [_held(inner.lanes, v, w) for v, w in zip(results, widths, strict=True)]
    for arg, phi, old, new in zip(op.before.args, phis, carried, yielded, strict=True):
        chosen = _select(emitter, still, old.type, new.text, old.text) if arg in handed_on else new
        phi.add(chosen.text, emit.block)
    for k, v in zip(kept, passed, strict=not recomputes):
        k.add(v.text, emit.block)
    mask.phi.add(going, emit.block)
    emit.branch(header)
    emit.start(done)
    emitter.values.update(zip(op.outputs, passed, strict=True))


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
    mask.phi = emit.phi(mask.kind, [(start, before)])
    index, left = emit.phi(kind, [(first, before)]), emit.phi(kind, [(distance, before)])
    phis = [emit.phi(llvm_type(v.type, width), [(x, before)]) for v, x in zip(op.inits, inits, strict=True)]
    carried = [Lane(p.name, v.type, width) for p, v in zip(phis, op.inits, strict=True)]
    live = mask.lanes(mask.phi.name)
    emit.branch_if(_any(emitter, live), body, done)
    emit.start(body)
    emitter.values.update(zip(op.body.args, [Lane(index.name, index_type, width), *carried], strict=True))
    inner = emitter.nested(live=live)
    yielded = [inner.lanes.vector(v) for v in inner.region(op.body)]
    for phi, old, new in zip(phis, carried, yielded, strict=True):
        phi.add(_select(emitter, live, old.type, new, old.text).text, emit.block)
    more = Lane(emit.op(f"icmp ugt {kind} {left.name}, {size}"), I1, width)
    mask.phi.add(mask.narrowed(more), emit.block)
    index.add(emit.op(f"add {kind} {index.name}, {step}"), emit.block)
    left.add(emit.op(f"sub {kind} {left.name}, {size}"), emit.block)
    emit.branch(header)
    emit.start(done)
    emitter.values.update(zip(op.outputs, carried, strict=True))


class _CarriedMask:
    """A mask that a loop carries: -1 in the lanes where it holds, else 0."""

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
        self.scalar = f"i{max(bits, 8)}"
        self.kind = vector_of(self.scalar, self.width)
        self.phi: Phi | None = None

    def start(self, live: Lane | None) -> str:
        if live is None:
            return splat_constant(self.scalar, "-1", self.width)
        return self._wide(live)

    def _wide(self, mask: Lane) -> str:
        narrow = vector_of("i1", self.width)
        return self.emit.op(f"sext {narrow} {self.emitter.lanes.vector(mask)} to {self.kind}")

    def narrowed(self, mask: Lane) -> str:
        """The carried mask, where `mask` holds too."""
        assert self.phi is not None
        return self.emit.op(f"and {self.kind} {self.phi.name}, {self._wide(mask)}")

    def lanes(self, text: str) -> Lane:
        return Lane(self.emit.op(f"icmp slt {self.kind} {text}, zeroinitializer"), I1, self.width)


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
