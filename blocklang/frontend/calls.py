"""Calls: of the language, of jitted and local functions (compiled in place), of Python's by allow-list."""

from __future__ import annotations

import ast
import builtins
import enum
import inspect
import types
from collections.abc import Callable, Iterable
from typing import Any

from blocklang.diagnostics import BlocklangError, CompilationError, Location
from blocklang.frontend.base import fields
from blocklang.frontend.expressions import PYTHON_REFUSALS, Expressions
from blocklang.frontend.foreign import HostFunction, function_help
from blocklang.frontend.lookup import is_namedtuple_class, python_number, source_of
from blocklang.frontend.names import assigned_names
from blocklang.frontend.scope import FLAGS, RETURN, STOPPED, VALUE, Dependency, Frame
from blocklang.frontend.source import KernelSource, is_constexpr_annotation
from blocklang.frontend.strict import broken_by_call
from blocklang.frontend.values import describe_kind, is_number
from blocklang.language import dtypes as tl
from blocklang.language import maths
from blocklang.language.aggregate import BoundMethod, call_python, constexpr_function, is_aggregate_class
from blocklang.language.arithmetic import truth
from blocklang.language.constexpr import constexpr, is_compile_time, unwrap
from blocklang.language.events import device_print
from blocklang.language.hints import condition as tl_condition
from blocklang.language.hints import range as tl_range
from blocklang.language.registry import advice_on_result, is_builtin, is_library_function
from blocklang.language.tensor import tensor
from blocklang.language.windows import Window

MAXIMUM_CALL_DEPTH = 100
_NUMBERS = (int, float, str, round, len)


class LocalFunction:
    """A `def` or `lambda` inside a kernel. It sees the names around it as they are when it is called.

    Language functions call it like any Python function; each call compiles its body in place.
    """

    is_local_function = True

    def __init__(
        self,
        calls: Calls,
        node: ast.FunctionDef | ast.Lambda,
        frame: Frame,
        name: str,
        defaults: dict[str, Any],
    ) -> None:
        self.calls = calls
        self.node = node
        self.frame = frame
        self.__name__ = name
        args = node.args
        kinds = inspect.Parameter
        self.signature = inspect.Signature(
            [
                kinds(a.arg, kind, default=defaults.get(a.arg, kinds.empty), annotation=_annotation(a))
                for kind, group in (
                    (kinds.POSITIONAL_ONLY, args.posonlyargs),
                    (kinds.POSITIONAL_OR_KEYWORD, args.args),
                    (kinds.KEYWORD_ONLY, args.kwonlyargs),
                )
                for a in group
            ]
        )

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self.calls.call_local(self, args, keywords)


def _annotation(argument: ast.arg) -> Any:
    return inspect.Parameter.empty if argument.annotation is None else ast.unparse(argument.annotation)


def _parameter(value: Any, is_constexpr: bool) -> Any:
    """What a parameter of a called function is bound to.

    The annotation `constexpr` keeps what is known at compile time so. It demands nothing of a caller: kernels
    in the wild hand blocks to such parameters, and only a use that needs a constant is wrong.
    """
    return constexpr(value) if is_constexpr and is_compile_time(value) else value


