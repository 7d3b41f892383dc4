"""The small expression language of device files: cycles of an instruction from named quantities.

    max(MIN_II, N / (4 if dtype in ("bf16", "f16") and contiguous else 1))

Numbers, names, texts in quotes; `+ - * / // %`; comparisons, also `in` a tuple; `and`, `or`, `not`;
`X if C else Y`; `max`, `min`, `ceil`, `floor`, `abs`. A name is a number, a flag or a text. Python's parser
reads it, and only the nodes listed here are taken, so a file from anywhere can be read safely; nothing is
handed to `eval`.

Not here: which names there are (`figures.QUANTITIES`), and what a result means.

Invariants: a `Formula` that exists uses known names with the kinds they have, and gives a number.
"""

from __future__ import annotations

import ast
import difflib
import functools
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass

Value = float | bool | str
NUMBER, FLAG, TEXT = "a number", "a flag", "a text"

_ARITHMETIC: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[Value, Value], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_ORDERED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_FUNCTIONS: dict[str, Callable[..., float]] = {
    "max": max,
    "min": min,
    "ceil": math.ceil,
    "floor": math.floor,
    "abs": abs,
}
_ONE_ARGUMENT = ("ceil", "floor", "abs")
_KIND_HELP = "a number comes from arithmetic, a flag from a comparison; texts are only compared"
LONGEST = 1000  # characters; a formula that is longer is no formula, and the parser recurses


class FormulaError(ValueError):
    """A formula that is none, or that cannot be evaluated; `help` says what to write instead."""

    def __init__(self, message: str, help: str | None = None) -> None:
        super().__init__(message)
        self.help = help


@dataclass(frozen=True)
class Formula:
    """A checked expression.

    Attributes:
        text: as it stands in the file.
        names: the names that it uses, sorted.
    """

    text: str
    names: tuple[str, ...]

    def evaluate(self, values: Mapping[str, Value]) -> float:
        """The number that it gives.

        Args:
            values: at least the names that are reached; a branch that is not taken needs none.

        Raises:
            FormulaError: a name has no value, a division is by zero, or the result is infinite.
        """
        try:
            result = float(_evaluate(_body(self.text), values))
        except ZeroDivisionError as error:
            raise FormulaError(f"{self.text!r} divides by zero") from error
        except (OverflowError, ValueError) as error:
            if isinstance(error, FormulaError):
                raise
            raise FormulaError(f"{self.text!r} gives no finite number") from error
        if not math.isfinite(result):
            raise FormulaError(f"{self.text!r} gives no finite number")
        return result


@functools.lru_cache(maxsize=1024)
def _body(text: str) -> ast.expr:
    """The tree of a text; a timing model asks for the same few over and over."""
    return ast.parse(text.strip(), mode="eval").body


