"""Strict mode: what `@jit(strict=True)` refuses because the frontend of Triton 3.7.1 refuses it.

`STRICT` holds every rule with what its message says and what to write instead; everything that is not in it
is as in the usual mode. Three kinds of rules: of syntax (`broken_by`, asked for every node that is compiled),
of names (`is_strict_global`, `STRICT_PYTHON_NAMES`), of values (`broken_by_value`, `broken_by_call`).
"""

from __future__ import annotations

import ast
import builtins
import types
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from blocklang.ir.types import shape_of
from blocklang.language import dtypes as tl
from blocklang.language.aggregate import Aggregate, constexpr_function
from blocklang.language.constexpr import constexpr, unwrap
from blocklang.language.registry import is_builtin
from blocklang.language.tensor import tensor

MAXIMUM_NUMEL = 1 << 20
_SCOPE = "Triton refuses it; drop `strict=True` to use it"


@dataclass(frozen=True)
class StrictRule:
    """A rule of strict mode.

    Attributes:
        message: what is wrong; may have places for `str.format`.
        help: what to write instead.
        is_syntax: the message completes 'a strict kernel cannot contain ...'.
    """

    message: str
    help: str = _SCOPE
    is_syntax: bool = True

    def text(self, *details: object) -> str:
        """The message of the error."""
        said = self.message.format(*details)
        return f"a strict kernel cannot contain {said}" if self.is_syntax else said


STRICT: dict[str, StrictRule] = {
    # syntax
    "break": StrictRule("`break`", "put the condition into a `while`"),
    "continue": StrictRule("`continue`", "put the rest of the loop under an `if`"),
    "for else": StrictRule("`else` after `for`", "set a flag in the loop, and test it afterwards"),
    "while else": StrictRule("`else` after `while`", "write the lines after the loop"),
    "chained comparison": StrictRule(
        "a chained comparison (simultaneous multiple comparison is not supported)",
        "write `a < b and b < c`",
    ),
    "in": StrictRule("`in`", "compare with each: `x == 1 or x == 2`"),
    "inner function": StrictRule(
        "an inner function (nested function definition is not supported)",
        "put it beside the kernel, under `@jit`",
    ),
    "lambda": StrictRule("a lambda", "write a function under `@jit`"),
    "generator": StrictRule("a generator expression", "write a list comprehension over a tuple"),
    "loop target": StrictRule("a loop over several names", "unpack in the body"),
    "loop over values": StrictRule("a loop over a tuple", "loop over `tl.static_range(len(t))`"),
    "comprehension over range": StrictRule(
        "a comprehension over anything but a tuple (only tuple comprehensions are supported)"
    ),
    "several targets": StrictRule("an assignment to several targets", "write one line for each"),
    "list target": StrictRule("an assignment to a list of names", "write `a, b = ...`"),
    "starred": StrictRule("`*` in a tuple", "add the tuples with `+`"),
    "return in loop": StrictRule(
        "`return` in a loop (Cannot have `return` statements inside `while` or `for` statements)",
        "set a flag, and return after the loop",
    ),
    "static while": StrictRule(
        "a `while` on a value known at compile time", "write `if`, or `tl.static_range`"
    ),
    "unary plus": StrictRule("`+` before a run-time value", "leave it out"),
    # names
    "python name": StrictRule("Python's `{}`", "call functions of `tl`"),
    "global": StrictRule(
        "Cannot access global variable {} from a strict kernel: only a `tl.constexpr`, a type, a module or a "
        "`@jit` function can be global",
        "write `{0} = tl.constexpr(...)`, or pass it as a `tl.constexpr` argument",
        is_syntax=False,
    ),
    # values
    "arange": StrictRule("arange's range must be a power of 2, got {}", is_syntax=False),
    "extent": StrictRule("Shape element {} must be a power of 2, got {}", is_syntax=False),
    "numel": StrictRule("numel ({}) exceeds the maximum of a block, " + str(MAXIMUM_NUMEL), is_syntax=False),
    "operand of and, or, not": StrictRule(
        "`{}` needs a bool, got {} (Cannot bitcast data-type of size {} to data-type of size 1)",
        "compare first: `x != 0`",
        is_syntax=False,
    ),
    "ternary": StrictRule("a run-time choice between {} and {}: both must be scalars or blocks"),
    "compared tuples": StrictRule("a comparison of tuples that hold run-time values", "compare their items"),
    "small float": StrictRule(
        "{}: Expected dtype {} but got {}", "convert first: `x.to(tl.float32)`", is_syntax=False
    ),
}

