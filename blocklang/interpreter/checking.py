"""What the debug mode looks for while the user's own lines run: the same faults as compiled code reports.

Every value remembers what its data do not tell: a pointer the arguments that it may come from, and how far
its address lies below that of exact arithmetic; an integer its exact value, where it has wrapped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from blocklang.diagnostics import InterpretedCheckError
from blocklang.interpreter.dtypes import Array, is_float, widen
from blocklang.interpreter.eager_value import EagerValue
from blocklang.interpreter.evaluation import EVALUATORS
from blocklang.ir.core import Operation, Value
from blocklang.ir.declaration import make_operation
from blocklang.ir.types import I1, I64, PointerType, ScalarType, element_type, with_element
from blocklang.ops.atomics import Atomic
from blocklang.ops.births import action_of, may_make_nan
from blocklang.ops.creation import Splat
from blocklang.ops.elementwise import Cast, Elementwise, Select
from blocklang.ops.events import index_of
from blocklang.ops.faults import BOUNDS, NAN, OVERFLOW, fault_error
from blocklang.ops.memory import Load, Offset, Store, pointee
from blocklang.ops.order import Gather
from blocklang.ops.reduction import Dot, Reduce
from blocklang.ops.wrapping import MOVES, followed_operands, may_wrap

if TYPE_CHECKING:
    from blocklang.interpreter.eager import EagerMachine


class Checks:
    """Looks at every operation of an interpreted launch before and after it is evaluated.

    Args:
        nan: look for NaN that is made of numbers, too.
    """

    def __init__(self, machine: EagerMachine, nan: bool = False) -> None:
        self.machine = machine
        self.nan = nan

    # ---- before ----

    def before(self, op: Operation) -> None:
        """Refuse an access that is at fault.

        Raises:
            InterpretedCheckError: a live lane has a wrapped address, or one outside of its array.
        """
        if not isinstance(op, (Load, Store, Atomic)):
            return
        pointer: EagerValue = op.segment("pointer")[0]  # type: ignore[assignment]
        mask = op.segment("mask")[0] if op.segments.get("mask", (0, 0))[1] else None
        action = "atomic" if isinstance(op, Atomic) else op.name
        size = pointee(pointer.type).bytes
        live = self.machine.live(self.machine.optional(mask))
        memory = self.machine.memory
        origins = pointer.origins
        arrays = [e for e in memory.extents if origins is None or e.name in origins]
        is_live = np.ones((), np.bool_) if live is None else live
        excess = np.zeros((), np.int64) if pointer.exact is None else pointer.exact
        is_live, excess, addresses = np.broadcast_arrays(is_live, excess, pointer.data)
        bad = is_live & (excess != 0)
        if origins is not None:
            bad = bad | (is_live & ~memory.holds(addresses, size, arrays))
        lanes = np.flatnonzero(bad)
        if not lanes.size:
            return
        first = int(lanes[0])
        address, above = (int(a.reshape(-1)[first].astype(np.int64)) for a in (addresses, excess))
        kind, details = (OVERFLOW, [address, address + above]) if above else (BOUNDS, [address])
        lane = index_of(first, addresses.shape)
        raise fault_error(InterpretedCheckError, kind, action, lane, size, details, arrays, op.location)

    # ---- after ----

    def after(self, op: Operation, results: Sequence[EagerValue]) -> None:
        """Note what the results' data do not tell.

        Raises:
            InterpretedCheckError: it makes a NaN of numbers, and that is looked for.
        """
        if len(results) != 1 or op.regions:
            return
        (result,) = results
        if self.nan:
            result.live = self._live(op, result)
            if may_make_nan(op):
                self._refuse_birth(op, result)
        element = element_type(result.type)
        if isinstance(element, PointerType):
            result.origins = _origins(op)
            result.exact = self._pointer_excess(op, result)
        elif element.is_integer:
            result.exact = self._exact(op, result)

    def _live(self, op: Operation, result: EagerValue) -> Array | None:
        """The lanes of a result that are no padding; None if none is."""
        shape = result.data.shape
        if isinstance(op, Load):
            return None if op.mask is None else np.broadcast_to(self.machine[op.mask], shape)
        if not isinstance(op, (Elementwise, *MOVES)):
            return None
        lives = [getattr(v, "live", None) for v in op.operands]
        if isinstance(op, Select):
            lives = lives[1:]
        if all(live is None for live in lives):
            return None
        arrays = [np.ones((), np.bool_) if live is None else live for live in lives]
        if isinstance(op, Select):
            return np.broadcast_to(np.where(self.machine[op.condition], *arrays), shape)
        if isinstance(op, MOVES):
            shapes = [self.machine[v].shape for v in op.operands]
            filled = [np.broadcast_to(a, s) for a, s in zip(arrays, shapes, strict=True)]
            return self._again(op, op.operands, filled, result, I1)
        return np.broadcast_to(np.logical_and.reduce(np.broadcast_arrays(*arrays)), shape)

    def _refuse_birth(self, op: Operation, result: EagerValue) -> None:
        bad = _is_nan(result.data)
        if not bad.any():
            return
        if isinstance(op, Reduce):
            source: EagerValue = op.source
            taken = _is_nan(source.data) & (True if source.live is None else source.live)
            bad = bad & ~taken.any(axis=op.axis)
        elif isinstance(op, Dot):
            bad = bad & ~_is_nan(self.machine[op.acc])
            bad = bad & ~(_is_nan(self.machine[op.a]).any() | _is_nan(self.machine[op.b]).any())
        else:
            for operand in op.operands:
                bad = bad & ~_is_nan(self.machine[operand])
            bad = bad & (True if result.live is None else result.live)
        lanes = np.flatnonzero(bad)
        if lanes.size:
            lane = index_of(int(lanes[0]), result.data.shape)
            raise fault_error(InterpretedCheckError, NAN, action_of(op), lane, 0, [], [], op.location)

    def _pointer_excess(self, op: Operation, result: EagerValue) -> Array | None:
        """How many bytes the exact addresses lie above; None if they are the same."""
        if isinstance(op, Offset):
            terms = [] if _exact_of(op.pointer) is None else [op.pointer.exact]
            if _exact_of(op.offset) is not None:
                lost = op.offset.exact - op.offset.data.astype(np.int64)
                terms.append(lost * pointee(op.pointer.type).bytes)
            return sum(terms[1:], terms[0]) if terms else None
        followed = followed_operands(op)
        if all(_exact_of(v) is None for v in followed):
            return None
        excess = [
            np.zeros(self.machine[v].shape, np.int64) if _exact_of(v) is None else v.exact  # type: ignore[attr-defined]
            for v in followed
        ]
        return self._again(op, followed, excess, result)

    def _exact(self, op: Operation, result: EagerValue) -> Array | None:
        """The exact numbers; None if they are those of the data."""
        followed = followed_operands(op)
        if not may_wrap(op) and all(_exact_of(v) is None for v in followed):
            return None
        exact = [
            self.machine[v].astype(np.int64) if _exact_of(v) is None else v.exact  # type: ignore[attr-defined]
            for v in followed
        ]
        numbers = exact[0] if isinstance(op, Cast) else self._again(op, followed, exact, result)
        return None if np.array_equal(numbers, result.data) else numbers

    def _again(
        self,
        op: Operation,
        others: Sequence[Value],
        data: Sequence[Array],
        result: EagerValue,
        element: ScalarType = I64,
    ) -> Array:
        """Evaluate an operation with other data, of another element, for some of its operands."""
        given = iter(EagerValue(with_element(v.type, element), x) for v, x in zip(others, data, strict=True))
        operands = [next(given) if any(v is o for o in others) else v for v in op.operands]
        types = [with_element(result.type, element)] if isinstance(op, (Splat, Cast)) else []
        again = make_operation(type(op), *operands, location=op.location, result_types=types, **op.attributes)
        computed = EVALUATORS[type(op)](again, self.machine)
        again.drop_operands()
        return np.asarray(computed)


def _is_nan(data: Array) -> Array:
    numbers = widen(data)
    return np.asarray(np.isnan(numbers) if is_float(numbers.dtype) else np.zeros(data.shape, np.bool_))


def _exact_of(value: Value) -> Array | None:
    return getattr(value, "exact", None)


def _origins(op: Operation) -> frozenset[str] | None:
    """The arguments that the pointers which an operation makes may come from; None for any."""
    match op:
        case Offset():
            sources = [op.pointer]
        case Select():
            sources = [op.if_true, op.if_false]
        case Cast() | Gather():
            sources = [op.source]
        case _ if isinstance(op, MOVES):
            sources = list(op.operands)
        case _:
            return None
    found: set[str] = set()
    for source in sources:
        origins = getattr(source, "origins", None)
        if origins is None:
            return None
        found |= origins
    return frozenset(found)
