"""A library on Triton: versions, launchers of its own, kernels made at run time. `import triton` is ours."""

# mypy: ignore-errors
from __future__ import annotations

import importlib
import math
import sys

import numpy as np
import pytest

import blocklang.triton as triton
from tests.programs import library_source
from tests.programs.running import close, normal

PACKAGE = "blocklang_test_library"


@pytest.fixture
def library(tmp_path, monkeypatch):
    """The library's modules by name, imported from files under a plain `import triton`."""
    folder = tmp_path / PACKAGE
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    for name in ("LIBENTRY", "KERNELS", "POINTWISE", "FUNCTIONS"):
        source = getattr(library_source, name)
        source = source.format(package=PACKAGE) if name == "KERNELS" else source
        (folder / f"{name.lower()}.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    with triton.installed():
        yield lambda name: importlib.import_module(f"{PACKAGE}.{name}")
    for name in [n for n in sys.modules if n.split(".")[0] == PACKAGE or n.startswith("_gen_")]:
        del sys.modules[name]


def test_a_launcher_of_its_own(library):
    kernel = library("kernels").normalise_kernel
    assert isinstance(kernel, triton.KernelInterface)
    assert isinstance(kernel.jit_function, triton.runtime.JITFunction)
    assert kernel.constexpr_names == ["BLOCK_M", "BLOCK_N", "EVEN_N"]
    assert kernel.arg_names == ["x", "out", "M", "N", "eps", "BLOCK_M", "BLOCK_N", "EVEN_N"]
    assert kernel.specialize_indices == [0, 1, 2, 3]
    for rows, cols in ((7, 33), (7, 64), (7, 33)):
        x = normal(rows, rows, cols, dtype="fp16")
        out = np.full_like(x, np.nan)
        kernel[lambda meta: (triton.cdiv(meta["M"], meta["BLOCK_M"]),)](x, out, rows, cols, 1e-5)
        wide = x.astype(np.float64)
        expected = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
        close(out, expected, "fp16")
    assert len(kernel.kernel_cache) == 2
    assert kernel.hits == 1
    assert kernel.fn.best_config.kwargs["BLOCK_M"] in (1, 4)


def test_a_compiled_kernel_is_launched_again(library):
    kernel = library("kernels").scale_kernel
    x = normal(1, 100)
    out = np.zeros_like(x)
    compiled = kernel[(4,)](x, out, 100, factor=3.0, BLOCK=32)
    np.testing.assert_array_equal(out, x * 3)
    other = np.zeros_like(x)
    compiled[(4, 1, 1)](x, other, 100, 3.0, 32)
    np.testing.assert_array_equal(other, x * 3)
    other[:] = 0
    compiled[(4, 1, 1)](x, other, 100)
    np.testing.assert_array_equal(other, x * 3)
    assert compiled.metadata.num_warps == 4
    assert "scale_kernel" in compiled.name
    warm = kernel.warmup(x, out, 100, factor=2.0, BLOCK=16, grid=(1,))
    assert warm.asm["ttir"]


@pytest.mark.parametrize("ctas", [None, 2])
@pytest.mark.parametrize("shape", [(), (77,), (5, 33), (3, 1, 7, 4)])
def test_kernels_written_at_run_time(library, tmp_path, shape, ctas):
    functions = library("functions")
    gelu_and_mul = library("pointwise").pointwise_dynamic(tmp_path)(functions.gelu_and_mul)
    x, y = np.asarray(normal(1, *shape)), np.asarray(normal(2, *shape[::-1], dtype="bf16")).T
    out = gelu_and_mul(np.full(shape, np.nan, np.float32), x, y, ctas=ctas)
    erf = np.vectorize(math.erf)(x.astype(np.float64) / math.sqrt(2))
    close(out, 0.5 * x * (1 + erf) * y.astype(np.float64))
    assert (tmp_path / f"pointwise_gelu_and_mul_rank_{len(shape)}.py").exists()


def test_functions_of_three_arrays(library, tmp_path):
    where = library("pointwise").pointwise_dynamic(tmp_path)(library("functions").where_positive)
    c, x, y = (np.arange(-6, 6, dtype=t).reshape(3, 4) for t in (np.int8, np.float32, np.float32))
    y = np.broadcast_to(y[:, :1], (3, 4))
    out = where(np.zeros((3, 4), np.float32), c, x, y)
    np.testing.assert_array_equal(out, np.where(c > 0, x, y))
    flipped = where(np.zeros((3, 4), np.float32)[::-1], c[::-1, ::-1], x, y)
    np.testing.assert_array_equal(flipped, np.where(c[::-1, ::-1] > 0, x, y))
    assert len(where.overloads) == 1


def test_versions(library):
    entry = library("libentry")
    assert entry.TRITON_VERSION == (3, 7)
    assert entry.HAS_LIBDEVICE
    assert entry.make_tensor_descriptor is triton.language.make_tensor_descriptor
