"""Products of bytes in every form that this machine has; each is exact modulo 2**32."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import blocklang.compiler.stages
from blocklang.jit import JITFunction
from blocklang.ops.tile import FORMS
from blocklang.target import current_target
from tests.codegen.kernels import byte_product, byte_product_of_turned, byte_products

HERE = current_target()


@pytest.fixture(params=[*HERE.byte_products, "fma"])
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Compile for this machine with one form only."""
    forms = tuple(f for f in HERE.byte_products if f == request.param)
    if request.param == "pairs" and "bytes" in HERE.byte_products:
        forms = ("pairs", "bytes")  # of pairs there is a better instruction where there is one of bytes
    stages = blocklang.compiler.stages
    monkeypatch.setattr(stages, "current_target", lambda: replace(HERE, byte_products=forms))
    return str(request.param)


def launch(kernel: JITFunction, grid: tuple[int, ...], *arguments: Any, expected_form: str) -> None:
    fresh = JITFunction(kernel.fn)
    schedule = fresh.warmup(*arguments, grid=grid).stages["schedule"]
    assert f" of {expected_form}" in schedule or expected_form == "fma"
    fresh[grid](*arguments)


def numbers(rng: np.random.Generator, *shape: int) -> Any:
    """Bytes, extremes among them often."""
    found = rng.integers(-128, 128, shape)
    return np.where(rng.random(shape) < 0.2, rng.choice([-128, 127], shape), found).astype(np.int8)


def product(a: Any, b: Any) -> Any:
    return (a.astype(np.int64) @ b.astype(np.int64)).astype(np.int32)


@pytest.mark.parametrize(
    ("M", "N", "K", "BM", "BN", "BK"),
    [
        (64, 64, 128, 32, 32, 64),
        (33, 47, 100, 16, 16, 32),
        (50, 70, 130, 48, 16, 64),
        (128, 80, 64, 64, 80, 64),
        (5, 3, 4, 16, 32, 16),
        (70, 90, 200, 32, 64, 128),
    ],
)
def test_blocks(form: str, M: int, N: int, K: int, BM: int, BN: int, BK: int) -> None:
    rng = np.random.default_rng(M * N)
    a, b = numbers(rng, M, K), numbers(rng, K, N)
    c = np.full((M + 2, N), -7, np.int32)
    launch(byte_product, (-(-M // BM), -(-N // BN)), a, b, c, M, N, K, BM, BN, BK, expected_form=form)
    assert np.array_equal(c[:M], product(a, b))
    assert (c[M:] == -7).all()


@pytest.mark.parametrize(("M", "N", "K"), [(16, 16, 64), (48, 32, 32), (3, 5, 8), (17, 33, 12)])
def test_turned_operands_and_a_sum(form: str, M: int, N: int, K: int) -> None:
    rng = np.random.default_rng(K)
    a, b = numbers(rng, K, M), numbers(rng, N, K)
    start = rng.integers(-(2**31), 2**31, (M, N)).astype(np.int32)
    c = np.zeros((M, N), np.int32)
    form = "bytes" if form == "tiles" and (M % 16 or N % 16) else form
    if form in HERE.byte_products or form == "fma":
        launch(byte_product_of_turned, (1,), a, b, c, start, M, N, K, expected_form="fma")
    assert np.array_equal(c, start + product(a.T, b.T))


@pytest.mark.parametrize("shape", [(3, 16, 32, 64), (2, 5, 7, 12)])
def test_batches(form: str, shape: tuple[int, int, int, int]) -> None:
    B, M, N, K = shape
    rng = np.random.default_rng(M)
    a, b = numbers(rng, B, M, K), numbers(rng, B, K, N)
    c = np.zeros((B, M, N), np.int32)
    launch(byte_products, (1,), a, b, c, B, M, N, K, expected_form="fma")
    assert np.array_equal(c, product(a, b))


def test_sums_that_wrap(form: str) -> None:
    """131,072 products of -128 by -128 are 2**31."""
    n = 131072 + 64
    a, b = np.full((16, n), -128, np.int8), np.full((n, 16), -128, np.int8)
    c = np.zeros((16, 16), np.int32)
    launch(byte_product, (1, 1), a, b, c, 16, 16, n, 16, 16, 64, expected_form=form)
    assert (c == np.int64(n * 128 * 128 - 2**32).astype(np.int32)).all()


@pytest.mark.parametrize("depth", [1, 2, 3, 6, 15])
def test_depths_that_no_form_divides(depth: int) -> None:
    rng = np.random.default_rng(depth)
    a, b = numbers(rng, 8, depth), numbers(rng, depth, 8)
    c = np.zeros((8, 8), np.int32)
    JITFunction(byte_product.fn)[(1, 1)](a, b, c, 8, 8, depth, 8, 8, depth)
    assert np.array_equal(c, product(a, b))


def test_a_target_has_forms_that_exist() -> None:
    assert set(HERE.byte_products) <= set(FORMS)
