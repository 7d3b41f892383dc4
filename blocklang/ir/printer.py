"""The one text syntax of IR, written out.

    kernel @add(%x: ptr<f32> divisible=16, %n: i32) {
      %pid = program_id axis=0 : i32
      %y = for %lo, %hi, %step, %init : f32 {
        (%i: i32, %acc: f32):
        yield %acc
      }
      store %p, %v, mask=%m
      return
    }

An operation is `results = name operands, optional operands as name=%value, attributes as name=literal :
result types`, then its regions in braces. `parser` reads exactly this; for every kernel
`print(parse(print(k))) == print(k)`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from typing import Any

from blocklang.ir.core import Kernel, Operation, Region, Value
from blocklang.ir.index_map import IndexMap
from blocklang.ir.types import Type

LEVEL_KEYWORDS = {"block": "kernel", "tile": "tile", "placed": "placed"}


def format_attribute(value: Any) -> str:
    """The text of an attribute value."""
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            if math.isfinite(value):
                return repr(value)
            return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
        case str():
            return json.dumps(value)
        case tuple():
            return f"[{', '.join(map(format_attribute, value))}]"
        case Type() | IndexMap():
            return str(value)
    raise TypeError(f"not an attribute: {value!r}")


class Printer:
    """Names values uniquely, from their hints, and writes lines.

    Args:
        locations: end each operation with `loc("file":line:column)`.
        annotate: text appended to an operation's line as a comment, or ''.
    """

    def __init__(
        self, *, locations: bool = False, annotate: Callable[[Operation], str] | None = None
    ) -> None:
        self.locations = locations
        self.annotate = annotate
        self.lines: list[str] = []
        self._names: dict[Value, str] = {}
        self._next: dict[str, int] = {}
        self._taken: set[str] = set()

    def name_of(self, value: Value) -> str:
        if value not in self._names:
            hint = value.name or "v"
            name = hint if value.name and hint not in self._taken else ""
            while not name or name in self._taken:
                number = self._next.get(hint, 0)
                self._next[hint] = number + 1
                name = f"{hint}{'' if hint == 'v' else '_'}{number}"
            self._taken.add(name)
            self._names[value] = name
        return f"%{self._names[value]}"

    def _operands(self, op: Operation) -> list[str]:
        parts: list[str] = []
        for field in op.operand_fields:
            values = [self.name_of(v) for v in op.segment(field.name)]
            if field.optional:
                parts += [f"{field.name}={v}" for v in values]
            else:
                parts += values
        return parts

    def operation(self, op: Operation, indent: int = 0) -> None:
        pad = "  " * indent
        declared = [f.name for f in op.attribute_fields]
        ordered = sorted(op.attributes, key=lambda k: declared.index(k) if k in declared else len(declared))
        parts = self._operands(op) + [f"{k}={format_attribute(op.attributes[k])}" for k in ordered]
        text = f"{op.name} {', '.join(parts)}".rstrip()
        if op.results:
            names, types = map(self.name_of, op.results), (str(r.type) for r in op.results)
            text = f"{', '.join(names)} = {text} : {', '.join(types)}"
        if self.locations and op.location.line:
            place = op.location
            text += f" loc({json.dumps(place.file)}:{place.line}:{place.column})"
        note = self.annotate(op) if self.annotate else ""
        self.lines.append(f"{pad}{text}{' {' if op.regions else ''}{f'  // {note}' if note else ''}")
        for index, region in enumerate(op.regions):
            if index:
                self.lines.append(f"{pad}}} {{")
            self.region(region, indent + 1)
        if op.regions:
            self.lines.append(f"{pad}}}")

    def region(self, region: Region, indent: int) -> None:
        if region.args:
            args = ", ".join(f"{self.name_of(a)}: {a.type}" for a in region.args)
            self.lines.append(f"{'  ' * indent}({args}):")
        for op in region.ops:
            self.operation(op, indent)

    def kernel(self, kernel: Kernel) -> None:
        args = ", ".join(
            f"{self.name_of(arg)}: {arg.type}{_spaced(attributes)}"
            for arg, attributes in zip(kernel.args, kernel.argument_attributes, strict=True)
        )
        keyword = LEVEL_KEYWORDS[kernel.level]
        self.lines.append(f"{keyword} @{kernel.name}({args}){_spaced(kernel.attributes)} {{")
        for op in kernel.body.ops:
            self.operation(op, 1)
        self.lines.append("}")

    def text(self) -> str:
        return "\n".join(self.lines)


def _spaced(attributes: dict[str, Any]) -> str:
    return "".join(f" {k}={format_attribute(v)}" for k, v in attributes.items())


def print_kernel(
    kernel: Kernel, *, locations: bool = False, annotate: Callable[[Operation], str] | None = None
) -> str:
    """The text of a whole kernel, ending in a newline."""
    printer = Printer(locations=locations, annotate=annotate)
    printer.kernel(kernel)
    return printer.text() + "\n"


def print_operation(op: Operation) -> str:
    """The text of one operation and what it holds, for messages."""
    printer = Printer()
    printer.operation(op)
    return printer.text()


def print_values(values: Iterable[Value]) -> str:
    """Names and types of values, for messages."""
    return ", ".join(f"%{v.name or '?'}: {v.type}" for v in values)
