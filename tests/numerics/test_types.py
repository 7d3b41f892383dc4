"""Element types as compile-time values: what a kernel asks of `x.dtype`."""

# mypy: ignore-errors
from __future__ import annotations

import numpy as np
import pytest

import blocklang as bl
import blocklang.language as tl
from tests.numerics.launching import Out, launch_one
from tests.numerics.values import ALL, NUMPY_DTYPES, TYPES


@bl.jit
def which_type(x, out, T: bl.constexpr):
    value = tl.load(x)
    if value.dtype == T:
        tl.store(out, 1)
    if T == value.dtype:  # noqa: SIM300 - both orders are meant
        tl.store(out + 1, 1)
    if value.dtype != T:
        tl.store(out + 2, 1)


@pytest.mark.parametrize("name", ALL)
def test_a_dtype_equals_the_constant_that_holds_it(name):
    for other in ("fp32", "int1", name):
        same = int(name == other)
        got = launch_one(
            which_type,
            1,
            np.zeros(1, NUMPY_DTYPES[name]),
            Out((3,), "int32", np.zeros(3, np.int32)),
            T=TYPES[other],
        )
        assert got.tolist() == [same, same, 1 - same]
