"""`.to` and `cast`: every pair of types by value, rounding toward zero, saturation, and reinterpretation."""

from __future__ import annotations

import numpy as np
import pytest

import blocklang as bl
import blocklang.language as tl
from tests.numerics.expected import FORMATS, Array, converted
from tests.numerics.kernels import bitcast_to, cast_to_all, cast_toward_zero, unary
from tests.numerics.launching import Out, assert_same_bits, launch_both, launch_one
from tests.numerics.values import (
    ALL,
    FLOATS,
    INTEGERS,
    NUMPY_DTYPES,
    TYPES,
    bits_of,
    limits,
    numbers,
    random_numbers,
)


def to_convert(name: str) -> Array:
    """Special values, halves, ties, and the neighbours of every integer limit, where saturation starts."""
    if name not in FLOATS:
        return np.concatenate([numbers(name), integer_ties(name), random_numbers(name, (64,))])
    ends = [float(v) for t in INTEGERS for v in limits(t)]
    around = [np.nextafter(v, d) for v in ends for d in (-np.inf, np.inf)] + ends
    halves = [k / 2 for k in range(-9, 10)] + [v + 0.5 for v in ends]
    with np.errstate(all="ignore"):
        exact = np.array([*around, *halves, *ties(), *(-v for v in ties())]).astype(NUMPY_DTYPES[name])
    return np.concatenate([numbers(name), exact, random_numbers(name, (64,))])


def integer_ties(name: str) -> Array:
    """Integers half-way between two floats, and one beside: rounding by way of a wider float shows."""
    low, high = limits(name)
    found = []
    for fraction_bits, _, _ in FORMATS.values():
        for top in (15, 31, 40, 54, 62, 63):
            half = 1 << max(top - fraction_bits - 1, 0)
            found += [(1 << top) + steps * half + d for steps in (1, 3, 5) for d in (-1, 0, 1)]
    return np.array([v for n in found for v in (n, -n) if low <= v <= high], NUMPY_DTYPES[name])


def ties() -> list[float]:
    """Numbers half-way between neighbours of each narrow format, odd and even ones, and just beside."""
    found: list[float] = []
    for format in ("fp16", "bf16", "fp32"):
        fraction_bits, smallest, largest = FORMATS[format]
        for exponent in (0, smallest, smallest - 3):
            unit = 2.0 ** (max(exponent, smallest) - fraction_bits)
            for steps in (3.5, 4.5, 0.5):
                middle = (2.0**exponent if exponent >= smallest else 0.0) + steps * unit
                found += [middle, middle * (1 + 2.0**-30), middle * (1 - 2.0**-30)]
        found += [largest * (1 + 2.0 ** -(fraction_bits + 2)), largest * (1 + 2.0**-fraction_bits)]
    return found


@pytest.mark.parametrize("source", ALL)
def test_every_pair_of_types(source: str) -> None:
    x = to_convert(source)
    results = launch_both(
        cast_to_all, bl.cdiv(len(x), 100) + 1, x, *(Out(x.shape, t) for t in ALL), len(x),
        BLOCK=100, TYPES=tuple(TYPES[t] for t in ALL),
    )  # fmt: skip
    for target, result in zip(ALL, results, strict=True):
        assert_same_bits(result, converted(x, source, target), f"{source} to {target}")


@pytest.mark.parametrize("source", ALL)
def test_a_store_converts_like_a_cast(source: str) -> None:
    x = to_convert(source)
    results = launch_both(
        cast_to_all, bl.cdiv(len(x), 100), x, *(Out(x.shape, t) for t in ALL), len(x),
        BLOCK=100, TYPES=(TYPES[source],) * len(ALL),
    )  # fmt: skip
    for target, result in zip(ALL, results, strict=True):
        assert_same_bits(result, converted(x, source, target), f"{source} stored as {target}")


NARROWING = [("fp64", "fp32"), ("fp64", "fp16"), ("fp64", "bf16"), ("fp32", "fp16"), ("fp32", "bf16")]


@pytest.mark.parametrize(("source", "target"), NARROWING)
def test_rounding_toward_zero(source: str, target: str) -> None:
    x = to_convert(source)
    truncated, default = launch_one(
        cast_toward_zero, bl.cdiv(len(x), 33), x, Out((2, len(x)), target), len(x),
        BLOCK=33, TYPE=TYPES[target],
    )  # fmt: skip
    assert_same_bits(truncated, converted(x, source, target, toward_zero=True), "rtz")
    assert_same_bits(default, converted(x, source, target), "rtne")


@pytest.mark.parametrize(("source", "target"), [("fp16", "bf16"), ("fp32", "int32"), ("int32", "fp16")])
def test_toward_zero_is_for_narrower_floats(source: str, target: str) -> None:
    x = numbers(source)[:1]
    with pytest.raises(bl.CompilationError, match="fp_downcast_rounding"):
        launch_one(cast_toward_zero, 1, x, Out((2, 1), target), 1, BLOCK=1, TYPE=TYPES[target])


EQUAL_WIDTHS = [(a, b) for a in ALL for b in ALL if bits_of(a) == bits_of(b)]


@pytest.mark.parametrize(("source", "target"), EQUAL_WIDTHS)
def test_reinterpretation(source: str, target: str) -> None:
    """The bits stay; those of a NaN are promised to nobody once it is a float."""
    x = np.concatenate([numbers(source), random_numbers(source, (40,))])
    if source in FLOATS and target not in FLOATS:
        x = x[~np.isnan(x)]
    result = launch_one(
        bitcast_to, bl.cdiv(len(x), 33), x, Out(x.shape, target), len(x), BLOCK=33, TYPE=TYPES[target]
    )
    assert_same_bits(result, x.view(NUMPY_DTYPES[target]), f"bits of {source} as {target}")


@pytest.mark.parametrize(("source", "target"), [("int8", "int1"), ("fp16", "fp32"), ("int64", "fp32")])
def test_reinterpretation_keeps_the_width(source: str, target: str) -> None:
    x = numbers(source)[:1]
    with pytest.raises(bl.CompilationError, match="cannot bitcast"):
        launch_one(bitcast_to, 1, x, Out((1,), target), 1, BLOCK=1, TYPE=TYPES[target])


def test_a_loaded_bool_is_true_whatever_its_byte() -> None:
    x = np.array([0, 1, 2, 128, 255, 0], np.uint8).view(np.bool_)
    (truth,) = launch_one(unary, 2, x, Out((1, 6), "int1"), 6, BLOCK=5, OPS=(tl.abs,), RESULT=tl.int1)
    assert truth.view(np.uint8).tolist() == [0, 1, 1, 1, 1, 0]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fp16", "bf16"])
def test_every_16_bit_float(name: str) -> None:
    x = np.arange(1 << 16, dtype=np.uint16).view(NUMPY_DTYPES[name])
    results = launch_both(
        cast_to_all, bl.cdiv(len(x), 1000), x, *(Out(x.shape, t) for t in ALL), len(x),
        BLOCK=1000, TYPES=tuple(TYPES[t] for t in ALL),
    )  # fmt: skip
    for target, result in zip(ALL, results, strict=True):
        assert_same_bits(result, converted(x, name, target), f"{name} to {target}")
