"""Reductions along every axis: exact where they are exact, in the published order where they round.

The order of float sums and of a user's function is that of `blocklang.ops.reduction`, done again here. Beside
that, float sums are held against the float64 sum, by Higham's bound for chains of c additions of n numbers:
|error| <= c u / (1 - c u) * sum |x|, where u = 2**-24 for fp32, and c = ceil(n / 32) + 5 for 32 partial
results and n for one; 16-bit floats are rounded once more.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.numerics import reduction_kernels as kernels
from tests.numerics.expected import as_float, exact, wrapped
from tests.numerics.launching import Array, Out, assert_same_bits, launch_both, launch_one
from tests.numerics.values import (
    ALL,
    EXTENTS,
    FLOATS,
    INTEGERS,
    NUMPY_DTYPES,
    SHAPES_2D,
    SHAPES_3D,
    SIGNED,
    TYPES,
    bits_of,
    limits,
    numbers,
    random_numbers,
)

UNIT = {"fp16": 2.0**-11, "bf16": 2.0**-8, "fp32": 2.0**-24, "fp64": 2.0**-53}
Reduction = Callable[[Array, int], Array]


def small_to_32(name: str) -> str:
    if bits_of(name) >= 32 or name in FLOATS:
        return name
    return "int32" if name in SIGNED else "uint32"


# ---- references: fold one axis away ----


def published_sum(x: Array, axis: int, name: str) -> Array:
    """32 partial results along the innermost axis of more than one element, else one; then in halves."""
    partials = 32 if math.prod(x.shape[axis + 1 :]) == 1 else 1
    wide = np.moveaxis(x, axis, 0).astype(np.float64 if name == "fp64" else np.float32)
    total = np.zeros((partials, *wide.shape[1:]), wide.dtype)
    for i, element in enumerate(wide):
        total[i % partials] = total[i % partials] + element
    while len(total) > 1:
        half = len(total) // 2
        total = total[:half] + total[half:]
    return as_float(np.asarray(total[0], np.float64), name)


def sum_bound(x: Array, axis: int, name: str) -> Array:
    chain = math.ceil(x.shape[axis] / 32) + 5 if math.prod(x.shape[axis + 1 :]) == 1 else x.shape[axis]
    unit = UNIT["fp64"] if name == "fp64" else UNIT["fp32"]
    bound = chain * unit / (1 - chain * unit) * np.abs(x.astype(np.float64)).sum(axis)
    if name in ("fp16", "bf16"):
        bound = bound + UNIT[name] * (np.abs(x.astype(np.float64).sum(axis)) + bound)
    return np.asarray(bound)


def sum_reference(name: str) -> Reduction:
    if name in FLOATS:
        return lambda x, axis: published_sum(x, axis, name)
    return lambda x, axis: wrapped(np.asarray(exact(x).sum(axis)), small_to_32(name))


def extreme_type(name: str) -> str:
    """`max` and `min` without indices: 16-bit floats give fp32, and integers under 32 bits int32."""
    if name in ("fp16", "bf16"):
        return "fp32"
    return "int32" if name in INTEGERS and bits_of(name) < 32 else name


def extreme_reference(largest: bool, result: str) -> Reduction:
    """NaN is ignored unless there is nothing else; -0.0 < +0.0."""

    def reduce(x: Array, axis: int) -> Array:
        if x.dtype.kind in "biu":
            return np.asarray(x.max(axis) if largest else x.min(axis)).astype(NUMPY_DTYPES[result])
        y = x.astype(np.float64)
        fill = -np.inf if largest else np.inf
        best = (
            np.where(np.isnan(y), fill, y).max(axis) if largest else np.where(np.isnan(y), fill, y).min(axis)
        )
        nothing = np.isnan(y).all(axis)
        zero_of_sign = (y == 0) & (np.signbit(y) != largest)
        sign = 0.0 if largest else -0.0
        zero = np.where(zero_of_sign.any(axis), sign, -sign)
        return np.where(nothing, np.nan, np.where(best == 0, zero, best)).astype(NUMPY_DTYPES[result])

    return reduce


def index_reference(largest: bool) -> Reduction:
    """The first index of the extreme; 0 if all are NaN. Signed zeros tie."""

    def reduce(x: Array, axis: int) -> Array:
        if x.dtype == np.bool_:
            x = x.astype(np.int32)
        if x.dtype.kind in "iu":
            return np.asarray((np.argmax if largest else np.argmin)(x, axis), np.int32)
        y = x.astype(np.float64)
        best = extreme_reference(largest, "fp64")(x, axis)
        hits = (y == np.expand_dims(best, axis)) | np.isnan(y).all(axis, keepdims=True)
        return np.asarray(np.argmax(hits, axis), np.int32)

    return reduce


def value_reference(largest: bool, result: str) -> Reduction:
    """The element at that index, with its own sign."""

    def reduce(x: Array, axis: int) -> Array:
        index = np.expand_dims(index_reference(largest)(x, axis), axis)
        return np.take_along_axis(x, index.astype(np.int64), axis).squeeze(axis).astype(NUMPY_DTYPES[result])

    return reduce


def tree_reference(function: Callable[[Array, Array], Array]) -> Reduction:
    """Neighbours 2i and 2i + 1 are combined in each round; an odd last one is carried over."""

    def reduce(x: Array, axis: int) -> Array:
        items = list(np.moveaxis(x, axis, 0))
        while len(items) > 1:
            pairs = [function(items[i], items[i + 1]) for i in range(0, len(items) - 1, 2)]
            items = pairs + items[2 * len(pairs) :]
        return np.asarray(items[0])

    return reduce


def wrapping(name: str, function: Callable[[Any, Any], Any]) -> Callable[[Array, Array], Array]:
    return lambda a, b: wrapped(np.asarray(function(exact(np.asarray(a)), exact(np.asarray(b)))), name)


def numpy_ufunc(ufunc: Any) -> Reduction:
    return lambda x, axis: np.asarray(ufunc.reduce(x, axis=axis), x.dtype)


# ---- running them ----

Cases = list[tuple[Any, Reduction]]


# Of operations that share their machinery the tests that are not slow take one each.
QUICK = frozenset({"sum_of", "max_of", "min_value", "max_index", "argmin_of", "xor_of", "digits_of"})


def families(name: str, *, quick: bool = True) -> dict[str, Cases]:
    """The reductions of a type, by the type of their results."""
    cases: list[tuple[Any, str, Reduction]] = [
        (kernels.sum_of, small_to_32(name), sum_reference(name)),
        (kernels.max_of, extreme_type(name), extreme_reference(True, extreme_type(name))),
        (kernels.min_of, extreme_type(name), extreme_reference(False, extreme_type(name))),
        (kernels.argmax_of, "int32", index_reference(True)),
        (kernels.argmin_of, "int32", index_reference(False)),
        (kernels.max_index, "int32", index_reference(True)),
        (kernels.min_index, "int32", index_reference(False)),
    ]
    kept = "fp32" if name == "bf16" else name
    cases += [(kernels.max_value, kept, value_reference(True, kept))]
    cases += [(kernels.min_value, kept, value_reference(False, kept))]
    cases += [(kernels.last_of, name, tree_reference(lambda a, b: b))]
    if name in INTEGERS:
        cases += [(kernels.xor_of, name, numpy_ufunc(np.bitwise_xor))]
        cases += [(kernels.or_of, name, numpy_ufunc(np.bitwise_or))]
        cases += [(kernels.product_of, name, tree_reference(wrapping(name, lambda a, b: a * b)))]
    if name in ("int32", "uint32", "int64", "uint64"):
        cases += [(kernels.digits_of, name, tree_reference(wrapping(name, lambda a, b: a * 31 + b * 17 + 1)))]
    if name == "fp64":
        cases += [(kernels.product_of, name, tree_reference(np.multiply))]
    if name == "fp32":
        cases += [(kernels.product_of, name, tree_reference(np.multiply))]
        cases += [(kernels.digits_of, name, tree_reference(lambda a, b: a * _f(31) + b * _f(17) + _f(1)))]
    grouped: dict[str, Cases] = {}
    for kernel, result, reference in cases:
        if quick and kernel.__name__ not in QUICK:
            continue
        grouped.setdefault(result, []).append((kernel, reference))
    return grouped


def _f(value: float) -> np.float32:
    return np.float32(value)


def ops_of(cases: Cases) -> tuple[Any, ...]:
    return tuple(kernel for kernel, _ in cases)


def reduced(reference: Reduction, x: Array, axis: int) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(reference(x, axis))


def specials(name: str, shape: tuple[int, ...], seed: int) -> Array:
    """Mostly moderate numbers, and a few special ones; those of opposite infinities do not meet often."""
    generator = np.random.default_rng(seed)
    x = random_numbers(name, shape, seed)
    return np.where(generator.random(shape) < 0.1, generator.choice(numbers(name), shape), x)


def check_one_axis(name: str, result: str, cases: Cases, extent: int, n: int, other: float = 0) -> None:
    x = random_numbers(name, (extent,), extent)
    x[n:] = other
    rows = launch_one(
        kernels.along_1d, 1, x[:n].copy(), Out((len(cases),), result), n,
        BLOCK=extent, OPS=ops_of(cases), RESULT=TYPES[result], OTHER=other,
    )  # fmt: skip
    for row, (kernel, reference) in zip(rows, cases, strict=True):
        expected = reduced(reference, x, 0).astype(NUMPY_DTYPES[result])
        assert_same_bits(row, expected, f"{kernel.__name__} of {name}, {extent} lanes")


def check_two_axes(name: str, x: Array, *, quick: bool = True) -> None:
    m, n = x.shape
    for result, cases in families(name, quick=quick).items():
        rows = launch_one(
            kernels.along_2d, 1, x, Out((len(cases), n + m), result),
            M=m, N=n, OPS=ops_of(cases), RESULT=TYPES[result],
        )  # fmt: skip
        for row, (kernel, reference) in zip(rows, cases, strict=True):
            expected = np.concatenate([reduced(reference, x, 0), reduced(reference, x, 1)])
            what = f"{kernel.__name__} of {name} {x.shape}"
            assert_same_bits(row, expected.astype(NUMPY_DTYPES[result]), what)


@pytest.mark.parametrize("name", ALL)
def test_one_axis(name: str) -> None:
    """A block that is no power of two, whose masked lanes hold 0."""
    for result, cases in families(name).items():
        check_one_axis(name, result, cases, 100, 70)


@pytest.mark.slow
@pytest.mark.parametrize(("extent", "n"), [(1, 1), (7, 5), (33, 33), (257, 256)])
@pytest.mark.parametrize("name", ALL)
def test_every_reduction_of_one_axis(name: str, extent: int, n: int) -> None:
    for result, cases in families(name, quick=False).items():
        check_one_axis(name, result, cases, extent, n)


@pytest.mark.parametrize("extent", EXTENTS)
@pytest.mark.parametrize("name", ["int16", "fp16", "fp32", "fp64"])
def test_sums_of_every_extent(name: str, extent: int) -> None:
    x = random_numbers(name, (extent,), extent)
    cases: Cases = [(kernels.sum_of, sum_reference(name))]
    check_one_axis(name, small_to_32(name), cases, extent, extent)
    if name in FLOATS:
        error = np.abs(published_sum(x, 0, name).astype(np.float64) - x.astype(np.float64).sum())
        assert error <= sum_bound(x, 0, name)


@pytest.mark.parametrize("name", ["bf16", "fp32"])
@pytest.mark.parametrize("other", [float("-inf"), float("nan"), 1.0])
def test_masked_lanes_take_part(name: str, other: float) -> None:
    """What a masked lane holds is reduced like any other number."""
    for result, cases in families(name).items():
        check_one_axis(name, result, cases, 100, 40, other)


@pytest.mark.parametrize("shape", SHAPES_2D)
@pytest.mark.parametrize("name", ["int8", "fp32"])
def test_two_axes(name: str, shape: tuple[int, int]) -> None:
    check_two_axes(name, random_numbers(name, shape))


@pytest.mark.parametrize("name", ["int32", "fp32"])
def test_axes_that_are_kept(name: str) -> None:
    m, n = 5, 37
    x = random_numbers(name, (m, n))
    for result, cases in families(name).items():
        rows = launch_one(
            kernels.axes_kept, 1, x, Out((len(cases), n + m + 2), result),
            M=m, N=n, OPS=ops_of(cases), RESULT=TYPES[result],
        )  # fmt: skip
        for row, (kernel, reference) in zip(rows, cases, strict=True):
            whole = reduced(reference, x.reshape(-1), 0).reshape(1)
            expected = np.concatenate([reduced(reference, x, 0), reduced(reference, x, 1), whole, whole])
            assert_same_bits(row, expected.astype(NUMPY_DTYPES[result]), f"{kernel.__name__} of {name}")


def with_special_values(name: str, shape: tuple[int, int]) -> Array:
    """A tenth of the numbers are special; a row and a column of NaN, and one of zeros of both signs."""
    x = specials(name, shape, 4)
    if name in FLOATS:
        x[:, 0] = np.nan
        x[:, -1] = np.where(np.arange(shape[0]) == shape[0] // 2, 0.0, -0.0)
        x[shape[0] // 3, :] = np.nan
    return x


@pytest.mark.parametrize("name", ["int1", "int64", "fp16", "fp64"])
def test_special_values(name: str) -> None:
    check_two_axes(name, with_special_values(name, (33, 12)))


@pytest.mark.slow
@pytest.mark.parametrize("shape", [*SHAPES_2D, (100, 7), (33, 65)])
@pytest.mark.parametrize("name", ALL)
def test_every_reduction_of_two_axes(name: str, shape: tuple[int, int]) -> None:
    check_two_axes(name, with_special_values(name, shape), quick=False)


@pytest.mark.parametrize("shape", SHAPES_3D)
@pytest.mark.parametrize("name", ["fp32", "uint16"])
def test_three_axes(name: str, shape: tuple[int, int, int]) -> None:
    l, m, n = shape  # noqa: E741 - the kernel's names
    x = random_numbers(name, shape)
    for result, cases in families(name).items():
        rows = launch_one(
            kernels.along_3d, 1, x, Out((len(cases), m * n + l * n + l * m), result),
            L=l, M=m, N=n, OPS=ops_of(cases), RESULT=TYPES[result],
        )  # fmt: skip
        for row, (kernel, reference) in zip(rows, cases, strict=True):
            expected = np.concatenate([reduced(reference, x, axis).reshape(-1) for axis in range(3)])
            assert_same_bits(
                row, expected.astype(NUMPY_DTYPES[result]), f"{kernel.__name__} of {name} {shape}"
            )


# ---- the type to add in ----


@pytest.mark.parametrize(
    ("name", "added"),
    [("int8", "int64"), ("uint8", "int8"), ("int1", "fp32"), ("fp16", "fp32"), ("fp32", "fp64")],
)
def test_sums_in_another_type(name: str, added: str) -> None:
    x = random_numbers(name, (5, 37))
    result = launch_one(kernels.sum_as, 1, x, Out((6,), added), M=5, N=37, TYPE=TYPES[added])
    wide = x.astype(NUMPY_DTYPES[added])
    reference: Reduction = (
        (lambda v, axis: published_sum(v, axis, added))
        if added in FLOATS
        else (lambda v, axis: wrapped(np.asarray(exact(v).sum(axis)), added))
    )
    expected = np.concatenate([reference(wide, 1), reference(wide.reshape(-1), 0).reshape(1)])
    assert_same_bits(result, expected)


def test_sums_of_small_integers_do_not_overflow() -> None:
    x = np.full((3, 300), limits("int8")[0], np.int8)
    (result,) = launch_one(
        kernels.along_2d,
        1,
        x,
        Out((1, 303), "int32"),
        M=3,
        N=300,
        OPS=(kernels.sum_of,),
        RESULT=TYPES["int32"],
    )
    assert set(result[300:].tolist()) == {-128 * 300}


# ---- functions of the user ----


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", [(5, 37), (33, 4), (1, 9), (64, 16)])
def test_a_pair_of_states(shape: tuple[int, int], axis: int) -> None:
    m, n = shape
    x, y = random_numbers("int32", shape, 1), random_numbers("int32", shape, 2)
    kept = (n, m)[axis]
    results = launch_both(
        kernels.composed, 1, x, y, Out((kept,), "int32"), Out((kept,), "int32"), M=m, N=n, AXIS=axis, R=kept
    )
    a = np.moveaxis(exact(x), axis, 0)
    b = np.moveaxis(exact(y), axis, 0)
    scale, shift = a[0], b[0]
    for i in range(1, len(a)):  # any association gives the same
        scale, shift = scale * a[i], shift * a[i] + b[i]
    assert_same_bits(results[0], wrapped(scale, "int32"))
    assert_same_bits(results[1], wrapped(shift, "int32"))


@pytest.mark.parametrize("extent", [1, 3, 33, 257, 1000])
def test_three_states(extent: int) -> None:
    """Welford's formulas in float64: the mean to 2 * log2(n) + 4 roundings, well within 1e-13."""
    x = random_numbers("fp64", (extent,)) + 10
    count, mean, squares = launch_one(kernels.moments, 1, x, Out((3,), "fp64"), N=extent)
    assert count == extent
    exactly = np.asarray(x, np.longdouble)
    assert abs(mean - exactly.mean()) <= 1e-13 * abs(exactly.mean())
    assert abs(squares - ((exactly - exactly.mean()) ** 2).sum()) <= 1e-12 * max(extent, 1)


