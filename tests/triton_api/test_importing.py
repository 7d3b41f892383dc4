"""`import triton` that finds blocklang: module identity, shadowing, scripts and generated modules."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import blocklang.triton as served
from tests.architecture.rooms import ROOT


@pytest.fixture
def installed() -> Iterator[None]:
    with served.installed():
        yield


SUBMODULES = [
    "language",
    "language.core",
    "language.math",
    "language.standard",
    "language.random",
    "language.target_info",
    "language.extra",
    "language.extra.libdevice",
    "language.extra.cuda",
    "language.extra.cuda.libdevice",
    "language.extra.hip",
    "language.extra.hip.libdevice",
    "runtime",
    "runtime.jit",
    "runtime.autotuner",
    "runtime.cache",
    "runtime.errors",
    "runtime.interpreter",
    "compiler",
    "compiler.compiler",
    "compiler.code_generator",
    "compiler.errors",
    "backends",
    "backends.compiler",
    "backends.driver",
    "testing",
    "tools",
    "tools.tensor_descriptor",
    "knobs",
    "errors",
]


@pytest.mark.parametrize("name", SUBMODULES)
def test_a_module_is_the_same_under_both_names(installed: None, name: str) -> None:
    assert importlib.import_module(f"triton.{name}") is importlib.import_module(f"blocklang.triton.{name}")


def test_the_package(installed: None) -> None:
    triton = importlib.import_module("triton")
    assert triton is served
    assert triton.__name__ == "blocklang.triton"
    assert triton.__spec__ is not None
    assert triton.__spec__.name == "blocklang.triton"
    assert importlib.metadata.version("triton") == "3.7.1"


def test_unknown_modules_are_refused_by_name(installed: None) -> None:
    with pytest.raises(ModuleNotFoundError, match=r"triton\.profiler"):
        importlib.import_module("triton.profiler")


def test_another_triton_is_shadowed_and_comes_back() -> None:
    for name in [n for n in sys.modules if n == "triton" or n.startswith("triton.")]:
        pytest.skip(f"{name} is imported already")
    other, below = ModuleType("triton"), ModuleType("triton.language")
    sys.modules.update({"triton": other, "triton.language": below})
    try:
        with served.installed():
            assert importlib.import_module("triton") is served
            assert importlib.import_module("triton.language") is served.language
        assert sys.modules["triton"] is other
        assert sys.modules["triton.language"] is below
    finally:
        del sys.modules["triton"], sys.modules["triton.language"]


def test_installing_twice_and_nested() -> None:
    with served.installed():
        served.install()
        with served.installed():
            pass
        assert served.is_installed()
    assert not served.is_installed()
    served.uninstall()


SCRIPT = """
    import numpy as np
    import triton
    import triton.language as tl
    import a_library

    @triton.jit
    def double(x, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(x + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)

    if __name__ == "__main__":
        x = np.ones(5, np.float32)
        double[lambda meta: (triton.cdiv(5, meta["BLOCK"]),)](x, 5, BLOCK=4)
        a_library.triple[(1,)](x, BLOCK=8)
        assert isinstance(double, a_library.JITFunction)
        print(x.tolist())
"""
LIBRARY = """
    import triton
    import triton.language as tl
    from triton.runtime.jit import JITFunction

    if tuple(int(part) for part in triton.__version__.split(".")[:2]) >= (3, 4):
        @triton.jit
        def triple(x, BLOCK: tl.constexpr):
            i = tl.arange(0, BLOCK)
            tl.store(x + i, 3 * tl.load(x + i, mask=i < 5), mask=i < 5)
"""


def run(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "blocklang", *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )


def write(path: Path, text: str) -> Path:
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return path


def test_an_unmodified_script_runs(tmp_path: Path) -> None:
    script = write(tmp_path / "script.py", SCRIPT)
    write(tmp_path / "a_library.py", LIBRARY)
    done = run("run", script)
    assert done.stdout == "[6.0, 6.0, 6.0, 6.0, 6.0]\n", done.stderr
    interpreted = run("run", script, TRITON_INTERPRET="1")
    assert interpreted.stdout == done.stdout, interpreted.stderr
    shown = run("ir", f"{script}:double", "--from-run")
    assert "kernel @double" in shown.stdout, shown.stderr


GENERATOR = """
    import importlib.util, sys, tempfile
    from pathlib import Path
    import numpy as np

    SOURCE = "\\n".join(
        [
            "import triton",
            "import triton.language as tl",
            "@triton.jit",
            "def generated(x, BLOCK: tl.constexpr):",
            "    i = tl.arange(0, BLOCK)",
            "    tl.store(x + i, {value})",
        ]
    )

    with tempfile.TemporaryDirectory() as directory:
        for value in ("1.0", "2.0"):
            path = Path(directory) / f"generated_{value[0]}.py"
            path.write_text(SOURCE.format(value=value))
            spec = importlib.util.spec_from_file_location(path.stem, path)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            x = np.zeros(4, np.float32)
            module.generated[(1,)](x, BLOCK=4)
            print(x.tolist())
"""


def test_generated_modules(tmp_path: Path) -> None:
    done = run("run", write(tmp_path / "generator.py", GENERATOR))
    assert done.stdout == "[1.0, 1.0, 1.0, 1.0]\n[2.0, 2.0, 2.0, 2.0]\n", done.stderr


def test_device_map_is_checked(tmp_path: Path) -> None:
    script = write(tmp_path / "empty.py", "print('ran')")
    refused = run("run", "--device-map", "cuda=xpu", script)
    assert refused.returncode == 2
    assert "cuda=cpu" in refused.stderr
