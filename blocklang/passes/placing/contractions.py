"""Place matrix products: operands packed for the micro-kernel, the accumulator updated in place where
nobody else reads it.
"""

from __future__ import annotations

import math

from blocklang.ir.builder import Builder
from blocklang.ir.core import Operation, Region, Value
from blocklang.ir.types import (
    F32,
    I64,
    U32,
    BlockType,
    BufferType,
    ScalarType,
    Type,
    as_shaped,
    element_type,
    shape_of,
)
from blocklang.ops.control import Yield
from blocklang.ops.creation import Constant
from blocklang.ops.elementwise import Add, And, Bitcast, Cast, Compare, Select, Shr
from blocklang.ops.reduction import accumulator_element
from blocklang.ops.tile import Contract, ContractBuffers, Group, Iterate, Part, Read, Write
from blocklang.passes.placing.nests import Convert, Nests, identity_indices
from blocklang.passes.schedule import ContractSchedule
from blocklang.passes.uniform import constant_of


def contract_schedule(p: Nests, op: Contract) -> ContractSchedule:
    return p.schedule.contracts[p.labels.of(op)]


def place_contract(p: Nests, op: Contract) -> None:
    acc = _multiply(p, op) if op.acc.type.rank == 2 else _multiply_batch(p, op)
    result = as_shaped(op.result.type)
    if as_shaped(acc.type).element == result.element:
        p.buffers[op.result] = acc
        return
    narrow = p.buffer(result, op.result.name)
    with p.nest(result.shape, p.copy_loop(None, result.shape)) as (nest, builder):
        at = p.ssa(builder, nest, identity_indices(result.rank))
        value = builder.value(Cast, builder.value(Read, acc, at), result_types=[result.element])
        builder.create(Write, narrow, value, at)
    p.buffers[op.result] = narrow


def _multiply(p: Nests, op: Contract) -> Value:
    """Multiply two matrices; the buffer that the product was added to."""
    element, tile = accumulator_element(op), contract_schedule(p, op)
    a = _pack(p, op, op.a, element, 0, tile.tiles[0])
    b = _pack(p, op, op.b, element, tile.columns, tile.tiles[1])
    acc, start = _accumulator(p, op, element)
    p.builder.create(ContractBuffers, a, b, acc, rows=tile.rows, columns=tile.columns, start=start)
    return acc


def _multiply_batch(p: Nests, op: Contract) -> Value:
    """A loop over the batch, in which each pair of matrices is packed and multiplied."""
    element, tile = accumulator_element(op), contract_schedule(p, op)
    for value in (op.a, op.b):
        p.materialise_unaligned([value], shape_of(value.type))
    acc, start = _accumulator(p, op, element)
    bounds = [p.constant(p.builder, n) for n in (0, op.acc.type.shape[0])]
    region = Region([I64], ["batch"])
    index = region.args[0]
    with p.builder.at(region):
        a = _pack_part(p, op, op.a, element, 0, tile.tiles[0], index)
        b = _pack_part(p, op, op.b, element, tile.columns, tile.tiles[1], index)
        part = _part(p, acc, index)
        p.builder.create(ContractBuffers, a, b, part, rows=tile.rows, columns=tile.columns, start=start)
        p.builder.create(Yield)
    p.builder.create(Group, *bounds, regions=[region])
    return acc


def _part(p: Nests, buffer: Value, index: Value) -> Value:
    whole = as_shaped(buffer.type)
    return p.builder.value(Part, buffer, index, result_types=[BufferType(whole.element, whole.shape[1:])])


def _pack_part(
    p: Nests, op: Contract, value: Value, element: Type, panel: int, tiles: int, index: Value
) -> Value:
    """As `_pack`, for one matrix of a batch."""
    own = p.buffers.get(value)
    tf32 = _rounds_to_tf32(op, value)
    if own is not None and not panel and element_type(value.type) == element and not tf32:
        return _part(p, own, index)
    assert isinstance(element, ScalarType)
    block = as_shaped(value.type)
    name = f"{value.name or 'operand'}_packed"
    target = p.buffer(BlockType(element, block.shape[1:]), name, panel=panel, tiles=tiles)
    p.write_converted(target, value, _converting(element, tf32=tf32), panel=panel, first=index)
    return target


