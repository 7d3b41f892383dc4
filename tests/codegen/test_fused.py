"""Fused multiply-adds and roundings of CPUs without an instruction for them: the same bits as with one.

The interpreter is the definition; where the host has FMA, its instruction is a second one.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from blocklang.compiler import CompileOptions, compile_kernel
from blocklang.interpreter.exact import fma_f32, fma_f64
from blocklang.ir import parse_kernel
from blocklang.runtime.launch import LoadedKernel
from blocklang.target import runnable_levels, target_for

Array = npt.NDArray[Any]
DTYPES = {"f32": np.float32, "f64": np.float64}
FRACTIONS = {"f32": 23, "f64": 52}
DEFINITIONS: dict[str, Callable[..., Array]] = {"f32": fma_f32, "f64": fma_f64}
KINDS = ("any bits", "ends of the range", "near", "small", "large", "cancelling")
COUNT = 1 << 14
LEVELS = [level for level in ("x86-64", "x86-64-v2") if level in runnable_levels()]

pytestmark = pytest.mark.skipif(not LEVELS, reason="this machine runs no code for x86-64")


def native(operation: str, type_: str, count: int, level: str, lanes: int = 1024) -> Callable[..., Array]:
    """A lane-wise operation compiled for a level; its arrays are whole blocks of `lanes`."""
    numbers, pointers = f"block<{lanes}x{type_}>", f"block<{lanes}xptr<{type_}>>"
    lines = [
        f'kernel @k({", ".join(f"%p{n}: ptr<{type_}>" for n in range(count + 1))}) alias="disjoint" {{',
        "  %g = program_id axis=0 : i32",
        f"  %w = constant value={lanes} : i32",
        "  %s = mul %g, %w : i32",
        f"  %r = arange start=0, end={lanes} : block<{lanes}xi32>",
        f"  %i = add %r, %s : block<{lanes}xi32>",
        *(f"  %a{n} = offset %p{n}, %i : {pointers}" for n in range(count + 1)),
        *(f"  %x{n} = load %a{n} : {numbers}" for n in range(count)),
        f"  %y = {operation} {', '.join(f'%x{n}' for n in range(count))} : {numbers}",
        f"  store %a{count}, %y",
        "  return",
        "}",
    ]
    options = CompileOptions(target=target_for(level))
    compiled = compile_kernel(parse_kernel("\n".join(lines)), options=options)
    loaded = LoadedKernel(compiled.abi, compiled.object_code)

    def run(*arguments: Array) -> Array:
        result = np.empty_like(arguments[0])
        addresses = [a.ctypes.data for a in (*arguments, result)]
        grid = (arguments[0].size // lanes, 1, 1)
        loaded.launch(struct.pack(f"{len(addresses)}q", *addresses), grid, 1)
        return result

    return run


def bits(values: Array) -> Array:
    """The bit patterns, all NaN the same."""
    found = values.view(f"u{values.itemsize}").copy()
    found[np.isnan(values)] = ~found.dtype.type(0)
    return found


class Patterns:
    """Random operands of one format."""

    def __init__(self, type_: str, seed: int, count: int = COUNT) -> None:
        self.dtype = np.dtype(DTYPES[type_])
        self.fraction = FRACTIONS[type_]
        self.width = self.dtype.itemsize * 8
        self.top = (1 << (self.width - 1 - self.fraction)) - 1
        self.bias = self.top >> 1
        self.generator = np.random.default_rng([seed, self.width])
        self.count = count

    def integers(self, low: int, high: int) -> Array:
        return self.generator.integers(low, high, self.count)

    def words(self, high: int) -> Array:
        return self.generator.integers(0, high, self.count, dtype=np.uint64, endpoint=True)

    def fractions(self) -> Array:
        """All digits random, only the first ones, ones alone behind a few, or none."""
        everything = np.uint64((1 << self.fraction) - 1)
        random = self.words(int(everything))
        dropped = self.integers(0, self.fraction + 1).astype(np.uint64)
        first = random >> dropped << dropped
        choice = self.integers(0, 4)
        return np.select(
            [choice == 0, choice == 1, choice == 2], [random, first, ~first & everything], np.uint64(0)
        )

    def numbers(self, exponents: Array) -> Array:
        """Random signs and digits with these biased exponents, cut to those of numbers that are finite."""
        clipped = np.clip(exponents, 0, self.top - 1).astype(np.uint64)
        return self.from_words(clipped, self.fractions())

    def from_words(self, exponents: Array, fractions: Array) -> Array:
        word = self.words(1) << np.uint64(self.width - 1)
        word |= exponents.astype(np.uint64) << np.uint64(self.fraction) | fractions
        return word.astype(f"u{self.width // 8}").view(self.dtype)

    def operands(self, kind: str) -> list[Array]:
        """a, b and c of a * b + c."""
        fraction, bias, top = self.fraction, self.bias, self.top
        if kind == "any bits":
            every = (1 << self.width) - 1
            return [self.words(every).astype(f"u{self.width // 8}").view(self.dtype) for _ in range(3)]
        if kind == "ends of the range":
            ends = [0, 0, 1, 2, fraction, fraction + 1, bias // 2, bias - 1, bias, bias + 1, bias + fraction]
            ends += [bias + bias // 2, top - 2, top - 1, top]
            chosen = [np.array(ends)[self.integers(0, len(ends))] for _ in range(3)]
            digits = [np.where(self.integers(0, 3) == 0, np.uint64(0), self.fractions()) for _ in range(3)]
            return [self.from_words(e, d) for e, d in zip(chosen, digits, strict=True)]
        a = self.integers(0, top)
        b = self.integers(0, top)
        if kind == "small":  # products around the smallest subnormal
            b = self.integers(-2 * fraction, 2 * fraction) - a
        if kind == "large":  # products around the largest number
            b = 2 * bias - a + self.integers(bias - fraction, bias + 5)
        if kind == "cancelling":
            b = 2 * bias - a + self.integers(-fraction, fraction)
        b = np.clip(b, 0, top - 1)
        first, second = self.numbers(a), self.numbers(b)
        third = self.numbers(a + b - bias + self.integers(-2 * fraction - 10, 2 * fraction + 10))
        if kind == "cancelling":
            with np.errstate(all="ignore"):
                near = -(first * second)
            signed = f"i{self.width // 8}"
            third = (near.view(signed) + self.integers(-2, 3).astype(signed)).view(self.dtype)
        return [first, second, third]


def assert_same(got: Array, wanted: Array, operands: list[Array], what: str) -> None:
    different = np.flatnonzero(bits(got) != bits(wanted))
    if different.size:
        n = different[0]
        *shown, ours, theirs = (float(v[n]).hex() for v in (*operands, got, wanted))
        pytest.fail(f"{what}: {different.size} lanes; of {', '.join(shown)} got {ours}, wanted {theirs}")


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("type_", DTYPES)
def test_fma_is_that_of_the_interpreter(type_: str, level: str) -> None:
    run = native("fma", type_, 3, level)
    for kind in KINDS:
        operands = Patterns(type_, 1).operands(kind)
        assert_same(run(*operands), DEFINITIONS[type_](*operands), operands, f"{kind} numbers")


@pytest.mark.parametrize("lanes", [1, 2, 3, 4, 8, 100])
def test_fma_of_any_number_of_lanes(lanes: int) -> None:
    """Scalars, and vectors that are one call or several."""
    run = native("fma", "f64", 3, LEVELS[-1], lanes)
    operands = [v[: 100 * lanes].copy() for v in Patterns("f64", 2).operands("near")]
    assert_same(run(*operands), fma_f64(*operands), operands, f"{lanes} lanes")


@pytest.mark.slow
@pytest.mark.parametrize("type_", DTYPES)
def test_fma_is_the_machine_instruction(type_: str) -> None:
    """12.5 million operands of each type."""
    if not target_for("host").has_fma:
        pytest.skip("this CPU has no fused multiply-add to compare with")
    ours, theirs = native("fma", type_, 3, LEVELS[-1]), native("fma", type_, 3, "host")
    for seed in range(32):
        for kind in KINDS:
            operands = Patterns(type_, 100 + seed, 1 << 16).operands(kind)
            assert_same(ours(*operands), theirs(*operands), operands, f"{kind} numbers, seed {seed}")


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("type_", DTYPES)
@pytest.mark.parametrize("name", ["floor", "ceil", "trunc", "rint"])
def test_roundings(name: str, type_: str, level: str) -> None:
    patterns = Patterns(type_, 3)
    whole = 2.0 ** FRACTIONS[type_]
    special = [0.0, 0.5, 1.5, 2.5, 0.49999997, whole - 0.5, whole, whole + 1, 2 * whole + 2, np.inf, np.nan]
    steps = patterns.generator.integers(-9, 9, patterns.count) / 2
    for values in (
        patterns.operands("any bits")[0],
        patterns.numbers(patterns.integers(patterns.bias - 3, patterns.bias + FRACTIONS[type_] + 3)),
        steps.astype(DTYPES[type_]),
        np.resize([s * v for v in special for s in (1.0, -1.0)], patterns.count).astype(DTYPES[type_]),
    ):
        with np.errstate(all="ignore"):
            wanted = getattr(np, name)(values)
        assert_same(native(name, type_, 1, level)(values), wanted, [values], name)