class Calls(Expressions):
    """Calls of every kind of function."""

    @fields("func", "args", "keywords")
    def visit_Call(self, node: ast.Call) -> Any:
        function = unwrap(self.visit(node.func))
        advice = advice_on_result(function)
        if advice is not None and node is self.dropped:
            self.fail(f"The result of `{ast.unparse(node.func)}` is not being used", help=advice)
        args = self.items(node.args)
        keywords: dict[str, Any] = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                self.refuse("`**` in a call", help="write the keywords out", at=keyword.value)
            keywords[keyword.arg] = self.visit(keyword.value)
        return self.call(function, args, keywords)

    def call(self, function: Any, args: list[Any], keywords: dict[str, Any]) -> Any:
        """Call whatever a kernel may call."""
        source = source_of(function)
        if source is not None:
            return self.call_jitted(source, args, keywords)
        if isinstance(function, LocalFunction):
            return function(*args, **keywords)
        if _is_language(function):
            functions = [self._callable(a) for a in args]
            return self._call_language(
                function, functions, {k: self._callable(v) for k, v in keywords.items()}
            )
        if isinstance(function, BoundMethod):
            return self.call(function.function, [function.instance, *args], keywords)
        if isinstance(function, constexpr_function) or is_aggregate_class(function):
            self._depends_on_python(function)
            return call_python(function, args, keywords)
        if isinstance(function, type) and (
            function in (constexpr, tl_condition) or is_namedtuple_class(function)
        ):
            return self._call_python(function, args, keywords)
        if isinstance(function, type) and issubclass(function, enum.Enum):
            return self._fold_python(function, args, keywords)
        if isinstance(function, HostFunction):
            return self._call_host(function, args, keywords)
        own = next((method for python, method in _PYTHON_CALLS if python is function), None)
        if own is not None:
            return self._call_python(own, [self, *args], keywords)
        if any(function is f for f in _NUMBERS) or _is_method_of_plain_value(function):
            return self._fold_python(function, args, keywords)
        if isinstance(function, type) and issubclass(function, tl_range):
            self.refuse(f"`{function.__name__}` outside a `for`")
        self.refuse(
            f"a call of {describe_kind(function)}",
            help="call functions of `tl`, and `@blocklang.jit` functions",
        )

    def _call_host(self, host: HostFunction, args: list[Any], keywords: dict[str, Any]) -> Any:
        """Run a function of Python's, on values known at compile time."""
        if all(is_compile_time(v) for v in (*args, *keywords.values())):
            return python_number(call_python(constexpr_function(host.function), args, keywords))
        given = ", ".join(map(describe_kind, (*args, *keywords.values())))
        help = function_help(host.function)
        if help is None:
            help = f"put `@blocklang.jit` above `def {host.function.__name__}`"
        self.fail(f"`{host.path}` is Python's and takes values known at compile time, got {given}", help=help)

    def _depends_on_python(self, function: Any) -> None:
        fn = getattr(function, "fn", None)
        for each in [fn] if fn is not None else function.user_functions:
            plain = getattr(each, "fn", each)
            self._depends_on_code(function.__name__, getattr(plain, "__func__", plain))

    def _callable(self, value: Any) -> Any:
        """Jitted functions as something that language functions can call."""
        bound = unwrap(value)
        if isinstance(bound, BoundMethod):
            return lambda *args, **keywords: self.call(bound, list(args), keywords)
        source = source_of(bound)
        if source is None:
            return value
        return lambda *args, **keywords: self.call_jitted(source, list(args), keywords)

    def _call_language(self, function: Callable[..., Any], args: list[Any], keywords: dict[str, Any]) -> Any:
        name = getattr(function, "__name__", "this function")
        try:
            signature = inspect.signature(function)
            signature.bind(*args, **keywords)
        except TypeError as error:
            names = ", ".join(signature.parameters)
            self.fail(f"{name}(): {error}", help=f"the parameters of `{name}` are ({names})")
        own = [function.__self__] if isinstance(function, types.MethodType) else []
        rule = None if is_library_function(function) else name  # libdevice has types of its own
        wrong = broken_by_call(rule, [*own, *args, *keywords.values()])
        if wrong is not None:
            self.refuse_strictly(wrong[0], *wrong[1])
        try:
            return function(*args, **keywords)
        except ZeroDivisionError as error:  # of constants: cdiv(n, 0)
            self.fail(f"`{name}` cannot be computed: {error}")

    def _call_python(self, function: Callable[..., Any], args: list[Any], keywords: dict[str, Any]) -> Any:
        try:
            return function(*args, **keywords)
        except BlocklangError:
            raise
        except PYTHON_REFUSALS as error:
            self.fail(f"{getattr(function, '__name__', 'this call')}(): {error}")

    def _fold_python(self, function: Callable[..., Any], args: list[Any], keywords: dict[str, Any]) -> Any:
        name = getattr(function, "__name__", "this function")
        if function is len and args and isinstance(unwrap(args[0]), tuple):
            return len(unwrap(args[0]))
        if not all(is_compile_time(v) for v in (*args, *keywords.values())):
            if function is len and args and isinstance(args[0], tensor):
                self.fail("a block has no `len`", help="write `x.shape[0]`")
            self.refuse(
                f"Python's `{name}` of a run-time value",
                help="convert with `.to(tl.int32)`, `.to(tl.float32)`; use the functions of `tl`",
            )
        plain = [unwrap(a) for a in args]
        return self._call_python(function, plain, {k: unwrap(v) for k, v in keywords.items()})

    # ---- Python's functions that have a meaning of their own ----

    def _breakpoint(self, *args: Any, **keywords: Any) -> None:
        if not self.rules.is_check:
            self.refuse(
                "`breakpoint()`",
                help="a debugger stops in kernels that run with `@blocklang.jit(interpret=True)`",
            )

    def _print(self, *args: Any, **keywords: Any) -> None:
        named = args if args and isinstance(unwrap(args[0]), str) else ("", *args)
        self._call_language(device_print, list(named), keywords)

    def _refuse_range(self, *args: Any) -> Any:
        if not all(is_compile_time(a) for a in args):
            self.refuse("`range` of run-time values outside a `for`")
        return self._fold_python(builtins.range, list(args), {})

    def _extreme(self, name: str, args: tuple[Any, ...]) -> Any:
        items = (
            list(unwrap(args[0]))
            if len(args) == 1 and isinstance(unwrap(args[0]), (tuple, list))
            else list(args)
        )
        if not items:
            self.fail(f"{name}() needs values")
        if all(is_compile_time(i) for i in items):
            return self._call_python(getattr(builtins, name), [unwrap(i) for i in items], {})
        combine = maths.minimum if name == "min" else maths.maximum
        result = items[0]
        for item in items[1:]:
            result = combine(result, item)
        return result

    def _min(self, *args: Any) -> Any:
        return self._extreme("min", args)

    def _max(self, *args: Any) -> Any:
        return self._extreme("max", args)

    def _abs(self, value: Any) -> Any:
        return maths.abs(value) if isinstance(value, tensor) else abs(unwrap(value))

    def _bool(self, value: Any = False) -> Any:
        return truth(value, "bool") if isinstance(value, tensor) else bool(unwrap(value))

    def _tuple(self, value: Any = ()) -> Any:
        plain = unwrap(value)
        if not isinstance(plain, (tuple, list, range, zip, enumerate, reversed)):
            self.fail(f"{describe_kind(value)} is not a sequence known at compile time")
        return tuple(plain)

    def _sum(self, values: Any, start: Any = 0) -> Any:
        items = self._tuple(values)
        result = items[0] + start if items else unwrap(start)
        for item in items[1:]:
            result = result + item
        return result

    def _zip(self, *values: Any) -> Any:
        return tuple(zip(*(self._tuple(v) for v in values), strict=False))

    def _enumerate(self, value: Any, start: Any = 0) -> Any:
        return tuple(enumerate(self._tuple(value), unwrap(start)))

    def _reversed(self, value: Any) -> Any:
        return tuple(reversed(self._tuple(value)))

    def _isinstance(self, value: Any, kinds: Any) -> bool:
        plain_kinds = unwrap(kinds)
        wanted = tuple(unwrap(k) for k in plain_kinds) if isinstance(plain_kinds, tuple) else (plain_kinds,)
        wrapped = constexpr(value) if is_number(value) and not isinstance(value, constexpr) else value
        return any(isinstance(v, k) for v in (value, unwrap(value), wrapped) for k in wanted)

    def _getattr(self, value: Any, name: Any, *default: Any) -> Any:
        node = ast.Attribute(ast.Name("value", ast.Load()), str(unwrap(name)), ast.Load())
        try:
            return self.attribute(value, node)
        except BlocklangError:
            if default:
                return default[0]
            raise

    def _hasattr(self, value: Any, name: Any) -> bool:
        return hasattr(value if isinstance(value, (tensor, constexpr)) else unwrap(value), str(unwrap(name)))

    # ---- functions compiled in place ----

    def call_jitted(self, source: KernelSource, args: list[Any], keywords: dict[str, Any]) -> Any:
        """Compile a jitted function's body at the place of the call."""
        key = f"call of {source.file}:{source.first_line} {source.name}"
        called = Dependency(source.name, source.fingerprint, lambda: source.fingerprint, source.function)
        self.dependencies.setdefault(key, called)
        bound = self._bind(source.signature, source.name, args, keywords)
        constexprs = {p.name for p in source.parameters if p.is_constexpr}
        env = {k: _parameter(v, k in constexprs) for k, v in bound.items()}
        frame = self._new_frame(source, source.name, env, assigned_names(source.node.body), None)
        return self._run(frame, source.node.body)

    def call_local(self, function: LocalFunction, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Compile a local function's body at the place of the call."""
        node = function.node
        name = function.__name__
        bound = self._bind(function.signature, name, list(args), keywords)
        annotations = {p.name: p.annotation for p in function.signature.parameters.values()}
        env = {k: _parameter(v, is_constexpr_annotation(annotations[k])) for k, v in bound.items()}
        if isinstance(node, ast.Lambda):
            body: list[ast.stmt] = [ast.copy_location(ast.Return(node.body), node.body)]
        else:
            body = node.body
        frame = self._new_frame(function.frame.source, name, env, assigned_names(body), function.frame)
        return self._run(frame, body)

    def _bind(
        self, signature: inspect.Signature, name: str, args: list[Any], keywords: dict[str, Any]
    ) -> dict[str, Any]:
        try:
            bound = signature.bind(*args, **keywords)
        except TypeError as error:
            names = ", ".join(signature.parameters)
            self.fail(f"{name}(): {error}", help=f"the parameters of `{name}` are ({names})")
        bound.apply_defaults()
        return dict(bound.arguments)

    def _new_frame(
        self,
        source: KernelSource,
        name: str,
        env: dict[str, Any],
        local_names: Iterable[str],
        parent: Frame | None,
    ) -> Frame:
        depth = self.frame.depth + 1
        if depth > MAXIMUM_CALL_DEPTH:
            raise _endless(self.frame, name, self.builder.location)
        frame = Frame(source, name, env, frozenset(local_names) | env.keys(), parent, depth=depth)
        frame.reset_flags()
        return frame

    def _run(self, frame: Frame, body: list[ast.stmt]) -> Any:
        """Compile a function's body in its frame; the result is what it returns."""
        caller, self.frame = self.frame, frame
        place = self.builder.location
        try:
            self.function_body(body)
        except BlocklangError as error:
            note = f"in `{frame.name}`, called at {place}"
            if note not in error.notes:  # a recursion is told once
                error.notes.append(note)
            raise
        except RecursionError as error:
            raise _endless(caller, frame.name, place) from error
        finally:
            self.frame = caller
            self.builder.location = place
        return frame.env.get(VALUE)

    def function_body(self, body: list[ast.stmt]) -> None:
        """Compile a body, which ends in a `return`."""
        last = body[-1]
        self.statements([*body, ast.copy_location(ast.Return(None), last)])
        assert self.env.get(STOPPED), "a body ends in a return"
        for flag in FLAGS:
            assert self.env[flag] is (flag == RETURN), "a returned function has no flags left"


def _endless(caller: Frame, name: str, place: Location) -> CompilationError:
    return CompilationError(
        f"the calls of `{name}` do not end, or nest too deeply",
        location=place,
        source=caller.source.padded_text,
        help="calls are compiled in place: a recursion must end by a condition known at compile time",
    )


def _is_language(function: Any) -> bool:
    """True for functions of the language, methods of its values, and constructors of its types."""
    if is_builtin(function):
        return True
    if isinstance(function, types.MethodType):
        return isinstance(function.__self__, (tensor, constexpr, tl.dtype, Window))
    if isinstance(function, types.FunctionType):
        return function.__module__ == "blocklang.language.dtypes"
    return isinstance(function, type) and issubclass(function, tl.dtype)


def _is_method_of_plain_value(function: Any) -> bool:
    owner = getattr(function, "__self__", None)
    is_method = isinstance(function, (types.BuiltinMethodType, types.MethodType))
    return (
        is_method
        and isinstance(owner, (str, int, float, tuple, enum.Enum))
        and not isinstance(owner, types.ModuleType)
    )


_PYTHON_CALLS: tuple[tuple[Any, Callable[..., Any]], ...] = (
    (builtins.breakpoint, Calls._breakpoint),
    (builtins.print, Calls._print),
    (builtins.range, Calls._refuse_range),
    (builtins.min, Calls._min),
    (builtins.max, Calls._max),
    (builtins.abs, Calls._abs),
    (builtins.bool, Calls._bool),
    (builtins.tuple, Calls._tuple),
    (builtins.list, Calls._tuple),
    (builtins.sum, Calls._sum),
    (builtins.zip, Calls._zip),
    (builtins.enumerate, Calls._enumerate),
    (builtins.reversed, Calls._reversed),
    (builtins.isinstance, Calls._isinstance),
    (builtins.getattr, Calls._getattr),
    (builtins.hasattr, Calls._hasattr),
)
