"""What a kernel is, as a digest that is the same in every process: its text, and all that it reads.

Two kernels with one digest compile to the same code. So everything that can reach the code is part of it, by
content: the text and byte code of each function, default values, and the value at each place that they read.
What has no content that can be told for certain (objects of a user's class, open files, the environment)
makes the kernel `Unidentified`: it is compiled in each process, as without a cache.

Not part of it: the file and the lines. Places of prints, assertions and checks are kept relative to their
function (`blocklang.jit.stored`).
"""

from __future__ import annotations

import dis
import enum
import hashlib
import linecache
import struct
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from blocklang.jit.capture import MISSING, Captured, Reads
from blocklang.language.constexpr import constexpr
from blocklang.language.dtypes import dtype

_OWN_PACKAGE = "blocklang"
# Modules whose functions and classes give the same for the same arguments, and change with Python or NumPy
# alone.
_PURE = frozenset(
    {
        *("bisect", "builtins", "cmath", "collections", "dataclasses", "enum", "fractions", "functools"),
        *("itertools", "math", "ml_dtypes", "numbers", "numpy", "operator", "types", "typing"),
    }
)
_KNOWN = _PURE | {_OWN_PACKAGE}
# Python's own functions through which a function sees more than its arguments.
_IMPURE = frozenset({"__import__", "compile", "eval", "exec", "globals", "input", "locals", "open", "vars"})
_IMPORTS = ("IMPORT_NAME", "IMPORT_FROM", "IMPORT_STAR")
_DEPTH = 32  # of values in values


class Unidentified(Exception):
    """Something that a kernel reads has no content that can be told; the text says what."""


def source_text(function: types.FunctionType) -> str:
    """A function's text, from its first decorator to its last statement; "" if there is none.

    It is found without parsing or tokenising the file, which may hold thousands of kernels: all lines up to
    the last that has byte code, and from there on what is indented more than the first. Lines that only look
    so make a text that is not the one that the frontend compiles: once that is known, the kernel is another.
    """
    code = function.__code__
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, function.__globals__)[code.co_firstlineno - 1 :]
    if not lines:
        return ""
    surely = end = max(map(_last_line, _codes(code))) - code.co_firstlineno + 1
    for number, line in enumerate(lines[surely:], surely + 1):
        if line.strip() and not line.lstrip().startswith("#"):
            if _indentation(line) <= _indentation(lines[0]):
                break
            end = number
    return "".join(lines[:end])


def _last_line(code: types.CodeType) -> int:
    """The last line of an instruction, counted from 1."""
    return max(end or start or 0 for start, end, _, _ in code.co_positions())


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def kernel_identity(kernel: Any, captured: Captured, compiled_in: Iterable[Any]) -> str:
    """The digest of a kernel, with the values that a specialisation compiles in.

    Args:
        kernel: a `JITFunction`.
        captured: what it reads, constants in `compiled_in` included.
        compiled_in: what else decides the code.

    Raises:
        Unidentified: something has no content that can be told.
    """
    constants = tuple(compiled_in)
    read = [watched.value for reads in captured.reads for watched in reads.watched]
    words = _Words(captured, _kernels_in((kernel, constants, read)))
    words.add(kernel)
    for reads in captured.reads:
        words.add_function(reads)
    words.add(constants)
    return hashlib.sha256("\0".join(words.said).encode("utf-8", "surrogatepass")).hexdigest()


