"""Let the programs of a launch share what they pack: what an earlier one has packed is not packed again.

    placed @k(%p: ptr<f32>, %out: ptr<f32>) alias="disjoint" {
      %b = buffer tiles=8 : buffer<64xf32>
      %row = program_id axis=0 : i32
      %c0 = constant value=0 : i64
      %c64 = constant value=64 : i64
      lanes %c0, %c64, width=16 {
        (%i: i64):
        %q = offset %p, %row : ptr<f32>
        %r = offset %q, %i : ptr<f32>
        %v = load %r : f32
        write %b, %v, %i
        yield
      }
      %x = read %b, %c0 : f32
      store %out, %x
      return
    }

becomes

    placed @k(%p: ptr<f32>, %out: ptr<f32>) alias="disjoint" {
      %row = program_id axis=0 : i32
      %c0 = constant value=0 : i64
      %c64 = constant value=64 : i64
      %b = memoise %row, tiles=8, axes=[1, 2] : buffer<64xf32> {
        (%b_0: buffer<64xf32>):
        lanes %c0, %c64, width=16 {
          (%i: i64):
          %q = offset %p, %row : ptr<f32>
          %r = offset %q, %i : ptr<f32>
          %v = load %r : f32
          write %b_0, %v, %i
          yield
        }
        yield
      }
      %x = read %b, %c0 : f32
      store %out, %x
      return
    }

What a tile holds is a function of the values that its loops read from outside, if they read only memory
that the launch does not write. These values are the keys: without constants, arguments, what is computed from
them alone, and what is computed from other keys. A key that is a program's place along an axis, scaled and
moved, tells that programs which differ along this axis share nothing; if that holds for all axes, nothing
changes.

Requires: level placed; a buffer with `tiles` is written completely wherever it is filled.
Keeps: every bit of every result. Nothing changes where the launch may write what the loops read.
"""

from __future__ import annotations

from blocklang.analysis.memory_hazards import base_pointer
from blocklang.ir.builder import Builder
from blocklang.ir.core import Kernel, Operation, Region, Value
from blocklang.ir.declaration import Effect
from blocklang.ops.control import Yield
from blocklang.ops.creation import Constant, NumPrograms, ProgramId
from blocklang.ops.elementwise import Add, Cast, Mul, Sub
from blocklang.ops.memory import Load, Offset
from blocklang.ops.tile import BufferOp, Memoise, View, Write


def memoise_packing(kernel: Kernel) -> None:
    """Put the loops that fill a buffer with `tiles` into a `memoise`, where that is right."""
    buffers = [op for op in kernel.body.ops if isinstance(op, BufferOp) and op.tiles]
    if not buffers or kernel.attributes.get("alias") != "disjoint":
        return
    stored = [op.segment("pointer")[0] for op in kernel.walk() if Effect.WRITE in op.effects]
    written = {base_pointer(pointer) for pointer in stored}
    if None in written:  # any memory
        return
    for buffer in buffers:
        fill = _fill_of(buffer.result)
        if fill and all(_is_repeatable(op, buffer.result, written) for op in fill):
            _memoise(kernel, buffer, fill)


def _fill_of(buffer: Value) -> list[Operation]:
    """The operations of one region that together fill `buffer` before all that reads it; [] if that is not
    how it is filled.
    """
    writers = [user for user in buffer.users if isinstance(user, Write)]
    readers = [user for user in buffer.users if not isinstance(user, Write)]
    if not writers or not readers or any(isinstance(reader, View) for reader in readers):
        return []
    region = writers[0].parent
    while region is not None and not all(map(region.encloses, [*writers, *readers])):
        region = region.parent_op.parent if region.parent_op is not None else None
    if region is None:
        return []
    # All lie in it: the fill ends before the first reader, or a reader stands among the writers.
    places = sorted({region.index_of(_ancestor(writer, region)) for writer in writers})
    if min(region.index_of(_ancestor(reader, region)) for reader in readers) <= places[-1]:
        return []
    fill = [region.ops[place] for place in places]
    others = [op for op in region.ops[places[0] : places[-1]] if op not in fill]
    if not all(op.is_pure for op in others) or any(r.uses for op in fill for r in op.results):
        return []
    return fill


