"""`memoise`: a table from keys to tiles, per worker and launch.

`blocklang.abi.TileTable` is the layout of one operation's memory.

Tiles are filled in order. When the last is full all are forgotten at once, which needs no bookkeeping; if
fewer were found than filled by then, they come back too late or never, and one tile that stays in the nearest
cache is used from there on.
"""

from __future__ import annotations

from blocklang.abi import LAUNCH_NUMBER, TileTable
from blocklang.codegen.emitter import llvm_scalar
from blocklang.codegen.lanes import memory_type
from blocklang.codegen.loops import RegionEmitter
from blocklang.codegen.values import Lane
from blocklang.ir.core import Kernel, Operation, Value
from blocklang.ir.types import U8, PointerType
from blocklang.ops.tile import Memoise

_ADDRESS = PointerType(U8)  # the type of a tile's address; accesses bring their own element type

_FIND = "blocklang.find_tile"

# find_tile(table, keys, limit, heads - 1): the number of the tile with the keys that stand in the table; its
# complement if the tile has still to be filled.
FIND_TILE = f"""
define internal i64 @"{_FIND}"(ptr %table, i64 %keys, i64 %mask) noinline {{
entry:
  %used.at = getelementptr i8, ptr %table, i64 {TileTable.USED}
  %hits.at = getelementptr i8, ptr %table, i64 {TileTable.HITS}
  %limit.at = getelementptr i8, ptr %table, i64 {TileTable.LIMIT}
  %wanted = getelementptr i8, ptr %table, i64 {TileTable.KEYS}
  %key.bytes = mul i64 %keys, 8
  %heads = getelementptr i8, ptr %wanted, i64 %key.bytes
  %head.count = add i64 %mask, 1
  %head.bytes = mul i64 %head.count, 4
  %entries = getelementptr i8, ptr %heads, i64 %head.bytes
  %entry.bytes = add i64 %key.bytes, 8
  br label %hash
hash:
  %k = phi i64 [ 0, %entry ], [ %k.next, %mix ]
  %h = phi i64 [ 0, %entry ], [ %h.next, %mix ]
  %hashed = icmp eq i64 %k, %keys
  br i1 %hashed, label %look, label %mix
mix:
  %key.at = getelementptr i64, ptr %wanted, i64 %k
  %key = load i64, ptr %key.at
  %h.key = xor i64 %h, %key
  %h.spread = mul i64 %h.key, -7046029254386353131
  %h.high = lshr i64 %h.spread, 32
  %h.next = xor i64 %h.spread, %h.high
  %k.next = add i64 %k, 1
  br label %hash
look:
  %bucket = and i64 %h, %mask
  %head.at = getelementptr i32, ptr %heads, i64 %bucket
  %first.32 = load i32, ptr %head.at
  %first = zext i32 %first.32 to i64
  br label %next
next:
  %number = phi i64 [ %first, %look ], [ %following, %skip ]
  %end = icmp eq i64 %number, 0
  br i1 %end, label %miss, label %candidate
candidate:
  %place = sub i64 %number, 1
  %distance = mul i64 %place, %entry.bytes
  %entry.at = getelementptr i8, ptr %entries, i64 %distance
  br label %compare
compare:
  %c = phi i64 [ 0, %candidate ], [ %c.next, %same ]
  %all = icmp eq i64 %c, %keys
  br i1 %all, label %found, label %one
one:
  %there.at = getelementptr i64, ptr %entry.at, i64 %c
  %here.at = getelementptr i64, ptr %wanted, i64 %c
  %there = load i64, ptr %there.at
  %here = load i64, ptr %here.at
  %equal = icmp eq i64 %there, %here
  br i1 %equal, label %same, label %skip
same:
  %c.next = add i64 %c, 1
  br label %compare
skip:
  %following.at = getelementptr i8, ptr %entry.at, i64 %key.bytes
  %following = load i64, ptr %following.at
  br label %next
found:
  %hits = load i64, ptr %hits.at
  %hits.next = add i64 %hits, 1
  store i64 %hits.next, ptr %hits.at
  ret i64 %place
miss:
  %used = load i64, ptr %used.at
  %limit = load i64, ptr %limit.at
  %full = icmp uge i64 %used, %limit
  br i1 %full, label %restart, label %insert
restart:
  %found.before = load i64, ptr %hits.at
  %seldom = icmp ult i64 %found.before, %used
  %off = icmp eq i64 %limit, 0
  store i64 0, ptr %used.at
  store i64 0, ptr %hits.at
  br i1 %off, label %single, label %forget
forget:
  call void @llvm.memset.p0.i64(ptr %heads, i8 0, i64 %head.bytes, i1 false)
  br i1 %seldom, label %close, label %insert
close:
  store i64 0, ptr %limit.at
  br label %single
single:
  ret i64 -1
insert:
  %free = phi i64 [ %used, %miss ], [ 0, %forget ]
  %older.32 = load i32, ptr %head.at
  %older = zext i32 %older.32 to i64
  %new.distance = mul i64 %free, %entry.bytes
  %new.at = getelementptr i8, ptr %entries, i64 %new.distance
  call void @llvm.memcpy.p0.p0.i64(ptr %new.at, ptr %wanted, i64 %key.bytes, i1 false)
  %link.at = getelementptr i8, ptr %new.at, i64 %key.bytes
  store i64 %older, ptr %link.at
  %filled = add i64 %free, 1
  %filled.32 = trunc i64 %filled to i32
  store i32 %filled.32, ptr %head.at
  store i64 %filled, ptr %used.at
  %complement = xor i64 %free, -1
  ret i64 %complement
}}
"""