STRICT_PYTHON_NAMES = frozenset(
    {
        *("len", "list", "range", "float", "int", "isinstance", "getattr", "hasattr", "print", "min", "max"),
        "breakpoint",  # let through in interpreter mode only, to debug there
    }
)
STRICT_PYTHON_OBJECTS = tuple(getattr(builtins, name) for name in STRICT_PYTHON_NAMES)
_BY_NODE: dict[type[ast.AST], str] = {
    ast.Break: "break",
    ast.Continue: "continue",
    ast.FunctionDef: "inner function",
    ast.Lambda: "lambda",
    ast.GeneratorExp: "generator",
}
_FULL_FLOATS = frozenset(
    {"exp", "exp2", "log", "log2", "sin", "cos", "sqrt", "rsqrt", "erf", "floor", "ceil", "sigmoid"}
)
_SINGLE_FLOATS = frozenset({"sqrt_rn", "div_rn"})


def broken_by(node: ast.AST) -> str | None:
    """The rule of syntax that a node breaks; None if it breaks none."""
    if getattr(node, "is_implicit", False):
        return None
    if type(node) in _BY_NODE:
        return _BY_NODE[type(node)]
    match node:
        case ast.For(orelse=[_, *_]):
            return "for else"
        case ast.While(orelse=[_, *_]):
            return "while else"
        case ast.For(target=target) if not isinstance(target, ast.Name):
            return "loop target"
        case ast.Compare(ops=[_, _, *_]):
            return "chained comparison"
        case ast.Compare(ops=[ast.In() | ast.NotIn()]):
            return "in"
        case ast.Assign(targets=[_, _, *_]):
            return "several targets"
        case ast.Assign(targets=[target]) if any(isinstance(n, ast.List) for n in ast.walk(target)):
            return "list target"
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            return "starred" if any(isinstance(e, ast.Starred) for e in elements) else None
    return None


def is_strict_global(value: Any) -> bool:
    """True for what a strict kernel may read from outside: Triton's rule."""
    if isinstance(value, (constexpr, tl.dtype, types.ModuleType)):
        return True
    if isinstance(value, type):
        own = value.__module__.startswith("blocklang.") or value in STRICT_PYTHON_OBJECTS
        return own or issubclass(value, Aggregate) or (issubclass(value, tuple) and hasattr(value, "_fields"))
    if any(value is known for known in STRICT_PYTHON_OBJECTS) or is_builtin(value):
        return True
    # A plain function is refused as what it is.
    return hasattr(type(value), "source") or isinstance(value, (constexpr_function, types.FunctionType))


def broken_by_value(value: Any) -> tuple[str, tuple[object, ...]] | None:
    """The rule that a result breaks, with the details of its message; None if it breaks none."""
    if not isinstance(value, tensor):
        return None
    count = 1
    for axis, extent in enumerate(shape_of(value.value.type)):
        if extent & (extent - 1):
            return "extent", (axis, extent)
        count *= extent
    return ("numel", (count,)) if count > MAXIMUM_NUMEL else None


def broken_by_call(name: str | None, args: Sequence[Any]) -> tuple[str, tuple[object, ...]] | None:
    """The rule that a call of a function of the language breaks."""
    if name == "arange" and len(args) == 2:
        low, high = (unwrap(a) for a in args)
        if isinstance(low, int) and isinstance(high, int) and high > low and (high - low) & (high - low - 1):
            return "arange", (high - low,)
    kinds = ["fp32", "fp64"] if name in _FULL_FLOATS else ["fp32"] if name in _SINGLE_FLOATS else None
    for value in args if kinds is not None else ():
        if isinstance(value, tensor) and value.dtype.is_floating() and value.dtype.name not in (kinds or ()):
            return "small float", (name, kinds, value.dtype.name)
    return None
