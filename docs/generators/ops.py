"""The reference of operations, from their declarations in `blocklang.ops`."""

from __future__ import annotations

import importlib
import inspect
import textwrap
from collections.abc import Iterator

import blocklang.ops
from blocklang.ir.core import Operation
from blocklang.ir.declaration import OPERATIONS, AttributeField, OperandField
from blocklang.ir.printer import format_attribute

LEVELS = ("block", "tile", "placed")


def summary_of(cls: type[Operation]) -> str:
    """The docstring of an operation without its example."""
    return inspect.cleandoc(cls.__doc__ or "").rpartition("\n\n")[0]


def example_of(cls: type[Operation]) -> str:
    """The example of an operation: the last paragraph of its docstring, in the text syntax of IR."""
    return inspect.cleandoc(cls.__doc__ or "").rpartition("\n\n")[2]


def operations_of(family: str) -> list[type[Operation]]:
    """The operations that a module of `blocklang.ops` declares, in the order of declaration."""
    return [cls for cls in OPERATIONS.values() if cls.__module__ == f"blocklang.ops.{family}"]


def render() -> str:
    """The whole page."""
    families = [name for name in blocklang.ops.__all__ if operations_of(name)]
    return "\n".join(_page(families))


def _page(families: list[str]) -> Iterator[str]:
    yield "# Operations"
    yield ""
    yield "Generated from the declarations in `blocklang/ops/` by `make docs`."
    yield ""
    for family in families:
        names = ", ".join(f"[{cls.name}](#{cls.name})" for cls in operations_of(family))
        yield f"- **{family}**: {names}"
    yield ""
    for family in families:
        yield from _family(family)


def _family(family: str) -> Iterator[str]:
    module = importlib.import_module(f"blocklang.ops.{family}")
    yield f"## {family.capitalize()}"
    yield ""
    yield inspect.cleandoc(module.__doc__ or "")
    yield ""
    for cls in operations_of(family):
        yield from _operation(cls)


def _operation(cls: type[Operation]) -> Iterator[str]:
    yield f"### {cls.name}"
    yield ""
    yield summary_of(cls)
    yield ""
    yield textwrap.indent(example_of(cls), "    ")
    yield ""
    yield from _facts(cls)
    yield ""


def _facts(cls: type[Operation]) -> Iterator[str]:
    for operand in cls.operand_fields:
        yield f"- operand `{operand.name}`: {_describe_operand(operand)}"
    for attribute in cls.attribute_fields:
        yield f"- attribute `{attribute.name}`: {_describe_attribute(attribute)}"
    for result in cls.result_fields:
        told = "" if result.rule else "; the text states the type"
        yield f"- result `{result.name}`{', any number' if result.variadic else ''}{told}"
    for region in cls.region_fields:
        yield f"- region `{region.name}`{', may be absent' if region.optional else ''}"
    effects = sorted(effect.value for effect in cls.effects)
    yield f"- effects: {', '.join(effects) or 'none of its own'}"
    yield f"- levels: {', '.join(level for level in LEVELS if level in cls.levels)}"


def _describe_operand(operand: OperandField) -> str:
    count = ", any number" if operand.variadic else ", may be absent" if operand.optional else ""
    return operand.constraint.description + count


def _describe_attribute(attribute: AttributeField) -> str:
    types = attribute.type if isinstance(attribute.type, tuple) else (attribute.type,)
    parts = [" or ".join(t.__name__ for t in types)]
    if attribute.choices:
        parts.append(f"one of {', '.join(f'`{format_attribute(c)}`' for c in attribute.choices)}")
    if not attribute.required:
        parts.append(f"default `{format_attribute(attribute.default)}`")
    return ", ".join(parts)
