"""The rows about numbers: types, wrapping, rounding, NaN, orders, in both modes."""

from __future__ import annotations

import ctypes
import ctypes.util
import platform
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import blocklang as bl
import blocklang.language as tl
from blocklang.ir.float8 import FLOAT8 as FORMATS
from tests.behaviour import number_kernels as kernels
from tests.behaviour.rows import MODES, array, launch, row
from tests.numerics import atomic_kernels, random_kernels
from tests.numerics.expected import (
    common_type,
    converted,
    extreme,
    fma_f32,
    operate,
    rounded,
    shifted,
    wrapped,
)
from tests.numerics.launching import Array, Out, assert_same_bits, launch_in_mode
from tests.numerics.values import (
    ALL,
    FLOAT8,
    FLOATS,
    INTEGERS,
    NUMPY_DTYPES,
    SIGNED,
    TYPES,
    floats,
    integers,
    limits,
    numbers,
    pairs,
    random_numbers,
)

SEMANTICS = Path(__file__).resolve().parents[2] / "docs" / "semantics.md"
WORDS = tuple(name for name in INTEGERS if name != "int1")
BLOCK = 200
types = pytest.mark.parametrize


def two(mode: str, function: bl.JITFunction, a: Array, b: Array, result: str) -> Array:
    """A function of two arrays, in blocks of which the last is ragged; the type of its result is checked."""
    n = len(a)
    grid = bl.cdiv(n, BLOCK)
    return launch(
        mode, kernels.apply_two, a, b, Out((n,), result), n,
        grid=grid, BLOCK=BLOCK, F=function, RESULT=TYPES[result],
    )  # fmt: skip


def one(mode: str, function: bl.JITFunction, a: Array, result: str) -> Array:
    n = len(a)
    grid = bl.cdiv(n, BLOCK)
    return launch(
        mode, kernels.apply_one, a, Out((n,), result), n,
        grid=grid, BLOCK=BLOCK, F=function, RESULT=TYPES[result],
    )  # fmt: skip


# ---- one semantic layer ----


@MODES
@types(("left", "right"), [("int8", "uint8"), ("int32", "fp32"), ("int64", "uint64"), ("int64", "fp16"),
                           ("fp16", "bf16"), ("bf16", "int8"), ("int16", "bf16"),
                           ("int1", "int1")])  # fmt: skip
@row("Numbers", "one semantic layer")
def test_numpys_promotion_never_decides_a_type(left: str, right: str, mode: str) -> None:
    """Where NumPy promotes otherwise (int8 + uint8 is int16 there), the result has our type and its bits."""
    a, b = pairs(numbers(left), numbers(right))
    common = common_type(left, right)
    assert common is not None
    result = two(mode, kernels.add, a, b, common)
    expected = operate("+", converted(a, left, common), converted(b, right, common), common)
    assert_same_bits(result, expected, f"{left} + {right}")


@MODES
@types("name", FLOATS)
@row("Numbers", "one semantic layer")
def test_infinities_and_nan_give_no_warning_and_the_same_bits(name: str, mode: str) -> None:
    """Overflow, 0 / 0 and NaN are values, not events: neither mode warns or raises, whatever
    NumPy's settings."""
    a, b = pairs(floats(name), floats(name))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for symbol, function in (("+", kernels.add), ("-", kernels.subtract), ("*", kernels.multiply)):
            assert_same_bits(two(mode, function, a, b, name), operate(symbol, a, b, name), symbol)


@MODES
@types(
    ("value", "result"),
    [
        (2, "int32"), (np.int8(2), "int8"), (np.int64(2), "int64"), (np.uint16(2), "uint16"),
        (2.0, "fp32"), (np.float64(2), "fp64"), (np.float16(2), "fp16"), (True, "int8"), (2**40, "int64"),
        (2**63, "uint64"), (1, "int32"), (np.int64(1), "int64"), (0, "int32"),
    ],
)  # fmt: skip
@row("Numbers", "one semantic layer")
def test_a_scalar_argument_has_its_own_type(value: Any, result: str, mode: str) -> None:
    """A Python int is int32, int64 or uint64 by its value, a float fp32; a NumPy scalar keeps its dtype."""
    x = array([1, 2, 3], np.int8)
    out = launch(mode, kernels.with_scalar, x, Out((3,), result), value, 3, BLOCK=4, RESULT=TYPES[result])
    assert_same_bits(out, array([int(v) + int(value) for v in (1, 2, 3)], NUMPY_DTYPES[result]))


# ---- promotion ----


@MODES
@types("left", ALL)
@row("Numbers", "promotion")
def test_promotion_follows_tritons_rules(left: str, mode: str) -> None:
    """Every pair of types has the published common type: of `+`, of `where` and of a comparison's
    operands."""
    commons = tuple(common_type(left, right) for right in ALL)
    rights, results = tuple(TYPES[r] for r in ALL), tuple(TYPES[str(c)] for c in commons)
    out = launch(
        mode,
        kernels.common_types,
        Out((len(ALL),), "int32"),
        LEFT=TYPES[left],
        RIGHTS=rights,
        RESULTS=results,
    )
    assert out.all()


@MODES
@types("name", ALL)
@row("Numbers", "promotion")
def test_python_numbers_are_weak_and_assigned_ones_are_not(name: str, mode: str) -> None:
    """`block + 2` has the block's type; `s = 2` makes an int32; a float beside integers is fp32, or fp64."""
    a = array([0, 1], NUMPY_DTYPES[name])
    is_float = name in FLOATS
    weak = name if name != "int1" else "int32"
    assert one(mode, kernels.plus_two, a, weak).tolist() == [2, 3]
    assigned = common_type(name, "int32")
    assert assigned is not None
    assert one(mode, kernels.plus_assigned_two, a, assigned).tolist() == [2, 3]
    assert one(mode, kernels.plus_two_and_a_half, a, name if is_float else "fp32").tolist() == [2.5, 3.5]
    huge = one(mode, kernels.times_huge, a[:1], name if is_float else "fp64")
    assert np.isnan(huge[0]) if name in ("fp16", "bf16", "fp32") else huge[0] == 0
    assert one(mode, kernels.plus_true, a, name).dtype == a.dtype


