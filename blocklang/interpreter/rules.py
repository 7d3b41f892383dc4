"""The rules of the language that rewritten kernels ask for (`rewriting`): numbers that become run-time
scalars, conditions, ranges, calls.

One object serves one launch. What it decides must agree with the frontend, which compiles the same source.
"""

from __future__ import annotations

import builtins
import operator
import types
from collections.abc import Callable, Iterator
from functools import partial, reduce
from types import CodeType
from typing import Any

import numpy as np

import blocklang.language as tl
from blocklang.depth import deep_recursion
from blocklang.diagnostics import CompilationError, CompileTimeAssertionFailure
from blocklang.interpreter.control import uniform
from blocklang.interpreter.eager import Deferred, Divergent, EagerBuilder, data_of
from blocklang.interpreter.rewriting import MAKER, Code, rewrite
from blocklang.language.aggregate import BoundMethod, call_python, constexpr_function, is_aggregate_class
from blocklang.language.arithmetic import logical, logical_not, truth
from blocklang.language.casting import cast_element
from blocklang.language.compound import children, equal, is_alike, remake, unequal
from blocklang.language.constexpr import constexpr, describe, is_compile_time, unwrap
from blocklang.language.promotion import computation_type, integer_promote
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
        cells = dict(_captured(original))
        outside = {**original.__globals__, **cells}
        numbers = {name for name in original.__code__.co_names if isinstance(outside.get(name), np.generic)}
        numbers |= {name for name, value in cells.items() if isinstance(value, np.generic)}
        with deep_recursion():
            tree = rewrite(code.node, list(cells), numbers)
            module = compile(tree, code.file, "exec", dont_inherit=True)
        for part in _nested(module):
            self.codes[part] = code
        namespace: dict[str, Any] = {}
        exec(module, original.__globals__, namespace)
        function: Any = namespace[MAKER](*cells.values(), self)
        function.__defaults__, function.__kwdefaults__ = original.__defaults__, original.__kwdefaults__
        self._functions[id(original)] = (original, function)
        result: Callable[..., Any] = function
        return result

    def callee(self, function: Any) -> Any:
        """What runs when the kernel calls `function`."""
        function = unwrap(function)
        if id(function) in _REPLACED:
            return _REPLACED[id(function)]
        if isinstance(function, BoundMethod):
            return partial(self.callee(function.function), function.instance)
        if isinstance(function, constexpr_function) or is_aggregate_class(function):
            return partial(_call_python, function)
        if _takes_function(function):
            return partial(self._call_with_functions, function)
        code = self.code_of(function)
        if code is not None:
            return self.function_of(code)
        is_known = getattr(function, "__code__", None) in self.codes  # a function of the kernel's own
        if is_known or not _is_of_the_host(function):
            return function
        return partial(_call_python, constexpr_function(function))

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
        if is_number(plain):
            return to_tensor(value)
        if isinstance(plain, (tuple, list)):
            return remake(plain, [self.assigned(item) for item in plain])
        return plain

    def compile_time(self, value: Any) -> Any:
        """What a name annotated `constexpr` binds."""
        if not is_compile_time(value):
            raise CompilationError(
                f"a constexpr must be known at compile time, got {describe(value)}",
                help="leave the annotation out, or compute the value from constexprs only",
            )
        return value if isinstance(value, constexpr) else constexpr(value)

    def constexpr_parameter(self, value: Any) -> Any:
        """What a parameter annotated `constexpr` holds; a caller may hand in a run-time value."""
        return self.compile_time(value) if is_compile_time(value) else value

    # ---- conditions ----

    def truth(self, value: Any) -> bool:
        """Whether a condition holds.

        Raises:
            Divergent: lanes that are evaluated together differ.
        """
        if isinstance(value, tl.condition):
            value = value.arg1
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

    def asserted(self, value: Any, message: Callable[[], Any]) -> None:
        """`assert value, message()`: at once if it is known at compile time, else in debug mode."""
        if not is_compile_time(value):
            tl.device_assert(value, str(unwrap(message())) if self.builder.debug else "")
        elif not unwrap(value):
            text = str(unwrap(message()))
            raise CompileTimeAssertionFailure(f"the assertion failed{f': {text}' if text else ''}")

    def negated(self, value: Any) -> Any:
        """`not value`."""
        if isinstance(value, tensor):
            return logical_not(value)
        return constexpr(not unwrap(value)) if isinstance(value, constexpr) else not value

    # `and` and `or` give the operand that decides, as in Python, in the common type of both; bools and blocks
    # are joined lane by lane.

    def goes_on_and(self, value: Any) -> bool:
        """Whether `value and ...` has to look at the other side."""
        return self._is_block(value) or self.truth(value)

    def goes_on_or(self, value: Any) -> bool:
        return self._is_block(value) or not self.truth(value)

    @staticmethod
    def _is_block(value: Any) -> bool:
        return isinstance(value, tensor) and is_block(value)

    def joined_and(self, first: Any, second: Any) -> Any:
        """The result when both sides were evaluated."""
        return self._join("and", first, second, second)

    def joined_or(self, first: Any, second: Any) -> Any:
        return self._join("or", first, second, second)

    def decided_and(self, first: Any, rest: Callable[[], Any]) -> Any:
        """The result when the first side decides; the other one only lends its type."""
        return self._join("and", first, self._only_typed(rest), first) if isinstance(first, tensor) else first

    def decided_or(self, first: Any, rest: Callable[[], Any]) -> Any:
        return self._join("or", first, self._only_typed(rest), first) if isinstance(first, tensor) else first

    def _join(self, name: str, first: Any, second: Any, deciding: Any) -> Any:
        if is_compile_time(first):
            return second
        other = to_tensor(second)
        are_bools = first.dtype.is_int1() and (is_number(second) or other.dtype.is_int1())
        if is_block(first) or are_bools:
            return logical(name, first, bool(unwrap(second)) if is_number(second) else second)
        if is_block(other):
            raise CompilationError(
                f"`{name}` cannot mix {first.value.type} and {other.value.type}", help="compare first"
            )
        common = computation_type(first.dtype, False, other.dtype, is_number(second))
        return cast_element(to_tensor(deciding), common)

    def _only_typed(self, compute: Callable[[], Any]) -> Any:
        """Evaluate for the sake of the type, with no lane live: no memory is touched."""
        with self.builder.machine.under(np.asarray(False)):
            return compute()

    def chosen(self, test: Any, value: Any, other: Callable[[], Any]) -> Any:
        """`value if test else other`: beside a run-time test a number takes the other side's type."""
        if not isinstance(test, tensor):
            return value
        return _beside(value, self._only_typed(other)) if _holds_number(value) else value

    def number(self, value: Any) -> Any:
        """A NumPy scalar from outside as the Python number that it is."""
        return value.item() if isinstance(value, np.generic) else value

    def listed(self, items: list[Any]) -> tuple[Any, ...]:
        """A list is a tuple: nothing can change it."""
        return tuple(items)

    def equal(self, left: Any, right: Any) -> Any:
        """`left == right`, also of tuples and None."""
        return equal(left, right)

    def unequal(self, left: Any, right: Any) -> Any:
        return unequal(left, right)

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
            return iter(())  # as compiled code, which cannot raise
        return (constant(i, index_type) for i in builtins.range(start, stop, step))


