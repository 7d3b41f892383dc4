"""Division of lanes by one number: no division in the loop where that is slow, and the exact quotient."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from blocklang import jit
from blocklang import language as tl
from tests.codegen.test_assembly import compile_at, innermost_loops

Array = npt.NDArray[Any]

LANES = 512


@jit
def quotients(x_ptr, d_ptr, out_ptr, N: tl.constexpr):  # type: ignore[no-untyped-def]
    row = tl.program_id(0)
    lanes = row * N + tl.arange(0, N)
    tl.store(out_ptr + lanes, tl.load(x_ptr + lanes) / tl.load(d_ptr + row))


def hard_numbers(generator: np.random.Generator, dtype: type, count: int, powers: tuple[int, int]) -> Array:
    """Random numbers; half of them with a mantissa near its ends, where quotients round least clearly."""
    bits, fraction, bias = (32, 23, 127) if dtype is np.float32 else (64, 52, 1023)
    near = generator.integers(-8, 8, count) % (1 << fraction)
    mantissa = np.where(generator.integers(0, 2, count), near, generator.integers(0, 1 << fraction, count))
    exponent = generator.integers(*powers, count) + bias
    sign = generator.integers(0, 2, count).astype(np.uint64) << np.uint64(bits - 1)
    whole = sign | (exponent.astype(np.uint64) << np.uint64(fraction)) | mantissa.astype(np.uint64)
    return whole.astype(f"u{bits // 8}").view(dtype)


@pytest.mark.parametrize("powers", [(-1, 1), (-30, 31), (-66, 67), (-120, 120)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_quotients_are_exact(dtype: type, powers: tuple[int, int]) -> None:
    generator = np.random.default_rng(5)
    rows = 600
    x = hard_numbers(generator, dtype, rows * LANES, powers).reshape(rows, LANES)
    d = hard_numbers(generator, dtype, rows, powers)
    x[::7, ::31] = generator.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40], x[::7, ::31].shape)
    d[:8] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 3.0, -1.0]
    out = np.zeros_like(x)
    quotients[(rows,)](x, d, out, N=LANES)
    with np.errstate(all="ignore"):
        exact = x / d[:, None]
    np.testing.assert_array_equal(np.isnan(out), np.isnan(exact))
    word = f"u{x.itemsize}"
    known = ~np.isnan(exact)
    np.testing.assert_array_equal(out[known].view(word), exact[known].view(word))


def test_wide_registers_multiply() -> None:
    """Where a step has only usual numbers, no division runs; other levels divide."""
    wide = innermost_loops(compile_at(quotients, "x86-64-v4", N=LANES).assembly)
    assert not any(loop.count("vdivps") for loop in wide)
    assert any(
        loop.count("vdivps") for loop in innermost_loops(compile_at(quotients, "x86-64-v3", N=LANES).assembly)
    )
