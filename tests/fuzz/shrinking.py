"""Make a failing case small, while it fails in the same way.

First the record of choices that made it shrinks (plainer decisions, fewer of them), then the kernel
itself: stores go, values become constants or one of their operands, masks go, loops and branches open.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from blocklang.diagnostics import BlocklangError
from blocklang.ir.builder import Builder
from blocklang.ir.core import Kernel, Operation, Region, Value
from blocklang.ir.declaration import Effect
from blocklang.ir.parser import parse_kernel
from blocklang.ir.rewriting import inline_region
from blocklang.ir.types import ScalarType, element_type
from blocklang.ir.verifier import verify
from blocklang.ops.control import For, If
from blocklang.ops.creation import Constant
from blocklang.ops.memory import Load, Store
from tests.fuzz.cases import Case, Pointer
from tests.fuzz.execution import EAGER, Failure, InvalidCase
from tests.fuzz.generator import make_case, make_source_case

CheckFunction = Callable[[Case], Failure | None]
Edit = Callable[[], object]


class Shrinker:
    """Shrinks one case.

    Attributes:
        case: the smallest so far.
        failure: how it fails.
    """

    def __init__(self, case: Case, failure: Failure, check: CheckFunction, seconds: float = 120.0) -> None:
        self.case = case
        self.failure = failure
        self._check = check
        self._kind = _kind(failure)
        self._deadline = time.monotonic() + seconds
        self._tried: set[object] = set()

    def run(self) -> Case:
        self._shrink_choices(until=time.monotonic() + (self._deadline - time.monotonic()) / 2)
        self._shrink_grid()
        if self.failure.stage != EAGER:
            self._accept(replace(self.case, source="", constants=()))
            self._shrink_kernel()
        return self.case

    def _is_over(self) -> bool:
        return time.monotonic() > self._deadline

    def _accept(self, case: Case) -> bool:
        """Take `case` if it fails in the same way."""
        key = (case.kernel, case.grid, case.memories, case.source)
        if key in self._tried or self._is_over():
            return False
        self._tried.add(key)
        try:
            failure = self._check(case)
        except InvalidCase:
            return False
        if failure is None or _kind(failure) != self._kind:
            return False
        self.case, self.failure = case, failure
        return True

    # ---- choices ----

    def _shrink_choices(self, until: float) -> None:
        size = max(len(self.case.choices) // 2, 1)
        while size and time.monotonic() < until:
            position = 0
            while position < len(self.case.choices) and time.monotonic() < until:
                if not self._without(position, size):
                    position += size
            size //= 2

    def _without(self, position: int, size: int) -> bool:
        choices = self.case.choices
        shorter = choices[:position] + choices[position + size :]
        plainer = (
            choices[:position] + (0,) * len(choices[position : position + size]) + choices[position + size :]
        )
        return self._accept_choices(shorter) or (
            any(choices[position : position + size]) and self._accept_choices(plainer)
        )

    def _accept_choices(self, choices: tuple[int, ...]) -> bool:
        try:
            case = make_source_case(choices) if self.case.source else make_case(choices)
        except InvalidCase:
            return False
        if (len(case.choices), case.choices) >= (len(self.case.choices), self.case.choices):
            return False
        return self._accept(case)

    def _shrink_grid(self) -> None:
        if self.case.grid != (1,):
            self._accept(replace(self.case, grid=(1,)))

    # ---- the kernel ----

    def _shrink_kernel(self) -> None:
        progress = True
        while progress and not self._is_over():
            progress = False
            position = 0
            while not self._is_over():
                found = self._edited(position)
                if found is None:
                    break
                if self._accept(found):
                    progress = True
                else:
                    position += 1

    def _edited(self, position: int) -> Case | None:
        """The case with one edit; the unchanged case if the edit is not valid; None past the last."""
        kernel = parse_kernel(self.case.kernel)
        edit = next((e for i, e in enumerate(_edits(kernel)) if i == position), None)
        if edit is None:
            return None
        try:
            edit()
            _sweep(kernel)
            case = _without_unused_arguments(self.case, kernel)
            verify(kernel)
        except (ValueError, AssertionError, BlocklangError):
            return self.case
        return case


def _kind(failure: Failure) -> tuple[str, str]:
    """What must stay the same: the stage, and the class of an error or of a difference."""
    words = failure.reason.split(":")[0].split()
    return failure.stage, " ".join(words[:2])


def _edits(kernel: Kernel) -> Iterator[Edit]:
    operations = list(kernel.walk())
    stores = [op for op in operations if isinstance(op, Store)]
    size = len(stores) // 2
    while size:  # many at once first
        yield from (partial(_erase, stores[i : i + size]) for i in range(0, len(stores), size))
        size //= 2
    for op in reversed(operations):
        if isinstance(op, If):
            yield from (partial(_open, op, region, {}) for region in op.regions)
        if isinstance(op, For):
            yield partial(_open, op, op.body, dict(zip(op.body.args, [op.start, *op.inits], strict=True)))
        if isinstance(op, (Load, Store)) and op.mask is not None:
            yield partial(_drop_mask, op)
        if isinstance(op, Load) and op.other is not None:
            yield partial(op.set_segment, "other", [])
    for op in reversed(operations):
        for result in op.results:
            if not result.uses:
                continue
            if isinstance(element_type(result.type), ScalarType) and not isinstance(op, Constant):
                yield partial(_make_constant, op, result)
            for operand in op.operands:
                if operand.type == result.type:
                    yield partial(result.replace_all_uses_with, operand)


def _erase(operations: Sequence[Operation]) -> None:
    for op in operations:
        op.erase()


def _open(op: Operation, region: Region, arguments: dict[Value, Value]) -> None:
    op.replace_with(*inline_region(Builder.before_op(op), region, arguments))


def _drop_mask(op: Operation) -> None:
    op.set_segment("mask", [])
    if isinstance(op, Load):
        op.set_segment("other", [])


def _make_constant(op: Operation, result: Value) -> None:
    element = element_type(result.type)
    assert isinstance(element, ScalarType)
    one = 1.0 if element.is_float else True if element.bits == 1 else 1
    constant = Builder.before_op(op).value(Constant, value=one, result_types=[result.type])
    result.replace_all_uses_with(constant)


def _sweep(kernel: Kernel) -> None:
    """Erase what nobody reads."""
    erased = True
    while erased:
        erased = False
        for op in reversed(list(kernel.walk())):
            dead = not op.is_terminator and not any(r.uses for r in op.results)
            if dead and op.parent is not None and not op.has_effect(Effect.WRITE):
                op.erase()
                erased = True


def _without_unused_arguments(case: Case, kernel: Kernel) -> Case:
    arguments = list(case.arguments)
    for position in reversed(range(len(arguments))):
        if not kernel.args[position].uses:
            kernel.body.remove_argument(position)
            del kernel.argument_attributes[position], arguments[position]
    used = sorted({a.memory for a in arguments if isinstance(a, Pointer)})
    renumbered = tuple(
        replace(a, memory=used.index(a.memory)) if isinstance(a, Pointer) else a for a in arguments
    )
    return replace(
        case,
        kernel=str(kernel),
        arguments=renumbered,
        memories=tuple(case.memories[i] for i in used),
        choices=(),
    )