DIFFERENCES: dict[str, tuple[str, Array, bl.JITFunction, Array, str]] = {
    "`int32 / int32`": ("int32", array([7]), kernels.divide, array([2]), "fp32"),
    "`int32 + fp32`": ("int32", array([7]), kernels.add, array([2], np.float32), "fp32"),
    "`int8 + uint8`": ("int8", array([-1], np.int8), kernels.add, array([1], np.uint8), "uint8"),
    "`int64 + uint64`": ("int64", array([-1], np.int64), kernels.add, array([2], np.uint64), "uint64"),
    "`bool + bool`": ("int1", array([True], bool), kernels.add, array([True], bool), "int1"),
    "`fp16 / fp16`": ("fp16", array([7], np.float16), kernels.divide, array([2], np.float16), "fp32"),
}


@MODES
@types("expression", DIFFERENCES)
@row("Numbers", "promotion")
def test_the_published_differences_from_numpy(expression: str, mode: str) -> None:
    """docs/semantics.md has a table of what NumPy does otherwise, and that is what happens."""
    assert f"| {expression}" in SEMANTICS.read_text()
    _, a, function, b, result = DIFFERENCES[expression]
    out = two(mode, function, a, b, result)
    assert out.dtype != (a + b if function is kernels.add else a / b).dtype or out[0] != (a + b)[0]


@MODES
@row("Numbers", "promotion")
def test_numbers_that_do_not_fit_are_refused(mode: str) -> None:
    """A literal out of the block's range, a negative one beside unsigned, mixed signs in a quotient."""
    for name, function in (("uint8", subtract_minus_one), ("int8", add_300), ("uint32", subtract_minus_one)):
        with pytest.raises(bl.CompilationError, match=r"-1|300"):
            one(mode, function, integers(name), name)
    for function in (kernels.divide, kernels.floor_divide, kernels.modulo):
        with pytest.raises(bl.CompilationError, match="one is signed, the other is not"):
            two(mode, function, array([1]), array([1], np.uint32), "uint32")


@bl.jit
def subtract_minus_one(a: Any) -> Any:
    return a - -1


@bl.jit
def add_300(a: Any) -> Any:
    return a + 300


# ---- integer division ----


@MODES
@types("name", WORDS)
@row("Numbers", "integer division")
def test_integer_division_truncates_and_never_traps(name: str, mode: str) -> None:
    """C's quotient and remainder at run time; by 0 they are 0 and the dividend; MIN // -1 is MIN,
    remainder 0."""
    a, b = pairs(integers(name), integers(name))
    for symbol, function in (("//", kernels.floor_divide), ("%", kernels.modulo)):
        assert_same_bits(two(mode, function, a, b, name), operate(symbol, a, b, name), f"{name} {symbol}")


@MODES
@types("name", SIGNED)
@row("Numbers", "integer division")
def test_division_on_dead_lanes_never_traps(name: str, mode: str) -> None:
    """Lanes whose quotient nobody stores, or nobody chooses, may divide by 0 and overflow."""
    low, _ = limits(name)
    a, b = (
        array([7, low, low, -7, 5] * 7, NUMPY_DTYPES[name]),
        array([2, -1, 0, 2, 0] * 7, NUMPY_DTYPES[name]),
    )
    n, live = len(a), 4
    out = launch(mode, kernels.divided_where_dead, a, b, Out((3, n), name), n, live, BLOCK=n + 5)
    assert_same_bits(out[0, :live], array([3, low, 0, -3], a.dtype))
    assert_same_bits(out[1, :live], array([1, 0, low, -1], a.dtype))
    assert_same_bits(out[2], array([3, low, low, -3, 5] * 7, a.dtype))


@MODES
@types(("a", "b"), [(7, 0), (-7, 0), (-(2**31), -1), (7, -2), (np.int64(-(2**63)), np.int64(-1)),
                    (np.int64(9), np.int64(0)), (np.int8(-128), np.int8(-1))])  # fmt: skip
@types("rounds", [0, 3])
@row("Numbers", "integer division")
def test_scalar_division_in_loops_and_branches_never_traps(a: Any, b: Any, rounds: int, mode: str) -> None:
    """A quotient that moves out of its loop or branch is still no trap."""
    name = {np.int64: "int64", np.int8: "int8"}.get(type(a), "int32")
    out = launch(mode, kernels.divided_scalars, Out((4,), name), a, b, rounds)
    x, y = array([a], NUMPY_DTYPES[name]), array([b], NUMPY_DTYPES[name])
    quotient, remainder = operate("//", x, y, name), operate("%", x, y, name)
    assert_same_bits(out[:1], wrapped(array([int(quotient[0]) * rounds], object), name))
    if b != 0:
        assert_same_bits(out[1:2], remainder)
    assert_same_bits(out[2:], np.concatenate([quotient, remainder]))


@MODES
@types("name", WORDS)
@row("Numbers", "integer division")
def test_division_by_constants(name: str, mode: str) -> None:
    """What becomes a multiplication or a shift gives the same: powers of two, both signs, the
    largest divisor."""
    low, high = limits(name)
    divisors = tuple(
        d for d in (1, 2, 3, 7, 8, 10, 64, 127, -1, -2, -3, -8, -127, low, high) if low <= d and d
    )
    x = integers(name)
    out = launch(
        mode, kernels.divided_by_constants, x, Out((2 * len(divisors), len(x)), name), len(x),
        BLOCK=BLOCK, DIVISORS=divisors,
    )  # fmt: skip
    for k, divisor in enumerate(divisors):
        by = np.full(len(x), divisor, x.dtype)
        for part, symbol in enumerate(("//", "%")):
            assert_same_bits(out[2 * k + part], operate(symbol, x, by, name), f"{symbol} {divisor}")


