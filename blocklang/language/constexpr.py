"""Compile-time values: `constexpr`, and how language functions read them.

Operators on two compile-time values follow Python (`//` floors), and give a `constexpr`. With a tensor on the
other side the tensor's operator decides, and the value is weak in promotion. A `constexpr` that stands for a
specialised run-time argument (an int of value 1, a bool) also has that argument's type: comparisons still
fold, but arithmetic is that of a run-time scalar, so a kernel behaves the same for every value of the
argument.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from blocklang.diagnostics import CompilationError

if TYPE_CHECKING:
    from blocklang.language.dtypes import dtype


def _folds(function: Callable[[Any, Any], Any], *, swapped: bool = False, compares: bool = False) -> Any:
    def method(self: constexpr, other: Any) -> Any:
        if not is_compile_time(other):
            return NotImplemented
        if not compares and (self.type is not None or getattr(other, "type", None) is not None):
            return _as_run_time(function, other, self) if swapped else _as_run_time(function, self, other)
        left, right = (unwrap(other), self.value) if swapped else (self.value, unwrap(other))
        return constexpr(function(left, right))

    return method


def _as_run_time(function: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    from blocklang.language.tensor import to_tensor

    typed = [to_tensor(v) if isinstance(v, constexpr) and v.type is not None else v for v in (left, right)]
    return function(*typed)


class constexpr:
    """A value known at compile time; as an annotation, a parameter or variable that must be one.

    Args:
        value: a number, string, None, dtype, function or tuple of these.
        type: the dtype of the run-time argument that the value stands for, if any.

    Example:
        >>> import blocklang.language as tl
        >>> BLOCK = tl.constexpr(128)
        >>> (BLOCK // 2).value
        64
    """

    __slots__ = ("type", "value")

    def __init__(self, value: Any, type: dtype | None = None) -> None:
        self.value: Any = value.value if isinstance(value, constexpr) else value
        self.type: dtype | None = type
        if type is None and isinstance(value, constexpr):
            self.type = value.type

    def __repr__(self) -> str:
        return f"constexpr[{self.value!r}]"

    def __str__(self) -> str:
        return str(self.value)

    def __format__(self, specification: str) -> str:
        return format(self.value, specification)

    def __hash__(self) -> int:
        return hash(self.value)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __index__(self) -> int:
        return operator.index(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __float__(self) -> float:
        return float(self.value)

    def __len__(self) -> int:
        return len(self.value)

    def __getitem__(self, index: Any) -> Any:
        return self.value[unwrap(index)]

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self.value(*args, **keywords)

    __add__ = _folds(operator.add)
    __radd__ = _folds(operator.add, swapped=True)
    __sub__ = _folds(operator.sub)
    __rsub__ = _folds(operator.sub, swapped=True)
    __mul__ = _folds(operator.mul)
    __rmul__ = _folds(operator.mul, swapped=True)
    __truediv__ = _folds(operator.truediv)
    __rtruediv__ = _folds(operator.truediv, swapped=True)
    __floordiv__ = _folds(operator.floordiv)
    __rfloordiv__ = _folds(operator.floordiv, swapped=True)
    __mod__ = _folds(operator.mod)
    __rmod__ = _folds(operator.mod, swapped=True)
    __pow__ = _folds(operator.pow)
    __rpow__ = _folds(operator.pow, swapped=True)
    __and__ = _folds(operator.and_)
    __rand__ = _folds(operator.and_, swapped=True)
    __or__ = _folds(operator.or_)
    __ror__ = _folds(operator.or_, swapped=True)
    __xor__ = _folds(operator.xor)
    __rxor__ = _folds(operator.xor, swapped=True)
    __lshift__ = _folds(operator.lshift)
    __rlshift__ = _folds(operator.lshift, swapped=True)
    __rshift__ = _folds(operator.rshift)
    __rrshift__ = _folds(operator.rshift, swapped=True)
    __lt__ = _folds(operator.lt, compares=True)
    __le__ = _folds(operator.le, compares=True)
    __gt__ = _folds(operator.gt, compares=True)
    __ge__ = _folds(operator.ge, compares=True)
    __eq__ = _folds(operator.eq, compares=True)
    __ne__ = _folds(operator.ne, compares=True)

    def _unary(self, function: Callable[[Any], Any]) -> Any:
        if self.type is None:
            return constexpr(function(self.value))
        from blocklang.language.tensor import to_tensor

        return function(to_tensor(self))

    def __neg__(self) -> Any:
        return self._unary(operator.neg)

    def __pos__(self) -> Any:
        return self

    def __invert__(self) -> Any:
        return self._unary(operator.invert)

    def __getattr__(self, name: str) -> Any:
        # Only for what the class lacks: a number has the methods of a run-time scalar, an object
        # its own attributes.
        if name.startswith("_"):
            raise AttributeError(name)
        if isinstance(self.value, (bool, int, float)):
            from blocklang.language.tensor import to_tensor

            return getattr(to_tensor(self), name)
        return getattr(self.value, name)


def unwrap(value: Any) -> Any:
    """The plain Python value of a `constexpr`; anything else as it is."""
    return value.value if isinstance(value, constexpr) else value


def is_compile_time(value: Any) -> bool:
    """True unless the value is, or holds, something known only at run time."""
    from blocklang.language.compound import children
    from blocklang.language.tensor import tensor

    items = children(value)
    if items is not None:
        return all(is_compile_time(v) for v in items)
    return not isinstance(value, tensor)


def static_int(value: Any, what: str) -> int:
    """A compile-time integer, also one that a plain assignment made a run-time scalar (`HALF = BLOCK // 2`).

    Raises:
        CompilationError: it is none; the message names `what`.
    """
    plain = _number_behind(value)
    if isinstance(plain, (bool, _run_time_class())) or not hasattr(plain, "__index__"):
        raise CompilationError(
            f"{what} must be an integer known at compile time, got {describe(value)}",
            help="use a literal, a `tl.constexpr` parameter, or a variable annotated `: tl.constexpr`",
        )
    return operator.index(plain)


def _run_time_class() -> type:
    from blocklang.language.tensor import tensor

    return tensor


def _number_behind(value: Any) -> Any:
    from blocklang.language.tensor import tensor
    from blocklang.ops.creation import Constant

    if isinstance(value, tensor) and not value.type.is_block():
        defining = value.value.defining_op
        return defining.value if isinstance(defining, Constant) else value
    return unwrap(value)


def is_one(value: Any) -> bool:
    """True for the number 1, known at compile time or while the kernel is interpreted."""
    plain = _number_behind(value)
    if isinstance(plain, _run_time_class()):
        data = getattr(plain.value, "data", None)  # type: ignore[attr-defined]
        return data is not None and data.shape == () and bool(data == 1)
    return not isinstance(plain, bool) and isinstance(plain, int) and plain == 1


def static_bool(value: Any, what: str) -> bool:
    """A compile-time truth value."""
    plain = unwrap(value)
    if not isinstance(plain, (bool, int)):
        raise CompilationError(f"{what} must be True or False, known at compile time, got {describe(value)}")
    return bool(plain)


def static_choice(value: Any, what: str, choices: tuple[str, ...]) -> str:
    """A compile-time string out of `choices`."""
    plain = unwrap(value)
    if not isinstance(plain, str) or plain not in choices:
        listed = ", ".join(repr(c) for c in choices)
        raise CompilationError(f"{what} is {describe(value)}", help=f"one of {listed}")
    return plain


def static_shape(shape: tuple[Any, ...], what: str) -> tuple[int, ...]:
    """A shape given as one tuple or list, or as several integers."""
    first = unwrap(shape[0]) if len(shape) == 1 else None
    extents = first if isinstance(first, (tuple, list)) else shape
    numbers = tuple(static_int(n, f"an extent of {what}") for n in extents)
    if any(n < 1 for n in numbers):
        raise CompilationError(f"the extents of {what} must be positive, got {list(numbers)}")
    return numbers


def describe(value: Any) -> str:
    """A value in words for a message: a tensor's type, or the value itself with its Python type."""
    from blocklang.language.compound import Compound
    from blocklang.language.tensor import tensor

    if isinstance(value, tensor):
        return f"a run-time {value.value.type}"
    plain = unwrap(value)
    plainly = plain is None or isinstance(plain, (bool, str, Compound))
    return f"{plain!r}" if plainly else f"{plain!r} of type {type(plain).__name__}"
