"""Every mathematical function of every float type.

The bounds are those that `blocklang.maths.registry` states, in ULP of the exact result, which is float64
NumPy for fp32 and mpmath for fp64. fp16 and bf16 have no bound: they are the fp32 result rounded once, to the
bit.
"""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest

import blocklang as bl
import blocklang.language as tl
from blocklang.language.extra import libdevice
from blocklang.maths.registry import RECIPES
from blocklang.ops.elementwise import FUNCTIONS
from tests.maths.reference import EXACT, FORMATS, PRECISION, in_f64, samples, ulp_error, ulp_errors_f32
from tests.maths.special_reference import DIRECTED, error_unit, judged
from tests.maths.special_reference import PRECISION as SPECIAL_PRECISION
from tests.numerics.expected import as_float, fma_f32, fma_f64, hard_to_round
from tests.numerics.kernels import binary, sigmoid, ternary, unary
from tests.numerics.launching import Array, Out, assert_same_bits, launch_one
from tests.numerics.values import FLOATS, NUMPY_DTYPES, TYPES, floats, pairs

# Functions whose result is one operation or exact; the others have a recipe with a stated error.
ROUNDED_ONCE = {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "rint": np.rint, "sqrt": np.sqrt}
RECIPE_NAMES = tuple(name for name in FUNCTIONS if name not in ROUNDED_ONCE and name not in DIRECTED)
NAMES = tuple(name for name in FUNCTIONS if name not in DIRECTED)
# A few functions to a kernel, so that a failure stays near its cause.
GROUPS = [NAMES[i : i + 6] for i in range(0, len(NAMES), 6)]
IR_NAMES = {"fp32": "f32", "fp64": "f64"}


def apply(names: tuple[str, ...], x: Array, name: str, block: int = 257) -> dict[str, Array]:
    """The functions of a block of one type, by name."""
    rows = launch_one(
        unary, bl.cdiv(len(x), block), x, Out((len(names), len(x)), name), len(x),
        BLOCK=block, OPS=tuple(getattr(libdevice, n) for n in names), RESULT=TYPES[name],
    )  # fmt: skip
    return dict(zip(names, rows, strict=True))


def arguments(name: str, function: str, count: int) -> Array:
    """Special values, every kind of bit pattern, and numbers of the function's domain."""
    if function in ROUNDED_ONCE or function not in EXACT:
        generator = np.random.default_rng(3)
        halves = np.arange(-20, 20) / 2
        large = generator.uniform(-1, 1, 200) * 2.0 ** generator.integers(0, 60, 200)
        return np.concatenate([floats(name), halves, large]).astype(NUMPY_DTYPES[name])
    return np.concatenate(
        [floats(name), samples(function, IR_NAMES[name], count, np.random.default_rng(11))]
    ).astype(NUMPY_DTYPES[name])


@pytest.mark.parametrize("group", GROUPS, ids="-".join)
def test_fp32(group: tuple[str, ...]) -> None:
    x = np.concatenate([arguments("fp32", function, 1500) for function in group])
    for function, result in apply(group, x, "fp32").items():
        if function in ROUNDED_ONCE:
            with np.errstate(all="ignore"):
                expected = as_float(np.asarray(ROUNDED_ONCE[function](x.astype(np.float64))), "fp32")
            assert_same_bits(result, expected, function)
            continue
        recipe = RECIPES[function, "f32"]
        errors = ulp_errors_f32(result, in_f64(recipe, [x]))
        worst = int(np.argmax(errors))
        assert errors[worst] <= recipe.max_ulp, f"{function}({x[worst]!r}) errs by {errors[worst]} ULP"


