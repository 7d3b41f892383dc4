"""Place matrix products: operands packed for the micro-kernel, the accumulator updated in place where
nobody else reads it.
"""

from __future__ import annotations

from blocklang.ir.builder import Builder
from blocklang.ir.core import Operation, Region, Value
from blocklang.ir.types import F32, U32, BlockType, ScalarType, Type, as_shaped, element_type
from blocklang.ops.creation import Constant
from blocklang.ops.elementwise import Add, And, Bitcast, Cast, Compare, Select, Shr
from blocklang.ops.reduction import accumulator_element
from blocklang.ops.tile import Contract, ContractBuffers, Read, Write
from blocklang.passes.placing.nests import Nests, identity_indices
from blocklang.passes.schedule import ContractSchedule


def contract_schedule(p: Nests, op: Contract) -> ContractSchedule:
    return p.schedule.contracts[p.labels.of(op)]


def place_contract(p: Nests, op: Contract) -> None:
    element = accumulator_element(op)
    tile = contract_schedule(p, op)
    a = _pack(p, op, op.a, element, 0)
    b = _pack(p, op, op.b, element, tile.columns)
    acc = _accumulator(p, op, element)
    p.builder.create(ContractBuffers, a, b, acc, rows=tile.rows, columns=tile.columns, start=op.start)
    result = as_shaped(op.result.type)
    if as_shaped(acc.type).element == result.element:
        p.buffers[op.result] = acc
        return
    narrow = p.buffer(result, op.result.name)
    with p.nest(result.shape, p.copy_loop(None, result.shape)) as (nest, builder):
        at = p.ssa(builder, nest, identity_indices(2))
        value = builder.value(Cast, builder.value(Read, acc, at), result_types=[result.element])
        builder.create(Write, narrow, value, at)
    p.buffers[op.result] = narrow


def _accumulator(p: Nests, op: Contract, element: Type) -> Value:
    """The buffer that the product is added to: the accumulator's own if nobody else reads it, or a copy."""
    own = p.buffers.get(op.acc)
    if own is not None and len(op.acc.uses) == 1 and op.acc.type.element == element and same_loop(op.acc, op):
        return own
    assert isinstance(element, ScalarType)
    target = p.buffer(BlockType(element, op.acc.type.shape), op.result.name or "acc")
    p.write_converted(target, op.acc, lambda b, v: _convert(b, v, element))
    return target


def _pack(p: Nests, op: Contract, value: Value, element: Type, panel: int) -> Value:
    """A copy of an operand in the layout and type of the micro-kernel; made once per value."""
    if (value, panel) in p.packed:
        return p.packed[(value, panel)]
    own = p.buffers.get(value)
    tf32 = op.input_precision == "tf32" and element_type(value.type) == F32
    if own is not None and not panel and element_type(value.type) == element and not tf32:
        return own
    assert isinstance(element, ScalarType)
    assert isinstance(value.type, BlockType)
    target = p.buffer(value.type.with_element(element), f"{value.name or 'operand'}_packed", panel=panel)

    def convert(builder: Builder, lane: Value) -> Value:
        return _round_to_tf32(builder, lane) if tf32 else _convert(builder, lane, element)

    p.write_converted(target, value, convert, panel=panel)
    p.packed[(value, panel)] = target
    return target


def pack_operands_outside(p: Nests, contract: Contract, op: Operation) -> None:
    element = accumulator_element(contract)
    for value, panel in ((contract.a, 0), (contract.b, contract_schedule(p, contract).columns)):
        producer = value.defining_op
        if producer is not None and not any(region.encloses(producer) for region in op.regions):
            _pack(p, contract, value, element, panel)


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
