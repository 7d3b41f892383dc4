"""Driver two: run the user's own function, line by line, with every operation evaluated as it is reached.

`breakpoint()` stops on the user's line, and an error points at it. Programs run one
after another in ascending linear id, axis 0 fastest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType, TracebackType
from typing import Any, NoReturn

from blocklang.diagnostics import (
    BlocklangError,
    CheckError,
    CompilationError,
    Location,
    as_interpreter_error,
)
from blocklang.interpreter.address_space import AddressSpace
from blocklang.interpreter.eager import EagerBuilder, EagerMachine
from blocklang.interpreter.eager_value import EagerValue
from blocklang.interpreter.rewriting import Code
from blocklang.interpreter.rules import CodeOf, Rules
from blocklang.interpreter.run import argument_data, grid_extents, program_index
from blocklang.ir.types import PointerType, ScalarType
from blocklang.language.constexpr import constexpr
from blocklang.language.context import use_builder
from blocklang.language.tensor import tensor
from blocklang.ops.faults import program_note


@dataclass(frozen=True)
class LaunchArgument:
    """An argument of an interpreted launch.

    Attributes:
        value: for a pointer an array (NumPy's, or a description as `address_space.GlobalArray`), for a
            scalar a number, for a compile-time value anything.
        type: of the run-time argument; None for a compile-time value.
        items: of a tuple, an argument for each item; `value` is then its class.
    """

    value: Any
    type: ScalarType | PointerType | None = None
    items: tuple[LaunchArgument, ...] | None = None


def interpret_launch(
    code: Code,
    arguments: Mapping[str, LaunchArgument],
    grid: Sequence[int],
    *,
    code_of: CodeOf = lambda function: None,
    debug: bool = False,
    sanitize_overflow: bool = False,
    nan: bool = False,
    poison: bool = False,
) -> None:
    """Run every program of a launch in Python.

    Args:
        code: the kernel's source.
        arguments: for every parameter, by name.
        grid: one to three extents.
        code_of: the source of a kernel that this one calls; None for anything else.
        debug: check run-time assertions, accesses and addresses.
        sanitize_overflow: check sums, differences and products of integers.
        nan: look for NaN that is made of numbers.
        poison: fill masked lanes of loads that name no `other`.

    Raises:
        DeviceAssertionError: an assertion did not hold.
        InterpretedCheckError: an access or an address is wrong.
        InterpreterError: the kernel failed, with the place in the user's file.
        CompileTimeAssertionFailure: a `static_assert` was false.
    """
    extents = grid_extents(grid)
    arrays = [array for n, a in arguments.items() for array in _arrays(n, a)]
    memory = AddressSpace(arrays)
    rules_builder = EagerBuilder(
        EagerMachine(memory, (0, 0, 0), extents), debug=debug, nan=nan, is_poisoning=poison
    )
    rules_builder.sanitize_overflow = sanitize_overflow
    rules = Rules(rules_builder, code_of)
    with _errors_at_the_users_line(rules, code), use_builder(rules_builder):
        function = rules.function_of(code)
        values = {name: _value(name, argument) for name, argument in arguments.items()}
        for linear in range(math.prod(extents)):
            rules_builder.machine.program = program_index(linear, extents)
            function(**values)


def _arrays(name: str, argument: LaunchArgument) -> Iterator[tuple[str, Any]]:
    if argument.items is not None:
        for index, item in enumerate(argument.items):
            yield from _arrays(f"{name}.{index}", item)
    elif isinstance(argument.type, PointerType):
        yield name, argument.value


def _value(name: str, argument: LaunchArgument) -> Any:
    if argument.items is not None:
        items = [_value(f"{name}.{index}", item) for index, item in enumerate(argument.items)]
        return argument.value(*items) if hasattr(argument.value, "_fields") else tuple(items)
    if argument.type is None:
        return constexpr(argument.value)
    value = EagerValue(argument.type, argument_data(name, argument.type, argument.value))
    value.name = name
    value.origins = frozenset([name]) if isinstance(argument.type, PointerType) else None
    return tensor(value)


@contextmanager
def _errors_at_the_users_line(rules: Rules, code: Code) -> Iterator[None]:
    """Give errors the place of the innermost line of a kernel; make them `InterpreterError`s."""
    try:
        yield
    except BlocklangError as error:
        place = _place(error.__traceback__, rules.codes)
        if place is not None and (error.location is None or error.location.line == 0):
            error.location, error.source = place
        _raise(error, rules)
    except Exception as error:
        place = _place(error.__traceback__, rules.codes)
        error.add_note(f"in kernel `{code.name}`{f' at {place[0]}' if place else ''}, {_program(rules)}")
        raise


def _raise(error: BlocklangError, rules: Rules) -> NoReturn:
    if isinstance(error, CompilationError):
        error = as_interpreter_error(error)
    if isinstance(error, CheckError):  # its text is that of compiled code
        error.notes.insert(0, _program(rules))
    error.add_note(_program(rules))
    raise error from None


def _program(rules: Rules) -> str:
    return program_note(rules.builder.machine.program)


def _place(traceback: TracebackType | None, codes: Mapping[CodeType, Code]) -> tuple[Location, str] | None:
    """The innermost line of a kernel that a traceback passes, and the text for its caret."""
    found: tuple[Location, str] | None = None
    while traceback is not None:
        running = traceback.tb_frame.f_code
        code = codes.get(running)
        if code is not None:
            found = _location(code, running, traceback), code.padded_text
        traceback = traceback.tb_next
    return found


def _location(code: Code, running: CodeType, traceback: TracebackType) -> Location:
    line, end_line, column, end_column = list(running.co_positions())[traceback.tb_lasti // 2]
    if line is None:
        return Location(code.file, traceback.tb_lineno)
    return Location(code.file, line, column or 0, end_line or 0, end_column or 0)