@MODES
@types(("a", "b"), [(-7, 2), (7, -2), (-7, -2), (7, 2), (-8, 2), (0, 5)])
@row("Numbers", "integer division")
def test_folded_division_follows_python_and_run_time_division_c(a: int, b: int, mode: str) -> None:
    """The one documented exception: two constexprs divide as in Python. cdiv is (a + b - 1) // b
    with C's `//`."""
    out = launch(mode, kernels.folded_and_not, Out((5,), "int32"), a, b, A=a, B=b)
    quotient = abs(a) // abs(b) * (1 if a * b >= 0 else -1)
    c = a + b - 1
    ceiling = abs(c) // abs(b) * (1 if c * b >= 0 else -1)
    assert out.tolist() == [quotient, a - quotient * b, a // b, a % b, ceiling]


# ---- integer wrap ----


@MODES
@types("name", WORDS)
@row("Numbers", "integer wrap")
def test_integers_wrap_and_no_comparison_assumes_they_do_not(name: str, mode: str) -> None:
    """x + 1 > x is false at the largest number, twice x halved is not x, -MIN and abs(MIN) are MIN."""
    x = integers(name)
    exact = x.astype(object)
    out = launch(mode, kernels.wrapped, x, Out((5, len(x)), name), len(x), BLOCK=BLOCK)
    low, high = limits(name)
    assert_same_bits(out[0], array(exact != high, bool).astype(x.dtype), "x + 1 > x")
    doubled = wrapped(exact * 2, name)
    assert_same_bits(out[1], operate("//", doubled, np.full(len(x), 2, x.dtype), name), "(x * 2) // 2")
    assert_same_bits(out[2], wrapped(-exact, name), "-x")
    assert_same_bits(out[3], array(exact != low, bool).astype(x.dtype), "x - 1 < x")
    assert_same_bits(out[4], wrapped(abs(exact), name), "abs")


@MODES
@types("name", INTEGERS)
@row("Numbers", "integer wrap")
def test_sums_products_and_differences_are_modular(name: str, mode: str) -> None:
    """Modulo 2^width, every pair of edge values."""
    a, b = pairs(integers(name), integers(name))
    for symbol, function in (("+", kernels.add), ("-", kernels.subtract), ("*", kernels.multiply)):
        assert_same_bits(two(mode, function, a, b, name), operate(symbol, a, b, name), symbol)


@MODES
@types(("start", "stride"), [(0, 2**30), (5, 2**31 - 1), (3, -(2**30)), (64, 2**29 + 1)])
@row("Numbers", "integer wrap")
def test_offsets_wrap_in_their_own_type_before_they_widen(start: int, stride: int, mode: str) -> None:
    """int32 offset arithmetic wraps; the wrapped number is what is added to the pointer, in 64 bits.

    Every lane's address is chosen to come back into the array. The debug mode reports it: `test_debug`."""
    n = 9
    at = ((start + np.arange(n, dtype=object) * stride + 2**31) % 2**32 - 2**31).astype(np.int64)
    lanes = [i for i in range(n) if 0 <= at[i] < 256]
    x = np.arange(256, dtype=np.int32)
    count = next((i for i in range(n) if i not in lanes), n)
    out = launch(mode, kernels.wrapped_offsets, x, Out((count,), "int32"), start, stride, BLOCK=count)
    assert out.tolist() == at[:count].tolist()


@MODES
@types("name", ["int8", "uint8"])
@row("Numbers", "integer wrap")
def test_narrow_offsets_wrap_and_widen_by_their_sign(name: str, mode: str) -> None:
    """100 + 100 in int8 is -56, and the pointer goes back; in uint8 it is 200, and the pointer goes on."""
    x = np.arange(400, dtype=np.int32)
    by = np.arange(256, dtype=np.uint8).view(NUMPY_DTYPES[name])
    out = launch(mode, kernels.bytes_as_offsets, x, by, Out((256,), "int32"), BLOCK=256)
    assert_same_bits(out, x[128 + wrapped(by.astype(object) * 2, name).astype(int)])


@MODES
@types(
    ("start", "stop", "step"),
    [(2**31 - 4, 2**31 - 1, 1), (2**31 - 4, 2**31 - 1, 2), (-(2**31), -(2**31) + 5, 3),
     (2**31 - 2, 2**31 - 1, 7), (-(2**31) + 3, -(2**31), -2), (2**63 - 4, 2**63 - 1, 3),
     (-(2**63) + 3, -(2**63), -2), (-(2**31), 2**31 - 1, 2**31 - 1), (5, -(2**31), -(2**31))],
)  # fmt: skip
@row("Numbers", "integer wrap")
def test_loops_at_the_end_of_their_range_end(start: int, stop: int, step: int, mode: str) -> None:
    """The index does not wrap past the bound: as many rounds as in Python."""
    out = launch(mode, kernels.rounds_at_the_end, Out((1,), "int32"), start, stop, step)
    assert out[0] == len(range(start, stop, step))


# ---- shifts ----


@MODES
@types("name", WORDS)
@row("Numbers", "shifts")
def test_shifts_are_logical_for_unsigned_and_arithmetic_for_signed(name: str, mode: str) -> None:
    """The width or more, and a negative count, shift everything out: 0, or -1 of a negative number."""
    bits = NUMPY_DTYPES[name].itemsize * 8
    counts = {0, 1, 2, bits - 1, bits, bits + 1, 2 * bits, min(127, limits(name)[1]), limits(name)[1]}
    a, by = pairs(
        integers(name), array(sorted(counts | ({-1} if name in SIGNED else set())), NUMPY_DTYPES[name])
    )
    out = launch(
        mode, kernels.shifts, a, by, Out((2, len(a)), name), len(a),
        grid=bl.cdiv(len(a), BLOCK), BLOCK=BLOCK,
    )  # fmt: skip
    assert_same_bits(out[0], shifted("<<", a, by, name), "<<")
    assert_same_bits(out[1], shifted(">>", a, by, name), ">>")


@MODES
@types("by", [0, 1, 31, 32, 33, 100])
@types("a", [-5, 5, 2**31 - 1, -(2**31)])
@row("Numbers", "shifts")
def test_shifts_of_scalars_and_by_constants(a: int, by: int, mode: str) -> None:
    """A scalar is shifted as a lane is, by a run-time count as by a constant one."""
    out = launch(mode, kernels.shifted_scalars, Out((4,), "int32"), a, by, BY=by)
    up, down = int(wrapped(array([a << by], object), "int32")[0]), a >> by
    assert out.tolist() == [up, down, up, down]


# ---- float to int ----


def saturated(values: Array, name: str) -> Array:
    low, high = limits(name)
    exact = values.astype(np.float64)
    return array(
        [0 if np.isnan(v) else high if v >= high else low if v <= low else int(v) for v in exact],
        NUMPY_DTYPES[name],
    )


@MODES
@types("target", WORDS)
@types("source", FLOATS)
@row("Numbers", "float to int out of range, NaN")
def test_float_to_int_saturates_and_nan_gives_zero(source: str, target: str, mode: str) -> None:
    """Beyond the range the nearest limit, NaN 0, else toward zero: by `.to` and by a store, live or
    ragged."""
    edges = [2.0**k for k in (7, 8, 15, 16, 31, 32, 63, 64)]
    with np.errstate(all="ignore"):
        more = array(
            [*edges, *(-e for e in edges), 127.5, -128.5, 255.5, 0.99, -0.99, 1e30, -1e30], np.float64
        )
        x = np.concatenate([floats(source), more.astype(NUMPY_DTYPES[source])])
    out = launch(
        mode, kernels.cast_all, x, Out((2, len(x)), target), len(x), grid=2, BLOCK=47, TYPE=TYPES[target]
    )
    for k in range(2):
        assert_same_bits(out[k], saturated(x, target), f"{source} to {target}")


@MODES
@types("target", WORDS)
@row("Numbers", "float to int out of range, NaN")
def test_folded_float_to_int_is_as_at_run_time(target: str, mode: str) -> None:
    """Constants that the compiler casts give what the machine gives."""
    values = (1e30, -1e30, float("nan"), float("inf"), -float("inf"), 2.0**31, -1.5, 300.7, 4294967040.0)
    count = len(values)
    folded = launch(mode, kernels.literals_to, Out((count,), target), VALUES=values, TYPE=TYPES[target])
    x = array(values, np.float32)
    run = launch(mode, kernels.literals_not_folded, x, Out((count,), target), COUNT=count, TYPE=TYPES[target])
    assert_same_bits(folded, run)
    assert_same_bits(run, saturated(x, target))


# ---- min, max ----

NAN, INF = float("nan"), float("inf")
ROWS = (
    (NAN, NAN, NAN), (NAN, 1, 2), (1, NAN, 2), (2, 1, NAN), (NAN, -INF, NAN), (0.0, -0.0, 0.0),
    (-0.0, 0.0, -0.0), (3, 3, 3), (1, 3, 3), (-INF, -INF, NAN), (INF, NAN, -INF), (NAN, NAN, 5),
)  # fmt: skip


@MODES
@types("name", FLOATS)
@types("extent", [3, 33, 64])
@row("Numbers", "min/max/argmin/argmax")
def test_extremes_ignore_nan_and_take_the_first(name: str, extent: int, mode: str) -> None:
    """NaN only if all are; -0.0 < +0.0; an index is the first of an extreme number (zeros compare equal)."""
    x = array([[*r, *[NAN] * (extent - 3)] for r in ROWS], NUMPY_DTYPES[name])
    m, plain = len(ROWS), name if name in ("fp32", "fp64") else "fp32"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values, at = launch_in_mode(
            mode, kernels.extremes, 1, x, Out((4, m), plain), Out((4, m), "int32"), M=m, N=extent
        )
    for k, largest in ((0, True), (1, False), (2, True), (3, False)):
        for j, numbers_ in enumerate(x.astype(np.float64)):
            real = [float(v) for v in numbers_ if not np.isnan(v)]
            if not real:
                assert np.isnan(values[k, j])
                assert at[k, j] == 0
                continue
            signed = sorted(real, key=lambda v: (v, np.copysign(1, v)))
            wanted = signed[-1] if largest else signed[0]
            assert values[k, j] == wanted
            first = next(i for i, v in enumerate(numbers_) if v == wanted)
            if wanted != 0:
                assert at[k, j] == first
            elif k < 2:
                assert np.signbit(values[k, j]) == np.signbit(wanted)


@MODES
@types("name", FLOATS)
@row("Numbers", "min/max/argmin/argmax")
def test_minimum_and_maximum_honour_propagate_nan(name: str, mode: str) -> None:
    """NONE takes the number beside a NaN, ALL the NaN; zeros are ordered by sign."""
    a, b = pairs(floats(name), floats(name))
    result = "fp32" if name == "bf16" else name
    out = launch(mode, kernels.extremes_of_two, a, b, Out((4, len(a)), result), len(a), BLOCK=len(a) + 3)
    for k, (largest, propagate) in enumerate(((True, False), (False, False), (True, True), (False, True))):
        expected = extreme(a, b, largest=largest, propagate_nan=propagate)
        assert_same_bits(out[k], expected.astype(out.dtype), f"row {k}")


@MODES
@types("name", WORDS)
@row("Numbers", "min/max/argmin/argmax")
def test_integer_extremes_by_their_sign(name: str, mode: str) -> None:
    """Unsigned numbers compare as unsigned; the first index on ties; values keep their meaning when
    widened."""
    low, high = limits(name)
    x = array([[low, high, low, high], [high, high, high, high], [1, 0, low, 0]], NUMPY_DTYPES[name])
    plain = name if NUMPY_DTYPES[name].itemsize >= 4 else "int32"
    values, at = launch_in_mode(
        mode, kernels.extremes, 1, x, Out((4, 3), plain), Out((4, 3), "int32"), M=3, N=4
    )
    for k, (of, where) in enumerate(((np.max, np.argmax), (np.min, np.argmin)) * 2):
        assert values[k].tolist() == of(x, axis=1).tolist()
        assert at[k].tolist() == where(x, axis=1).tolist()


# ---- sums ----


@MODES
@types("name", INTEGERS)
@types("extent", [5, 64, 1000])
@row("Numbers", "small-type sums")
def test_small_types_are_summed_in_32_bits(name: str, extent: int, mode: str) -> None:
    """bool, int8, int16 in int32 (unsigned: uint32); `dtype=` is honoured; 32 bits wrap."""
    x = np.full(extent, limits(name)[1], NUMPY_DTYPES[name])
    x[::3] = limits(name)[0]
    total = int(x.astype(object).sum())
    plain = name if x.itemsize >= 4 else "int32" if name in SIGNED else "uint32"
    for result, asked in ((plain, None), ("int64", tl.int64), ("int8", tl.int8), ("uint16", tl.uint16)):
        out = launch(mode, kernels.summed, x, Out((1,), result), N=extent, RESULT=TYPES[result], DTYPE=asked)
        assert_same_bits(out, wrapped(array([total], object), result), f"{name} in {result}")


@MODES
@types("name", ["fp16", "bf16"])
@row("Numbers", "small-type sums")
def test_small_floats_are_summed_in_fp32_and_rounded_once(name: str, mode: str) -> None:
    """4096 times 1 is 4096, where a running sum in bf16 stops at 256 and one in fp16 at 2048."""
    x = np.ones(4096, NUMPY_DTYPES[name])
    out = launch(mode, kernels.summed, x, Out((1,), name), N=4096, RESULT=TYPES[name], DTYPE=None)
    assert float(out[0]) == 4096


# ---- scans ----


@MODES
@types("extent", [1, 7, 32, 100, 257])
@types("reverse", [False, True])
@row("Numbers", "scans")
def test_scans_keep_the_order_of_operands(extent: int, reverse: bool, mode: str) -> None:
    """Functions that do not commute: composition of affine maps as a tuple, and `first` and `second`."""
    a, b = random_numbers("int32", (extent,), 1), random_numbers("int32", (extent,), 2)
    out = launch(mode, kernels.scanned, a, b, Out((4, extent), "int32"), N=extent, REVERSE=reverse)
    order = list(range(extent))[:: -1 if reverse else 1]
    slope, offset = 1, 0
    for i in order:
        slope, offset = slope * int(a[i]), offset * int(a[i]) + int(b[i])
        pair = wrapped(array([slope, offset], object), "int32")
        assert (out[0, i], out[1, i]) == tuple(pair)
    assert (out[2] == a[order[0]]).all()
    assert_same_bits(out[3], a)


@MODES
@types("name", ["fp32", "fp64", "fp16"])
@row("Numbers", "scans")
def test_reverse_sums_are_no_total_minus_a_prefix(name: str, mode: str) -> None:
    """An infinity at the front leaves the sums behind it finite; a total minus a prefix would make
    them NaN."""
    x = np.ones(50, NUMPY_DTYPES[name])
    x[0] = np.inf
    out = launch(mode, kernels.running_sums, x, Out((50,), name), N=50, REVERSE=True)
    assert out.tolist() == [np.inf, *range(49, 0, -1)]
    back = launch(mode, kernels.running_sums, x[::-1].copy(), Out((50,), name), N=50, REVERSE=False)
    assert back.tolist() == [*range(1, 50), np.inf]


# ---- casts down ----


@MODES
@types(("source", "target"), [("fp32", "fp16"), ("fp32", "bf16"), ("fp64", "fp32"), ("fp64", "fp16"),
 ("fp64", "bf16"),                               ("fp16", "bf16")])  # fmt: skip
@row("Numbers", "down-casts")
def test_down_casts_round_to_nearest_even_once(source: str, target: str, mode: str) -> None:
    """Ties to even, with the carry into the exponent and into infinity, subnormals, and no rounding
    in between."""
    targets = NUMPY_DTYPES[target]
    some = np.linspace(0, 2 ** (16 if targets.itemsize == 2 else 32) - 1, 3001).astype(f"u{targets.itemsize}")
    with np.errstate(all="ignore"):
        codes = some.view(targets).astype(np.float64)
        above = (some + 1).astype(some.dtype).view(targets).astype(np.float64)
        ties = (codes + above) / 2
        beside = [ties * (1 + k * 2.0**-e) for k in (-1, 0, 1) for e in (50, 23)]
        x = np.concatenate([codes, *beside, floats(source).astype(np.float64)])
        x = x[np.isfinite(x)].astype(NUMPY_DTYPES[source])
        expected = rounded(x.astype(np.float64), target).astype(targets)
    n = len(x)
    out = launch(
        mode, kernels.cast_all, x, Out((2, n), target), n, grid=9, BLOCK=bl.cdiv(n, 9), TYPE=TYPES[target]
    )
    assert_same_bits(out[0], expected, f"{source} to {target}")
    assert_same_bits(out[1], expected, f"{source} to {target}, by a store")


@MODES
@types("source", FLOATS)
@types("target", FLOAT8)
@row("Numbers", "down-casts")
def test_down_casts_to_8_bit_floats(source: str, target: str, mode: str) -> None:
    """Every code, the middle between two, and its neighbours: nearest even, saturating, subnormals
    included."""
    form = FORMATS[target.replace("fp8", "f8")]
    codes = np.unique([form.decode(c) for c in range(256)])
    codes = codes[np.isfinite(codes)]
    middles = (codes[1:] + codes[:-1]) / 2
    with np.errstate(all="ignore"):
        x = np.concatenate([codes, middles, middles * (1 + 2.0**-6), middles * (1 - 2.0**-6), floats(source)])
        x = x.astype(NUMPY_DTYPES[source])
    expected = array([form.encode(float(v)) for v in x], np.uint8).view(NUMPY_DTYPES[target])
    out = launch(
        mode,
        kernels.cast_all,
        x,
        Out((2, len(x)), target),
        len(x),
        grid=1,
        BLOCK=len(x),
        TYPE=tl_type(target),
    )
    for k in range(2):
        assert (out[k].view(np.uint8) == expected.view(np.uint8)).all(), f"{source} to {target}"


def tl_type(name: str) -> Any:
    return getattr(tl, name.replace("fp8", "float8"))


# ---- bf16 ----


@MODES
@row("Numbers", "bf16")
def test_bf16_is_computed_on_values_not_on_bits(mode: str) -> None:
    """Sums, products and choices of bf16 are those of the numbers; negative ones order as numbers do."""
    a, b = pairs(floats("bf16"), floats("bf16"))
    for symbol, function in (("+", kernels.add), ("-", kernels.subtract), ("*", kernels.multiply)):
        assert_same_bits(two(mode, function, a, b, "bf16"), operate(symbol, a, b, "bf16"), symbol)
    smaller = two(mode, kernels.choose_smaller, a, b, "bf16")
    with np.errstate(invalid="ignore"):
        expected = np.where(a.astype(np.float32) < b.astype(np.float32), a, b)
    assert_same_bits(smaller, expected)
    assert two(mode, kernels.divide, a, b, "fp32").dtype == np.float32


@MODES
@row("Numbers", "bf16")
def test_bf16_becomes_integers_and_bools_by_value(mode: str) -> None:
    """2.0 is 0x4000 in memory and 2 as an integer; a number whose low byte is 0 is still true."""
    x = array([2.0, -3.5, 0.0, -0.0, 1e30, 128.0], ml_dtypes.bfloat16)
    out = launch(mode, kernels.cast_all, x, Out((2, 6), "int32"), 6, BLOCK=8, TYPE=tl.int32)
    assert out[0].tolist() == out[1].tolist() == [2, -3, 0, 0, 2**31 - 1, 128]
    bools = launch(mode, kernels.to_bool, x, Out((4, 6), "int1"), 6, BLOCK=8)
    assert (bools == [True, True, False, False, True, True]).all()


# ---- dot, division, maths ----


@MODES
@types(("m", "n", "k"), [(3, 5, 7), (16, 16, 32), (17, 9, 65)])
@row("Numbers", "dot, division, maths")
def test_a_product_of_fp32_matrices_accumulates_in_fp32(m: int, n: int, k: int, mode: str) -> None:
    """`ieee` is the default: one chain of fused multiply-adds per element, k ascending."""
    a, b = random_numbers("fp32", (m, k), 1), random_numbers("fp32", (k, n), 2)
    for precision in (None, "ieee"):
        out = launch(
            mode, kernels.matrix_product, a, b, Out((m, n), "fp32"), M=m, N=n, K=k, PRECISION=precision
        )
        assert_same_bits(out, chain(a, b))


def chain(a: Array, b: Array) -> Array:
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for i in range(a.shape[1]):
        total = fma_f32(*np.broadcast_arrays(a[:, i, None], b[None, i, :], total)).astype(np.float32)
    return total


@MODES
@row("Numbers", "dot, division, maths")
def test_tf32_is_emulated(mode: str) -> None:
    """`input_precision="tf32"` rounds the operands to 10 bits of fraction, as a GPU does."""
    a, b = random_numbers("fp32", (5, 9), 1), random_numbers("fp32", (9, 6), 2)
    out = launch(mode, kernels.matrix_product, a, b, Out((5, 6), "fp32"), M=5, N=6, K=9, PRECISION="tf32")
    cut = [
        ((x.view(np.uint32).astype(np.uint64) + 0x1000) & 0xFFFFE000).astype(np.uint32).view(np.float32)
        for x in (a, b)
    ]
    assert not (out == chain(a, b)).all()
    np.testing.assert_allclose(out, chain(*cut), rtol=1e-3)


@MODES
@types("name", ["fp32", "fp64"])
@row("Numbers", "dot, division, maths")
def test_division_is_correctly_rounded(name: str, mode: str) -> None:
    """`x / y` is IEEE's quotient, of blocks and by a constant: no reciprocal instead."""
    x, y = random_numbers(name, (4000,), 3), random_numbers(name, (4000,), 4)
    with np.errstate(all="ignore"):
        assert_same_bits(two(mode, kernels.divide, x, y, name), x / y)
        a, b = pairs(floats(name), floats(name))
        assert_same_bits(two(mode, kernels.divide, a, b, name), a / b)
        assert_same_bits(one(mode, kernels.over_three, x, name), x / x.dtype.type(3))


@MODES
@types("name", ["fp32", "fp64"])
@row("Numbers", "dot, division, maths")
def test_nothing_is_reassociated_or_simplified(name: str, mode: str) -> None:
    """(x + 1e8) - 1e8 is not x, x * 0 and x - x are NaN for an infinity, -0.0 + 0.0 is +0.0, and no
    sum is fused."""
    x = np.concatenate([floats(name), random_numbers(name, (100,))])
    number = x.dtype.type
    with np.errstate(all="ignore"):
        assert_same_bits(one(mode, kernels.there_and_back, x, name), (x + number(1e8)) - number(1e8))
        assert_same_bits(one(mode, kernels.times_zero, x, name), x * number(0))
        assert_same_bits(one(mode, kernels.itself_less_itself, x, name), x - x)
        assert_same_bits(one(mode, kernels.plus_zero, x, name), x + number(0))
        a, b = random_numbers(name, (500,), 5), random_numbers(name, (500,), 6)
        assert_same_bits(two(mode, kernels.product_then_sum, a, b, name), a * b + b)
        assert (two(mode, kernels.product_and_sum, a, b, name) == 0).all()


@row("Numbers", "dot, division, maths")
def test_the_maximal_error_of_each_function_is_published() -> None:
    """docs/maths.md has a number of ULP for every function of `tl.math` that is not exact."""
    published = (SEMANTICS.parent / "maths.md").read_text()
    exact = {"abs", "fabs", "floor", "ceil", "fma", "umulhi", "fdiv", "div_rn", "sqrt_rn"}
    for name in ("exp", "exp2", "log", "log2", "sin", "cos", "sqrt", "rsqrt", "erf"):
        assert callable(getattr(tl.math, name))
        assert name not in exact
        assert f"| {name} |" in published, name


# ---- floating-point environment ----

UPWARD = {"x86_64": 0x800, "AMD64": 0x800, "aarch64": 0x400000}
X86 = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="MXCSR is x86's")
FLUSH = 0x8040  # flush to zero, denormals are zero


