"""Operations of Tile IR.

*Abstract* Tile IR (level 'tile', the same for every device) computes with blocks through `iterate` and
`contract`: one operation of Block IR is one operation here, with no fusion, order, size or place. Bodies
hold scalar operations, one lane's worth.

*Placed* Tile IR (level 'placed', for one device) has no block values. `buffer` is memory, `lanes` is a loop
executed several lanes at a time, `group` a loop around several of those, `contract_buffers` a
register-tiled matrix product.
"""

from __future__ import annotations

from blocklang.ir.core import Operation
from blocklang.ir.declaration import Effect, attribute, operand, operation, region, result
from blocklang.ir.types import I1, I64, BlockType, BufferType, element_type, with_shape
from blocklang.ops.constraints import Anything, Block, Buffer, Index, Pointer, ScalarOrPointer
from blocklang.ops.control import Yield
from blocklang.ops.reduction import COMBINES

ARG_COMBINES = ("argmax", "argmin")
PLACED = frozenset({"placed"})
TILE = frozenset({"tile"})


class TileOperation(Operation):
    """Base of operations that exist in Tile IR only."""

    block_levels = TILE


@operation("iterate")
class Iterate(TileOperation):
    """Run the body for every point of an iteration space and collect what it yields.

    The body takes the indices (one i64 per axis), then one lane of each input, read at `maps[k]` of the
    indices. Without `combine` the results are blocks of the shape `space`. With `combine` axis `reduced` is
    folded away in the published order of that combine ("argmax" and "argmin" fold a value and its i32 index
    together; "custom" folds with the second region).

    %y = iterate %x, space=[64], maps=[map<1: d0>] : block<64xf32> {
      (%i: i64, %xi: f32):
      %e = exp %xi : f32
      yield %e
    }
    """

    inputs = operand(Block, variadic=True)
    space = attribute(tuple)
    maps = attribute(tuple, default=())
    combine = attribute(str, default="", choices=("", *COMBINES, *ARG_COMBINES, "custom"))
    reduced = attribute(int, default=-1)
    outputs = result(variadic=True)
    body = region()
    combiner = region(optional=True)
    levels = TILE

    def verify_op(self) -> None:
        if len(self.maps) != len(self.inputs):
            raise ValueError("every input needs a map")
        lanes = [element_type(v.type) for v in self.inputs]
        if [a.type for a in self.body.args] != [I64] * len(self.space) + lanes:
            raise ValueError("the body takes one i64 per axis, then one lane per input")
        if not isinstance(self.body.terminator, Yield):
            raise ValueError("the body must end in a yield")
        if bool(self.combine) != (0 <= self.reduced < len(self.space)):
            raise ValueError("combine needs a reduced axis, and only combine")
        shape = tuple(n for i, n in enumerate(self.space) if not self.combine or i != self.reduced)
        yielded = [with_shape(element_type(v.type), shape) for v in self.body.terminator.operands]
        if [r.type for r in self.results] != yielded:
            raise ValueError(f"results must be {', '.join(map(str, yielded))}")


@operation("contract")
class Contract(TileOperation):
    """Matrix product plus accumulator, as `dot`: per element a chain of fused multiply-adds, k ascending.

    %c = contract %a, %b, %acc : block<64x32xf32>
    """

    a = operand(Block)
    b = operand(Block)
    acc = operand(Block)
    input_precision = attribute(str, default="ieee", choices=("ieee", "tf32"))
    start = attribute(str, default="acc", choices=("acc", "add"))
    output = result(lambda op: op.acc.type)
    levels = TILE


SPACES = ("global", "scratch", "accumulator", "private")


