"""Schedules perturbed at random. A schedule changes time and memory, never a bit of a result."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from blocklang.analysis.memory_hazards import has_atomic
from blocklang.ir.core import Kernel, Operation
from blocklang.ir.types import BlockType, ScalarType, element_type
from blocklang.ops.tile import Contract, Iterate
from blocklang.passes.schedule import (
    ContractSchedule,
    Labels,
    LoopSchedule,
    Schedule,
    choose_schedule,
    is_producer,
    is_root,
    is_running,
)
from blocklang.target import Target

_WIDTHS = (1, 2, 4, 8, 16, 32, 64)


@dataclass(frozen=True)
class PerturbedSchedule:
    """Chooses the usual schedule and changes some of it, the same way for the same labels.

    Attributes:
        seed: of the changes.
    """

    seed: int

    def __call__(self, kernel: Kernel, target: Target) -> Schedule:
        schedule = choose_schedule(kernel, target)
        labels = Labels(kernel)
        schedule.copy_width = self._random("copies").choice(_WIDTHS)
        for op in kernel.walk():
            if isinstance(op, Contract):
                label = labels.of(op)
                schedule.contracts[label] = self._contract(label, op, target, schedule.contracts[label])
            elif isinstance(op, Iterate):
                label = labels.of(op)
                if _reads_a_running_value(op):  # its loops take whole groups, along the axis of the scan
                    continue
                if label in schedule.loops:  # others are computed where they are read
                    schedule.loops[label] = self._loop(label, op, schedule.loops[label])
                if not is_root(op):
                    self._keep(schedule, labels, op)
        return schedule

    def _random(self, label: str) -> random.Random:
        return random.Random(f"{self.seed} {label}")

    def _contract(
        self, label: str, op: Contract, target: Target, chosen: ContractSchedule
    ) -> ContractSchedule:
        rng = self._random(label)
        form = rng.choice([chosen.form, "fma"])
        if form == "tiles":
            return chosen
        lanes = target.vector_bytes // (8 if str(op.acc.type.element) == "f64" else 4)
        rows, columns = rng.randint(1, min(6, op.acc.type.shape[0])), lanes * rng.randint(1, 2)
        return ContractSchedule(rows, columns, form, rng.choice([chosen.tiles, (0, 0), (1, 2)]))

    def _loop(self, label: str, op: Iterate, loop: LoopSchedule) -> LoopSchedule:
        rng = self._random(label)
        order = loop.order
        if _may_reorder(op) and rng.random() < 0.5:
            order = tuple(rng.sample(order, len(order)))
        elif op.combine and rng.random() < 0.5:  # the lane axis stays
            order = (*rng.sample(order[:-1], len(order) - 1), order[-1])
        widths = [w for w in _WIDTHS if w >= 32] if _is_float_sum(op) else _WIDTHS
        return LoopSchedule(order, rng.choice(widths) if rng.random() < 0.7 else loop.width)

    def _keep(self, schedule: Schedule, labels: Labels, op: Iterate) -> None:
        for value in op.results:
            label = labels.of_value(value)
            draw = self._random(f"keep {label}").random()
            if is_producer(value) and isinstance(value.type, BlockType) and draw < 0.2:
                schedule.kept.setdefault(label, "perturbed")
                order = tuple(range(len(op.space)))
                schedule.loops.setdefault(
                    labels.of(op), LoopSchedule(order, self._random(label).choice(_WIDTHS))
                )
            elif schedule.kept.get(label, "").startswith("dear") and draw > 0.7:
                del schedule.kept[label]


def _reads_a_running_value(op: Iterate) -> bool:
    """True if `op`, or what it may compute in its own loops, scans lanes as they come."""
    stack: list[Operation | None] = [op]
    seen: set[Operation] = set()
    while stack:
        current = stack.pop()
        if isinstance(current, Iterate) and current not in seen:
            seen.add(current)
            if is_running(current):
                return True
            stack += [value.defining_op for value in current.inputs]
    return False


def _is_float_sum(op: Iterate) -> bool:
    element = element_type(op.results[0].type) if op.results else None
    return op.combine == "sum" and isinstance(element, ScalarType) and element.is_float


def _may_reorder(op: Iterate) -> bool:
    """True if any axis may be walked by lanes. Not for stores (of several lanes at one address the last
    wins), atomics (lanes follow one another), sums of floats and functions of the user (their order is
    defined along the axis).
    """
    if op.combine:
        return (
            not _is_float_sum(op) and op.combine != "custom" and len(op.space) > 1 and math.prod(op.space) > 1
        )
    return bool(op.results) and not has_atomic(op)