class Environment:
    """The caller's floating-point environment through the C library."""

    def __init__(self) -> None:
        self.libm = ctypes.CDLL(ctypes.util.find_library("m") or "libm.so.6")
        self.saved = (ctypes.c_uint32 * 64)()
        self.libm.fegetenv(self.saved)

    def control(self) -> int:
        """MXCSR without its sticky flags: the eighth word of glibc's `fenv_t`."""
        now = (ctypes.c_uint32 * 64)()
        self.libm.fegetenv(now)
        return int(now[7]) & ~0x3F

    def set_bits(self, bits: int) -> None:
        changed = (ctypes.c_uint32 * 64)(*self.saved)
        changed[7] |= bits
        self.libm.fesetenv(changed)

    def restore(self) -> None:
        self.libm.fesetenv(self.saved)


@contextmanager
def environment(bits: int) -> Iterator[Environment]:
    it = Environment()
    it.set_bits(bits)
    try:
        yield it
    finally:
        it.restore()


@X86
@MODES
@types("bits", [0, 0x6000, 0x2000, FLUSH], ids=["usual", "toward-zero", "downward", "flush"])
@row("Numbers", "FP environment")
def test_the_callers_environment_is_never_changed(bits: int, mode: str) -> None:
    """Rounding mode, flush-to-zero and masks of the calling thread are after a launch what they were."""
    x = array([1.0, NAN, INF, 1e-320, 5.0], np.float64)
    out = np.zeros((5, 5))
    kernel = (
        kernels.many_operations if mode == "compiled" else bl.jit(interpret=True)(kernels.many_operations.fn)
    )
    kernel[1](x, x, out, 5, BLOCK=8)
    with environment(bits) as it:
        before = it.control()
        kernel[1](x, x, out, 5, BLOCK=8)
        after = it.control()
    assert before == after


