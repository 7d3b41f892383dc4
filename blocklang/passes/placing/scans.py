"""Place scans: operands are written to fresh buffers, which are scanned in place and hold the results."""

from __future__ import annotations

from blocklang.ir.rewriting import clone_region
from blocklang.ir.types import as_shaped
from blocklang.ops.scan import Scan, ScanBuffers
from blocklang.passes.placing.nests import Nests


def place_scan(p: Nests, op: Scan) -> None:
    buffers = [p.buffer(as_shaped(r.type), r.name or "scan") for r in op.results]
    p.write_blocks(list(zip(buffers, op.inputs, strict=True)))
    combiner = clone_region(op.combiner, dict(p.scalars))
    p.builder.create(ScanBuffers, buffers, axis=op.axis, reverse=op.reverse, regions=[combiner])
    p.buffers.update(zip(op.results, buffers, strict=True))