def worst_error_f64(function: str, x: Array, result: Array) -> tuple[float, float]:
    worst = (0.0, 0.0)
    usual = PRECISION if function in ("sin", "cos", "tan") else 160
    with mpmath.workprec(SPECIAL_PRECISION.get(function, usual)):
        for argument, value in zip(x.tolist(), result.tolist(), strict=True):
            if np.isfinite([argument, value]).all() and judged(function, [argument]):
                exact = EXACT[function](mpmath.mpf(argument))
                error = ulp_error(value, exact, FORMATS["f64"], error_unit(function, [argument], exact))
                worst = max(worst, (error, argument))
    return worst


@pytest.mark.parametrize("group", GROUPS, ids="-".join)
def test_fp64(group: tuple[str, ...]) -> None:
    """Few arguments: mpmath is slow, and tests/maths tries many more on the same recipes."""
    x = np.concatenate([arguments("fp64", function, 80) for function in group])
    for position, (function, result) in enumerate(apply(group, x, "fp64").items()):
        with np.errstate(all="ignore"):
            near = np.asarray((ROUNDED_ONCE | _NUMPY)[function](x))
        if function in ROUNDED_ONCE:
            assert_same_bits(result, near, function)
            continue
        # Where NumPy has a NaN or an infinity, so do we; the finite results are judged by mpmath.
        special = ~np.isfinite(near) | ~np.isfinite(result)
        assert_same_bits(result[special], near[special], function)
        start = sum(len(arguments("fp64", f, 80)) for f in group[:position])
        own = slice(start, start + len(arguments("fp64", function, 80)))
        error, argument = worst_error_f64(function, x[own], result[own])
        assert error <= RECIPES[function, "f64"].max_ulp, f"{function}({argument!r}) errs by {error} ULP"


_NUMPY: dict[str, Any] = {
    function: lambda x, f=function: in_f64(RECIPES[f, "f64"], [x]) for function in RECIPE_NAMES
}


def check_16_bit(name: str, group: tuple[str, ...], numbers: Array) -> None:
    x = numbers.astype(np.uint16).view(NUMPY_DTYPES[name])
    narrow = apply(group, x, name, block=1000)
    with np.errstate(invalid="ignore"):
        wide = apply(group, x.astype(np.float32), "fp32", block=1000)
    for function in group:
        with np.errstate(invalid="ignore"):
            expected = as_float(wide[function].astype(np.float64), name)
        assert_same_bits(narrow[function], expected, function)


@pytest.mark.parametrize("group", GROUPS, ids="-".join)
@pytest.mark.parametrize("name", ["fp16", "bf16"])
def test_16_bit_floats_are_rounded_once_from_fp32(name: str, group: tuple[str, ...]) -> None:
    check_16_bit(name, group, np.arange(0, 1 << 16, 13))


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS, ids="-".join)
@pytest.mark.parametrize("name", ["fp16", "bf16"])
def test_every_16_bit_float(name: str, group: tuple[str, ...]) -> None:
    check_16_bit(name, group, np.arange(0, 1 << 16))


@pytest.mark.parametrize("name", FLOATS)
def test_sqrt_has_two_names(name: str) -> None:
    x = floats(name)
    rows = launch_one(
        unary, 2, x, Out((2, len(x)), name), len(x), BLOCK=33, OPS=(tl.sqrt, tl.sqrt_rn), RESULT=TYPES[name]
    )
    with np.errstate(all="ignore"):
        expected = as_float(np.sqrt(x.astype(np.float64)), name)
    for row in rows:
        assert_same_bits(row, expected)


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("function", [tl.fdiv, tl.div_rn])
def test_quotients(function: Any, name: str) -> None:
    """fp16 and bf16 are divided in fp32, which `fdiv` returns as `/` does, and `div_rn` rounds once more."""
    a, b = pairs(floats(name), floats(name))
    result = "fp32" if function is tl.fdiv and name != "fp64" else name
    rows = launch_one(
        binary, 4, a, b, Out((1, len(a)), result), len(a), BLOCK=300, OPS=(function,), RESULT=TYPES[result]
    )
    with np.errstate(all="ignore"):
        quotient = a.astype(np.float64) / b.astype(np.float64)
    expected = as_float(as_float(quotient, "fp32").astype(np.float64), result) if name != "fp64" else quotient
    assert_same_bits(rows[0], expected)


