"""No recipe errs by more than it states, on dense samples: f64 by mpmath, f32 by f64.

`test_exhaustive.py` goes over all f32.
"""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from blocklang.interpreter.numpy_steps import NumpySteps
from blocklang.maths.registry import RECIPES, Recipe
from tests.maths.reference import (
    DTYPES,
    EXACT,
    FORMATS,
    NUMPY,
    PRECISION,
    Array,
    in_f64,
    random_bits,
    samples,
    ulp_error,
    ulp_errors_f32,
)
from tests.maths.special_reference import BESSEL, DIRECTED, error_unit, judged, near_zeros
from tests.maths.special_reference import PRECISION as SPECIAL_PRECISION

SEED = 20240517


def recipes(dtype: str) -> list[Recipe]:
    """All but arithmetic with a direction, which `test_directed.py` compares with exact fractions."""
    return [r for r in RECIPES.values() if r.dtype == dtype and r.name not in DIRECTED]


def name_of(recipe: Recipe) -> str:
    return recipe.name


def arguments_of(recipe: Recipe, count: int) -> list[Array]:
    generator = np.random.default_rng(SEED)
    if recipe.arity == 1:
        return [samples(recipe.name, recipe.dtype, count, generator)]
    if recipe.name in ("atan2", "pow"):
        return pairs(recipe, count, generator)
    return vectors(recipe, count, generator)


def pairs(recipe: Recipe, count: int, generator: np.random.Generator) -> list[Array]:
    """Half arbitrary bits, half numbers whose results are moderate."""
    half = count // 2
    arbitrary = [random_bits(recipe.dtype, half, generator) for _ in range(2)]
    first = np.exp2(generator.uniform(-4, 4, half))
    second = generator.uniform(-1, 1, half) * np.exp2(generator.uniform(0, 8, half))
    if recipe.name == "atan2":
        first = first * generator.choice([-1.0, 1.0], half)
    moderate = [values.astype(DTYPES[recipe.dtype]) for values in (first, second)]
    return [np.concatenate(parts) for parts in zip(arbitrary, moderate, strict=True)]


def vectors(recipe: Recipe, count: int, generator: np.random.Generator) -> list[Array]:
    """Components of every exponent, of like size, and where squares leave the range."""
    part = count // 4
    kind, middle = DTYPES[recipe.dtype], FORMATS[recipe.dtype].bias // 2

    def powers(low: float, high: float) -> Array:
        numbers = np.exp2(generator.uniform(low, high, part)) * generator.choice([-1.0, 1.0], part)
        return np.asarray(numbers.astype(kind))

    ranges = ((-5, 5), (-2 * middle, 2 * middle), (-middle - 20, -middle + 20), (middle - 20, middle + 20))
    return [np.concatenate([powers(*ends) for ends in ranges]) for _ in range(recipe.arity)]


@pytest.mark.parametrize("recipe", recipes("f32"), ids=name_of)
def test_f32_keeps_its_stated_error(recipe: Recipe) -> None:
    arguments = arguments_of(recipe, 200_000 if recipe.name in NUMPY else 40_000)
    errors = ulp_errors_f32(recipe.apply(NumpySteps(), *arguments), in_f64(recipe, arguments))
    worst = int(np.argmax(errors))
    assert errors[worst] <= recipe.max_ulp, [float(a[worst]) for a in arguments]


def check_f64(recipe: Recipe, arguments: list[Array]) -> None:
    """Compare finite results one by one; `test_special_values.py` holds the others."""
    results = recipe.apply(NumpySteps(), *arguments)
    worst, where = 0.0, [0.0]
    usual = PRECISION if recipe.name in ("sin", "cos", "tan") else 160
    with mpmath.workprec(SPECIAL_PRECISION.get(recipe.name, usual)):
        for *values, result in zip(*(a.tolist() for a in arguments), results.tolist(), strict=True):
            if not np.isfinite([*values, result]).all() or not judged(recipe.name, values):
                continue
            exact = EXACT[recipe.name](*map(mpmath.mpf, values))
            unit = error_unit(recipe.name, values, exact)
            error = ulp_error(result, exact, FORMATS["f64"], unit)
            if error > worst:
                worst, where = error, values
    assert worst <= recipe.max_ulp, where


@pytest.mark.parametrize("recipe", recipes("f64"), ids=name_of)
def test_f64_keeps_its_stated_error(recipe: Recipe) -> None:
    check_f64(recipe, arguments_of(recipe, 600 if recipe.name in BESSEL else 2_000))


@pytest.mark.slow
@pytest.mark.parametrize("recipe", recipes("f64"), ids=name_of)
def test_f64_keeps_its_stated_error_on_dense_samples(recipe: Recipe) -> None:
    check_f64(recipe, arguments_of(recipe, 12_000))


@pytest.mark.parametrize("name", BESSEL)
def test_zeros_of_bessel_functions(name: str) -> None:
    check_f64(RECIPES[name, "f64"], [near_zeros(name, 12)])


def near_multiples_of_half_pi(dtype: str, count: int) -> Array:
    """The floats nearest to k pi/2 for k = m 2**e, where reductions cancel."""
    generator = np.random.default_rng(SEED)
    form = FORMATS[dtype]
    values = []
    with mpmath.workprec(PRECISION):
        for _ in range(count):
            k = mpmath.ldexp(int(generator.integers(1, 2**20)), int(generator.integers(0, form.bias - 21)))
            values.append(float(k * mpmath.pi / 2))
    return np.array(values).astype(DTYPES[dtype])


def hardest_for_reduction(dtype: str) -> Array:
    """The floats nearest to a multiple of pi/2, exponent by exponent.

    M 2**e is near n pi/2 when n/M is a convergent of the continued fraction of 2**e / (pi/2).
    """
    form = FORMATS[dtype]
    limit = 1 << (form.fraction_bits + 1)
    found = []
    with mpmath.workprec(2 * PRECISION):
        for exponent in range(-form.fraction_bits, form.bias - form.fraction_bits):
            ratio = mpmath.ldexp(2 / mpmath.pi, exponent)
            denominator = last_convergent_denominator(ratio, limit)
            found.append(float(mpmath.ldexp(denominator, exponent)))
    return np.array([x for x in found if x > 0.5]).astype(DTYPES[dtype])


def last_convergent_denominator(ratio: mpmath.mpf, limit: int) -> int:
    before, denominator = 0, 1
    rest = ratio - mpmath.floor(ratio)
    while rest:
        inverse = 1 / rest
        digit = int(mpmath.floor(inverse))
        before, denominator, following = denominator, digit * denominator + before, inverse - digit
        if denominator >= limit:
            return before
        rest = following
    return denominator


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_arguments_near_multiples_of_half_pi(name: str) -> None:
    check_f64(RECIPES[name, "f64"], [hardest_for_reduction("f64")])
    check_f64(RECIPES[name, "f64"], [near_multiples_of_half_pi("f64", 300)])
    recipe = RECIPES[name, "f32"]
    for argument in (hardest_for_reduction("f32"), near_multiples_of_half_pi("f32", 300)):
        errors = ulp_errors_f32(recipe.apply(NumpySteps(), argument), in_f64(recipe, [argument]))
        assert errors.max() <= recipe.max_ulp
