"""`KernelSource`: a user's function with its text, syntax tree, place, and the values that it captures.

The whole file is parsed and the function found in it by line and name, so that lines and columns are those of
the user's file, whatever decorators, indentation or neighbours on the line there are. Text comes from
`linecache`, which knows files, zip archives, notebook cells, doctests, and code run by `exec` that was
registered there.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import linecache
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from blocklang.diagnostics import CompilationError, Location, UnsupportedLanguageConstruct
from blocklang.language.constexpr import constexpr
from blocklang.lazy import cached_property

_NO_SOURCE_HELP = (
    "write the kernel in a file or a notebook cell; for code run by `exec`, compile it with a file "
    "name of its own and "
    "put its text into `linecache.cache` under that name"
)
NO_DEFAULT: Any = inspect.Parameter.empty


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel.

    Attributes:
        name: its name.
        is_constexpr: annotated `tl.constexpr`: a compile-time value.
        annotation: the annotation as written, an object or a string; None if there is none.
        default: its default value, or `NO_DEFAULT`.
    """

    name: str
    is_constexpr: bool
    annotation: Any
    default: Any

    @property
    def has_default(self) -> bool:
        return self.default is not NO_DEFAULT


@dataclass(frozen=True, eq=False)
class KernelSource:
    """Everything that the frontend needs to know of a function.

    Attributes:
        function: the Python function.
        name: its name.
        file: the file as Python names it.
        first_line: the line of its first decorator, or of its `def`, counted from 1.
        text: its text, decorators included.
        node: its syntax tree; lines and columns are those of the file.
        parameters: in order.
    """

    function: Callable[..., Any]
    name: str
    file: str
    first_line: int
    text: str
    node: ast.FunctionDef
    parameters: tuple[Parameter, ...] = field(repr=False)

    @classmethod
    def from_function(cls, function: Callable[..., Any]) -> KernelSource:
        """Find a function's source.

        Raises:
            CompilationError: the source cannot be found, or is no longer that of the function.
            UnsupportedLanguageConstruct: the function is not made by a plain `def`.
        """
        code = getattr(function, "__code__", None)
        if code is None:
            raise CompilationError(
                f"a kernel must be a Python function, got {type(function).__name__}",
                help="put the decorator directly above a `def`",
            )
        if code.co_name == "<lambda>":
            where = Location(code.co_filename, code.co_firstlineno)
            raise UnsupportedLanguageConstruct(
                "a lambda cannot be a kernel", location=where, help="write a `def`"
            )
        lines = _lines_of(function)
        node = _find(function, lines)
        first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
        text = "".join(lines[first - 1 : node.end_lineno])
        return cls(function, code.co_name, code.co_filename, first, text, node, _parameters(function))

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the function's text and place, without what it captures (`Dependency`)."""
        identity = f"{self.file}\0{self.first_line}\0{self.name}\0{self.text}"
        return hashlib.sha256(identity.encode()).hexdigest()

    @cached_property
    def signature(self) -> inspect.Signature:
        return inspect.signature(self.function)

    @cached_property
    def closure(self) -> dict[str, Any]:
        """Cells of the enclosing functions, by name; a cell may not have a value yet."""
        names = self.function.__code__.co_freevars
        return dict(zip(names, self.function.__closure__ or (), strict=True))

    @property
    def globals(self) -> dict[str, Any]:
        return self.function.__globals__

    def locate(self, node: ast.AST) -> Location:
        """Where a node of the tree stands in the file."""
        line = getattr(node, "lineno", self.node.lineno)
        column = getattr(node, "col_offset", 0)
        end_line, end_column = getattr(node, "end_lineno", 0), getattr(node, "end_col_offset", 0)
        return Location(self.file, line, column, end_line or 0, end_column or 0)

    @property
    def padded_text(self) -> str:
        """The text with as many empty lines above it as in the file, for messages."""
        return "\n" * (self.first_line - 1) + self.text


def _lines_of(function: Callable[..., Any]) -> list[str]:
    code = function.__code__
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, function.__globals__)
    if not lines:
        raise CompilationError(
            f"the source of kernel `{code.co_name}` cannot be found: there is no text for "
            f"{code.co_filename!r}",
            help=_NO_SOURCE_HELP,
        )
    return lines


_Definition = ast.FunctionDef | ast.AsyncFunctionDef


@lru_cache(maxsize=32)
def _definitions(text: str, file: str) -> dict[int, list[_Definition]]:
    """The functions that a file defines, by their first line: it may hold thousands of kernels."""
    found: dict[int, list[_Definition]] = {}
    for node in ast.walk(ast.parse(text, filename=file)):
        if isinstance(node, _Definition):
            found.setdefault(_first_line(node), []).append(node)
    return found


def _find(function: Callable[..., Any], lines: list[str]) -> ast.FunctionDef:
    code = function.__code__
    try:
        starting_here = _definitions("".join(lines), code.co_filename).get(code.co_firstlineno, [])
    except SyntaxError as error:
        raise _changed(function) from error
    found = [node for node in starting_here if node.name == code.co_name]
    expected = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    for node in found:
        if tuple(a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)) == expected:
            if isinstance(node, ast.AsyncFunctionDef):
                where = Location(code.co_filename, node.lineno, node.col_offset)
                raise UnsupportedLanguageConstruct(
                    "a kernel cannot be `async`", location=where, help="write a `def`"
                )
            if getattr(node, "type_params", []):
                where = Location(code.co_filename, node.lineno, node.col_offset)
                raise UnsupportedLanguageConstruct(
                    "a kernel cannot have type parameters", location=where, help="drop the `[...]`"
                )
            return node
    raise _changed(function)


def _changed(function: Callable[..., Any]) -> CompilationError:
    code = function.__code__
    return CompilationError(
        f"the source of kernel `{code.co_name}` cannot be found: line {code.co_firstlineno} of "
        f"{code.co_filename!r} "
        "does not define it",
        help="the file has changed since it was imported, or the function was made by generated "
        "code; import it "
        "again, or " + _NO_SOURCE_HELP,
    )


def _first_line(node: _Definition) -> int:
    return min([node.lineno, *(d.lineno for d in node.decorator_list)])


def _parameters(function: Callable[..., Any]) -> tuple[Parameter, ...]:
    found: list[Parameter] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            star = "*" if parameter.kind is inspect.Parameter.VAR_POSITIONAL else "**"
            code = function.__code__
            raise UnsupportedLanguageConstruct(
                f"a kernel cannot take `{star}{parameter.name}`",
                location=Location(code.co_filename, code.co_firstlineno),
                help="name every parameter; a tuple may be passed as one argument",
            )
        annotation = None if parameter.annotation is inspect.Parameter.empty else parameter.annotation
        found.append(
            Parameter(parameter.name, is_constexpr_annotation(annotation), annotation, parameter.default)
        )
    return tuple(found)


def is_constexpr_annotation(annotation: Any) -> bool:
    """True for `tl.constexpr`, as an object, or as text where annotations are not evaluated."""
    if isinstance(annotation, str):
        return annotation.strip("'\" ").rpartition(".")[2] == "constexpr"
    return annotation is constexpr
