"""A NeuronCore: which engine does what to how many partitions, and what must be moved for that.

The rules are those of the architecture guides and of the documented instruction costs, which the device's
description holds; here is which instructions an operation becomes:

- A block of two axes lies with axis 0 on the partitions, 128 at a time, and axis 1 along them; a block of one
  axis is spread over as many partitions as leave `_ROW_BYTES` to each.
- Loads and stores are DMA transfers of one row for each run of addresses; addresses and masks of bounds are
  descriptors and cost nothing else.
- Functions go to the scalar engine, with a row's bias or factor before them in the same instruction;
  everything else that is lane by lane to the vector engine: one instruction of a block with numbers or with a
  number per row (`tensor_scalar`), a slower one of two blocks (`tensor_tensor`).
- Sums across partitions are products with a row of ones; other folds across them transpose first.
- The compiler of the device orders the instructions of an engine: one whose operands are there may go before
  one of an earlier round or program that waits.
- A product wants the axis that it sums over on the partitions of both operands: what is not there is
  transposed on the tensor engine, which a `trans` of a loaded block saves. It adds up in PSUM.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from blocklang.emulation.planning import Planner, is_block
from blocklang.emulation.stream import Instruction
from blocklang.ir.core import Operation, Value
from blocklang.ir.types import element_type, shape_of
from blocklang.ops import elementwise as e
from blocklang.ops.atomics import Atomic
from blocklang.ops.control import For
from blocklang.ops.creation import Arange, Constant, Splat
from blocklang.ops.memory import Load, Store
from blocklang.ops.order import Gather, Histogram, Sort, TopK
from blocklang.ops.reduction import ArgReduce, Dot, Reduce, ReduceWith
from blocklang.ops.scan import MapElementwise, Scan
from blocklang.ops.shape import Broadcast, Cat, ExpandDims, Reshape, Slice, Trans

_ROW_BYTES = 512
_BANKS = 8  # of PSUM, for what is turned there
DMA = "dma"  # the engine that moves rows
_STEPS = 12  # instructions for a function that no engine has
# What the scalar engine computes in one instruction (nki.isa.activation's functions).
ACTIVATIONS = frozenset(
    {
        "exp",
        "exp2",
        "log",
        "log2",
        "sin",
        "cos",
        "tanh",
        "erf",
        "sqrt",
        "rsqrt",
        "atan",
        "floor",
        "ceil",
        "trunc",
        "rint",
    }
)
_DEPENDENT = (
    100  # cycles that what depends on an instruction waits on top (the architecture guide of Trainium 1)
)


class NeuronPlanner(Planner):
    """Writes the stream of a kernel for one NeuronCore.

    Attributes:
        rows: partitions of a tile.
        moving: columns of a product that one instruction takes.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.computed: dict[Value, bool] = {}
        self.rows = self.device.tiles.partitions.value
        self.moving = self.device.tiles.moving_columns.value

    def operation(self, op: Operation) -> Iterator[Instruction]:
        match op:
            case Load():
                yield from self._load(op)
            case Store():
                yield from self._store(op)
            case Atomic():
                yield from self._atomic(op)
            case _ if not any(self._is_on_chip(r) for r in op.results):
                return
            case Dot():
                yield from self._dot(op)
            case Reduce() | ArgReduce() | ReduceWith():
                yield from self._fold(op)
            case Scan():
                yield self._on("tensor_tensor_scan", op, *self._extents(op.results[0]))
            case Sort() | TopK() | Histogram():
                yield from self._ordered(op)
            case Gather():
                yield self._on("local_gather", op, *self._extents(op.results[0]))
            case ExpandDims() | Broadcast() | Reshape() | Splat() | Slice():
                yield self._same(op)
            case Trans():
                yield from self._transposed(op)
            case Cat():
                yield self._on("tensor_copy", op, *self._extents(op.results[0]))
            case Arange():
                yield self._on("iota", op, *self._extents(op.results[0]))
            case Constant():
                yield self._on("memset", op, *self._extents(op.results[0]))
            case MapElementwise():
                tiles, columns = self._extents(op.results[0])
                yield self._on("tensor_tensor", op, tiles * sum(1 for _ in op.regions[0].ops), columns)
            case e.Elementwise():
                yield from self._elementwise(op)

    def _is_on_chip(self, value: Value) -> bool:
        """True for blocks, and numbers that come from blocks, which no sequencer computes."""
        if value not in self.data:
            return False
        if is_block(value):
            return True
        op = value.defining_op
        if op is None or (op.regions and not isinstance(op, ReduceWith)):
            return False
        if value not in self.computed:
            self.computed[value] = any(is_block(v) or self._is_on_chip(v) for v in op.operands)
        return self.computed[value]

    # ---- shapes and costs ----

    def _extents(self, value: Value) -> tuple[int, int]:
        """Tiles of at most 128 partitions that a block has, and the elements that it has on each."""
        shape = shape_of(value.type)
        if not shape:
            return 1, 1
        if len(shape) == 1:
            return 1, math.ceil(shape[0] / self._partitions(value))
        return math.ceil(math.prod(shape[:-1]) / self.rows), shape[-1]

    def _partitions(self, value: Value) -> int:
        """How many partitions a block uses."""
        shape = shape_of(value.type)
        if len(shape) == 1:
            size = max(getattr(element_type(value.type), "bytes", 4), 1)
            return max(1, min(self.rows, shape[0] * size // _ROW_BYTES, shape[0]))
        return min(self.rows, math.prod(shape[:-1])) if shape else 1

    def _on(
        self, name: str, op: Operation, tiles: float, columns: float, *, dtype: str = "", psum_inputs: int = 0
    ) -> Instruction:
        """`tiles` instructions of one kind, one after the other."""
        dtype = dtype or self._dtype(op)
        size = max(1, *(getattr(element_type(r.type), "bytes", 1) for r in op.results), 1)
        cost = self.device.cost(
            name,
            dtype=dtype,
            N=columns,
            K=8,
            op=op.name,
            psum_inputs=psum_inputs,
            valid_idx=columns,
            elem_per_idx=1,
            dtype_bytes=size,
        )
        return Instruction(
            cost.engine,
            tiles * cost.seconds,
            self.inputs(op),
            tuple(self.number(r) for r in op.results),
            latency=self._dependent_seconds(cost.engine),
            depth=self.depth(op),
            overtakes=True,
            label=f"{op.name} ({name})" if name != op.name else name,
            location=op.location,
        )

    def _dependent_seconds(self, engine: str) -> float:
        """What an instruction that depends on one of this engine waits on top."""
        found = self.device.engines[engine]
        return found.seconds(found.dependent_cycles.value) if found.dependent_cycles is not None else 0.0

    def _dtype(self, op: Operation) -> str:
        values = [v for v in (*op.operands, *op.results) if is_block(v)]
        widest = max(values, key=lambda v: getattr(element_type(v.type), "bytes", 4), default=None)
        return str(element_type(widest.type)) if widest is not None else "f32"

    def _same(self, op: Operation) -> Instruction:
        """Another view of the same bytes."""
        return Instruction(
            "",
            0.0,
            self.inputs(op),
            tuple(self.number(r) for r in op.results),
            label=op.name,
            location=op.location,
        )

    # ---- memory ----

    def _transfer(self, op: Load | Store | Atomic, run: int) -> tuple[float, float, float]:
        """Seconds that an access occupies the DMA engines, seconds until it has arrived, and its bytes."""
        moved = self.access_bytes(op)
        if not moved:
            return 0.0, 0.0, 0.0
        dma = self.device.dma
        rows = max(1.0, moved / run)
        if shape_of(op.segment("pointer")[0].type)[:-1] == () and rows == 1 and moved > _ROW_BYTES:
            rows = min(float(self.rows), moved / _ROW_BYTES)  # one run over several partitions
        row = dma.row_seconds(moved / rows)
        occupied = rows * row / dma.engines.value
        return occupied, dma.start_seconds + math.ceil(rows / dma.engines.value) * row - occupied, moved

    def _load(self, op: Load) -> Iterator[Instruction]:
        seconds, latency, moved = self._transfer(op, self.addresses.run_bytes(op.pointer))
        depth = self.depth(op) if op.result in self.data else 0  # an address or a mask has no place
        yield self._dma(op, seconds, latency, moved, self.loaded(op), depth)

    def _store(self, op: Store) -> Iterator[Instruction]:
        value = self.inputs(op)
        where = self.loaded(op)
        if op.value.defining_op is not None and self._is_in_psum(op.value):
            copied = self.fresh()
            tiles, columns = self._extents(op.value)
            yield self._on("tensor_copy", op, tiles, columns, psum_inputs=1).with_values(value, (copied,))
            value = (copied,)
        seconds, latency, moved = self._transfer(op, self.addresses.run_bytes(op.pointer))
        yield self._dma(op, seconds, latency, moved, (*value, *where), 0)

    def _atomic(self, op: Atomic) -> Iterator[Instruction]:
        """Read, changed and written back, by accumulating DMA."""
        seconds, latency, moved = self._transfer(op, self.addresses.run_bytes(op.segment("pointer")[0]))
        reads = (*self.inputs(op), *self.loaded(op))
        yield self._dma(op, 2 * seconds, latency, 2 * moved, reads, self.depth(op))

    def _dma(
        self,
        op: Operation,
        seconds: float,
        latency: float,
        moved: float,
        reads: tuple[int, ...],
        depth: int,
    ) -> Instruction:
        return Instruction(
            DMA,
            seconds,
            reads,
            tuple(self.number(r) for r in op.results),
            latency=latency,
            depth=depth,
            overtakes=True,
            bytes=moved,
            space="global",
            label=op.name,
            location=op.location,
        )

    def _is_in_psum(self, value: Value) -> bool:
        """True for the result of a product, also one that a loop has added up."""
        op = value.defining_op
        if isinstance(op, For):
            end = op.body.terminator
            assert end is not None
            return isinstance(end.operands[op.results.index(value)].defining_op, Dot)
        return isinstance(op, Dot)

    # ---- lane by lane ----

    def _elementwise(self, op: Operation) -> Iterator[Instruction]:
        result = op.results[0]
        tiles, columns = self._extents(result)
        name, extra = self._lane_instruction(op)
        if not name:
            yield self._same(op)
            return
        yield self._on(name, op, tiles * extra, columns)

    def _lane_instruction(self, op: Operation) -> tuple[str, float]:
        """The instruction for a lane-wise operation, and how many of it; "" if another one does it, too."""
        if isinstance(op, e.FloatUnary) and not isinstance(op, (e.Abs, e.Neg)):
            return ("activation", 1) if op.name in ACTIVATIONS else ("activation", _STEPS)
        if isinstance(op, (e.Abs, e.Neg, e.Cast, e.Bitcast)):
            return ("tensor_copy", 1) if not self._is_bias(op) else ("", 0)
        if isinstance(op, e.Select):
            return "tensor_copy_predicated", 1
        if self._is_bias(op):
            return "", 0
        blocks = [v for v in op.operands if not self._is_per_row(v)]
        if isinstance(op, e.Div):
            return (
                ("reciprocal", 1)
                if self._is_per_row(op.operands[0]) and blocks
                else (("tensor_scalar", 1) if len(blocks) < 2 else ("reciprocal", 1.25))
            )
        if isinstance(op, e.FloatFunction):
            return "tensor_tensor", _STEPS
        return ("tensor_scalar", 1) if len(blocks) < 2 else ("tensor_tensor", max(1, len(blocks) - 1))

    def _is_per_row(self, value: Value) -> bool:
        """True for numbers, and blocks with one number per partition."""
        if not is_block(value):
            return True
        op = value.defining_op
        if isinstance(op, (Splat, Constant)):
            return True
        if isinstance(op, Broadcast):
            return shape_of(op.source.type)[-1] == 1
        return False

    def _is_bias(self, op: Operation) -> bool:
        """True for a block and a number per row whose sum, difference or product goes to a function only:
        the function's instruction does it on the way."""
        if not isinstance(op, (e.Add, e.Sub, e.Mul)) or self._is_per_row(op.operands[0]):
            return False
        users = self.users[op.results[0]]
        function = len(users) == 1 and isinstance(users[0], e.FloatUnary) and users[0].name in ACTIVATIONS
        return function and self._is_per_row(op.operands[1])

    # ---- across lanes ----

    def _fold(self, op: Reduce | ArgReduce | ReduceWith) -> Iterator[Instruction]:
        source = next(v for v in op.operands if is_block(v))
        shape, axis = shape_of(source.type), op.axis
        tiles, columns = self._extents(source)
        partial = self.fresh()
        outputs = tuple(self.number(r) for r in op.results)
        if len(shape) > 1 and axis == len(shape) - 1:
            yield self._on("tensor_reduce", op, tiles, columns)
            return
        if len(shape) == 1:
            yield self._on("tensor_reduce", op, tiles, columns).with_values(self.inputs(op), (partial,))
            if self._partitions(source) > 1:
                yield from self._across(op, (partial,), outputs, self._partitions(source), 1)
            else:
                yield self._same(op).with_values((partial,), outputs)
            return
        yield from self._across(op, self.inputs(op), outputs, shape[axis], math.prod(shape) // shape[axis])

    def _across(
        self, op: Operation, reads: tuple[int, ...], writes: tuple[int, ...], rows: int, columns: int
    ) -> Iterator[Instruction]:
        """A fold over partitions: a sum is a product with ones, another fold transposes first."""
        tiles = math.ceil(rows / self.rows)
        if isinstance(op, Reduce) and op.combine == "sum":
            parts = math.ceil(columns / self.moving)
            moving = min(columns, self.moving)
            yield self._product(op, tiles * parts, 1, moving).with_values(reads, writes)
            return
        turned = self.fresh()
        parts = tiles * math.ceil(columns / self.rows)
        yield self._transpose(op, parts, min(rows, self.rows), min(columns, self.rows)).with_values(
            reads, (turned,)
        )
        yield self._on("tensor_reduce", op, parts, min(rows, self.rows)).with_values((turned,), writes)

    def _ordered(self, op: Operation) -> Iterator[Instruction]:
        """Eight largest at a time: as often as there are eights."""
        source = next(v for v in op.operands if is_block(v))
        tiles, columns = self._extents(source)
        wanted = shape_of(op.results[0].type)[-1]
        yield self._on("max8", op, 2 * tiles * math.ceil(wanted / 8), columns)

    # ---- products ----

    def _product(self, op: Operation, count: float, stationary: int, moving: int) -> Instruction:
        cost = self.device.cost(
            "nc_matmul", dtype=self._dtype(op), N_stationary=stationary, N_moving=moving, N=moving
        )
        return Instruction(
            cost.engine,
            count * cost.seconds,
            overtakes=True,
            label=f"{op.name} (nc_matmul)",
            location=op.location,
        )

    def _transpose(self, op: Operation, count: float, rows: int, columns: int) -> Instruction:
        cost = self.device.cost("nc_transpose", dtype=self._dtype(op), P=rows, F=columns, N=columns)
        return Instruction(
            cost.engine,
            count * cost.seconds,
            depth=_BANKS,
            overtakes=True,
            label="nc_transpose",
            location=op.location,
        )

    def _dot(self, op: Dot) -> Iterator[Instruction]:
        *batch, rows, inner = shape_of(op.a.type)
        columns = shape_of(op.b.type)[-1]
        count = math.prod(batch)
        operands = []
        for value, needs in ((op.a, 1), (op.b, 0)):
            number = self.number(value)
            if self._partition_axis(value) != needs:
                turned, copied = self.fresh(), self.fresh()
                *_, high, wide = shape_of(value.type)
                blocks = count * math.ceil(high / self.rows) * math.ceil(wide / self.rows)
                size = min(high, self.rows), min(wide, self.rows)
                yield self._transpose(op, blocks, *size).with_values((number,), (turned,))
                yield self._on("tensor_copy", op, blocks, size[0], psum_inputs=1).with_values(
                    (turned,), (copied,)
                )
                number = copied
            operands.append(number)
        instruction = self._product(
            op,
            count
            * math.ceil(inner / self.rows)
            * math.ceil(rows / self.rows)
            * math.ceil(columns / self.moving),
            min(rows, self.rows),
            min(columns, self.moving),
        )
        acc = () if self._is_zero(op.acc) else (self.number(op.acc),)
        yield instruction.with_values((*operands, *acc), (self.number(op.output),))
        if acc and not self._adds_in_place(op):
            tiles, width = self._extents(op.output)
            yield self._on("tensor_tensor", op, tiles, width, psum_inputs=1)

    def _partition_axis(self, value: Value) -> int:
        """The axis of a matrix that lies on the partitions."""
        op = value.defining_op
        while isinstance(op, (e.Cast,)):  # goes where its operand is
            op = op.source.defining_op
        return 1 if isinstance(op, Trans) else 0

    def _transposed(self, op: Trans) -> Iterator[Instruction]:
        """Free where only products read it; they take it as it lies."""
        if all(isinstance(user, (Dot, e.Cast)) for user in self.users[op.results[0]]):
            yield self._same(op)
            return
        *batch, rows, columns = (1, *shape_of(op.results[0].type))
        blocks = math.prod(batch) * math.ceil(rows / self.rows) * math.ceil(columns / self.rows)
        yield self._transpose(op, blocks, min(columns, self.rows), min(rows, self.rows)).with_values(
            self.inputs(op), (self.number(op.results[0]),)
        )

    def _is_zero(self, value: Value) -> bool:
        op = value.defining_op
        if isinstance(op, Splat):
            op = op.source.defining_op
        return isinstance(op, Constant) and op.value == 0

    def _adds_in_place(self, op: Dot) -> bool:
        """True if a loop carries the accumulator and only this product changes it: it stays in PSUM."""
        region = op.parent
        return region is not None and op.acc in region.args and len(self.users[op.acc]) == 1
