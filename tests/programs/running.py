"""Run a program's kernels in either mode, and compare with what NumPy says in float64.

Not a place for kernels: each family of programs has a module of its own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

import blocklang.triton as triton

Array = npt.NDArray[Any]

DTYPES: dict[str, Any] = {"fp32": np.float32, "fp16": np.float16, "bf16": ml_dtypes.bfloat16}
# Errors in units of the largest magnitude of the reference: some roundings of the type's last bit.
ALLOWED = {"fp32": 4e-6, "fp16": 2e-3, "bf16": 1.6e-2}

Mode = Callable[[Any], Any]
"""What a driver does to each kernel before it launches it: nothing, or `interpreted`."""


def compiled(kernel: Any) -> Any:
    """The kernel as it is."""
    return kernel


@functools.cache
def interpreted(kernel: Any) -> Any:
    """The same kernel in interpreter mode."""
    return triton.JITFunction(kernel.fn, interpret=True)


def bits(array: Array) -> Array:
    """The bits of the elements."""
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")


def in_both_modes(driver: Callable[..., tuple[Array, ...]], *args: Any, **keywords: Any) -> tuple[Array, ...]:
    """What `driver(mode, ...)` returns, the same to the bit compiled and interpreted."""
    native = driver(compiled, *args, **keywords)
    for position, (one, other) in enumerate(zip(native, driver(interpreted, *args, **keywords), strict=True)):
        assert one.dtype == other.dtype
        wrong = np.argwhere(bits(one) != bits(other))
        assert not len(wrong), (
            f"result {position}: {len(wrong)} of {one.size} lanes differ between the modes, first at "
            f"{wrong[0]}: {one[tuple(wrong[0])]!r} compiled, {other[tuple(wrong[0])]!r} interpreted"
        )
    return native


def assert_close(actual: Array, expected: Array, tolerance: float, what: str = "") -> None:
    """Every element within `tolerance` times its expected value, or the root mean square of all if larger."""
    assert actual.shape == expected.shape, (what, actual.shape, expected.shape)
    got, wanted = actual.astype(np.float64), expected.astype(np.float64)
    scale = np.maximum(np.abs(wanted), np.sqrt(np.mean(wanted**2)) if wanted.size else 0.0)
    error = np.abs(got - wanted)
    bad = ~(error <= tolerance * scale + 1e-30)
    assert not bad.any(), (
        f"{what}: {bad.sum()} of {bad.size} wrong, first at {np.argwhere(bad)[0]}: "
        f"{got[tuple(np.argwhere(bad)[0])]} instead of {wanted[tuple(np.argwhere(bad)[0])]}"
    )


def close(
    found: Array, expected: Any, dtype: str = "fp32", factor: float = 1.0, scale: float | None = None
) -> None:
    """`found` is `expected` but for roundings of its dtype, relative to the largest magnitude or `scale`."""
    expected = np.asarray(expected, np.float64)
    assert found.shape == expected.shape
    scale = max(1e-30, np.abs(expected).max(initial=0.0)) if scale is None else scale
    error = np.abs(found.astype(np.float64) - expected).max(initial=0.0) / scale
    assert error <= ALLOWED[dtype] * factor, f"error {error:.2e}"


def normal(seed: int, *shape: int, dtype: str = "fp32") -> Array:
    """Standard normal numbers, fixed by the seed."""
    numbers: Array = np.random.default_rng(seed).standard_normal(shape).astype(DTYPES[dtype])
    return numbers
