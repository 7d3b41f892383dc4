"""Where a value comes from that control flow hands on: what a loop carries, what an `if` results in.

Level block.
"""

from __future__ import annotations

from blocklang.ir.core import Operation, Region, Value
from blocklang.ops.control import For, If, While


def handed_on(value: Value) -> list[Value]:
    """The values that may stand in a result of control flow, or in an argument of its regions; none for any
    other value, such as the index of a loop.
    """
    owner = value.owner
    if isinstance(owner, Region):
        return _into_argument(owner, owner.args.index(value))
    match owner:
        case If():
            return [end_of(arm).operands[owner.results.index(value)] for arm in owner.regions]
        case For():
            slot = owner.results.index(value)
            return [owner.inits[slot], end_of(owner.body).operands[slot]]
        case While():
            return [end_of(owner.before).segment("values")[owner.results.index(value)]]
    return []


def _into_argument(region: Region, index: int) -> list[Value]:
    match region.parent:
        case For() as loop if index > 0:
            return [loop.inits[index - 1], end_of(region).operands[index - 1]]
        case While() as loop if region is loop.before:
            return [loop.inits[index], end_of(loop.after).operands[index]]
        case While() as loop:
            return [end_of(loop.before).segment("values")[index]]
    return []


def end_of(region: Region) -> Operation:
    """The terminator of a verified region."""
    assert region.terminator is not None
    return region.terminator
