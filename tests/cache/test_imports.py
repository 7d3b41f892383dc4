"""What `import blocklang` and a launch from disk do not import: the compiler, and what few programs need."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from blocklang.cache.identity import NO_COMPILERS
from tests.architecture.rooms import ROOMS, ROOT

_HEAVY = {
    *("llvmlite", "ml_dtypes", "click", "tempfile", "statistics", "tomllib", "difflib", "numpy.ma"),
    *("blocklang.frontend", "blocklang.passes", "blocklang.interpreter", "blocklang.maths"),
    *("blocklang.codegen.kernel", "blocklang.compiler.stages", "blocklang.ir.parser", "blocklang.tune"),
    *("blocklang.target.device", "blocklang.language.extra", "blocklang.language.ptx", "blocklang.cli"),
}


def loaded_after(program: str) -> set[str]:
    program += "\nimport json, sys; print(json.dumps(sorted(sys.modules)))"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    found = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    return set(json.loads(found.stdout))


@pytest.mark.parametrize("program", ["import blocklang", "import blocklang.language as tl, blocklang as bl"])
def test_importing_blocklang_imports_no_compiler(program: str) -> None:
    before = loaded_after("import numpy")
    assert not (loaded_after(program) - before) & _HEAVY


def test_names_on_demand_are_all_there() -> None:
    program = """
import importlib, sys
for room in ("", ".compiler", ".ir", ".jit", ".language", ".language.extra", ".target"):
    package = importlib.import_module("blocklang" + room)
    for name in package.__all__:
        getattr(package, name)
        assert getattr(package, name) is getattr(package, name)
    try:
        package.nowhere
    except AttributeError as error:
        assert "nowhere" in str(error)
    else:
        raise AssertionError(package)
from blocklang import autotune, heuristics, Config
assert callable(heuristics)
"""
    loaded_after(program)


def test_rooms_that_are_no_part_of_the_identity_take_no_part_in_compiling() -> None:
    reached, pending = set(), ["compiler", "jit", "runtime"]
    while pending:
        room = pending.pop()
        if room not in reached:
            reached.add(room)
            pending += ROOMS[room]
    # The jit imports the interpreter for launches that are interpreted; what it compiles does not use it.
    assert reached & NO_COMPILERS <= {"interpreter"}
    assert "interpreter" not in {
        r for room in ("passes", "codegen", "frontend", "language") for r in ROOMS[room]
    }
    package = ROOT / "blocklang"
    assert all((package / room).exists() for room in NO_COMPILERS)
