"""Scalars, constants and ranges as operands give what lanes of a block give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import blocklang.language as tl
from blocklang.jit import JITFunction
from tests.numerics import operand_kernels as kernels
from tests.numerics.expected import compare, converted, exact, extreme, operate, shifted, wrapped
from tests.numerics.kernels import OPERATORS
from tests.numerics.launching import Array, Out, assert_same_bits, launch_one
from tests.numerics.values import (
    ALL,
    FLOATS,
    INTEGERS,
    NUMPY_DTYPES,
    TYPES,
    floats,
    integers,
    limits,
    numbers,
    pairs,
)

# A few types in the quick tests, of every kind; the others are slow together.
QUICK = ("int1", "int8", "uint64", "bf16", "fp32")
EVERY_TYPE = [pytest.param(t, marks=() if t in QUICK else pytest.mark.slow) for t in ALL]

COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


def operators_of(name: str) -> tuple[str, ...]:
    """Those whose result has the operands' type."""
    if name in FLOATS:
        return ("+", "-", "*", "minimum", "maximum") if name == "fp16" else ("+", "-", "*", *_WIDE[name])
    return ("+", "-", "*", "//", "%", "&", "|", "^", "<<", ">>", "minimum", "maximum")


_WIDE: dict[str, tuple[str, ...]] = {
    "bf16": (),
    "fp32": ("/", "%", "minimum", "maximum"),
    "fp64": ("/", "%", "minimum", "maximum"),
}