def _call_python(function: Any, *args: Any, **keywords: Any) -> Any:
    return call_python(function, args, keywords)


def is_number(value: Any) -> bool:
    return isinstance(unwrap(value), (bool, int, float))


def _holds_number(value: Any) -> bool:
    return is_number(value) or any(map(_holds_number, children(value) or ()))


def _beside(value: Any, other: Any) -> Any:
    """A number as a scalar, of the type of the scalar on the other side if it fits there."""
    if is_alike(value, other):
        pairs = zip(children(value) or (), children(other) or (), strict=True)
        return remake(value, [_beside(x, y) for x, y in pairs])
    if not is_number(value):
        return value
    own = to_tensor(value)
    if not isinstance(other, tensor) or is_block(other) or other.dtype.is_ptr():
        return own
    fits = computation_type(own.dtype, True, other.dtype, False) == other.dtype
    return constant(unwrap(value), other.dtype) if fits else own


def _index_type(bounds: tuple[Any, Any, Any], values: list[tensor]) -> Any:
    """The type of a loop's index: common to the bounds, at least int32, signed if any may be negative."""
    common = reduce(integer_promote, (v.dtype for v in values), tl.int32)
    negative = any(is_number(b) and unwrap(b) < 0 for b in bounds)
    signed = any(not is_number(b) and v.dtype.is_int_signed() for b, v in zip(bounds, values, strict=True))
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
        items = arguments if len(arguments) > 1 else tuple(unwrap(arguments[0]))
        if is_compile_time(items):
            return plain(*map(unwrap, items))
        return reduce(function, items)

    return call


