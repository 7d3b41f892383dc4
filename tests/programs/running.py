"""Run a program's kernels in either mode, and compare with what NumPy says in float64.

Not a place for kernels: each family of programs has a module of its own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

import blocklang.triton as triton

Array = npt.NDArray[Any]

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
    """The bits of the elements, all NaN the same."""
    found = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}").copy()
    if array.dtype.kind not in "iub":
        found[np.isnan(array.astype(np.float64))] = ~found.dtype.type(0)
    return found


def in_both_modes(driver: Callable[..., tuple[Array, ...]], *args: Any, **keywords: Any) -> tuple[Array, ...]:
    """What `driver(mode, ...)` returns, the same to the bit compiled and interpreted."""
    native = driver(compiled, *args, **keywords)
    for position, (one, other) in enumerate(zip(native, driver(interpreted, *args, **keywords), strict=True)):
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
