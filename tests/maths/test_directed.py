"""Arithmetic rounded in a direction, against exact fractions: every result is the right neighbour."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from blocklang.interpreter.numpy_steps import NumpySteps
from blocklang.maths.directed import DIRECTIONS, OPERATIONS
from blocklang.maths.registry import RECIPES
from tests.maths.reference import DTYPES, FORMATS, Array, random_bits

COUNT = 250


def operands(name: str, dtype: str) -> list[Array]:
    """All bit patterns, moderate and short numbers, the ends of the range, and sums that nearly cancel."""
    generator = np.random.default_rng(5)
    kind, form, arity = DTYPES[dtype], FORMATS[dtype], OPERATIONS[name][0]
    info = np.finfo(kind)
    positive: list[Any] = [0.0, 1.0, 1.5, info.max, info.max / 2, info.tiny, info.tiny * 1.5]
    positive += [info.smallest_subnormal, 3 * info.smallest_subnormal]
    special = np.array([*positive, *(-v for v in positive)], kind)
    chosen = []
    with np.errstate(all="ignore"):
        for _ in range(arity):
            middle = -form.bias // 2 + generator.integers(-40, 40, COUNT)
            parts = (
                random_bits(dtype, COUNT, generator),
                generator.standard_normal(COUNT) * np.exp2(generator.integers(-3, 4, COUNT)),
                generator.integers(-20, 20, COUNT) * np.exp2(generator.integers(-5, 5, COUNT)),
                generator.choice(special, COUNT),
                generator.standard_normal(COUNT) * np.exp2(middle),
            )
            chosen.append(np.concatenate([part.astype(kind) for part in parts]))
        if name == "sqrt":
            return [np.abs(chosen[0])]
        if name == "fma":
            a, b, c = chosen
            against = (-a.astype(np.float64) * b.astype(np.float64)).astype(kind)
            addends = (c, against, np.nextafter(against, kind(1)), generator.permutation(against))
            chosen = [np.tile(a, 4), np.tile(b, 4), np.concatenate(addends)]
        if name == "add":
            a, b = chosen
            chosen = [np.tile(a, 2), np.concatenate([b, -a])]
    return chosen


def exact_value(name: str, numbers: list[float]) -> Fraction | None:
    """None where the result has nothing to round."""
    if not all(map(math.isfinite, numbers)):
        return None
    a, *rest = map(Fraction, numbers)
    if name == "add":
        return a + rest[0]
    if name == "mul":
        return a * rest[0]
    if name == "fma":
        return a * rest[0] + rest[1]
    return a / rest[0] if rest[0] else None


def rounded(exact: Fraction, direction: str, kind: type[np.floating]) -> float:
    """The neighbour of a number that is not 0."""
    if direction == "rz":
        direction = "rd" if exact > 0 else "ru"
    try:
        with np.errstate(over="ignore"):
            value = kind(float(exact))
    except OverflowError:
        value = kind(math.inf if exact > 0 else -math.inf)
    down = direction == "rd"
    with np.errstate(all="ignore"):
        while (
            (value > 0 if down else value < 0)
            if np.isinf(value)
            else (Fraction(float(value)) > exact if down else Fraction(float(value)) < exact)
        ):
            value = np.nextafter(value, kind(-math.inf if down else math.inf))
    return math.copysign(float(value), 1 if exact > 0 else -1)


def zero_of_sum(name: str, numbers: list[float], direction: str) -> float:
    signs = [math.copysign(1.0, v) for v in numbers]
    if name in ("mul", "div"):
        return math.copysign(0.0, math.prod(signs))
    terms = signs if name == "add" else [signs[0] * signs[1], signs[2]]
    negative = any(t < 0 for t in terms) if direction == "rd" else all(t < 0 for t in terms)
    return -0.0 if negative else 0.0


@pytest.mark.parametrize(
    ("name", "direction", "dtype"),
    list(itertools.product([n for n in OPERATIONS if n != "sqrt"], DIRECTIONS, ["f32", "f64"])),
)
def test_against_fractions(name: str, direction: str, dtype: str) -> None:
    arguments = operands(name, dtype)
    results = RECIPES[f"{name}_{direction}", dtype].apply(NumpySteps(), *arguments).tolist()
    for *numbers, got in zip(*(a.tolist() for a in arguments), results, strict=True):
        exact = exact_value(name, numbers)
        if exact is None:
            continue
        want = rounded(exact, direction, DTYPES[dtype]) if exact else zero_of_sum(name, numbers, direction)
        assert (got, math.copysign(1, got)) == (want, math.copysign(1, want)), numbers


@pytest.mark.parametrize(("direction", "dtype"), list(itertools.product(DIRECTIONS, ["f32", "f64"])))
def test_roots(direction: str, dtype: str) -> None:
    (argument,) = operands("sqrt", dtype)
    argument = argument[np.isfinite(argument)]
    kind = DTYPES[dtype]
    results = RECIPES[f"sqrt_{direction}", dtype].apply(NumpySteps(), argument)
    for x, got in zip(argument.tolist(), results, strict=True):
        exact = Fraction(x)
        other = np.nextafter(got, kind(-math.inf if direction == "ru" else math.inf))
        if direction == "ru":
            assert Fraction(float(got)) ** 2 >= exact, x
            assert got == 0 or Fraction(float(other)) ** 2 < exact, x
        else:
            assert Fraction(float(got)) ** 2 <= exact, x
            assert Fraction(float(other)) ** 2 > exact, x
