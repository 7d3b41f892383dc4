"""`+ - * / // %` of every pair of types, and with Python numbers: the type of the result and every bit of it.

A kernel asserts the type of each result; `expected.operate` has the value.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any

import numpy as np
import pytest

import blocklang as bl
from blocklang.language.promotion import computation_type
from tests.numerics.expected import common_type, common_type_with_literal, converted, literal_type, operate
from tests.numerics.kernels import OPERATORS, arithmetic, binary, with_literals
from tests.numerics.launching import Array, Out, assert_same_bits, launch_both, launch_one
from tests.numerics.values import (
    ALL,
    EXTENTS,
    FLOATS,
    INTEGERS,
    TYPES,
    limits,
    numbers,
    pairs,
    random_numbers,
)

BLOCK = 300  # the pairs fill two or three programs, the last in part; one more has nothing to do

PAIRS = [(a, b) for a in ALL for b in ALL]
# Each type with itself and, on the left and on the right, with two others; the rest are slow together.
QUICK = [(ALL[i], ALL[(i + step) % len(ALL)]) for step in (0, 1, 5) for i in range(len(ALL))]
SLOW = [pair for pair in PAIRS if pair not in QUICK]


def sure(type_: str | None) -> str:
    assert type_ is not None
    return type_


def functions(symbols: list[str]) -> tuple[Any, ...]:
    return tuple(OPERATORS[s] for s in symbols)


@pytest.mark.parametrize(("left", "right"), PAIRS)
def test_the_common_type(left: str, right: str) -> None:
    assert computation_type(TYPES[left], False, TYPES[right], False).name == common_type(left, right)
    divided = common_type(left, right, division=True)
    if divided is not None:
        assert computation_type(TYPES[left], False, TYPES[right], False, division=True).name == divided
    else:
        with pytest.raises(bl.CompilationError, match="one is signed, the other is not"):
            computation_type(TYPES[left], False, TYPES[right], False, division=True)


def check_pair(left: str, right: str) -> None:
    """The operators in the common type (`//` and `%` of integers too), then those of float division."""
    x, y = numbers(left), numbers(right)
    a, b = pairs(x, y)
    common, divided = sure(common_type(left, right)), common_type(left, right, division=True)
    sums = ["+", "-", "*"] + (["//", "%"] if divided in INTEGERS else [])
    quotients = [] if divided is None else ["/"] if divided in INTEGERS else ["/", "%"]
    ratio = divided if divided in FLOATS else "fp32"
    rows, ratios = launch_both(
        arithmetic, (bl.cdiv(len(a), BLOCK) + 1,), a, b,
        Out((len(sums), len(a)), common), Out((max(len(quotients), 1), len(a)), ratio), len(a),
        BLOCK=BLOCK, OPS=functions(sums), DIVISIONS=functions(quotients),
        RESULT=TYPES[common], DIVIDED=TYPES[ratio],
    )  # fmt: skip
    types = (left, right)
    check_rows(rows, sums, *pairs(*in_type(x, y, types, common)), common, types)
    if divided in INTEGERS:  # integers meet in their own type before they become fp32
        x, y = in_type(x, y, types, divided)
    from_types = (divided, divided) if divided in INTEGERS else types
    check_rows(ratios[: len(quotients)], quotients, *pairs(*in_type(x, y, from_types, ratio)), ratio, types)


def in_type(x: Array, y: Array, types: tuple[str, str], target: str) -> tuple[Array, Array]:
    return converted(x, types[0], target), converted(y, types[1], target)


def check_rows(
    rows: Array, symbols: list[str], a: Array, b: Array, type_: str, types: tuple[str, str]
) -> None:
    for row, symbol in zip(rows, symbols, strict=True):
        assert_same_bits(row, operate(symbol, a, b, type_), f"{types[0]} {symbol} {types[1]}")


@pytest.mark.parametrize(("left", "right"), QUICK)
def test_pairs_of_types(left: str, right: str) -> None:
    check_pair(left, right)


@pytest.mark.slow
@pytest.mark.parametrize(("left", "right"), SLOW)
def test_every_other_pair_of_types(left: str, right: str) -> None:
    check_pair(left, right)


@pytest.mark.parametrize("symbol", ["/", "//", "%"])
def test_mixed_signedness_cannot_be_divided(symbol: str) -> None:
    for left, right in (("int32", "uint32"), ("uint8", "int64"), ("int1", "int8")):
        a, b = numbers(left)[:1], numbers(right)[:1]
        out = Out((1, 1), "int32")
        with pytest.raises(bl.CompilationError, match="one is signed, the other is not"):
            launch_one(binary, 1, a, b, out, 1, BLOCK=1, OPS=functions([symbol]), RESULT=TYPES["int32"])


# ---- Python numbers ----

LITERALS = (2, True, 0.1, 2**31 + 5, 2**63, 1e-300, -3)


@pytest.mark.parametrize("name", ALL)
def test_with_a_python_number(name: str) -> None:
    def result_of(literal: float) -> str:
        return sure(common_type_with_literal(name, literal))

    fitting = [v for v in LITERALS if fits(v, result_of(v))]
    for result, group in groupby(sorted(fitting, key=result_of), key=result_of):
        check_literals(name, tuple(group), result)


def fits(literal: float, result: str) -> bool:
    return result in FLOATS or result == "int1" or limits(result)[0] <= literal <= limits(result)[1]


def check_literals(name: str, literals: tuple[float, ...], result: str) -> None:
    x, symbols = numbers(name), ["-", "*"]
    rows = launch_one(
        with_literals, 2, x, Out((len(symbols), len(literals), 2, len(x)), result), len(x),
        BLOCK=33, OPS=functions(symbols), LITERALS=literals, RESULT=TYPES[result],
    )  # fmt: skip
    left = converted(x, name, result)
    for block, symbol in zip(rows, symbols, strict=True):
        for both, literal in zip(block, literals, strict=True):
            right = np.full(len(x), converted(np.array([literal]), python_type(literal), result)[0])
            what = f"{name} {symbol} {literal}"
            assert_same_bits(both[0], operate(symbol, left, right, result), what)
            assert_same_bits(both[1], operate(symbol, right, left, result), what)


def python_type(literal: Any) -> str:
    """A float literal is exact until it meets its operand: not rounded to fp32 first."""
    return "fp64" if isinstance(literal, float) else literal_type(literal)


@pytest.mark.parametrize(
    ("name", "literal"), [("uint8", -1), ("uint32", -3), ("int8", 128), ("uint16", 65536), ("int64", 2**63)]
)
def test_a_python_number_that_does_not_fit(name: str, literal: int) -> None:
    x = numbers(name)[:1]
    with pytest.raises(bl.CompilationError, match=r"does not fit|cannot take the negative"):
        launch_one(
            with_literals, 1, x, Out((2, 1), name), 1,
            BLOCK=1, OPS=functions(["+"]), LITERALS=(literal,), RESULT=TYPES[name],
        )  # fmt: skip


# ---- extents ----


@pytest.mark.parametrize("name", ["int8", "bf16", "fp32"])
@pytest.mark.parametrize("extent", EXTENTS)
def test_blocks_of_any_extent(name: str, extent: int) -> None:
    """Masks that are full, ragged and empty, on blocks that are no power of two."""
    symbols = ["+", "*"]
    for n in sorted({0, extent - 1, 2 * extent + 2}):
        a, b = random_numbers(name, (n,), 1), random_numbers(name, (n,), 2)
        rows = launch_one(
            binary, (bl.cdiv(n, extent) + 1,), a, b, Out((2, n), name), n,
            BLOCK=extent, OPS=functions(symbols), RESULT=TYPES[name],
        )  # fmt: skip
        check_rows(rows, symbols, a, b, name, (name, name))
