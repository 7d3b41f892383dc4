"""No name is missing: what Triton 3.7.1 has, where it is installed, and what a row names."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import docs.conformance.rows
from docs.conformance.kernels import Kernel, Refuses
from docs.conformance.rows import all_rows
from docs.conformance.rows.functions import NAMES as LIBDEVICE
from docs.conformance.surface import ARGUMENTS, MODULES, WITHOUT_ROWS

NAMES = {row.name for row in all_rows()}
FOLDER = Path(docs.conformance.rows.__file__).parent
TEXT = "\n".join(path.read_text("utf-8") for path in sorted(FOLDER.glob("*.py")))


def _codes() -> str:
    kernels = (r.probe.kernel if isinstance(r.probe, Refuses) else r.probe for r in all_rows())
    return "\n".join(k.source() for k in kernels if isinstance(k, Kernel))


CODES = _codes()


def test_libdevice_has_its_198_names() -> None:
    assert len(LIBDEVICE) == 198
    assert {name for name in LIBDEVICE if not any(row.split(" ")[0] == name for row in NAMES)} == set()


@pytest.mark.parametrize("name", sorted({*MODULES["triton.language"]} - WITHOUT_ROWS))
def test_a_row_uses_every_name_of_the_language(name: str) -> None:
    assert re.search(rf"\btl\.{name}\b", CODES) or re.search(rf"\btl\.{name}\b", TEXT) or name in NAMES


@pytest.mark.parametrize("name", sorted(ARGUMENTS))
def test_every_argument_is_passed_by_some_row(name: str) -> None:
    """By name in some probe, or by its place in a row that lists the arguments."""
    for argument in ARGUMENTS[name]:
        listed = any(re.match(rf"{name}\(.*\b{argument}\b", row) for row in NAMES)
        passed = re.search(rf"\b{name}\(.*\b{argument}=", CODES)
        first = argument in FIRST
        assert listed or passed or first, argument


# The operands, which every call passes by place.
FIRST = frozenset(
    {
        *("x", "y", "z", "a", "b", "c", "input", "other", "lhs", "rhs", "value", "values", "cond", "axis"),
        *("name", "asm", "constraints", "args", "dtype", "lhs_scale", "lhs_format", "rhs_scale"),
        *("rhs_format", "lhs_k_pack", "rhs_k_pack"),
    }
)


@pytest.mark.parametrize("module", sorted(MODULES))
def test_names_are_those_of_triton(module: str) -> None:
    """Facts about the wheel, where it is installed: the names of a module, as the table has them."""
    triton = pytest.importorskip("triton", reason="needs Triton itself: pip install 'blocklang[parity]'")
    if triton.__version__ != "3.7.1":
        pytest.skip("the table is of Triton 3.7.1")
    code = (
        f"import importlib, json, types; m = importlib.import_module({module!r})\n"
        "print(json.dumps([n for n in dir(m) if n[0] != '_']))"
    )
    names = json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
    assert {*MODULES[module]} <= set(names)
    assert {*names} - {*MODULES[module]} <= IMPORTED, "names without a row"


@pytest.mark.parametrize("name", sorted(ARGUMENTS))
def test_arguments_are_those_of_triton(name: str) -> None:
    triton = pytest.importorskip("triton", reason="needs Triton itself: pip install 'blocklang[parity]'")
    if triton.__version__ != "3.7.1":
        pytest.skip("the table is of Triton 3.7.1")
    function = getattr(triton.language, name)
    parameters = inspect.signature(getattr(function, "fn", function)).parameters
    assert [p for p in parameters if not p.startswith("_")] == list(ARGUMENTS[name])


# What the modules import for themselves.
IMPORTED = frozenset(
    {
        *("Any", "Dict", "List", "T", "annotations", "contextmanager", "core", "functools", "jit"),
        *("math", "os", "statistics", "subprocess", "sys", "tl", "wraps", "N_ROUNDS_DEFAULT", "autotuner"),
        *("constexpr_function", "current_target", "driver", "runtime", "standard", "random"),
    }
)
