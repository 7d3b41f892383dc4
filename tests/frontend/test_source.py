"""Finding a kernel's source, wherever it was written, and what is said when it cannot be found."""

from __future__ import annotations

import functools
import importlib
import inspect
import linecache
import sys
import textwrap
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import blocklang.language as tl
from blocklang.diagnostics import CompilationError, UnsupportedLanguageConstruct
from blocklang.frontend import KernelSource
from tests.frontend.building import build, define, run

TEXT = """
import blocklang.language as tl

def kernel(out, n):
    tl.store(out, n + 1)
"""


def check(function: Callable[..., Any]) -> None:
    assert run(build(function, "ptr<i32>", "i32"), 1, 41).tolist() == [42]


def traced(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any) -> Any:
        return function(*args)

    return wrapper


def test_indentation_and_decorators_stacked() -> None:
    if True:

        @traced
        @traced
        def kernel(out: Any, n: Any) -> None:
            tl.store(out, n + 1)

    function = inspect.unwrap(kernel)
    source = KernelSource.from_function(function)
    assert source.text.splitlines()[0].strip() == "@traced"
    check(function)


def test_one_line() -> None:
    def kernel(out, n): tl.store(out, n + 1)  # type: ignore[no-untyped-def] # fmt: skip

    check(kernel)


def test_two_functions_on_one_line() -> None:
    text = "def other(x): return x\ndef kernel(out, n): tl.store(out, n + 1)\n"
    check(define(text, "kernel"))


def test_code_run_by_exec_with_its_text_in_linecache() -> None:
    check(define(TEXT, "kernel"))


def test_code_in_a_zip_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "kernels.zip", "w") as archive:
        archive.writestr("zipped_kernels.py", TEXT)
    monkeypatch.syspath_prepend(str(tmp_path / "kernels.zip"))
    module = importlib.import_module("zipped_kernels")
    check(module.kernel)
    del sys.modules["zipped_kernels"]


def test_a_file_that_moved_its_lines_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "moving_kernels.py"
    file.write_text(TEXT)
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("moving_kernels")
    file.write_text("# a line more\n# and another\n" + TEXT)
    with pytest.raises(CompilationError, match=r"line 4 of .* does not define it"):
        KernelSource.from_function(module.kernel)
    del sys.modules["moving_kernels"]


def test_text_that_is_nowhere_gives_the_remedy() -> None:
    namespace: dict[str, Any] = {"tl": tl}
    exec(compile(TEXT, "<nowhere>", "exec"), namespace)
    with pytest.raises(CompilationError, match="cannot be found") as caught:
        KernelSource.from_function(namespace["kernel"])
    assert "linecache" in (caught.value.help or "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kernel = lambda out: tl.store(out, 1)\n", "a lambda cannot be a kernel"),
        ("async def kernel(out): pass\n", "cannot be `async`"),
        ("def kernel(*out): pass\n", r"cannot take `\*out`"),
        ("def kernel(**out): pass\n", r"cannot take `\*\*out`"),
    ],
)
def test_other_functions_are_refused(text: str, message: str) -> None:
    function = define(text, "kernel")
    with pytest.raises(UnsupportedLanguageConstruct, match=message):
        KernelSource.from_function(function)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the syntax is newer")
def test_type_parameters_are_refused() -> None:
    function = define("def kernel[T](out): pass\n", "kernel")
    with pytest.raises(UnsupportedLanguageConstruct, match="type parameters"):
        KernelSource.from_function(function)


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(CompilationError, match="must be a Python function"):
        KernelSource.from_function(print)


def test_columns_are_those_of_the_file() -> None:
    text = textwrap.indent("def kernel(out):\n    tl.store(out, 'ä' + missing)\n", "    ")
    function = define("if True:\n" + text, "kernel")
    with pytest.raises(CompilationError) as caught:
        build(function, "ptr<i32>")
    location = caught.value.location
    assert location is not None
    assert (location.line, location.column) == (3, 29)
    assert caught.value.render().splitlines()[1:3] == [
        "    tl.store(out, 'ä' + missing)",
        "                        ^^^^^^^",
    ]


def test_parameters() -> None:
    function = define("def kernel(x, N: tl.constexpr, M: 'tl.constexpr' = 4, *, k=2): pass\n", "kernel")
    source = KernelSource.from_function(function)
    assert [(p.name, p.is_constexpr, p.has_default) for p in source.parameters] == [
        ("x", False, False),
        ("N", True, False),
        ("M", True, True),
        ("k", False, True),
    ]


def test_the_fingerprint_follows_the_text() -> None:
    first, again = (KernelSource.from_function(define(TEXT, "kernel")) for _ in range(2))
    assert first.fingerprint == KernelSource.from_function(first.function).fingerprint
    assert first.fingerprint != again.fingerprint  # another place
    assert linecache.getline(first.file, 5).strip() == "tl.store(out, n + 1)"