def _table_of(op: Memoise) -> TileTable:
    return TileTable(len(op.keys), op.tiles, op.byte_count())


def forget_earlier_launches(kernel: Kernel, emitter: RegionEmitter) -> None:
    """At the entry: empty the tables that another launch has left behind, or other kernels."""
    emit = emitter.emit
    for op in kernel.walk():
        if not isinstance(op, Memoise):
            continue
        table, place = _table_of(op), emit.offset("%scratch", op.offset)
        number = emit.op(f"load i64, ptr {emit.offset('%scratch', LAUNCH_NUMBER)}")
        known = emit.op(f"load i64, ptr {place}")
        forget, ready = emit.new_block("forget"), emit.new_block("ready")
        emit.branch_if(emit.op(f"icmp eq i64 {known}, {number}"), ready, forget)
        emit.start(forget)
        limit = _limit(emitter, op)
        fields = {table.NUMBER: number, table.USED: "0", table.HITS: "0", table.LIMIT: limit}
        for at, value in fields.items():
            emit.do(f"store i64 {value}, ptr {emit.offset(place, at)}")
        heads = emit.offset(place, table.heads_at)
        zeros = [("ptr", heads), ("i8", "0"), ("i64", str(4 * table.heads)), ("i1", "false")]
        emit.call("void", "llvm.memset.p0.i64", zeros)
        emit.branch(ready)
        emit.start(ready)


def _limit(emitter: RegionEmitter, op: Memoise) -> str:
    """How many tiles may be kept: none if the grid has no two programs that may share one."""
    emit = emitter.emit
    shared = "false"
    for axis in op.axes:
        extent = emit.op(f"load i32, ptr {emit.offset('%grid', 4 * axis)}, align 4")
        shared = emit.op(f"or i1 {shared}, {emit.op(f'icmp sgt i32 {extent}, 1')}")
    return emit.op(f"select i1 {shared}, i64 {op.tiles}, i64 0")


def memoise(emitter: RegionEmitter, op: Operation) -> None:
    """Find the tile of these keys; fill it if it is new."""
    assert isinstance(op, Memoise)
    emit, table = emitter.emit, _table_of(op)
    place = emit.offset("%scratch", op.offset)
    for position, key in enumerate(op.keys):
        emit.do(f"store i64 {_bits(emitter, key)}, ptr {emit.offset(place, table.KEYS + 8 * position)}")
    emit.declarations[_FIND] = FIND_TILE
    emit.declarations["memcpy"] = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"
    found = emit.op(f'call i64 @"{_FIND}"(ptr {place}, i64 {table.keys}, i64 {table.heads - 1})')
    is_new = emit.op(f"icmp slt i64 {found}, 0")
    number = emit.op(f"xor i64 {found}, {emit.op(f'ashr i64 {found}, 63')}")
    address = emit.offset(emit.offset(place, table.tiles_at), emit.mul(number, table.pitch))
    for value in (op.body.args[0], op.output):
        emitter.values[value] = Lane(address, _ADDRESS)
        emitter.lanes.buffers[value] = op
    fill, filled = emit.new_block("fill"), emit.new_block("filled")
    emit.branch_if(is_new, fill, filled)
    emit.start(fill)
    emitter.region(op.body)
    emit.branch(filled)
    emit.start(filled)


def _bits(emitter: RegionEmitter, key: Value) -> str:
    """The bits of a number or an address, as an i64."""
    text, scalar = emitter.text(key), llvm_scalar(key.type)
    if scalar == "ptr":
        return emitter.emit.op(f"ptrtoint ptr {text} to i64")
    if scalar == "i64":
        return text
    if not scalar.startswith("i"):
        bits = 8 * memory_type(key.type).bytes
        text, scalar = emitter.emit.op(f"bitcast {scalar} {text} to i{bits}"), f"i{bits}"
    return text if scalar == "i64" else emitter.emit.op(f"zext {scalar} {text} to i64")