def _absolute(value: Any) -> Any:
    return tl.abs(value) if isinstance(value, tensor) else abs(unwrap(value))


def _is_instance(value: Any, kinds: Any) -> bool:
    """A compile-time value is of the type that it has in Python, and a `constexpr` too."""
    plain = unwrap(kinds)
    wanted = tuple(map(unwrap, plain)) if isinstance(plain, tuple) else plain
    wrapped = constexpr(value) if is_number(value) else value
    return any(isinstance(each, wanted) for each in (unwrap(value), wrapped))


def _range(*arguments: Any) -> Any:
    """A sequence of numbers where the bounds are known at compile time, as outside of a `for`."""
    plain = [unwrap(a) for a in arguments]
    return builtins.range(*plain) if _counts(plain) else tl.range(*arguments)


def _counts(bounds: list[Any]) -> bool:
    return all(type(bound) is int for bound in bounds) and bounds[2:] != [0]


def _boolean(value: Any = False) -> Any:
    return truth(value, "bool") if isinstance(value, tensor) else bool(unwrap(value))


def _rounded(*arguments: Any, **named: Any) -> Any:
    return round(*map(unwrap, arguments), **{name: unwrap(value) for name, value in named.items()})


# Python's functions that mean something of their own in a kernel, by identity.
def _print(*values: Any, **named: Any) -> None:
    """`print`: the first value may be a prefix."""
    tl.device_print(*(values if values and isinstance(unwrap(values[0]), str) else ("", *values)), **named)


_REPLACED: dict[int, Any] = {
    id(builtins.range): _range,
    id(builtins.bool): _boolean,
    id(builtins.min): _elementwise(tl.minimum, builtins.min),
    id(builtins.max): _elementwise(tl.maximum, builtins.max),
    id(builtins.abs): _absolute,
    id(builtins.isinstance): _is_instance,
    id(builtins.round): _rounded,
    id(builtins.print): _print,
}


_WITH_FUNCTIONS = (
    tl.reduce,
    tl.associative_scan,
    tl.map_elementwise,
    tensor.reduce,
    tensor.associative_scan,
)


def _is_of_the_host(function: Any) -> bool:
    """True for a function of a module that is not the language's: it takes plain values."""
    if isinstance(function, np.ufunc):
        return True
    if isinstance(function, types.FunctionType):
        return (function.__module__ or "").split(".")[0] != "blocklang"
    owner = getattr(function, "__self__", None)
    is_builtin = isinstance(function, types.BuiltinFunctionType)
    return is_builtin and isinstance(owner, types.ModuleType) and owner is not builtins


def _takes_function(function: Any) -> bool:
    """True for the functions and methods of the language that take a function of the user's."""
    own = getattr(function, "__func__", function)
    return any(own is f for f in _WITH_FUNCTIONS)


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _nested(part)


def _captured(function: Any) -> Iterator[tuple[str, Any]]:
    """The variables of enclosing functions, by value."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:
            raise CompilationError(
                f"`{name}`, of the function around the kernel, has no value yet",
                help="launch the kernel after it is assigned",
            ) from None