def _ancestor(op: Operation, region: Region) -> Operation:
    """`op`, or what holds it in `region`."""
    while op.parent is not region:
        parent = op.parent_op
        assert parent is not None
        op = parent
    return op


def _walk(fill: Operation) -> list[Operation]:
    return [fill, *(inner for region in fill.regions for inner in region.walk())]


def _is_repeatable(fill: Operation, buffer: Value, written: set[Value | None]) -> bool:
    """True if `fill` writes nothing but `buffer`, and reads only what no program of the launch changes."""
    for op in _walk(fill):
        match op:
            case Load() if not op.volatile:
                base = base_pointer(op.pointer)
                if base is None or base in written:
                    return False
            case Write():
                if op.buffer is not buffer:
                    return False
            case _ if op.effects:
                return False
    return True


def _memoise(kernel: Kernel, buffer: BufferOp, fill: list[Operation]) -> None:
    keys = _keys(kernel, fill, buffer.result)
    axes = tuple(axis for axis in range(3) if axis not in set().union(*map(_axes_of, keys)))
    if not axes:
        return
    body = Region([buffer.result.type], [buffer.result.name])
    builder = Builder.after_op(fill[-1])
    builder.location = fill[0].location
    for op in fill:
        body.append(op.detach())
        for inner in _walk(op):
            if isinstance(inner, Write):
                inner.set_operand(0, body.args[0])
    Builder(body).create(Yield)
    tile = builder.value(
        Memoise,
        keys,
        tiles=buffer.tiles,
        axes=axes,
        panel=buffer.panel,
        result_types=[buffer.result.type],
        regions=[body],
    )
    buffer.replace_with(tile)


def _keys(kernel: Kernel, fill: list[Operation], buffer: Value) -> list[Value]:
    """What the fill depends on and a program may change, none of it computed from the others."""
    inside: set[Value] = set()
    outside: dict[Value, None] = {}
    for op in (inner for one in fill for inner in _walk(one)):
        inside.update(op.results, *(region.args for region in op.regions))
        outside.update(dict.fromkeys(v for v in op.operands if v not in inside and v is not buffer))
    determined: dict[Value, bool] = dict.fromkeys(kernel.args, True)
    keys: list[Value] = []
    order = {value: number for number, value in enumerate(_values_in_order(kernel)) if value in outside}
    for value in sorted(outside, key=lambda v: order.get(v, -1)):
        if not _is_determined(value, determined):
            keys.append(value)
            determined[value] = True
    return keys


def _values_in_order(kernel: Kernel) -> list[Value]:
    """Every value, after those that it is computed from."""
    values: list[Value] = list(kernel.args)
    for op in kernel.walk():
        values += [arg for region in op.regions for arg in region.args]
        values += op.results
    return values


def _is_determined(value: Value, known: dict[Value, bool]) -> bool:
    """True if `value` is computed from nothing but values that `known` calls determined."""
    stack = [value]
    while stack:
        current = stack[-1]
        op = current.defining_op
        if current in known:
            stack.pop()
        elif (
            op is None
            or op.regions
            or op.effects
            or not (op.operands or isinstance(op, (Constant, NumPrograms)))
        ):
            known[stack.pop()] = False
        elif missing := [operand for operand in op.operands if operand not in known]:
            stack += missing
        else:
            known[stack.pop()] = all(known[operand] for operand in op.operands)
    return known[value]


def _axes_of(key: Value) -> set[int]:
    """The axes of the grid along which a key differs from program to program, as far as its form tells."""
    axes: set[int] = set()
    stack = [key]
    while stack:
        op = stack.pop().defining_op
        match op:
            case ProgramId():
                axes.add(op.axis)
            case Add() | Sub() | Mul() | Cast() | Offset():
                stack += op.operands
    return axes
