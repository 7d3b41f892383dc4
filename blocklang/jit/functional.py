"""A kernel as a function: which of its parameters are inputs, which outputs, and what the rest are bound to.

The doors to PyTorch and JAX make operators of it: they get tensors or arrays and give new ones, while a
kernel gets memory and writes to it.

    KernelFunction(add, outputs={"out": "x"}, values={"n": lambda x: x.size, "BLOCK": 1024})

is add(x, y) -> out for a kernel add(x, y, out, n, BLOCK). What an output looks like is that world's to say:
here it is the name of an input that it is like, or a function. A function is given what its parameters name:
inputs, and values bound before it.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from blocklang.diagnostics import LaunchError, Location
from blocklang.jit.function import JITFunction
from blocklang.jit.parameters import NO_DEFAULT, Parameter

_INSIDE = frozenset({"blocklang", "torch", "jax", "jaxlib", "contextlib", "functools"})


class KernelFunction:
    """A kernel with the roles of its parameters.

    Args:
        kernel: a function under `@jit`.
        outputs: for each parameter that is an output, an input that it is like, or a function for what it is.
        updates: inputs that the kernel changes.
        values: what the other parameters are: a value, or a function for it.
        location: of whoever asks, for errors.

    Attributes:
        inputs: the parameters that are left, in order.

    Raises:
        LaunchError: a name is no parameter, has two roles, or has none and needs one.
    """

    def __init__(
        self,
        kernel: object,
        outputs: Mapping[str, str | Callable[..., Any]],
        updates: Sequence[str],
        values: Mapping[str, Any],
        location: Location | None,
    ) -> None:
        if not isinstance(kernel, JITFunction):
            raise LaunchError(
                f"an operator is made of a kernel, not of a {type(kernel).__name__}",
                location=location,
                help="pass a function under `@blocklang.jit`",
            )
        self.kernel = kernel
        self.outputs = dict(outputs)
        self.updates = tuple(updates)
        self.values = dict(values)
        self.location = location
        self.inputs: tuple[Parameter, ...] = tuple(p for p in kernel.params if self._is_input(p))
        self._check()

    def _is_input(self, parameter: Parameter) -> bool:
        if parameter.name in self.outputs or parameter.name in self.values:
            return False
        if parameter.default is not NO_DEFAULT:
            return False
        if parameter.is_constexpr:
            raise self.error(
                f"constexpr parameter {parameter.name!r} of {self.kernel.signature.name} has no value",
                f"write {parameter.name}=..., a value or a function of the inputs",
            )
        return True

    def _check(self) -> None:
        names = [p.name for p in self.inputs]
        for name in (*self.outputs, *self.values):
            if name not in self.kernel.signature.by_name:
                raise self.error(
                    f"{self.kernel.signature.name} has no parameter {name!r}",
                    f"the kernel is {self.kernel.signature}",
                )
            if name in self.outputs and name in self.values:
                raise self.error(f"{name!r} is an output and has a value too", "leave out one of them")
        likes = [like for like in self.outputs.values() if isinstance(like, str)]
        for name in (*self.updates, *likes):
            if name not in names:
                raise self.error(
                    f"{name!r} is no input of this operator", f"the inputs are {', '.join(names) or 'none'}"
                )
        if not self.outputs and not self.updates:
            raise self.error(
                "an operator without outputs and updates does nothing that anybody sees",
                "name what the kernel writes: outputs={'out': 'x'}, like input x, or updates=('x',)",
            )

    def error(self, message: str, help: str | None = None, location: Location | None = None) -> LaunchError:
        """A LaunchError at a line, by default the operator's."""
        return LaunchError(message, location=location or self.location, help=help)

    def outputs_for(self, inputs: Mapping[str, Any], like: Callable[[Any], Any]) -> dict[str, Any]:
        """What each output is, given the inputs; `like` makes one that is like an input."""
        return {
            name: like(inputs[rule]) if isinstance(rule, str) else self._call(name, rule, inputs)
            for name, rule in self.outputs.items()
        }

    def values_for(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """The values of all parameters that are no inputs or outputs, given the inputs."""
        known = dict(inputs)
        for name, value in self.values.items():
            known[name] = self._call(name, value, known) if _is_rule(value) else value
        return {name: known[name] for name in self.values}

    def check_writes(self, arguments: Mapping[str, Any]) -> None:
        """Raise a LaunchError if the kernel stores to an input that is not said to change."""
        for written in self.kernel.written_arrays(**arguments):
            name = written.partition(".")[0]
            if name not in self.outputs and name not in self.updates:
                raise self.error(
                    f"{self.kernel.signature.name} stores to input {name!r}, which is not said to change",
                    "an operator has to say what it changes, or values from before are reused",
                )

    def _call(self, name: str, rule: Callable[..., Any], known: Mapping[str, Any]) -> Any:
        wanted = list(inspect.signature(rule).parameters)
        unknown = [each for each in wanted if each not in known]
        if unknown:
            raise self.error(
                f"the function for {name!r} asks for {unknown[0]!r}, which is not known there",
                f"its parameters can be {', '.join(known)}",
            )
        return rule(*(known[each] for each in wanted))


def _is_rule(value: object) -> bool:
    """True for a function of the inputs; a kernel or a helper that is passed on as a constant is none."""
    return inspect.isfunction(value)


def named_results(word: str, values: Any, count: int) -> dict[str, Any]:
    """How a backward names results or their gradients: `grad` of one, `grad_0`, `grad_1`, ... of several."""
    if count == 1:
        return {word: values}
    return {f"{word}_{index}": value for index, value in enumerate(values)}


def caller_location() -> Location | None:
    """The innermost line that belongs neither to blocklang nor to the framework that called it."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] not in _INSIDE:
            line, end, column, end_column = _positions(frame.f_code, frame.f_lasti)
            file = frame.f_code.co_filename
            return Location(file, line or frame.f_lineno, column or 0, end or 0, end_column or 0)
        if frame.f_back is None:
            break
        frame = frame.f_back
    return None


def _positions(code: Any, instruction: int) -> tuple[int | None, int | None, int | None, int | None]:
    positions = list(code.co_positions())
    return positions[instruction // 2] if instruction // 2 < len(positions) else (None, None, None, None)
