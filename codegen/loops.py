"""Loops and control flow: `for`, `while`, `if`, `group`, `lanes` and what folds lanes together.

A `lanes` loop is cut so that its main part runs on full vectors without any mask: [low, high) narrowed to
where every `in_bounds` mask of the body holds. What is before and after runs the same body with the masks
as lane predicates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from blocklang.codegen.elementwise import Context, convert, extremum
from blocklang.codegen.emitter import Phi, llvm_scalar, llvm_type
from blocklang.codegen.floats import constant_text, splat_number
from blocklang.codegen.lanes import LaneEmitter
from blocklang.codegen.values import Lane
from blocklang.ir.core import Operation, Region, Value
from blocklang.ir.types import BF16, F16, F32, I1, I32, I64, ScalarType, element_type
from blocklang.ops.control import For, If, While
from blocklang.ops.elementwise import Elementwise
from blocklang.ops.memory import Offset
from blocklang.ops.tile import Group, InBounds, Lanes, TreeReduce

PARTIALS = 32  # partial results of a float sum (LANGUAGE.md A13)


class RegionEmitter:
    """Emits regions: straight-line operations through a `LaneEmitter`, structured ones here."""

    def __init__(
        self, lanes: LaneEmitter, hooks: dict[type[Operation], Callable[[RegionEmitter, Operation], None]]
    ) -> None:
        self.lanes = lanes
        self.emit = lanes.emit
        self.hooks = hooks

    @property
    def values(self) -> dict[Value, Lane]:
        return self.lanes.values

    def text(self, value: Value) -> str:
        lane = self.values[value]
        assert lane.is_uniform, f"{value} differs between lanes"
        return lane.text

    def region(self, region: Region) -> list[Lane]:
        """Emit a region; returns what its terminator yields."""
        for op in region.ops:
            if op.is_terminator:
                return [self.values[v] for v in op.operands]
            self.operation(op)
        raise AssertionError("a region ends in a terminator")

    def operation(self, op: Operation) -> None:
        match op:
            case For():
                self.for_loop(op)
            case While():
                self.while_loop(op)
            case If():
                self.conditional(op)
            case Group():
                self.group(op)
            case Lanes():
                LanesLoop(self, op).run()
            case TreeReduce():
                tree_reduce(self, op)
            case _ if op.__class__ in self.hooks:
                self.hooks[op.__class__](self, op)
            case _:
                self.lanes.operation(op)

    # ---- scalar control flow ----

    def carried(self, inits: Sequence[Lane], before: str) -> tuple[list[Phi], list[Lane]]:
        """Phis for loop-carried values: scalars outside of lanes, vectors inside."""
        width = self.lanes.width
        phis, lanes = [], []
        for init in inits:
            text = self.lanes.vector(init)
            phi = self.emit.phi(llvm_type(init.type, width), [(text, before)])
            phis.append(phi)
            lanes.append(Lane(phi.name, init.type, width))
        return phis, lanes

    def for_loop(self, op: For) -> None:
        emit = self.emit
        index_type = op.start.type
        assert isinstance(index_type, ScalarType)
        text = llvm_scalar(index_type)
        start, step = self.text(op.start), self.text(op.step)
        trips = self.trip_count(op)
        # Vector forms of the initial values must stand before the loop.
        inits = [Lane(self.lanes.vector(self.values[v]), v.type, self.lanes.width) for v in op.inits]
        header, body, done = emit.new_block("for"), emit.new_block("body"), emit.new_block("done")
        before = emit.block
        emit.branch(header)
        emit.start(header)
        count = emit.phi("i64", [("0", before)])
        index = emit.phi(text, [(start, before)])
        phis, lanes = self.carried(inits, before)
        emit.branch_if(emit.op(f"icmp ult i64 {count.name}, {trips}"), body, done)
        emit.start(body)
        self.values.update(zip(op.body.args, [Lane(index.name, index_type), *lanes], strict=True))
        yielded = [self.lanes.vector(v) for v in self.region(op.body)]
        next_count = emit.op(f"add i64 {count.name}, 1")
        next_index = emit.op(f"add {text} {index.name}, {step}")
        for phi, value in zip([count, index, *phis], [next_count, next_index, *yielded], strict=True):
            phi.add(value, emit.block)
        emit.branch(header)
        emit.start(done)
        self.values.update(zip(op.outputs, lanes, strict=True))

    def trip_count(self, op: For) -> str:
        """Rounds of Python's range as an unsigned 64-bit number; nothing overflows, and a step of 0 gives
        none.
        """
        emit, type = self.emit, op.start.type
        assert isinstance(type, ScalarType)
        start, stop, step = (self._as_i64(self.text(v), type) for v in (op.start, op.stop, op.step))
        order = "s" if type.is_signed or type.bits < 64 else "u"
        known = int(step) if step.lstrip("-").isdigit() and order == "s" else None

        def trips(low: str, high: str, stride: str) -> str:
            some = emit.op(f"icmp {order}lt i64 {low}, {high}")
            span = emit.op(f"sub i64 {high}, {low}")
            if stride != "1":
                rounds = emit.op(f"udiv i64 {emit.op(f'sub i64 {span}, 1')}, {stride}")
                span = emit.op(f"add i64 {rounds}, 1")
            return emit.op(f"select i1 {some}, i64 {span}, i64 0")

        if known is not None:
            return (
                "0"
                if known == 0
                else trips(start, stop, step)
                if known > 0
                else trips(stop, start, str(-known))
            )
        positive = emit.op(f"icmp {order}gt i64 {step}, 0")
        zero = emit.op(f"icmp eq i64 {step}, 0")
        low = emit.op(f"select i1 {positive}, i64 {start}, i64 {stop}")
        high = emit.op(f"select i1 {positive}, i64 {stop}, i64 {start}")
        size = emit.op(f"select i1 {positive}, i64 {step}, i64 {emit.op(f'sub i64 0, {step}')}")
        safe = emit.op(f"select i1 {zero}, i64 1, i64 {size}")
        return emit.op(f"select i1 {zero}, i64 0, i64 {trips(low, high, safe)}")

    def _as_i64(self, text: str, type: ScalarType) -> str:
        """A register or a constant of a bound, extended by the signedness of its type."""
        if text.startswith("%"):
            return convert(Context(self.emit, self.lanes.target, 0), type, I64, text)
        if type.is_signed or type.bits == 64 or not text.startswith("-"):
            return text
        return str(int(text) + (1 << type.bits))

    def while_loop(self, op: While) -> None:
        emit = self.emit
        header, body, done = emit.new_block("while"), emit.new_block("body"), emit.new_block("done")
        before = emit.block
        emit.branch(header)
        emit.start(header)
        phis, lanes = self.carried([self.values[v] for v in op.inits], before)
        self.values.update(zip(op.before.args, lanes, strict=True))
        condition, *passed = self.region(op.before)
        emit.branch_if(condition.text, body, done)
        emit.start(body)
        self.values.update(zip(op.after.args, passed, strict=True))
        yielded = self.region(op.after)
        for phi, lane in zip(phis, yielded, strict=True):
            phi.add(lane.text, emit.block)
        emit.branch(header)
        emit.start(done)
        self.values.update(zip(op.outputs, passed, strict=True))

    def conditional(self, op: If) -> None:
        emit = self.emit
        then, otherwise, join = (emit.new_block(n) for n in ("then", "else", "endif"))
        emit.branch_if(self.text(op.condition), then, otherwise)
        incoming: list[tuple[list[str], str]] = []
        for label, region in ((then, op.then_region), (otherwise, op.else_region)):
            emit.start(label)
            lanes = self.region(region) if region is not None else []
            incoming.append(([self.lanes.vector(v) for v in lanes], emit.block))
            emit.branch(join)
        emit.start(join)
        width = self.lanes.width
        for position, output in enumerate(op.outputs):
            edges = [(texts[position], block) for texts, block in incoming]
            phi = emit.phi(llvm_type(output.type, width), edges)
            self.values[output] = Lane(phi.name, output.type, width)

    def group(self, op: Group) -> None:
        def body(index: str) -> None:
            self.values[op.body.args[0]] = Lane(index, I64)
            self.region(op.body)

        self.counted(self.text(op.low), self.text(op.high), 1, body)

    def counted(self, low: str, high: str, step: int, body: Callable[[str], None]) -> None:
        """A loop over low, low + step, ... < high, without carried values."""
        emit = self.emit
        header, inside, done = emit.new_block("loop"), emit.new_block("body"), emit.new_block("done")
        before = emit.block
        emit.branch(header)
        emit.start(header)
        index = emit.phi("i64", [(low, before)])
        emit.branch_if(emit.op(f"icmp slt i64 {index.name}, {high}"), inside, done)
        emit.start(inside)
        body(index.name)
        index.add(emit.op(f"add i64 {index.name}, {step}"), emit.block)
        emit.branch(header)
        emit.start(done)

    def nested(self, **changes: object) -> RegionEmitter:
        """An emitter for the same function with other lanes."""
        return RegionEmitter(replace(self.lanes, **changes), self.hooks)  # type: ignore[arg-type]


# ---- folds ----


class Fold:
    """How one combine of a `lanes` loop starts, takes a step of lanes, and ends in scalars."""

    def __init__(self, emitter: RegionEmitter, combine: str, types: Sequence[ScalarType], width: int) -> None:
        self.emitter = emitter
        self.emit = emitter.emit
        self.combine = combine
        self.types = list(types)
        self.width = width
        element = self.types[0]
        self.ordered = combine == "sum" and element.is_float
        self.wide = F32 if self.ordered and element in (F16, BF16) else element
        self.lanes = PARTIALS if self.ordered else width

    def context(self, width: int) -> Context:
        return Context(self.emit, self.emitter.lanes.target, width)

    def neutral(self) -> list[float]:
        """Per accumulator the value that changes nothing: NaN for float extrema, where NaN is ignored."""
        element = self.types[0]
        if self.combine.startswith("arg"):
            return [self._limit(element, largest=self.combine == "argmin"), 0]
        if self.combine in ("max", "min"):
            return [self._limit(element, largest=self.combine == "min")]
        if self.combine == "and":
            return [-1]
        return [0.0 if element.is_float else 0]

    def _limit(self, element: ScalarType, *, largest: bool) -> float:
        if element.is_float:
            return float("nan")
        return element.maximum if largest else element.minimum

    def accumulator_types(self) -> list[ScalarType]:
        return [self.wide, *self.types[1:]]

    def starts(self) -> list[str]:
        return [
            splat_number(t, n, self.lanes)
            for t, n in zip(self.accumulator_types(), self.neutral(), strict=True)
        ]

    def step(self, accumulators: list[str], new: list[str], live: str | None) -> list[str]:
        """Fold `width` new lanes in; lanes outside the mask `live` change nothing."""
        context = self.context(self.width)
        new = [convert(context, self.types[0], self.wide, new[0]), *new[1:]]
        if live is not None:
            neutral = [
                splat_number(t, n, self.width)
                for t, n in zip(self.accumulator_types(), self.neutral(), strict=True)
            ]
            new = [
                context.select(live, t, v, n)
                for t, v, n in zip(self.accumulator_types(), new, neutral, strict=True)
            ]
        if not self.ordered or self.width == self.lanes:
            return self.combine_lanes(self.lanes, accumulators, new)
        for part in range(self.width // self.lanes):
            accumulators = self.combine_lanes(self.lanes, accumulators, [self.slice(new[0], part)])
        return accumulators

    def slice(self, text: str, part: int) -> str:
        type = llvm_type(self.wide, self.width)
        picks = ", ".join(f"i32 {part * self.lanes + lane}" for lane in range(self.lanes))
        return self.emit.op(f"shufflevector {type} {text}, {type} poison, <{self.lanes} x i32> <{picks}>")

    def combine_lanes(self, width: int, a: list[str], b: list[str]) -> list[str]:
        """Fold b into a, lane by lane. For arg folds all of a's indices are below b's, or equal values
        prefer the lower index.
        """
        context, element = self.context(width), self.accumulator_types()[0]
        kind = context.type(element)
        match self.combine:
            case "sum":
                return [self.emit.op(f"{'fadd' if element.is_float else 'add'} {kind} {a[0]}, {b[0]}")]
            case "xor" | "and" | "or":
                return [self.emit.op(f"{self.combine} {kind} {a[0]}, {b[0]}")]
            case "max" | "min":
                return [extremum(context, element, a[0], b[0], smaller=self.combine == "min")]
        return self.combine_arguments(context, a, b)

    def combine_arguments(self, context: Context, a: list[str], b: list[str]) -> list[str]:
        emit, element = self.emit, self.types[0]
        mask, index = context.mask_type, context.type(I32)
        smaller = self.combine == "argmin"
        lower = emit.op(f"icmp slt {index} {b[1]}, {a[1]}")
        if element.is_float:
            wide = F32 if element in (F16, BF16) else element
            kind = context.type(wide)
            x, y = context.widen(element, a[0]), context.widen(element, b[0])
            better = emit.op(f"fcmp {'olt' if smaller else 'ogt'} {kind} {y}, {x}")
            equal = emit.op(f"fcmp oeq {kind} {y}, {x}")
            was_nan, is_number = emit.op(f"fcmp uno {kind} {x}, {x}"), emit.op(f"fcmp ord {kind} {y}, {y}")
            better = emit.op(f"or {mask} {better}, {emit.op(f'and {mask} {was_nan}, {is_number}')}")
        else:
            kind = context.type(element)
            sign = "s" if element.is_signed else "u"
            better = emit.op(f"icmp {sign}{'lt' if smaller else 'gt'} {kind} {b[0]}, {a[0]}")
            equal = emit.op(f"icmp eq {kind} {b[0]}, {a[0]}")
        take = emit.op(f"or {mask} {better}, {emit.op(f'and {mask} {equal}, {lower}')}")
        return [context.select(take, element, b[0], a[0]), context.select(take, I32, b[1], a[1])]

    def finish(self, accumulators: list[str]) -> list[str]:
        """Fold the lanes of the accumulators: lane i with lane i + half, until one is left; in the element
        type.
        """
        width = self.lanes
        while width > 1:
            half = width // 2
            low = [
                self._half(t, a, width, 0)
                for t, a in zip(self.accumulator_types(), accumulators, strict=True)
            ]
            high = [
                self._half(t, a, width, half)
                for t, a in zip(self.accumulator_types(), accumulators, strict=True)
            ]
            accumulators = self.combine_lanes(half, low, high)
            width = half
        if self.lanes:
            accumulators = [
                self.emit.op(f"extractelement {llvm_type(t, 1)} {a}, i64 0")
                for t, a in zip(self.accumulator_types(), accumulators, strict=True)
            ]
        return accumulators

    def narrow(self, scalars: list[str]) -> list[str]:
        return [convert(self.context(0), self.wide, self.types[0], scalars[0]), *scalars[1:]]

    def _half(self, type: ScalarType, text: str, width: int, start: int) -> str:
        kind = llvm_type(type, width)
        picks = ", ".join(f"i32 {start + lane}" for lane in range(width // 2))
        return self.emit.op(f"shufflevector {kind} {text}, {kind} poison, <{width // 2} x i32> <{picks}>")

    # ---- lanes that were never visited ----

    def pad_partials(self, accumulators: list[str], pad: str, low: str, high: str) -> list[str]:
        """Add `pad` for each index in [low, high) to its partial; nothing to do if it is a zero."""
        emit, kind = self.emit, llvm_type(self.wide, self.lanes)
        wide = convert(self.context(0), self.types[0], self.wide, pad)
        scalar = llvm_scalar(self.wide)
        counts = emit.op(f"fcmp une {scalar} {wide}, {constant_text(self.wide, 0.0)}")
        before, after = emit.new_block("pad"), emit.new_block("padded")
        outside = emit.block
        emit.branch_if(counts, before, after)
        emit.start(before)
        vector = emit.splat(scalar, wide, self.lanes)
        first = emit.op(f"and i64 {low}, {-self.lanes}")
        header, body, done = emit.new_block("loop"), emit.new_block("body"), emit.new_block("done")
        entry = emit.block
        emit.branch(header)
        emit.start(header)
        index = emit.phi("i64", [(first, entry)])
        phi = emit.phi(kind, [(accumulators[0], entry)])
        emit.branch_if(emit.op(f"icmp slt i64 {index.name}, {high}"), body, done)
        emit.start(body)
        masks = self.emitter.nested(width=self.lanes, live=None).lanes
        mask = masks.range_mask(index.name, low, high)
        added = emit.op(f"fadd {kind} {phi.name}, {vector}")
        phi.add(self.context(self.lanes).select(mask.text, self.wide, added, phi.name), emit.block)
        index.add(emit.op(f"add i64 {index.name}, {self.lanes}"), emit.block)
        emit.branch(header)
        emit.start(done)
        emit.branch(after)
        emit.start(after)
        return [emit.phi(kind, [(accumulators[0], outside), (phi.name, done)]).name]

    def pad_scalars(self, scalars: list[str], pads: list[str], low: str, high: str) -> list[str]:
        """Fold the pads of [low, high) into finished scalars, for combines that do not depend on order."""
        emit, element = self.emit, self.types[0]
        some = emit.op(f"icmp slt i64 {low}, {high}")
        kind = llvm_scalar(element)
        if self.combine in ("sum", "xor"):
            count = emit.op(f"sub i64 {high}, {low}")
            narrow = (
                convert(self.context(0), I64, element, count)
                if element.bits > 1
                else emit.op(f"trunc i64 {count} to i1")
            )
            if self.combine == "xor":
                odd = emit.op(f"trunc i64 {count} to i1")
                folded = [
                    emit.op(
                        f"xor {kind} {scalars[0]}, {emit.op(f'select i1 {odd}, {kind} {pads[0]}, {kind} 0')}"
                    )
                ]
            else:
                folded = [emit.op(f"add {kind} {scalars[0]}, {emit.op(f'mul {kind} {pads[0]}, {narrow}')}")]
        else:
            folded = self.combine_lanes(0, scalars, pads)
        return [
            self.context(0).select(some, t, f, s) for t, f, s in zip(self.types, folded, scalars, strict=True)
        ]


class LanesLoop:
    """Emits one `lanes` operation."""

    def __init__(self, emitter: RegionEmitter, op: Lanes) -> None:
        self.emitter = emitter
        self.emit = emitter.emit
        self.op = op
        self.width = op.width if op.width > 1 else 0
        self.low, self.high = emitter.text(op.low), emitter.text(op.high)
        self.folds: list[Fold] = []
        types = [t for r in op.results if isinstance(t := r.type, ScalarType)]
        for combine in op.combines:
            count = 2 if combine.startswith("arg") else 1
            self.folds.append(Fold(emitter, combine, types[:count], self.width))
            types = types[count:]

    def run(self) -> None:
        state = [text for fold in self.folds for text in fold.starts()]
        if not self.width:
            state = self.loop(self.low, self.high, state, assumed=frozenset(), masked=False, step=1)
        else:
            state = self.vector_loops(state)
        self.finish(state)

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
            state = self.loop(start, main_end, state, frozenset(bounds), masked=False, step=width)
        if leftover:
            state = self.loop(main_end, self.high, state, frozenset(), masked=True, step=width)
        return state

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
        self, low: str, high: str, state: list[str], assumed: frozenset[InBounds], *, masked: bool, step: int
    ) -> list[str]:
        """One loop over [low, high): all lanes live, or masked to the lanes below the loop's end."""
        emit = self.emit
        header, inside, done = emit.new_block("lanes"), emit.new_block("body"), emit.new_block("done")
        splats = self.splat_uniform_operands() if self.width else {}
        before = emit.block
        emit.branch(header)
        emit.start(header)
        index = emit.phi("i64", [(low, before)])
        kinds = [llvm_type(t, f.lanes) for f in self.folds for t in f.accumulator_types()]
        phis = [emit.phi(kind, [(text, before)]) for kind, text in zip(kinds, state, strict=True)]
        emit.branch_if(emit.op(f"icmp slt i64 {index.name}, {high}"), inside, done)
        emit.start(inside)
        emitter = self.emitter.nested(width=self.width, live=None, assumed=frozenset(assumed), splats=splats)
        live = None
        if masked:
            live = emitter.lanes.range_mask(index.name, "0", self.high)
            emitter.lanes.live = live
        emitter.values[self.op.body.args[0]] = Lane(index.name, I64, 0, "1" if self.width else "")
        yielded = [emitter.lanes.vector(lane) for lane in emitter.region(self.op.body)]
        following: list[str] = []
        for fold in self.folds:
            count = len(fold.types)
            own = [p.name for p in phis[len(following) : len(following) + count]]
            following += fold.step(
                own, yielded[len(following) : len(following) + count], live.text if live else None
            )
        for phi, text in zip(phis, following, strict=True):
            phi.add(text, emit.block)
        index.add(emit.op(f"add i64 {index.name}, {step}"), emit.block)
        emit.branch(header)
        emit.start(done)
        return [p.name for p in phis]

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

    def _is_inside(self, value: Value) -> bool:
        """True if the body itself makes the value."""
        op = value.defining_op
        owner = value.owner.parent if isinstance(value.owner, Region) else op
        return value.owner is self.op.body or (isinstance(owner, Operation) and self.op.body.encloses(owner))

    def finish(self, state: list[str]) -> None:
        results: list[Lane] = []
        extent = str(self.op.extent)
        pads = [self.emitter.text(p) for p in self.op.pads]
        for fold in self.folds:
            count = len(fold.types)
            own, state = state[:count], state[count:]
            mine, pads = pads[:count], pads[count:]
            if mine and fold.ordered:
                own = fold.pad_partials(own, mine[0], self.high, extent)
            scalars = fold.narrow(fold.finish(own))
            if mine and not fold.ordered:
                scalars = fold.pad_scalars(scalars, mine, self.high, extent)
            results += [Lane(text, type) for text, type in zip(scalars, fold.types, strict=True)]
        self.emitter.values.update(zip(self.op.results, results, strict=True))


