"""Functions that are made of others, methods, and hints."""

from __future__ import annotations

import numpy as np
import pytest

import blocklang as bl
from tests.numerics import standard_kernels as kernels
from tests.numerics.expected import operate
from tests.numerics.launching import Array, Out, assert_same_bits, launch_one
from tests.numerics.values import floats, numbers, pairs, random_numbers


@pytest.mark.parametrize("name", ["int8", "int32", "uint32", "int64"])
def test_ceiling_division(name: str) -> None:
    """(x + div - 1) // div, truncated toward zero, wrapping, with 0 for a division by zero."""
    x, y = pairs(numbers(name), numbers(name))
    rows = launch_one(
        kernels.ceiling_division,
        bl.cdiv(len(x), 100),
        x,
        y,
        Out((3, len(x)), name),
        len(x),
        BLOCK=100,
        CONSTANT=7,
    )

    def quotient(divisor: Array) -> Array:
        one = np.ones_like(divisor)
        return operate("//", operate("+", x, operate("-", divisor, one, name), name), divisor, name)

    assert_same_bits(rows[0], quotient(y))
    assert_same_bits(rows[1], quotient(np.full_like(x, 7)))
    assert (rows[2] == 3 + 8).all()


@pytest.mark.parametrize(
    ("rows", "columns", "group"), [(4, 4, 2), (5, 3, 2), (1, 7, 4), (6, 1, 4), (3, 5, 8)]
)
def test_swizzled_places(rows: int, columns: int, group: int) -> None:
    """Groups of rows one after the other, each column by column."""
    places = np.arange(rows * columns, dtype=np.int32).reshape(rows, columns)
    expected = np.concatenate([places[i : i + group].T.ravel() for i in range(0, rows, group)])
    results = launch_one(
        kernels.swizzled, 1, Out((3, rows * columns), "int32"), rows, columns, group,
        N=rows * columns, GROUP=group,
    )  # fmt: skip
    for result in results:
        assert result.tolist() == expected.tolist()


@pytest.mark.parametrize("name", ["fp16", "fp32", "fp64"])
def test_methods_are_the_functions(name: str) -> None:
    x = floats(name)
    one, other = (
        launch_one(kernel, 1, x, Out((14, len(x)), name), len(x), BLOCK=37)
        for kernel in (kernels.methods, kernels.functions)
    )
    assert_same_bits(one, other)


def test_hints_change_nothing() -> None:
    x = random_numbers("int32", (100,))
    result = launch_one(kernels.hints, 1, x, Out((4, 33), "int32"), 4, BLOCK=33)
    assert_same_bits(result, x[None, 1:100:3] + np.arange(4, dtype=np.int32)[:, None])


def test_host_functions() -> None:
    assert [bl.cdiv(n, 4) for n in (0, 1, 4, 5)] == [0, 1, 1, 2]
    assert [bl.next_power_of_2(n) for n in (0, 1, 2, 3, 1000)] == [1, 1, 2, 4, 1024]
