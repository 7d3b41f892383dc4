"""Comparisons, bit operations, shifts, `~`, `-`, `not`, `umulhi` and `abs`, against exact integers."""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pytest

import blocklang as bl
import blocklang.language as tl
from tests.numerics import kernels
from tests.numerics.expected import common_type, compare, converted, exact, shifted, wrapped
from tests.numerics.kernels import OPERATORS, binary, unary
from tests.numerics.launching import Array, Out, assert_same_bits, launch_one
from tests.numerics.values import ALL, FLOATS, INTEGERS, TYPES, bits_of, numbers, pairs, random_numbers

COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
BITWISE = ("&", "|", "^")


def operate_on_pairs(symbols: tuple[str, ...], x: Array, y: Array, result: str) -> Array:
    a, b = pairs(x, y)
    return launch_one(
        binary, bl.cdiv(len(a), 257) + 1, a, b, Out((len(symbols), len(a)), result), len(a),
        BLOCK=257, OPS=tuple(OPERATORS[s] for s in symbols), RESULT=TYPES[result],
    )  # fmt: skip


def common_of(left: str, right: str) -> str:
    common = common_type(left, right)
    assert common is not None
    return common


def in_common_type(left: str, right: str) -> tuple[Array, Array]:
    """Every pair of numbers of two types, each converted to the common one."""
    common = common_of(left, right)
    return pairs(converted(numbers(left), left, common), converted(numbers(right), right, common))


# Each type with itself, and pairs in which promotion decides the answer: -1 < 1 is false as uint32.
COMPARED = [
    *((t, t) for t in ALL),
    *[("int32", "uint32"), ("uint8", "int8"), ("int64", "uint32"), ("uint64", "int64"), ("int1", "int16")],
    *[("int64", "fp16"), ("bf16", "fp16"), ("int32", "bf16"), ("fp32", "fp64"), ("uint64", "fp32")],
]


@pytest.mark.parametrize(("left", "right"), COMPARED)
def test_comparisons(left: str, right: str) -> None:
    rows = operate_on_pairs(COMPARISONS, numbers(left), numbers(right), "int1")
    a, b = in_common_type(left, right)
    for row, symbol in zip(rows, COMPARISONS, strict=True):
        assert_same_bits(row, compare(symbol, a, b), f"{left} {symbol} {right}")


MIXED_INTEGERS = [
    ("int8", "uint8"),
    ("uint16", "int64"),
    ("int1", "int32"),
    ("uint64", "int8"),
    ("int16", "uint32"),
]


@pytest.mark.parametrize(("left", "right"), [*((t, t) for t in INTEGERS), *MIXED_INTEGERS])
def test_bits_and_shifts(left: str, right: str) -> None:
    """Counts at, above and far above the width, and negative ones, which are huge unsigned numbers."""
    common = common_of(left, right)
    symbols = (*BITWISE, "<<", ">>")
    rows = operate_on_pairs(symbols, numbers(left), numbers(right), common)
    a, b = in_common_type(left, right)
    for row, symbol in zip(rows, symbols, strict=True):
        what = f"{left} {symbol} {right}"
        if symbol in BITWISE:
            function = {"&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor}[symbol]
            assert_same_bits(row, wrapped(np.asarray(function(exact(a), exact(b))), common), what)
        else:
            assert_same_bits(row, shifted(symbol, a, b, common), what)


@pytest.mark.slow
@pytest.mark.parametrize(("left", "right"), list(combinations_with_replacement(ALL, 2)))
def test_comparisons_of_every_pair_of_types(left: str, right: str) -> None:
    test_comparisons(left, right)


@pytest.mark.slow
@pytest.mark.parametrize("left", INTEGERS)
@pytest.mark.parametrize("right", INTEGERS)
def test_bits_and_shifts_of_every_pair_of_types(left: str, right: str) -> None:
    test_bits_and_shifts(left, right)


def apply(ops: tuple[Any, ...], x: Array, result: str) -> Array:
    return launch_one(
        unary, bl.cdiv(len(x), 7) + 1, x, Out((len(ops), len(x)), result), len(x),
        BLOCK=7, OPS=ops, RESULT=TYPES[result],
    )  # fmt: skip


@pytest.mark.parametrize("name", INTEGERS)
def test_unary_operators_of_integers(name: str) -> None:
    x = numbers(name)
    flipped, negated, positive, absolute = apply(
        (kernels.invert, kernels.negate, kernels.positive, tl.abs), x, name
    )
    assert_same_bits(flipped, wrapped(np.asarray(~exact(x)), name), "~")
    assert_same_bits(negated, wrapped(np.asarray(-exact(x)), name), "-")
    assert_same_bits(positive, x, "+")
    assert_same_bits(absolute, wrapped(np.asarray(abs(exact(x))), name), "abs")


@pytest.mark.parametrize("name", FLOATS)
def test_unary_operators_of_floats(name: str) -> None:
    """`-x` is `0 - x`, so that it makes +0.0 of +0.0; `abs` clears the sign."""
    x = numbers(name)
    negated, positive, absolute = apply((kernels.negate, kernels.positive, tl.abs), x, name)
    assert_same_bits(negated, np.asarray(np.zeros_like(x) - x), "-")
    assert_same_bits(positive, x, "+")
    assert_same_bits(absolute, np.where(np.signbit(x), -x, x), "abs")
    assert not np.signbit(absolute[~np.isnan(absolute)]).any()


def test_logic_of_bools() -> None:
    x = np.array([False, True])
    (a, b), ops = pairs(x, x), (kernels.logical_and, kernels.logical_or)
    both, either = launch_one(binary, 1, a, b, Out((2, 4), "int1"), 4, BLOCK=5, OPS=ops, RESULT=tl.int1)
    assert both.tolist() == (a & b).tolist()
    assert either.tolist() == (a | b).tolist()
    assert apply((kernels.logical_not,), x, "int1").tolist() == [[True, False]]


@pytest.mark.parametrize("name", ["int32", "uint32", "int64", "uint64"])
def test_upper_half_of_a_product(name: str) -> None:
    """Operands of either signedness are read as unsigned."""
    x = np.concatenate([numbers(name), random_numbers(name, (20,))])
    a, b = pairs(x, x)
    (high,) = launch_one(
        binary,
        10,
        a,
        b,
        Out((1, len(a)), name),
        len(a),
        BLOCK=len(a) // 9,
        OPS=(tl.umulhi,),
        RESULT=TYPES[name],
    )
    bits = bits_of(name)
    modulus = 1 << bits
    expected = [((int(p) % modulus) * (int(q) % modulus)) >> bits for p, q in zip(a, b, strict=True)]
    assert_same_bits(high, wrapped(np.array(expected, object), name), "umulhi")
