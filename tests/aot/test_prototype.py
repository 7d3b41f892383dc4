"""Names that C needs otherwise, and the linker that is found."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from blocklang.aot.linker import LinkError, find_linker, link
from blocklang.aot.prototype import c_names, check_name
from blocklang.aot.wheel import check_package
from blocklang.diagnostics import UsageError


def test_names_of_arguments() -> None:
    assert c_names(["x", "int", "grid_x", "lambda", "t.0", "t_0", "größe"]) == [
        *("x", "int_", "grid_x_", "lambda_", "t_0", "t_0_", "gr__e")
    ]


@pytest.mark.parametrize("name", ["double", "lambda", "größe", "_x", "2x", "a-b", "", "a" * 300])
def test_names_that_no_function_can_have(name: str) -> None:
    with pytest.raises(UsageError, match="choose another with --name"):
        check_name(name)


@pytest.mark.parametrize(
    ("name", "owner"),
    [("exp", "C library"), ("write", "C library"), ("cpu_level", "around"), ("blocklang_launch", "around")],
)
def test_names_that_others_have(name: str, owner: str) -> None:
    with pytest.raises(UsageError, match=owner):
        check_name(name)


@pytest.mark.parametrize(
    ("name", "owner"), [("numpy", "that it needs"), ("ml_dtypes", "that it needs"), ("os", "Python's own")]
)
def test_names_that_no_wheel_can_have(name: str, owner: str) -> None:
    with pytest.raises(UsageError, match=owner):
        check_package(name)


def test_cc_names_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", f"{sys.executable} -m something")
    assert find_linker() == [sys.executable, "-m", "something"]


def test_ziglang_serves_where_there_is_no_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: real("json" if name == "ziglang" else name))
    assert find_linker() == [sys.executable, "-m", "ziglang", "cc"]


def test_what_a_failing_compiler_said_is_shown(tmp_path: Path) -> None:
    code = "import sys; sys.exit('main.c:1: no such thing')"
    with pytest.raises(LinkError, match="no such thing"):
        link([sys.executable, "-c", code], tmp_path / "a.c", [], tmp_path / "map", tmp_path / "a.so")
