"""The meaning of scans and of functions mapped over blocks; the order itself is `scan_lanes`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from blocklang.interpreter.buffers import Buffer
from blocklang.interpreter.dtypes import Array
from blocklang.interpreter.evaluation import Machine, evaluates
from blocklang.interpreter.folds import Combiner
from blocklang.ir.core import Region
from blocklang.ops import scan as ops


def scan_lanes(combine: Combiner, lanes: Sequence[Array], axis: int, *, reverse: bool = False) -> list[Array]:
    """Scan arrays of one shape together by a function, in the order that `blocklang.ops.scan` publishes."""
    grouped = ops.is_grouped(lanes[0].shape, axis)
    current = [np.moveaxis(x, axis, 0) for x in lanes]
    if reverse:
        current = [x[::-1] for x in current]
    scanned = _by_groups(combine, current) if grouped else _one_by_one(combine, current)
    if reverse:
        scanned = [x[::-1] for x in scanned]
    return [np.moveaxis(x, 0, axis) for x in scanned]


def _combined(combine: Combiner, left: list[Array], right: list[Array]) -> list[Array]:
    return [np.broadcast_to(y, x.shape) for y, x in zip(combine(left, right), right, strict=True)]


def _by_groups(combine: Combiner, lanes: Sequence[Array]) -> list[Array]:
    results = [x.copy() for x in lanes]
    count = len(results[0])
    place = np.arange(count) % ops.GROUP
    distance = 1
    while distance < ops.GROUP:
        right = np.flatnonzero(place >= distance)
        left = right - distance
        if right.size:
            new = _combined(combine, [x[left] for x in results], [x[right] for x in results])
            for x, y in zip(results, new, strict=True):
                x[right] = y
        distance *= 2
    for start in range(ops.GROUP, count, ops.GROUP):
        group = slice(start, start + ops.GROUP)
        right_lanes = [x[group] for x in results]
        carry = [
            np.broadcast_to(x[start - 1], r.shape).copy() for x, r in zip(results, right_lanes, strict=True)
        ]
        for x, y in zip(results, _combined(combine, carry, right_lanes), strict=True):
            x[group] = y
    return results


def _one_by_one(combine: Combiner, lanes: Sequence[Array]) -> list[Array]:
    results = [x.copy() for x in lanes]
    for index in range(1, len(results[0])):
        new = _combined(combine, [x[index - 1] for x in results], [x[index] for x in results])
        for x, y in zip(results, new, strict=True):
            x[index] = y
    return results


def region_combiner(machine: Machine, region: Region) -> Combiner:
    """A region as a function of all lanes at once."""

    def combine(left: list[Array], right: list[Array]) -> list[Array]:
        with machine.under(None):
            return machine.yields(region, [*left, *right])

    return combine


@evaluates(ops.Scan)
def scan(op: ops.Scan, machine: Machine) -> list[Array]:
    combine = region_combiner(machine, op.combiner)
    return scan_lanes(combine, [machine[v] for v in op.inputs], op.axis, reverse=op.reverse)


@evaluates(ops.ScanBuffers)
def scan_buffers(op: ops.ScanBuffers, machine: Machine) -> None:
    buffers: list[Buffer] = [machine[v] for v in op.buffers]
    combine = region_combiner(machine, op.combiner)
    scanned = scan_lanes(combine, [b.matrix() for b in buffers], op.axis, reverse=op.reverse)
    for buffer, lanes in zip(buffers, scanned, strict=True):
        buffer.set_matrix(lanes)


@evaluates(ops.Running)
def running(op: ops.Running, machine: Machine) -> list[Array]:
    combine = region_combiner(machine, op.combiner)
    lanes = [np.broadcast_to(machine[v], machine.lanes) for v in op.inputs]
    return scan_lanes(combine, lanes, len(machine.lanes) - 1)


@evaluates(ops.MapElementwise)
def map_elementwise(op: ops.MapElementwise, machine: Machine) -> list[Array]:
    shape = machine[op.inputs[0]].shape
    arguments = [x for v in op.inputs for x in packed(machine[v], op.pack)]
    with machine.under(None):
        yielded = machine.yields(op.body, arguments)
    return unpacked(yielded, shape, op.pack)


def packed(lanes: Array, pack: int) -> list[Array]:
    """Per place in a group of neighbours along the last axis, the elements at that place."""
    return [lanes[..., place::pack] for place in range(pack)]


def unpacked(yielded: Sequence[Array], shape: tuple[int, ...], pack: int) -> list[Array]:
    """The reverse of `packed`, for every `pack` arrays, which may have to be broadcast."""
    results: list[Array] = []
    for first in range(0, len(yielded), pack):
        result = np.empty(shape, yielded[first].dtype)
        for place in range(pack):
            result[..., place::pack] = yielded[first + place]
        results.append(result)
    return results
