"""What folds lanes together: how a combine starts, takes a step of lanes, and ends in scalars.

Float sums run in `PARTIALS` partial results whatever the width of the machine's vectors, so that their bits
are the same everywhere; all other combines do not depend on order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from blocklang.codegen.context import Context
from blocklang.codegen.elementwise import convert, extremum
from blocklang.codegen.emitter import llvm_scalar, llvm_type
from blocklang.codegen.floats import constant_text, splat_number
from blocklang.codegen.lanes import LaneEmitter
from blocklang.ir.types import F32, F64, I32, I64, ScalarType

PARTIALS = 32  # partial results of a float sum (docs/semantics.md)


class Fold:
    """How one combine of a `lanes` loop starts, takes a step of lanes, and ends in scalars."""

    def __init__(self, emitter: LaneEmitter, combine: str, types: Sequence[ScalarType], width: int) -> None:
        self.emitter = emitter
        self.emit = emitter.emit
        self.combine = combine
        self.types = list(types)
        self.width = width
        element = self.types[0]
        self.ordered = combine == "sum" and element.is_float
        # Not every 8-bit float has a NaN to start an extremum from.
        self.wide = F32 if element.is_float8 or (self.ordered and element.is_small_float) else element
        # Of a row that fits one step of fewer lanes the other partials stay +0.0, which changes no sum.
        self.lanes = min(PARTIALS, width) if self.ordered else width
        self.guessing = False  # see `guess`
        assert not self.ordered or (width > 1 and width % self.lanes == 0), "each step meets every partial"

    def context(self, width: int) -> Context:
        return Context(self.emit, self.emitter.target, width)

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
        if element.is_float and self.guessing:
            return float("inf") if largest else float("-inf")
        if element.is_float:
            return float("nan")
        return element.maximum if largest else element.minimum

    def accumulator_types(self) -> list[ScalarType]:
        if self.guessing and self.finds_index:  # masks of the values select indices too: one size of lanes
            return [self.wide, I64 if self.wide.bits == 64 else I32]
        return [self.wide, *self.types[1:]]

    def starts(self) -> list[str]:
        return [
            splat_number(t, n, self.lanes)
            for t, n in zip(self.accumulator_types(), self.neutral(), strict=True)
        ]

    def step(self, accumulators: list[str], new: list[str], live: str | None, index: str) -> list[str]:
        """Fold `width` new lanes in; lanes outside the mask `live` change nothing.

        Args:
            index: of the first lane, an i64; it grows from step to step.
        """
        context = self.context(self.width)
        if self.guessing and self.finds_index:
            return self._step_by_start(accumulators, new[0], live, index)
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
        if self.finds_index:
            return self._take(context, self._is_better(context, accumulators[0], new[0]), accumulators, new)
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
            case "max" | "min" if self.guessing:
                better = self.emit.op(
                    f"fcmp {'ogt' if self.combine == 'max' else 'olt'} {kind} {b[0]}, {a[0]}"
                )
                return [context.select(better, element, b[0], a[0])]
            case "max" | "min":
                return [extremum(context, element, a[0], b[0], smaller=self.combine == "min")]
        return self.combine_arguments(context, a, b)

    # A float extremum that ignores NaN and orders zeros costs six instructions a vector, a plain one costs
    # one. The plain one is right unless its result is a zero, whose sign may be wrong, or its start, which
    # may stand for NaN. So it is for the place of an extremum, where a zero's sign does not matter. Integers
    # are always right: where nothing is better than the start, all are equal to it.

    @property
    def finds_index(self) -> bool:
        """True for the folds that find where an extremum is."""
        return self.combine.startswith("arg")

    def can_guess(self) -> bool:
        """True for folds whose plain form is cheaper."""
        element = self.types[0]
        if self.width <= 1 or (element.is_float and element not in (F32, F64)):
            return False
        return self.finds_index or (self.combine in ("max", "min") and element.is_float)

    def is_doubtful(self, scalar: str) -> str | None:
        """The condition under which the result of the plain fold must be found again, exactly; None if it is
        always right.
        """
        if not self.types[0].is_float:
            return None
        kind, start = llvm_scalar(self.types[0]), self.neutral()[0]
        unchanged = self.emit.op(f"fcmp oeq {kind} {scalar}, {constant_text(self.types[0], start)}")
        if self.finds_index:
            return unchanged
        zero = self.emit.op(f"fcmp oeq {kind} {scalar}, {constant_text(self.types[0], 0.0)}")
        return self.emit.op(f"or i1 {zero}, {unchanged}")

    def _step_by_start(self, accumulators: list[str], new: str, live: str | None, index: str) -> list[str]:
        """Fold lanes in, and remember where the step began: which lane it was is known at the end."""
        context, kind = self.context(self.width), self.accumulator_types()[1]
        if live is not None:
            new = context.select(live, self.wide, new, context.number(self.wide, self.neutral()[0]))
        start = index if kind == I64 else self.emit.op(f"trunc i64 {index} to i32")
        starts = self.emit.splat(llvm_scalar(kind), start, self.width)
        better = self._compare_values(context, "better", accumulators[0], new)
        return [
            context.select(better, self.wide, new, accumulators[0]),
            context.select(better, kind, starts, accumulators[1]),
        ]

    def _indices(self, starts: str) -> str:
        """The index of each lane, an i32, from where its step began."""
        kind = self.accumulator_types()[1]
        if kind != I32:
            starts = self.emit.op(
                f"trunc {llvm_type(kind, self.width)} {starts} to {llvm_type(I32, self.width)}"
            )
        ramp = f"<{', '.join(f'i32 {lane}' for lane in range(self.width))}>"
        return self.emit.op(f"add {llvm_type(I32, self.width)} {starts}, {ramp}")

    def _compare_values(self, context: Context, how: str, x: str, y: str) -> str:
        """The lanes where y is "better" than x, or "equal" to it; a NaN is neither."""
        element, smaller = self.wide, self.combine == "argmin"
        if element.is_float:
            kind = context.type(F32 if element.is_small_float else element)
            predicate = "oeq" if how == "equal" else "olt" if smaller else "ogt"
            x, y = context.widen(element, x), context.widen(element, y)
            return self.emit.op(f"fcmp {predicate} {kind} {y}, {x}")
        order = f"{'s' if element.is_signed else 'u'}{'lt' if smaller else 'gt'}"
        return self.emit.op(f"icmp {'eq' if how == 'equal' else order} {context.type(element)} {y}, {x}")

    def _is_better(self, context: Context, x: str, y: str) -> str:
        """The lanes where y replaces x, which has the lower index."""
        better = self._compare_values(context, "better", x, y)
        if not self.wide.is_float:
            return better
        emit, mask = self.emit, context.mask_type
        kind = context.type(F32 if self.wide.is_small_float else self.wide)
        x, y = context.widen(self.wide, x), context.widen(self.wide, y)
        was_nan, is_number = emit.op(f"fcmp uno {kind} {x}, {x}"), emit.op(f"fcmp ord {kind} {y}, {y}")
        return emit.op(f"or {mask} {better}, {emit.op(f'and {mask} {was_nan}, {is_number}')}")

    def _take(self, context: Context, take: str, a: list[str], b: list[str]) -> list[str]:
        return [context.select(take, self.wide, b[0], a[0]), context.select(take, I32, b[1], a[1])]

    def combine_arguments(self, context: Context, a: list[str], b: list[str]) -> list[str]:
        emit, mask = self.emit, context.mask_type
        lower = emit.op(f"icmp slt {context.type(I32)} {b[1]}, {a[1]}")
        equal = self._compare_values(context, "equal", a[0], b[0])
        better = self._is_better(context, a[0], b[0])
        take = emit.op(f"or {mask} {better}, {emit.op(f'and {mask} {equal}, {lower}')}")
        return self._take(context, take, a, b)

    def finish(self, accumulators: list[str]) -> list[str]:
        """Fold the lanes of the accumulators: lane i with lane i + half, until one is left."""
        width = self.lanes
        if self.guessing and self.finds_index:
            accumulators = [accumulators[0], self._indices(accumulators[1])]
        types = [self.wide, *self.types[1:]]
        while width > 1:
            half = width // 2
            low = [self._half(t, a, width, 0) for t, a in zip(types, accumulators, strict=True)]
            high = [self._half(t, a, width, half) for t, a in zip(types, accumulators, strict=True)]
            accumulators = self.combine_lanes(half, low, high)
            width = half
        if self.lanes:
            accumulators = [
                self.emit.op(f"extractelement {llvm_type(t, 1)} {a}, i64 0")
                for t, a in zip(types, accumulators, strict=True)
            ]
        return accumulators

    def narrow(self, scalars: list[str]) -> list[str]:
        context = self.context(0)
        if self.ordered or self.wide == self.types[0]:
            return [convert(context, self.wide, self.types[0], scalars[0]), *scalars[1:]]
        return [context.restore(self.types[0], scalars[0]), *scalars[1:]]

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
        masks = replace(self.emitter, width=self.lanes, live=None)
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
        emit, element = self.emit, self.wide
        pads = [convert(self.context(0), self.types[0], element, pads[0]), *pads[1:]]
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
        elif self._changes_only_nan(pads[0]):
            unordered = emit.op(f"fcmp uno {kind} {scalars[0]}, {scalars[0]}")
            folded = [self.context(0).select(unordered, element, pads[0], scalars[0])]
        else:
            folded = self.combine_lanes(0, scalars, pads)
        return [
            self.context(0).select(some, t, f, s)
            for t, f, s in zip(self.accumulator_types(), folded, scalars, strict=True)
        ]

    def _changes_only_nan(self, pad: str) -> bool:
        """True for the infinity that no number gives way to in an extremum."""
        if self.combine not in ("max", "min") or self.wide not in (F32, F64):
            return False
        return pad == constant_text(self.wide, float("-inf") if self.combine == "max" else float("inf"))