@X86
@MODES
@types("name", ["fp32", "fp64"])
@types("bits", [0x6000, 0x2000, FLUSH], ids=["toward-zero", "downward", "flush"])
@row("Numbers", "FP environment")
def test_results_do_not_depend_on_the_callers_environment(bits: int, name: str, mode: str) -> None:
    """A thread that rounds otherwise or flushes subnormals (`-ffast-math`, `set_flush_denormal`)
    gets IEEE's bits.

    The first launch in each environment compiles: what the compiler folds is the same too."""
    x, y = random_numbers(name, (1000,), 7), random_numbers(name, (1000,), 8)
    tiny = np.finfo(x.dtype).smallest_subnormal
    x[::7], y[::5] = tiny * 3, tiny
    fn, folded = kernels.many_operations.fn, kernels.folded_floats.fn
    results = []
    for changed in (bits, 0):
        outs = np.zeros((5, 1000), x.dtype), np.zeros(4, np.float64)
        new, constants = (bl.jit(interpret=mode == "interpreted")(f) for f in (fn, folded))
        with environment(changed):
            new[10](x, y, outs[0], 1000, BLOCK=100)
            constants[1](outs[1], A=1e-310, B=3.0)
        results.append(outs)
    for one_, other in zip(*results, strict=True):
        assert_same_bits(one_, other)


