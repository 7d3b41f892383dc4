"""Operators under a name, swizzled programs, questions about the target, atomic operations of descriptors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import blocklang.language as tl
from blocklang.diagnostics import CompilationError
from tests.numerics import named_kernels
from tests.numerics.launching import Out, assert_same_bits, launch_one
from tests.numerics.values import ALL, NUMPY_DTYPES, numbers


@pytest.mark.parametrize("dtype", [t for t in ALL if t not in ("int1", "bf16", "fp16")])
def test_named_operators_are_the_operators(dtype: str) -> None:
    x = np.resize(numbers(dtype), 157)
    y = x[::-1].copy()
    got = launch_one(named_kernels.operators, 3, x, y, Out((157,), dtype), 157, BLOCK=60)
    with np.errstate(all="ignore"):
        assert_same_bits(got, (x + y) * (x - y))


@pytest.mark.parametrize(("rows", "columns", "group"), [(8, 8, 4), (7, 5, 3), (1, 4, 2), (6, 1, 6)])
def test_swizzle2d(rows: int, columns: int, group: int) -> None:
    """Groups of rows are walked column by column, the last group with the rows that are left."""
    order = [
        (row, column)
        for first in range(0, rows, group)
        for column in range(columns)
        for row in range(first, min(first + group, rows))
    ]
    got = launch_one(
        named_kernels.swizzled, (rows, columns), Out((rows, columns), "int32"), ROWS=rows, J=columns, G=group
    )
    assert got.ravel().tolist() == [row * columns + column for row, column in order]


def test_the_target_is_no_gpu() -> None:
    x = np.arange(33, dtype=np.int32)
    assert launch_one(named_kernels.target, 1, x, Out((33,), "int32"), N=33).tolist() == [
        (k + 2) // 3 for k in range(33)
    ]


OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


@pytest.mark.parametrize("what", OPERATIONS)
@pytest.mark.parametrize("dtype", ["int32", "uint64"])
def test_atomic_operations_of_descriptors(what: str, dtype: str) -> None:
    """Windows that overlap, and the last one reaches over the end."""
    x = np.arange(96, dtype=NUMPY_DTYPES[dtype]) * 7 + 3
    start = np.arange(50, dtype=NUMPY_DTYPES[dtype]) + 5
    expected = start.copy()
    for program in range(3):
        for lane in range(32):
            if program * 16 + lane < 50:
                place = program * 16 + lane
                expected[place] = OPERATIONS[what](expected[place], x[program * 32 + lane])
    got = launch_one(named_kernels.reduced, 3, x, Out((50,), dtype, start), N=50, WHAT=what)
    assert_same_bits(got, expected)


def test_parts_of_a_gpu_are_refused_by_name() -> None:
    with pytest.raises(CompilationError, match=r"tl\.extra\.cuda\.smid` is not supported"):
        tl.extra.cuda.smid  # noqa: B018
    with pytest.raises(AttributeError):
        tl.extra.cuda.no_such_name  # noqa: B018


def test_types_as_values() -> None:
    assert tl.void.is_void()
    assert not tl.float32.is_void()
    assert tl.str_to_ty("*ki32") == tl.pointer_type(tl.int32, const=True)
    assert tl.str_to_ty("u8") == tl.uint8
    assert tl.tuple_type([tl.int8, tl.float32])[0] == tl.int8
    assert tl.constexpr_type(3) != tl.constexpr_type(4)
    assert tl.block_type(tl.float16, [4, 8]).nbytes == 64
    assert tl.pointer_type(tl.int8).mangle() == "pointer_int8"
    assert {*tl.dtype.SINT_TYPES, *tl.dtype.UINT_TYPES, *tl.dtype.FP_TYPES} == set(tl.dtype._IR_NAMES)
