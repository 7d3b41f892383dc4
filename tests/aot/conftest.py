"""What the tests of this room share: one build of three kernels, and processes that have no compiler."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from blocklang.aot import find_linker
from blocklang.cli import main
from blocklang.diagnostics import UsageError

ROOT = Path(__file__).resolve().parents[2]
KERNELS = Path(__file__).with_name("kernels.py")
TWELVE = "*fp32,*fp32,*fp32" + ",i32" * 9
BUILDS = {
    "add": (str(ROOT / "examples/vector_add.py"), "--sig", "*fp32,*fp32,*fp32,i32", "-D", "BLOCK=4096"),
    "softmax": (str(ROOT / "examples/softmax.py"), "--sig", "*fp32,*fp32,i32,i32,i32", "-D", "BLOCK=1024"),
    "matmul": (
        *(str(ROOT / "examples/matmul.py"), "--sig", TWELVE),
        *("-D", "BLOCK_M=128", "-D", "BLOCK_N=128", "-D", "BLOCK_K=64", "-D", "GROUP_M=8"),
    ),
    "shift": (f"{KERNELS}:shift", "--sig", "*fp32,*fp32,i32", "-D", "BLOCK=64"),
    "scaled": (f"{KERNELS}:scaled", "--sig", "*fp32"),
    "doubled": (f"{KERNELS}:doubled", "--sig", "*bf16,i32", "-D", "BLOCK=16"),
    "spread": (f"{KERNELS}:spread", "--sig", "*i32,i32", "-D", "np=10", "-D", "Kernel=3"),
    "count_up": (f"{KERNELS}:count_up", "--sig", "*i64,*i32,i64"),
    "kinds": (f"{KERNELS}:kinds", "--sig", "*fp64:16,i1,i8,u16,i64:16,fp16,bf16,fp32,fp64"),
}

# A process in which neither blocklang nor LLVM can be imported.
WITHOUT_COMPILER = """\
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("blocklang", "llvmlite", "triton"):
            raise ImportError(f"{name} is not for this process")

sys.meta_path.insert(0, Refuse())
import numpy as np
"""


@pytest.fixture(scope="session")
def linker() -> list[str]:
    """The C compiler."""
    if not sys.platform.startswith("linux"):
        pytest.skip("libraries are built on Linux only")
    try:
        return find_linker()
    except UsageError as error:
        pytest.skip(f"no C compiler: {error.message}")


@pytest.fixture(scope="session")
def build(linker: list[str], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """`build(name)`: the directory with the library, header, assembly and unpacked wheel of a kernel."""
    done: dict[str, Path] = {}

    def once(name: str) -> Path:
        if name not in done:
            directory = tmp_path_factory.mktemp(name)
            command = ["build", *BUILDS[name], "-o", str(directory), "--wheel", "--asm"]
            result = CliRunner().invoke(main, command)
            assert result.exit_code == 0, result.output
            (wheel,) = directory.glob("*.whl")
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(directory / "site")
            done[name] = directory
        return done[name]

    return once


@pytest.fixture
def run_without_compiler(tmp_path: Path) -> Callable[..., str]:
    """`run(site, code, BLOCKLANG_CPU=...)`: run Python code with a wheel's contents and without blocklang."""

    def run(site: Path, code: str, **environment: str) -> str:
        inherited = {key: value for key, value in os.environ.items() if key != "BLOCKLANG_CPU"}
        done = subprocess.run(
            [sys.executable, "-c", WITHOUT_COMPILER + code],
            cwd=tmp_path,
            env={**inherited, "PYTHONPATH": str(site), **environment},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
