"""Index maps: where in an operand an iteration point reads.

A map takes the indices of an iteration space, `d0, d1, ...`, to the indices of an operand. Its results are
expressions of the dimensions, constants, `+`, `*`, `//` and `%`. A factor may be negative (an axis walked
backwards), but indices, and what is divided, are non-negative at every point of the space. Text:
`map<2: d1, d0 // 32>` (two dimensions in, two indices out), `map<1: d0 * -1 + 7>`.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Dim:
    """Index number `position` of the iteration space."""

    position: int

    def __str__(self) -> str:
        return f"d{self.position}"


@dataclass(frozen=True)
class Const:
    value: int

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True)
class Binary:
    """`lhs op rhs`; the right side of `*` is a constant that is not 0, of `//` and `%` a positive one."""

    op: Literal["+", "*", "//", "%"]
    lhs: IndexExpr
    rhs: IndexExpr

    def __str__(self) -> str:
        left = (
            f"({self.lhs})"
            if isinstance(self.lhs, Binary) and self.lhs.op == "+" != self.op
            else str(self.lhs)
        )
        if isinstance(self.lhs, Binary) and self.op != "+" and self.lhs.op != "+":
            left = f"({self.lhs})"
        return f"{left} {self.op} {self.rhs}"


IndexExpr = Dim | Const | Binary


@dataclass(frozen=True)
class IndexMap:
    """A map from `rank` dimensions to one index per expression."""

    rank: int
    exprs: tuple[IndexExpr, ...]

    def __str__(self) -> str:
        return f"map<{self.rank}: {', '.join(map(str, self.exprs))}>"

    @property
    def is_identity(self) -> bool:
        return self.exprs == tuple(Dim(i) for i in range(self.rank))


def identity_map(rank: int) -> IndexMap:
    return IndexMap(rank, tuple(Dim(i) for i in range(rank)))


def range_of(expr: IndexExpr, extents: Sequence[int]) -> tuple[int, int]:
    """Bounds of `expr` over an iteration space of `extents`, both included."""
    match expr:
        case Dim(position):
            return 0, extents[position] - 1
        case Const(value):
            return value, value
        case Binary("+", lhs, rhs):
            (a, b), (c, d) = range_of(lhs, extents), range_of(rhs, extents)
            return a + c, b + d
        case Binary("*", lhs, Const(factor)):
            low, high = sorted(bound * factor for bound in range_of(lhs, extents))
            return low, high
        case Binary("//", lhs, Const(divisor)):
            low, high = range_of(lhs, extents)
            return low // divisor, high // divisor
        case Binary("%", lhs, Const(divisor)):
            low, high = range_of(lhs, extents)
            return (low % divisor, high % divisor) if low // divisor == high // divisor else (0, divisor - 1)
    raise AssertionError(expr)


def add(lhs: IndexExpr, rhs: IndexExpr) -> IndexExpr:
    """`lhs + rhs`; constants are collected at the end of a sum."""
    if lhs == Const(0):
        return rhs
    if rhs == Const(0):
        return lhs
    terms = _terms(lhs) + _terms(rhs)
    constants = [t.value for t in terms if isinstance(t, Const)]
    if len(constants) < 2 or len(terms) == 2:
        return Const(sum(constants)) if len(constants) == 2 else Binary("+", lhs, rhs)
    return _sum([*(t for t in terms if not isinstance(t, Const)), Const(sum(constants))])


def scale(expr: IndexExpr, factor: int) -> IndexExpr:
    """`expr * factor`; a sum that a negative factor turns round is scaled term by term."""
    if factor == 0 or expr == Const(0):
        return Const(0)
    if factor == 1:
        return expr
    if isinstance(expr, Const):
        return Const(expr.value * factor)
    if isinstance(expr, Binary) and expr.op == "*" and isinstance(expr.rhs, Const):
        return scale(expr.lhs, expr.rhs.value * factor)
    if factor < 0 and isinstance(expr, Binary) and expr.op == "+":
        return add(scale(expr.lhs, factor), scale(expr.rhs, factor))
    return Binary("*", expr, Const(factor))


def _terms(expr: IndexExpr) -> list[IndexExpr]:
    if isinstance(expr, Binary) and expr.op == "+":
        return _terms(expr.lhs) + _terms(expr.rhs)
    return [expr]


def _factor(term: IndexExpr) -> int:
    """A positive constant that divides every value of `term`."""
    if isinstance(term, Binary) and term.op == "*" and isinstance(term.rhs, Const):
        return abs(term.rhs.value)
    return 1


def _divide_exactly(term: IndexExpr, divisor: int) -> IndexExpr:
    assert isinstance(term, Binary)
    assert isinstance(term.rhs, Const)
    return scale(term.lhs, term.rhs.value // divisor)


def _sum(terms: Sequence[IndexExpr]) -> IndexExpr:
    total: IndexExpr = Const(0)
    for term in terms:
        total = add(total, term)
    return total


def _split(
    expr: IndexExpr, divisor: int, extents: Sequence[int]
) -> tuple[list[IndexExpr], int, IndexExpr] | None:
    """`expr` as terms that `divisor` divides, plus a multiple of it, plus a rest in [0, divisor).

    None if the rest does not stay in there.
    """
    terms = _terms(expr)
    multiples = [t for t in terms if _factor(t) % divisor == 0]
    rest = _sum([t for t in terms if _factor(t) % divisor != 0])
    low, high = range_of(rest, extents)
    turns = low // divisor
    if high // divisor != turns:
        return None
    return multiples, turns, add(rest, Const(-turns * divisor))


def floor_divide(expr: IndexExpr, divisor: int, extents: Sequence[int]) -> IndexExpr:
    """`expr // divisor`, simplified with the ranges of the dimensions."""
    if divisor == 1:
        return expr
    parts = _split(expr, divisor, extents)
    if parts is None:
        return Binary("//", expr, Const(divisor))
    multiples, turns, _ = parts
    return add(_sum([_divide_exactly(t, divisor) for t in multiples]), Const(turns))


def modulo(expr: IndexExpr, divisor: int, extents: Sequence[int]) -> IndexExpr:
    """`expr % divisor`, simplified with the ranges of the dimensions."""
    if divisor == 1:
        return Const(0)
    parts = _split(expr, divisor, extents)
    return Binary("%", expr, Const(divisor)) if parts is None else parts[2]


def _substitute(expr: IndexExpr, values: Sequence[IndexExpr], extents: Sequence[int]) -> IndexExpr:
    match expr:
        case Dim(position):
            return values[position]
        case Const():
            return expr
        case Binary(op, lhs, rhs):
            left = _substitute(lhs, values, extents)
            if op == "+":
                return add(left, _substitute(rhs, values, extents))
            assert isinstance(rhs, Const)
            if op == "*":
                return scale(left, rhs.value)
            return (floor_divide if op == "//" else modulo)(left, rhs.value, extents)
    raise AssertionError(expr)


def compose(outer: IndexMap, inner: IndexMap, extents: Sequence[int]) -> IndexMap:
    """The map `point -> outer(inner(point))`; `extents` are those of inner's iteration space."""
    return IndexMap(inner.rank, tuple(_substitute(e, inner.exprs, extents) for e in outer.exprs))


