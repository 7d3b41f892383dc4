"""Atomics against Python's own numbers, lane after lane."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from blocklang.diagnostics import InterpreterError
from blocklang.interpreter.dtypes import DTYPES, convert_float
from blocklang.ir.types import F32, F64, I32, I64, SCALARS, U32, U64, ScalarType
from blocklang.ops.atomics import AtomicCas, AtomicRmw, Fence
from tests.interpreter.harness import Array, apply, assert_same_bits, numbers

PLACES = np.array([3, 0, 3, 3, 1, 0, 4, 3])


def addresses(array: Array, elements: Any) -> Array:
    start = array.__array_interface__["data"][0]
    return np.asarray(start + np.asarray(elements) * array.itemsize, np.uint64)


def one_by_one(memory: Array, places: Array, values: Array, change: Callable[[Any, Any], Any]) -> Array:
    old = np.zeros(values.shape, memory.dtype)
    for lane, (place, value) in enumerate(zip(places, values, strict=True)):
        old[lane] = memory[place]
        memory[place] = change(memory[place], value)
    return old


def wrapped(type_: ScalarType, number: int) -> int:
    number &= (1 << type_.bits) - 1
    return number - (1 << type_.bits) if type_.is_signed and number >> (type_.bits - 1) else number


INTEGER_KINDS: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "max": max,
    "min": min,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "xchg": lambda a, b: b,
}


@pytest.mark.parametrize("kind", INTEGER_KINDS)
@pytest.mark.parametrize("type_", [I32, I64, U32, U64], ids=str)
def test_integers(kind: str, type_: ScalarType) -> None:
    values = np.resize(numbers(type_), 64)
    places = np.resize(PLACES, 64)
    memory = np.resize(values[5:], 6).astype(DTYPES[type_.name])
    right = memory.copy()
    function = INTEGER_KINDS[kind]
    wanted = one_by_one(right, places, values, lambda a, b: wrapped(type_, function(int(a), int(b))))
    old = apply(AtomicRmw, addresses(memory, places), values, kind=kind, pointers={0: type_}, arrays=[memory])
    assert_same_bits(old, wanted)
    assert_same_bits(memory, right)


@pytest.mark.parametrize("type_", [SCALARS[n] for n in ("f16", "bf16", "f32", "f64")], ids=str)
def test_sums_of_floats_round_each_time(type_: ScalarType) -> None:
    rng = np.random.default_rng(2)
    values = convert_float(rng.standard_normal(64) * 100, DTYPES[type_.name])
    places = np.resize(PLACES, 64)
    memory = np.zeros(6, values.dtype)
    right = memory.copy()

    def plus(a: Any, b: Any) -> Any:
        if type_.bits >= 32:
            return a + b
        return convert_float(np.asarray(np.float32(a) + np.float32(b)), values.dtype)

    wanted = one_by_one(right, places, values, plus)
    old = apply(
        AtomicRmw, addresses(memory, places), values, kind="add", pointers={0: type_}, arrays=[memory]
    )
    assert_same_bits(old, wanted)
    assert_same_bits(memory, right)


@pytest.mark.parametrize("type_", [F32, F64], ids=str)
def test_extrema_of_floats_go_by_their_bits(type_: ScalarType) -> None:
    dtype = DTYPES[type_.name]
    nan = np.array(np.nan, dtype)
    ascending = np.array([-nan, -np.inf, -2.0, -1.0, -0.0, 0.0, 1.0, np.inf, nan], dtype)
    assert np.signbit(ascending[0])
    assert not np.signbit(ascending[-1])
    for low in range(len(ascending)):
        for high in range(low, len(ascending)):
            for start, value in ((low, high), (high, low)):
                for kind, right in (("max", high), ("min", low)):
                    memory = ascending[start : start + 1].copy()
                    where = addresses(memory, [0])
                    given = ascending[value : value + 1]
                    apply(AtomicRmw, where, given, kind=kind, pointers={0: type_}, arrays=[memory])
                    assert memory.tobytes() == ascending[right : right + 1].tobytes(), (kind, low, high)


@pytest.mark.parametrize("name", ["i16", "u16", "i32", "u64", "f16", "bf16", "f32", "f64"])
def test_compare_and_swap(name: str) -> None:
    """The first lane at each place that finds what it expects stores; bits are compared."""
    type_ = SCALARS[name]
    dtype = DTYPES[name]
    memory = np.array([0, 7, 0, 0, 5, 1]).astype(dtype)
    values = np.arange(1, 9).astype(dtype)
    right = memory.copy()
    wanted = one_by_one(right, PLACES, values, lambda a, b: b if a == 0 else a)
    zeros = np.zeros(8, dtype)
    old = apply(AtomicCas, addresses(memory, PLACES), zeros, values, pointers={0: type_}, arrays=[memory])
    assert_same_bits(old, wanted)
    assert_same_bits(memory, right)
    if type_.is_float:
        memory[0] = -0.0
        where = addresses(memory, [0])
        apply(AtomicCas, where, zeros[:1], values[:1], pointers={0: type_}, arrays=[memory])
        assert memory[0] == 0, "-0.0 is not +0.0 bit for bit"


def test_masked_lanes_read_0_and_touch_nothing() -> None:
    memory = np.array([5, 6], np.int32)
    where = addresses(memory, [0, 99, 1, 0])
    live = np.array([True, False, False, True])
    values = np.array([1, 2, 3, 4], np.int32)
    old = apply(AtomicRmw, where, values, mask=live, kind="add", pointers={0: I32}, arrays=[memory])
    assert old.tolist() == [5, 0, 0, 6]
    assert memory.tolist() == [10, 6]


def test_a_scalar() -> None:
    memory = np.array([5, 6], np.int32)
    where = addresses(memory, 1)
    old = apply(AtomicRmw, where, np.array(4, np.int32), kind="xchg", pointers={0: I32}, arrays=[memory])
    assert (old.tolist(), memory.tolist()) == (6, [5, 4])


def test_elements_that_share_bytes() -> None:
    """Unaligned elements overlap: lanes still follow one another."""
    memory = np.zeros(12, np.uint8)
    where = addresses(memory, [0, 2, 0])
    values = np.array([0x01020304, 0x01, 0x10000], np.uint32)
    old = apply(AtomicRmw, where, values, kind="add", pointers={0: U32}, arrays=[memory])
    assert old.tolist() == [0, 0x0102, 0x01030304]
    assert memory[:6].tolist() == [4, 3, 4, 1, 0, 0]


def test_a_lane_outside_is_an_error() -> None:
    memory = np.zeros(4, np.int32)
    where = addresses(memory, [0, 4])
    with pytest.raises(InterpreterError, match="out of bounds"):
        apply(AtomicRmw, where, np.ones(2, np.int32), kind="add", pointers={0: I32}, arrays=[memory])
    assert not memory.any()


def test_a_fence_has_no_other_effect() -> None:
    assert apply(Fence) == ()