class Memory(TileOperation):
    """Base of what makes a buffer."""

    panel: int

    @property
    def buffer_type(self) -> BufferType:
        type = self.result.type
        assert isinstance(type, BufferType)
        return type

    def element_count(self) -> int:
        """Elements the buffer takes, padding included."""
        type = self.buffer_type
        if not self.panel:
            return type.numel
        rows, columns = type.shape
        return rows * -(-columns // self.panel) * self.panel

    def byte_count(self) -> int:
        return self.element_count() * self.buffer_type.element.bytes


@operation("buffer")
class BufferOp(Memory):
    """A place in on-chip memory, `offset` bytes into its space, with row-major elements.

    `panel` > 0 stores a matrix as panels of that many columns: element (i, j) is at (j // panel) * rows *
    panel + i * panel + j % panel; the number of columns is rounded up to whole panels. `tiles` > 0 says that
    the loops which fill it write all of it, and that so many copies may be kept from program to program.

    %b = buffer space="scratch", offset=0 : buffer<64x32xf32>
    """

    space = attribute(str, default="scratch", choices=SPACES)
    offset = attribute(int, default=-1)
    panel = attribute(int, default=0)
    tiles = attribute(int, default=0)
    output = result()
    levels = PLACED


@operation("read")
class Read(TileOperation):
    """One element of a buffer.

    %v = read %buf, %i, %j : f32
    """

    buffer = operand(Buffer)
    indices = operand(Index, variadic=True)
    output = result(lambda op: op.buffer.type.element)
    effects = frozenset({Effect.READ_BUFFER})
    levels = PLACED

    def verify_op(self) -> None:
        if len(self.indices) != self.buffer.type.rank:
            raise ValueError("a buffer needs one index per axis")


@operation("write")
class Write(TileOperation):
    """Set one element of a buffer.

    write %buf, %v, %i, %j
    """

    buffer = operand(Buffer)
    value = operand(ScalarOrPointer)
    indices = operand(Index, variadic=True)
    effects = frozenset({Effect.WRITE_BUFFER})
    levels = PLACED

    def verify_op(self) -> None:
        if len(self.indices) != self.buffer.type.rank or self.value.type != self.buffer.type.element:
            raise ValueError("a write needs one index per axis and a value of the element type")


@operation("prefetch")
class Prefetch(TileOperation):
    """Ask for the memory at an address, which need not be one: it changes nothing but time. Of lanes, only
    those at consecutive addresses are asked for. `writes` says that it will be stored to.

    prefetch %q
    """

    pointer = operand(Pointer)
    writes = attribute(bool, default=False)
    levels = PLACED


@operation("view")
class View(TileOperation):
    """The same bytes of a row-major buffer under another shape.

    %w = view %b : buffer<2048xf32>
    """

    buffer = operand(Buffer)
    output = result()
    levels = PLACED

    def verify_op(self) -> None:
        source, target = self.buffer.type, self.output.type
        if (
            not isinstance(target, BufferType)
            or source.numel != target.numel
            or source.element != target.element
        ):
            raise ValueError("a view keeps the number and type of elements")


@operation("part")
class Part(View):
    """One of the equal parts that a row-major buffer's first axis counts.

    %m = part %b, %i : buffer<64x32xf32>
    """

    index = operand(Index)

    def verify_op(self) -> None:
        source, target = self.buffer.type, self.output.type
        if target != BufferType(source.element, source.shape[1:]):
            raise ValueError("a part has its buffer's type without the first axis")


@operation("memoise")
class Memoise(Memory):
    """A buffer that the body fills, and that programs of one launch share: where an earlier one on this
    thread had the same `keys`, the body need not run.

    The body reads nothing but values from outside, memory that the launch does not write included, and writes
    every element of the buffer that is read. Up to `tiles` buffers and a table of their keys lie in the
    scratch space from `offset` on. `panel` is that of `buffer`. Programs that differ along none of the grid's
    `axes` are expected to have different keys.

    %t = memoise %row, tiles=64, axes=[1, 2] : buffer<64x32xf32> {
      (%b: buffer<64x32xf32>):
      yield
    }
    """

    keys = operand(ScalarOrPointer, variadic=True)
    tiles = attribute(int)
    axes = attribute(tuple)
    panel = attribute(int, default=0)
    offset = attribute(int, default=-1)
    output = result()
    body = region()
    levels = PLACED

    def verify_op(self) -> None:
        if not isinstance(self.output.type, BufferType) or [a.type for a in self.body.args] != [
            self.output.type
        ]:
            raise ValueError("the body takes the buffer")
        if self.tiles < 1:
            raise ValueError("there must be room for a buffer")


@operation("in_bounds")
class InBounds(TileOperation):
    """`low <= index < high`: a mask whose true lanes are a range, so that a loop can be split instead of
    masked.

    %m = in_bounds %i, %lo, %hi : i1
    """

    index = operand(Index)
    low = operand(Index)
    high = operand(Index)
    output = result(lambda op: I1)
    levels = PLACED


@operation("group")
class Group(TileOperation):
    """A parallel loop of step 1 over [low, high) around other placed operations.

    group %lo, %hi {
      (%i: i64):
      yield
    }
    """

    low = operand(Index)
    high = operand(Index)
    body = region()
    levels = PLACED

    def verify_op(self) -> None:
        if [a.type for a in self.body.args] != [I64]:
            raise ValueError("the body takes the index")


@operation("lanes")
class Lanes(TileOperation):
    """A loop over [low, high) along one axis, executed `width` lanes at a time; lanes are independent of
    each other but for what `combine` folds.

    With `combines`, one per result ("argmax" and "argmin" take two results: value and i32 index), what the
    body yields is folded in the published order, as if the lanes [high, extent) yielded the operands
    `pads`. Without pads, extent is `high`. A float sum needs low = 0 (partials go by index).

    `stream` says when stores go past the caches: if the grid's extents along `stream_axes` multiply to so
    many programs or more; 0 is never. `prefetch` is how many lanes ahead of its consecutive loads the loop
    asks for memory.

    `general` marks the version of a loop that hardly ever runs: where what a faster one takes for granted
    does not hold.

    %s = lanes %lo, %hi, width=32, combines=["sum"] : f32 {
      (%i: i64):
      %v = read %b, %i : f32
      yield %v
    }
    """

    low = operand(Index)
    high = operand(Index)
    pads = operand(Anything, variadic=True)
    width = attribute(int)
    combines = attribute(tuple, default=())
    extent = attribute(int, default=0)
    stream = attribute(int, default=0)
    stream_axes = attribute(tuple, default=())
    prefetch = attribute(int, default=0)
    general = attribute(bool, default=False)
    outputs = result(variadic=True)
    body = region()
    levels = PLACED

    def verify_op(self) -> None:
        if [a.type for a in self.body.args] != [I64]:
            raise ValueError("the body takes the index")
        if not isinstance(self.body.terminator, Yield):
            raise ValueError("the body must end in a yield")
        if self.stream < 0 or not set(self.stream_axes) <= {0, 1, 2}:
            raise ValueError("stream counts programs along axes of the grid")
        yielded = [v.type for v in self.body.terminator.operands]
        if [r.type for r in self.results] != yielded or (
            self.pads and [p.type for p in self.pads] != yielded
        ):
            raise ValueError("results, pads and yielded values must have the same types")
        if sum(2 if c in ARG_COMBINES else 1 for c in self.combines) != len(yielded):
            raise ValueError("every result needs a combine")
        if not set(self.combines) <= {*COMBINES, *ARG_COMBINES}:
            raise ValueError(f"unknown combine in {self.combines}")


@operation("tree_reduce")
class TreeReduce(TileOperation):
    """Fold the first `extent` elements of one-dimensional buffers with the region, as a tree over
    neighbours. The buffers' contents are lost.

    %r = tree_reduce %buf, extent=1000 : f32 {
      (%a: f32, %b: f32):
      %c = mul %a, %b : f32
      yield %c
    }
    """

    buffers = operand(Buffer, variadic=True)
    extent = attribute(int)
    outputs = result(variadic=True)
    combiner = region()
    effects = frozenset({Effect.READ_BUFFER, Effect.WRITE_BUFFER})
    levels = PLACED


FORMS = {"fma": 1, "pairs": 2, "bytes": 4, "tiles": 4}


@operation("contract_buffers")
class ContractBuffers(TileOperation):
    """`acc += a @ b` on buffers, in register tiles of `rows` by `columns`; per element a chain of fused
    multiply-adds, k ascending.

    The chain starts from the accumulator (start="acc"), from 0 with the accumulator added at its end
    (start="add"), or from 0 whatever the accumulator holds (start="zero").

    Bytes are multiplied into i32 in other forms too, in which an i32 of `b` holds 2 or 4 numbers of a column,
    the first in its low bits: "pairs" (a is i16), "bytes" (a is i8, with the top bit of each number flipped)
    and "tiles" (a is i8). The sums are modulo 2**32, so their order is of no account.

    contract_buffers %a, %b, %acc, rows=6, columns=16
    """

    a = operand(Buffer)
    b = operand(Buffer)
    acc = operand(Buffer)
    rows = attribute(int)
    columns = attribute(int)
    start = attribute(str, default="acc", choices=("acc", "add", "zero"))
    form = attribute(str, default="fma", choices=tuple(FORMS))
    effects = frozenset({Effect.READ_BUFFER, Effect.WRITE_BUFFER})
    levels = PLACED

    def verify_op(self) -> None:
        (rows, depth), (packed, columns) = self.a.type.shape, self.b.type.shape
        if self.acc.type.shape != (rows, columns) or depth != packed * FORMS[self.form]:
            raise ValueError("the shapes of a product must fit")


def buffer_of(block: BlockType) -> BufferType:
    """The buffer type that can hold a block."""
    return BufferType(block.element, block.shape)
