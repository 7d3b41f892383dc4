"""`blocklang build`: what mistakes are answered. What it builds is tested in `tests/aot`."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.cli.test_commands import SCRIPTS, SIG, GoldenCheck, invoke


@pytest.fixture(autouse=True)
def beside_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """No mistake depends on the compiler's presence: one is named, and never run."""
    monkeypatch.chdir(SCRIPTS)
    monkeypatch.setenv("CC", "python" if os.name == "nt" else "sh")


def answer(arguments: Sequence[str]) -> str:
    result = invoke(["build", *arguments])
    assert result.exit_code in (1, 2)
    said = result.stderr.replace(str(SCRIPTS), "SCRIPTS")
    return f"{said}exit status {result.exit_code}\n"


MISTAKES: dict[str, list[str]] = {
    "signature": ["one.py", "--sig", "*fp32,*fp31,*fp32,i32", "-D", "BLOCK=256"],
    "no_types": ["one.py"],
    "too_few_types": ["one.py", "--sig", "*fp32,i32", "-D", "BLOCK=256"],
    "missing_constant": ["one.py", "--sig", "*fp32,*fp32,*fp32,i32"],
    "no_kernel": ["none.py", *SIG],
    "c_word": ["several.py:double", "--sig", "*fp32", "-D", "BLOCK=8"],
    "name": ["one.py", *SIG, "--name", "my-add"],
    "print": ["talks.py", "--sig", "*fp32"],
    "wheel_name": ["one.py", *SIG, "--wheel", "--name", "numpy"],
    "wheel_version": ["one.py", *SIG, "--wheel", "--wheel-version", "first"],
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(golden: GoldenCheck, name: str, tmp_path: Path) -> None:
    golden(f"build_{name}.txt", answer([*MISTAKES[name], "-o", str(tmp_path)]))
    assert not list(tmp_path.iterdir())


def test_debug_mode(golden: GoldenCheck, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("BLOCKLANG_DEBUG", "1")
    golden("build_debug.txt", answer(["one.py", *SIG, "-o", str(tmp_path)]))


def test_no_directory(golden: GoldenCheck) -> None:
    golden("build_no_directory.txt", answer(["one.py", *SIG]))


def test_unwritable_directory(golden: GoldenCheck) -> None:
    golden("build_unwritable.txt", answer(["one.py", *SIG, "-o", "one.py/build"]))


@pytest.mark.parametrize(
    ("name", "levels"),
    [
        ("level", "x86-64-v3,x86-64v4"),
        ("level_unlike_any", "avx512"),
        ("level_empty", "x86-64-v3,,x86-64-v4"),
        ("level_twice", "x86-64-v3,x86-64-v3"),
    ],
)
def test_levels(
    golden: GoldenCheck, name: str, levels: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    golden(f"build_{name}.txt", answer(["one.py", *SIG, "--levels", levels, "-o", str(tmp_path)]))


def test_another_cpu_has_no_levels(
    golden: GoldenCheck, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    golden("build_level_elsewhere.txt", answer(["one.py", *SIG, "--levels", "x86-64", "-o", str(tmp_path)]))


def test_no_compiler(golden: GoldenCheck, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CC")
    monkeypatch.setenv("PATH", str(tmp_path))
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "ziglang" else real(name))
    golden("build_no_compiler.txt", answer(["one.py", *SIG, "-o", str(tmp_path)]))


def test_the_compiler_named_is_not_there(
    golden: GoldenCheck, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    golden("build_wrong_cc.txt", answer(["one.py", *SIG, "-o", str(tmp_path)]))


def test_no_setuptools(golden: GoldenCheck, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real = importlib.util.find_spec
    missing = lambda name: None if name in ("packaging", "setuptools") else real(name)  # noqa: E731
    monkeypatch.setattr(importlib.util, "find_spec", missing)
    golden("build_no_setuptools.txt", answer(["one.py", *SIG, "--wheel", "-o", str(tmp_path)]))
