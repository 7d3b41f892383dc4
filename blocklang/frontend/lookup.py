"""Where names outside a function lead: enclosing functions, globals, and Python's own, by allow-list.

Everything read from outside is recorded as a dependency, so that a changed value compiles the kernel anew.
"""

from __future__ import annotations

import ast
import builtins
import difflib
import enum
import types
from functools import partial
from typing import Any

from blocklang.diagnostics import CompilationError
from blocklang.frontend.foreign import HostFunction, attribute_help, function_help, is_host_function
from blocklang.frontend.loops import Loops
from blocklang.frontend.scope import Dependency, Frame
from blocklang.frontend.source import KernelSource
from blocklang.frontend.strict import STRICT_PYTHON_NAMES, is_strict_global
from blocklang.language import dtypes as tl
from blocklang.language.aggregate import Aggregate, BoundMethod, constexpr_function, is_aggregate_class
from blocklang.language.compound import children
from blocklang.language.constexpr import constexpr, unwrap
from blocklang.language.hints import condition as tl_condition
from blocklang.language.hints import range as tl_range
from blocklang.language.registry import is_builtin
from blocklang.language.tensor import tensor
from blocklang.language.windows import Window

# Python's own names that mean something in a kernel.
PYTHON_NAMES = frozenset(
    {
        *(
            "range",
            "len",
            "min",
            "max",
            "abs",
            "int",
            "float",
            "bool",
            "str",
            "isinstance",
            "getattr",
            "hasattr",
        ),
        *("tuple", "list", "print", "breakpoint", "zip", "enumerate", "reversed", "sum", "round"),
    }
)
_PYTHON_OBJECTS = frozenset(id(getattr(builtins, name)) for name in PYTHON_NAMES)
_TYPES = (constexpr, tensor, tl.dtype, tl.pointer_type, tl.block_type, tl.const, Window)


def source_of(value: object) -> KernelSource | None:
    """The source of a jitted function; None for anything else."""
    source = getattr(value, "source", None)
    return source if isinstance(source, KernelSource) else None


