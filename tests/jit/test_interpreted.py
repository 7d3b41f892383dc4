"""The same launches in interpreter mode give the same results and the same refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import blocklang as bl
from tests.jit import kernels


def interpreted(kernel: bl.JITFunction) -> bl.JITFunction:
    return bl.jit(interpret=True)(kernel.fn)


def test_vector_add() -> None:
    n = 100
    x, y, out = np.arange(n, dtype=np.float32), np.full(n, 2, np.float32), np.zeros(n, np.float32)
    grid = lambda meta: (bl.cdiv(n, meta["BLOCK"]),)  # noqa: E731
    assert interpreted(kernels.add)[grid](x, y, out, n, BLOCK=16) is None
    assert (out == x + y).all()


@pytest.mark.parametrize(
    "value", [1, 5, -(2**31), 2**40, True, 0.1, np.float64(0.1), np.int8(-3), np.float16(2.5)]
)
@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.bool_])
def test_scalars_as_compiled(value: Any, dtype: Any) -> None:
    one, other = np.zeros(1, dtype), np.zeros(1, dtype)
    kernels.store_scalar[1](one, value)
    interpreted(kernels.store_scalar)[1](other, value)
    assert one == other


@pytest.mark.parametrize("interpret", [False, True])
def test_functions_of_python(interpret: bool) -> None:
    """What they say of compile-time values: the values are meant, not the `constexpr` around them."""
    kernel = interpreted(kernels.python_builtins) if interpret else kernels.python_builtins
    out = np.full(8, -1)
    kernel[1](out, 3, FIVE=5)
    assert out.tolist() == [10 + 3 + 7 + 0 + 3, 4, 1, 1, 1, 2, 1, 0]


def test_any_strides() -> None:
    whole = np.arange(60, dtype=np.int32).reshape(6, 10)
    x = whole[::-2, ::3]
    out = np.zeros(x.shape, np.int32)
    interpreted(kernels.copy_rows)[(x.shape[0],)](x, out, *x.shape, *bl.strides(x), *bl.strides(out), BLOCK=8)
    assert (out == x).all()


def test_refusals() -> None:
    kernel = interpreted(kernels.read_only)
    x = np.zeros(3)
    with pytest.raises(bl.LaunchError, match="misses argument"):
        kernel[1](x)
    with pytest.raises(bl.LaunchError, match="complex"):
        kernel[1](x.astype(complex), x)
    with pytest.raises(bl.LaunchError, match="negative"):
        kernel[-1](x, x)


def test_the_environment_switches_it_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLOCKLANG_INTERPRET", "1")
    assert bl.jit(kernels.add.fn).interpret
    monkeypatch.setenv("BLOCKLANG_INTERPRET", "0")
    assert not bl.jit(kernels.add.fn).interpret