@pytest.mark.parametrize("shape", [(5, 37), (100, 3), (1, 7)])
def test_a_branch_per_lane(shape: tuple[int, int]) -> None:
    x = random_numbers("fp32", shape)
    lengths = np.random.default_rng(1).integers(0, 5, shape, np.int32)
    m, n = shape
    result = launch_one(kernels.longest, 1, x, lengths.astype(np.float32), Out((2, n), "fp32"), M=m, N=n)
    first = np.argmax(lengths, 0)
    assert_same_bits(result[0], x[first, np.arange(n)])
    assert_same_bits(result[1], lengths.max(0).astype(np.float32))


@pytest.mark.parametrize("shape", [(4096,), (4097,), (9000,), (8192, 2), (3, 4100), (2, 5001, 2)])
def test_long_trees(shape: tuple[int, ...]) -> None:
    """Axes that are folded in stretches, with and without a rest."""
    x = random_numbers("int32", shape)
    axis = int(np.argmax(shape))
    kept = shape[:axis] + shape[axis + 1 :]
    result = launch_one(
        kernels.long_tree,
        1,
        x,
        Out((math.prod(kept),), "int32"),
        SHAPE=shape,
        AXIS=axis,
        KEPT=math.prod(kept),
    )
    reference = tree_reference(wrapping("int32", lambda a, b: a * 31 + b * 17 + 1))
    assert_same_bits(result, np.asarray(reference(x, axis), np.int32).reshape(-1))


