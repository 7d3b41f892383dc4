"""A builder that evaluates each operation as it is created: the language's builder in interpreter mode.

The language's functions build operations with the current builder, whichever it is. This one keeps no IR: an
operation is evaluated, its results keep their data (`EagerValue.data`), and it is forgotten.

A function that folds or scans (`tl.reduce`) is the user's own Python. The language asks for a region;
inside of it nothing is known yet, so the function is only noted there (`Deferred`), and called with data
when the operation that holds the region is evaluated: for all pairs of a round at once, or pair by pair
where they part ways.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from blocklang.diagnostics import CompilationError
from blocklang.interpreter.checking import Checks
from blocklang.interpreter.dtypes import Array, constant, dtype_of
from blocklang.interpreter.eager_value import EagerValue
from blocklang.interpreter.evaluation import Machine
from blocklang.interpreter.folds import tree_fold
from blocklang.interpreter.scans import packed, scan_lanes, unpacked
from blocklang.ir import Builder, Operation, Region, Value
from blocklang.ir.declaration import make_operation
from blocklang.ir.types import BlockType, PointerType, ScalarType, Type, element_type, with_shape
from blocklang.language import dtypes as tl
from blocklang.language.casting import cast_element
from blocklang.language.constexpr import unwrap
from blocklang.language.tensor import is_block, tensor, to_tensor
from blocklang.ops.faults import poison
from blocklang.ops.memory import Load, pointee
from blocklang.ops.reduction import ReduceWith
from blocklang.ops.scan import Scan

Element = ScalarType | PointerType


class Divergent(Exception):
    """Lanes that were evaluated together need different code: they must be evaluated one by one."""


class EagerMachine(Machine):
    """A machine whose values carry their data."""

    def __getitem__(self, value: Value) -> Any:
        if isinstance(value, EagerValue):
            return value.data
        if value in self._data:  # of a region that the language wrote, not the user
            return self._data[value]
        raise CompilationError("a value without data: it belongs to a function that has not been called")


class EagerBuilder(Builder):
    """Evaluates what is created, except inside a region.

    Attributes:
        machine: the program that runs.
        functions: functions noted in regions, by region.
        is_poisoning: masked lanes of loads that name no `other` hold what shows.
        checks: look at every operation in debug mode.
    """

    def __init__(
        self, machine: EagerMachine, *, debug: bool = False, nan: bool = False, is_poisoning: bool = False
    ) -> None:
        super().__init__()
        self.machine = machine
        self.debug = debug
        self.is_poisoning = is_poisoning
        self.checks = Checks(machine, nan) if debug else None
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
        checks = None if self.is_per_lane else self.checks
        if checks is not None:
            checks.before(op)
        data = self._with_function(op) if op.regions else self.evaluate(op)
        results = [EagerValue(r.type, x, op) for r, x in zip(op.results, data, strict=True)]
        if checks is not None:
            checks.after(op, results)
        op.results = list(results)
        op.drop_operands()
        return op

    def evaluate(self, op: Operation) -> list[Array]:
        with np.errstate(all="ignore"):
            results = list(self.machine.results_of(op))
        if self.is_poisoning and isinstance(op, Load) and op.mask is not None and op.other is None:
            value = constant(poison(pointee(op.pointer.type)), results[0].dtype)
            results = [np.where(self.machine[op.mask], results[0], value)]
        return results

    def note(self, function: Callable[..., Any]) -> None:
        """Say that the current region is a call of this function."""
        assert self.region is not None
        self.functions[self.region] = function

    def _with_function(self, op: Operation) -> list[Array]:
        """Evaluate an operation whose region is a call of the user's function."""
        function = self.functions.pop(op.regions[0], None)
        if function is None:
            return self.evaluate(op)
        inputs = [self.machine[v] for v in op.operands]
        elements = [element_type(v.type) for v in op.operands]

        def combine(left: list[Array], right: list[Array]) -> list[Array]:
            called = self.call_for_lanes(function, elements * 2, [*left, *right], elements)
            return [x for x, _ in called]

        if isinstance(op, Scan):
            return scan_lanes(combine, inputs, op.axis, reverse=op.reverse)
        assert isinstance(op, ReduceWith)
        return tree_fold(combine, [np.moveaxis(x, op.axis, 0) for x in inputs])

    def call_for_lanes(
        self,
        function: Callable[..., Any],
        elements: Sequence[Element],
        lanes: Sequence[Array],
        results: Sequence[Element] | None = None,
    ) -> list[tuple[Array, Element]]:
        """Call a function of scalars for every lane of arrays of one shape.

        Args:
            elements: the types of the function's arguments.
            results: the types that it is to return; None takes those that it returns for the first lane.

        Returns:
            What it returns, each with its type.
        """
        with self.per_lane():
            return self._call_for_lanes(function, elements, lanes, results)

    def _call_for_lanes(
        self,
        function: Callable[..., Any],
        elements: Sequence[Element],
        lanes: Sequence[Array],
        results: Sequence[Element] | None,
    ) -> list[tuple[Array, Element]]:
        try:
            with self._together():
                return self._call(function, elements, lanes, results)
        except Divergent:
            collected: list[tuple[Array, Element]] = []
            for lane in np.ndindex(lanes[0].shape):
                single = self._call(function, elements, [np.asarray(x[lane]) for x in lanes], results)
                if not collected:
                    results = [e for _, e in single]
                    collected = [(np.empty(lanes[0].shape, dtype_of(e)), e) for e in results]
                for (result, _), (x, _) in zip(collected, single, strict=True):
                    result[lane] = x
            return collected

    @contextmanager
    def _together(self) -> Iterator[None]:
        saved, self._is_together = self._is_together, True
        try:
            yield
        finally:
            self._is_together = saved

    @staticmethod
    def _call(
        function: Callable[..., Any],
        elements: Sequence[Element],
        lanes: Sequence[Array],
        results: Sequence[Element] | None,
    ) -> list[tuple[Array, Element]]:
        """What a function returns, each value with its type."""
        returned = unwrap(function(*(tensor(EagerValue(e, x)) for e, x in zip(elements, lanes, strict=True))))
        values = list(returned) if isinstance(returned, (tuple, list)) else [returned]
        if results is None:
            results = [element_type(to_tensor(v).value.type) for v in values]
        if len(values) != len(results):
            raise CompilationError(
                f"the function returned {len(values)} values where {len(results)} are wanted",
                help="it must return as many values whichever way it goes",
            )
        return [(_data_of_scalar(r, tl.type_from_ir(e)), e) for r, e in zip(values, results, strict=True)]


