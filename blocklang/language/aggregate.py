"""`aggregate`: a user's class whose objects live in kernels; and functions that Python runs at compile time.

An object holds the fields that its class annotates: run-time values, compile-time ones, tuples, other
aggregates. Nothing can change it once it is made. In control flow it is a tuple of its fields.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Sequence
from typing import Any

from blocklang.diagnostics import BlocklangError, CompilationError
from blocklang.language.compound import Compound, remake
from blocklang.language.constexpr import constexpr, describe, is_compile_time, unwrap
from blocklang.language.tensor import tensor, to_tensor


class BoundMethod:
    """A kernel function as a method of an object: a call passes the object first.

    Attributes:
        instance: the object.
        function: the `@jit` function.
    """

    def __init__(self, instance: Any, function: Any) -> None:
        self.instance = instance
        self.function = function
        self.__name__: str = getattr(function, "__name__", "a method")

    def __repr__(self) -> str:
        return f"the method `{self.__name__}` of {type(self.instance).__name__}"


class _Method:
    """A `@jit` function in the body of an aggregate: of an object it is bound, of the class it is itself."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self.function if instance is None else BoundMethod(instance, self.function)


class constexpr_function:
    """A function that Python runs while a kernel is compiled, on the plain values of its arguments.

    Outside of kernels it is the function that it was made of.

    Example:
        >>> import blocklang as bl
        >>> @bl.constexpr_function
        ... def half(n):
        ...     return n // 2
        >>> half(7)
        3
    """

    def __init__(self, fn: Callable[..., Any]) -> None:
        functools.update_wrapper(self, fn)
        self.fn = fn

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else constexpr_function(types.MethodType(self.fn, instance))

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self.fn(*map(_plain, args), **{name: _plain(value) for name, value in keywords.items()})

    def call_in_kernel(self, *args: Any, **keywords: Any) -> Any:
        """The result as a kernel sees it: what Python computed is known at compile time."""
        return _known(self(*args, **keywords))


def _plain(value: Any) -> Any:
    """Python's own values for compile-time ones, also in tuples; aggregates as they are."""
    value = unwrap(value)
    return remake(value, [_plain(v) for v in value]) if isinstance(value, (tuple, list)) else value


def _known(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return remake(value, [_known(v) for v in value])
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == () and hasattr(value, "item"):
        value = value.item()  # a NumPy scalar is the Python number that it is
    return value if value is None or isinstance(value, (tensor, Compound)) else constexpr(value)


class Aggregate(Compound):
    """Base of the classes that `aggregate` makes.

    Attributes:
        field_types: the annotated fields in order, each with its annotation.
        user_functions: the functions in the body of the class.
    """

    field_types: dict[str, Any]
    user_functions: tuple[Any, ...]

    def parts(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self.field_types)

    def with_parts(self, parts: Sequence[Any]) -> Any:
        other = object.__new__(type(self))
        for name, value in zip(self.field_types, parts, strict=True):
            object.__setattr__(other, name, value)
        return other

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name, '?')}" for name in self.field_types)
        return f"{type(self).__name__}({fields})"


