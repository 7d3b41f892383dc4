"""`where`, `minimum`, `maximum` and `clamp`: the type of the result, and every bit of it."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest

import blocklang as bl
import blocklang.language as tl
from tests.numerics import kernels
from tests.numerics.expected import common_type, converted, extreme
from tests.numerics.kernels import binary, ternary, where_pointers
from tests.numerics.launching import Array, Out, assert_same_bits, launch_one
from tests.numerics.values import ALL, FLOATS, TYPES, numbers, pairs

MIXED = [("int8", "int32"), ("uint8", "int8"), ("int64", "uint64"), ("int1", "fp16"), ("bf16", "fp16")]
MIXED += [("fp32", "int64"), ("fp16", "fp32"), ("bf16", "int16"), ("fp64", "bf16"), ("uint32", "fp64")]


def widened(name: str) -> str:
    """The type that `minimum`, `maximum` and `clamp` take an operand in."""
    return "fp32" if name == "bf16" else name


def common_of(*types: str) -> str:
    def join(a: str, b: str) -> str:
        common = common_type(a, b)
        assert common is not None
        return common

    return reduce(join, types)


@pytest.mark.parametrize(("left", "right"), [*((t, t) for t in ALL), *MIXED])
def test_minimum_and_maximum(left: str, right: str) -> None:
    """Signed zeros are ordered; a NaN is ignored, or wins if asked. bf16 gives fp32."""
    common = common_of(widened(left), widened(right))
    a, b = pairs(numbers(left), numbers(right))
    rows = launch_one(
        binary, bl.cdiv(len(a), 257) + 1, a, b, Out((4, len(a)), common), len(a),
        BLOCK=257, RESULT=TYPES[common],
        OPS=(tl.minimum, tl.maximum, kernels.minimum_or_nan, kernels.maximum_or_nan),
    )  # fmt: skip
    x, y = pairs(converted(numbers(left), left, common), converted(numbers(right), right, common))
    for k, row in enumerate(rows):
        expected = extreme(x, y, largest=k % 2 == 1, propagate_nan=k >= 2)
        assert_same_bits(row, expected, ("minimum", "maximum", "minimum ALL", "maximum ALL")[k])


@pytest.mark.parametrize(
    "types", [*((t, t, t) for t in FLOATS), ("fp16", "fp32", "fp16"), ("fp32", "bf16", "fp64")]
)
def test_clamp(types: tuple[str, str, str]) -> None:
    """The larger of `x` and `lo`, then the smaller of that and `hi`."""
    common = common_of(*map(widened, types))
    generator = np.random.default_rng(5)
    x, low, high = (generator.choice(numbers(t), 1000) for t in types)
    rows = launch_one(
        ternary, 4, x, low, high, Out((2, len(x)), common), len(x), BLOCK=257, RESULT=TYPES[common],
        OPS=(tl.clamp, kernels.clamp_or_nan),
    )  # fmt: skip
    a, b, c = (converted(v, t, common) for v, t in zip((x, low, high), types, strict=True))
    for row, propagate in zip(rows, (False, True), strict=True):
        raised = extreme(a, b, largest=True, propagate_nan=propagate)
        assert_same_bits(
            row, extreme(raised, c, largest=False, propagate_nan=propagate), f"clamp, {propagate}"
        )


@pytest.mark.parametrize(("left", "right"), [*((t, t) for t in ALL), *MIXED])
def test_where(left: str, right: str) -> None:
    """Both sides keep their bits, -0.0 and NaN too; a condition of another type counts as `!= 0`."""
    common = common_of(left, right)
    a, b = pairs(numbers(left), numbers(right))
    condition = np.arange(len(a)) % 3 == 0
    row = launch_one(
        ternary, bl.cdiv(len(a), 257), condition, a, b, Out((1, len(a)), common), len(a),
        BLOCK=257, OPS=(tl.where,), RESULT=TYPES[common],
    )  # fmt: skip
    expected = np.where(condition, converted(a, left, common), converted(b, right, common))
    assert_same_bits(row[0], expected, "where")


@pytest.mark.parametrize("name", ALL)
def test_conditions_of_any_type(name: str) -> None:
    condition = numbers(name)
    a, b = np.arange(len(condition), dtype=np.int32), np.full(len(condition), -1, np.int32)
    row = launch_one(
        ternary,
        2,
        condition,
        a,
        b,
        Out((1, len(a)), "int32"),
        len(a),
        BLOCK=33,
        OPS=(tl.where,),
        RESULT=tl.int32,
    )
    assert_same_bits(row[0], np.where(condition.astype(np.float64) != 0, a, b), name)


@pytest.mark.parametrize("extent", [1, 7, 33, 100])
def test_pointers_may_be_chosen(extent: int) -> None:
    x, y = (np.arange(extent, dtype=np.int32) + k for k in (0, 1000))
    result = launch_one(where_pointers, 1, x, y, Out((extent,), "int32"), BLOCK=extent)
    assert_same_bits(result, np.where(np.arange(extent) % 3 == 0, x, y))


@pytest.mark.parametrize("limit", [0, 5, 63, 64, 70])
def test_a_choice_by_the_index(limit: int) -> None:
    """The loop may be cut where the choice changes; each side keeps its own."""
    i = np.arange(64, dtype=np.int64)
    result = launch_one(kernels.where_by_index, 1, Out((2, 64), "int64"), LIMIT=limit, BLOCK=64)
    assert result[0].tolist() == np.where(i < limit, i + 100, i + 1000).tolist()
    assert result[1].tolist() == np.where(i >= limit, i + 100, i + 1000).tolist()


def test_python_numbers_on_either_side() -> None:
    x = numbers("fp32")
    i = np.arange(len(x), dtype=np.int32)
    rows = launch_one(
        binary, 1, x, i, Out((4, len(x)), "fp32"), len(x), BLOCK=len(x), RESULT=tl.float32,
        OPS=(kernels.relu, kernels.at_most_three, kernels.nonzero_or_one, kernels.unit_clamp),
    )  # fmt: skip
    zero, three = np.zeros_like(x), np.full_like(x, 3.0)
    expected: list[Array] = [
        extreme(x, zero, largest=True),
        extreme(three, x, largest=False),
        np.where(i > 4, x, np.float32(1)),
        extreme(extreme(x, zero, largest=True), np.ones_like(x), largest=False),
    ]
    for row, right in zip(rows, expected, strict=True):
        assert_same_bits(row, right)