def _data_of_scalar(result: Any, dtype: Any) -> Array:
    value = to_tensor(result)
    if is_block(value):
        raise CompilationError(f"the function must return scalars, got {value.value.type}")
    return data_of(cast_element(value, dtype))


def data_of(value: tensor) -> Array:
    """The data of a value in interpreter mode."""
    held = value.value
    if not isinstance(held, EagerValue):
        raise CompilationError(f"the data of {held.type} is not known here")
    return held.data


class Deferred:
    """A user's function as the language's functions take it: called in a region, it is noted for later; what
    it returns for the lanes of blocks is known at once.
    """

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

    def mapped(self, blocks: Sequence[tensor], pack: int) -> tensor | tuple[tensor, ...]:
        """What `tl.map_elementwise` gives for blocks of one shape: a tuple if the function returns one."""
        is_single = True

        def noted(*scalars: tensor) -> Any:
            nonlocal is_single
            returned = self.function(*scalars)
            is_single = not isinstance(unwrap(returned), (tuple, list))
            return returned

        arrays = [data_of(b) for b in blocks]
        shape = arrays[0].shape
        elements = [element_type(b.value.type) for b in blocks for _ in range(pack)]
        lanes = [x for array in arrays for x in packed(array, pack)]
        called = self.builder.call_for_lanes(noted, elements, lanes)
        results = unpacked([x for x, _ in called], shape, pack)
        types = [with_shape(e, shape) for _, e in called[::pack]]
        tensors = [tensor(EagerValue(t, x)) for t, x in zip(types, results, strict=True)]
        return tensors[0] if is_single else tuple(tensors)
