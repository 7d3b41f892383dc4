"""A recipe gives the same bits from NumPy's steps and from machine code; only the payload of NaN may
differ."""

from __future__ import annotations

import numpy as np
import pytest

from blocklang.interpreter.numpy_steps import NumpySteps, evaluate
from blocklang.maths.registry import RECIPES, Recipe
from tests.maths.native import LANES, NativeRecipe
from tests.maths.reference import FORMATS, Array, random_bits, samples
from tests.maths.special_reference import DIRECTED

COUNT = 400 * LANES


def arguments_of(recipe: Recipe) -> list[Array]:
    generator = np.random.default_rng(7)
    if recipe.arity == 1:
        named = recipe.name if recipe.name not in DIRECTED else "sqrt"
        usual = samples(named, recipe.dtype, COUNT - COUNT // 4, generator)
        return [np.concatenate([usual, random_bits(recipe.dtype, COUNT // 4, generator)])]
    patterns = [random_bits(recipe.dtype, COUNT, generator) for _ in range(recipe.arity)]
    moderate = [generator.uniform(-8, 8, COUNT).astype(patterns[0].dtype) for _ in range(recipe.arity)]
    return [np.concatenate(parts) for parts in zip(patterns, moderate, strict=True)]


def assert_same_bits(left: Array, right: Array, dtype: str) -> None:
    unsigned = f"u{FORMATS[dtype].bits // 8}"
    same = left.view(unsigned) == right.view(unsigned)
    assert np.all(same | (np.isnan(left) & np.isnan(right)))


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=lambda recipe: f"{recipe.name}-{recipe.dtype}")
def test_interpreter_and_machine_code_agree(recipe: Recipe) -> None:
    arguments = arguments_of(recipe)
    assert_same_bits(recipe.apply(NumpySteps(), *arguments), NativeRecipe(recipe)(*arguments), recipe.dtype)


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=lambda recipe: f"{recipe.name}-{recipe.dtype}")
def test_lanes_do_not_see_each_other(recipe: Recipe) -> None:
    """One lane alone, as a scalar, gets the bits that it gets among others."""
    arguments = [a[:: COUNT // 16] for a in arguments_of(recipe)]
    together = evaluate(recipe.name, *arguments)
    alone = [evaluate(recipe.name, *lane) for lane in zip(*map(scalars_of, arguments), strict=True)]
    assert all(value.shape == () for value in alone)
    assert_same_bits(together, np.array(alone), recipe.dtype)


def scalars_of(values: Array) -> list[Array]:
    return [np.asarray(value) for value in values]