@MODES
@types("name", FLOATS)
@row("Numbers", "FP environment")
def test_subnormals_are_kept(name: str, mode: str) -> None:
    """Loads, sums, products, folds and conversions of subnormal numbers flush nothing to zero."""
    smallest = floats(name)[len((0.0, 1.0, 0.5, 2.5, 3.0, 7.25, 1e-3, 100.0, 1 / 3)) + 2]
    x = np.full(40, smallest)
    assert smallest != 0
    zeros = np.zeros(40, x.dtype)
    assert_same_bits(two(mode, kernels.add, x, zeros, name), x)
    twice = (x.astype(np.float64) * 2).astype(x.dtype)
    assert_same_bits(two(mode, kernels.add, x, x, name), twice)
    assert_same_bits(two(mode, kernels.multiply, x, np.full(40, 2, x.dtype), name), twice)
    total = launch(mode, kernels.summed, x, Out((1,), name), N=40, RESULT=TYPES[name], DTYPE=None)
    assert float(total[0]) == 40 * float(smallest)


# ---- bool ----


@MODES
@types("name", ALL)
@row("Numbers", "bool")
def test_a_non_zero_value_is_true_whatever_its_low_byte(name: str, mode: str) -> None:
    """256, 2^32, 0.5, 1e-40 and NaN are true; zeros of both signs are not; memory holds 0 and 1."""
    x = numbers(name)
    if name in INTEGERS and x.itemsize > 1:
        x = np.concatenate([x, array([1 << k for k in range(8, 8 * x.itemsize - 1)], x.dtype)])
    n = len(x)
    out = launch(mode, kernels.to_bool, x, Out((4, n), "int1"), n, BLOCK=n + 3)
    with np.errstate(invalid="ignore"):
        expected = x.astype(np.float64) != 0
    for k in range(4):
        assert (out[k] == expected).all(), f"row {k}"


