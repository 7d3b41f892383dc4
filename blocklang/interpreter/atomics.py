"""The meaning of atomic operations: live lanes take effect one after another, in row-major order.

Lanes at different addresses cannot see each other and are computed together: the first lanes of all
addresses, then the second ones, and so on. Programs of an interpreted launch run one after another; a lock
keeps launches of other Python threads out.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from blocklang.diagnostics import Location
from blocklang.interpreter.address_space import AddressSpace
from blocklang.interpreter.dtypes import Array, convert_float, is_float, memory_dtype_of, widen
from blocklang.interpreter.evaluation import Machine, evaluates
from blocklang.ops import atomics as ops
from blocklang.ops.memory import pointee

Step = Callable[[Array, list[Array]], Array]  # from elements and what lanes give to new elements

_ONE_AT_A_TIME = threading.Lock()


def _bits(x: Array, kind: str = "u") -> Array:
    return np.ascontiguousarray(x).view(f"{kind}{x.dtype.itemsize}")


def _add(old: Array, value: Array) -> Array:
    total = np.asarray(np.add(widen(old), widen(value)))
    return convert_float(total, old.dtype) if is_float(old.dtype) else total


def _key(x: Array) -> Array:
    """Integers in the order of the floats' bits: the sign first, then the magnitude."""
    if not is_float(x.dtype):
        return x
    bits = _bits(x, "i")
    return np.asarray(np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits))


def _maximum(old: Array, value: Array) -> Array:
    return np.where(_key(value) > _key(old), value, old)


def _minimum(old: Array, value: Array) -> Array:
    return np.where(_key(value) < _key(old), value, old)


_FUNCTIONS: dict[str, Callable[[Array, Array], Array]] = {
    "add": _add,
    "max": _maximum,
    "min": _minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "xchg": lambda old, value: value,
}


@evaluates(ops.AtomicRmw)
def atomic_rmw(op: ops.AtomicRmw, machine: Machine) -> Array:
    function = _FUNCTIONS[op.kind]
    return _update(machine, op, [machine[op.value]], lambda old, given: np.asarray(function(old, given[0])))


@evaluates(ops.AtomicCas)
def atomic_cas(op: ops.AtomicCas, machine: Machine) -> Array:
    def exchange(old: Array, given: list[Array]) -> Array:
        compare, value = given
        return np.where(_bits(old) == _bits(compare), value, old)

    return _update(machine, op, [machine[op.compare], machine[op.value]], exchange)


@evaluates(ops.Fence)
def fence(op: ops.Fence, machine: Machine) -> None:
    """One program runs at a time, in program order: nothing to do."""


def _update(machine: Machine, op: ops.AtomicRmw | ops.AtomicCas, values: list[Array], step: Step) -> Array:
    """Apply `step` to the elements of all live lanes, lane after lane; what each lane found."""
    dtype = memory_dtype_of(pointee(op.pointer.type))
    pointers = machine[op.pointer]
    mask = machine.live(machine.optional(op.mask) if isinstance(op, ops.AtomicRmw) else None)
    live = np.asarray(True if mask is None else mask)
    shape = np.broadcast_shapes(machine.lanes, pointers.shape, live.shape, *(v.shape for v in values))
    chosen = np.broadcast_to(live, shape)
    result = np.zeros(shape, dtype)
    addresses = np.broadcast_to(pointers, shape)[chosen]
    given = [np.broadcast_to(v, shape)[chosen] for v in values]
    with _ONE_AT_A_TIME:
        result[chosen] = _in_order(machine.memory, addresses, given, dtype, step, op.location)
    return result


def _in_order(
    memory: AddressSpace,
    addresses: Array,
    given: list[Array],
    dtype: np.dtype[Any],
    step: Step,
    location: Location,
) -> Array:
    """Let lanes take effect one after another; what each of them found."""
    found = np.zeros(addresses.shape, dtype)
    places, place_of = np.unique(addresses, return_inverse=True)
    if (np.diff(places) < dtype.itemsize).any():  # unaligned elements that share bytes
        for lane in range(len(addresses)):
            one = slice(lane, lane + 1)
            found[one] = _in_order(memory, addresses[one], [v[one] for v in given], dtype, step, location)
        return found
    elements = memory.load(places, None, dtype, location)
    for lanes in _rounds(place_of):
        here = place_of[lanes]
        found[lanes] = elements[here]
        elements[here] = step(elements[here], [v[lanes] for v in given])
    memory.store(places, elements, None, location)
    return found


def _rounds(place_of: Array) -> Iterator[Array]:
    """The lanes that come first at their place, in ascending order, then those that come second, ..."""
    by_place = np.argsort(place_of, kind="stable")
    starts = np.searchsorted(place_of[by_place], place_of[by_place])
    turn = np.empty(len(place_of), np.intp)
    turn[by_place] = np.arange(len(place_of)) - starts
    by_turn = np.argsort(turn, kind="stable")
    yield from np.split(by_turn, np.searchsorted(turn[by_turn], np.arange(1, turn.max(initial=0) + 1)))
