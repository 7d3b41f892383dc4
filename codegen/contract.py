"""Register-tiled matrix products: the micro-kernel of `contract_buffers`.

The accumulator is walked in tiles of `rows` x `columns` that stay in registers while k runs: per k one
vector load for each vector of columns of B's panel, and per row one broadcast of A and one fused
multiply-add for each vector. Edges run the same code with fewer rows, or with the last vectors of the
accumulator masked; B's panels have room for whole vectors.
"""

from __future__ import annotations

from collections.abc import Callable

from blocklang.codegen.context import Context
from blocklang.codegen.emitter import llvm_scalar, llvm_type
from blocklang.codegen.fused import fused_multiply_add
from blocklang.codegen.lanes import CACHE_LINE
from blocklang.codegen.loops import RegionEmitter
from blocklang.codegen.tile_product import tile_product
from blocklang.ir.core import Operation
from blocklang.ir.types import ScalarType
from blocklang.ops.tile import ContractBuffers

Cells = dict[tuple[int, int], str]  # the register of each row and vector of columns of a tile

UNROLL = 4  # steps of k per round: enough to hide the loop's own instructions


class _Product:
    def __init__(self, emitter: RegionEmitter, op: ContractBuffers) -> None:
        self.emitter = emitter
        self.emit = emitter.emit
        self.op = op
        element = op.acc.type.element
        assert isinstance(element, ScalarType)
        self.element = element
        self.size = element.bytes
        self.rows_total = op.a.type.shape[0]
        # Of bytes, what stands together in an element of B is one step of k.
        self.depth, self.columns_total = op.b.type.shape
        self.lanes = min(emitter.lanes.target.vector_bytes // self.size, op.columns)
        self.context = Context(self.emit, emitter.lanes.target, self.lanes)
        self.a, self.b, self.acc = (emitter.text(v) for v in (op.a, op.b, op.acc))
        self.panel = emitter.lanes.buffers[op.b].panel
        assert self.panel == op.columns, "B is packed for another register tile"

    def run(self) -> None:
        columns = self.op.columns
        full = self.columns_total // columns
        if full:
            self.emitter.counted("0", str(full), 1, lambda j: self.panel_of(j, columns))
        if rest := self.columns_total % columns:
            self.panel_of(str(full), rest)

    def panel_of(self, j: str, columns: int) -> None:
        rows = self.op.rows
        b = self.emit.offset(self.b, self.emit.mul(j, self.depth * self.panel * self.size))
        acc = self.emit.offset(self.acc, self.emit.mul(j, self.op.columns * self.size))
        full = self.rows_total // rows
        if full:
            self.emitter.counted("0", str(full), 1, lambda i: self.tile(i, rows, columns, b, acc))
        if rest := self.rows_total % rows:
            self.tile(str(full), rest, columns, b, acc)

    def tile(self, number: str, rows: int, columns: int, b: str, acc: str) -> None:
        """Register tile `number` of the panel: `rows` rows, `columns` columns."""
        row = self.emit.mul(number, self.op.rows)
        emit, type = self.emit, llvm_type(self.element, self.lanes)
        vectors = -(-columns // self.lanes)
        a = emit.offset(self.a, emit.mul(row, self.depth * self.size))
        out = emit.offset(acc, emit.mul(row, self.columns_total * self.size))
        cells = [(r, v) for r in range(rows) for v in range(vectors)]
        places = {
            (r, v): emit.offset(out, (r * self.columns_total + v * self.lanes) * self.size) for r, v in cells
        }
        masks = {v: self.edge_mask(columns - v * self.lanes) for v in range(vectors)}
        from_zero = self.op.start != "acc"
        zero = self.context.number(self.element, 0.0 if self.element.is_float else 0)
        starts = {c: zero if from_zero else self.load(places[c], masks[c[1]]) for c in cells}
        # Every register tile fetches a share of the next panel, one line a round.
        panel_bytes, share_bytes = self.depth * self.panel * self.size, self.depth // UNROLL * CACHE_LINE
        ahead = emit.offset(b, emit.add(emit.mul(number, share_bytes), panel_bytes))
        sums = self.sums(starts, rows, vectors, a, b, ahead)
        for cell, text in sums.items():
            if self.op.start == "add":
                opcode = "fadd" if self.element.is_float else "add"
                text = emit.op(f"{opcode} {type} {self.load(places[cell], masks[cell[1]])}, {text}")
            self.store(places[cell], text, masks[cell[1]])

    def sums(self, starts: Cells, rows: int, vectors: int, a: str, b: str, ahead: str) -> Cells:
        """The register tile after all of k, from `starts`."""
        if self.op.form != "bytes":
            return self.depth_loop(starts, rows, vectors, a, b, ahead)
        # A's numbers have 128 added, for the instruction takes them without sign. One row more multiplies B
        # by 128, and is subtracted from the others.
        type, zero = self.context.type(self.element), self.context.number(self.element, 0)
        added = {(rows, v): zero for v in range(vectors)}
        sums = self.depth_loop({**starts, **added}, rows, vectors, a, b, ahead)
        return {
            (r, v): self.emit.op(f"sub {type} {sums[r, v]}, {sums[rows, v]}")
            for r in range(rows)
            for v in range(vectors)
        }

    def edge_mask(self, columns: int) -> str:
        """The mask of a vector of which only some columns exist; '' if all do."""
        if columns >= self.lanes:
            return ""
        return f"<{', '.join(f'i1 {int(lane < columns)}' for lane in range(self.lanes))}>"

    def load(self, pointer: str, mask: str) -> str:
        type = llvm_type(self.element, self.lanes)
        if not mask:
            return self.emit.op(f"load {type}, ptr {pointer}, align {self.size}")
        name, kind = f"llvm.masked.load.{self._overload()}.p0", f"<{self.lanes} x i1>"
        self.emit.declarations[name] = f"declare {type} @{name}(ptr, <{self.lanes} x i1>, {type})"
        return self.emit.op(
            f"call {type} @{name}(ptr align {self.size} {pointer}, {kind} {mask}, {type} zeroinitializer)"
        )

    def store(self, pointer: str, text: str, mask: str) -> None:
        type = llvm_type(self.element, self.lanes)
        if not mask:
            self.emit.do(f"store {type} {text}, ptr {pointer}, align {self.size}")
            return
        name = f"llvm.masked.store.{self._overload()}.p0"
        self.emit.declarations[name] = f"declare void @{name}({type}, ptr, <{self.lanes} x i1>)"
        self.emit.do(
            f"call void @{name}({type} {text}, ptr align {self.size} {pointer}, <{self.lanes} x i1> {mask})"
        )

    def _overload(self) -> str:
        scalar = llvm_scalar(self.element)
        return f"v{self.lanes}{ {'float': 'f32', 'double': 'f64'}.get(scalar, scalar) }"

    def depth_loop(self, starts: Cells, rows: int, vectors: int, a: str, b: str, ahead: str) -> Cells:
        """Run k over the depth, `UNROLL` steps a round, the rest behind the loop."""
        emit, type = self.emit, llvm_type(self.element, self.lanes)
        rounds = self.depth // UNROLL
        current = starts
        if rounds:
            header, done = emit.new_block("k"), emit.new_block("kdone")
            before = emit.block
            emit.branch(header)
            emit.start(header)
            k = emit.phi("i64", [("0", before)])
            phis = {cell: emit.phi(type, [(text, before)]) for cell, text in starts.items()}
            current = {cell: phi.name for cell, phi in phis.items()}
            self.prefetch(k.name, rows, a, ahead)
            for step in range(UNROLL):
                current = self.rank_one(current, rows, vectors, a, b, self.at(k.name, step))
            following = emit.op(f"add i64 {k.name}, {UNROLL}")
            k.add(following, header)
            for cell, phi in phis.items():
                phi.add(current[cell], header)
            emit.branch_if(emit.op(f"icmp slt i64 {following}, {rounds * UNROLL}"), header, done)
            emit.start(done)
        for step in range(rounds * UNROLL, self.depth):
            current = self.rank_one(current, rows, vectors, a, b, self.at("0", step))
        return current

    def prefetch(self, k: str, rows: int, a: str, ahead: str) -> None:
        """Fetch what the next register tiles read: of the rows behind these as much as a round reads, and a
        line of the panel behind this. Behind the last ones stands what the next step is likely to multiply:
        shared tiles are filled in order. No address is wrong: a fetch never faults.
        """
        emit = self.emit
        emit.declarations["llvm.prefetch.p0"] = "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)"
        following = emit.offset(a, emit.add(emit.mul(k, rows * self.size), rows * self.depth * self.size))
        for start in range(0, rows * UNROLL * self.size, CACHE_LINE):
            emit.do(f"call void @llvm.prefetch.p0(ptr {emit.offset(following, start)}, i32 0, i32 3, i32 1)")
        piece = emit.offset(ahead, emit.mul(k, CACHE_LINE // UNROLL))
        emit.do(f"call void @llvm.prefetch.p0(ptr {piece}, i32 0, i32 2, i32 1)")

    def at(self, k: str, step: int) -> Callable[[str, int, int], str]:
        """Address computation for step `k + step`: pointer, bytes per k, constant bytes."""

        def address(pointer: str, stride: int, constant: int) -> str:
            moved = self.emit.offset(pointer, self.emit.mul(k, stride))
            return self.emit.offset(moved, step * stride + constant)

        return address

    def rank_one(
        self,
        current: Cells,
        rows: int,
        vectors: int,
        a: str,
        b: str,
        address: Callable[[str, int, int], str],
    ) -> Cells:
        """Add one column of A times one row of B."""
        emit, type, scalar = self.emit, llvm_type(self.element, self.lanes), llvm_scalar(self.element)
        places = [address(b, self.panel * self.size, v * self.lanes * self.size) for v in range(vectors)]
        right = [emit.op(f"load {type}, ptr {place}, align {self.size}") for place in places]
        result: Cells = {}
        for row in range(rows):
            place = address(a, self.size, row * self.depth * self.size)
            left = emit.splat(scalar, emit.op(f"load {scalar}, ptr {place}, align {self.size}"), self.lanes)
            for v in range(vectors):
                result[row, v] = self.multiply_add(left, right[v], current[row, v])
        if (rows, 0) in current:
            left = self.context.number(self.element, -0x7F7F7F80)  # four times 128
            for v in range(vectors):
                result[rows, v] = self.multiply_add(left, right[v], current[rows, v])
        return result

    def multiply_add(self, a: str, b: str, addend: str) -> str:
        if self.element.is_float:
            return fused_multiply_add(self.context, self.element, a, b, addend)
        type = self.context.type(self.element)
        if self.op.form == "fma":
            return self.emit.op(f"add {type} {addend}, {self.emit.op(f'mul {type} {a}, {b}')}")
        if self.op.form == "bytes":
            return self.dot(f"avx512.vpdpbusd.{self.lanes * 32}", 4, addend, a, b)
        if "bytes" in self.emitter.lanes.target.byte_products:
            return self.dot(f"avx512.vpdpwssd.{self.lanes * 32}", 2, addend, a, b)
        name = {4: "sse2.pmadd.wd", 8: "avx2.pmadd.wd", 16: "avx512.pmaddw.d.512"}[self.lanes]
        return self.emit.op(f"add {type} {addend}, {self.dot(name, 2, '', a, b)}")

    def dot(self, name: str, count: int, addend: str, a: str, b: str) -> str:
        """An instruction that multiplies `count` numbers in every lane, and adds up what lies in one."""
        total = self.context.type(self.element)
        numbers = f"<{self.lanes * count} x i{32 // count}>"
        factors = [(numbers, self.emit.op(f"bitcast {total} {text} to {numbers}")) for text in (a, b)]
        return self.emit.call(total, f"llvm.x86.{name}", [(total, addend)] * bool(addend) + factors)


def contract_buffers(emitter: RegionEmitter, op: Operation) -> None:
    """Emit a matrix product on buffers."""
    assert isinstance(op, ContractBuffers)
    if op.form == "tiles":
        tile_product(emitter, op)
        return
    _Product(emitter, op).run()
