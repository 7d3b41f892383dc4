"""The meaning of structured control flow.

For a whole program conditions and bounds are single values, and Python's own control flow does. Inside a body
that is evaluated for all lanes at once a condition may differ between lanes: an `if` then evaluates each arm
for the lanes that take it, a loop goes on until no lane is live, and carried values of lanes that have left
stay as they were.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from blocklang.diagnostics import InterpreterError
from blocklang.interpreter.dtypes import Array
from blocklang.interpreter.evaluation import Machine, evaluates
from blocklang.ops import control as ops


def uniform(lanes: Array, mask: Array | None) -> Array | None:
    """The one value that all live lanes share, as a 0-d array; None if they differ."""
    if lanes.ndim == 0:
        return lanes
    if mask is None:
        flat = lanes.reshape(-1)
    else:
        spread, mask = np.broadcast_arrays(lanes, mask)
        flat = spread[mask]
    return np.asarray(flat[0]) if flat.size and bool((flat == flat[0]).all()) else None


def merge(mask: Array, new: Sequence[Any], old: Sequence[Any]) -> list[Any]:
    """Lane by lane, the new data where `mask` holds."""
    return [np.where(mask, x, y) for x, y in zip(new, old, strict=True)]


@evaluates(ops.If)
def if_(op: ops.If, machine: Machine) -> list[Any]:
    condition = machine[op.condition]
    single = uniform(condition, machine.mask)
    if single is not None:
        return _arm(op, machine, bool(single))
    with machine.under(machine.live(condition)):
        then = _arm(op, machine, True)
    with machine.under(machine.live(np.asarray(~condition))):
        otherwise = _arm(op, machine, False)
    return merge(condition, then, otherwise)


def _arm(op: ops.If, machine: Machine, taken: bool) -> list[Any]:
    region = op.then_region if taken else op.else_region
    return [] if region is None else machine.yields(region)


@evaluates(ops.For)
def for_(op: ops.For, machine: Machine) -> list[Any]:
    bounds = [machine[v] for v in (op.start, op.stop, op.step)]
    shared = [uniform(b, machine.mask) for b in bounds]
    carried = [machine[v] for v in op.inits]
    if any(bound is None for bound in shared):
        return _for_lanes(op, machine, bounds, carried)
    start, stop, step = (int(bound) for bound in shared if bound is not None)
    if step == 0:
        raise InterpreterError("the step of a range is 0", location=op.location)
    for index in range(start, stop, step):
        carried = machine.yields(op.body, [np.array(index, bounds[0].dtype), *carried])
    return carried


def _for_lanes(op: ops.For, machine: Machine, bounds: list[Array], carried: list[Any]) -> list[Any]:
    """Run a loop whose bounds differ between lanes."""
    start, stop, step = np.broadcast_arrays(*bounds)
    live = np.ones(start.shape, np.bool_) if machine.mask is None else machine.mask
    if bool((live & (step == 0)).any()):
        raise InterpreterError("the step of a range is 0", location=op.location)
    triples = zip(start.flat, stop.flat, step.flat, strict=True)
    lengths = [len(range(int(a), int(b), int(c))) if c else 0 for a, b, c in triples]
    rounds = np.array(lengths, np.int64).reshape(start.shape)
    index = start
    for round_ in range(int(np.where(live, rounds, 0).max())):
        mask = np.asarray(live & (round_ < rounds))
        with machine.under(mask):
            carried = merge(mask, machine.yields(op.body, [index, *carried]), carried)
        index = np.asarray(index + step)
    return carried


@evaluates(ops.While)
def while_(op: ops.While, machine: Machine) -> list[Any]:
    carried = [machine[v] for v in op.inits]
    passed: list[Any] | None = None
    live = machine.mask
    while True:
        with machine.under(live):
            end = machine.run(op.before, carried)
            handed = [machine[v] for v in end.segment("values")]
            passed = handed if passed is None or live is None else merge(live, handed, passed)
            condition = machine[end.segment("condition")[0]]
            single = uniform(condition, live)
            if single is not None and not bool(single):
                return passed
            if single is None:
                live = machine.live(condition)
                if live is not None and not live.any():
                    return passed
            with machine.under(live):
                carried = machine.yields(op.after, passed)
