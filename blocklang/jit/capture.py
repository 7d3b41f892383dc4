"""The globals and closure variables that a kernel reads, and whether they are still what was compiled in.

A kernel is compiled with their values at that time; a launch that finds another value needs
another version. What is read is taken from the byte code: of the kernel, of the functions it holds and of
every function that those names lead to, attributes of modules and objects included. That may be more than the
chosen branches read, never less.

A name that is missing is recorded as missing: a global that is defined later hides a builtin of its name.
"""

from __future__ import annotations

import copy
import dis
import types
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from blocklang.jit.specialisation import is_same_constant
from blocklang.language.aggregate import is_aggregate_class
from blocklang.language.constexpr import constexpr, unwrap

MISSING = object()
_IMMUTABLE = (bool, int, float, complex, str, bytes, type(None))
_OWN_PACKAGE = "blocklang"


class Watched:
    """A place in which a value was found: a name of a namespace, an attribute, or a closure cell."""

    __slots__ = ("container", "copied", "name", "value")

    def __init__(self, container: Any, name: str | None, value: Any) -> None:
        self.container = container
        self.name = name
        self.value = value
        self.copied = copy.deepcopy(value) if isinstance(value, (list, dict, set)) else None

    @property
    def place(self) -> tuple[int, str | None]:
        """What tells it from other places, as long as the container lives."""
        return (id(self.container), self.name)

    def read(self) -> Any:
        """The value that is there now."""
        if isinstance(self.container, types.CellType):
            return _cell_content(self.container)
        if isinstance(self.container, dict):
            return self.container.get(self.name, MISSING)
        return getattr(self.container, self.name or "", MISSING)

    def holds(self) -> bool:
        """True if the place holds what it held."""
        now = self.read()
        if self.copied is not None:
            return type(now) is type(self.copied) and bool(now == self.copied)
        return now is self.value or (_is_plain(now) and is_same_constant(now, self.value))

    def is_as(self, other: Watched) -> bool:
        """True if both have found the same value."""
        if self.copied is not None:
            return type(self.copied) is type(other.copied) and bool(self.copied == other.copied)
        return self.value is other.value or (
            _is_plain(self.value) and is_same_constant(self.value, other.value)
        )

    @property
    def is_told_by_identity(self) -> bool:
        """True if the same object in the same dict or cell means the same value."""
        in_reach = isinstance(self.container, (dict, types.CellType))
        return in_reach and self.copied is None and self.value is not self.container

    def native_record(self) -> tuple[int, int, int]:
        """(dict, name, value) or (cell, 0, value) as addresses; a missing value is 0."""
        name = 0 if isinstance(self.container, types.CellType) else id(self.name)
        return (id(self.container), name, 0 if self.value is MISSING else id(self.value))


class Reads(NamedTuple):
    """A function, and the places that it reads, in the order of its byte code; some more than once."""

    function: Any  # typed as what it is, it would be bound by type checkers
    watched: tuple[Watched, ...]


def _is_constant(value: Any) -> bool:
    return isinstance(value, constexpr) or (value is not MISSING and _is_plain(value))


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(_is_plain(item) for item in value)
    return isinstance(value, _IMMUTABLE)


def _cell_content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


