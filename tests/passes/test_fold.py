"""Folding and identities, for every lane-wise operation on every pair of special numbers of every dtype.

Each kernel stores `x op c`, `c op x`, `c op d`, `(x op c) op d` and `x op x`, x being loaded and c and d
constants; what the interpreter gives before and after `canonicalise` is the same to the bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from blocklang.interpreter import run_kernel
from blocklang.interpreter.dtypes import memory_dtype_of
from blocklang.ir.builder import Builder
from blocklang.ir.core import Kernel, Operation, Value
from blocklang.ir.rewriting import clone_kernel
from blocklang.ir.types import I32, SCALARS, PointerType, ScalarType, element_type, shape_of
from blocklang.ir.verifier import verify
from blocklang.ops import elementwise as ops
from blocklang.ops.control import Return
from blocklang.ops.creation import Arange, Constant
from blocklang.ops.memory import Load, Offset, Store
from blocklang.passes.canonicalise import canonicalise

BOTH = (ops.Add, ops.Sub, ops.Mul, ops.Rem, ops.Minimum, ops.Maximum)
INTEGER = (ops.IntegerDiv, ops.And, ops.Or, ops.Xor, ops.Shl, ops.Shr, ops.UnsignedMulHigh)
CASES = [
    (cls, element)
    for element in SCALARS.values()
    for cls in (*BOTH, *((ops.Div,) if element.is_float else INTEGER), ops.Compare)
]
Array = np.ndarray[Any, Any]


def special_numbers(element: ScalarType) -> list[Any]:
    if element.bits == 1:
        return [False, True]
    if element.is_float:
        inf = float("inf")
        return [0.0, -0.0, 1.0, 0.1, -2.5, 65504.0, 1e-40, 5e-324, 1e300, -inf, float("nan")]
    low, high = element.minimum, element.maximum
    return [*{low, low + 1, high, 0, 1, 3, element.bits - 1, element.bits, high // 3}]


class Stores:
    """A kernel that loads the special numbers as `x`, and stores one expression after the other."""

    def __init__(self, element: ScalarType) -> None:
        self.element = element
        self.numbers = special_numbers(element)
        self.kernel = Kernel("k", [PointerType(element)], ["x"])
        self.builder = Builder(self.kernel.body)
        self.outputs: dict[ScalarType, Value] = {}
        self.stored: dict[ScalarType, list[Value]] = {}
        self.lanes = self.builder.value(Arange, start=0, end=len(self.numbers))
        self.x = self.builder.value(Load, self.builder.value(Offset, self.kernel.args[0], self.lanes))
        self.constants = [
            self.builder.value(Constant, value=number, result_types=[element]) for number in self.numbers
        ]

    def store(self, value: Value) -> None:
        """Store to the next place of the array of this dtype."""
        element = element_type(value.type)
        assert isinstance(element, ScalarType)
        if element not in self.outputs:
            self.outputs[element] = self.kernel.body.add_argument(PointerType(element), f"out_{element}")
            self.kernel.argument_attributes.append({})
            self.stored[element] = []
        position = len(self.stored[element]) * len(self.numbers)
        self.stored[element].append(value)
        start = self.builder.value(Constant, value=position, result_types=[I32])
        pointer = self.builder.value(Offset, self.outputs[element], start)
        if shape_of(value.type):
            pointer = self.builder.value(Offset, pointer, self.lanes)
        self.builder.create(Store, pointer, value)

    def run(self, kernel: Kernel) -> dict[ScalarType, Array]:
        """What each stored value is, one row for each."""
        x = np.array(self.numbers, np.float64 if self.element.is_float else None)
        with np.errstate(all="ignore"):
            x = x.astype(memory_dtype_of(self.element))
        rows = {
            element: np.zeros((len(self.stored[element]), len(x)), memory_dtype_of(element))
            for element in self.outputs
        }
        run_kernel(kernel, [x, *rows.values()], (1,))
        return rows

    def check(self) -> None:
        self.builder.create(Return)
        verify(self.kernel)
        changed = clone_kernel(self.kernel)
        canonicalise(changed)
        verify(changed)
        before, after = self.run(self.kernel), self.run(changed)
        for element, rows in before.items():
            number = np.asarray(rows == rows)
            unsigned = f"u{rows.dtype.itemsize}"
            same = (rows.view(unsigned) == after[element].view(unsigned)) | ~number
            wrong = np.argwhere(~same | (number != (after[element] == after[element])))
            if len(wrong):
                row, lane = wrong[0]
                value = self.stored[element][row]
                pytest.fail(f"{value.owner}: {rows[row, lane]} became {after[element][row, lane]}")


@pytest.mark.parametrize(("cls", "element"), CASES, ids=lambda case: getattr(case, "name", str(case)))
def test_binary(cls: type[Operation], element: ScalarType) -> None:
    stores = Stores(element)
    for predicate in ops.PREDICATES if cls is ops.Compare else ("",):
        named = {"predicate": predicate} if predicate else {}
        stores.store(stores.builder.value(cls, stores.x, stores.x, **named))
        for c in stores.constants:
            right = stores.builder.value(cls, stores.x, c, **named)
            stores.store(right)
            stores.store(stores.builder.value(cls, c, stores.x, **named))
            for d in stores.constants:
                stores.store(stores.builder.value(cls, c, d, **named))
            if not predicate:
                for d in stores.constants[::3]:
                    stores.store(stores.builder.value(cls, right, d))
    stores.check()


@pytest.mark.parametrize("element", SCALARS.values(), ids=str)
def test_unary_and_casts(element: ScalarType) -> None:
    """Casts of constants and casts of casts, through every type."""
    stores = Stores(element)
    build = stores.builder.value
    for value in (stores.x, *stores.constants):
        stores.store(build(ops.Neg, build(ops.Neg, value)))
        stores.store(build(ops.Abs, build(ops.Abs, value)))
        for between in SCALARS.values():
            shape = value.type.with_element(between) if value is stores.x else between  # type: ignore[attr-defined]
            cast = build(ops.Cast, value, result_types=[shape])
            stores.store(cast)
            if between.bits == element.bits:
                stores.store(build(ops.Bitcast, value, result_types=[shape]))
            if value is not stores.x:
                continue
            for last in SCALARS.values():
                target = value.type.with_element(last)  # type: ignore[attr-defined]
                stores.store(build(ops.Cast, cast, result_types=[target]))
                if last.is_float:
                    stores.store(build(ops.Cast, cast, result_types=[target], rounding="rtz"))
    stores.check()