def test_a_long_tree_of_pairs() -> None:
    x = random_numbers("fp32", (5000,))
    x = x[np.isfinite(x)]
    value, index = launch_both(kernels.long_best, 1, x, Out((1,), "fp32"), Out((1,), "int32"), N=len(x))
    assert (value[0], index[0]) == (x.max(), np.argmax(x))


def rows_of_ends(name: str, n: int) -> Array:
    """Rows whose extremum is an end of the type, tied, next to NaN, or missing."""
    smallest, largest = (-np.inf, np.inf) if name in FLOATS else limits(name)
    rows = [np.zeros(n), np.arange(n) % 100, -(np.arange(n) % 100), np.arange(n) // 16 % 7]
    for end in (smallest, largest):
        rows.append(np.full(n, end, object))
        for place in (0, n // 2, n - 1):
            rows.append(np.full(n, end, object))
            rows[-1][place] = 3
            rows.append(np.full(n, 3, object))
            rows[-1][place] = end
            rows[-1][n - 1] = end
    if name in FLOATS:
        rows += [
            np.full(n, np.nan),
            np.where(np.arange(n) % 3, np.nan, -np.inf),
            np.where(np.arange(n) % 2, 0.0, -0.0),
        ]
        rows += [np.where(np.arange(n) < n - 1, np.nan, end) for end in (-np.inf, np.inf, 1.0, -0.0)]
    if name not in SIGNED and name not in FLOATS:
        rows = [np.abs(row) for row in rows]
    with np.errstate(invalid="ignore"):  # NaN
        return np.array([list(row) for row in rows]).astype(NUMPY_DTYPES[name])


@pytest.mark.parametrize("n", [1, 37, 1000])
@pytest.mark.parametrize(
    "name", ["fp32", "fp64", "fp16", "bf16", "int32", "int64", "uint32", "int8", "uint8", "int16"]
)
def test_places_of_ends(name: str, n: int) -> None:
    """Ties, ends of the type, NaN and nothing but NaN; rows that end inside of the block."""
    x = rows_of_ends(name, n)
    short = n // 2 + 1
    ends = np.where(np.arange(n) < short, x, np.zeros((), x.dtype))
    found = launch_one(kernels.places, (len(x),), x, Out((len(x), 4), "int32"), short, N=n)
    for column, rows, largest in ((0, x, True), (1, x, False), (2, ends, True), (3, ends, False)):
        assert_same_bits(found[:, column], reduced(index_reference(largest), rows, 1))


# ---- reductions that meet their operand again ----


@pytest.mark.parametrize("shape", [(5, 37), (16, 64), (3, 1)])
def test_results_that_are_broadcast(shape: tuple[int, int]) -> None:
    x = random_numbers("int32", shape)
    m, n = shape
    result = launch_one(kernels.centred, 1, x, Out((2, m, n), "int32"), M=m, N=n)
    wide = exact(x)
    expected = wide - wide.max(1)[:, None] + wide.min(0)[None, :]
    assert_same_bits(result[0], wrapped(expected, "int32"))
    assert_same_bits(result[1], wrapped(wide * wide.sum(), "int32"))


def softmax(x: Array, axis: int) -> Array:
    wide = x.astype(np.longdouble)
    with np.errstate(invalid="ignore"):
        powers = np.exp(wide - np.max(wide, axis, keepdims=True))
        return np.asarray(powers / powers.sum(axis, keepdims=True))


def softmax_bound(name: str, chain: int) -> float:
    """The relative error of a quotient of powers, with |x - max| < 8, in half units u of the last place.

    x - max rounds once, which moves exp by 4 u; exp errs by 0.95 ULP, at most 1.9 u; both happen above and
    below the line; the positive terms of the sum see a chain of additions, 1 u each, and the quotient 1 u.
    """
    return UNIT[name] * (2 * (4 + 1.9) + chain + 1)


@pytest.mark.parametrize("name", ["fp32", "fp64"])
@pytest.mark.parametrize("extent", [1, 7, 100, 257])
def test_softmax(name: str, extent: int) -> None:
    for n in {1, extent // 2 + 1, extent}:
        x = random_numbers(name, (n,))
        result = launch_one(kernels.softmax, 1, x, Out((n,), name), n, BLOCK=extent)
        error = np.abs(result - softmax(x, 0)) / softmax(x, 0)
        assert error.max() <= softmax_bound(name, math.ceil(extent / 32) + 5)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", ["fp16", "bf16", "fp32", "fp64"])
def test_softmax_of_rows_and_columns(name: str, axis: int) -> None:
    x = random_numbers(name, (5, 37))
    result_type = name if name == "fp64" else "fp32"
    result = launch_one(kernels.softmax_rows, 1, x, Out((5, 37), result_type), M=5, N=37, AXIS=axis)
    error = np.abs(result - softmax(x, axis)) / softmax(x, axis)
    assert error.max() <= softmax_bound(result_type, x.shape[axis])


def test_softmax_of_nothing_but_infinity_is_nan() -> None:
    x = np.full(33, -np.inf, np.float32)
    assert np.isnan(launch_one(kernels.softmax, 1, x, Out((33,), "fp32"), 33, BLOCK=100)).all()
