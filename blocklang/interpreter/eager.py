"""A builder that evaluates each operation as it is created: the language's builder in interpreter mode.

The language's functions build operations with the current builder, whichever it is. This one keeps no IR: an
operation is evaluated, its results keep their data (`EagerValue.data`), and it is forgotten.

A function that folds (`tl.reduce`) is the user's own Python. The language asks for a region; inside of it
nothing is known yet, so the function is only noted there (`Deferred`), and called with data when the
operation that holds the region is evaluated: for all pairs of a round at once, or pair by pair where they
part ways.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from blocklang.diagnostics import CompilationError
from blocklang.interpreter.dtypes import Array, dtype_of
from blocklang.interpreter.evaluation import Machine
from blocklang.interpreter.folds import tree_fold
from blocklang.ir import Builder, Operation, Region, Value
from blocklang.ir.declaration import make_operation
from blocklang.ir.types import BlockType, PointerType, ScalarType, Type, element_type
from blocklang.language.casting import cast_element
from blocklang.language.tensor import is_block, tensor, to_tensor
from blocklang.ops.reduction import ReduceWith

NOWHERE = Region()


class EagerValue(Value):
    """A value that has been computed.

    Attributes:
        data: an array of the value's dtype and shape. While a function is called for many lanes at once, a
            scalar's array holds one element per lane.
    """

    __slots__ = ("data",)

    def __init__(self, type: Type, data: Array, owner: Operation | Region = NOWHERE) -> None:
        super().__init__(type, owner)
        self.data = data


class Divergent(Exception):
    """Lanes that were evaluated together need different code: they must be evaluated one by one."""


class EagerMachine(Machine):
    """A machine whose values carry their data."""

    def __getitem__(self, value: Value) -> Any:
        if isinstance(value, EagerValue):
            return value.data
        raise CompilationError("a value without data: it belongs to a function that has not been called")


class EagerBuilder(Builder):
    """Evaluates what is created, except inside a region.

    Attributes:
        machine: the program that runs.
        functions: functions noted in regions, by region.
    """

    def __init__(self, machine: EagerMachine) -> None:
        super().__init__()
        self.machine = machine
        self.functions: dict[Region, Callable[..., Any]] = {}
        self._is_together = False

    def create(
        self,
        cls: type[Operation],
        *operands: Value | Iterable[Value],
        result_types: Iterable[Type] = (),
        regions: Iterable[Region] = (),
        name: str = "",
        **named: Any,
    ) -> Operation:
        """Create and evaluate an operation; in a region, only create it."""
        if self.region is not None:
            return super().create(
                cls, *operands, result_types=result_types, regions=regions, name=name, **named
            )
        op = make_operation(
            cls, *operands, location=self.location, result_types=result_types, regions=regions, **named
        )
        if self._is_together and any(isinstance(r.type, BlockType) for r in op.results):
            op.drop_operands()
            raise Divergent
        data = self._fold(op) if isinstance(op, ReduceWith) else self.evaluate(op)
        op.results = [EagerValue(r.type, x, op) for r, x in zip(op.results, data, strict=True)]
        op.drop_operands()
        return op

    def evaluate(self, op: Operation) -> list[Array]:
        with np.errstate(all="ignore"):
            return list(self.machine.results_of(op))

    def note(self, function: Callable[..., Any]) -> None:
        """Say that the current region is a call of this function."""
        assert self.region is not None
        self.functions[self.region] = function

    def _fold(self, op: ReduceWith) -> list[Array]:
        function = self.functions.pop(op.combiner, None)
        if function is None:
            return self.evaluate(op)
        elements = [element_type(v.type) for v in op.inputs]

        def combine(left: list[Array], right: list[Array]) -> list[Array]:
            return self._call_for_lanes(function, elements, [*left, *right])

        return tree_fold(combine, [np.moveaxis(self.machine[v], op.axis, 0) for v in op.inputs])

    def _call_for_lanes(
        self, function: Callable[..., Any], elements: list[ScalarType | PointerType], lanes: list[Array]
    ) -> list[Array]:
        """Call a function of 2k scalars that returns k for every lane of 2k arrays."""
        try:
            with self._together():
                return self._call(function, elements, lanes)
        except Divergent:
            results = [np.empty(lanes[0].shape, dtype_of(e)) for e in elements]
            for lane in np.ndindex(lanes[0].shape):
                single = self._call(function, elements, [np.asarray(x[lane]) for x in lanes])
                for result, x in zip(results, single, strict=True):
                    result[lane] = x
            return results

    @contextmanager
    def _together(self) -> Iterator[None]:
        saved, self._is_together = self._is_together, True
        try:
            yield
        finally:
            self._is_together = saved

    @staticmethod
    def _call(
        function: Callable[..., Any], elements: list[ScalarType | PointerType], lanes: list[Array]
    ) -> list[Array]:
        values = [tensor(EagerValue(e, x)) for e, x in zip(elements * 2, lanes, strict=True)]
        returned = function(*values)
        results = list(returned) if isinstance(returned, (tuple, list)) else [returned]
        if len(results) != len(elements):
            raise CompilationError(
                f"combine_fn returned {len(results)} values for {len(elements)} blocks",
                help="it takes the elements of the left, then of the right side, and returns one side's",
            )
        return [
            _data_of_scalar(r, like.dtype) for r, like in zip(results, values[: len(elements)], strict=True)
        ]


def _data_of_scalar(result: Any, dtype: Any) -> Array:
    value = to_tensor(result)
    if is_block(value):
        raise CompilationError(f"combine_fn must return scalars, got {value.value.type}")
    return data_of(cast_element(value, dtype))


def data_of(value: tensor) -> Array:
    """The data of a value in interpreter mode."""
    held = value.value
    if not isinstance(held, EagerValue):
        raise CompilationError(f"the data of {held.type} is not known here")
    return held.data


class Deferred:
    """A user's function as the language's functions take it: called in a region, it is noted for later."""

    def __init__(self, builder: EagerBuilder, function: Callable[..., Any]) -> None:
        self.builder = builder
        self.function = function

    def __call__(self, *arguments: Any) -> Any:
        if self.builder.region is None:
            return self.function(*arguments)
        self.builder.note(self.function)
        # What stands in the region does not matter, but it must have the types of a result.
        left = arguments[: len(arguments) // 2]
        return left[0] if len(left) == 1 else tuple(left)