# ---- a user's function, folded as a tree ----


def tree_reduce(emitter: RegionEmitter, op: TreeReduce) -> None:
    """Halve the rows until one element is left: element i becomes combine(2i, 2i + 1), an odd last one
    moves down.
    """
    emit = emitter.emit
    header, body, done = emit.new_block("rounds"), emit.new_block("round"), emit.new_block("done")
    before = emit.block
    emit.branch(header)
    emit.start(header)
    count = emit.phi("i64", [(str(op.extent), before)])
    emit.branch_if(emit.op(f"icmp sgt i64 {count.name}, 1"), body, done)
    emit.start(body)
    half = emit.op(f"lshr i64 {count.name}, 1")
    width = _tree_width(emitter, op)
    whole = "0"
    if width:
        whole = emit.op(f"and i64 {half}, {-width}")
        emitter.counted("0", whole, width, lambda i: _fold_pairs(emitter, op, i, width))
    emitter.counted(whole, half, 1, lambda i: _fold_pairs(emitter, op, i, 0))
    odd = emit.op(f"and i64 {count.name}, 1")

    def move_last() -> None:
        last = emit.op(f"sub i64 {count.name}, 1")
        for row in op.buffers:
            value = emitter.lanes.load_lanes(
                _element(emitter, row, last), row.type.element, Lane("true", I1), None
            )
            emitter.lanes.store(_element(emitter, row, half), value, Lane("true", I1), op)

    emitter.lanes.when(emit.op(f"icmp eq i64 {odd}, 1"), move_last)
    count.add(emit.op(f"add i64 {half}, {odd}"), emit.block)
    emit.branch(header)
    emit.start(done)
    for row, result in zip(op.buffers, op.outputs, strict=True):
        lane = emitter.lanes.load_uniform(emitter.values[row], result.type, Lane("true", I1), None)
        emitter.values[result] = lane