def reshape_map(source: Sequence[int], target: Sequence[int]) -> IndexMap:
    """From an index of `target` to the index of `source` at the same row-major position."""
    linear: IndexExpr = Const(0)
    step = 1
    for position in range(len(target) - 1, -1, -1):
        term = Const(0) if target[position] == 1 else scale(Dim(position), step)
        linear = add(term, linear)
        step *= target[position]
    exprs: list[IndexExpr] = []
    step = 1
    for extent in reversed(source):
        exprs.append(modulo(floor_divide(linear, step, target), extent, target))
        step *= extent
    return IndexMap(len(target), tuple(reversed(exprs)))


def is_affine(expr: IndexExpr) -> bool:
    """True if `expr` has no division and no remainder."""
    match expr:
        case Binary(op, lhs, rhs):
            return op in "+*" and is_affine(lhs) and is_affine(rhs)
    return True


def coefficient(expr: IndexExpr, position: int) -> int | None:
    """How much `expr` grows when dimension `position` grows by one; None if that is not a constant."""
    match expr:
        case Dim(own):
            return int(own == position)
        case Const():
            return 0
        case Binary("+", lhs, rhs):
            left, right = coefficient(lhs, position), coefficient(rhs, position)
            return None if left is None or right is None else left + right
        case Binary("*", lhs, Const(factor)):
            inner = coefficient(lhs, position)
            return None if inner is None else inner * factor
        case Binary(_, lhs, _):
            return 0 if coefficient(lhs, position) == 0 else None
    raise AssertionError(expr)


def linearise(exprs: Sequence[IndexExpr], shape: Sequence[int]) -> IndexExpr:
    """The row-major position of an index, with `(x // c) * c + x % c` joined again to `x`."""
    linear: IndexExpr = Const(0)
    step = 1
    for expr, extent in zip(reversed(exprs), reversed(shape), strict=True):
        linear = add(scale(expr, step), linear)
        step *= extent
    return _join_quotients(linear)


def _unscale(term: IndexExpr) -> tuple[IndexExpr, int]:
    if isinstance(term, Binary) and term.op == "*" and isinstance(term.rhs, Const):
        return term.lhs, term.rhs.value
    return term, 1


def _join_quotients(expr: IndexExpr) -> IndexExpr:
    """Replace `s * (x % c) + s * c * (x // c)` by `s * x` wherever both terms occur."""
    terms = [_unscale(t) for t in _terms(expr)]
    for i, (rest, step) in enumerate(terms):
        if not (isinstance(rest, Binary) and rest.op == "%" and isinstance(rest.rhs, Const)):
            continue
        quotient = (Binary("//", rest.lhs, rest.rhs), step * rest.rhs.value)
        if quotient in terms:
            joined = [t for k, t in enumerate(terms) if k != i and t != quotient] + [
                _unscale(scale(rest.lhs, step))
            ]
            return _join_quotients(_sum([scale(e, s) for e, s in joined]))
    return _sum([scale(e, s) for e, s in terms])


def parse_index_map(text: str) -> IndexMap:
    """Read the text of a map. Raises ValueError if it is malformed."""
    head, _, tail = text.removeprefix("map<").removesuffix(">").partition(":")
    if not head.strip().isdigit():
        raise ValueError(f"not an index map: {text!r}")
    try:
        parsed = ast.parse(f"({tail},)" if tail.strip() else "()", mode="eval").body
    except SyntaxError as error:
        raise ValueError(f"not an index map: {text!r}") from error
    assert isinstance(parsed, ast.Tuple)
    return IndexMap(int(head), tuple(_from_ast(node, text) for node in parsed.elts))


_OPERATORS: dict[type[ast.operator], Literal["+", "*", "//", "%"]] = {
    ast.Add: "+",
    ast.Mult: "*",
    ast.FloorDiv: "//",
    ast.Mod: "%",
}


def _from_ast(node: ast.expr, text: str) -> IndexExpr:
    match node:
        case ast.Name(id=name) if name[0] == "d" and name[1:].isdigit():
            return Dim(int(name[1:]))
        case ast.Constant(value=int(value)):
            return Const(value)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))):
            return Const(-value)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return Binary(_OPERATORS[type(op)], _from_ast(left, text), _from_ast(right, text))
    raise ValueError(f"not an index map: {text!r}")
