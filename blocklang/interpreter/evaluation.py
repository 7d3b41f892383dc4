"""What evaluators are, and the machine that they run on: one program of a launch.

An evaluator gives an operation its meaning in NumPy. It is registered with `@evaluates(Op)`, takes the
operation and the machine, reads operands as `machine[op.lhs]`, and returns the data of the results: an array,
a tuple of arrays for several results, None for no result.

Bodies of one lane's worth of scalar operations (`iterate`, `lanes`, combine functions) are evaluated for all
lanes at once: a scalar value is then an array that broadcasts to the shape of the lanes, and `machine.mask`
says which lanes are live (None: all). Operations without effects need not know, as every one of them is
defined for every input; operations on memory leave the lanes that are not live alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from blocklang.diagnostics import InterpreterError
from blocklang.interpreter.address_space import AddressSpace
from blocklang.interpreter.dtypes import Array, dtype_of
from blocklang.ir.core import Operation, Region, Value
from blocklang.ir.types import Type

Results = Any  # an array, a sequence of them, or None
Evaluator = Callable[[Any, "Machine"], Results]
EvaluatorT = TypeVar("EvaluatorT", bound=Evaluator)

EVALUATORS: dict[type[Operation], Evaluator] = {}


def evaluates(*operations: type[Operation]) -> Callable[[EvaluatorT], EvaluatorT]:
    """Decorator: register a function as the meaning of the operations."""

    def register(function: EvaluatorT) -> EvaluatorT:
        for operation in operations:
            if operation in EVALUATORS:
                raise ValueError(f"{operation.name} has two evaluators")
            EVALUATORS[operation] = function
        return function

    return register


class Machine:
    """The state of one program: values, memory, place in the grid, live lanes.

    Attributes:
        memory: the arrays of the launch.
        program, grid: this program's index and the extents, per axis.
        arenas: on-chip memory by space, as bytes (placed Tile IR).
        mask: live lanes of the body that is being evaluated; None if all are.
        lanes: the shape of the lanes that are evaluated together.
    """

    def __init__(
        self,
        memory: AddressSpace,
        program: tuple[int, int, int],
        grid: tuple[int, int, int],
        arenas: Mapping[str, Array] | None = None,
    ) -> None:
        self.memory = memory
        self.program = program
        self.grid = grid
        self.arenas = dict(arenas or {})
        self.mask: Array | None = None
        self.lanes: tuple[int, ...] = ()
        self._data: dict[Value, Any] = {}

    def __getitem__(self, value: Value) -> Any:
        """The data of a value: an array, or a buffer."""
        return self._data[value]

    def __setitem__(self, value: Value, data: Any) -> None:
        self._data[value] = data

    def optional(self, value: Value | None) -> Any:
        """The data of an optional operand, None if it is absent."""
        return None if value is None else self[value]

    def evaluate(self, op: Operation) -> None:
        """Evaluate an operation and keep the data of its results."""
        for value, data in zip(op.results, self.results_of(op), strict=True):
            self[value] = data

    def results_of(self, op: Operation) -> Sequence[Any]:
        """Evaluate an operation: the data of each result, checked against its type."""
        data = EVALUATORS[type(op)](op, self)
        results = [] if data is None else list(data) if isinstance(data, (tuple, list)) else [data]
        return [
            self._checked(op, result.type, item) for result, item in zip(op.results, results, strict=True)
        ]

    @staticmethod
    def _checked(op: Operation, type_: Type, data: Any) -> Any:
        if isinstance(data, np.generic):
            data = np.asarray(data)
        if isinstance(data, np.ndarray) and data.dtype != dtype_of(type_):
            raise TypeError(f"the evaluator of {op.name} gave {data.dtype} for {type_}")
        return data

    def run(self, region: Region, arguments: Sequence[Any] = ()) -> Operation:
        """Evaluate a region and return its terminator, whose operands can be read."""
        for value, data in zip(region.args, arguments, strict=True):
            self[value] = data
        for op in region.ops:
            if op.is_terminator:
                return op
            self.evaluate(op)
        raise InterpreterError("a region ends without a terminator")

    def yields(self, region: Region, arguments: Sequence[Any] = ()) -> list[Any]:
        """Evaluate a region and return the data that it yields."""
        return [self[value] for value in self.run(region, arguments).operands]

    @contextmanager
    def under(self, mask: Array | None) -> Iterator[None]:
        """Evaluate with these lanes live."""
        saved, self.mask = self.mask, mask
        try:
            yield
        finally:
            self.mask = saved

    @contextmanager
    def over(self, lanes: tuple[int, ...]) -> Iterator[None]:
        """Evaluate for lanes of this shape: effects take place once for each, uniform operands or not."""
        saved, self.lanes = self.lanes, lanes
        try:
            yield
        finally:
            self.lanes = saved

    def live(self, mask: Array | None) -> Array | None:
        """The live lanes among those where `mask` holds; None if all are."""
        if mask is None or self.mask is None:
            return self.mask if mask is None else mask
        return np.asarray(mask & self.mask)
