"""f32 recipes against their stated errors over the whole range of arguments.

Slow: every 17th of all bit patterns. `python -m tests.maths.exhaustive` takes them all.
"""

from __future__ import annotations

import pytest

from blocklang.maths.registry import MONOTONE_F32, RECIPES, Recipe
from tests.maths.exhaustive import count_falls, largest_error

UNARY = [recipe for recipe in RECIPES.values() if recipe.dtype == "f32" and recipe.arity == 1]


def name_of(recipe: Recipe) -> str:
    return recipe.name


@pytest.mark.parametrize("recipe", UNARY, ids=name_of)
def test_errors_over_the_whole_range(recipe: Recipe) -> None:
    worst, where = largest_error(recipe, stride=1021)
    assert worst <= recipe.max_ulp, where


@pytest.mark.slow
@pytest.mark.parametrize("recipe", UNARY, ids=name_of)
def test_errors_over_the_whole_range_densely(recipe: Recipe) -> None:
    worst, where = largest_error(recipe, stride=17)
    assert worst <= recipe.max_ulp, where


@pytest.mark.parametrize("name", MONOTONE_F32)
def test_monotone_functions_do_not_fall(name: str) -> None:
    assert count_falls(RECIPES[name, "f32"], chunks=101) == 0