def _accumulator(p: Nests, op: Contract, element: Type) -> tuple[Value, str]:
    """The buffer that the product is added to, and where its chains start: the accumulator's own if nobody
    else reads it; one that need not be filled if the accumulator is 0; or a copy.
    """
    assert isinstance(element, ScalarType)
    block, name = BlockType(element, op.acc.type.shape), op.result.name or "acc"
    if op.start == "acc" and _is_zero(op.acc):
        return p.buffer(block, name), "zero"
    own = p.buffers.get(op.acc)
    if own is not None and len(op.acc.uses) == 1 and op.acc.type.element == element and same_loop(op.acc, op):
        return own, op.start
    target = p.buffer(block, name)
    p.write_converted(target, op.acc, lambda b, v: _convert(b, v, element))
    return target, op.start


def _is_zero(block: Value) -> bool:
    """True if every lane is +0; a chain that starts from -0 may end in it."""
    op = block.defining_op
    if not isinstance(op, Iterate) or op.combine:
        return False
    number = constant_of(op.body.terminator.operands[op.results.index(block)])
    return number is not None and number == 0 and math.copysign(1, number) > 0


def _pack(p: Nests, op: Contract, value: Value, element: Type, panel: int, tiles: int) -> Value:
    """A copy of an operand in the layout and type of the micro-kernel; made once per value."""
    tf32 = _rounds_to_tf32(op, value)
    if (value, panel, tf32) in p.packed:
        return p.packed[(value, panel, tf32)]
    own = p.buffers.get(value)
    if own is not None and not panel and element_type(value.type) == element and not tf32:
        return own
    assert isinstance(element, ScalarType)
    assert isinstance(value.type, BlockType)
    block, name = value.type.with_element(element), f"{value.name or 'operand'}_packed"
    target = p.buffer(block, name, panel=panel, tiles=tiles)
    p.write_converted(target, value, _converting(element, tf32=tf32), panel=panel)
    p.packed[(value, panel, tf32)] = target
    return target


def _rounds_to_tf32(op: Contract, value: Value) -> bool:
    return bool(op.input_precision == "tf32" and element_type(value.type) == F32)


def _converting(element: ScalarType, *, tf32: bool) -> Convert:
    def convert(builder: Builder, lane: Value) -> Value:
        return _round_to_tf32(builder, lane) if tf32 else _convert(builder, lane, element)

    return convert


def pack_operands_outside(p: Nests, contract: Contract, op: Operation) -> None:
    """Pack before a loop what it does not change; a batch is packed matrix by matrix, where it is read."""
    if contract.acc.type.rank > 2:
        return
    element, tile = accumulator_element(contract), contract_schedule(p, contract)
    for value, panel, tiles in zip((contract.a, contract.b), (0, tile.columns), tile.tiles, strict=True):
        producer = value.defining_op
        if producer is not None and not any(region.encloses(producer) for region in op.regions):
            _pack(p, contract, value, element, panel, tiles)


def same_loop(value: Value, op: Operation) -> bool:
    """True if a value is made or carried in the region where `op` stands."""
    owner = value.owner if isinstance(value.owner, Region) else value.owner.parent
    return owner is op.parent


def _convert(builder: Builder, value: Value, element: ScalarType) -> Value:
    return value if value.type == element else builder.value(Cast, value, result_types=[element])


def _round_to_tf32(builder: Builder, value: Value) -> Value:
    """Round f32 to 10 mantissa bits, to nearest even; infinities and NaN stay."""

    def constant(number: int) -> Value:
        return builder.value(Constant, value=number, result_types=[U32])

    bits = builder.value(Bitcast, value, result_types=[U32])
    odd = builder.value(And, builder.value(Shr, bits, constant(13)), constant(1))
    rounded = builder.value(Add, bits, builder.value(Add, odd, constant(0xFFF)))
    cleared = builder.value(And, rounded, constant(0xFFFFE000))
    exponent = builder.value(And, bits, constant(0x7F800000))
    special = builder.value(Compare, exponent, constant(0x7F800000), predicate="eq")
    return builder.value(Bitcast, builder.value(Select, special, bits, cleared), result_types=[F32])
