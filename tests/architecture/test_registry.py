"""Every operation is whole: one that lacks a part is named, with what it lacks and where that belongs.

Found here: whether the parts exist. Not here: whether they are right. Examples are parsed and verified by
`tests/docs/test_ops.py`, meanings are tested in `tests/interpreter`, machine code in `tests/fuzz` and
`tests/numerics`, recipes in `tests/maths`.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator

import pytest

import blocklang.interpreter  # noqa: F401 - registers the meanings
import blocklang.language as tl
from blocklang.codegen.elementwise import LOWERINGS
from blocklang.interpreter.evaluation import EVALUATORS
from blocklang.ir.core import Operation
from blocklang.ir.declaration import OPERATIONS, operand, operation, result
from blocklang.maths.registry import RECIPES
from blocklang.ops.constraints import Float, lanes_like
from blocklang.ops.elementwise import FUNCTIONS, FUNCTIONS_OF_SEVERAL, Elementwise, Neg, Scale
from blocklang.ops.events import Event, ReportFault
from blocklang.ops.memory import Load, Offset
from docs.generators.ops import example_of
from tests.architecture.rooms import ROOT

_ADDRESSED = (Offset, Load)  # machine code in `codegen/lanes.py`: it depends on how addresses grow
# `-x` is `0 - x`, as in Triton; the expansion of mathematical functions negates and scales, and checks report
# faults. Random kernels scale where they call functions.
_NOT_CALLED = (Neg, ReportFault, Scale)


@functools.cache
def names_in(folder: str) -> frozenset[str]:
    """Every name, attribute and text that the Python files of a folder write."""
    names: set[str] = set()
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
                    names.add(name)
                case ast.Constant(value=str(name)):
                    names.add(name)
    return frozenset(names)


def is_function(cls: type[Operation]) -> bool:
    return (FUNCTIONS.get(cls.name) or FUNCTIONS_OF_SEVERAL.get(cls.name)) is cls


def has_recipe(cls: type[Operation]) -> bool:
    return is_function(cls) and all((cls.name, dtype) in RECIPES for dtype in ("f32", "f64"))


def has_machine_code(cls: type[Operation]) -> bool:
    return cls in LOWERINGS or cls in _ADDRESSED or has_recipe(cls)


def is_callable(cls: type[Operation]) -> bool:
    if cls in _NOT_CALLED:
        return True
    if is_function(cls):
        return hasattr(tl.math, cls.name) or hasattr(tl.extra.libdevice, cls.name)
    return cls.__name__ in names_in("blocklang/language") | names_in("blocklang/frontend")


def has_reference(cls: type[Operation]) -> bool:
    """Whether tests compare its results with another computation of them; those of recipes walk them all."""
    wanted = cls.name if is_function(cls) else cls.__name__
    return has_recipe(cls) or wanted in names_in("tests/interpreter")


def is_fuzzed(cls: type[Operation]) -> bool:
    return is_function(cls) or cls.__name__ in names_in("tests/fuzz")


def missing_parts(cls: type[Operation]) -> Iterator[str]:
    """What an operation lacks. Those of the tile levels are no user's to call, and passes make them."""
    if cls.name not in example_of(cls):
        yield "an example in the text of IR, as the last paragraph of its docstring"
    if not cls.is_terminator and cls not in EVALUATORS:
        yield f"a meaning: @evaluates(ops.{cls.__name__}) in blocklang/interpreter/"
    if issubclass(cls, Elementwise):
        if not has_machine_code(cls):
            yield (
                f"machine code: @lowers(ops.{cls.__name__}) in codegen/elementwise.py, or a recipe for f32 "
                f"and one for f64 in blocklang/maths/"
            )
        if not has_reference(cls):
            yield f"a test of its results that names {cls.__name__}, in tests/interpreter/test_elementwise.py"
    if "block" in cls.levels:
        if not is_callable(cls):
            yield (
                f"a function `{cls.name}` in blocklang/language/maths.py or extra/libdevice.py"
                if is_function(cls)
                else f"a function in blocklang/language/ that emits ops.{cls.__name__}"
            )
        if not is_fuzzed(cls) and not issubclass(
            cls, (Event, Scale)
        ):  # random kernels are compared by their memory
            yield f"a place in the random kernels: {cls.__name__} in tests/fuzz/expressions.py"


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_has_every_part(name: str) -> None:
    missing = list(missing_parts(OPERATIONS[name]))
    assert not missing, f"{name} lacks:\n" + "\n".join(f"- {part}" for part in missing)


def test_a_bare_declaration_lacks_every_part() -> None:
    class Undocumented(Elementwise):
        source = operand(Float)
        output = result(lanes_like("source"))

    try:
        operation("undocumented")(Undocumented)
        missing = list(missing_parts(Undocumented))
    finally:
        OPERATIONS.pop("undocumented", None)
    words = ("example", "meaning", "machine code", "test of its results", "function", "random kernels")
    for word, part in zip(words, missing, strict=True):
        assert word in part