class Captured:
    """Everything that a kernel captured, at one moment.

    Attributes:
        reads: the kernel's functions in a fixed order, each with the places that it reads.
        watched: the places, each once.
    """

    def __init__(self, functions: Iterable[Any]) -> None:
        self.reads: tuple[Reads, ...] = tuple(_read_by(functions))
        found = {w.place: w for reads in reversed(self.reads) for w in reversed(reads.watched)}
        self.watched: tuple[Watched, ...] = tuple(reversed(found.values()))

    def hold(self) -> bool:
        """True if every value is what it was."""
        return all(watched.holds() for watched in self.watched)

    def changed_constants(self) -> list[str]:
        """The names whose compile-time values are others now, in a strict kernel's sense: numbers, strings,
        tuples and `constexpr`s; a function that was defined anew is compiled anew.
        """
        return [
            watched.name or "a captured variable"
            for watched in self.watched
            if _is_constant(watched.value)
            and not is_same_constant(unwrap(watched.read()), unwrap(watched.value))
        ]

    def differences(self, other: Captured) -> list[str]:
        """The names, in this one's order, whose values the other one does not have."""
        before = {(id(w.container), w.name): w for w in other.watched}
        names = [
            watched.name or "a captured variable"
            for watched in self.watched
            if (old := before.get((id(watched.container), watched.name))) is None or not watched.is_as(old)
        ]
        return list(dict.fromkeys(names))

    @property
    def is_told_by_identity(self) -> bool:
        """True if native code can compare all of it."""
        return all(watched.is_told_by_identity for watched in self.watched)

    def native_records(self) -> list[tuple[int, int, int]]:
        """The addresses that native code compares. Valid as long as this object lives."""
        return [watched.native_record() for watched in self.watched]


def _read_by(functions: Iterable[Any]) -> Iterator[Reads]:
    pending = [fn for value in functions for fn in functions_in(value)]
    done: set[int] = set()
    while pending:
        function = pending.pop()
        if id(function) in done:
            continue
        done.add(id(function))
        reads = Reads(function, tuple(_names_of(function)))
        pending += [fn for watched in reads.watched for fn in functions_in(watched.value)]
        yield reads


def functions_in(value: Any) -> list[types.FunctionType]:
    """The user's functions that a value is or holds: kernels, plain functions, methods, tuples of these."""
    if isinstance(value, tuple):
        return [fn for item in value for fn in functions_in(item)]
    if is_aggregate_class(value):
        return [fn for item in value.user_functions for fn in functions_in(item)]
    if isinstance(value, types.MethodType):
        value = value.__func__
    function = _instance_attributes(value).get("fn", value)  # a kernel's function
    if not isinstance(function, types.FunctionType):
        return []
    return [] if (function.__module__ or "").split(".")[0] == _OWN_PACKAGE else [function]


def _names_of(function: types.FunctionType) -> Iterator[Watched]:
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    for code in _codes(function.__code__):
        instructions = list(dis.get_instructions(code))
        for index, instruction in enumerate(instructions):
            name = instruction.argval
            if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                found = Watched(function.__globals__, name, function.__globals__.get(name, MISSING))
            elif instruction.opname in ("LOAD_DEREF", "LOAD_CLASSDEREF") and name in cells:
                found = Watched(cells[name], None, _cell_content(cells[name]))
            else:
                continue
            yield found
            yield from _attributes(found.value, instructions[index + 1 :])


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code of a function and of the functions, lambdas and comprehensions in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _attributes(value: Any, following: list[dis.Instruction]) -> Iterator[Watched]:
    """What `name.attribute.attribute` reads, as long as the objects are the user's own."""
    for instruction in following:
        if instruction.opname not in ("LOAD_ATTR", "LOAD_METHOD") or not _is_users_object(value):
            return
        name = instruction.argval
        attributes = _instance_attributes(value)
        container = attributes if name in attributes or isinstance(value, types.ModuleType) else value
        value = getattr(value, name, MISSING)
        yield Watched(container, name, value)


def _instance_attributes(value: Any) -> dict[str, Any]:
    """An object's own dictionary; empty for a class, whose dictionary cannot be reached, and for slots."""
    attributes = getattr(value, "__dict__", None)
    return attributes if isinstance(attributes, dict) else {}


def _is_users_object(value: Any) -> bool:
    if value is MISSING or _is_plain(value) or isinstance(value, types.FunctionType):
        return False
    module = value.__name__ if isinstance(value, types.ModuleType) else type(value).__module__
    return module.split(".")[0] != _OWN_PACKAGE
