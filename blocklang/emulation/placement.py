"""What a device's memory on the chip holds: every block of a kernel, with space, offset and lifetime.

A block lies in partitions with its rows on them, rows being all axes but the last; more rows than partitions
go round, and a block of one axis is spread. It takes the same of every partition:

    ceil(rows / partitions) * bytes of a row

What a product adds to is in the accumulator space, in whole banks; all else is in the scratch space. On a GPU
only what products read is in a space, shared memory; the rest is in registers (`gpu` says how many). Views,
numbers, and blocks that are one number take nothing, and what a loop carries stays in one place. A block
lives from the operation that makes it to the last that reads it, through every loop begun in between.

Blocks get several places, as long as there is room (`versions`): a transfer for the next round need not wait
for the computation of this one. Those of the innermost loops come first, and of them those that are loaded.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from blocklang.abi import SpaceUsage
from blocklang.diagnostics import CompilationError, Location
from blocklang.emulation.planning import Facts, is_block
from blocklang.ir.core import Kernel, Operation, Region, Value
from blocklang.ir.types import element_type, shape_of
from blocklang.ops import elementwise as e
from blocklang.ops.control import For, If, While
from blocklang.ops.creation import Constant, Splat
from blocklang.ops.memory import Load
from blocklang.ops.reduction import Dot
from blocklang.ops.shape import ShapeOperation
from blocklang.target import Device, MemorySpace, format_size

MOST_VERSIONS = 16


@dataclass(frozen=True)
class Block:
    """A block in a space.

    Attributes:
        name: what the user calls it, or what makes it.
        type: its type, as printed.
        space: where it is.
        offset: of its first version, in bytes of a partition (of the space, if it is one piece).
        size: bytes of one version there.
        versions: how many places it has.
        first, last: the positions in the program between which it lives.
        location: the line that makes it.
        lines: the first and the last line that need it.
        depth: how many loops it is made in.
        is_loaded: True if it comes from global memory.
    """

    name: str
    type: str
    space: str
    offset: int
    size: int
    versions: int
    first: int
    last: int
    location: Location
    lines: tuple[int, int]
    depth: int
    is_loaded: bool

    @property
    def bytes(self) -> int:
        return self.size * self.versions


@dataclass(frozen=True)
class Placement:
    """Where the blocks of a kernel are.

    Attributes:
        blocks: in the order of the program.
        usage: how full each space gets, all partitions together.
        versions: per value, how many places it has.
    """

    blocks: tuple[Block, ...]
    usage: tuple[SpaceUsage, ...]
    versions: dict[Value, int]


def place_blocks(kernel: Kernel, device: Device) -> Placement:
    """Give every block of a kernel a place on a device.

    Args:
        kernel: of level block, after the passes for whole blocks.

    Raises:
        CompilationError: a space overflows; the help lists what fills it.
    """
    if device.kind == "cpu":  # caches and registers are nobody's to place blocks in
        return Placement((), (), {})
    lives = _Lives(kernel, device)
    blocks = lives.blocks()
    placed: dict[Value, Block] = {}
    usage: list[SpaceUsage] = []
    for name in device.on_chip:
        space = device.memory[name]
        limit = _limit(space)
        own = {value: block for value, block in blocks.items() if block.space == name}
        peak, live = _peak(list(own.values()))
        if peak > limit:
            raise _overflow(kernel, device, space, peak, live)
        own = _with_offsets(_with_versions(own, limit))
        placed |= own
        parts = 1 if space.partitions is None else space.partitions.value
        usage.append(SpaceUsage(name, _peak(list(own.values()))[0] * parts, space.capacity_bytes))
    values = [v for op in kernel.walk() for v in op.results if lives.home(v) in placed]
    versions = {value: placed[lives.home(value)].versions for value in values}
    return Placement(tuple(sorted(placed.values(), key=lambda b: b.first)), tuple(usage), versions)


def _limit(space: MemorySpace) -> int:
    return space.capacity_bytes if space.partition_bytes is None else space.partition_bytes.value


# ---- lifetimes ----


class _Lives:
    """Which values share a place, and from where to where they live."""

    def __init__(self, kernel: Kernel, device: Device) -> None:
        self.kernel = kernel
        self.device = device
        facts = Facts(kernel)
        self.data, self.shared = facts.data, facts.shared
        self.homes: dict[Value, Value] = {}
        self.positions: dict[Operation, int] = {}
        self.ends: dict[Operation, int] = {}
        self.spans: dict[Value, list[int]] = {}
        self.lines: dict[Value, list[int]] = {}
        self._number(kernel.body)
        self._join(kernel.body)
        self._live(kernel.body)

    def home(self, value: Value) -> Value:
        """The value whose place a value has."""
        while (parent := self.homes.get(value, value)) is not value:
            value = parent
        return value

    def _number(self, region: Region) -> None:
        for op in region.ops:
            self.positions[op] = len(self.positions)
            for inner in op.regions:
                self._number(inner)
            self.ends[op] = len(self.positions) - 1

    def _join(self, region: Region) -> None:
        """Views have the place of what they show, carried values one of their own."""
        for op in region.ops:
            for inner in op.regions:
                self._join(inner)
            if isinstance(op, (For, While)):
                end = op.regions[-1].terminator
                arguments = op.body.args[1:] if isinstance(op, For) else op.before.args
                assert end is not None
                for group in zip(arguments, op.inits, end.operands, strict=True):
                    self._unite([v for v in group if is_block(v)])
                results = zip(op.results, end.operands, strict=False)
                for pair in results:
                    self._unite([v for v in pair if is_block(v)])
            elif isinstance(op, If):
                for inner in op.regions:
                    values = inner.terminator.operands if inner.terminator is not None else ()
                    for pair in zip(op.results, values, strict=False):
                        self._unite([v for v in pair if is_block(v)])
            elif isinstance(op, ShapeOperation):
                self._unite([op.operands[0], op.results[0]])

    def _unite(self, values: Sequence[Value]) -> None:
        homes = [self.home(v) for v in values]
        for value in (*values, *homes):
            self.homes.setdefault(value, value)
        for other in homes[1:]:
            self.homes[self.home(other)] = self.home(homes[0])

    def _live(self, region: Region) -> None:
        for op in region.ops:
            for value in (*op.operands, *op.results):
                if value in self.data and is_block(value):
                    self._touch(value, op)
            for inner in op.regions:
                self._live(inner)

    def _touch(self, value: Value, op: Operation) -> None:
        home, position = self.home(value), self.positions[op]
        span = self.spans.setdefault(home, [position, position])
        span[0], span[1] = min(span[0], position), max(span[1], position)
        if op.location.line:
            self.lines.setdefault(home, []).append(op.location.line)
        loop = op.parent_op
        while loop is not None:  # what was made before a loop lives until the loop's end
            if isinstance(loop, (For, While)) and span[0] < self.positions[loop]:
                span[1] = max(span[1], self.ends[loop])
            loop = loop.parent_op

    # ---- blocks ----

    def blocks(self) -> dict[Value, Block]:
        """A block for every place, by the value that it is of."""
        products = {self.home(op.results[0]) for op in self.kernel.walk() if isinstance(op, Dot)}
        found: dict[Value, Block] = {}
        members: dict[Value, list[Value]] = {}
        for value in {
            v: None for op in self.kernel.walk() for v in op.results if v in self.data and is_block(v)
        }:
            members.setdefault(self.home(value), []).append(value)
        for home, values in members.items():
            makers = [v.defining_op for v in values]
            if home not in self.spans or all(_is_one_number(op) for op in makers):
                continue
            if self.device.kind == "gpu" and not any(op in self.shared for op in makers):
                continue  # in registers
            space = self._space(home in products)
            name = next((v.name for v in values if v.name), makers[0].name if makers[0] else "")
            first, last = self.spans[home]
            lines = self.lines.get(home, [0])
            maker = next((op for op in makers if op is not None and not _is_one_number(op)), makers[0])
            assert maker is not None
            found[home] = Block(
                name.rstrip("0123456789").rstrip("_") or name,
                str(home.type).removeprefix("block"),
                space.name,
                0,
                max(_bytes_in(v, space, home in products) for v in values),
                1,
                first,
                last,
                maker.location,
                (min(lines), max(lines)),
                _depth(maker),
                isinstance(maker, Load),
            )
        return found

    def _space(self, is_product: bool) -> MemorySpace:
        has_two = "accumulator" in self.device.memory and self.device.kind != "gpu"
        return self.device.memory["accumulator" if is_product and has_two else "scratch"]


def _is_one_number(op: Operation | None) -> bool:
    """True for a block whose lanes are one number, which instructions take as it is."""
    if isinstance(op, e.Cast):
        return _is_one_number(op.source.defining_op)
    if isinstance(op, ShapeOperation):
        return _is_one_number(op.operands[0].defining_op)
    return isinstance(op, (Constant, Splat))


def _bytes_in(value: Value, space: MemorySpace, is_product: bool) -> int:
    """Bytes that a block takes of each partition of a space, or of the space if it is one piece."""
    shape, size = shape_of(value.type), int(getattr(element_type(value.type), "bytes", 8))
    if space.partitions is None:
        return math.prod(shape) * size
    if len(shape) == 1:
        return math.ceil(shape[0] / space.partitions.value) * size
    row = shape[-1] * size
    if is_product and space.banks is not None:
        bank = _limit(space) // space.banks.value
        row = math.ceil(row / bank) * bank
    return math.ceil(math.prod(shape[:-1]) / space.partitions.value) * row


def _depth(op: Operation) -> int:
    depth, parent = 0, op.parent_op
    while parent is not None:
        depth += isinstance(parent, (For, While))
        parent = parent.parent_op
    return depth


# ---- places ----


def _peak(blocks: Sequence[Block]) -> tuple[int, list[Block]]:
    """The most bytes in use at once, and by what."""
    fullest: tuple[int, list[Block]] = (0, [])
    for moment in sorted({block.first for block in blocks}):
        live = [b for b in blocks if b.first <= moment <= b.last]
        size = sum(b.bytes for b in live)
        if size > fullest[0]:
            fullest = (size, live)
    return fullest


def _with_versions(blocks: dict[Value, Block], limit: int) -> dict[Value, Block]:
    """Double the places of blocks as long as there is room, from the innermost loops outwards, those first
    that are loaded."""
    found = dict(blocks)
    for depth in sorted({b.depth for b in blocks.values()}, reverse=True):
        for is_loaded in (True, False):
            inner = [v for v, b in found.items() if (b.depth, b.is_loaded) == (depth, is_loaded)]
            for versions in (2, 4, 8, MOST_VERSIONS):
                wider = {v: replace(found[v], versions=versions) for v in inner}
                if _peak(list((found | wider).values()))[0] > limit:
                    break
                found |= wider
    return found


def _with_offsets(blocks: dict[Value, Block]) -> dict[Value, Block]:
    """The lowest offset at which nothing that lives at the same time is."""
    found: dict[Value, Block] = {}
    for value, block in sorted(blocks.items(), key=lambda item: (-item[1].bytes, item[1].first)):
        others = sorted(
            (b for b in found.values() if b.first <= block.last and block.first <= b.last),
            key=lambda b: b.offset,
        )
        offset = 0
        for other in others:
            if other.offset - offset >= block.bytes:
                break
            offset = max(offset, other.offset + other.bytes)
        found[value] = replace(block, offset=offset)
    return found


def _overflow(
    kernel: Kernel, device: Device, space: MemorySpace, peak: int, live: Sequence[Block]
) -> CompilationError:
    largest = sorted(live, key=lambda block: -block.size)
    where = "" if space.partitions is None else f" in each of {space.partitions.value} partitions"
    rows = [" | ".join(row) for row in _table(largest)]
    return CompilationError(
        f"{kernel.name} does not fit {device.name}: {space.name} ({space.hardware}) holds "
        f"{format_size(_limit(space))}{where}, and {format_size(peak)} are in use at once, "
        f"{format_size(peak - _limit(space))} too many",
        location=largest[0].location,
        help="make the blocks smaller; this is what fills it:\n" + "\n".join(f"    {row}" for row in rows),
    )


def _table(blocks: Sequence[Block]) -> Iterator[tuple[str, ...]]:
    """A row per block, padded to columns: value, type, bytes, line, lifetime."""
    rows = [
        (
            block.name,
            block.type,
            format_size(block.size),
            f"line {block.location.line}",
            f"lives in lines {block.lines[0]} to {block.lines[1]}",
        )
        for block in blocks
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield tuple(f"{text:<{width}}" for text, width in zip(row, widths, strict=True))


def format_placement(placement: Placement) -> str:
    """The plan as text, a line for each block, in the order of the program."""
    rows = [
        (
            block.space,
            f"{block.offset}",
            f"{block.size} x {block.versions}",
            f"{block.name} {block.type}",
            f"lines {block.lines[0]} to {block.lines[1]}",
        )
        for block in placement.blocks
    ]
    rows.insert(0, ("space", "offset", "bytes x versions", "block", "lives"))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(f"{text:<{width}}" for text, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
