"""The element types of the language, and the numbers that tests try: special values and random ones."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

import blocklang.language as tl

Array = npt.NDArray[Any]

# By the language's short names.
NUMPY_DTYPES: dict[str, np.dtype[Any]] = {
    "int1": np.dtype(np.bool_),
    **{f"int{n}": np.dtype(f"i{n // 8}") for n in (8, 16, 32, 64)},
    **{f"uint{n}": np.dtype(f"u{n // 8}") for n in (8, 16, 32, 64)},
    "fp16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "fp32": np.dtype(np.float32),
    "fp64": np.dtype(np.float64),
}
ALL = tuple(NUMPY_DTYPES)
# Tested in test_float8 and test_dot. fp8e4b15 has no NumPy dtype: it is read as uint8.
FLOAT8 = ("fp8e5", "fp8e4nv", "fp8e4b8", "fp8e5b16")
NUMPY_DTYPES |= {
    "fp8e5": np.dtype(ml_dtypes.float8_e5m2),
    "fp8e4nv": np.dtype(ml_dtypes.float8_e4m3fn),
    "fp8e4b8": np.dtype(ml_dtypes.float8_e4m3fnuz),
    "fp8e5b16": np.dtype(ml_dtypes.float8_e5m2fnuz),
}
FLOATS = ("fp16", "bf16", "fp32", "fp64")
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("int1", "uint8", "uint16", "uint32", "uint64")  # bool counts as unsigned
INTEGERS = SIGNED + UNSIGNED

TYPES: dict[str, Any] = {
    **{name: getattr(tl, name.replace("fp", "float")) for name in FLOAT8},
    "fp16": tl.float16,
    "bf16": tl.bfloat16,
    "fp32": tl.float32,
    "fp64": tl.float64,
    **{name: getattr(tl, name) for name in INTEGERS},
}

EXTENTS = (1, 3, 7, 33, 100, 257, 1000)
SHAPES_2D = ((5, 37), (16, 64), (3, 1), (1, 9))
SHAPES_3D = ((2, 3, 5), (4, 1, 33))


def bits_of(name: str) -> int:
    """The width of a type in bits: 1 for bool."""
    return 1 if name == "int1" else NUMPY_DTYPES[name].itemsize * 8


def limits(name: str) -> tuple[int, int]:
    """The smallest and the largest integer of a type."""
    bits = bits_of(name)
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if name in SIGNED else (0, (1 << bits) - 1)


def integers(name: str) -> Array:
    """Small numbers, both ends of the range, and some between."""
    low, high = limits(name)
    wanted = {low, low + 1, high - 1, high, high // 2, high // 2 + 1, high // 3, low // 3}
    wanted |= {-7, -3, -2, -1, 0, 1, 2, 3, 7, 8, 13, 31, 32, 33, 63, 64, 65, 100}
    return np.array(sorted(v for v in wanted if low <= v <= high), NUMPY_DTYPES[name])


# Largest, smallest normal, smallest subnormal, and a subnormal between.
_EDGES = {
    "fp16": (65504.0, 2.0**-14, 2.0**-24, 2.0**-20 + 2.0**-24),
    "bf16": ((2 - 2.0**-7) * 2.0**127, 2.0**-126, 2.0**-133, 2.0**-130 + 2.0**-133),
    "fp32": ((2 - 2.0**-23) * 2.0**127, 2.0**-126, 2.0**-149, 2.0**-140 + 2.0**-149),
    "fp64": (np.finfo(np.float64).max, 2.0**-1022, 5e-324, 2.0**-1040 + 5e-324),
}
_PLAIN = (0.0, 1.0, 0.5, 2.5, 3.0, 7.25, 1e-3, 100.0, 1 / 3)


def floats(name: str) -> Array:
    """Signed zeros, NaN, infinities, both ends of the range, subnormal and random numbers."""
    random = np.random.default_rng(1).standard_normal(5) * 4.0
    positive = (*_PLAIN, *_EDGES[name], np.inf)
    numbers = [*positive, *(-v for v in positive), np.nan, *random]
    with np.errstate(all="ignore"):
        return np.array(numbers).astype(NUMPY_DTYPES[name])


def numbers(name: str) -> Array:
    """The numbers to try of a type."""
    return floats(name) if name in FLOATS else integers(name)


def pairs(left: Array, right: Array) -> tuple[Array, Array]:
    """Every element of one with every element of the other, flat."""
    return np.repeat(left, len(right)), np.tile(right, len(left))


def random_numbers(name: str, shape: tuple[int, ...], seed: int = 0) -> Array:
    """Moderate random numbers: floats about 1, integers over their whole range."""
    generator = np.random.default_rng(seed)
    dtype = NUMPY_DTYPES[name]
    if name in FLOATS + FLOAT8:
        return generator.standard_normal(shape).astype(dtype)
    if name == "int1":
        return generator.integers(0, 2, shape).astype(np.bool_)
    return generator.integers(0, 256, (*shape, dtype.itemsize), np.uint8).view(dtype)[..., 0]
