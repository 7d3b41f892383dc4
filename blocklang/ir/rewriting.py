"""Cloning of operations and regions under a substitution of values."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

from blocklang.ir.builder import Builder
from blocklang.ir.core import Kernel, Operation, Region, Value


def clone_operation(op: Operation, mapping: MutableMapping[Value, Value]) -> Operation:
    """A detached copy of `op`, regions included; operands are looked up in `mapping`, which learns the
    results.
    """
    mapped = [mapping.get(v, v) for v in op.operands]
    operands = {name: mapped[start : start + count] for name, (start, count) in op.segments.items()}
    regions = [clone_region(region, mapping) for region in op.regions]
    copy = type(op)(operands, op.attributes, [r.type for r in op.results], regions, op.location)
    for old, new in zip(op.results, copy.results, strict=True):
        new.name = old.name
        mapping[old] = new
    return copy


def clone_region(region: Region, mapping: MutableMapping[Value, Value]) -> Region:
    """A copy of a region; `mapping` learns its arguments and results."""
    copy = Region([a.type for a in region.args], [a.name for a in region.args])
    mapping.update(zip(region.args, copy.args, strict=True))
    for op in region.ops:
        copy.append(clone_operation(op, mapping))
    return copy


def clone_kernel(kernel: Kernel) -> Kernel:
    """An independent copy of a whole kernel."""
    copy = Kernel(
        kernel.name,
        [a.type for a in kernel.args],
        [a.name for a in kernel.args],
        level=kernel.level,
        location=kernel.location,
        attributes=kernel.attributes,
    )
    copy.argument_attributes = [dict(a) for a in kernel.argument_attributes]
    copy.frontend_seconds = kernel.frontend_seconds
    mapping: dict[Value, Value] = dict(zip(kernel.args, copy.args, strict=True))
    for op in kernel.body.ops:
        copy.body.append(clone_operation(op, mapping))
    return copy


def inline_region(builder: Builder, region: Region, arguments: Mapping[Value, Value]) -> list[Value]:
    """Copy a region's operations, but for the terminator, whose operands are returned."""
    mapping: dict[Value, Value] = dict(arguments)
    for op in region.ops:
        if op.is_terminator:
            return [mapping.get(v, v) for v in op.operands]
        builder.insert(clone_operation(op, mapping))
    return []
