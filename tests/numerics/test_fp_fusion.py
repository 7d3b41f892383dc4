"""`enable_fp_fusion`: with it a sum of a product is rounded once, in both modes; without it twice."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import blocklang as bl
import blocklang.language as tl
from tests.numerics.expected import fma_f32, fma_f64
from tests.numerics.launching import Array, Out, assert_same_bits, interpreted, launch_one
from tests.numerics.values import FLOATS, floats, random_numbers


@bl.jit
def forms(x, y, z, out, n, N: bl.constexpr):
    """Rows of N: the four forms, two products, a product with two readers, one behind a cast."""
    i = tl.arange(0, N)
    live = i < n
    a, b = tl.load(x + i, mask=live), tl.load(y + i, mask=live)
    c = tl.load(z + i, mask=live)
    tl.store(out + i, a * b + c, mask=live)
    tl.store(out + n + i, c + a * b, mask=live)
    tl.store(out + 2 * n + i, a * b - c, mask=live)
    tl.store(out + 3 * n + i, c - a * b, mask=live)
    tl.store(out + 4 * n + i, a * b + b * c, mask=live)
    product = a * c
    tl.store(out + 5 * n + i, product + (product - b), mask=live)


@bl.jit
def accumulated(x, out, n, STEPS: bl.constexpr, N: bl.constexpr):
    """A product carried over a loop, in a function of its own."""
    i = tl.arange(0, N)
    total = tl.zeros((N,), tl.float32)
    for step in range(n):
        total = multiply_add(tl.load(x + step * N + i), tl.load(x + i), total)
    tl.store(out + i, total)


@bl.jit
def multiply_add(a, b, c):
    return a * b + c


def fused(name: str, a: Array, b: Array, c: Array) -> Array:
    if name in ("fp16", "bf16"):
        return fma_f32(*(v.astype(np.float32) for v in (a, b, c))).astype(a.dtype)
    return (fma_f64 if name == "fp64" else fma_f32)(a, b, c)


def plain(function: Any, a: Array, b: Array) -> Array:
    if a.dtype in (np.float32, np.float64):
        return np.asarray(function(a, b))
    return np.asarray(function(a.astype(np.float32), b.astype(np.float32)).astype(a.dtype))


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("n", [1, 7, 100])
def test_the_forms(name: str, n: int) -> None:
    a, b, c = (random_numbers(name, (n,), seed) for seed in (1, 2, 3))
    check(name, a, b, c)


@pytest.mark.parametrize("name", FLOATS)
def test_special_values(name: str) -> None:
    generator = np.random.default_rng(4)
    a, b, c = (generator.choice(floats(name), 150) for _ in range(3))
    check(name, a, b, c)


def check(name: str, a: Array, b: Array, c: Array) -> None:
    n = len(a)
    with np.errstate(all="ignore"):
        once = launch_one(forms, 1, a, b, c, Out((6, n), name), n, N=n + 3, enable_fp_fusion=True)
        twice = launch_one(forms, 1, a, b, c, Out((6, n), name), n, N=n + 3)
        product = plain(np.multiply, a, b)
        other = plain(np.multiply, a, c)
        expected_once = [
            fused(name, a, b, c),
            fused(name, a, b, c),
            fused(name, a, b, -c),
            fused(name, -a, b, c),
            fused(name, a, b, plain(np.multiply, b, c)),
            plain(np.add, other, plain(np.subtract, other, b)),
        ]
        expected_twice = [
            plain(np.add, product, c),
            plain(np.add, product, c),
            plain(np.subtract, product, c),
            plain(np.subtract, c, product),
            plain(np.add, product, plain(np.multiply, b, c)),
            expected_once[-1],
        ]
    for row in range(6):
        assert_same_bits(once[row], expected_once[row], f"{name}, row {row}, fused")
        assert_same_bits(twice[row], expected_twice[row], f"{name}, row {row}")


def test_one_after_the_other_and_as_a_default_of_the_kernel() -> None:
    """Each launch gets the code that it asks for, also when it is repeated and takes the short way."""
    x = random_numbers("fp32", (5, 33), 1)
    by_default = bl.jit(enable_fp_fusion=True)(accumulated.fn)
    once, twice = np.zeros(33, np.float32), np.zeros(33, np.float32)
    for step in x:
        once = fma_f32(step, x[0], once)
        twice = twice + step * x[0]
    assert (once != twice).any()
    for kernel in (accumulated, interpreted(accumulated)):
        for _ in range(6):
            for options, expected in ((True, once), (False, twice)):
                out = np.zeros(33, np.float32)
                kernel[1](x, out, 5, STEPS=0, N=33, enable_fp_fusion=options)
                assert_same_bits(out, expected)
    for _ in range(6):
        out = np.zeros(33, np.float32)
        by_default[1](x, out, 5, STEPS=0, N=33)
        assert_same_bits(out, once)
        by_default[1](x, out, 5, STEPS=0, N=33, enable_fp_fusion=False)
        assert_same_bits(out, twice)


@pytest.mark.parametrize("n", [1, 4])
def test_scalars_and_constants_in_interpreter_mode(n: int) -> None:
    """An argument of value 1 is compiled in; the IR that is interpreted has no such argument."""

    @bl.jit
    def kernel(out, scale, n, factor):
        tl.store(out, scale * factor + n)

    result = launch_one(kernel, 1, Out((1,), "fp32"), 0.1, n, np.float32(0.3), enable_fp_fusion=True)
    expected = fma_f32(*(np.array([v], np.float32) for v in (0.1, 0.3, n)))
    assert_same_bits(result, expected)


def test_what_is_no_switch_is_refused() -> None:
    x = np.zeros((1, 4), np.float32)
    with pytest.raises(bl.LaunchError, match="enable_fp_fusion is 'yes'"):
        accumulated[1](x, x, 1, STEPS=0, N=4, enable_fp_fusion="yes")
