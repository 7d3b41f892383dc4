"""All recipes by name and dtype, with the error that each states.

`max_ulp` is the largest error over the whole domain, in units in the last place of the exact result (of the
smallest subnormal below the normal range). For f32 functions of one argument it was measured over all inputs,
or follows from the f64 function that they round; for f64 and for several arguments over dense samples, and
rounded up. The errors of lgamma hold for positive arguments; those of j0, j1, y0 and y1 beyond 8 are in units
of the amplitude, sqrt(2 / (pi x)).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, cast

from blocklang.maths import (
    bessel,
    directed,
    error_function,
    exponential,
    gamma,
    half_turns,
    hyperbolic,
    inverse_hyperbolic,
    inverse_trigonometric,
    logarithm,
    normal,
    norms,
    power,
    root,
    trigonometric,
)
from blocklang.maths.formats import F32, F64
from blocklang.maths.steps import DType, Steps, V


@dataclass(frozen=True)
class Recipe:
    """One function in one dtype; its arguments and its result are of this dtype."""

    name: str
    dtype: DType
    arity: int
    max_ulp: float
    function: Callable[..., Any]

    def apply(self, steps: Steps[V], *arguments: V) -> V:
        """Run the recipe on `arity` arguments."""
        if len(arguments) != self.arity:
            raise TypeError(f"{self.name} takes {self.arity} argument(s), {len(arguments)} given")
        return cast("V", self.function(steps, *arguments))


def widened(function: Callable[..., Any]) -> Callable[..., Any]:
    """The f32 function that computes in f64 and rounds once."""

    def narrow(steps: Steps[V], *arguments: V) -> V:
        result: V = function(steps, *(steps.cast(argument, "f64") for argument in arguments))
        return steps.cast(result, "f32")

    return narrow


def both(
    name: str,
    arity: int,
    max_ulp: tuple[float, float],
    f64: Callable[..., Any],
    f32: Callable[..., Any] | None = None,
) -> tuple[Recipe, Recipe]:
    """The recipes of a function in f32 and f64; that of f32 computes in f64 if no other is given."""
    return (
        Recipe(name, "f32", arity, max_ulp[0], f32 or widened(f64)),
        Recipe(name, "f64", arity, max_ulp[1], f64),
    )


def directed_recipes() -> tuple[Recipe, ...]:
    """Arithmetic rounded in a direction. Exact in that: less than 1 ULP, on the right side."""
    return tuple(
        recipe
        for name, (arity, _) in directed.OPERATIONS.items()
        for direction in directed.DIRECTIONS
        for recipe in both(
            f"{name}_{direction}",
            arity,
            (1.0, 1.0),
            directed.recipe_of(name, F64, direction),
            directed.recipe_of(name, F32, direction),
        )
    )


ALL = (
    Recipe("exp", "f32", 1, 0.9, exponential.exp_f32),
    Recipe("exp", "f64", 1, 0.95, exponential.exp_f64),
    Recipe("exp2", "f32", 1, 0.88, exponential.exp2_f32),
    Recipe("exp2", "f64", 1, 0.95, exponential.exp2_f64),
    Recipe("expm1", "f32", 1, 0.94, exponential.expm1_f32),
    Recipe("expm1", "f64", 1, 1.0, exponential.expm1_f64),
    Recipe("log", "f32", 1, 0.9, logarithm.log_f32),
    Recipe("log", "f64", 1, 0.95, logarithm.log_f64),
    Recipe("log2", "f32", 1, 0.94, logarithm.log2_f32),
    Recipe("log2", "f64", 1, 1.0, logarithm.log2_f64),
    Recipe("log10", "f32", 1, 0.95, logarithm.log10_f32),
    Recipe("log10", "f64", 1, 1.0, logarithm.log10_f64),
    Recipe("log1p", "f32", 1, 0.99, logarithm.log1p_f32),
    Recipe("log1p", "f64", 1, 1.0, logarithm.log1p_f64),
    Recipe("sin", "f32", 1, 0.57, trigonometric.sin_f32),
    Recipe("sin", "f64", 1, 0.8, trigonometric.sin_f64),
    Recipe("cos", "f32", 1, 0.57, trigonometric.cos_f32),
    Recipe("cos", "f64", 1, 0.8, trigonometric.cos_f64),
    Recipe("tan", "f32", 1, 0.57, trigonometric.tan_f32),
    Recipe("tan", "f64", 1, 0.95, trigonometric.tan_f64),
    Recipe("asin", "f32", 1, 0.51, inverse_trigonometric.asin_f32),
    Recipe("asin", "f64", 1, 1.15, inverse_trigonometric.asin_f64),
    Recipe("acos", "f32", 1, 0.51, inverse_trigonometric.acos_f32),
    Recipe("acos", "f64", 1, 1.15, inverse_trigonometric.acos_f64),
    Recipe("atan", "f32", 1, 0.51, inverse_trigonometric.atan_f32),
    Recipe("atan", "f64", 1, 1.4, inverse_trigonometric.atan_f64),
    Recipe("atan2", "f32", 2, 0.52, inverse_trigonometric.atan2_f32),
    Recipe("atan2", "f64", 2, 1.5, inverse_trigonometric.atan2_f64),
    Recipe("sinh", "f32", 1, 0.84, hyperbolic.sinh_f32),
    Recipe("sinh", "f64", 1, 0.9, hyperbolic.sinh_f64),
    Recipe("cosh", "f32", 1, 0.84, hyperbolic.cosh_f32),
    Recipe("cosh", "f64", 1, 0.9, hyperbolic.cosh_f64),
    Recipe("tanh", "f32", 1, 0.96, hyperbolic.tanh_f32),
    Recipe("tanh", "f64", 1, 1.45, hyperbolic.tanh_f64),
    Recipe("erf", "f32", 1, 0.99, error_function.erf_f32),
    Recipe("erf", "f64", 1, 1.15, error_function.erf_f64),
    Recipe("erfc", "f32", 1, 0.51, error_function.erfc_f32),
    Recipe("erfc", "f64", 1, 1.25, error_function.erfc_f64),
    Recipe("pow", "f32", 2, 0.51, power.pow_f32),
    Recipe("pow", "f64", 2, 1.0, power.pow_f64),
    Recipe("sqrt", "f32", 1, 0.5, root.sqrt),
    Recipe("sqrt", "f64", 1, 0.5, root.sqrt),
    Recipe("rsqrt", "f32", 1, 1.5, root.rsqrt_f32),
    Recipe("rsqrt", "f64", 1, 1.5, root.rsqrt_f64),
    Recipe("cbrt", "f32", 1, 0.51, root.cbrt_f32),
    Recipe("cbrt", "f64", 1, 0.51, root.cbrt_f64),
    *both("rcbrt", 1, (0.51, 1.5), root.rcbrt_f64),
    *both("exp10", 1, (0.51, 0.8), exponential.exp10_f64, exponential.exp10_f32),
    *both("sinpi", 1, (0.51, 0.7), half_turns.sinpi_f64),
    *both("cospi", 1, (0.51, 0.7), half_turns.cospi_f64),
    *both("asinh", 1, (0.51, 1.5), inverse_hyperbolic.asinh_f64),
    *both("acosh", 1, (0.51, 1.8), inverse_hyperbolic.acosh_f64),
    *both("atanh", 1, (0.51, 1.4), inverse_hyperbolic.atanh_f64),
    *both("hypot", 2, (0.51, 0.51), norms.norm_f64, norms.norm_f32),
    *both("norm3d", 3, (0.51, 0.51), norms.norm_f64, norms.norm_f32),
    *both("norm4d", 4, (0.51, 0.51), norms.norm_f64, norms.norm_f32),
    *both("rhypot", 2, (0.51, 1.5), norms.reciprocal_f64, norms.reciprocal_f32),
    *both("rnorm3d", 3, (0.51, 1.5), norms.reciprocal_f64, norms.reciprocal_f32),
    *both("rnorm4d", 4, (0.51, 1.5), norms.reciprocal_f64, norms.reciprocal_f32),
    *both("erfcx", 1, (0.51, 2.0), normal.erfcx_f64),
    *both("erfinv", 1, (0.51, 2.5), normal.erfinv_f64),
    *both("erfcinv", 1, (0.51, 2.5), normal.erfcinv_f64),
    *both("normcdf", 1, (0.51, 2.1), normal.normcdf_f64),
    *both("normcdfinv", 1, (0.51, 3.0), normal.normcdfinv_f64),
    *both("tgamma", 1, (0.51, 4.0), gamma.tgamma_f64),
    *both("lgamma", 1, (0.51, 4.0), gamma.lgamma_f64),
    *both("j0", 1, (0.51, 5.5), bessel.j0_f64),
    *both("j1", 1, (0.51, 5.0), bessel.j1_f64),
    *both("y0", 1, (0.51, 6.0), bessel.y0_f64),
    *both("y1", 1, (0.51, 5.0), bessel.y1_f64),
    *both("cyl_bessel_i0", 1, (0.51, 3.5), bessel.i0_f64),
    *both("cyl_bessel_i1", 1, (0.51, 3.5), bessel.i1_f64),
    *both("round", 1, (0.5, 0.5), directed.round_f64, directed.round_f32),
    *both("fdim", 2, (0.5, 0.5), directed.fdim_f64, directed.fdim_f32),
    *both("add_rn", 2, (0.5, 0.5), directed.add_nearest, directed.add_nearest),
    *both("mul_rn", 2, (0.5, 0.5), directed.mul_nearest, directed.mul_nearest),
    *directed_recipes(),
)

# Never falling where the function rises, over all f32 arguments: tried out, not proved for f64.
MONOTONE_F32 = ("expm1", "log", "log1p", "log2", "sinh", "tanh", "atan", "sqrt", "cbrt")

RECIPES: Mapping[tuple[str, str], Recipe] = MappingProxyType({(r.name, r.dtype): r for r in ALL})