def _tree_width(emitter: RegionEmitter, op: TreeReduce) -> int:
    """Lanes per step; 0 if the function must run on scalars because it branches."""
    if any(inner.regions for inner in op.combiner.walk()) or op.extent < 32:
        return 0
    return emitter.lanes.target.vector_bytes // max(4, *(element_type(row.type).bytes for row in op.buffers))


def _element(emitter: RegionEmitter, row: Value, index: str) -> Lane:
    size = element_type(row.type).bytes
    base = emitter.values[row]
    return Lane(emitter.emit.offset(base.text, emitter.emit.mul(index, size)), base.type)


def _fold_pairs(emitter: RegionEmitter, op: TreeReduce, index: str, width: int) -> None:
    """Combine elements 2i and 2i + 1 of every row into element i, for `width` consecutive i (one if 0)."""
    emit = emitter.emit
    inner = emitter.nested(width=width)
    double = emit.op(f"shl i64 {index}, 1")
    left: list[Lane] = []
    right: list[Lane] = []
    for row in op.buffers:
        type = row.type.element
        if width:
            wide = emitter.nested(width=2 * width).lanes
            pointer = _element(emitter, row, double)
            both = wide.load_lanes(replace(pointer, step=str(type.bytes)), type, Lane("true", I1), None)
            left.append(_every_other(emitter, both, width, 0))
            right.append(_every_other(emitter, both, width, 1))
        else:
            second = emit.op(f"or i64 {double}, 1")
            for target, position in ((left, double), (right, second)):
                target.append(
                    inner.lanes.load_uniform(_element(emitter, row, position), type, Lane("true", I1), None)
                )
    inner.values.update(zip(op.combiner.args, left + right, strict=True))
    for row, lane in zip(op.buffers, inner.region(op.combiner), strict=True):
        pointer = _element(emitter, row, index)
        step = str(row.type.element.bytes) if width else ""
        inner.lanes.store(replace(pointer, step=step), lane, Lane("true", I1), op)


def _every_other(emitter: RegionEmitter, lane: Lane, width: int, first: int) -> Lane:
    kind = llvm_type(lane.type, 2 * width)
    picks = ", ".join(f"i32 {2 * i + first}" for i in range(width))
    text = emitter.emit.op(f"shufflevector {kind} {lane.text}, {kind} poison, <{width} x i32> <{picks}>")
    return Lane(text, lane.type, width)


def _is_number(text: str) -> bool:
    return text.lstrip("-").isdigit()
