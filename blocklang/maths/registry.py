"""All recipes by name and dtype, with the error that each states.

`max_ulp` is the largest error over the whole domain, in units in the last place of the exact result (of the
smallest subnormal below the normal range). For f32 functions of one argument it was measured over all inputs;
for f64 and for two arguments over dense samples, and rounded up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, cast

from blocklang.maths import (
    error_function,
    exponential,
    hyperbolic,
    inverse_trigonometric,
    logarithm,
    power,
    root,
    trigonometric,
)
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
)

# Never falling where the function rises, over all f32 arguments: tried out, not proved for f64.
MONOTONE_F32 = ("expm1", "log", "log1p", "log2", "sinh", "tanh", "atan", "sqrt", "cbrt")

RECIPES: Mapping[tuple[str, str], Recipe] = MappingProxyType({(r.name, r.dtype): r for r in ALL})