def test_numbers_beside_fp16_are_fp32_in_fma_and_fdiv() -> None:
    @bl.jit
    def kernel(x, out):  # type: ignore[no-untyped-def]
        half = tl.load(x)
        tl.static_assert(tl.fma(half, 2.0, 1.0).dtype == tl.float32)
        tl.static_assert(tl.fma(half, half, half).dtype == tl.float16)
        tl.static_assert(tl.fma(half, 2, half).dtype == tl.float16)
        tl.store(out, tl.fma(half, 0.1, 0.3))
        tl.store(out + 1, tl.fdiv(half, 0.3))

    x = np.array([1.5], np.float16)
    tenth, three = np.array([0.1], np.float32), np.array([0.3], np.float32)
    wide = x.astype(np.float32)
    expected = np.concatenate([fma_f32(wide, tenth, three), wide / three])
    assert_same_bits(launch_one(kernel, 1, x, Out((2,), "fp32")), expected)


@pytest.mark.parametrize("name", FLOATS)
def test_fused_multiply_add(name: str) -> None:
    """One rounding; fp16 and bf16 are rounded to fp32 and once more. Some sums cancel to almost nothing."""
    generator = np.random.default_rng(7)
    special = generator.choice(floats(name), (3, 1500))
    a, b = generator.standard_normal((2, 500)).astype(NUMPY_DTYPES[name])
    with np.errstate(all="ignore"):
        cancelling = (-a.astype(np.float64) * b.astype(np.float64)).astype(NUMPY_DTYPES[name])
        hard = [v.astype(NUMPY_DTYPES[name]) for v in hard_to_round()]
    x, y, z = (np.concatenate(parts) for parts in zip(special, (a, b, cancelling), hard, strict=True))
    (result,) = launch_one(
        ternary, 9, x, y, z, Out((1, len(x)), name), len(x), BLOCK=257, OPS=(tl.fma,), RESULT=TYPES[name]
    )
    if name == "fp64":
        expected = fma_f64(x, y, z)
    else:
        wide = fma_f32(x, y, z)
        expected = wide if name == "fp32" else as_float(wide.astype(np.float64), name)
    assert_same_bits(result, expected, "fma")


@pytest.mark.parametrize("name", FLOATS)
def test_sigmoid(name: str) -> None:
    """1 / (1 + exp(-x)), where exp(-x) is finite.

    In units of the last place relative to the result: 0.95, the stated error of exp, 0.5 for the sum and 0.5
    for the quotient. fp16 and bf16 see one rounding of a result that is as good as exact for them.
    """
    x = np.concatenate([np.linspace(-80, 80, 400), [0.0, -0.0, np.inf, -np.inf, np.nan]]).astype(
        NUMPY_DTYPES[name]
    )
    (result,) = launch_one(
        unary, 3, x, Out((1, len(x)), name), len(x), BLOCK=200, OPS=(sigmoid,), RESULT=TYPES[name]
    )
    with np.errstate(all="ignore"):
        exact = 1 / (1 + np.exp(-x.astype(np.longdouble)))
        epsilon = {"fp16": 2.0**-10, "bf16": 2.0**-7, "fp32": 2.0**-23, "fp64": 2.0**-52}[name]
        smallest = {"fp16": 2.0**-24, "bf16": 2.0**-133, "fp32": 2.0**-149, "fp64": 5e-324}[name]
        roundings = 1.96 if name in ("fp32", "fp64") else 0.5 + 2.0**-10  # of 13 bits more, at least
        error = np.abs(result.astype(np.longdouble) - exact) / np.maximum(exact * epsilon, smallest)
    assert np.isnan(result[-1].astype(np.float64))
    assert error[:-1].max() <= roundings
