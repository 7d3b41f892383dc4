"""What the programs of this folder share: a launch in both modes, and a comparison with float64."""

# mypy: ignore-errors
from __future__ import annotations

import ml_dtypes
import numpy as np

import blocklang.triton as triton

DTYPES = {"fp32": np.float32, "fp16": np.float16, "bf16": ml_dtypes.bfloat16}
# Errors in units of the largest magnitude of the reference: some roundings of the type's last bit.
ALLOWED = {"fp32": 4e-6, "fp16": 2e-3, "bf16": 1.6e-2}


def compiled(kernel):
    """The kernel as it is."""
    return kernel


def interpreted(kernel):
    """The kernel's Python lines themselves, run with NumPy."""
    return triton.JITFunction(kernel.fn, interpret=True)


def both_modes(launch):
    """`launch(mode)` compiled and interpreted; its arrays, which must have the same bits."""
    first, second = launch(compiled), launch(interpreted)
    assert len(first) == len(second)
    for one, other in zip(first, second, strict=True):
        assert one.dtype == other.dtype
        assert one.tobytes() == other.tobytes()
    return first


def close(found, expected, dtype="fp32", factor=1.0, scale=None):
    """`found` is `expected` but for roundings of its dtype, relative to the largest magnitude or `scale`."""
    expected = np.asarray(expected, np.float64)
    assert found.shape == expected.shape
    scale = max(1e-30, np.abs(expected).max(initial=0.0)) if scale is None else scale
    error = np.abs(found.astype(np.float64) - expected).max(initial=0.0) / scale
    assert error <= ALLOWED[dtype] * factor, f"error {error:.2e}"


def normal(seed, *shape, dtype="fp32"):
    return np.random.default_rng(seed).standard_normal(shape).astype(DTYPES[dtype])
