"""Place scans: operands are written to fresh buffers, which are scanned in place and hold the results. An
operand that has a buffer which nobody else reads is scanned where it is.
"""

from __future__ import annotations

from blocklang.ir.core import Value
from blocklang.ir.rewriting import clone_region
from blocklang.ir.types import as_shaped
from blocklang.ops.scan import Scan, ScanBuffers
from blocklang.passes.placing.contractions import same_loop
from blocklang.passes.placing.nests import Nests


def place_scan(p: Nests, op: Scan) -> None:
    buffers = [
        _own_buffer(p, op, v) or p.buffer(as_shaped(v.type), _name(op, i)) for i, v in enumerate(op.inputs)
    ]
    p.write_blocks(list(zip(buffers, op.inputs, strict=True)))
    combiner = clone_region(op.combiner, dict(p.scalars))
    p.builder.create(ScanBuffers, buffers, axis=op.axis, reverse=op.reverse, regions=[combiner])
    p.buffers.update(zip(op.results, buffers, strict=True))


def _name(op: Scan, position: int) -> str:
    return op.results[position].name or "scan"


def _own_buffer(p: Nests, op: Scan, value: Value) -> Value | None:
    """The buffer of an operand, if its contents may be lost."""
    own = p.buffers.get(value)
    return own if own is not None and len(value.uses) == 1 and same_loop(value, op) else None
