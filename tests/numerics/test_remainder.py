"""The remainder of floats is exact: the bits of C's `fmod`, for every pair of exponents."""

from __future__ import annotations

import numpy as np
import pytest

from tests.numerics import remainder_kernels as kernels
from tests.numerics.launching import Array, Out, assert_same_bits, launch_one
from tests.numerics.values import NUMPY_DTYPES

FLOATS = {"fp32": np.uint32, "fp64": np.uint64}


def pairs(name: str) -> tuple[Array, Array]:
    """Special values, any bits, quotients of every size, neighbours of multiples, subnormals."""
    rng, dtype, word = np.random.default_rng(5), np.dtype(NUMPY_DTYPES[name]), FLOATS[name]
    limits = np.finfo(dtype)
    tiny = limits.smallest_subnormal
    special = np.array(
        [0.0, 1, 3, 0.1, 5.5, np.inf, np.nan, limits.max, limits.tiny, tiny, 3 * tiny, limits.tiny - tiny]
    ).astype(dtype)
    grid = np.meshgrid(np.concatenate([special, -special]), np.concatenate([special, -special]))
    bits = rng.integers(0, np.iinfo(word).max, (2, 2000), word, endpoint=True).view(dtype)
    below = rng.integers(0, 1 << (limits.nmant + 2), (2, 500)).astype(word).view(dtype)
    shift = np.arange(2000) % 110
    near = np.ldexp(rng.uniform(1, 2, (2, 2000)), [0 * shift, -shift]).astype(dtype)
    counts = rng.integers(1, 1 << 20, 2000)
    multiple = (counts * near[1]).astype(dtype)
    both = [
        np.stack([g.ravel() for g in grid]),
        bits,
        below,
        np.stack([bits[0][:500], below[1]]),
        near,
        *(np.stack([np.nextafter(multiple, dtype.type(to)), near[1]]) for to in (-np.inf, np.inf)),
        np.stack([multiple, near[1]]),
    ]
    x, y = np.concatenate(both, axis=1)
    return np.ascontiguousarray(x), np.ascontiguousarray(y)


def expected(x: Array, y: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(np.fmod(x, y))


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("block", [1000, 37])
def test_every_size_of_quotient(name: str, block: int) -> None:
    x, y = pairs(name)
    result = launch_one(
        kernels.remainder, -(-len(x) // block), x, y, Out((len(x),), name), len(x), BLOCK=block
    )
    assert_same_bits(result, expected(x, y), name)


@pytest.mark.parametrize("name", FLOATS)
def test_scalars(name: str) -> None:
    x, y = (side[::40].copy() for side in pairs(name))
    result = launch_one(kernels.scalar_remainder, 1, x, y, Out((len(x),), name), len(x))
    assert_same_bits(result, expected(x, y), name)


@pytest.mark.parametrize("name", ["fp16", "bf16"])
def test_small_floats(name: str) -> None:
    dtype = NUMPY_DTYPES[name]
    bits = np.random.default_rng(6).integers(0, 1 << 16, (2, 5000)).astype(np.uint16).view(dtype)
    x, y = np.ascontiguousarray(bits[0]), np.ascontiguousarray(bits[1])
    right = expected(x.astype(np.float32), y.astype(np.float32)).astype(dtype)
    result = launch_one(kernels.remainder, 50, x, y, Out((5000,), name), 5000, BLOCK=100)
    assert_same_bits(result, right, name)
