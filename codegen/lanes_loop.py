"""The loop over lanes: cut into a main part without masks and what is left.

[low, high) is narrowed to where every `in_bounds` mask of the body holds; there the loop runs on full
vectors without any mask. What is before and after runs the same body with the masks as lane predicates.
"""

from __future__ import annotations

import math

from blocklang.codegen.division import Divisor, has_slow_division, prepare_divisor
from blocklang.codegen.emitter import llvm_scalar, llvm_type
from blocklang.codegen.folds import PARTIALS, Fold
from blocklang.codegen.lanes import RunningState, memory_type
from blocklang.codegen.loops import RegionEmitter
from blocklang.codegen.scan import RunningLanes
from blocklang.codegen.streaming import may_stream
from blocklang.codegen.values import Lane
from blocklang.ir.core import Operation, Region, Value
from blocklang.ir.declaration import Effect
from blocklang.ir.types import I64, ScalarType
from blocklang.ops.elementwise import Cast, Div, Elementwise
from blocklang.ops.memory import Load, Offset, Store
from blocklang.ops.scan import Running
from blocklang.ops.tile import InBounds, Lanes, Read, Write

# What loops that only read ask for in advance. Measured on the sum of 2^26 floats: 18.1 ms with 512 bytes, 20
# without, 18.7 with 2 KB, 22 with 8 KB.
PREFETCH_BYTES = 512
LONG_BYTES = 1 << 13  # shorter stretches end before that pays


