"""The examples run as their readers run them, and their kernels hold for sizes that the examples do not use.

Each kernel is run compiled and interpreted: both must give the same bits, and be right against float64.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import blocklang as bl
from blocklang.aot import find_linker
from blocklang.diagnostics import UsageError

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("vector_add", "softmax", "matmul", "layer_norm", "blur")
KERNELS = {
    "vector_add": "add",
    "softmax": "softmax",
    "matmul": "matmul",
    "layer_norm": "layer_norm",
    "blur": "blur",
}


def load(name: str) -> ModuleType:
    return importlib.import_module(f"examples.{name}")


def random(*shape: int) -> NDArray[np.float32]:
    return np.random.default_rng(sum(shape)).standard_normal(shape, dtype=np.float32)


@pytest.fixture
def both_modes(monkeypatch: pytest.MonkeyPatch) -> Callable[..., NDArray[Any]]:
    """`both_modes(name, launch, out)`: launch compiled, then interpreted; the output, the same to the bit."""

    def run(name: str, launch: Callable[[NDArray[Any]], None], out: NDArray[Any]) -> NDArray[Any]:
        compiled, interpreted = out.copy(), out.copy()
        launch(compiled)
        module = load(name)
        kernel = getattr(module, KERNELS[name])
        monkeypatch.setattr(module, KERNELS[name], bl.jit(interpret=True)(kernel.fn))
        launch(interpreted)
        assert compiled.tobytes() == interpreted.tobytes()
        return compiled

    return run


def run_script(name: str, directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "examples" / f"{name}.py"), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_script_runs(name: str, tmp_path: Path) -> None:
    done = run_script(name, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "allowed" in done.stdout
    assert "blocklang" in done.stdout
    assert "NumPy" in done.stdout
    if name == "blur":
        assert {path.name for path in (tmp_path / "out").iterdir()} == {"blur_before.png", "blur_after.png"}


@pytest.mark.slow
def test_autotune_runs(tmp_path: Path) -> None:
    done = run_script("autotune", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "add_row_sums for (1000, 1000, float32, float32): tuned in" in done.stdout
    assert "add_row_sums for (20000, 50, float32, float32): tuned in" in done.stdout


@pytest.mark.slow
def test_ahead_of_time_runs(tmp_path: Path) -> None:
    try:
        find_linker()
    except UsageError as error:
        pytest.skip(f"no C compiler: {error.message}")
    done = run_script("ahead_of_time", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "C, Python and the jit gave the same bytes" in done.stdout
    assert "allowed" in done.stdout
    assert "the C program ran the code for" in done.stderr


def test_device_memory_shows_both_mistakes(tmp_path: Path) -> None:
    for device in ("trn2", "h100"):
        done = run_script("device_memory", tmp_path, device)
        assert done.returncode == 0, done.stderr
        assert f"scaled on {device}: largest error" in done.stdout
        assert "argument 'x_ptr' (float32 of shape (1797, 64)) is in the memory of this host" in done.stdout
        assert "256 bytes were overwritten after 'out_ptr'" in done.stdout
        assert "where element 115008 would be (byte 460032)" in done.stdout


@pytest.mark.slow
def test_matmul_takes_sizes(tmp_path: Path) -> None:
    done = run_script("matmul", tmp_path, "100", "70", "33")
    assert done.returncode == 0, done.stderr
    assert "(100, 33) @ (33, 70)" in done.stdout
    done = run_script("matmul", tmp_path, "100")
    assert done.returncode == 1
    assert done.stderr == "usage: python examples/matmul.py [M N K]\n"


@pytest.mark.parametrize("size", [1, 4095, 4096, 4097, 10_000])
def test_vector_add(size: int, both_modes: Callable[..., NDArray[Any]]) -> None:
    x, y = random(size), random(size + 1)[1:]
    out = both_modes("vector_add", lambda out: load("vector_add").launch(x, y, out), np.zeros_like(x))
    assert np.array_equal(out, x + y)


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (2, 64), (3, 1000)])
def test_softmax(shape: tuple[int, int], both_modes: Callable[..., NDArray[Any]]) -> None:
    module = load("softmax")
    wide = random(shape[0], 2 * shape[1])
    x = wide[:, : shape[1]]  # rows that are apart
    out = both_modes("softmax", lambda out: module.launch(x, out), np.zeros(shape, np.float32))
    assert np.abs(out - module.softmax_in_numpy(x.astype(np.float64))).max() <= 1e-6


def test_softmax_of_a_row_without_a_number(both_modes: Callable[..., NDArray[Any]]) -> None:
    x = np.full((2, 5), -np.inf, np.float32)
    out = both_modes("softmax", lambda out: load("softmax").launch(x, out), np.zeros_like(x))
    assert np.isnan(out).all()


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 5, 7), (128, 128, 64), (130, 129, 65), (200, 7, 300)])
def test_matmul(shape: tuple[int, int, int], both_modes: Callable[..., NDArray[Any]]) -> None:
    m, n, k = shape
    a, b = random(m, k), random(k, n)
    out = both_modes("matmul", lambda out: load("matmul").launch(a, b, out), np.zeros((m, n), np.float32))
    bound = k * 2.0**-24 * (np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64))
    assert (np.abs(out - a.astype(np.float64) @ b.astype(np.float64)) <= bound).all()


def test_matmul_of_views(both_modes: Callable[..., NDArray[Any]]) -> None:
    a, b = random(70, 50).T, random(60, 140)[::-1, ::2].T
    b = b[:70]
    out = both_modes("matmul", lambda out: load("matmul").launch(a, b, out.T), np.zeros((60, 50), np.float32))
    assert np.allclose(out.T, a.astype(np.float64) @ b, atol=1e-4)


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (4, 768), (2, 1024)])
def test_layer_norm(shape: tuple[int, int], both_modes: Callable[..., NDArray[Any]]) -> None:
    module = load("layer_norm")
    x, weight, bias = random(*shape), random(shape[1]), random(shape[1])
    out = both_modes("layer_norm", lambda out: module.launch(x, weight, bias, out), np.zeros_like(x))
    exact = module.layer_norm_in_numpy(x.astype(np.float64), weight, bias)
    assert np.abs(out - exact).max() <= 1e-5


@pytest.mark.parametrize("shape", [(2, 2, 3), (3, 5, 1), (16, 85, 3), (17, 86, 3), (33, 100, 4)])
def test_blur(shape: tuple[int, int, int], both_modes: Callable[..., NDArray[Any]]) -> None:
    module = load("blur")
    picture = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    out = both_modes("blur", lambda out: module.launch(picture, out), np.zeros_like(picture))
    assert np.array_equal(out, module.blur_in_numpy(picture, np.float64))


def test_cosine_basis_is_orthonormal() -> None:
    basis = load("matmul").cosine_basis(50).astype(np.float64)
    assert np.abs(basis @ basis.T - np.eye(50)).max() < 1e-6