def is_namedtuple_class(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields")


class Lookup(Loops):
    """Names and attributes."""

    def lookup(self, name: str) -> Any:
        """The value of a name at this point. Raises CompilationError if it has none that a kernel can use."""
        frame: Frame | None = self.frame
        while frame is not None:
            if name in frame.env:
                return frame.env[name]
            if name in frame.local_names:
                self.fail(
                    f"`{name}` is used before it is assigned",
                    help="a name that a function assigns anywhere is local to it, as in Python",
                )
            frame = frame.parent
        return self._outside(name)

    def _outside(self, name: str) -> Any:
        source = self.frame.source
        if name in source.closure:
            return self._captured(name, source)
        if name in source.globals:
            read = lambda: source.globals[name]  # noqa: E731
            return self._depends(name, source.globals[name], read, f"the global `{name}`", source.globals)
        if name in PYTHON_NAMES:
            if name not in STRICT_PYTHON_NAMES:
                self.refuse_strictly("python name", name)
            return getattr(builtins, name)
        if hasattr(builtins, name):
            self.refuse(
                f"Python's `{name}`",
                help="a kernel calls functions of `tl` and other `@blocklang.jit` functions",
            )
        known = [*self.frame.env, *source.globals, *PYTHON_NAMES]
        close = difflib.get_close_matches(name, [n for n in known if not n.startswith("<")], 1)
        self.fail(f"the name `{name}` is not defined", help=f"did you mean `{close[0]}`?" if close else None)

    def _captured(self, name: str, source: KernelSource) -> Any:
        def read() -> Any:
            return source.closure[name].cell_contents

        try:
            value = read()
        except ValueError:
            self.fail(f"`{name}`, of the function around the kernel, has no value yet")
        what = f"`{name}`, captured from the function around the kernel,"
        return self._depends(name, value, read, what, source.closure[name])

    def _depends(self, name: str, value: Any, read: Any, what: str, container: Any) -> Any:
        if "." not in name and not is_strict_global(value):
            self.refuse_strictly("global", name)
        self.check_visible(value, what)
        value = python_number(value)
        if not isinstance(value, types.ModuleType) and not is_builtin(value):
            key = f"{self.frame.source.name}: {name}"
            called = source_of(value)
            if called is None:
                found = Dependency(name, value, lambda: python_number(read()), container)
            else:
                found = Dependency(name, called.fingerprint, lambda: _fingerprint(read()), container)
            self.dependencies.setdefault(key, found)
        return value

    def check_visible(self, value: Any, what: str) -> None:
        """Raise unless a kernel can use a value from outside."""
        if self._is_visible(value):
            return
        kind = type(value).__name__
        instead = function_help(value)
        if instead is not None:
            self.fail(f"{what} is no function or type of the language", help=instead)
        if isinstance(value, types.FunctionType):
            self.fail(
                f"{what} is a plain Python function, which a kernel cannot call",
                help=f"put `@blocklang.jit` above `def {value.__name__}`",
            )
        self.fail(
            f"{what} is of type {kind}, which a kernel cannot use",
            help="numbers, strings, tuples, dtypes, modules and `@blocklang.jit` functions can be "
            "captured; pass arrays "
            "as arguments",
        )

    def _is_visible(self, value: Any) -> bool:
        value = python_number(unwrap(value))
        items = children(value)
        if items is not None:
            return all(map(self._is_visible, items))
        return (
            value is None
            or isinstance(value, (bool, int, float, str, enum.Enum, tl.dtype, types.ModuleType, tensor))
            or is_builtin(value)
            or source_of(value) is not None
            or id(value) in _PYTHON_OBJECTS
            or (
                isinstance(value, type)
                and (
                    issubclass(value, (*_TYPES, tl_range, tl_condition, enum.Enum))
                    or is_namedtuple_class(value)
                    or is_aggregate_class(value)
                )
            )
            or isinstance(value, (constexpr_function, BoundMethod, HostFunction, types.SimpleNamespace))
            or getattr(value, "is_local_function", False)
        )

    def attribute(self, owner: Any, node: ast.Attribute) -> Any:
        """`owner.attr`."""
        name = node.attr
        plain = unwrap(owner)
        if name.startswith("_") and not (isinstance(plain, Aggregate) or is_aggregate_class(plain)):
            self.refuse(f"the private attribute `{name}`")
        if isinstance(plain, (types.ModuleType, types.SimpleNamespace)):
            return self._member(plain, name, node)
        holder = owner if isinstance(owner, (tensor, constexpr)) else plain
        if isinstance(holder, (bool, int, float)):
            holder = constexpr(holder)
        try:
            return python_number(getattr(holder, name))
        except AttributeError:
            close = difflib.get_close_matches(name, [n for n in dir(holder) if not n.startswith("_")], 1)
            what = "a run-time value" if isinstance(owner, tensor) else _described(plain)
            help = attribute_help(name) if isinstance(holder, (tensor, constexpr)) else None
            if help is None and close:
                help = f"did you mean `{close[0]}`?"
            self.fail(f"{what} has no attribute `{name}`", help=help)

    def _member(self, module: Any, name: str, node: ast.Attribute) -> Any:
        path = ast.unparse(node)
        try:
            value = getattr(module, name)
        except AttributeError:
            known = getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]
            close = difflib.get_close_matches(name, known, 1)
            raise CompilationError(
                f"`{ast.unparse(node.value)}` has no `{name}`",
                help=f"did you mean `{close[0]}`?" if close else None,
            ) from None
        if getattr(module, "__name__", "").startswith("blocklang.") and (
            is_builtin(value) or isinstance(value, type)
        ):
            return value
        if is_host_function(value) and not self._is_visible(value):
            self._depends_on_code(path, value)
            return HostFunction(value, path)
        return self._depends(path, value, lambda: getattr(module, name), f"`{path}`", module)

    def _depends_on_code(self, name: str, function: Any) -> None:
        """Note a Python function that may run at compile time: another text compiles the kernel anew."""
        code = getattr(function, "__code__", None)
        if code is not None:
            key = f"python {code.co_filename}:{code.co_firstlineno} {code.co_qualname}"
            found = Dependency(name, code, partial(getattr, function, "__code__"), function)
            self.dependencies.setdefault(key, found)


def _described(value: Any) -> str:
    if isinstance(value, Window):
        return repr(value)
    kind = type(value).__name__
    return f"a `{kind}`" if isinstance(value, Aggregate) else f"{kind} {value!r}"


def python_number(value: Any) -> Any:
    """A NumPy scalar as the Python number that it is; anything else as it is."""
    if type(value).__module__ == "numpy" and not hasattr(value, "__array_interface__"):
        return value
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == () and hasattr(value, "item"):
        return value.item()
    return value


def _fingerprint(value: Any) -> str | None:
    source = source_of(value)
    return None if source is None else source.fingerprint
