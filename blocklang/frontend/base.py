"""The allow-list visitor's trunk: dispatch, locations, and errors that point at the user's line.

A node without a `visit_` method, or a field of a node that its method does not know, is refused by name:
nothing in a kernel is ever skipped.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

from blocklang.diagnostics import BlocklangError, CompilationError, UnsupportedLanguageConstruct
from blocklang.frontend.scope import Dependency, Environment, Frame
from blocklang.frontend.strict import STRICT, broken_by, broken_by_value
from blocklang.ir import Builder, Region

# Fields that hold no code: contexts, kinds of quotes, comments on types.
_IGNORED_FIELDS = frozenset({"ctx", "kind", "type_comment", "lineno"})

_PLAIN_NAMES = {
    ast.AsyncFor: "`async for`",
    ast.AsyncFunctionDef: "`async def`",
    ast.AsyncWith: "`async with`",
    ast.Await: "`await`",
    ast.ClassDef: "a class definition",
    ast.Delete: "`del`",
    ast.Dict: "a dictionary",
    ast.DictComp: "a dictionary comprehension",
    ast.Global: "`global`",
    ast.Import: "`import`",
    ast.ImportFrom: "`import`",
    ast.Match: "`match`",
    ast.NamedExpr: "`:=`",
    ast.Nonlocal: "`nonlocal`",
    ast.Raise: "`raise`",
    ast.Set: "a set",
    ast.SetComp: "a set comprehension",
    ast.Starred: "`*` outside a call",
    ast.Try: "`try`",
    ast.TryStar: "`try`",
    ast.With: "`with`",
    ast.Yield: "`yield`",
    ast.YieldFrom: "`yield`",
}
_NO_WAITING = "programs run side by side: launch more of them"
_HELP: dict[type[ast.AST], str] = {
    ast.AsyncFor: _NO_WAITING,
    ast.AsyncFunctionDef: _NO_WAITING,
    ast.AsyncWith: _NO_WAITING,
    ast.Await: _NO_WAITING,
    ast.ClassDef: "define it outside, as a `NamedTuple` or under `@blocklang.aggregate`",
    ast.Delete: "leave it out: a value is gone after its last use",
    ast.Dict: "use a tuple, or separate names",
    ast.DictComp: "use a tuple, or separate names",
    ast.Global: "return the value, or store it to an array",
    ast.Import: "import at the top of the file",
    ast.ImportFrom: "import at the top of the file",
    ast.Match: "use `if` and `elif`",
    ast.NamedExpr: "assign on a line of its own",
    ast.Nonlocal: "return the value from the inner function",
    ast.Raise: "check at compile time with `tl.static_assert`",
    ast.Set: "use a tuple",
    ast.SetComp: "use a list comprehension over a tuple",
    ast.Try: "nothing in a kernel raises: test for the case with `if`, or mask it",
    ast.TryStar: "nothing in a kernel raises: test for the case with `if`, or mask it",
    ast.With: "call what it does before and after; files and locks belong to the host",
    ast.Yield: "return a tuple, or store the values to an array",
    ast.YieldFrom: "return a tuple, or store the values to an array",
}


def construct_name(node: ast.AST) -> str:
    """What a piece of syntax is called in messages."""
    return _PLAIN_NAMES.get(type(node), f"`{type(node).__name__}`")


@dataclass(frozen=True)
class Rules:
    """How much the frontend accepts.

    Attributes:
        strict: only what Triton's frontend accepts (`strict`).
        is_check: the kernel is going to be interpreted, and nothing else.
        debug: run-time assertions are checked.
        sanitize_overflow: so are sums, differences and products of integers.
        hints: so is what hints promise.
    """

    strict: bool = False
    is_check: bool = False
    debug: bool = False
    sanitize_overflow: bool = False
    hints: bool = False


USUAL = Rules()


class Visitor:
    """Walks the syntax of one kernel and what it calls.

    Attributes:
        builder: where operations go.
        frame: the function that is being compiled.
        rules: how much is accepted.
        dependencies: values from outside that were read.
        dropped: the last expression that was a statement of its own.
    """

    def __init__(self, builder: Builder, frame: Frame, rules: Rules = USUAL) -> None:
        self.builder = builder
        self.frame = frame
        self.rules = rules
        self.dependencies: dict[str, Dependency] = {}
        self.dropped: ast.expr | None = None
        self._rest: list[ast.stmt] = []

    @property
    def env(self) -> Environment:
        return self.frame.env

    def visit(self, node: ast.AST) -> Any:
        """Compile a node at its own location; errors without one get it."""
        saved = self.builder.location
        source = self.frame.source
        self.builder.location = source.locate(node)
        try:
            method = self._method(node)
            if not self.rules.strict:
                return method(node)
            return self._strictly(method, node)
        except BlocklangError as error:
            if error.location is None:
                error.location = self.builder.location
                error.source = source.padded_text
            raise
        except (
            RecursionError,
            AssertionError,
            TypeError,
            ValueError,
            KeyError,
            AttributeError,
            IndexError,
        ) as error:
            if not getattr(error, "__notes__", None):
                error.add_note(f"while compiling {self.builder.location} of `{self.frame.name}`")
            raise
        finally:
            self.builder.location = saved

    def _method(self, node: ast.AST) -> Callable[[Any], Any]:
        method: Callable[[Any], Any] | None = getattr(self, f"visit_{type(node).__name__}", None)
        if method is None:
            self.refuse(construct_name(node), help=_HELP.get(type(node)))
        known: frozenset[str] = getattr(method, "fields", frozenset())
        for name, value in ast.iter_fields(node):
            if name not in known and name not in _IGNORED_FIELDS and value not in (None, [], 0):
                self.refuse(f"`{name}` of {construct_name(node)}")
        return method

    def _strictly(self, method: Callable[[Any], Any], node: ast.AST) -> Any:
        broken = broken_by(node)
        if broken is not None:
            self.refuse_strictly(broken)
        result = method(node)
        wrong = broken_by_value(result) if isinstance(node, ast.expr) else None
        if wrong is not None:
            self.refuse_strictly(wrong[0], *wrong[1])
        return result

    def refuse_strictly(self, rule: str, *details: object, at: ast.AST | None = None) -> None:
        """Raise if the mode is strict: a rule of `strict.STRICT` is broken."""
        if not self.rules.strict:
            return
        broken = STRICT[rule]
        kind = UnsupportedLanguageConstruct if broken.is_syntax else CompilationError
        raise kind(broken.text(*details), help=broken.help.format(*details), **self._place(at))  # type: ignore[arg-type]

    def refuse(self, what: str, *, help: str | None = None, at: ast.AST | None = None) -> NoReturn:
        """Raise: the construct has no meaning in a kernel."""
        raise UnsupportedLanguageConstruct(
            f"a kernel cannot contain {what}",
            help=help,
            **self._place(at),  # type: ignore[arg-type]
        )

    def fail(self, message: str, *, help: str | None = None, at: ast.AST | None = None) -> NoReturn:
        """Raise: the kernel is wrong at the node `at`, or at the current one."""
        raise CompilationError(message, help=help, **self._place(at))  # type: ignore[arg-type]

    def _place(self, at: ast.AST | None) -> dict[str, object]:
        location = self.builder.location if at is None else self.frame.source.locate(at)
        return {"location": location, "source": self.frame.source.padded_text}

    @contextmanager
    def branch(self, region: Region, env: Environment) -> Iterator[None]:
        """Compile into a region, with names of its own; `self.frame.env` is the caller's again afterwards."""
        saved = self.frame.env
        self.frame.env = env
        try:
            with self.builder.at(region):
                yield
        finally:
            self.frame.env = saved


def fields(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare the fields of the node that a `visit_` method handles."""

    def mark(method: Callable[..., Any]) -> Callable[..., Any]:
        method.fields = frozenset(names)  # type: ignore[attr-defined]
        return method

    return mark