@MODES
@row("Numbers", "bool")
def test_a_byte_that_is_not_zero_reads_as_true(mode: str) -> None:
    """2, 128 and 255 in memory are True to every operation, and are stored as 1."""
    x = array([0, 1, 2, 128, 255, 254] * 6, np.uint8).view(np.bool_)
    y = array([1, 0, 2, 0, 254, 1] * 6, np.uint8).view(np.bool_)
    a, b = x.view(np.uint8) != 0, y.view(np.uint8) != 0
    n = len(x)
    out, counts = launch_in_mode(
        mode, kernels.bools, 1, x, y, Out((6, n), "int1"), Out((4,), "int32"), n, BLOCK=n + 1
    )
    for k, expected in enumerate((a & b, a | b, a ^ b, ~a, a ^ b, a)):
        assert (out[k].view(np.uint8) == expected).all(), f"row {k}"
    assert counts.tolist() == [a.sum(), a.sum(), a.sum(), 0]


# ---- random numbers ----


def philox(seed: int, offset: int) -> list[int]:
    """Philox4x32-10 of Python's integers: the offset's low and high word are the first two counters."""
    counters = [offset & 0xFFFFFFFF, offset >> 32 & 0xFFFFFFFF, 0, 0]
    key = [seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF]
    for _ in range(10):
        a, b = counters[0] * 0xD2511F53, counters[2] * 0xCD9E8D57
        counters = [
            (b >> 32) ^ counters[1] ^ key[0], b & 0xFFFFFFFF,
            (a >> 32) ^ counters[3] ^ key[1], a & 0xFFFFFFFF,
        ]  # fmt: skip
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return counters