class _Words:
    """Says functions and values as words; equal words mean equal content."""

    def __init__(self, captured: Captured, kernels: Iterable[Any]) -> None:
        self.said: list[str] = []
        self._functions = {id(reads.function): n for n, reads in enumerate(captured.reads)}
        self._namespaces: dict[int, int] = {}
        # The text that was compiled, or will be; None if the file has not been read for it yet.
        self._kernels = {id(k.fn): vars(k)["source"].text if "source" in vars(k) else None for k in kernels}

    def add_function(self, reads: Reads) -> None:
        """Say what a function is, and the values at the places that it reads."""
        function = reads.function
        if _root(function.__module__) in _PURE:
            self._say("library", function.__module__, function.__qualname__)
            return
        code = function.__code__
        text = self._kernels.get(id(function)) or source_text(function)
        self._say("function", function.__qualname__, text.rstrip())
        self._add_code(code)
        self.add(function.__defaults__)
        self.add(function.__kwdefaults__)
        for name, annotation in sorted(function.__annotations__.items()):
            self._say("annotation", name, _annotation_word(annotation))
        self.add({n: v for n, v in vars(function).items() if n != "__wrapped__"})
        self._say("reads", self._namespace(function.__globals__))
        cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
        self._say(*(f"{name} {self._namespace(cell)}" for name, cell in cells))
        if id(function) not in self._kernels:
            self._refuse_hidden_reads(reads)
        for watched in reads.watched:
            self._say("place", self._namespace(watched.container), watched.name)
            self.add(watched.value)

    def _refuse_hidden_reads(self, reads: Reads) -> None:
        """Of a function that Python runs at compile time, every read must be in sight."""
        name = reads.function.__qualname__
        for code in _codes(reads.function.__code__):
            if any(instruction.opname in _IMPORTS for instruction in dis.get_instructions(code)):
                raise Unidentified(f"`{name}` imports")
        for watched, following in pairwise((*reads.watched, None)):
            assert watched is not None
            value = watched.value
            is_users = isinstance(value, types.ModuleType) and _root(value.__name__) not in _KNOWN
            if is_users and (following is None or following.container is not vars(value)):
                raise Unidentified(f"`{name}` uses the module {value.__name__} as a value")
            if value is MISSING and watched.name in _IMPURE:
                raise Unidentified(f"`{name}` uses `{watched.name}`")

    def _add_code(self, code: types.CodeType) -> None:
        self._say("code", code.co_name, code.co_flags, code.co_argcount, code.co_posonlyargcount)
        self._say(code.co_kwonlyargcount, code.co_code.hex(), code.co_exceptiontable.hex())
        self._say(*code.co_names, "|", *code.co_varnames, "|", *code.co_freevars, "|", *code.co_cellvars)
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                self._add_code(constant)
            else:
                self.add(constant)

    def add(self, value: Any, depth: int = 0) -> None:
        """Say what a value is."""
        if depth > _DEPTH:
            raise Unidentified("values are nested too deeply")
        if isinstance(value, type):
            self._add_class(value, depth)
        elif (say := _PLAIN.get(type(value))) is not None:
            self._say(type(value).__name__, say(value))
        elif isinstance(value, tuple) and hasattr(value, "_fields"):
            self._add_parts("namedtuple", (type(value), *value), depth)
        elif type(value) in (tuple, list):
            self._add_parts(type(value).__name__, value, depth)
        elif type(value) in (set, frozenset):
            self._add_parts("set", sorted(value, key=lambda item: (type(item).__name__, repr(item))), depth)
        elif type(value) in (dict, types.MappingProxyType):
            self._add_parts("dict", [part for item in value.items() for part in item], depth)
        else:
            self._add_object(value, depth)

    def _add_parts(self, kind: str, parts: Any, depth: int) -> None:
        self._say(kind, len(parts))
        for part in parts:
            self.add(part, depth + 1)

    def _add_object(self, value: Any, depth: int) -> None:
        kind = type(value)
        if value is MISSING:
            self._say("missing")
        elif isinstance(value, types.ModuleType):
            self._say("module", value.__name__)
        elif isinstance(value, dtype) and kind.__module__ == dtype.__module__:
            self._say("type", kind.__qualname__, value.name)
        elif kind is constexpr:
            self._add_parts("constexpr", (value.value, value.type), depth)
        elif isinstance(value, enum.Enum):
            self._say("enum", kind.__module__, kind.__qualname__, value.name)
            self.add(value.value, depth + 1)
        elif isinstance(value, np.generic) and kind.__module__ == "numpy" and not value.dtype.hasobject:
            self._say("number", value.dtype.str, value.tobytes().hex())
        elif isinstance(value, types.SimpleNamespace) and kind is types.SimpleNamespace:
            self.add(dict(vars(value)), depth + 1)
        elif isinstance(value, np.dtype) or (kind.__module__, kind.__name__) == ("torch", "dtype"):
            self._say("dtype", kind.__module__, value)
        elif (name := _library_name(value)) is not None:
            self._say("library", name)
        elif is_kernel(value):
            self._add_kernel(value)
        elif isinstance(value, types.FunctionType):
            self._say("function", self._number_of(value))
        elif kind.__module__ == "blocklang.language.aggregate" and isinstance(
            getattr(value, "fn", None), types.FunctionType
        ):
            self._say("constexpr_function", self._number_of(value.fn))
        elif kind.__module__.startswith("blocklang.language."):
            self._add_own_object(value, depth)
        else:
            raise Unidentified(f"a value of type {kind.__module__}.{kind.__qualname__}")

    def _add_own_object(self, value: Any, depth: int) -> None:
        """An object of the language, such as the form of a descriptor."""
        self._say("own", type(value).__module__, type(value).__qualname__)
        fields = getattr(value, "__dict__", None)
        if fields is None or hasattr(type(value), "__slots__"):
            raise Unidentified(f"a value of type {type(value).__qualname__}")
        self.add(dict(sorted(fields.items())), depth + 1)

    def _add_kernel(self, kernel: Any) -> None:
        if kernel.source_is_replaced:
            raise Unidentified(f"the source of `{kernel.__name__}` was replaced")
        self._say("kernel", self._number_of(kernel.fn), kernel.strict)

    def _add_class(self, value: type, depth: int) -> None:
        root = _root(value.__module__)
        self._say("class", value.__module__, value.__qualname__)
        if root in _PURE or root == "torch" or _is_own(value):
            return
        if issubclass(value, enum.Enum):
            self._add_parts("members", [(m.name, m.value) for m in value], depth)
        elif hasattr(value, "user_functions") and hasattr(value, "field_types"):
            self._add_aggregate(value, depth)
        elif issubclass(value, tuple) and hasattr(value, "_fields") and value.__bases__ == (tuple,):
            own = set(vars(value)) - {*_NAMEDTUPLE, *value._fields}
            if own:
                raise Unidentified(f"the class {value.__qualname__} has more than fields")
            self._add_parts("fields", (value._fields, vars(value)["_field_defaults"]), depth)
        else:
            raise Unidentified(f"the class {value.__module__}.{value.__qualname__}")

    def _add_aggregate(self, value: Any, depth: int) -> None:
        for base in value.__bases__:
            self.add(base, depth + 1)
        for name, annotation in value.field_types.items():
            self._say("field", name)
            self.add(annotation, depth + 1)
        self._add_parts("functions", value.user_functions, depth)
        for name, member in vars(value).items():
            if name.startswith("__") or name in ("field_types", "user_functions", "_fields"):
                continue
            self._say("member", name)
            self.add(getattr(member, "function", member), depth + 1)

    def _number_of(self, function: Any) -> int:
        number = self._functions.get(id(function))
        if number is None:
            raise Unidentified(f"the function `{getattr(function, '__qualname__', function)}`")
        return number

    def _namespace(self, container: object) -> int:
        return self._namespaces.setdefault(id(container), len(self._namespaces))

    def _say(self, *words: object) -> None:
        # The number of words, and the length of each: no two different lists make one text.
        self.said.append(str(len(words)))
        for word in map(str, words):
            self.said += (str(len(word)), word)


