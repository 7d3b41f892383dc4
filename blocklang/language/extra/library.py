"""How the functions of libdevice are made from a table: a name, the types it takes, what it does.

A function looks at the types of its arguments, as Triton does: if they are one of its rows, that row is
taken; else all arguments are promoted to their common type, and the row of that type is taken. Beyond Triton,
fp16 and bf16 use the row of fp32 and are rounded once, to the operand's type where the result is a number of
the same kind.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from blocklang.diagnostics import CompilationError
from blocklang.language import dtypes as tl
from blocklang.language.broadcasting import broadcast_together
from blocklang.language.casting import cast_element
from blocklang.language.constexpr import describe
from blocklang.language.dtypes import dtype
from blocklang.language.promotion import computation_type
from blocklang.language.registry import library_function
from blocklang.language.tensor import tensor, to_tensor

Types = tuple[dtype, ...]
Body = Callable[..., Any]


@dataclass(frozen=True)
class Row:
    """Types of arguments, and that of the result."""

    arguments: Types
    result: dtype


def rows_of(text: str) -> tuple[Row, ...]:
    """Read `"int32 -> int32; int64 -> int32"`."""
    return tuple(_row_of(part) for part in text.split(";"))


def _row_of(text: str) -> Row:
    before, after = text.split("->")
    return Row(tuple(tl.dtype(name.strip()) for name in before.split(",")), tl.dtype(after.strip()))


def same(*types: str, count: int = 1) -> str:
    """Rows of `count` arguments of one type with a result of that type."""
    return "; ".join(f"{', '.join([t] * count)} -> {t}" for t in types)


def floats(count: int = 1) -> str:
    """Rows of fp32 and of fp64."""
    return same("fp32", "fp64", count=count)


def define(name: str, what: str, rows: str, body: Body) -> Callable[..., tensor]:
    """Make a function of the table.

    Args:
        name: what kernels call it.
        what: one line of documentation.
        rows: its types, as `rows_of` reads them.
        body: computes the result from tensors of the types of a row, blocks among them of one shape.
    """
    table = rows_of(rows)
    names = tuple(f"arg{i}" for i in range(len(table[0].arguments)))
    signature = inspect.Signature(
        [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Any) for n in names],
        return_annotation=tensor,
    )

    def function(*args: Any, **named: Any) -> tensor:
        try:
            given = signature.bind(*args, **named).arguments.values()
        except TypeError as error:
            raise CompilationError(f"{name}: {error}", help=f"it takes {len(names)} argument(s)") from None
        return _call(name, table, body, [to_tensor(value) for value in given])

    function.__name__ = function.__qualname__ = name
    function.__module__ = "blocklang.language.extra.libdevice"
    function.__doc__ = _documentation(name, what, table)
    function.__signature__ = signature  # type: ignore[attr-defined]
    return library_function(function)


def _documentation(name: str, what: str, table: tuple[Row, ...]) -> str:
    types = "; ".join(f"{', '.join(map(str, row.arguments))} gives {row.result}" for row in table)
    first = table[0].arguments
    values = ", ".join(f"tl.full((8,), 1, tl.{_full_name(t)})" for t in first)
    example = f"y = tl.extra.libdevice.{name}({values})"
    return f"{what}\n\nTypes: {types}.\n\nExample:\n    {example}\n"


def _full_name(type_: dtype) -> str:
    return {"fp32": "float32", "fp64": "float64"}.get(type_.name, type_.name)


def _call(name: str, table: tuple[Row, ...], body: Body, values: list[tensor]) -> tensor:
    values = list(broadcast_together(*values))
    types = tuple(value.dtype for value in values)
    row = _find(table, types)
    narrow: dtype | None = None
    if row is None and not any(t.is_ptr() for t in types):
        common = types[0]
        for other in types[1:]:
            common = computation_type(common, False, other, False)
        row = _find(table, (common,) * len(types))
        small = [t for t in types if t.is_floating() and t.primitive_bitwidth < 32]
        if row is None and small:
            widened = tuple(tl.float32 if t in small else t for t in types)
            row = _find(table, widened) or _find(table, (tl.float32,) * len(types))
            narrow = common if common in small else None
    if row is None:
        listed = "; ".join(", ".join(map(str, r.arguments)) for r in table)
        got = ", ".join(describe(value) for value in values)
        raise CompilationError(
            f"{name}: input arg type does not match: expected one of ({listed}), got {got}",
            help="convert first, for instance `x.to(tl.float32)`",
        )
    arguments = [cast_element(v, t) for v, t in zip(values, row.arguments, strict=True)]
    result: tensor = body(*arguments)
    assert result.dtype == row.result, name
    return cast_element(result, narrow) if narrow is not None and row.result == tl.float32 else result


def _find(table: tuple[Row, ...], types: Types) -> Row | None:
    return next((row for row in table if row.arguments == types), None)