def parse_formula(text: str, kinds: Mapping[str, str]) -> Formula:
    """Read and check a formula.

    Args:
        text: the expression.
        kinds: what each name is: NUMBER, FLAG or TEXT.

    Raises:
        FormulaError: it is no expression of this language, or a name or kind is wrong.
    """
    if len(text) > LONGEST:
        raise FormulaError(f"expected at most {LONGEST} characters, got {len(text)}")
    try:
        body = _body(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        raise FormulaError(
            f"expected an expression, got {text!r}: {reason}", "for instance 'max(MIN_II, 2 * N)'"
        ) from error
    try:
        _expect(body, NUMBER, kinds)
    except RecursionError as error:
        raise FormulaError("expected an expression, got one that is nested too deeply") from error
    names = {node.id for node in ast.walk(body) if isinstance(node, ast.Name)} - set(_FUNCTIONS)
    return Formula(text, tuple(sorted(names)))


# ---- checking ----


def _expect(node: ast.expr, kind: str, kinds: Mapping[str, str]) -> None:
    found = _kind(node, kinds)
    if found != kind:
        raise FormulaError(f"expected {kind}, got {found}: {ast.unparse(node)}", _KIND_HELP)


def _kind(node: ast.expr, kinds: Mapping[str, str]) -> str:
    """What a node gives; raises if it or what is in it is not of this language."""
    match node:
        case ast.Constant(value=bool()):
            return FLAG
        case ast.Constant(value=int() | float()):
            return NUMBER
        case ast.Constant(value=str()):
            return TEXT
        case ast.Name(id=name):
            return _kind_of_name(name, kinds)
        case ast.BinOp(left, operation, right) if type(operation) in _ARITHMETIC:
            _expect(left, NUMBER, kinds)
            _expect(right, NUMBER, kinds)
            return NUMBER
        case ast.UnaryOp(ast.USub() | ast.UAdd(), operand):
            _expect(operand, NUMBER, kinds)
            return NUMBER
        case ast.UnaryOp(ast.Not(), operand):
            _expect(operand, FLAG, kinds)
            return FLAG
        case ast.BoolOp(values=values):
            for value in values:
                _expect(value, FLAG, kinds)
            return FLAG
        case ast.Compare():
            return _kind_of_comparison(node, kinds)
        case ast.IfExp(test, then, otherwise):
            _expect(test, FLAG, kinds)
            kind = _kind(then, kinds)
            _expect(otherwise, kind, kinds)
            return kind
        case ast.Call(ast.Name(name), arguments, []) if name in _FUNCTIONS:
            return _kind_of_call(node, name, arguments, kinds)
    raise FormulaError(
        f"expected an expression of a device file, got {ast.unparse(node)}",
        "numbers, names, + - * / // %, comparisons, and, or, not, X if C else Y, "
        f"and the functions {', '.join(_FUNCTIONS)}",
    )


def _kind_of_name(name: str, kinds: Mapping[str, str]) -> str:
    if name in kinds:
        return kinds[name]
    close = difflib.get_close_matches(name, [*kinds, *_FUNCTIONS], n=1)
    guess = f"did you mean {close[0]}? " if close else ""
    raise FormulaError(
        f"expected a known name, got {name}", f"{guess}The names are {', '.join(sorted(kinds))}"
    )


def _kind_of_comparison(node: ast.Compare, kinds: Mapping[str, str]) -> str:
    left = _kind(node.left, kinds)
    for operation, right in zip(node.ops, node.comparators, strict=True):
        if isinstance(operation, ast.In | ast.NotIn):
            if not isinstance(right, ast.Tuple | ast.List):
                raise FormulaError(f"expected a tuple after `in`, got {ast.unparse(right)}")
            for element in right.elts:
                _expect(element, left, kinds)
            continue
        if type(operation) not in _COMPARISONS:
            raise FormulaError(f"expected a comparison such as < or ==, got {ast.unparse(node)}")
        if isinstance(operation, _ORDERED):
            _expect(node.left, NUMBER, kinds)
            left = NUMBER
        _expect(right, left, kinds)
    return FLAG


def _kind_of_call(node: ast.Call, name: str, arguments: list[ast.expr], kinds: Mapping[str, str]) -> str:
    wanted = "one argument" if name in _ONE_ARGUMENT else "two or more arguments"
    if (len(arguments) == 1) != (name in _ONE_ARGUMENT) or not arguments:
        raise FormulaError(f"expected {wanted} of {name}, got {ast.unparse(node)}")
    for argument in arguments:
        _expect(argument, NUMBER, kinds)
    return NUMBER


# ---- evaluating ----


def _evaluate(node: ast.expr, values: Mapping[str, Value]) -> Value:
    match node:
        case ast.Constant(value=bool() | int() | float() | str() as value):
            return value
        case ast.Name(id=name):
            if name not in values:
                raise FormulaError(f"{name} has no value")
            return values[name]
        case ast.BinOp(left, operation, right):
            return _ARITHMETIC[type(operation)](_number(left, values), _number(right, values))
        case ast.UnaryOp(ast.Not(), operand):
            return not _evaluate(operand, values)
        case ast.UnaryOp(operation, operand):
            value = _number(operand, values)
            return -value if isinstance(operation, ast.USub) else value
        case ast.BoolOp(ast.And(), operands):
            return all(_evaluate(operand, values) for operand in operands)
        case ast.BoolOp(ast.Or(), operands):
            return any(_evaluate(operand, values) for operand in operands)
        case ast.Compare():
            return _evaluate_comparison(node, values)
        case ast.IfExp(test, then, otherwise):
            return _evaluate(then if _evaluate(test, values) else otherwise, values)
        case ast.Call(ast.Name(name), arguments):
            return _FUNCTIONS[name](*(_number(argument, values) for argument in arguments))
    raise AssertionError(f"not checked: {ast.unparse(node)}")


def _number(node: ast.expr, values: Mapping[str, Value]) -> float:
    value = _evaluate(node, values)
    assert not isinstance(value, str), "checked"
    return value


def _evaluate_comparison(node: ast.Compare, values: Mapping[str, Value]) -> bool:
    left = _evaluate(node.left, values)
    for operation, comparator in zip(node.ops, node.comparators, strict=True):
        if isinstance(operation, ast.In | ast.NotIn):
            assert isinstance(comparator, ast.Tuple | ast.List), "checked"
            found = any(left == _evaluate(element, values) for element in comparator.elts)
            if found == isinstance(operation, ast.NotIn):
                return False
            continue
        right = _evaluate(comparator, values)
        if not _COMPARISONS[type(operation)](left, right):
            return False
        left = right
    return True