@MODES
@types("seed", [0, 1, 42, 2**31, 2**40 + 3, -1])
@row("Numbers", "random numbers")
def test_random_words_are_philox(seed: int, mode: str) -> None:
    """Triton's words: Philox4x32-10, the 64-bit seed as key, int32 offsets as the first counter.

    The words of seed and offset 0 are the published test vector."""
    assert philox(0, 0)[0] == 0x6627E8D5
    offsets = array([0, 1, 2, 77, 2**31 - 1, 12345], np.int32)
    n = len(offsets)
    out = launch(mode, random_kernels.words, Out((4, n), "uint32"), offsets, seed, n, BLOCK=8, ROUNDS=10)
    assert out.T.tolist() == [philox(seed, int(offset)) for offset in offsets]


@types("threads", [1, 2, 3])
@types("block", [7, 64])
@row("Numbers", "random numbers")
def test_random_numbers_depend_on_no_thread_and_no_block(block: int, threads: int) -> None:
    """One offset, one number: whatever the block, the number of threads and the mode."""
    n = 500
    offsets = np.arange(n, dtype=np.int32)
    results = []
    for mode, extent in (("compiled", block), ("compiled", 512), ("interpreted", 100)):
        with bl.num_threads(threads):
            results.append(
                launch(
                    mode,
                    random_kernels.words,
                    Out((4, n), "uint32"),
                    offsets,
                    9,
                    n,
                    grid=bl.cdiv(n, extent),
                    BLOCK=extent,
                    ROUNDS=10,
                )
            )
    for other in results[1:]:
        assert_same_bits(other, results[0])


# ---- atomics ----

_EXTREME = {"max": max, "min": min}


def name_of(values: Array) -> str:
    return next(name for name, dtype in NUMPY_DTYPES.items() if dtype == values.dtype)


def updated(mode: str, kind: str, values: Array, start: Array) -> tuple[Array, Array]:
    """Each value at an element of its own: what is there afterwards, and what was found."""
    n = len(values)
    kernel = atomic_kernels.rmw
    out, old = launch_in_mode(
        mode, kernel, 1, np.zeros(1, np.int8), values, np.arange(n, dtype=np.int32),
        Out((n,), name_of(start), start), Out((n,), name_of(start), np.zeros_like(start)),
        n, KIND=kind, BLOCK=n,
    )  # fmt: skip
    live = np.arange(n) % 5 != 3
    assert_same_bits(old[live], start[live])
    assert_same_bits(out[~live], start[~live])
    return out[live], live


@MODES
@types("kind", ["max", "min"])
@types("name", ["int32", "uint32", "int64", "uint64"])
@row("Numbers", "atomics")
def test_atomic_extremes_compare_unsigned_numbers_as_unsigned(name: str, kind: str, mode: str) -> None:
    """2^31 and more is large for uint32 and negative for int32."""
    a, b = pairs(integers(name), integers(name))
    out, live = updated(mode, kind, a, b)
    expected = [_EXTREME[kind](int(x), int(y)) for x, y in zip(a[live], b[live], strict=True)]
    assert_same_bits(out, array(expected, a.dtype))


@MODES
@types("kind", ["max", "min"])
@types("name", ["fp32", "fp64"])
@row("Numbers", "atomics")
def test_atomic_extremes_order_zeros_by_sign(name: str, kind: str, mode: str) -> None:
    """-0.0 < +0.0, and every other pair of floats by value; NaN go by their bits."""
    some = floats(name)
    a, b = pairs(some[~np.isnan(some)], some[~np.isnan(some)])
    out, live = updated(mode, kind, a, b)
    expected = extreme(a[live], b[live], largest=kind == "max")
    assert_same_bits(out, expected)


@MODES
@types("name", ["int32", "uint32", "int64", "uint64"])
@row("Numbers", "atomics")
def test_atomic_sums_wrap(name: str, mode: str) -> None:
    """Modulo 2^width, as `+`."""
    a, b = pairs(integers(name), integers(name))
    out, live = updated(mode, "add", a, b)
    assert_same_bits(out, operate("+", a[live], b[live], name))


@MODES
@types("threads", [1, 2, 5])
@row("Numbers", "atomics")
def test_deterministic_launches_add_floats_by_program_id(threads: int, mode: str) -> None:
    """`deterministic=True`: one order of additions, whatever the number of threads."""
    programs, block = 150, 7
    x = random_numbers("fp32", (programs * block,))
    right = np.zeros(3, np.float32)
    for i, value in enumerate(x):
        right[i % 3] += value
    for _ in range(3):
        with bl.num_threads(threads):
            start = np.zeros(3, np.float32)
            out = launch(
                mode, atomic_kernels.many_sums, x, Out((3,), "fp32", start),
                grid=programs, BLOCK=block, deterministic=True,
            )  # fmt: skip
        assert_same_bits(out, right)
