"""Atomic operations and fences.

Lanes leave their vectors one after another, in ascending order; each live one is an atomic instruction, or
a loop around a compare-exchange where there is none. LLVM is told that elements are aligned, since it would
call a library otherwise; x86 does not need it.
"""

from __future__ import annotations

from collections.abc import Callable

from blocklang.codegen.emitter import Emitter, llvm_scalar, llvm_type, vector_of
from blocklang.codegen.floats import constant_text
from blocklang.codegen.lanes import LaneEmitter
from blocklang.codegen.loops import RegionEmitter
from blocklang.codegen.values import Lane, is_false, is_true
from blocklang.ir.core import Operation, Value
from blocklang.ir.types import BF16, F16, ScalarType
from blocklang.ops.atomics import AtomicCas, AtomicRmw
from blocklang.ops.memory import pointee

_ORDERINGS = {"acq_rel": "acq_rel", "acquire": "acquire", "release": "release", "relaxed": "monotonic"}
_OPCODES = {"add": "add", "and": "and", "or": "or", "xor": "xor", "xchg": "xchg"}

Exchange = Callable[[str, list[str]], str]  # from the registers of one lane's address and values to the old


def fence(emitter: RegionEmitter, op: Operation) -> None:
    """Emit a fence."""
    emitter.lanes.order_streams()
    emitter.emit.do("fence acq_rel")


def atomic_rmw(emitter: RegionEmitter, op: Operation) -> None:
    """Emit one `atomic_rmw`."""
    assert isinstance(op, AtomicRmw)
    one = _One(emitter.lanes, pointee(op.pointer.type), _ORDERINGS[op.sem])
    mask = emitter.lanes.mask_of(op.mask)
    _each_lane(emitter.lanes, op, mask, [op.value], lambda place, values: one.rmw(op.kind, place, values[0]))


def atomic_cas(emitter: RegionEmitter, op: Operation) -> None:
    """Emit one `atomic_cas`."""
    assert isinstance(op, AtomicCas)
    one = _One(emitter.lanes, pointee(op.pointer.type), _ORDERINGS[op.sem])
    mask = emitter.lanes.mask_of(None)
    _each_lane(emitter.lanes, op, mask, [op.compare, op.value], lambda place, values: one.cas(place, *values))


def _each_lane(
    lanes: LaneEmitter, op: AtomicRmw | AtomicCas, mask: Lane, values: list[Value], exchange: Exchange
) -> None:
    lanes.order_streams()
    emit, type, width = lanes.emit, pointee(op.pointer.type), lanes.width
    given = [lanes.get(v) for v in (op.pointer, *values)]
    zero = constant_text(type, 0.0 if type.is_float else 0)
    if is_false(mask):
        lanes.values[op.result] = Lane(zero, type)
        return
    if not width:
        place, *texts = (g.text for g in given)
        old = _where(emit, mask.text, type, zero, lambda: exchange(place, texts))
        lanes.values[op.result] = Lane(old, type)
        return
    texts = [g.text if g.is_uniform else lanes.vector(g) for g in given]
    live = "true" if is_true(mask) else lanes.vector(mask)
    result = "zeroinitializer"
    for lane in range(width):

        def element(text: str, kind: str, is_scalar: bool, lane: int = lane) -> str:
            return text if is_scalar else emit.op(f"extractelement {kind} {text}, i64 {lane}")

        def exchanged() -> str:
            kinds = [llvm_type(g.type, width) for g in given]
            scalars = [element(t, k, g.is_uniform) for t, k, g in zip(texts, kinds, given, strict=True)]
            return exchange(scalars[0], scalars[1:])

        runs = element(live, vector_of("i1", width), live == "true")
        old = _where(emit, runs, type, zero, exchanged)
        if op.result.uses:
            result = emit.op(
                f"insertelement {llvm_type(type, width)} {result}, {llvm_scalar(type)} {old}, i64 {lane}"
            )
    lanes.values[op.result] = Lane(result, type, width)


