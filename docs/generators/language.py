"""The reference of the language: every function a kernel may call, from its signature and docstring."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

import blocklang.language as tl
from blocklang.language.registry import BUILTINS

FAMILIES = {
    "creation": "Creation",
    "casting": "Casts",
    "maths": "Mathematical functions",
    "shape": "Shape",
    "memory": "Memory",
    "reduction": "Reductions",
    "scan": "Scans, and functions of every element",
    "linear": "Matrix products",
    "random": "Random numbers",
    "standard": "Composed functions",
    "hints": "Loops, hints and compile time",
}


def family_of(function: Callable[..., Any]) -> str:
    """The module of `blocklang.language` that defines a function."""
    return function.__module__.rpartition(".")[2]


def render() -> str:
    """The whole page."""
    return "\n".join(_page())


def _page() -> Iterator[str]:
    yield "# The language"
    yield ""
    yield "What a kernel may call, as `import blocklang.language as tl`. Generated from the docstrings by"
    yield "`make docs`; each example is compiled by a test."
    yield ""
    modules = sorted({family_of(f) for f in BUILTINS.values()}, key=_order)
    for module in modules:
        functions = {name: f for name, f in BUILTINS.items() if family_of(f) == module}
        yield f"## {FAMILIES.get(module, module.capitalize())}"
        yield ""
        for name, function in sorted(functions.items()):
            yield from _entry(name, function)


def _order(module: str) -> tuple[int, str]:
    known = list(FAMILIES)
    return (known.index(module) if module in known else len(known), module)


def _entry(name: str, function: Callable[..., Any]) -> Iterator[str]:
    where = "tl" if hasattr(tl, name) else "tl.math"
    parameters = ", ".join(_parameter(p) for p in inspect.signature(function).parameters.values())
    yield f"### `{where}.{name}({parameters})`"
    yield ""
    text, _, example = inspect.cleandoc(function.__doc__ or "").partition("\nExample:\n")
    yield from _sections(text.rstrip())
    if example:
        yield "```python"
        yield textwrap.dedent(example).rstrip()
        yield "```"
        yield ""


def _parameter(parameter: inspect.Parameter) -> str:
    stars: dict[object, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    star = stars.get(parameter.kind, "")
    default = "" if parameter.default is inspect.Parameter.empty else f"={_value(parameter.default)}"
    return f"{star}{parameter.name}{default}"


def _value(value: object) -> str:
    return re.sub(r"<.* object at .*>", "...", repr(value))


def _sections(text: str) -> Iterator[str]:
    """Prose as it is; `Args:`, `Returns:` and `Raises:` as lists."""
    for block in text.split("\n\n"):
        head, _, rest = block.partition("\n")
        if not re.fullmatch(r"(Args|Returns|Raises):", head):
            yield block
            yield ""
            continue
        yield f"{head}"
        yield ""
        entries = re.split(r"\n(?=\S)", textwrap.dedent(rest))
        for entry in entries:
            yield f"- {' '.join(entry.split())}"
        yield ""
