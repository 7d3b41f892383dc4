"""Values of placed IR in the user's own names: `row * stride` instead of `%v1`."""

from __future__ import annotations

import re

from blocklang.ir.core import Operation, Region, Value
from blocklang.ir.types import ScalarType
from blocklang.ops.control import For
from blocklang.ops.creation import Constant, NumPrograms, ProgramId
from blocklang.ops.elementwise import (
    Add,
    And,
    Cast,
    Compare,
    IntegerDiv,
    Maximum,
    Minimum,
    Mul,
    Rem,
    Select,
    Sub,
)
from blocklang.ops.memory import Load
from blocklang.ops.tile import Group, InBounds, Lanes, Read

DEPTH = 8  # of what is nested deeper only an ellipsis is left
_INTERNAL = re.compile(r"(guard|unit|moves|transfers)$")
_SYMBOLS: dict[type[Operation], str] = {
    Add: "+",
    Sub: "-",
    Mul: "*",
    IntegerDiv: "//",
    Rem: "%",
    And: "and",
}
_FUNCTIONS: dict[type[Operation], str] = {Minimum: "min", Maximum: "max"}
_PREDICATES = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}


def number(value: int | float | bool) -> str:
    """A constant; limits of 32 and 64 bits as powers of two."""
    if isinstance(value, int) and not isinstance(value, bool):
        for bits in (31, 63):
            if abs(value) == 1 << bits:
                return f"{'-' * (value < 0)}2^{bits}"
            if value == (1 << bits) - 1:
                return f"2^{bits} - 1"
    return str(value)


def axis_of(index: Value) -> str:
    """How an index of a loop nest is called: 'axis 0' for `%d0`."""
    match = re.fullmatch(r"d(\d+)", index.name)
    return f"axis {match[1]}" if match else index.name or "a loop"


def words(value: Value, depth: int = DEPTH) -> str:
    """An expression in the user's names, of at most `depth` levels."""
    op = value.defining_op
    if op is None:
        return _argument(value)
    if isinstance(op, Constant):
        return number(op.value)
    if isinstance(op, Cast) and _is_integer(op.source) and _is_integer(op.result):
        return words(op.source, depth)
    if value.name and not _INTERNAL.match(value.name):
        return value.name
    if depth == 0:
        return "..."
    match op:
        case ProgramId():
            return f"program_id({op.axis})"
        case NumPrograms():
            return f"num_programs({op.axis})"
        case Compare():
            return f"{words(op.lhs, depth - 1)} {_PREDICATES[op.predicate]} {words(op.rhs, depth - 1)}"
        case InBounds():
            low, index, high = (words(v, depth - 1) for v in (op.low, op.index, op.high))
            return f"{low} <= {index} < {high}"
        case Select():
            return f"({words(op.if_true, depth - 1)} or {words(op.if_false, depth - 1)})"
        case Load() | Read():
            return "what was loaded" if isinstance(op, Load) else "what was kept"
    if isinstance(op, Add) and (text := _sum(op, depth)):
        return text
    if symbol := _SYMBOLS.get(op.__class__):
        left, right = (_operand(v, symbol, position, depth) for position, v in enumerate(op.operands))
        return f"{left} {symbol} {right}"
    if function := _FUNCTIONS.get(op.__class__):
        return f"{function}({', '.join(words(v, depth - 1) for v in op.operands)})"
    return f"{op.name}(...)"


def _sum(op: Add, depth: int) -> str:
    """A sum that is written otherwise: twice a value, or less a number."""
    if op.lhs is op.rhs:
        return f"2 * {_operand(op.lhs, '*', 1, depth)}"
    constant = op.rhs.defining_op
    if isinstance(constant, Constant) and _is_integer(op.rhs) and int(constant.value) < 0:
        return f"{words(op.lhs, depth - 1)} - {number(-int(constant.value))}"
    return ""


def _is_integer(value: Value) -> bool:
    return isinstance(value.type, ScalarType) and not value.type.is_float


def _argument(value: Value) -> str:
    owner = value.owner
    loop = owner.parent if isinstance(owner, Region) else None
    if isinstance(loop, (Group, Lanes)):
        return axis_of(value)
    if isinstance(loop, For) and not value.name:
        return "the loop's index"
    return value.name or "..."


def _operand(value: Value, symbol: str, position: int, depth: int) -> str:
    text = words(value, depth - 1)
    binds_less = " + " in text or " - " in text or (position == 1 and symbol in "//%" and " " in text)
    is_call = text.startswith(("min(", "max(")) and text.endswith(")")
    if binds_less and not is_call and (symbol in ("*", "//", "%") or (symbol == "-" and position == 1)):
        return f"({text})"
    return text