def _where(emit: Emitter, condition: str, type: ScalarType, otherwise: str, body: Callable[[], str]) -> str:
    """What `body` gives where the condition holds; it is emitted behind a branch."""
    if condition == "true":
        return body()
    before, then, join = emit.block, emit.new_block("atomic"), emit.new_block("after")
    emit.branch_if(condition, then, join)
    emit.start(then)
    text = body()
    end = emit.block
    emit.branch(join)
    emit.start(join)
    return emit.phi(llvm_scalar(type), [(otherwise, before), (text, end)]).name


class _One:
    """The code of one lane on elements of one type."""

    def __init__(self, lanes: LaneEmitter, type: ScalarType, ordering: str) -> None:
        self.emit = lanes.emit
        self.context = lanes.context(0)
        self.type = type
        self.ordering = ordering
        self.bits = f"i{type.bits}"
        self.text = llvm_scalar(type)

    def rmw(self, kind: str, place: str, value: str) -> str:
        type = self.type
        if kind in ("max", "min"):
            if type.is_float:
                return self.float_extremum(kind, place, value)
            return self.instruction(kind if type.is_signed else f"u{kind}", self.text, place, value)
        if type.is_float and kind == "add":
            if type in (F16, BF16):
                return self.add_small(place, value)
            return self.instruction("fadd", self.text, place, value)
        return self.instruction(_OPCODES[kind], self.text, place, value)

    def instruction(self, opcode: str, type: str, place: str, value: str) -> str:
        return self.emit.op(
            f"atomicrmw {opcode} ptr {place}, {type} {value} {self.ordering}, align {self.type.bytes}"
        )

    def as_bits(self, text: str) -> str:
        return text if self.text == self.bits else self.emit.op(f"bitcast {self.text} {text} to {self.bits}")

    def from_bits(self, text: str) -> str:
        return text if self.text == self.bits else self.emit.op(f"bitcast {self.bits} {text} to {self.text}")

    def float_extremum(self, kind: str, place: str, value: str) -> str:
        """By the bits: numbers without a sign are ordered as signed integers are. One with a sign is larger
        than those whose bits are larger unsigned numbers.
        """
        emit, word = self.emit, self.as_bits(value)
        without, negative, join = (emit.new_block(n) for n in ("plus", "minus", "extremum"))
        emit.branch_if(emit.op(f"icmp sge {self.bits} {word}, 0"), without, negative)
        emit.start(without)
        one = self.instruction(kind, self.bits, place, word)
        emit.branch(join)
        emit.start(negative)
        other = self.instruction("umin" if kind == "max" else "umax", self.bits, place, word)
        emit.branch(join)
        emit.start(join)
        return self.from_bits(emit.phi(self.bits, [(one, without), (other, negative)]).name)

    def add_small(self, place: str, value: str) -> str:
        """A sum of 16-bit floats, computed in f32 and rounded once, exchanged if nothing came between."""
        emit, c = self.emit, self.context
        first = emit.op(f"load atomic i16, ptr {place} monotonic, align 2")
        before, again, done = emit.block, emit.new_block("again"), emit.new_block("added")
        emit.branch(again)
        emit.start(again)
        expected = emit.phi("i16", [(first, before)])
        total = emit.op(
            f"fadd float {c.widen(self.type, self.from_bits(expected.name))}, {c.widen(self.type, value)}"
        )
        found, success = self.exchange(place, expected.name, self.as_bits(c.narrow(self.type, total)))
        expected.add(found, emit.block)
        emit.branch_if(success, done, again)
        emit.start(done)
        return self.from_bits(expected.name)

    def exchange(self, place: str, compare: str, value: str) -> tuple[str, str]:
        """A compare-exchange of bits: what was found, and whether it was equal."""
        failure = "acquire" if self.ordering in ("acquire", "acq_rel") else "monotonic"
        pair = self.emit.op(
            f"cmpxchg ptr {place}, {self.bits} {compare}, {self.bits} {value} {self.ordering} {failure}, "
            f"align {self.type.bytes}"
        )
        kind = f"{{ {self.bits}, i1 }}"
        return self.emit.op(f"extractvalue {kind} {pair}, 0"), self.emit.op(f"extractvalue {kind} {pair}, 1")

    def cas(self, place: str, compare: str, value: str) -> str:
        return self.from_bits(self.exchange(place, self.as_bits(compare), self.as_bits(value))[0])