_NAMEDTUPLE = frozenset(
    {
        *("__doc__", "__slots__", "__new__", "__repr__", "__getnewargs__", "__match_args__", "__module__"),
        *("_fields", "_field_defaults", "_make", "_replace", "_asdict", "__orig_bases__", "__replace__"),
        *("__annotations__", "__classdictcell__", "__static_attributes__", "__firstlineno__"),
    }
)
_PLAIN: dict[type, Callable[[Any], str]] = {
    type(None): repr,
    type(...): repr,
    bool: repr,
    int: repr,
    str: str,
    bytes: bytes.hex,
    float: lambda value: struct.pack("<d", value).hex(),
    complex: lambda value: struct.pack("<dd", value.real, value.imag).hex(),
    slice: repr,
}


def is_kernel(value: object) -> bool:
    """True for what `@jit` makes."""
    return hasattr(type(value), "source_is_replaced") and isinstance(
        getattr(value, "fn", None), types.FunctionType
    )


def _kernels_in(value: Any, depth: int = 0) -> Iterator[Any]:
    """The kernels that a value is or holds."""
    if is_kernel(value):
        yield value
    elif depth > _DEPTH:
        return
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _kernels_in(item, depth + 1)
    elif isinstance(value, dict):
        yield from _kernels_in(tuple(value.values()), depth + 1)
    elif isinstance(value, types.SimpleNamespace):
        yield from _kernels_in(vars(value), depth + 1)
    elif isinstance(value, type) and hasattr(value, "user_functions"):
        yield from _kernels_in(value.user_functions, depth + 1)


def _root(module: str | None) -> str:
    return (module or "").partition(".")[0]


def _is_own(value: Any) -> bool:
    """True for a function or class of blocklang's, by the name under which it is found there."""
    if _root(getattr(value, "__module__", None)) != _OWN_PACKAGE:
        return False
    found: Any = sys.modules.get(value.__module__)
    for name in value.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is value


def _library_name(value: Any) -> str | None:
    """The name of a function of Python's, NumPy's or blocklang's own; None for anything else."""
    if isinstance(value, types.FunctionType):
        is_known = _is_own(value) or _root(value.__module__) in _PURE
        return f"{value.__module__}.{value.__qualname__}" if is_known else None
    if isinstance(value, types.BuiltinFunctionType):
        owner = value.__self__
        is_free = owner is None or isinstance(owner, types.ModuleType)
        is_known = is_free and _root(value.__module__) in _PURE
        return f"{value.__module__}.{value.__qualname__}" if is_known else None
    if type(value) in (np.ufunc, type(np.sum)):
        return f"numpy.{value.__name__}"
    return None


def _annotation_word(annotation: Any) -> str:
    """An annotation for the digest; only `constexpr` and types of the language mean anything."""
    if isinstance(annotation, str):
        return annotation
    return annotation.__qualname__ if isinstance(annotation, type) else repr(annotation)


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)
