"""The numbers that cases compute with: fixed by the case's name, the same for both sides."""

from __future__ import annotations

import zlib

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tests.parity.cases import FLOATS, FP8, Input


def numpy_dtype(name: str) -> np.dtype[np.generic]:
    """The dtype of a name, ml_dtypes' own included."""
    return np.dtype(getattr(ml_dtypes, name) if name in (*FP8, "bfloat16") else name)


def make(case: str, position: int, one: Input) -> NDArray[np.generic]:
    """The array of one input of a case."""
    rng = np.random.default_rng([zlib.crc32(case.encode()), position])
    dtype = numpy_dtype(one.dtype)
    if one.values == "any":
        return _any(rng, one, dtype)
    if one.values == "nonzero":
        numbers = _any(rng, one, dtype)
        numbers[numbers == 0] = 1
        return numbers
    if one.values == "distinct":
        return _distinct(rng, one, dtype)
    names = {
        "np": np,
        "rng": rng,
        "unit": rng.uniform(-1, 1, one.shape),
        "positive": np.exp(rng.uniform(-20, 20, one.shape)),
        "small": rng.integers(-8 if np.dtype(dtype).kind != "u" else 0, 9, one.shape),
    }
    with np.errstate(all="ignore"):
        return np.asarray(eval(one.values, names)).astype(dtype).reshape(one.shape)


def _any(rng: np.random.Generator, one: Input, dtype: np.dtype[np.generic]) -> NDArray[np.generic]:
    """Random bits for integers; for floats numbers of all sizes, zeros of both signs, infinities and NaN."""
    count = int(np.prod(one.shape))
    if one.dtype == "bool":
        return rng.integers(0, 2, one.shape).astype(bool)
    if one.dtype not in FLOATS + FP8:
        numbers = np.frombuffer(rng.bytes(count * dtype.itemsize), dtype).copy()
        numbers[: count // 4] = rng.integers(0, 5, count // 4).astype(dtype)
        return rng.permutation(numbers).reshape(one.shape)
    numbers = rng.normal(size=count) * 2.0 ** rng.integers(-6, 7, count)
    numbers[:6] = [0.0, -0.0, 1.0, -1.0, 2.0, 0.5]
    if one.dtype in FLOATS:
        numbers[6:9] = [np.inf, -np.inf, np.nan]
    with np.errstate(all="ignore"):
        return numbers.astype(dtype).reshape(one.shape)


def _distinct(rng: np.random.Generator, one: Input, dtype: np.dtype[np.generic]) -> NDArray[np.generic]:
    """No two equal, so that an index of an extremum is one."""
    return rng.permutation(np.arange(int(np.prod(one.shape))) % 120).astype(dtype).reshape(one.shape)