class LanesLoop:
    """Emits one `lanes` operation."""

    def __init__(self, emitter: RegionEmitter, op: Lanes) -> None:
        self.emitter = emitter
        self.emit = emitter.emit
        self.op = op
        self.width = op.width if op.width > 1 else 0
        self.low, self.high = emitter.text(op.low), emitter.text(op.high)
        if self.width and self._crosses_panels():
            self.width = 0
        self.folds: list[Fold] = []
        types = [t for r in op.results if isinstance(t := r.type, ScalarType)]
        for combine in op.combines:
            count = 2 if combine.startswith("arg") else 1
            fold = Fold(emitter.lanes, combine, types[:count], self.width)
            assert not fold.ordered or fold.lanes == PARTIALS or op.extent <= op.width
            self.folds.append(fold)
            types = types[count:]
        self.runs = [
            (inner, RunningLanes(emitter, inner, self.width))
            for inner in op.body.ops
            if isinstance(inner, Running) and self.width
        ]
        self.prefetch = op.prefetch or self._long_fold_prefetch()

    def _crosses_panels(self) -> bool:
        """True if a vector could begin in one panel of a packed matrix and end in the next: the loop does not
        start at a multiple of its width, as one over the second part of a row. It goes lane by lane then.
        """
        if self.low.isdecimal() and int(self.low) % self.width == 0:
            return False
        index, buffers = self.op.body.args[0], self.emitter.lanes.buffers
        accesses = (inner for inner in self.op.body.walk() if isinstance(inner, (Read, Write)))
        packed = any(a.indices and a.indices[-1] is index and buffers[a.buffer].panel for a in accesses)
        return packed and not self.op.combines and not any(isinstance(i, Running) for i in self.op.body.ops)

    def _long_fold_prefetch(self) -> int:
        """How many lanes ahead a fold of so many bytes reads that they hardly come from the first cache."""
        reads = (op for op in self.op.body.ops if isinstance(op, Load))
        size = max((memory_type(op.result.type).bytes for op in reads), default=0)
        return PREFETCH_BYTES // size if self.folds and self.op.extent * size >= LONG_BYTES else 0

    def run(self) -> None:
        if len(self.folds) == 1 and self._can_guess(self.folds[0]):
            self.finish([self.guess(self.folds[0])])
            return
        state = [text for fold in self.folds for text in fold.starts()]
        if not self.width:
            state = self.loop(self.low, self.high, state, assumed=frozenset(), masked=False, step=1)
        else:
            state = self.vector_loops(state)
        self.finish(self.scalars_of(state))

    def _can_guess(self, fold: Fold) -> bool:
        if fold.finds_index and not self._yields_index():
            return False
        return fold.can_guess() and (not fold.types[0].is_float or self._can_repeat())

    def _yields_index(self) -> bool:
        """True if the index that the body yields is the loop's."""
        op = self.op.body.terminator.operands[1].defining_op
        return isinstance(op, Cast) and op.operands[0] is self.op.body.args[0]

    def _can_repeat(self) -> bool:
        """True if the body may run twice: it only reads."""
        return not any(op.effects - {Effect.READ, Effect.READ_BUFFER} for op in self.op.body.walk())

    def guess(self, fold: Fold) -> list[str]:
        """An extremum by plain comparisons; if it is doubtful, exactly, by running the loops again."""
        emit = self.emit
        fold.guessing = True
        plain = fold.finish(self.vector_loops(fold.starts()))
        doubtful = fold.is_doubtful(plain[0])
        fold.guessing = False
        if doubtful is None:
            return plain
        again, join, before = emit.new_block("again"), emit.new_block("extremum"), emit.block
        emit.branch_if(doubtful, again, join)
        emit.start(again)
        exact = fold.finish(self.vector_loops(fold.starts()))
        end = emit.block
        emit.branch(join)
        emit.start(join)
        return [
            emit.phi(llvm_scalar(type), [(guessed, before), (found, end)]).name
            for type, guessed, found in zip(fold.types, plain, exact, strict=True)
        ]

    def bounds(self) -> list[InBounds]:
        """The masks of the body that are ranges of the lane index with bounds from outside of the loop."""
        inside = self.op.body
        return [
            op
            for op in inside.ops
            if isinstance(op, InBounds)
            and op.index is inside.args[0]
            and not any(
                v.defining_op is not None and inside.encloses(v.defining_op) for v in (op.low, op.high)
            )
        ]

    def vector_loops(self, state: list[str]) -> list[str]:
        """The folded lanes, from the starts of the folds."""
        folded = len(state)
        carried = [text for _, lanes in self.runs for text in lanes.start()]
        return self.all_steps([*state, *carried])[:folded]

    def all_steps(self, state: list[str]) -> list[str]:
        emit, width = self.emit, self.width
        bounds = self.bounds()
        start, full_high = self.low, self.high
        lows = [self.emitter.text(b.low) for b in bounds]
        lows = [t for t in dict.fromkeys(lows) if not self._at_most(t, self.low)]
        highs = [t for t in dict.fromkeys(self.emitter.text(b.high) for b in bounds) if t != self.high]
        for text in highs:
            full_high = emit.call("i64", "llvm.smin.i64", [("i64", full_high), ("i64", text)])
        if lows:
            first = self.low
            for text in lows:
                first = emit.call("i64", "llvm.smax.i64", [("i64", first), ("i64", text)])
            first = emit.call("i64", "llvm.smin.i64", [("i64", first), ("i64", self.high)])
            start = self.round_up(first)
            state = self.loop(
                self.low, self.minimum(start, self.high), state, frozenset(), masked=True, step=width
            )
        main_end, leftover = self.main_end(start, full_high)
        if main_end != start:
            state = self.main_part(start, main_end, state, frozenset(bounds))
        if leftover:
            state = self.loop(main_end, self.high, state, frozenset(), masked=True, step=width)
        return state

    def main_part(self, low: str, high: str, state: list[str], assumed: frozenset[InBounds]) -> list[str]:
        """Full vectors over [low, high), with streaming stores where that is worth it."""
        streams = None
        if self.op.stream:
            lanes = self.emitter.nested(width=self.width, live=None, assumed=assumed).lanes
            streams = may_stream(lanes, self.op, self.index_lane(low))
        if streams is None:
            return self.loop(low, high, state, assumed, masked=False, step=self.width)
        emit = self.emit
        past, through, join = (emit.new_block(n) for n in ("stream", "store", "stored"))
        emit.branch_if(streams, past, through)
        ends = []
        for label, streaming in ((past, True), (through, False)):
            emit.start(label)
            texts = self.loop(low, high, state, assumed, masked=False, step=self.width, streams=streaming)
            ends.append((texts, emit.block))
            emit.branch(join)
        emit.start(join)
        return [
            emit.phi(kind, [(texts[position], block) for texts, block in ends]).name
            for position, kind in enumerate(self.kinds())
        ]

    def kinds(self) -> list[str]:
        """The types of what is folded and carried."""
        kinds = [llvm_type(t, f.lanes) for f in self.folds for t in f.accumulator_types()]
        return kinds + [llvm_type(t, self.width) for _, lanes in self.runs for t in lanes.types]

    def _at_most(self, a: str, b: str) -> bool:
        return a == b or (_is_number(a) and _is_number(b) and int(a) <= int(b))

    def minimum(self, a: str, b: str) -> str:
        return self.emit.call("i64", "llvm.smin.i64", [("i64", a), ("i64", b)])

    def round_up(self, text: str) -> str:
        """The first loop index at or after `text`."""
        distance = self.emit.op(f"sub i64 {text}, {self.low}")
        rounded = self.emit.op(f"and i64 {self.emit.add(distance, self.width - 1)}, {-self.width}")
        return self.emit.add(rounded, self.low)

    def main_end(self, start: str, high: str) -> tuple[str, bool]:
        """Where the last full vector below `high` ends, and whether anything may be left before the loop's
        end.
        """
        if _is_number(start) and _is_number(high):
            whole = max(int(high) - int(start), 0) // self.width * self.width
            return str(int(start) + whole), int(start) + whole < int(high)
        distance = self.emit.op(f"sub i64 {high}, {start}")
        distance = self.emit.call("i64", "llvm.smax.i64", [("i64", distance), ("i64", "0")])
        return self.emit.add(self.emit.op(f"and i64 {distance}, {-self.width}"), start), True

    def loop(
        self,
        low: str,
        high: str,
        state: list[str],
        assumed: frozenset[InBounds],
        *,
        masked: bool,
        step: int,
        streams: bool = False,
    ) -> list[str]:
        """One loop over [low, high): all lanes live, or masked to the lanes below the loop's end."""
        emit = self.emit
        if self.width and _is_one_step(low, high, step) and not self._needs_a_loop(masked=masked):
            return self.step(low, state, assumed, {}, masked=masked, streams=streams, divisors={})
        header, inside, done = emit.new_block("lanes"), emit.new_block("body"), emit.new_block("done")
        splats = self.splat_uniform_operands() if self.width else {}
        divisors = self.prepare_divisors() if self.width and not masked else {}
        before = emit.block
        emit.branch(header)
        emit.start(header)
        index = emit.phi("i64", [(low, before)])
        phis = [emit.phi(kind, [(text, before)]) for kind, text in zip(self.kinds(), state, strict=True)]
        emit.branch_if(emit.op(f"icmp slt i64 {index.name}, {high}"), inside, done)
        emit.start(inside)
        texts = [p.name for p in phis]
        following = self.step(
            index.name, texts, assumed, splats, masked=masked, streams=streams, divisors=divisors
        )
        for phi, text in zip(phis, following, strict=True):
            phi.add(text, emit.block)
        index.add(emit.op(f"add i64 {index.name}, {step}"), emit.block)
        emit.branch(header)
        emit.start(done)
        return [p.name for p in phis]

    def _needs_a_loop(self, *, masked: bool) -> bool:
        """True if a mask could become a constant of a straight step, where LLVM 22 is wrong about it: of a
        masked store with one live lane, whose value is truncated, it makes a store of the wide value; of a
        masked load of four registers and more it reads the last one whole if the mask leaves that out.
        """
        for op in self.op.body.walk():
            if isinstance(op, Store) and (masked or op.mask is not None):
                return True
            if isinstance(op, Load) and (masked or op.mask is not None):
                size = self.width * memory_type(op.result.type).bytes
                if size >= 4 * self.emitter.lanes.target.vector_bytes:
                    return True
        return False

    def step(
        self,
        index: str,
        state: list[str],
        assumed: frozenset[InBounds],
        splats: dict[str, str],
        *,
        masked: bool,
        streams: bool,
        divisors: dict[str, Divisor],
    ) -> list[str]:
        """One step, from `index` on; returns what is folded and carried so far."""
        running = self.running_states(index, state)
        emitter = self.emitter.nested(
            width=self.width,
            live=None,
            assumed=self.emitter.lanes.assumed | assumed,
            splats=splats,
            running=running,
            divisors=divisors,
            prefetch=0 if masked else self.prefetch,
            streams=streams,
        )
        live = None
        if masked:
            live = emitter.lanes.range_mask(index, "0", self.high)
            emitter.lanes.live = live
        emitter.values[self.op.body.args[0]] = self.index_lane(index)
        yielded = [emitter.lanes.vector(lane) for lane in emitter.region(self.op.body)]
        following: list[str] = []
        for fold in self.folds:
            first, count = len(following), len(fold.types)
            own, new = state[first : first + count], yielded[first : first + count]
            following += fold.step(own, new, live.text if live else None, index)
        return following + [text for run in running.values() for text in run.last]

    def running_states(self, index: str, state: list[str]) -> dict[Operation, RunningState]:
        """What the scans of the body have carried to the step from `index` on."""
        states: dict[Operation, RunningState] = {}
        if not self.runs:
            return states
        if _is_number(index) and _is_number(self.low):
            is_first = str(index == self.low).lower()
        else:
            is_first = self.emit.op(f"icmp eq i64 {index}, {self.low}")
        rest = state[sum(len(f.types) for f in self.folds) :]
        for op, lanes in self.runs:
            count = len(lanes.types)
            states[op], rest = RunningState(rest[:count], is_first), rest[count:]
        return states

    def index_lane(self, name: str) -> Lane:
        """The loop's index: every step starts a whole number of vectors after `low`."""
        if not self.width:
            return Lane(name, I64)
        known = _is_number(self.low) and int(self.low) >= 0
        multiple = math.gcd(int(self.low), self.width & -self.width) if known else 0
        return Lane(name, I64, 0, "1", multiple)

    def splat_uniform_operands(self) -> dict[str, str]:
        """Vectors of the scalars from outside that the body computes with, made once before the loop."""
        splats: dict[str, str] = {}
        for op in self.op.body.walk():
            if not isinstance(op, Elementwise) or isinstance(op, Offset):
                continue
            for value in op.operands:
                lane = self.emitter.values.get(value)
                if lane is None or self._is_inside(value) or not lane.is_uniform or lane.text in splats:
                    continue
                if lane.text.startswith("%"):
                    splats[lane.text] = self.emit.splat(llvm_scalar(lane.type), lane.text, self.width)
        return splats

    def prepare_divisors(self) -> dict[str, Divisor]:
        """What is computed before the loop of each number from outside that the body divides by."""
        divisors: dict[str, Divisor] = {}
        for op in self.op.body.ops:
            if not isinstance(op, Div) or self._is_inside(op.rhs):
                continue
            lane = self.emitter.values.get(op.rhs)
            if lane is None or not lane.is_uniform or lane.text in divisors:
                continue
            assert isinstance(lane.type, ScalarType)
            if has_slow_division(lane.type, self.emitter.lanes.target):
                divisors[lane.text] = prepare_divisor(self.emit, lane.type, lane.text, self.width)
        return divisors

    def _is_inside(self, value: Value) -> bool:
        """True if the body itself makes the value."""
        op = value.defining_op
        owner = value.owner.parent if isinstance(value.owner, Region) else op
        return value.owner is self.op.body or (isinstance(owner, Operation) and self.op.body.encloses(owner))

    def scalars_of(self, state: list[str]) -> list[list[str]]:
        """Per fold its result over the visited lanes; a float sum includes the others, in their place."""
        pads = [self.emitter.text(p) for p in self.op.pads]
        scalars: list[list[str]] = []
        for fold in self.folds:
            count = len(fold.types)
            own, state = state[:count], state[count:]
            mine, pads = pads[:count], pads[count:]
            if mine and fold.ordered:
                own = fold.pad_partials(own, mine[0], self.high, str(self.op.extent))
            scalars.append(fold.finish(own))
        return scalars

    def finish(self, scalars: list[list[str]]) -> None:
        """Fold in the lanes that were never visited, and name the results."""
        results: list[Lane] = []
        pads = [self.emitter.text(p) for p in self.op.pads]
        for fold, own in zip(self.folds, scalars, strict=True):
            count = len(fold.types)
            mine, pads = pads[:count], pads[count:]
            if mine and not fold.ordered:
                own = fold.pad_scalars(own, mine, self.high, str(self.op.extent))
            own = fold.narrow(own)
            results += [Lane(text, type) for text, type in zip(own, fold.types, strict=True)]
        self.emitter.values.update(zip(self.op.results, results, strict=True))


def _is_one_step(low: str, high: str, step: int) -> bool:
    return _is_number(low) and _is_number(high) and 0 < int(high) - int(low) <= step


def _is_number(text: str) -> bool:
    return text.lstrip("-").isdigit()


def lanes_loop(emitter: RegionEmitter, op: Operation) -> None:
    """Emit one `lanes` operation."""
    assert isinstance(op, Lanes)
    LanesLoop(emitter, op).run()