def functions(symbols: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(OPERATORS[s] if s in OPERATORS else getattr(tl, s) for s in symbols)


def expected_of(symbol: str, a: Array, b: Array, name: str) -> Array:
    if symbol in ("minimum", "maximum"):
        return extreme(a, b, largest=symbol == "maximum")
    if symbol in ("<<", ">>"):
        return shifted(symbol, a, b, name)
    return operate(symbol, a, b, name)


def few(name: str) -> Array:
    """A dozen numbers, special ones among them."""
    chosen = floats(name)[::2] if name in FLOATS else integers(name)[::2]
    return np.concatenate([chosen, numbers(name)[-1:]])


@pytest.mark.parametrize("name", EVERY_TYPE)
def test_scalars(name: str) -> None:
    a, b = pairs(few(name)[:8], few(name))
    symbols = operators_of(name)
    for group, result in ((symbols, name), (COMPARISONS, "int1")):
        rows = launch_one(
            kernels.scalars, len(a), a, b, Out((len(group), len(a)), result), len(a),
            OPS=functions(group), RESULT=TYPES[result],
        )  # fmt: skip
        for row, symbol in zip(rows, group, strict=True):
            right = compare(symbol, a, b) if group is COMPARISONS else expected_of(symbol, a, b, name)
            assert_same_bits(row, right, f"{name} {symbol}")


@pytest.mark.parametrize("name", EVERY_TYPE)
def test_a_scalar_beside_a_block(name: str) -> None:
    x, y = few(name), numbers(name)
    symbols = operators_of(name)
    result = launch_one(
        kernels.scalar_and_block, len(x), x, y, Out((len(symbols), 2, len(x), len(y)), name), len(x),
        BLOCK=len(y), OPS=functions(symbols),
    )  # fmt: skip
    a, b = (v.reshape(len(x), len(y)) for v in pairs(x, y))
    for both, symbol in zip(result, symbols, strict=True):
        assert_same_bits(both[0], expected_of(symbol, a, b, name), f"{name} {symbol}")
        assert_same_bits(both[1], expected_of(symbol, b, a, name), f"{name} {symbol}, exchanged")


def python_numbers(name: str) -> tuple[Any, ...]:
    if name in FLOATS:
        return (0.0, -0.0, 1.0, -2.5, float("inf"), float("nan"))
    return (True, False) if name == "int1" else tuple(sorted({0, 1, 2, *limits(name), limits(name)[1] // 3}))


@pytest.mark.parametrize("name", EVERY_TYPE)
def test_constants(name: str) -> None:
    """Folding: nothing is left to run but the stores."""
    values, symbols = python_numbers(name), operators_of(name)
    n = len(values)
    result = launch_one(
        kernels.constants, 1, Out((len(symbols), n * n), name),
        VALUES=values, TYPE=TYPES[name], OPS=functions(symbols),
    )  # fmt: skip
    a, b = pairs(np.array(values, NUMPY_DTYPES[name]), np.array(values, NUMPY_DTYPES[name]))
    for row, symbol in zip(result, symbols, strict=True):
        assert_same_bits(row, expected_of(symbol, a, b, name), f"{name} {symbol}")


@pytest.mark.parametrize("name", EVERY_TYPE)
def test_a_constant_beside_a_block(name: str) -> None:
    x, values, symbols = numbers(name), python_numbers(name), operators_of(name)
    result = launch_one(
        kernels.constant_and_block, 1, x, Out((len(symbols), len(values), 2, len(x)), name),
        VALUES=values, TYPE=TYPES[name], OPS=functions(symbols), BLOCK=len(x),
    )  # fmt: skip
    for rows, symbol in zip(result, symbols, strict=True):
        for both, value in zip(rows, values, strict=True):
            c = np.full(len(x), value, x.dtype)
            assert_same_bits(both[0], expected_of(symbol, x, c, name), f"{name} {symbol} {value}")
            assert_same_bits(both[1], expected_of(symbol, c, x, name), f"{value} {symbol} {name}")


@pytest.mark.parametrize("name", EVERY_TYPE)
def test_a_block_with_itself(name: str) -> None:
    """x - x, x ^ x, x / x, x % x and x == x are no constants where x is NaN, infinite or 0."""
    x = numbers(name)
    for group, result in ((operators_of(name), name), (COMPARISONS, "int1")):
        rows = launch_one(
            kernels.with_itself, 1, x, Out((len(group), len(x)), result), OPS=functions(group), BLOCK=len(x)
        )
        for row, symbol in zip(rows, group, strict=True):
            right = compare(symbol, x, x) if group is COMPARISONS else expected_of(symbol, x, x, name)
            assert_same_bits(row, right, f"{name} {symbol}")


# ---- arithmetic progressions ----


def progression(name: str, factor: int, start: int, extent: int) -> tuple[Array, Array]:
    i = np.arange(extent).astype(object)
    v = converted(wrapped(i * factor + start, "int32"), "int32", name)
    return v, wrapped(exact(v) * 3 + 1, name)


PROGRESSIONS = ((1, 0), (1, 2**31 - 20), (-3, 5), (2**29 + 1, -7), (65537, -(2**31)), (0, -1), (300, 60))
WHOLE = [t for t in INTEGERS if t != "int1"]


@pytest.mark.parametrize(
    "name", [t if t in ("uint8", "int32") else pytest.param(t, marks=pytest.mark.slow) for t in WHOLE]
)
@pytest.mark.parametrize(("factor", "start"), PROGRESSIONS)
def test_progressions_that_wrap(name: str, factor: int, start: int) -> None:
    extent = 100
    result = launch_one(
        kernels.ranges, 1, Out((19, extent), "int64"), factor, start, BLOCK=extent, TYPE=TYPES[name]
    )
    v, w = progression(name, factor, start, extent)
    e, seven = exact(w), np.full(extent, 7, w.dtype)

    def own(values: Any) -> Array:
        return wrapped(np.asarray(values), name).astype(np.int64)

    expected = [
        v.astype(np.int64),
        w.astype(np.int64),
        *(converted(w, name, t).astype(np.int64) for t in ("uint32", "int8", "uint16")),
        converted(converted(w, name, "fp64"), "fp64", "int64"),  # saturates
        *(operate(s, w, seven, name).astype(np.int64) for s in ("//", "%")),
        *(own(u) for u in (e >> 3, e << 2, -e, ~e, e & 100, e * e)),
        (w < 5).astype(np.int64),
        np.maximum(w, v).astype(np.int64),
        own(abs(e)),
        (wrapped(e, "uint64") >> np.uint64(1)).astype(np.int64),
        wrapped(exact(own(e - exact(v))) + e, "int64"),
    ]
    for k, (row, right) in enumerate(zip(result, expected, strict=True)):
        assert_same_bits(row, right, f"row {k} of {name}, {factor} i + {start}")


@pytest.mark.parametrize("name", ["int8", "uint8", "int16"])
@pytest.mark.parametrize("start", [0, 100, -120, 250])
def test_addresses_that_wrap(name: str, start: int) -> None:
    """int8 offsets of -128 to 127, uint8 ones of 0 to 255."""
    extent, centre = 60, 300
    x = np.arange(1000, dtype=np.int32)
    low, high = limits(name)
    start = min(max(start, low), high)
    result = launch_one(
        kernels.addressed_by_ranges, 1, x, Out((2 * extent + 1000,), "int32"), start,
        CENTRE=centre, BLOCK=extent, TYPE=TYPES[name],
    )  # fmt: skip
    by = wrapped(np.arange(extent).astype(object) * 3 + start, name).astype(np.int64)
    assert_same_bits(result[:extent], x[centre + by])
    assert_same_bits(result[extent : 2 * extent], np.where(by < 100, x[centre + by], -1).astype(np.int32))
    scattered = result[2 * extent :]
    assert_same_bits(scattered[centre + by], np.arange(extent, dtype=np.int32))


@pytest.mark.parametrize("interpret", [False, True])
@pytest.mark.parametrize("block", [8, 64, 1024])
def test_blocks_of_addresses_compare(interpret: bool, block: int) -> None:
    """Where all that differs between the lanes of two blocks of addresses is the same, too."""
    n = block - 3
    out = np.full(9, 7, np.int32)
    kernel = JITFunction(kernels.equal_addresses.fn, interpret=interpret)
    kernel[(4,)](np.zeros(64, np.float32), out, n, 1000, B=block)
    assert out.tolist() == [block] * 4 + [sum(i % 3 == 2 for i in range(n))] * 4 + [7]
