"""Regions and scalar control flow: straight-line operations, `for`, `while`, `if` and `group`.

`RegionEmitter` emits a region of a kernel or of a loop over lanes. Operations with machine code of their
own kind (loops over lanes, folds of rows, matrix products, the place in the grid) are reached through its
table of hooks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from blocklang.codegen.context import Context
from blocklang.codegen.divergent import divergent_for, divergent_if, divergent_while
from blocklang.codegen.elementwise import convert
from blocklang.codegen.emitter import Phi, llvm_scalar, llvm_type
from blocklang.codegen.lanes import LaneEmitter
from blocklang.codegen.values import Lane
from blocklang.ir.core import Operation, Region, Value
from blocklang.ir.types import I64, ScalarType
from blocklang.ops.control import For, If, While
from blocklang.ops.tile import Group


class RegionEmitter:
    """Emits regions: straight-line operations through a `LaneEmitter`, structured ones here."""

    def __init__(self, lanes: LaneEmitter, hooks: dict[type[Operation], Hook]) -> None:
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
        if not all(self.values[v].is_uniform for v in (op.start, op.stop, op.step)):
            divergent_for(self, op)
            return
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
        if self.lanes.width:  # what it carries is vectors, so its condition is one too
            divergent_while(self, op)
            return
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
        if not self.values[op.condition].is_uniform:
            divergent_if(self, op)
            return
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


Hook = Callable[[RegionEmitter, Operation], None]
