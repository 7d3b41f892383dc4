"""Scans, and functions of scalars that are mapped over blocks.

The published order of a scan depends on extent and axis alone (docs/semantics.md). A dot is the function, the
left operand first, and x the elements:
- If the axes after the scanned one have extent 1 altogether: neighbours form groups of 16. In a group t
  starts as x; then for d = 1, 2, 4, 8, all at once, t[i] becomes t[i - d] . t[i] for i >= d. The result is
  t in the first group, and carry . t[i] in any other, the carry being the last result of the group before.
- Along any other axis: y[0] = x[0], y[i] = y[i - 1] . x[i].
- reverse=true is the same on the mirrored axis: i counts from the end, and results stay at their elements'
  places. What has been scanned is the left operand then too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from blocklang.ir.core import Operation, Region, Value
from blocklang.ir.declaration import Effect, attribute, operand, operation, region, result
from blocklang.ir.types import element_type, shape_of
from blocklang.ops.constraints import Block, Buffer, ScalarOrPointer
from blocklang.ops.tile import PLACED, TILE, TileOperation

GROUP = 16  # neighbours that a scan combines in rounds


def is_grouped(shape: tuple[int, ...], axis: int) -> bool:
    """True if a scan along `axis` goes by groups: no axis after it has lanes."""
    return math.prod(shape[axis + 1 :]) == 1


def _check_combiner(values: Sequence[Value], combiner: Region) -> None:
    elements = [element_type(v.type) for v in values]
    if [a.type for a in combiner.args] != elements * 2:
        raise ValueError("the combiner takes the elements of the left, then of the right operand")
    if combiner.terminator is None or [v.type for v in combiner.terminator.operands] != elements:
        raise ValueError("the combiner yields one scalar per input")


@operation("scan")
class Scan(Operation):
    """Running results along an axis, the own element included, with a function of 2k scalars (k of what has
    been scanned, then k of an element) to k.

    %y = scan %x, axis=0 : block<128xf32> {
      (%a: f32, %b: f32):
      %c = add %a, %b : f32
      yield %c
    }
    """

    inputs = operand(Block, variadic=True)
    axis = attribute(int)
    reverse = attribute(bool, default=False)
    outputs = result(variadic=True)
    combiner = region()
    levels = frozenset({"block", "tile"})
    block_levels = levels

    def verify_op(self) -> None:
        types = [v.type for v in self.inputs]
        if [r.type for r in self.results] != types:
            raise ValueError(f"results must be {', '.join(map(str, types))}")
        if len({shape_of(t) for t in types}) != 1:
            raise ValueError("inputs must have one shape")
        if not 0 <= self.axis < len(shape_of(types[0])):
            raise ValueError(f"axis {self.axis} is out of range for rank {len(shape_of(types[0]))}")
        _check_combiner(self.inputs, self.combiner)


@operation("running")
class Running(TileOperation):
    """One lane of a scan along the last axis, forwards, of the iteration space around it: the results of
    the lanes up to the own one. In placed form that axis is the index of the `lanes` loop around, which
    starts at 0.

    %y = running %x : f32 {
      (%a: f32, %b: f32):
      %c = add %a, %b : f32
      yield %c
    }
    """

    inputs = operand(ScalarOrPointer, variadic=True)
    outputs = result(variadic=True)
    combiner = region()
    effects = frozenset({Effect.READ_BUFFER})  # of what the lanes before have left: it stays in its loop
    levels = TILE | PLACED

    def verify_op(self) -> None:
        if [r.type for r in self.results] != [v.type for v in self.inputs]:
            raise ValueError("results have the types of the inputs")
        _check_combiner(self.inputs, self.combiner)


@operation("map_elementwise")
class MapElementwise(Operation):
    """Call a function of scalars for every lane, or for every `pack` neighbours along the last axis.

    The region takes `pack` scalars of the first input, then of the second, and so on, and yields `pack`
    scalars for each result. It reads memory at most.

    %y = map_elementwise %x : block<128xf32> {
      (%a: f32):
      %b = mul %a, %a : f32
      yield %b
    }
    """

    inputs = operand(Block, variadic=True)
    pack = attribute(int, default=1)
    outputs = result(variadic=True)
    body = region()

    def verify_op(self) -> None:
        shapes = {shape_of(v.type) for v in (*self.inputs, *self.results)}
        if len(shapes) != 1:
            raise ValueError("inputs and results must have one shape")
        (shape,) = shapes
        if self.pack < 1 or not shape or shape[-1] % self.pack:
            raise ValueError(f"{self.pack} does not divide the last extent of {shape}")
        taken = [element_type(v.type) for v in self.inputs for _ in range(self.pack)]
        given = [element_type(r.type) for r in self.results for _ in range(self.pack)]
        if [a.type for a in self.body.args] != taken:
            raise ValueError("the region takes `pack` elements of each input")
        if [v.type for v in self.body.terminator.operands] != given:
            raise ValueError("the region yields `pack` elements of each result")
        if any(inner.effects - {Effect.READ} for inner in self.body.walk()):
            raise ValueError("the region may read memory, and nothing else")


@operation("scan_buffers")
class ScanBuffers(TileOperation):
    """Scan row-major buffers of one shape in place, along an axis, as `scan` does.

    scan_buffers %buf, axis=0 {
      (%a: f32, %b: f32):
      %c = add %a, %b : f32
      yield %c
    }
    """

    buffers = operand(Buffer, variadic=True)
    axis = attribute(int)
    reverse = attribute(bool, default=False)
    combiner = region()
    effects = frozenset({Effect.READ_BUFFER, Effect.WRITE_BUFFER})
    levels = PLACED

    def verify_op(self) -> None:
        if len({shape_of(b.type) for b in self.buffers}) != 1:
            raise ValueError("buffers must have one shape")
        _check_combiner(self.buffers, self.combiner)
