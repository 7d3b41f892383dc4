"""What a wrong launch says, word for word."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import blocklang as bl
from tests.errors.launch.kernels import add, keep, typed, variadic

X = np.zeros(8, np.float32)


def read_only() -> Any:
    array = np.zeros(8, np.float32)
    array.flags.writeable = False
    return array


class OnDevice:
    dtype = "torch.float32"
    device = "cuda:0"

    def data_ptr(self) -> int:
        return 0


CASES: dict[str, Callable[[], object]] = {
    "missing": lambda: add[1](X, X, X, BLOCK=8),
    "missing_two": lambda: add[1](X, X, X),
    "extra": lambda: add[1](X, X, X, 8, 8, 8),
    "unknown": lambda: add[1](X, X, X, 8, BLOCK=8, BLOK=3),
    "twice": lambda: add[1](X, X, X, 8, 8, n=8),
    "called": lambda: add(X, X, X, 8, 8),
    "byte_order": lambda: add[1](X.astype(">f4"), X, X, 8, BLOCK=8),
    "object": lambda: add[1](np.zeros(8, object), X, X, 8, BLOCK=8),
    "records": lambda: add[1](np.zeros(8, [("a", "f4")]), X, X, 8, BLOCK=8),
    "complex": lambda: add[1](np.zeros(8, complex), X, X, 8, BLOCK=8),
    "strings": lambda: add[1](np.zeros(8, "U4"), X, X, 8, BLOCK=8),
    "float8": lambda: add[1](np.zeros(8, ml_dtypes.float8_e8m0fnu), X, X, 8, BLOCK=8),
    "masked": lambda: add[1](np.ma.zeros(8), X, X, 8, BLOCK=8),
    "gpu": lambda: add[1](OnDevice(), X, X, 8, BLOCK=8),
    "list": lambda: add[1]([1.0, 2.0], X, X, 8, BLOCK=8),
    "read_only": lambda: add[1](X, X, read_only(), 8, BLOCK=8),
    "constexpr_array": lambda: add[1](X, X, X, 8, BLOCK=X),
    "constexpr_unhashable": lambda: add[1](X, X, X, 8, BLOCK={}),
    "too_large": lambda: add[1](X, X, X, 2**64, BLOCK=8),
    "negative_grid": lambda: add[(2, -1)](X, X, X, 8, BLOCK=8),
    "float_grid": lambda: add[(1.5,)](X, X, X, 8, BLOCK=8),
    "long_grid": lambda: add[1, 2, 3, 4](X, X, X, 8, BLOCK=8),
    "huge_grid": lambda: add[2**31](X, X, X, 8, BLOCK=8),
    "warps": lambda: add[1](X, X, X, 8, BLOCK=8, num_warps=3),
    "debug": lambda: add[1](X, X, X, 8, BLOCK=8, debug=3),
    "deterministic": lambda: add[1](X, X, X, 8, BLOCK=8, deterministic="yes"),
    "threads": lambda: add[1](X, X, X, 8, BLOCK=8, num_threads=0),
    "cooperative": lambda: add[1](X, X, X, 8, BLOCK=8, launch_cooperative_grid=True),
    "no_memory": lambda: keep[1](X, 2, ROWS=2**30),
    "no_memory_to_count": lambda: keep[1](X, 2, ROWS=2**30, COLUMNS=2**30),
    "annotated_array": lambda: typed[1](np.zeros(3), 1, 1.0),
    "annotated_range": lambda: typed[1](X, 128, 1.0),
    "annotated_float": lambda: typed[1](X, 1.5, 1.0),
    "annotated_scalar": lambda: typed[1](X, np.int32(3), 1.0),
    "annotated_pointer": lambda: typed[1](3, 3, 1.0),
    "variadic": lambda: variadic[1](X, 1, 2),
    "wrong_type_text": lambda: add.specialise("*fp32,*fp32,*fp33,i32", {"BLOCK": 8}),
    "too_many_types": lambda: add.specialise("*fp32,*fp32,*fp32,i32,i32", {"BLOCK": 8}),
    "no_type": lambda: add.specialise("*fp32,*fp32", {"BLOCK": 8}),
    "no_value": lambda: add.specialise("*fp32,*fp32,*fp32,i32"),
    "unknown_constant": lambda: add.specialise("*fp32,*fp32,*fp32,i32", {"BLOK": 8}),
}


@pytest.mark.parametrize("case", CASES)
def test_message(case: str, golden: Callable[[str, str], None]) -> None:
    with pytest.raises(bl.LaunchError) as raised:
        CASES[case]()
    golden(f"{case}.txt", str(raised.value) + "\n")


def test_do_not_specialize_names_a_parameter() -> None:
    with pytest.raises(bl.LaunchError, match="do_not_specialize names 'm', which is no parameter"):
        bl.jit(do_not_specialize=["m"])(add.fn)


def test_jit_twice() -> None:
    with pytest.raises(bl.LaunchError, match="already a kernel"):
        bl.jit(add)


def test_jit_of_something_else() -> None:
    with pytest.raises(bl.LaunchError, match="not of int"):
        bl.jit(3)  # type: ignore[call-overload]


def test_a_launch_error_is_a_type_error() -> None:
    with pytest.raises(TypeError):
        add[1](X)
