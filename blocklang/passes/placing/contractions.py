"""Place matrix products: operands packed for the micro-kernel, the accumulator updated in place where
nobody else reads it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from blocklang.ir.builder import Builder
from blocklang.ir.core import Operation, Region, Value
from blocklang.ir.index_map import Binary, Const, Dim, IndexMap
from blocklang.ir.types import (
    F32,
    I8,
    I16,
    I32,
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
from blocklang.ops.elementwise import Add, And, Bitcast, Cast, Compare, Or, Select, Shl, Shr, Xor
from blocklang.ops.reduction import accumulator_element
from blocklang.ops.tile import FORMS, Contract, ContractBuffers, Group, Iterate, Part, Read, Write
from blocklang.passes.placing.nests import Convert, Indices, Nests, identity_indices
from blocklang.passes.schedule import ContractSchedule, LoopSchedule
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
    a, b = (_pack(p, op, operand) for operand in _operands(p, op))
    acc, start = _accumulator(p, op, accumulator_element(op))
    _contract(p, op, a, b, acc, start)
    return acc


def _contract(p: Nests, op: Contract, a: Value, b: Value, acc: Value, start: str) -> None:
    how = contract_schedule(p, op)
    p.builder.create(
        ContractBuffers, a, b, acc, rows=how.rows, columns=how.columns, start=start, form=how.form
    )


def _multiply_batch(p: Nests, op: Contract) -> Value:
    """A loop over the batch, in which each pair of matrices is packed and multiplied."""
    for value in (op.a, op.b):
        p.materialise_unaligned([value], shape_of(value.type))
    acc, start = _accumulator(p, op, accumulator_element(op))
    bounds = [p.constant(p.builder, n) for n in (0, op.acc.type.shape[0])]
    region = Region([I64], ["batch"])
    index = region.args[0]
    with p.builder.at(region):
        a, b = (_pack(p, op, operand, index) for operand in _operands(p, op))
        _contract(p, op, a, b, _part(p, acc, index), start)
        p.builder.create(Yield)
    p.builder.create(Group, *bounds, regions=[region])
    return acc


def _part(p: Nests, buffer: Value, index: Value) -> Value:
    whole = as_shaped(buffer.type)
    return p.builder.value(Part, buffer, index, result_types=[BufferType(whole.element, whole.shape[1:])])


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


@dataclass(frozen=True)
class _Operand:
    """How an operand of a product is packed.

    Attributes:
        value: the block.
        element: of the numbers that are multiplied.
        together: how many numbers of a column stand in one element of the buffer.
        panel: columns of a panel, 0 for row-major elements.
        tiles: how many the programs may share.
        convert: makes the numbers of the block's elements.
        as_is: nothing is changed by packing: a buffer that holds the block serves as well.
    """

    value: Value
    element: ScalarType
    together: int
    panel: int
    tiles: int
    convert: Convert
    as_is: bool


def _operands(p: Nests, op: Contract) -> tuple[_Operand, _Operand]:
    how, element = contract_schedule(p, op), accumulator_element(op)
    together = FORMS[how.form]
    if how.form != "fma":
        element = I16 if how.form == "pairs" else I8
    assert isinstance(element, ScalarType)

    def operand(value: Value, together: int, panel: int, tiles: int, *, flipped: bool) -> _Operand:
        tf32 = bool(op.input_precision == "tf32" and element_type(value.type) == F32)
        convert = _flip_top_bit if flipped else _converting(element, tf32=tf32)
        as_is = element_type(value.type) == element and together == 1 and not (panel or tf32 or flipped)
        return _Operand(value, element, together, panel, tiles, convert, as_is)

    return (
        operand(op.a, 1, 0, how.tiles[0], flipped=how.form == "bytes"),
        operand(op.b, together, how.columns, how.tiles[1], flipped=False),
    )


def _pack(p: Nests, op: Contract, operand: _Operand, index: Value | None = None) -> Value:
    """A copy of an operand in the layout and type of the micro-kernel, made once per value; with `index`, of
    that matrix of a batch.
    """
    value = operand.value
    key = (value, operand.element, operand.together, operand.panel, _rounds_to_tf32(op, value))
    if index is None and key in p.packed:
        return p.packed[key]
    own = p.buffers.get(value)
    if own is not None and operand.as_is:
        return own if index is None else _part(p, own, index)
    *_, rows, columns = shape_of(value.type)
    name = f"{value.name or 'operand'}_packed"
    if operand.together == 1:
        target = p.buffer(
            BlockType(operand.element, (rows, columns)), name, panel=operand.panel, tiles=operand.tiles
        )
        p.write_converted(target, value, operand.convert, panel=operand.panel, first=index)
    else:
        block = BlockType(I32, (rows // operand.together, columns))
        target = p.buffer(block, name, panel=operand.panel, tiles=operand.tiles)
        _write_together(p, target, operand, index)
    if index is None:
        p.packed[key] = target
    return target


def _write_together(p: Nests, target: Value, operand: _Operand, index: Value | None) -> None:
    """Fill a buffer whose elements hold several numbers of a column, the first in the low bits."""
    value, count = operand.value, operand.together
    shape = shape_of(target.type) if index is None else (shape_of(value.type)[0], *shape_of(target.type))
    rank = len(shape)
    row = Binary("*", Dim(rank - 2), Const(count))
    places: list[Indices] = [
        (*map(Dim, range(rank - 2)), Binary("+", row, Const(number)) if number else row, Dim(rank - 1))
        for number in range(count)
    ]
    if index is None:
        p.materialise_unaligned([value] * count, shape, [IndexMap(rank, place) for place in places])
    width = min(p.schedule.copy_width, operand.panel & -operand.panel)
    loop = LoopSchedule(tuple(range(rank) if index is None else range(1, rank)), width)
    bits = 32 // count
    with p.nest(shape, loop, first=index) as (nest, builder):
        whole: Value | None = None
        for number, place in enumerate(places):
            lane = operand.convert(builder, p.lane(builder, nest, value, place))
            lane = builder.value(Cast, lane, result_types=[I32])
            if number < count - 1:
                lane = builder.value(And, lane, _integer(builder, (1 << bits) - 1))
            if number:
                lane = builder.value(Shl, lane, _integer(builder, number * bits))
            whole = lane if whole is None else builder.value(Or, whole, lane)
        assert whole is not None
        builder.create(Write, target, whole, p.ssa(builder, nest, tuple(map(Dim, range(rank)))[-2:]))


def _integer(builder: Builder, number: int) -> Value:
    return builder.value(Constant, value=number, result_types=[I32])


def _flip_top_bit(builder: Builder, lane: Value) -> Value:
    return builder.value(Xor, lane, builder.value(Constant, value=-128, result_types=[I8]))


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
    for operand in _operands(p, contract):
        producer = operand.value.defining_op
        if producer is not None and not any(region.encloses(producer) for region in op.regions):
            _pack(p, contract, operand)


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
