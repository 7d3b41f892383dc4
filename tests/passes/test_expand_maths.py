"""Maths expansion: what the recipes give as IR is what they give in NumPy, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from blocklang.interpreter import run_kernel
from blocklang.interpreter.dtypes import dtype_of
from blocklang.ir.parser import parse_kernel
from blocklang.ir.types import BF16, F16, F32, F64, ScalarType
from blocklang.ir.verifier import verify
from blocklang.maths.registry import RECIPES
from blocklang.ops.elementwise import FUNCTIONS
from blocklang.passes.expand_maths import expand_maths
from tests.passes.cases import cases_of, check_case

LANES = 1000
KERNEL = """
kernel @k(%x: ptr<{dtype}>, %y: ptr<{dtype}>) {{
  %i = arange start=0, end=1000 : block<1000xi32>
  %xs = offset %x, %i : block<1000xptr<{dtype}>>
  %ys = offset %y, %i : block<1000xptr<{dtype}>>
  %v = load %xs : block<1000x{dtype}>
  %w = {name} %v : block<1000x{dtype}>
  store %ys, %w
  return
}}
"""
EXPANDED = sorted(
    name for name in FUNCTIONS if (name, "f32") in RECIPES and (name, "f64") in RECIPES and name != "sqrt"
)


@cases_of("expand_maths")
def test_golden(case: str, golden: Callable[[str, str], None]) -> None:
    check_case(golden, case, expand_maths)


def inputs(element: ScalarType) -> np.ndarray[Any, Any]:
    """Random bit patterns, numbers of ordinary size, and the special ones."""
    dtype = dtype_of(element)
    random = np.random.default_rng(7)
    bits = random.integers(0, 2 ** (element.bits - 1), LANES, np.int64).astype(f"u{element.bytes}")
    bits |= (random.integers(0, 2, LANES) << (element.bits - 1)).astype(bits.dtype)
    x = bits.view(dtype)
    x[:500] = (random.standard_normal(500) * 10).astype(dtype)
    special = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, 88.5, -104.0]
    x[: len(special)] = np.array(special, np.float64).astype(dtype)
    return x


@pytest.mark.parametrize("element", [F16, BF16, F32, F64], ids=str)
@pytest.mark.parametrize("name", EXPANDED)
def test_the_expansion_gives_the_bits_of_the_recipe(name: str, element: ScalarType) -> None:
    x = inputs(element)
    kernel = parse_kernel(KERNEL.format(name=name, dtype=element))
    expected, actual = np.zeros_like(x), np.zeros_like(x)
    run_kernel(kernel, [x, expected], (1,))
    expand_maths(kernel)
    verify(kernel)
    assert not any(op.name == name for op in kernel.walk())
    run_kernel(kernel, [x, actual], (1,))
    number = np.asarray(expected == expected)
    np.testing.assert_array_equal(number, actual == actual)
    unsigned = f"u{element.bytes}"
    np.testing.assert_array_equal(expected.view(unsigned)[number], actual.view(unsigned)[number])
