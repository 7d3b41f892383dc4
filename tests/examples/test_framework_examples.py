"""The examples for PyTorch and JAX run as their readers run them, where the framework is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.rooms import ROOT


@pytest.mark.parametrize(
    ("name", "framework", "words"),
    [
        ("torch_op", "torch", ["gradients equal finite differences", "no graph breaks"]),
        ("jax_op", "jax", ["over 2 devices, the same to the bit"]),
    ],
)
def test_example(name: str, framework: str, words: list[str], tmp_path: Path) -> None:
    pytest.importorskip(framework, reason=f"{framework} is an extra: pip install 'blocklang[{framework}]'")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "examples" / f"{name}.py")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    assert all(word in done.stdout for word in words), done.stdout
