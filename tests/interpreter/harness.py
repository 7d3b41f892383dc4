"""Evaluates single operations on arrays, and holds the numbers that tests try."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

import blocklang.interpreter  # noqa: F401 - registers the evaluators
from blocklang.interpreter.address_space import AddressSpace
from blocklang.interpreter.dtypes import DTYPES, convert_float, is_float, widen
from blocklang.interpreter.evaluation import Machine
from blocklang.ir import Builder, Region
from blocklang.ir.core import Operation
from blocklang.ir.types import SCALARS, PointerType, ScalarType, Type, with_shape

Array = npt.NDArray[Any]

NAMES = {dtype: name for name, dtype in DTYPES.items()}
INTEGERS = [t for t in SCALARS.values() if t.is_integer]
FLOATS = [t for t in SCALARS.values() if t.is_float and not t.is_float8]  # 8 bits: test_float8


def type_of(array: Array) -> ScalarType:
    return SCALARS[NAMES[array.dtype]]


def apply(
    cls: type[Operation],
    *operands: Array,
    result_types: Iterable[Type] = (),
    pointers: dict[int, ScalarType] | None = None,
    arrays: Iterable[Array] = (),
    **named: Any,
) -> Any:
    """Evaluate one operation of class `cls`; a tuple if it has several results.

    Args:
        operands: data of the operands; keyword arguments that are arrays are operands too.
        pointers: element types of operands that are addresses, by position.
        arrays: global memory.
    """
    region = Region()
    machine = Machine(AddressSpace((f"a{i}", a) for i, a in enumerate(arrays)), (3, 1, 2), (5, 6, 7))

    def value(data: Array, element: ScalarType | PointerType) -> Any:
        argument = region.add_argument(with_shape(element, data.shape))
        machine[argument] = data
        return argument

    values = [
        value(data, PointerType(pointers[i]) if pointers and i in pointers else type_of(data))
        for i, data in enumerate(operands)
    ]
    keywords = {k: value(v, type_of(v)) if isinstance(v, np.ndarray) else v for k, v in named.items()}
    op = Builder(region).create(cls, *values, result_types=result_types, **keywords)
    op.verify_op()
    with np.errstate(all="ignore"):
        machine.evaluate(op)
    results = tuple(machine[r] for r in op.results)
    for result, data in zip(op.results, results, strict=True):
        assert data.shape == getattr(result.type, "shape", ()), (cls.name, data.shape, result.type)
    return results[0] if len(results) == 1 else results


def integers(type_: ScalarType) -> Array:
    """Small numbers, both ends of the range, and some between."""
    edges = {
        type_.minimum,
        type_.minimum + 1,
        type_.maximum - 1,
        type_.maximum,
        0,
        1,
        2,
        3,
        5,
        7,
        8,
        31,
        33,
        100,
    }
    edges |= {-1, -2, -3, -7, type_.maximum // 3, type_.minimum // 3, type_.maximum // 2 + 1}
    inside = sorted(n for n in edges if type_.minimum <= n <= type_.maximum)
    return np.array(inside, DTYPES[type_.name])


_SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -2.5,
    3.0,
    1e-3,
    7.25,
    -100.0,
    float("inf"),
    float("-inf"),
    float("nan"),
]
_LIMITS = {
    "f16": [65504.0, 2.0**-24, -(2.0**-14), 6e-5],
    "bf16": [3.3895313892515355e38, 2.0**-133, -(2.0**-126), 1e-40],
    "f32": [3.4028234663852886e38, 2.0**-149, -(2.0**-126), 1e-40],
    "f64": [1.7976931348623157e308, 5e-324, -(2.0**-1022), 1e-310],
}


def floats(type_: ScalarType) -> Array:
    """Special values, both ends of the range, subnormal numbers, and random ones."""
    random = np.random.default_rng(1).standard_normal(12) * 4.0
    dtype = DTYPES[type_.name]
    return convert_float(np.array([*_SPECIAL, *_LIMITS[type_.name], *random]), dtype)


def numbers(type_: ScalarType) -> Array:
    return floats(type_) if type_.is_float else integers(type_)


def pairs(values: Array) -> tuple[Array, Array]:
    """Every value with every other, as two flat blocks."""
    left, right = np.meshgrid(values, values, indexing="ij")
    return left.reshape(-1), right.reshape(-1)


def bits(array: Array) -> Array:
    """The bits of the lanes, all NaN the same."""
    raw = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}").copy()
    if is_float(array.dtype):
        raw[np.isnan(widen(array))] = 1
    return raw


def assert_same_bits(actual: Array, expected: Array) -> None:
    assert actual.dtype == expected.dtype
    np.testing.assert_array_equal(bits(actual), bits(expected))
