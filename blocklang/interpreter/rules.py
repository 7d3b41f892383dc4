"""The rules of the language that rewritten kernels ask for (`rewriting`): numbers that become run-time
scalars, conditions, ranges, calls.

One object serves one launch. What it decides must agree with the frontend, which compiles the same source.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Iterator
from functools import partial, reduce
from types import CodeType
from typing import Any

import numpy as np

import blocklang.language as tl
from blocklang.diagnostics import CompilationError, InterpreterError
from blocklang.interpreter.control import uniform
from blocklang.interpreter.eager import Deferred, Divergent, EagerBuilder, data_of
from blocklang.interpreter.rewriting import MAKER, Code, rewrite
from blocklang.language.arithmetic import logical, logical_not, truth
from blocklang.language.casting import cast_element
from blocklang.language.constexpr import constexpr, describe, is_compile_time, unwrap
from blocklang.language.promotion import integer_promote
from blocklang.language.tensor import constant, is_block, tensor, to_tensor

CodeOf = Callable[[object], Code | None]


class Rules:
    """What `__blocklang__` is in a rewritten kernel.

    Args:
        builder: evaluates the language's operations.
        code_of: the source of a kernel that another one calls; None for anything else.
    """

    def __init__(self, builder: EagerBuilder, code_of: CodeOf) -> None:
        self.builder = builder
        self.code_of = code_of
        self.codes: dict[CodeType, Code] = {}
        self._functions: dict[int, tuple[object, Callable[..., Any]]] = {}

    # ---- functions ----

    def function_of(self, code: Code) -> Callable[..., Any]:
        """The user's function, rewritten."""
        original: Any = code.function
        known = self._functions.get(id(original))
        if known is not None:
            return known[1]
        module = compile(rewrite(code.node, original.__code__.co_freevars), code.file, "exec")
        for part in _nested(module):
            self.codes[part] = code
        namespace: dict[str, Any] = {}
        exec(module, original.__globals__, namespace)
        cells = [_contents(cell, name) for cell, name in _cells(original)]
        function: Any = namespace[MAKER](*cells, self)
        function.__defaults__, function.__kwdefaults__ = original.__defaults__, original.__kwdefaults__
        self._functions[id(original)] = (original, function)
        result: Callable[..., Any] = function
        return result

    def callee(self, function: Any) -> Any:
        """What runs when the kernel calls `function`."""
        function = unwrap(function)
        if id(function) in _REPLACED:
            return _REPLACED[id(function)]
        if _takes_function(function):
            return partial(self._call_with_functions, function)
        code = self.code_of(function)
        return function if code is None else self.function_of(code)

    def _call_with_functions(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        return function(
            *map(self._deferred, arguments), **{name: self._deferred(x) for name, x in named.items()}
        )

    def _deferred(self, argument: Any) -> Any:
        plain = unwrap(argument)
        if not callable(plain) or isinstance(plain, (type, tensor, tl.dtype)):
            return argument
        return Deferred(self.builder, self.callee(plain))

    # ---- names ----

    def assigned(self, value: Any) -> Any:
        """What a plain assignment binds: numbers become run-time scalars, also in tuples."""
        plain = unwrap(value)
        if isinstance(plain, (bool, int, float)):
            return to_tensor(value)
        if isinstance(plain, (tuple, list)):
            items = [self.assigned(item) for item in plain]
            return type(plain)(*items) if hasattr(plain, "_fields") else tuple(items)
        return plain

    def compile_time(self, value: Any) -> Any:
        """What a name annotated `constexpr` binds."""
        if not is_compile_time(value):
            raise CompilationError(
                f"a constexpr must be known at compile time, got {describe(value)}",
                help="leave the annotation out, or compute the value from constexprs only",
            )
        return value if isinstance(value, constexpr) else constexpr(value)

    # ---- conditions ----

    def truth(self, value: Any) -> bool:
        """Whether a condition holds.

        Raises:
            Divergent: lanes that are evaluated together differ.
        """
        if not isinstance(value, tensor):
            return bool(unwrap(value))
        if is_block(value) and data_of(value).size != 1:
            raise CompilationError(
                f"a condition must be a scalar, got {value.value.type}",
                help="choose lane by lane with `tl.where`, or reduce the block to one value",
            )
        return bool(self._single(value))

    @staticmethod
    def _single(value: tensor) -> Any:
        single = uniform(data_of(value), None)
        if single is None:
            raise Divergent
        return single[()]

    def holds(self, value: Any) -> bool:
        """Whether an assertion holds: in every lane."""
        if isinstance(value, tensor):
            return bool(np.all(data_of(value) != 0))
        return bool(unwrap(value))

    def negated(self, value: Any) -> Any:
        """`not value`."""
        if isinstance(value, tensor):
            return logical_not(value)
        return constexpr(not unwrap(value)) if isinstance(value, constexpr) else not value

    def goes_on_and(self, value: Any) -> bool:
        """Whether `value and ...` has to look at the other side. Blocks are joined lane by lane."""
        return self._is_block(value) or self.truth(value)

    def goes_on_or(self, value: Any) -> bool:
        return self._is_block(value) or not self.truth(value)

    @staticmethod
    def _is_block(value: Any) -> bool:
        return isinstance(value, tensor) and is_block(value)

    def joined_and(self, left: Any, right: Any) -> Any:
        return right if is_compile_time(left) else logical("and", left, right)

    def joined_or(self, left: Any, right: Any) -> Any:
        return right if is_compile_time(left) else logical("or", left, right)

    def decided(self, value: Any) -> Any:
        """The result of `and` or `or` when the left side decides: a bool, if it is a run-time value."""
        return truth(value, "and") if isinstance(value, tensor) else value

    def same(self, left: Any, right: Any) -> bool:
        return unwrap(left) is unwrap(right)

    def different(self, left: Any, right: Any) -> bool:
        return not self.same(left, right)

    def contained(self, left: Any, right: Any) -> bool:
        if not is_compile_time(left) or not is_compile_time(right):
            raise CompilationError("`in` needs values known at compile time")
        items = unwrap(right)
        return unwrap(left) in (tuple(map(unwrap, items)) if isinstance(items, (tuple, list)) else items)

    def absent(self, left: Any, right: Any) -> bool:
        return not self.contained(left, right)

    # ---- loops ----

    def iterate(self, items: Any) -> Iterator[Any]:
        """What a `for` runs over: ranges count run-time scalars, `tl.static_range` compile-time numbers."""
        items = unwrap(items)
        if isinstance(items, builtins.range):
            items = tl.range(items.start, items.stop, items.step)
        if isinstance(items, tl.static_range):
            return (constexpr(i) for i in builtins.range(*map(operator.index, map(_static, items.bounds()))))
        if isinstance(items, tl.range):
            return self._run_time_range(items.bounds())
        return iter(items)

    def _run_time_range(self, bounds: tuple[Any, Any, Any]) -> Iterator[tensor]:
        values = [to_tensor(bound) for bound in bounds]
        for value, what in zip(values, ("start", "stop", "step"), strict=True):
            if is_block(value) or not value.dtype.is_int():
                raise CompilationError(
                    f"the {what} of range must be an integer scalar, got {value.value.type}",
                    help="convert a float with `.to(tl.int32)`; reduce a block to a scalar first",
                )
        index_type = _index_type(bounds, values)
        start, stop, step = (int(self._single(cast_element(v, index_type))) for v in values)
        if step == 0:
            raise InterpreterError("the step of range must not be 0")
        return (constant(i, index_type) for i in builtins.range(start, stop, step))


def _index_type(bounds: tuple[Any, Any, Any], values: list[tensor]) -> Any:
    """The type of a loop's index: common to the bounds, at least int32, signed if any may be negative."""
    common = reduce(integer_promote, (v.dtype for v in values), tl.int32)
    is_number = [isinstance(unwrap(b), (bool, int)) for b in bounds]
    negative = any(n and unwrap(b) < 0 for b, n in zip(bounds, is_number, strict=True))
    signed = any(not n and v.dtype.is_int_signed() for v, n in zip(values, is_number, strict=True))
    if not common.is_int_unsigned() or not (negative or signed):
        return common
    if common.int_bitwidth < 64:
        return tl.int64
    raise CompilationError("the bounds of range are uint64 and signed", help="cast all of them to tl.int64")


def _static(value: Any) -> Any:
    if isinstance(value, tensor):
        raise CompilationError(
            f"the bounds of static_range must be known at compile time, got {describe(value)}",
            help="use `range`, or a `tl.constexpr`",
        )
    return unwrap(value)


def _elementwise(function: Callable[..., Any], plain: Callable[..., Any]) -> Callable[..., Any]:
    """Python's `min` or `max`: of compile-time numbers, or lane by lane."""

    def call(*arguments: Any) -> Any:
        items = arguments if len(arguments) > 1 else unwrap(arguments[0])
        if is_compile_time(tuple(items)):
            return plain(*map(unwrap, items))
        return reduce(function, items)

    return call


def _absolute(value: Any) -> Any:
    return tl.abs(value) if isinstance(value, tensor) else abs(unwrap(value))


# Python's functions that mean something of their own in a kernel, by identity.
_REPLACED: dict[int, Any] = {
    id(builtins.range): tl.range,
    id(builtins.min): _elementwise(tl.minimum, builtins.min),
    id(builtins.max): _elementwise(tl.maximum, builtins.max),
    id(builtins.abs): _absolute,
}


def _takes_function(function: Any) -> bool:
    """True for the functions and methods of the language that take a function of the user's."""
    return function is tl.reduce or getattr(function, "__func__", None) is tensor.reduce


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _nested(part)


def _cells(function: Any) -> Iterator[tuple[Any, str]]:
    return zip(function.__closure__ or (), function.__code__.co_freevars, strict=True)


def _contents(cell: Any, name: str) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        raise CompilationError(
            f"the name `{name}` has no value yet", help="launch the kernel after it is assigned"
        ) from None
