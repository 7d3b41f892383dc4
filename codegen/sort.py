"""Sorting rows: a bitonic network on vectors of integer keys, `sort_buffer`.

A row becomes keys first: integers of its elements' width whose signed order is the wanted one. They lie in
scratch as a matrix of W columns, one for each lane of a vector, whose column c holds the elements c * height
to c * height + height - 1 of the network. So elements that are less than a column apart are compared by
minimum and maximum of whole vectors, which is nearly all of the work; only the merges of columns with columns
move lanes. The matrix is transposed on the way out, when keys become elements again.

A merge of two sorted runs compares each element with its mirror image (`_Sorter.merge`), then those at half
the distance, and so on. Three such steps are done at a time, on eight vectors in registers, and steps that
stay inside `BLOCK_BYTES` are done for one block after the other. All of it is loops: the code does not grow
with the row.

If few elements are asked for, runs do not grow beyond that: of two runs only the smaller elements are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from blocklang.codegen.emitter import splat_constant, vector_of
from blocklang.codegen.loops import RegionEmitter
from blocklang.codegen.squares import transposed
from blocklang.ir.core import Operation
from blocklang.ir.types import ScalarType
from blocklang.ops.order import SortBuffer, has_negative_zero, key_type, nan_bits, padded_row, top_bits

GROUP = 8  # vectors that are held in registers
TILE = 16  # rows and columns that are transposed at a time
BLOCK_BYTES = 16384  # half of a first cache

# Batcher's networks by odd-even merging.
_PAIR = ((0, 1),)
_QUAD = ((0, 1), (2, 3), (0, 2), (1, 3), (1, 2))
_EIGHT = (
    *_QUAD,
    *((a + 4, b + 4) for a, b in _QUAD),
    *((0, 4), (1, 5), (2, 6), (3, 7), (2, 4), (3, 5), (1, 2), (3, 4), (5, 6)),
)
_SORTS: dict[int, Sequence[tuple[int, int]]] = {1: (), 2: _PAIR, 4: _QUAD, 8: _EIGHT}


def _halvings(count: int) -> list[tuple[int, int]]:
    """Comparisons that sort a bitonic sequence of `count` elements."""
    pairs: list[tuple[int, int]] = []
    distance = count // 2
    while distance:
        pairs += [(i, i + distance) for i in range(count) if not i & distance]
        distance //= 2
    return pairs


class _Keys:
    """Elements of a row as integers whose signed order is the wanted one, and back."""

    def __init__(self, emitter: RegionEmitter, element: ScalarType, descending: bool) -> None:
        self.emit = emitter.emit
        self.element = element
        self.descending = descending
        self.type = key_type(element)
        self.scalar = f"i{self.type.bits}"
        self.largest = self.type.maximum

    def kind(self, width: int) -> str:
        return vector_of(self.scalar, width)

    def number(self, value: int, width: int) -> str:
        return splat_constant(self.scalar, str(value), width)

    def from_element(self, bits: str, width: int) -> str:
        """The keys of elements that were loaded as integers."""
        key = self._reordered(bits, width)
        kind, mask = self.kind(width), vector_of("i1", width)
        if self.element.is_float and not has_negative_zero(self.element):
            # 0x80 is NaN: up to there one less, and NaN wraps to the largest.
            steps = self.emit.op(f"icmp ule {kind} {bits}, {self.number(-128, width)}")
            less = self.emit.op(f"sub {kind} {bits}, {self.number(1, width)}")
            key = self.emit.op(f"select {mask} {steps}, {kind} {less}, {kind} {key}")
        elif self.element.is_float:
            magnitude = self.emit.op(f"and {kind} {bits}, {self.number(self.largest, width)}")
            top = self.number(top_bits(self.element), width)
            is_nan = self.emit.op(f"icmp ugt {kind} {magnitude}, {top}")
            nan = self.number(nan_bits(self.element), width)
            key = self.emit.op(f"select {mask} {is_nan}, {kind} {nan}, {kind} {key}")
        return self._inverted(key, width)

    def to_element(self, key: str, width: int) -> str:
        """The elements of keys, as integers."""
        key = self._inverted(key, width)
        bits = self._reordered(key, width)
        if self.element.is_float and not has_negative_zero(self.element):
            kind, mask = self.kind(width), vector_of("i1", width)
            steps = self.emit.op(f"icmp sgt {kind} {key}, {self.number(-2, width)}")
            more = self.emit.op(f"add {kind} {key}, {self.number(1, width)}")
            return self.emit.op(f"select {mask} {steps}, {kind} {more}, {kind} {bits}")
        return bits

    def _inverted(self, key: str, width: int) -> str:
        if not self.descending:
            return key
        return self.emit.op(f"xor {self.kind(width)} {key}, {self.number(-1, width)}")

    def _reordered(self, bits: str, width: int) -> str:
        """Negative floats with all bits but the sign flipped, unsigned integers with their first bit: the
        signed order of the result is theirs. Done twice it changes nothing.
        """
        kind = self.kind(width)
        if self.element.is_float:
            sign = self.emit.op(f"ashr {kind} {bits}, {self.number(self.type.bits - 1, width)}")
            flips = self.emit.op(f"lshr {kind} {sign}, {self.number(1, width)}")
            return self.emit.op(f"xor {kind} {bits}, {flips}")
        if self.element.kind == "uint":
            return self.emit.op(f"xor {kind} {bits}, {self.number(self.type.minimum, width)}")
        return bits


class _Sorter:
    """Emits one `sort_buffer`.

    Attributes:
        extent, wanted: elements of a row, and how many of them are written.
        width: lanes of a vector, columns of the matrix of keys.
        height: its rows.
        run: elements of a column that are sorted before columns are merged.
        block: vectors that stay in the first cache.
    """

    def __init__(self, emitter: RegionEmitter, op: SortBuffer) -> None:
        self.emitter = emitter
        self.emit = emitter.emit
        element = op.source.type.element
        assert isinstance(element, ScalarType)
        self.keys = _Keys(emitter, element, op.descending)
        self.size = element.bytes
        *outer, self.extent = op.source.type.shape
        self.wanted = op.output.type.shape[-1]
        self.rows = 1
        for n in outer:
            self.rows *= n
        self.source, self.place, self.output = (emitter.text(v) for v in (op.source, op.keys, op.output))
        padded = padded_row(self.extent)
        lanes = emitter.lanes.target.vector_bytes // self.size
        self.width = min(lanes, 1 << (padded.bit_length() - 1) // 2)
        self.height = padded // self.width
        self.group = min(GROUP, self.height)
        self.step = self.width * self.size
        self.block = max(BLOCK_BYTES // self.step, GROUP)
        run = max(padded_row(self.wanted), self.group)
        self.is_partial = run <= self.height and run < padded
        self.run = run if self.is_partial else self.height

    def all_rows(self) -> None:
        if self.rows == 1:
            self.row("0")
        else:
            self.emitter.counted("0", str(self.rows), 1, self.row)

    def row(self, row: str) -> None:
        source = self.emit.offset(self.source, self.emit.mul(row, self.extent * self.size))
        output = self.emit.offset(self.output, self.emit.mul(row, self.wanted * self.size))
        self.load_groups(source)
        self.sort_columns()
        if self.is_partial:
            self.keep_smaller_runs()
            self.keep_smaller_lanes()
            self.store_first_column(output)
        else:
            self.merge_columns()
            self.store_transposed(output)

    # ---- vectors of keys ----

    def address(self, index: str) -> str:
        """Where a vector lies."""
        return self.emit.offset(self.place, self.emit.mul(index, self.step))

    def load(self, place: str) -> str:
        return self.emit.op(f"load {self.keys.kind(self.width)}, ptr {place}, align {self.size}")

    def store(self, place: str, key: str) -> None:
        self.emit.do(f"store {self.keys.kind(self.width)} {key}, ptr {place}, align {self.size}")

    def extreme(self, which: str, a: str, b: str) -> str:
        kind = self.keys.kind(self.width)
        name = f"llvm.s{which}.v{self.width}{self.keys.scalar}"
        return self.emit.call(kind, name, [(kind, a), (kind, b)])

    def compare(self, a: str, b: str) -> tuple[str, str]:
        """The smaller and the larger keys, lane by lane."""
        if self.size == 8 and self.emitter.lanes.target.vector_bytes < 64:  # no instruction for the extremes
            kind, mask = self.keys.kind(self.width), vector_of("i1", self.width)
            swaps = self.emit.op(f"icmp sgt {kind} {a}, {b}")
            low = self.emit.op(f"select {mask} {swaps}, {kind} {b}, {kind} {a}")
            return low, self.emit.op(f"select {mask} {swaps}, {kind} {a}, {kind} {b}")
        return self.extreme("min", a, b), self.extreme("max", a, b)

    def network(self, keys: list[str], pairs: Sequence[tuple[int, int]]) -> None:
        """Put the smaller of each pair first, in place."""
        for low, high in pairs:
            keys[low], keys[high] = self.compare(keys[low], keys[high])

    def on_vectors(self, places: Sequence[str], pairs: Sequence[tuple[int, int]]) -> None:
        keys = [self.load(place) for place in places]
        self.network(keys, pairs)
        for place, key in zip(places, keys, strict=True):
            self.store(place, key)

    def shuffled(self, a: str, b: str, picks: Sequence[int]) -> str:
        """Lanes of two vectors of one width: lane i of a is i, lane i of b is len(picks) + i."""
        kind, count = self.keys.kind(len(picks)), len(picks)
        lanes = ", ".join(f"i32 {pick}" for pick in picks)
        return self.emit.op(f"shufflevector {kind} {a}, {kind} {b}, <{count} x i32> <{lanes}>")

    def crossed(self, key: str, bits: int) -> str:
        """Lane i of the result is lane i xor `bits`."""
        return self.shuffled(key, key, [lane ^ bits for lane in range(self.width)])

    def joined(self, low: str, high: str, bit: int) -> str:
        """The lanes of `low` whose number has not this bit, those of `high` that have."""
        return self.shuffled(
            low, high, [self.width + lane if lane & bit else lane for lane in range(self.width)]
        )

    # ---- loops ----

    def repeat(
        self, start: str, condition: Callable[[str], str], body: Callable[[str], None], advance: str
    ) -> None:
        """A loop over an i64 that `advance` ("add i64 {}, 8") takes on, while a condition holds."""
        emit = self.emit
        header, inside, done = emit.new_block("while"), emit.new_block("body"), emit.new_block("done")
        before = emit.block
        emit.branch(header)
        emit.start(header)
        value = emit.phi("i64", [(start, before)])
        emit.branch_if(condition(value.name), inside, done)
        emit.start(inside)
        body(value.name)
        value.add(emit.op(advance.format(value.name)), emit.block)
        emit.branch(header)
        emit.start(done)

    def over(self, low: str, high: str, step: str, body: Callable[[str], None]) -> None:
        self.repeat(low, lambda i: self.emit.op(f"icmp slt i64 {i}, {high}"), body, f"add i64 {{}}, {step}")

    def phases(self, count: int, first: Callable[[int], None], then: Callable[[], None]) -> None:
        """`first(i)`, whose code differs, and `then()`, whose code does not, for i = 0, 1, ..."""

        def body(phase: str) -> None:
            for i in range(count):
                is_now = self.emit.op(f"icmp eq i64 {phase}, {i}")
                self.emitter.lanes.when(is_now, lambda i=i: first(i))  # type: ignore[misc]
            then()

        self.emitter.counted("0", str(count), 1, body)

    # ---- in and out ----

    def load_groups(self, source: str) -> None:
        """Elements become keys, and each column's groups of `group` keys are sorted."""
        lanes = self.group * self.width
        full = self.extent // lanes
        if full:
            self.emitter.counted("0", str(full), 1, lambda g: self.load_group(source, g, padded=False))
        if full < self.height // self.group:
            last = str(self.height // self.group)
            self.emitter.counted(str(full), last, 1, lambda g: self.load_group(source, g, padded=True))

    def load_group(self, source: str, group: str, *, padded: bool) -> None:
        emit, first = self.emit, self.emit.mul(group, self.group * self.width)
        start = emit.offset(source, emit.mul(first, self.size))
        keys = []
        for i in range(self.group):
            if padded:
                keys.append(self.load_padded(source, emit.add(first, i * self.width)))
            else:
                keys.append(self.load_elements(emit.offset(start, i * self.step)))
        self.network(keys, _SORTS[self.group])
        target = self.address(emit.mul(group, self.group))
        for i, key in enumerate(keys):
            self.store(emit.offset(target, i * self.step), key)

    def load_elements(self, place: str) -> str:
        """Keys of consecutive elements."""
        bits = self.emit.op(f"load {self.keys.kind(self.width)}, ptr {place}, align {self.size}")
        return self.keys.from_element(bits, self.width)

    def load_padded(self, source: str, first: str) -> str:
        """Keys of consecutive elements; those past the end of the row are the largest."""
        emit, kind = self.emit, self.keys.kind(self.width)
        # Behind every buffer there is room to read one vector.
        inside = emit.call("i64", "llvm.smin.i64", [("i64", first), ("i64", str(self.extent))])
        key = self.load_elements(emit.offset(source, emit.mul(inside, self.size)))
        exists = self.emitter.nested(width=self.width).lanes.range_mask(first, "0", str(self.extent))
        mask, largest = vector_of("i1", self.width), self.keys.number(self.keys.largest, self.width)
        return emit.op(f"select {mask} {exists.text}, {kind} {key}, {kind} {largest}")

    def store_first_column(self, output: str) -> None:
        """The kept run of lane 0, element by element."""

        def body(i: str) -> None:
            key = self.emit.op(f"load {self.keys.scalar}, ptr {self.address(i)}, align {self.size}")
            target = self.emit.offset(output, self.emit.mul(i, self.size))
            bits = self.keys.to_element(key, 0)
            self.emit.do(f"store {self.keys.scalar} {bits}, ptr {target}, align {self.size}")

        self.emitter.counted("0", str(self.wanted), 1, body)

    def store_transposed(self, output: str) -> None:
        """Columns become consecutive elements, a square tile at a time."""
        tile = min(self.width, TILE)

        def columns(column: str) -> None:
            self.emitter.counted(
                "0", str(self.height), tile, lambda row: self.store_tile(output, row, column, tile)
            )

        self.emitter.counted("0", str(self.width), tile, columns)

    def store_tile(self, output: str, row: str, column: str, tile: int) -> None:
        emit, kind = self.emit, self.keys.kind(tile)
        corner = emit.offset(self.address(row), emit.mul(column, self.size))
        vectors = []
        for i in range(tile):
            place = emit.offset(corner, i * self.step)
            vectors.append(emit.op(f"load {kind}, ptr {place}, align {self.size}"))
        position = emit.add(emit.mul(column, self.height), row)
        first = emit.offset(output, emit.mul(position, self.size))
        for i, key in enumerate(transposed(emit, kind, vectors)):
            bits = self.keys.to_element(key, tile)
            target = emit.offset(first, i * self.height * self.size)
            store = f"store {kind} {bits}, ptr {target}, align {self.size}"
            if self.wanted == self.width * self.height:
                emit.do(store)
                continue
            # What the last vector writes past the row's end is a later row's to write, or lies in the room
            # behind the buffer.
            exists = emit.op(f"icmp slt i64 {emit.add(position, i * self.height)}, {self.wanted}")
            self.emitter.lanes.when(exists, lambda text=store: emit.do(text))  # type: ignore[misc]

    # ---- inside columns ----

    def sort_columns(self) -> None:
        """Merge the runs of every column until they have `run` elements."""
        inner, outer = min(self.block, self.height), min(self.block, self.run)
        if self.group < outer:
            self.over("0", str(self.height), str(inner), lambda low: self.grow(low, inner, self.group, outer))
        if outer < self.run:
            self.grow("0", self.height, outer, self.run)

    def grow(self, low: str, count: int, start: int, run: int) -> None:
        """Merge runs of `start` elements until they have `run`, in `count` vectors from `low` on."""

        def body(half: str) -> None:
            self.merge(low, count, half)
            self.halve(low, str(count), self.emit.op(f"lshr i64 {half}, 3"), run // 16)

        self.repeat(str(start), lambda s: self.emit.op(f"icmp slt i64 {s}, {run}"), body, "shl i64 {}, 1")

    def merge(self, low: str, count: int, half: str) -> None:
        """Neighbouring runs of `half` vectors: compare each with its mirror image in the other run, which
        leaves the smaller ones in the lower run, and take two steps more in each.
        """
        emit = self.emit
        quarter = emit.op(f"lshr i64 {half}, 2")
        mask = emit.op(f"sub i64 {quarter}, 1")
        middle, offsets = emit.op(f"shl i64 {quarter}, 2"), self.offsets(quarter, 4)
        pairs = [(i, 7 - i) for i in range(4)]
        pairs += [(a + base, b + base) for base in (0, 4) for a, b in _halvings(4)]

        def body(i: str) -> None:
            start, within = self.split(low, i, mask, 8)
            first = self.address(emit.op(f"add i64 {start}, {within}"))
            mirrored = emit.op(f"add i64 {start}, {emit.op(f'sub i64 {mask}, {within}')}")
            upper = self.address(emit.op(f"add i64 {mirrored}, {middle}"))
            self.on_vectors([emit.offset(p, o) for p in (first, upper) for o in offsets], pairs)

        self.emitter.counted("0", str(count // 8), 1, body)

    def split(self, low: str, i: str, mask: str, radix: int) -> tuple[str, str]:
        """Where the i-th comparison of `radix` vectors starts: the run of vectors in which, and the first of
        its vectors in there.
        """
        emit = self.emit
        within = emit.op(f"and i64 {i}, {mask}")
        start = emit.op(f"mul i64 {emit.op(f'sub i64 {i}, {within}')}, {radix}")
        return emit.add(low, start), within

    def offsets(self, distance: str, count: int) -> list[str]:
        """Bytes from a vector to those that follow it, each `distance` vectors on."""
        return [self.emit.mul(distance, i * self.step) for i in range(count)]

    def halve(self, low: str, count: str, distance: str, most: int) -> None:
        """Compare vectors `distance` apart, then at half the distance and so on, in `count` vectors from
        `low` on. `most` is the largest distance that may come.
        """
        if most < self.block:
            self.halve_down_to(low, count, distance, "1")
            return
        emit, block = self.emit, str(self.block)
        self.halve_down_to(low, count, distance, block)
        inside = emit.call("i64", "llvm.umin.i64", [("i64", distance), ("i64", str(self.block // 2))])
        high = emit.add(low, count)
        # Runs shorter than a block are in one that is whole: there are never fewer vectors than in a block.
        self.over(low, high, block, lambda start: self.halve_down_to(start, block, inside, "1"))

    def halve_down_to(self, low: str, count: str, distance: str, stop: str) -> None:
        emit = self.emit
        three, two = (emit.mul(stop, n) for n in (4, 2))
        header, inside, done = emit.new_block("halve"), emit.new_block("body"), emit.new_block("done")
        before = emit.block
        emit.branch(header)
        emit.start(header)
        current = emit.phi("i64", [(distance, before)])
        emit.branch_if(emit.op(f"icmp sge i64 {current.name}, {three}"), inside, done)
        emit.start(inside)
        self.compare_at(low, count, current.name, 8)
        current.add(emit.op(f"lshr i64 {current.name}, 3"), emit.block)
        emit.branch(header)
        emit.start(done)
        for bound, radix in ((two, 4), (stop, 2)):
            is_left = emit.op(f"icmp eq i64 {current.name}, {bound}")
            self.emitter.lanes.when(
                is_left,
                lambda radix=radix: self.compare_at(low, count, current.name, radix),  # type: ignore[misc]
            )

    def compare_at(self, low: str, count: str, distance: str, radix: int) -> None:
        """The steps at a distance, half of it and so on, for which `radix` vectors are needed at a time."""
        emit, shift = self.emit, radix.bit_length() - 1
        apart = emit.op(f"lshr i64 {distance}, {shift - 1}")
        mask, offsets = emit.op(f"sub i64 {apart}, 1"), self.offsets(apart, radix)

        def body(i: str) -> None:
            start, within = self.split(low, i, mask, radix)
            first = self.address(emit.op(f"add i64 {start}, {within}"))
            self.on_vectors([emit.offset(first, o) for o in offsets], _halvings(radix))

        self.emitter.counted("0", emit.op(f"lshr i64 {count}, {shift}"), 1, body)

    # ---- across columns ----

    def merge_columns(self) -> None:
        """Merge columns with columns until all are one run."""
        count = self.width.bit_length() - 1
        half = self.height // 2
        if count:
            self.phases(
                count,
                lambda phase: self.merge_lanes(2 << phase),
                lambda: self.halve("0", str(self.height), str(half), half),
            )

    def merge_lanes(self, columns: int) -> None:
        """The steps of a merge of `columns` columns in which lanes meet lanes."""
        emit, half = self.emit, columns // 2

        def body(i: str) -> None:
            i, j = self.address(i), self.address(emit.op(f"sub i64 {self.height - 1}, {i}"))
            low, high = self.compare(self.load(i), self.crossed(self.load(j), columns - 1))
            first = self.joined(low, high, half)
            second = self.crossed(self.joined(high, low, half), columns - 1)
            for place, key in ((i, first), (j, second)):
                bit = half // 2
                while bit:
                    key = self.joined(*self.compare(key, self.crossed(key, bit)), bit)
                    bit //= 2
                self.store(place, key)

        self.emitter.counted("0", str(self.height // 2), 1, body)

    # ---- few elements of many ----

    def keep_smaller_runs(self) -> None:
        """Of two runs in a column keep the smaller elements, until one is left."""
        emit, run = self.emit, self.run

        def body(runs: str) -> None:
            count = emit.op(f"mul i64 {runs}, {run // 2}")

            def keep(i: str) -> None:
                start, within = self.split("0", i, str(run - 1), 2)
                first = self.load(self.address(emit.op(f"add i64 {start}, {within}")))
                mirror = emit.op(f"sub i64 {emit.op(f'add i64 {start}, {2 * run - 1}')}, {within}")
                smaller = self.extreme("min", first, self.load(self.address(mirror)))
                self.store(self.address(i), smaller)

            self.emitter.counted("0", count, 1, keep)
            self.halve_run(count)

        self.repeat(
            str(self.height // run), lambda n: emit.op(f"icmp sgt i64 {n}, 1"), body, "lshr i64 {}, 1"
        )

    def halve_run(self, count: str) -> None:
        if self.run > 1:
            self.halve("0", count, str(self.run // 2), self.run // 2)

    def keep_smaller_lanes(self) -> None:
        """Of two columns keep the smaller elements, until all columns hold the same."""
        emit, run = self.emit, self.run

        def keep(bit: int) -> None:
            def body(i: str) -> None:
                i, j = self.address(i), self.address(emit.op(f"sub i64 {run - 1}, {i}"))
                a, b = self.load(i), self.load(j)
                self.store(i, self.extreme("min", a, self.crossed(b, bit)))
                self.store(j, self.extreme("min", b, self.crossed(a, bit)))

            self.emitter.counted("0", str(max(run // 2, 1)), 1, body)

        count = self.width.bit_length() - 1
        if count:
            self.phases(count, lambda phase: keep(1 << phase), lambda: self.halve_run(str(run)))


def sort_buffer(emitter: RegionEmitter, op: Operation) -> None:
    """Emit the sort of every row of a buffer."""
    assert isinstance(op, SortBuffer)
    _Sorter(emitter, op).all_rows()
