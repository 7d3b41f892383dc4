"""Code for the body of a loop over lanes, and for scalar code around such loops.

`LaneEmitter` turns scalar operations into operations on `width` lanes. Values that are the same in all
lanes stay scalar, integer values that grow by a fixed step stay a base and a step (see `values`), and only
the rest becomes vectors; so addresses are scalar arithmetic and an access to consecutive elements is one
vector load or store. With width 0 it emits ordinary scalar code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from blocklang.codegen import periods
from blocklang.codegen.context import Context
from blocklang.codegen.division import Divisor, divide
from blocklang.codegen.elementwise import LOWERINGS, convert
from blocklang.codegen.emitter import Emitter, llvm_scalar, llvm_type, splat_constant, vector_of
from blocklang.codegen.floats import constant_text
from blocklang.codegen.values import Lane, is_false, is_true
from blocklang.ir.core import Operation, Value
from blocklang.ir.types import I1, I64, U8, PointerType, ScalarType, Type, element_type, shape_of
from blocklang.ops.creation import Constant
from blocklang.ops.elementwise import Add, And, Cast, Div, Elementwise, IntegerDiv, Mul, Or, Rem, Sub
from blocklang.ops.memory import Load, Offset, Store
from blocklang.ops.tile import BufferOp, InBounds, Memory, Part, Prefetch, Read, View, Write
from blocklang.target import Target

CACHE_LINE = 64

TRUE = Lane("true", I1)
FALSE = Lane("false", I1)


def memory_type(type: Type) -> ScalarType | PointerType:
    """The type of an element in memory: a bool is a byte."""
    element = element_type(type)
    return U8 if element == I1 else element


@dataclass
class RunningState:
    """The last results of a scan so far, each in every lane, and the condition that there are none."""

    last: list[str]
    is_first: str


@dataclass
class LaneEmitter:
    """Emits operations for `width` lanes at a time.

    Attributes:
        values: what has been emitted for each SSA value.
        live: the lanes that exist at all (a mask), or None if all do.
        assumed: masks known to hold in every lane here.
        splats: vectors of uniform registers that were made before the loop.
        running: per operation that scans lanes, what it carries from step to step, and whether this step is
            the first.
        divisors: uniform divisors that were prepared before the loop.
        prefetch: how many lanes ahead of what consecutive loads read, to bring into the caches; 0 for none.
        streams: whether stores bypass the caches; addresses are multiples of 16 then.
        large_launches: per number of programs and axes of the grid, the flag that it has so many.
    """

    emit: Emitter
    target: Target
    values: dict[Value, Lane]
    width: int = 0
    live: Lane | None = None
    assumed: frozenset[Operation] = frozenset()
    buffers: dict[Value, Memory] = field(default_factory=dict)
    splats: dict[str, str] = field(default_factory=dict)
    running: dict[Operation, RunningState] = field(default_factory=dict)
    divisors: dict[str, Divisor] = field(default_factory=dict)
    prefetch: int = 0
    streams: bool = False
    large_launches: dict[tuple[int, tuple[int, ...]], str] = field(default_factory=dict)

    # ---- representations ----

    def context(self, width: int) -> Context:
        return Context(self.emit, self.target, width)

    def vector(self, lane: Lane) -> str:
        """The register with all lanes of a value (the scalar itself if this code is scalar)."""
        if lane.width or not self.width:
            return lane.text
        scalar = llvm_scalar(lane.type)
        if lane.is_uniform:
            return self.splats.get(lane.text) or self.emit.splat(scalar, lane.text, self.width)
        offsets = self._ramp(lane.step, 64 if scalar == "ptr" else lane.bits)
        if scalar == "ptr":
            return self.emit.op(f"getelementptr i8, ptr {lane.text}, <{self.width} x i64> {offsets}")
        base = self.emit.splat(scalar, lane.text, self.width)
        return self.emit.op(f"add {vector_of(scalar, self.width)} {base}, {offsets}")

    def _ramp(self, step: str, bits: int) -> str:
        """The vector 0, step, 2 * step, ..."""
        type = vector_of(f"i{bits}", self.width)
        if step.lstrip("-").isdigit():
            mask = (1 << bits) - 1
            numbers = (_signed(lane * int(step) & mask, bits) for lane in range(self.width))
            return f"<{', '.join(f'i{bits} {number}' for number in numbers)}>"
        narrow = step if bits == 64 else self.emit.op(f"trunc i64 {step} to i{bits}")
        counts = f"<{', '.join(f'i{bits} {lane}' for lane in range(self.width))}>"
        return self.emit.op(f"mul {type} {self.emit.splat(f'i{bits}', narrow, self.width)}, {counts}")

    def get(self, value: Value) -> Lane:
        return self.values[value]

    # ---- operations ----

    def operation(self, op: Operation) -> None:
        """Emit one operation that holds no region."""
        match op:
            case Constant():
                self.values[op.result] = self.constant(op)
            case BufferOp():
                pass  # emitted once, at the start of the kernel
            case Part():
                whole, index = self.values[op.buffer], self.get(op.index)
                size = op.output.type.numel * memory_type(op.output.type).bytes
                self.values[op.result] = Lane(
                    self.emit.offset(whole.text, self.emit.mul(index.text, size)), whole.type
                )
                self.buffers[op.result] = self.buffers[op.buffer]
            case View():
                self.values[op.result] = self.values[op.buffer]
                self.buffers[op.result] = self.buffers[op.buffer]
            case InBounds():
                self.values[op.result] = self.in_bounds(op)
            case Offset():
                self.values[op.result] = self.offset(op)
            case Load() if op.volatile:
                self.order_streams()
                self.emit.do("fence acq_rel")
                self.values[op.result] = self.load(op)
                self.emit.do("fence acq_rel")
            case Load():
                self.values[op.result] = self.load(op)
            case Store():
                self.store(self.get(op.pointer), self.get(op.value), self.mask_of(op.mask), op)
            case Read():
                pointer = self.buffer_pointer(op.buffer, op.indices)
                # Past the end of a row there is room for one vector, but not for lanes that lie apart.
                contiguous = pointer.step == str(memory_type(op.result.type).bytes)
                mask = TRUE if contiguous or pointer.is_uniform or self.live is None else self.live
                self.values[op.result] = self.load_lanes(pointer, op.result.type, mask, None)
            case Prefetch():
                self.ask_for(self.get(op.pointer), writes=op.writes)
            case Write():
                pointer = self.buffer_pointer(op.buffer, op.indices)
                self.store(pointer, self.get(op.value), self.write_mask(op, pointer), op)
            case Elementwise():
                self.values[op.result] = self.elementwise(op)
            case _:
                raise AssertionError(f"{op.name} has no machine code here")

    def constant(self, op: Constant) -> Lane:
        type = op.result.type
        if isinstance(type, PointerType):
            return Lane("null", type)
        assert isinstance(type, ScalarType)
        return Lane(constant_text(type, op.value), type)

    def elementwise(self, op: Operation) -> Lane:
        args = [self.get(v) for v in op.operands]
        type = op.results[0].type
        if short := self._logic(op, args):
            return short
        if all(a.is_uniform for a in args):
            text = LOWERINGS[op.__class__](self.context(0), op, [a.text for a in args])
            return Lane(text, type)
        if isinstance(op, (IntegerDiv, Rem)) and (parts := periods.divided(self, op, args)):
            return parts
        if affine := self._affine(op, args):
            return affine
        if repeated := periods.repeated(self, op, args):
            return repeated
        if isinstance(op, Div) and args[1].is_uniform and (by := self.divisors.get(args[1].text)):
            assert isinstance(type, ScalarType)
            lanes, divisor = (self.vector(a) for a in args)
            return Lane(divide(self.emit, type, lanes, by, divisor, self.width), type, self.width)
        text = LOWERINGS[op.__class__](self.context(self.width), op, [self.vector(a) for a in args])
        return Lane(text, type, self.width)

    def _logic(self, op: Operation, args: list[Lane]) -> Lane | None:
        """`and` and `or` with a mask that is known."""
        if op.results[0].type != I1 or not isinstance(op, (And, Or)):
            return None
        for one, other in (args, args[::-1]):
            if is_true(one):
                return other if isinstance(op, And) else TRUE
            if is_false(one):
                return FALSE if isinstance(op, And) else other
        return None

    def _affine(self, op: Operation, args: list[Lane]) -> Lane | None:
        """The base and step of the result, if the operation keeps its operands' form exactly."""
        type = op.results[0].type
        if not isinstance(type, ScalarType) or type.is_float or type.bits == 1 or any(a.width for a in args):
            return None
        match op:
            case Add() | Sub():
                base = LOWERINGS[op.__class__](self.context(0), op, [a.text for a in args])
                first, second = (a.step or "0" for a in args)
                if isinstance(op, Sub):
                    second = self.emit.mul(second, -1)
                lane = _with_step(base, type, self.emit.add(first, second))
                return replace(lane, multiple=periods.multiple_of_sum(op, args, type)) if lane.step else lane
            case Mul() if not all(a.is_affine for a in args):
                affine, factor = args if args[0].is_affine else args[::-1]
                base = LOWERINGS[Mul](self.context(0), op, [a.text for a in args])
                wide = (
                    convert(self.context(0), type, I64, factor.text)
                    if factor.text.startswith("%")
                    else factor.text
                )
                return _with_step(base, type, self.emit.mul(affine.step, wide))
            case Cast() if not isinstance(args[0].type, PointerType) and type.bits <= args[0].bits:
                return Lane(convert(self.context(0), args[0].type, type, args[0].text), type, 0, args[0].step)
        return None

    def offset(self, op: Offset) -> Lane:
        pointer, offset = self.get(op.pointer), self.get(op.offset)
        type = op.result.type
        assert isinstance(type, PointerType)
        size = type.element.bytes
        wide = offset.type == I64 or offset.bits == 64
        if offset.repeated is not None and wide and pointer.is_uniform:
            return periods.repeated_offset(self, pointer, offset, type)
        if not pointer.width and not offset.width and (wide or offset.is_uniform):
            count = (
                offset.text
                if wide or not offset.text.startswith("%")
                else (convert(self.context(0), offset.type, I64, offset.text))
            )
            if (
                not offset.text.startswith("%")
                and isinstance(offset.type, ScalarType)
                and not offset.type.is_signed
            ):
                count = str(int(offset.text) & ((1 << offset.type.bits) - 1))
            text = self.emit.offset(pointer.text, self.emit.mul(count, size))
            step = self.emit.add(pointer.step or "0", self.emit.mul(offset.step or "0", size))
            return _with_step(text, type, step)
        lanes = convert(self.context(self.width), offset.type, I64, self.vector(offset))
        wide_type = vector_of("i64", self.width)
        if size != 1:
            lanes = self.emit.op(f"mul {wide_type} {lanes}, {splat_constant('i64', str(size), self.width)}")
        base = pointer.text if pointer.is_uniform else self.vector(pointer)
        base_type = "ptr" if pointer.is_uniform else vector_of("ptr", self.width)
        return Lane(
            self.emit.op(f"getelementptr i8, {base_type} {base}, {wide_type} {lanes}"), type, self.width
        )

    def order_streams(self) -> None:
        """Let every streaming store so far happen before every store that follows."""
        if self.large_launches:
            self.emit.call("void", "llvm.x86.sse.sfence", [])

    # ---- masks ----

    def in_bounds(self, op: InBounds) -> Lane:
        index, low, high = (self.get(v) for v in (op.index, op.low, op.high))
        if op in self.assumed:
            return TRUE
        if index.is_uniform and low.is_uniform and high.is_uniform:
            above = self.emit.op(f"icmp sge i64 {index.text}, {low.text}")
            below = self.emit.op(f"icmp slt i64 {index.text}, {high.text}")
            return Lane(self.emit.op(f"and i1 {above}, {below}"), I1)
        if index.step == "1" and low.is_uniform and high.is_uniform:
            return self.range_mask(index.text, low.text, high.text)
        vectors = [self.vector(v) for v in (index, low, high)]
        type = vector_of("i64", self.width)
        above = self.emit.op(f"icmp sge {type} {vectors[0]}, {vectors[1]}")
        below = self.emit.op(f"icmp slt {type} {vectors[0]}, {vectors[2]}")
        return Lane(self.emit.op(f"and {vector_of('i1', self.width)} {above}, {below}"), I1, self.width)

    def range_mask(self, index: str, low: str, high: str) -> Lane:
        """The lanes whose index, `index` + lane, lies in [low, high); compared in 32 bits after clamping."""
        type, mask = vector_of("i32", self.width), vector_of("i1", self.width)
        counts = f"<{', '.join(f'i32 {lane}' for lane in range(self.width))}>"
        below = self.emit.op(f"icmp slt {type} {counts}, {self._clamped(high, index)}")
        if low == "0":
            return Lane(below, I1, self.width)
        above = self.emit.op(f"icmp sge {type} {counts}, {self._clamped(low, index)}")
        return Lane(self.emit.op(f"and {mask} {above}, {below}"), I1, self.width)

    def _clamped(self, bound: str, index: str) -> str:
        distance = self.emit.op(f"sub i64 {bound}, {index}")
        distance = self.emit.call("i64", "llvm.smax.i64", [("i64", distance), ("i64", "0")])
        distance = self.emit.call("i64", "llvm.smin.i64", [("i64", distance), ("i64", str(self.width))])
        return self.emit.splat("i32", self.emit.op(f"trunc i64 {distance} to i32"), self.width)

    def mask_of(self, value: Value | None) -> Lane:
        """A mask operand, restricted to the lanes that exist."""
        return self.both(TRUE if value is None else self.get(value), self.live)

    def both(self, mask: Lane, live: Lane | None) -> Lane:
        if live is None or is_true(live) or is_false(mask):
            return mask
        if is_true(mask):
            return live
        text = self.emit.op(f"and {vector_of('i1', self.width)} {self.vector(mask)}, {self.vector(live)}")
        return Lane(text, I1, self.width)

    # ---- memory ----

    def load(self, op: Load) -> Lane:
        pointer = self.get(op.pointer)
        other = self.get(op.other) if op.other is not None else None
        own = TRUE if op.mask is None else self.get(op.mask)
        if pointer.is_uniform and own.is_uniform and (other is None or other.is_uniform):
            return self.load_uniform(pointer, op.result.type, own, other, volatile=op.volatile)
        return self.load_lanes(
            pointer, op.result.type, self.both(own, self.live), other, volatile=op.volatile
        )

    def load_uniform(
        self, pointer: Lane, type: Type, mask: Lane, other: Lane | None, *, volatile: bool = False
    ) -> Lane:
        """One element for all lanes; behind a branch if it is masked."""
        fallback = other.text if other is not None else _zero(element_type(type))
        if is_false(mask):
            return Lane(fallback, type)
        if is_true(mask):
            return Lane(self._scalar_load(pointer.text, type, volatile), type)
        then, join, before = self.emit.new_block("load"), self.emit.new_block("loaded"), self.emit.block
        self.emit.branch_if(mask.text, then, join)
        self.emit.start(then)
        loaded = self._scalar_load(pointer.text, type, volatile)
        self.emit.branch(join)
        self.emit.start(join)
        phi = self.emit.phi(llvm_scalar(element_type(type)), [(fallback, before), (loaded, then)])
        return Lane(phi.name, type)

    def _scalar_load(self, pointer: str, type: Type, volatile: bool) -> str:
        element = memory_type(type)
        keyword = "load volatile" if volatile else "load"
        text = self.emit.op(f"{keyword} {llvm_scalar(element)}, ptr {pointer}, align {_alignment(element)}")
        return self.emit.op(f"icmp ne i8 {text}, 0") if type == I1 else text

    def load_lanes(
        self, pointer: Lane, type: Type, mask: Lane, other: Lane | None, *, volatile: bool = False
    ) -> Lane:
        if pointer.is_uniform and is_true(mask):
            return Lane(self._scalar_load(pointer.text, type, volatile), type)
        element = memory_type(type)
        vector, align = llvm_type(element, self.width), _alignment(element)
        if is_false(mask):
            text = self.vector(other) if other is not None else "zeroinitializer"
            return Lane(text, type, self.width)
        passthru = "zeroinitializer" if other is None or type == I1 else self.vector(other)
        contiguous = pointer.step == str(element.bytes)
        if not contiguous and not volatile:
            strided = periods.load(self, pointer, element, mask, passthru)
        else:
            strided = None
        if strided is not None:
            text = strided
        elif contiguous and is_true(mask):
            keyword = "load volatile" if volatile else "load"
            if self.prefetch:
                self._prefetch(pointer.text, self.prefetch * element.bytes, element.bytes)
            text = self.emit.op(f"{keyword} {vector}, ptr {pointer.text}, align {align}")
        elif contiguous:
            text = self.masked_load(vector, pointer.text, align, self.vector(mask), passthru, element)
        else:
            text = self._gather(vector, self.vector(pointer), align, self.vector(mask), passthru, element)
        if type == I1:
            text = self.emit.op(f"icmp ne {vector} {text}, zeroinitializer")
            if other is not None:
                kind = vector_of("i1", self.width)
                text = self.emit.op(
                    f"select {kind} {self.vector(mask)}, {kind} {text}, {kind} {self.vector(other)}"
                )
        return Lane(text, type, self.width)

    def ask_for(self, pointer: Lane, *, writes: bool) -> None:
        """Ask for the lines of consecutive lanes; a last step of fewer lanes asks for nothing, nor do stores
        past the caches.
        """
        assert isinstance(pointer.type, PointerType)
        size = memory_type(pointer.type.element).bytes
        if self.width and self.live is None and pointer.step == str(size) and not (writes and self.streams):
            self._prefetch(pointer.text, 0, size, writes=writes)

    def _prefetch(self, pointer: str, ahead: int, size: int, *, writes: bool = False) -> None:
        """Ask for the lines that hold the lanes `ahead` bytes on. An address outside of all arrays does
        nothing.
        """
        for line in range(0, self.width * size, CACHE_LINE):
            place = self.emit.offset(pointer, ahead + line)
            # to read or to write, near, data
            arguments = [("ptr", place), ("i32", str(int(writes))), ("i32", "3"), ("i32", "1")]
            self.emit.call("void", "llvm.prefetch.p0", arguments)

    def masked_load(
        self, vector: str, pointer: str, align: int, mask: str, passthru: str, element: Type
    ) -> str:
        name = f"llvm.masked.load.{_overload(element, self.width)}.p0"
        arguments = [
            ("ptr", f"align {align} {pointer}"),
            (vector_of("i1", self.width), mask),
            (vector, passthru),
        ]
        return self._call_with_attributes(vector, name, arguments)

    def _gather(self, vector: str, pointers: str, align: int, mask: str, passthru: str, element: Type) -> str:
        kind = vector_of("ptr", self.width)
        name = f"llvm.masked.gather.{_overload(element, self.width)}.v{self.width}p0"
        arguments = [
            (kind, f"align {align} {pointers}"),
            (vector_of("i1", self.width), mask),
            (vector, passthru),
        ]
        return self._call_with_attributes(vector, name, arguments)

    def _call_with_attributes(self, result: str, name: str, arguments: Sequence[tuple[str, str]]) -> str:
        types = ", ".join(t for t, _ in arguments)
        self.emit.declarations[name] = f"declare {result} @{name}({types})"
        text = f"call {result} @{name}({', '.join(f'{t} {v}' for t, v in arguments)})"
        if result == "void":
            self.emit.do(text)
            return ""
        return self.emit.op(text)

    def store(self, pointer: Lane, value: Lane, mask: Lane, op: Operation) -> None:
        element = memory_type(value.type)
        if is_false(mask):
            return
        if not self.width or (pointer.is_uniform and value.is_uniform and mask.is_uniform):
            self._store_uniform(pointer, value, mask)
            return
        vector, align = llvm_type(element, self.width), _alignment(element)
        text = self.vector(value)
        if value.type == I1:
            text = self.emit.op(f"zext {vector_of('i1', self.width)} {text} to {vector}")
        contiguous = pointer.step == str(element.bytes)
        if pointer.step == str(-element.bytes) and is_true(mask):
            text, pointer, contiguous = *periods.backwards(self, pointer, element, text), True
        if contiguous and is_true(mask):
            if self.streams and isinstance(op, Store):
                self._stream(element, text, pointer.text)
            else:
                self.emit.do(f"store {vector} {text}, ptr {pointer.text}, align {align}")
            return
        form, kind = ("store", "ptr") if contiguous else ("scatter", vector_of("ptr", self.width))
        place = pointer.text if contiguous else self.vector(pointer)
        suffix = "p0" if contiguous else f"v{self.width}p0"
        name = f"llvm.masked.{form}.{_overload(element, self.width)}.{suffix}"
        arguments = [
            (vector, text),
            (kind, f"align {align} {place}"),
            (vector_of("i1", self.width), self.vector(mask)),
        ]
        self._call_with_attributes("void", name, arguments)

    def _stream(self, element: ScalarType | PointerType, text: str, pointer: str) -> None:
        """Store past the caches, 16 bytes at a time, in ascending order: a core joins them into lines."""
        vector, lanes = llvm_type(element, self.width), 16 // element.bytes
        for first in range(0, self.width, lanes):
            picks = ", ".join(f"i32 {lane}" for lane in range(first, first + lanes))
            piece = self.emit.op(f"shufflevector {vector} {text}, {vector} poison, <{lanes} x i32> <{picks}>")
            place = self.emit.offset(pointer, first * element.bytes)
            self.emit.do(f"store {llvm_type(element, lanes)} {piece}, ptr {place}, align 16, !nontemporal !0")

    def _store_uniform(self, pointer: Lane, value: Lane, mask: Lane) -> None:
        element = memory_type(value.type)

        def write() -> None:
            text = self.emit.op(f"zext i1 {value.text} to i8") if value.type == I1 else value.text
            self.emit.do(
                f"store {llvm_scalar(element)} {text}, ptr {pointer.text}, align {_alignment(element)}"
            )

        if is_true(mask):
            write()
            return
        self.when(mask.text, write)

    def when(self, condition: str, body: Callable[[], None]) -> None:
        """Emit `body` behind a branch."""
        then, join = self.emit.new_block("then"), self.emit.new_block("join")
        self.emit.branch_if(condition, then, join)
        self.emit.start(then)
        body()
        self.emit.branch(join)
        self.emit.start(join)

    # ---- buffers ----

    def buffer_pointer(self, buffer: Value, indices: Sequence[Value]) -> Lane:
        """The address of a buffer's element: affine wherever the indices are."""
        base, op = self.get(buffer), self.buffers[buffer]
        lanes = [self.get(i) for i in indices]
        shape = shape_of(buffer.type)
        size = memory_type(buffer.type).bytes
        if op.panel:
            return self._panel_pointer(base, op, lanes, shape, size)
        steps = [size]
        for extent in reversed(shape[1:]):
            steps.insert(0, steps[0] * extent)
        return self._address(base, [(lane, step) for lane, step in zip(lanes, steps, strict=True)])

    def _panel_pointer(
        self, base: Lane, op: Memory, lanes: list[Lane], shape: tuple[int, ...], size: int
    ) -> Lane:
        """Row i, column j of a matrix stored in panels. A vector along j lies in one panel if it starts at a
        multiple of its width, which divides the panel; loops over parts of a row need not start there.
        """
        row, column = lanes
        panel, width = op.panel, max(self.width, 1)
        starts_whole = width == 1 or (column.multiple > 0 and column.multiple % width == 0)
        affine = column.step == "1" and panel % width == 0 and starts_whole
        context = self.context(0 if affine or column.is_uniform else self.width)
        text = column.text if affine or column.is_uniform else self.vector(column)
        kind = vector_of("i64", context.width)
        divisor = splat_constant("i64", str(panel), context.width)
        which = self.emit.op(f"udiv {kind} {text}, {divisor}")
        within = self.emit.op(f"urem {kind} {text}, {divisor}")
        width = context.width
        parts = [
            (Lane(which, I64, width), shape[0] * panel * size),
            (row, panel * size),
            (Lane(within, I64, width, column.step if affine else ""), size),
        ]
        return self._address(base, parts)

    def _address(self, base: Lane, parts: Sequence[tuple[Lane, int]]) -> Lane:
        offset, step, vectors = "0", "0", []
        for lane, size in parts:
            if lane.width:
                vectors.append((lane, size))
                continue
            offset = self.emit.add(offset, self.emit.mul(lane.text, size))
            step = self.emit.add(step, self.emit.mul(lane.step or "0", size))
        pointer = _with_step(self.emit.offset(base.text, offset), base.type, step)
        if len(vectors) == 1 and vectors[0][0].repeated is not None and pointer.is_uniform:
            lane, size = vectors[0]
            return periods.repeated_address(self, pointer, lane, size)
        for lane, size in vectors:
            kind = vector_of("i64", self.width)
            scaled = self.emit.op(f"mul {kind} {lane.text}, {splat_constant('i64', str(size), self.width)}")
            text = self.emit.op(
                f"getelementptr i8, {vector_of('ptr', self.width)} {self.vector(pointer)}, {kind} {scaled}"
            )
            pointer = Lane(text, base.type, self.width)
        return pointer

    def write_mask(self, op: Write, pointer: Lane) -> Lane:
        """Lanes that do not exist must not be written, except past the end of a row that is the whole
        buffer (it has room).
        """
        if self.live is None:
            return TRUE
        if op.buffer.type.rank == 1 and pointer.step == str(memory_type(op.buffer.type).bytes):
            return TRUE
        return self.live


def _with_step(text: str, type: Type, step: str) -> Lane:
    return Lane(text, type, 0, "" if step == "0" else step)


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


def _alignment(element: Type) -> int:
    """Arrays may start anywhere: only byte alignment is promised."""
    return 1


def _zero(type: Type) -> str:
    if isinstance(type, PointerType):
        return "null"
    assert isinstance(type, ScalarType)
    return constant_text(type, 0.0 if type.is_float else 0)


def _overload(element: Type, width: int) -> str:
    scalar = llvm_scalar(element)
    return f"v{width}{ {'half': 'f16', 'float': 'f32', 'double': 'f64', 'ptr': 'p0'}.get(scalar, scalar) }"
