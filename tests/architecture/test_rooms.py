"""Imports go one way: every import of every room is one that the table allows."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.architecture.rooms import (
    MAPPED,
    OPTIONAL,
    ROOMS,
    ROOT,
    THIRD_PARTY,
    Import,
    explain_refusal,
    imports_of,
    module_name,
    source_files,
)

PACKAGES = ("blocklang", *MAPPED)
EVERYTHING = (*PACKAGES, "tests", "examples", "benchmarks", "docs", "tools")


def read_imports(path: Path) -> list[Import]:
    return list(imports_of(path, (ROOT / path).read_text(encoding="utf-8")))


def modules_in(source: str, path: str) -> list[str]:
    return [item.module for item in imports_of(Path(path), source)]


def test_every_import_is_allowed() -> None:
    refusals = [
        reason
        for path in source_files(*PACKAGES)
        for item in read_imports(path)
        if (reason := explain_refusal(item))
    ]
    assert not refusals, "\n".join(refusals)


def test_every_file_belongs_to_a_room() -> None:
    # An import of `blocklang.diagnostics` is allowed to every room: only the room itself can be refused.
    strangers = [
        reason
        for path in source_files(*PACKAGES)
        if (reason := explain_refusal(Import(path, 1, "blocklang.diagnostics")))
    ]
    assert not strangers, "\n".join(strangers)


def test_no_attribute_is_cached_under_a_lock() -> None:
    """Python 3.11's `cached_property` can leave a forked child waiting; `blocklang.lazy` has another."""
    locking = re.compile(r"from functools import .*\bcached_property\b|functools\.cached_property\b")
    found = [p for p in source_files(*PACKAGES) if locking.search((ROOT / p).read_text(encoding="utf-8"))]
    assert not found, found


def test_no_plain_import_of_a_mapped_package() -> None:
    plain = [
        str(item)
        for path in source_files(*EVERYTHING)
        if "golden" not in path.parts
        for item in read_imports(path)
        if item.module.split(".")[0] in MAPPED
    ]
    assert not plain, "\n".join(plain)


def test_rooms_have_no_cycle() -> None:
    remaining = dict(ROOMS)
    while remaining:
        free = [room for room, allowed in remaining.items() if not allowed & remaining.keys()]
        assert free, f"rooms in a cycle: {sorted(remaining)}"
        for room in free:
            del remaining[room]


def test_codegen_and_runtime_do_not_meet() -> None:
    assert "runtime" not in ROOMS["codegen"]
    assert "codegen" not in ROOMS["runtime"]


def test_dependencies_are_the_declared_ones() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {requirement.split(">=")[0].strip() for requirement in project["dependencies"]}
    assert declared == set(THIRD_PARTY) - OPTIONAL


@pytest.mark.parametrize(
    ("path", "source", "modules"),
    [
        ("blocklang/ir/types.py", "from . import values", ["blocklang.ir"]),
        ("blocklang/ir/types.py", "from .values import Value", ["blocklang.ir.values"]),
        ("blocklang/ir/types.py", "from .. import jit, cdiv", ["blocklang.jit", "blocklang"]),
        ("blocklang/ir/__init__.py", "from .types import Type", ["blocklang.ir.types"]),
        ("blocklang/ir/__init__.py", "from ..passes import run", ["blocklang.passes"]),
        ("codegen/emit.py", "from ..runtime import launch", ["blocklang.runtime"]),
        ("codegen/x86/emit.py", "from ...abi import Plan", ["blocklang.abi"]),
        ("codegen/emit.py", "import runtime.pool", ["runtime.pool"]),
        ("runtime/launch.py", "def f():\n    import blocklang.codegen", ["blocklang.codegen"]),
        ("blocklang/abi.py", "if TYPE_CHECKING:\n    from blocklang.ir import Type", ["blocklang.ir"]),
    ],
)
def test_imports_are_read(path: str, source: str, modules: list[str]) -> None:
    assert modules_in(source, path) == modules


@pytest.mark.parametrize(
    ("path", "module", "refusal"),
    [
        ("blocklang/ops/memory.py", "blocklang.ir.types", None),
        ("blocklang/ops/memory.py", "blocklang.diagnostics", None),
        ("blocklang/ops/memory.py", "blocklang.ops.core", None),
        ("blocklang/__init__.py", "blocklang.jit", None),
        ("blocklang/__main__.py", "blocklang.cli", None),
        ("blocklang/__init__.py", "blocklang.cli", "room 'blocklang' may not import 'cli'"),
        ("blocklang/ir/types.py", "blocklang", "room 'ir' may not import 'blocklang'"),
        ("blocklang/ir/types.py", "blocklang.ops", "room 'ir' may not import 'ops'"),
        ("codegen/emit.py", "blocklang.runtime.pool", "room 'codegen' may not import 'runtime'"),
        ("runtime/pool.py", "blocklang.codegen", "room 'runtime' may not import 'codegen'"),
        ("codegen/emit.py", "runtime", "write blocklang.runtime"),
        ("blocklang/attic/old.py", "os", "room 'attic' is not in the table"),
        ("blocklang/ir/types.py", "blocklang.attic", "room 'attic' is not in the table"),
        ("blocklang/diagnostics.py", "numpy", "room 'diagnostics' may not import 'numpy'"),
        ("blocklang/ir/types.py", "llvmlite.ir", "room 'ir' may not import 'llvmlite'"),
        ("blocklang/ir/types.py", "scipy", "'scipy' is not a dependency"),
    ],
)
def test_table_decides(path: str, module: str, refusal: str | None) -> None:
    answer = explain_refusal(Import(Path(path), 1, module))
    assert answer == refusal if refusal is None else answer is not None and refusal in answer


def test_mapped_files_have_the_users_names() -> None:
    assert module_name(Path("codegen/emit.py")) == "blocklang.codegen.emit"
    assert module_name(Path("runtime/__init__.py")) == "blocklang.runtime"


def test_links_are_not_walked() -> None:
    linked = [path for path in source_files("blocklang") if path.parts[1] in MAPPED]
    assert not linked


def test_import_does_not_load_llvmlite() -> None:
    """llvmlite costs tens of milliseconds, and is loaded only to compile."""
    check = "import sys, blocklang; sys.exit('llvmlite' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", check], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr or "`import blocklang` loads llvmlite"