def aggregate(cls: type) -> Any:
    """Make a class whose objects a kernel can build, pass around, and ask for fields and methods.

    The class annotates its fields. Its constructor, `__init__` or one that takes the fields in order, is
    Python run while the kernel is compiled, and sets all of them. Methods are `@jit` functions, or
    `@constexpr_function`s.

    Example:
        >>> import numpy as np
        >>> import blocklang as bl
        >>> import blocklang.language as tl
        >>> @bl.aggregate
        ... class Range:
        ...     low: tl.tensor
        ...     high: tl.tensor
        ...     def __init__(self, low, high):
        ...         self.low, self.high = low, high
        ...     @bl.jit
        ...     def width(self):
        ...         return self.high - self.low
        >>> @bl.jit
        ... def kernel(out, a, b):
        ...     tl.store(out, Range(a, b).width())
        >>> out = np.zeros(1, np.int32)
        >>> _ = kernel[1](out, 3, 10)
        >>> out
        array([7], dtype=int32)
    """
    if not isinstance(cls, type):
        raise CompilationError(
            f"@aggregate makes a type of a class, not of {type(cls).__name__}", help="put it above `class`"
        )
    own_init = cls.__dict__.get("__init__")
    constructor = getattr(own_init, "fn", own_init)
    unwraps = isinstance(own_init, constexpr_function)
    members = {
        name: _Method(member) if _is_kernel_function(member) else member
        for name, member in cls.__dict__.items()
        if name not in ("__dict__", "__weakref__", "__init__", "__slots__")
    }
    inherits = issubclass(cls, Aggregate)
    fields = {**cls.field_types, **_field_types(cls)} if issubclass(cls, Aggregate) else _field_types(cls)

    def initialise(self: Any, *args: Any, **keywords: Any) -> None:
        object.__setattr__(self, "_is_open", True)
        try:
            if constructor is None:
                _set_fields(self, args, keywords)
            elif unwraps:
                constructor(self, *map(_plain, args), **{n: _plain(v) for n, v in keywords.items()})
            else:
                constructor(self, *args, **keywords)
        finally:
            object.__delattr__(self, "_is_open")
        for name in self.field_types:
            if name not in self.__dict__:
                raise CompilationError(
                    f"the constructor of `{cls.__name__}` does not set the field `{name}`",
                    help=f"set `self.{name} = ...` in `__init__`",
                )

    if constructor is not None:
        functools.update_wrapper(initialise, constructor)
    names = [m for m in cls.__dict__.values() if isinstance(m, (types.FunctionType, constexpr_function))]
    functions = [*names, *(m.function for m in members.values() if isinstance(m, _Method))]
    if own_init is not None or not inherits:
        members["__init__"] = initialise
    members |= {
        "__setattr__": _set_field,
        "field_types": fields,
        "user_functions": tuple(functions),
    }
    bases = tuple(base for base in cls.__bases__ if base is not object)
    return type(cls.__name__, bases if inherits else (Aggregate, *bases), members)


def _is_kernel_function(member: Any) -> bool:
    """True for what `@jit` makes: it has a function, and the source of it."""
    return hasattr(type(member), "source") and hasattr(member, "fn")


def _field_types(cls: type) -> dict[str, Any]:
    try:
        return dict(inspect.get_annotations(cls, eval_str=True))
    except NameError:
        return dict(inspect.get_annotations(cls))


def _set_fields(self: Any, args: Sequence[Any], keywords: dict[str, Any]) -> None:
    names = list(self.field_types)
    given = dict(zip(names, args, strict=False))
    extra = [name for name in keywords if name not in names or name in given]
    if len(args) > len(names) or extra or len(args) + len(keywords) < len(names):
        raise CompilationError(
            f"`{type(self).__name__}` takes its {len(names)} fields, once each",
            help=f"they are ({', '.join(names)})",
        )
    for name, value in (given | keywords).items():
        setattr(self, name, value)


def _set_field(self: Any, name: str, value: Any) -> None:
    kind = type(self).__name__
    if name not in self.field_types:
        raise CompilationError(
            f"`{kind}` has no field `{name}`", help=f"its fields are ({', '.join(self.field_types)})"
        )
    if "_is_open" not in self.__dict__:
        raise CompilationError(
            f"the field `{name}` of `{kind}` cannot change once the object is made",
            help="make another object",
        )
    object.__setattr__(self, name, _fitted(kind, name, self.field_types[name], value))


def _fitted(kind: str, name: str, wanted: Any, value: Any) -> Any:
    """A value as the annotation of its field says: run-time, compile-time, or of a class."""
    plain = unwrap(value)
    if wanted is constexpr and is_compile_time(value):
        return constexpr(value)
    if wanted is tensor and isinstance(plain, (bool, int, float)):
        return to_tensor(value)
    if wanted is constexpr or (isinstance(wanted, type) and not isinstance(plain, wanted)):
        raise CompilationError(
            f"the field `{name}` of `{kind}` is annotated {getattr(wanted, '__name__', wanted)}, "
            f"got {describe(value)}",
            help="annotate run-time values `tl.tensor`, compile-time ones `tl.constexpr`",
        )
    return value


def is_aggregate_class(value: object) -> bool:
    """True for a class that `aggregate` made."""
    return isinstance(value, type) and issubclass(value, Aggregate)


def call_python(function: Callable[..., Any], args: Sequence[Any], keywords: dict[str, Any]) -> Any:
    """Run a user's Python at compile time; what it raises becomes an error of the kernel."""
    run = function.call_in_kernel if isinstance(function, constexpr_function) else function
    try:
        return run(*args, **keywords)
    except BlocklangError:
        raise
    except Exception as error:
        name = getattr(function, "__name__", "the function")
        raise CompilationError(
            f"`{name}` raised {type(error).__name__} at compile time: {error}",
            help="it runs in Python, on values known at compile time",
        ) from error
