"""The largest error of f32 recipes over all 2**32 arguments: `python -m tests.maths.exhaustive [NAME ...]`.

The exact value is the recipe of the same function in f64, which `test_accuracy.py` judges by mpmath: its
error is less than a hundred-millionth of an f32's last place. Both, and the error, run as one compiled
recipe.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

import numpy as np

from blocklang.maths.formats import F32, F64, Lanes
from blocklang.maths.registry import MONOTONE_F32, RECIPES, Recipe
from blocklang.maths.steps import Steps, V
from tests.maths.native import LANES, NativeRecipe

CHUNK = 1 << 20
F32_INFINITY = 0x7F800000


def error_in_ulp(recipe: Recipe) -> Recipe:
    """A recipe for the error of an f32 recipe; infinite where only one result is finite, or is NaN."""
    exact_recipe = RECIPES[recipe.name, "f64"]

    def function(steps: Steps[V], x: V) -> V:
        single, double = Lanes(steps, F32), Lanes(steps, F64)
        got = recipe.apply(steps, x)
        exact = exact_recipe.apply(steps, steps.cast(x, "f64"))
        distance = steps.abs(steps.sub(steps.cast(got, "f64"), exact))
        error = steps.cast(steps.mul(distance, ulps_per_unit(double, exact)), "f32")
        rounded = steps.cast(exact, "f32")
        infinity = single.number(math.inf)
        finite = steps.logical_and(steps.lt(steps.abs(got), infinity), steps.lt(steps.abs(rounded), infinity))
        both_nan = steps.logical_and(steps.ne(got, got), steps.ne(rounded, rounded))
        same = steps.logical_or(steps.eq(got, rounded), both_nan)
        return steps.select(finite, error, steps.select(same, single.number(0.0), infinity))

    return Recipe(f"{recipe.name} error", "f32", 1, 0.0, function)


def ulps_per_unit(lanes: Lanes[V], exact: V) -> V:
    """One over the distance of f32 neighbours at an f64 value, from its exponent."""
    steps = lanes.steps
    exponent = steps.lshr(lanes.bits_of(steps.abs(exact)), lanes.integer(F64.fraction_bits))
    lowest = lanes.integer(F64.bias + 1 - F32.bias)
    exponent = steps.select(steps.lt(exponent, lowest), lowest, exponent)
    inverse = steps.isub(lanes.integer(2 * F64.bias + F32.fraction_bits), exponent)
    return lanes.from_bits(steps.shl(inverse, lanes.integer(F64.fraction_bits)))


def largest_error(recipe: Recipe, stride: int = 1) -> tuple[float, float]:
    """Return the largest error and its argument, over every `stride`-th bit pattern."""
    kernel = NativeRecipe(error_in_ulp(recipe))
    worst, where = 0.0, 0.0
    offsets = np.arange(CHUNK, dtype=np.uint64) * np.uint64(stride)
    for start in range(0, 1 << 32, CHUNK * stride):
        x = (offsets + np.uint64(start)).astype(np.uint32).view(np.float32)
        errors = kernel(x)
        index = int(np.argmax(errors))
        if errors[index] > worst:
            worst, where = float(errors[index]), float(x[index])
    return worst, where


def count_falls(recipe: Recipe, chunks: int = 1) -> int:
    """Count the pairs of neighbouring numbers whose results fall; over every so many chunks of numbers."""
    kernel = NativeRecipe(recipe)
    falls = 0
    for start in range(0, F32_INFINITY, CHUNK * chunks):
        # One more than a chunk, so that no pair is left out; padded to whole vectors.
        bits = np.minimum(np.arange(start, start + CHUNK + LANES), F32_INFINITY).astype(np.uint32)
        with np.errstate(invalid="ignore"):
            falls += int(np.count_nonzero(np.diff(kernel(bits.view(np.float32))) < 0))
            negative = (bits | np.uint32(F32.sign_mask)).view(np.float32)
            falls += int(np.count_nonzero(np.diff(kernel(negative)) > 0))
    return falls


def main(names: Sequence[str]) -> None:
    for recipe in RECIPES.values():
        if recipe.dtype == "f32" and recipe.arity == 1 and (not names or recipe.name in names):
            worst, where = largest_error(recipe)
            print(f"{recipe.name:8} {worst:.6f} at {where!r}, stated {recipe.max_ulp}", flush=True)
            if recipe.name in MONOTONE_F32:
                print(f"{'':8} {count_falls(recipe)} neighbours whose results fall", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
