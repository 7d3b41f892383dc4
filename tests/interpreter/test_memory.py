"""Loads and stores: masks, strides, alignment, order, and what is outside."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from blocklang.diagnostics import UNKNOWN_LOCATION, InterpreterError
from blocklang.interpreter.address_space import AddressSpace, address_of
from blocklang.interpreter.dtypes import DTYPES
from blocklang.ir.types import F32, I1, I8, I16, I32, I64, SCALARS, U8, U16, U32, ScalarType
from blocklang.ops import memory as ops
from tests.interpreter.harness import FLOATS, INTEGERS, Array, apply, assert_same_bits, numbers


def addresses(array: Array, elements: Any) -> Array:
    """The addresses of elements, counted in elements from [0, ...]."""
    offsets = np.asarray(elements, np.int64) * array.dtype.itemsize
    return np.asarray((address_of(array) + offsets).astype(np.uint64))


@pytest.mark.parametrize("offset", [I8, I16, I32, I64, U8, U16, U32], ids=str)
def test_an_offset_widens_by_its_own_signedness(offset: ScalarType) -> None:
    base = np.array(1 << 40, np.uint64)
    counts = np.array([0, 1, offset.maximum, offset.minimum], DTYPES[offset.name])
    actual = apply(ops.Offset, base, counts, pointers={0: F32})
    assert actual.tolist() == [((1 << 40) + 4 * int(n)) % (1 << 64) for n in counts]


def test_an_address_wraps() -> None:
    base = np.array((1 << 64) - 8, np.uint64)
    assert apply(ops.Offset, base, np.array(3, np.int32), pointers={0: F32}) == 4


@pytest.mark.parametrize("type_", [*INTEGERS, *FLOATS], ids=str)
def test_load_and_store_of_every_type(type_: ScalarType) -> None:
    values = numbers(type_)
    out = np.zeros_like(values)
    pointers = {0: type_}
    loaded = apply(ops.Load, addresses(values, range(values.size)), pointers=pointers, arrays=[values])
    assert_same_bits(loaded, values)
    reverse = addresses(out, range(values.size))[::-1]
    apply(ops.Store, reverse, loaded, pointers=pointers, arrays=[values, out])
    assert_same_bits(out, values[::-1].copy())


def test_masked_lanes_touch_nothing_and_read_other_or_0() -> None:
    array = np.arange(8, dtype=np.float32)
    where = addresses(array, [0, 1, 10**9, -(10**9)])
    mask = np.array([True, False, False, False])
    pointers = {0: F32}
    assert apply(ops.Load, where, mask=mask, pointers=pointers, arrays=[array]).tolist() == [0, 0, 0, 0]
    other = np.array([9, 8, 7, 6], np.float32)
    loaded = apply(ops.Load, where, mask=mask, other=other, pointers=pointers, arrays=[array])
    assert loaded.tolist() == [0, 8, 7, 6]
    apply(ops.Store, where, other, mask=mask, pointers=pointers, arrays=[array])
    assert array.tolist() == [9, 1, 2, 3, 4, 5, 6, 7]
    nothing = np.array(False)
    loaded = apply(
        ops.Load, where, mask=nothing, other=np.array(5, np.float32), pointers=pointers, arrays=[array]
    )
    assert loaded.tolist() == [5, 5, 5, 5]


def test_bools_are_bytes() -> None:
    raw = np.array([0, 1, 2, 255], np.uint8)
    loaded = apply(ops.Load, addresses(raw, range(4)), pointers={0: I1}, arrays=[raw])
    assert loaded.tolist() == [False, True, True, True]
    apply(ops.Store, addresses(raw, range(4)), ~loaded, pointers={0: I1}, arrays=[raw])
    assert raw.tolist() == [1, 0, 0, 0]


def test_the_last_lane_of_an_address_wins_in_row_major_order() -> None:
    array = np.zeros(4, np.int32)
    where = addresses(array, [[0, 1, 0], [1, 1, 2]])
    values = np.arange(1, 7, dtype=np.int32).reshape(2, 3)
    apply(ops.Store, where, values, pointers={0: I32}, arrays=[array])
    assert array.tolist() == [3, 5, 6, 0]
    mask = np.array([[True, True, False], [False, False, False]])
    apply(ops.Store, where, values * 10, mask=mask, pointers={0: I32}, arrays=[array])
    assert array.tolist() == [10, 20, 6, 0]


@pytest.mark.parametrize("start", [0, 1, 2, 3, 7])
def test_unaligned_arrays(start: int) -> None:
    raw = np.zeros(100, np.uint8)
    array = raw[start : start + 64].view(np.float64)
    array[:] = np.arange(8)
    loaded = apply(ops.Load, addresses(array, [7, 0, 3]), pointers={0: SCALARS["f64"]}, arrays=[array])
    assert loaded.tolist() == [7, 0, 3]
    apply(ops.Store, addresses(array, [1, 2]), loaded[:2], pointers={0: SCALARS["f64"]}, arrays=[array])
    assert array.tolist() == [0, 7, 0, 3, 4, 5, 6, 7]


def test_addresses_of_mixed_alignment() -> None:
    raw = np.arange(16, dtype=np.uint8)
    where = addresses(raw, [0, 3, 5])
    loaded = apply(ops.Load, where, pointers={0: I32}, arrays=[raw])
    assert loaded.tobytes() == bytes([0, 1, 2, 3, 3, 4, 5, 6, 5, 6, 7, 8])
    apply(ops.Store, where, np.array([-1, 0, -1], np.int32), pointers={0: I32}, arrays=[raw])
    assert raw.tolist() == [255, 255, 255, 0, 0, 255, 255, 255, 255, 9, 10, 11, 12, 13, 14, 15]


def test_negative_and_large_strides() -> None:
    whole = np.arange(24, dtype=np.int16).reshape(4, 6)
    view = whole[::-2, 1::2]
    elements = [(i * view.strides[0] + j * view.strides[1]) // 2 for i in range(2) for j in range(3)]
    loaded = apply(ops.Load, addresses(view, elements), pointers={0: I16}, arrays=[view])
    assert loaded.tolist() == view.reshape(-1).tolist()


def test_an_array_without_axes() -> None:
    array = np.array(4.5, np.float32)
    assert apply(ops.Load, addresses(array, 0), pointers={0: F32}, arrays=[array]) == 4.5


def test_lanes_may_address_several_arrays() -> None:
    one, two = np.array([1, 2], np.int32), np.array([3, 4], np.int32)
    where = np.concatenate([addresses(two, [1]), addresses(one, [0]), addresses(two, [0])])
    assert apply(ops.Load, where, pointers={0: I32}, arrays=[one, two]).tolist() == [4, 1, 3]


def test_memory_of_which_only_the_address_is_known() -> None:
    known, other = np.zeros(2, np.float32), np.array([1, 2, 3], np.float32)
    memory = AddressSpace([("known", known)])
    where = addresses(other, [2, 0])
    with pytest.raises(InterpreterError, match="out of bounds"):
        memory.load(where, None, np.dtype(np.float32), UNKNOWN_LOCATION)
    memory.open()
    assert memory.load(where, None, np.dtype(np.float32), UNKNOWN_LOCATION).tolist() == [3, 1]
    both = np.concatenate([where, addresses(known, [1])])
    memory.store(both, np.array([7, 8, 9], np.float32), None, UNKNOWN_LOCATION)
    assert other.tolist() == [8, 2, 7]
    assert known.tolist() == [0, 9]
    known.flags.writeable = False
    memory = AddressSpace([("known", known)])
    memory.open()
    with pytest.raises(InterpreterError, match="read-only"):
        memory.store(both, np.array([7, 8, 9], np.float32), None, UNKNOWN_LOCATION)
    with pytest.raises(InterpreterError, match="out of bounds"):
        memory.load(np.array([0], np.uint64), None, np.dtype(np.float32), UNKNOWN_LOCATION)
    assert other.tolist() == [8, 2, 7]


def failure(action: str, where: Array, arrays: list[Array], **operands: Array) -> str:
    memory = AddressSpace((name, array) for name, array in zip("xyz", arrays, strict=False))
    live = operands.get("live")
    if action == "load":
        with pytest.raises(InterpreterError) as raised:
            memory.load(where, live, np.dtype(np.float32), UNKNOWN_LOCATION)
    else:
        with pytest.raises(InterpreterError) as raised:
            memory.store(where, np.ones(where.shape, np.float32), live, UNKNOWN_LOCATION)
    return str(raised.value)


def test_what_an_access_outside_says() -> None:
    x = np.zeros((2, 5), np.float32)
    text = failure("load", addresses(x, [[0, 1], [12, 99]]), [x])
    assert (
        "load out of bounds, lane [1, 0]: element offset 12 from the start of 'x' (float32 of shape (2, 5))"
        in text
    )
    assert "12 bytes past the end" in text
    text = failure("store", addresses(x, -3), [x])
    assert "store out of bounds, element offset -3 from the start of 'x'" in text
    assert "12 bytes before the start" in text


def test_a_partial_element_is_outside() -> None:
    x = np.zeros(4, np.float32)
    assert "2 bytes past the end" in failure("load", addresses(x, 3) + np.uint64(2), [x])


def test_nothing_is_stored_when_a_lane_is_outside() -> None:
    x = np.zeros(4, np.float32)
    failure("store", addresses(x, [0, 1, 4]), [x])
    assert not x.any()


def test_lanes_are_named_as_the_user_counts_them() -> None:
    x = np.zeros(4, np.float32)
    live = np.array([False, True, False, True, True])
    assert "lane [4]" in failure("load", addresses(x, [9, 0, 9, 1, 4]), [x], live=live)


def test_an_empty_array_has_no_element() -> None:
    empty = np.zeros(0, np.float32)
    assert "past the end" in failure("load", addresses(empty, [0]), [empty])


def test_a_read_only_array_that_another_argument_can_write() -> None:
    x = np.zeros(4, np.float32)
    frozen = x.view()
    frozen.flags.writeable = False
    assert re.search("'x' .* is read-only", failure("store", addresses(frozen, [1]), [frozen]))
    memory = AddressSpace([("x", frozen), ("y", x)])
    memory.store(addresses(frozen, [1]), np.ones(1, np.float32), None, UNKNOWN_LOCATION)
    assert x.tolist() == [0, 1, 0, 0]


def test_memory_of_the_process_is_there_once_a_pointer_is_made_of_an_integer() -> None:
    known, foreign = np.arange(3, dtype=np.float32), np.arange(70_000, dtype=np.float32)
    space = AddressSpace([("known", known)])
    where = addresses(foreign, [5, 60_000])
    with pytest.raises(InterpreterError, match="out of bounds"):
        space.load(where, None, np.dtype(np.float32), UNKNOWN_LOCATION)
    space.open()
    assert space.load(where, None, np.dtype(np.float32), UNKNOWN_LOCATION).tolist() == [5, 60_000]
    both = np.concatenate([where, addresses(known, [2, 0])])
    space.store(both, np.array([7, 8, 9, 10], np.float32), None, UNKNOWN_LOCATION)
    assert [foreign[5], foreign[60_000], *known] == [7, 8, 10, 1, 9]
    later = np.arange(5_000_000, dtype=np.float64)  # mapped after the first look
    assert space.load(addresses(later, [4_999_999]), None, later.dtype, UNKNOWN_LOCATION) == 4_999_999


def test_what_no_pointer_may_reach() -> None:
    known, kept = np.zeros(3, np.float32), np.zeros(3, np.float32)
    kept.flags.writeable = False
    space = AddressSpace([("known", known), ("kept", kept)])
    space.open()
    with pytest.raises(InterpreterError, match="read-only"):
        space.store(addresses(kept, [0]), np.ones(1, np.float32), None, UNKNOWN_LOCATION)
    with pytest.raises(InterpreterError, match="out of bounds"):
        space.load(np.array([4096], np.uint64), None, np.dtype(np.float32), UNKNOWN_LOCATION)
    assert kept.tolist() == [0, 0, 0]
