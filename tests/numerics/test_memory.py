"""`load` and `store`: masks, `other`, hints, gathers, scatters, strides, order, and what stays untouched."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import blocklang as bl
from tests.numerics import memory_kernels as kernels
from tests.numerics.launching import (
    Array,
    Guarded,
    Out,
    assert_same_bits,
    interpreted,
    is_untouched,
    launch_both,
    launch_one,
)
from tests.numerics.values import ALL, EXTENTS, NUMPY_DTYPES, numbers, random_numbers

MODES = pytest.mark.parametrize("mode", ["compiled", "interpreted"])


def in_mode(kernel: bl.JITFunction, mode: str) -> bl.JITFunction:
    return kernel if mode == "compiled" else interpreted(kernel)


def lengths_of(block: int) -> list[int]:
    """Masks that are ragged and full, of one program and of two."""
    return sorted({1, block // 2 + 1, block, block + 1, 2 * block})


def plus(a: Array, b: Array, name: str) -> Array:
    if name == "int1":
        return a ^ b
    with np.errstate(all="ignore"):
        return np.asarray(a + b)


@pytest.mark.parametrize("name", ALL)
def test_masked_lanes(name: str) -> None:
    """Lanes that are masked off read `other`, or 0, and leave memory alone. Two programs and an idle one."""
    for n in (0, 17, 33, 34):
        x = np.resize(numbers(name), max(n, 1))
        result = launch_one(kernels.masked_copy, 3, x, Out((5, n), name), n, BLOCK=33)
        live = np.arange(n) % 3 != 0
        zero, one = np.zeros(n, x.dtype), np.ones(n, x.dtype)
        x, first = x[:n], x[0]
        a, b = np.where(live, x, zero), np.where(live, x, one)
        expected = [a, b, np.where(live, x, first), np.where(live, x, plus(a, b, name))]
        for row, right in zip(result[:4], expected, strict=True):
            assert_same_bits(row, right, f"{name}, n = {n}")
        assert (is_untouched(result[4]) == ~live).all()
        assert_same_bits(result[4][live], x[live], f"{name}, n = {n}")


@pytest.mark.parametrize("block", EXTENTS)
def test_masks_on_every_extent(block: int) -> None:
    for n in lengths_of(block):
        x = random_numbers("fp32", (n,))
        result = launch_one(kernels.masked_copy, 2, x, Out((5, n), "fp32"), n, BLOCK=block)
        live = np.arange(n) % 3 != 0
        assert_same_bits(result[0], np.where(live, x, np.float32(0)), f"n = {n}")
        assert (is_untouched(result[4]) == ~live).all()


@pytest.mark.parametrize(
    ("shape", "block"),
    [((5, 37), (5, 37)), ((5, 37), (8, 64)), ((3, 1), (7, 5)), ((1, 1), (33, 33)), ((16, 50), (16, 64))],
)
def test_masks_of_two_axes(shape: tuple[int, int], block: tuple[int, int]) -> None:
    x = random_numbers("int32", shape)
    m, n = shape
    result = launch_one(kernels.masks_of_2d, 1, x, Out((5, m, n), "int32"), m, n, M=block[0], N=block[1])
    i, j = np.mgrid[:m, :n]
    assert_same_bits(result[0], x)
    assert (is_untouched(result[1]) == (j > i)).all()
    assert_same_bits(result[1][j <= i], x[j <= i])
    if m > 3:
        assert_same_bits(result[2], x)
    else:
        assert is_untouched(result[2]).all()
    assert_same_bits(result[3], np.broadcast_to(x[0], x.shape))
    assert_same_bits(result[4], np.where(j % 2 == 1, x, 7).astype(np.int32))


@pytest.mark.parametrize("name", ["int1", "int8", "bf16", "fp32", "fp64"])
def test_masks_from_memory(name: str) -> None:
    n = 250
    x = random_numbers(name, (n,))
    generator = np.random.default_rng(1)
    for masks in (generator.random(n) < 0.5, np.ones(n, bool), np.zeros(n, bool), np.arange(n) % 100 == 7):
        result = launch_one(kernels.masked_by_array, 4, x, masks, Out((n,), name), n, BLOCK=100)
        assert (is_untouched(result) == ~masks).all()
        assert_same_bits(result[masks], x[masks])


def test_masks_that_are_constants() -> None:
    x = random_numbers("int32", (33,))
    result = launch_one(kernels.constant_masks, 1, x, Out((3, 33), "int32"), BLOCK=33)
    assert is_untouched(result[0]).all()
    assert (result[1] == 5).all()
    assert (result[2] == 0).all()


# ---- gathers and scatters ----

INDEX_TYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


@pytest.mark.parametrize("index", INDEX_TYPES)
def test_gathers(index: str) -> None:
    n, size = 257, 100
    x = random_numbers("fp32", (size,))
    indices = np.random.default_rng(2).integers(0, size, n).astype(NUMPY_DTYPES[index])
    for kernel, expected in ((kernels.gather, x[indices]), (kernels.gather_of_a_gather, x[indices[indices]])):
        assert_same_bits(launch_one(kernel, 9, x, indices, Out((n,), "fp32"), n, BLOCK=33), expected)


@pytest.mark.parametrize("name", ALL)
def test_gathers_and_scatters_of_every_type(name: str) -> None:
    n = 100
    x = random_numbers(name, (n,))
    order = np.random.default_rng(3).permutation(n).astype(np.int32)
    assert_same_bits(launch_one(kernels.gather, 2, x, order, Out((n,), name), n, BLOCK=64), x[order])
    result = launch_one(kernels.scatter, 4, x, order, Out((n,), name), n, BLOCK=33)
    even = np.arange(n) % 2 == 0
    assert (is_untouched(result) == ~even).all()
    assert_same_bits(result[even], x[np.argsort(order)][even])


@MODES
def test_of_lanes_that_store_to_one_place_one_wins(mode: str) -> None:
    x, indices = np.arange(1, 101, dtype=np.int32), np.zeros(100, np.int32)
    out = Guarded(np.zeros(2, np.int32))
    in_mode(kernels.scatter, mode)[1](x, indices, out.array, 100, BLOCK=100)
    assert out.array[0] in x
    assert out.array[1] == 0
    assert out.is_whole()


# ---- addresses ----


@pytest.mark.parametrize("name", ["int8", "fp16", "fp32", "fp64"])
@pytest.mark.parametrize(
    "view",
    [np.s_[:, :], np.s_[::2, ::3], np.s_[::-1, ::-1], np.s_[2:3, ::-2], np.s_[:, 4:5], np.s_[1::3, 1:]],
    ids=str,
)
@MODES
def test_any_strides(name: str, view: Any, mode: str) -> None:
    """Input and output are views; what lies between their elements stays."""
    x = random_numbers(name, (9, 40))
    out = Guarded(random_numbers(name, (9, 40), 1))
    expected = out.array.copy()
    expected[view] = x[view]
    source, target = x[view], out.array[view]
    in_mode(kernels.through_strides, mode)[1](
        source, target, *source.shape, *bl.strides(source), *bl.strides(target), M=11, N=41
    )
    assert_same_bits(out.array, expected)
    assert out.is_whole()


@MODES
def test_strides_of_zero(mode: str) -> None:
    x = np.broadcast_to(np.arange(37, dtype=np.float32), (5, 37))
    out = Guarded(np.zeros((37, 5), np.float32))
    target = out.array.T
    in_mode(kernels.through_strides, mode)[1](
        x, target, 5, 37, *bl.strides(x), *bl.strides(target), M=8, N=64
    )
    assert_same_bits(target, np.ascontiguousarray(x))


@pytest.mark.parametrize("name", ["fp16", "int32", "fp64"])
@pytest.mark.parametrize("misaligned", [1, 3, 8])
def test_arrays_that_are_not_aligned(name: str, misaligned: int) -> None:
    x = random_numbers(name, (100,))
    result = launch_one(kernels.masked_copy, 4, x, Out((5, 100), name), 100, misaligned=misaligned, BLOCK=33)
    assert_same_bits(result[4][np.arange(100) % 3 != 0], x[np.arange(100) % 3 != 0])


@pytest.mark.parametrize("name", INDEX_TYPES)
def test_offsets_widen_by_their_signedness(name: str) -> None:
    centre = 200
    x = random_numbers("int32", (2 * centre + 1,))
    offsets = [-128, -1, 0, 1, 127] if name.startswith("int") else [0, 1, 127, 128, 200]
    by = np.array([v for v in offsets if abs(v) <= centre], NUMPY_DTYPES[name])
    plain = by.astype(np.int64)
    result = launch_one(
        kernels.offsets_of_type, 1, x, by, Out((3, len(by)), "int32"), len(by), CENTRE=centre, BLOCK=7
    )
    assert_same_bits(result, np.stack([x[centre + plain], x[centre + plain], x[centre - plain]]))


@pytest.mark.parametrize("name", ["int1", "int8", "fp32", "bf16", "fp64"])
def test_scalars(name: str) -> None:
    x = random_numbers(name, (5,))
    (result,) = launch_both(kernels.scalars, 1, x, Out((5,), name), 5)
    assert is_untouched(result[3:4]).all()
    zero = np.zeros((), x.dtype)
    expected = np.array([x[4], x[1], zero, plus(x[:1], x[1:2], name)[0]], x.dtype)
    assert_same_bits(result[[0, 1, 2, 4]], expected)


def test_values_are_broadcast_to_the_pointers() -> None:
    x = random_numbers("int16", (40,))
    result = launch_one(kernels.spread_values, 1, x, Out((4, 5, 37), "int16"), 5, M=5, N=37)
    ones = np.ones((5, 37), np.int16)
    expected = [x[0] * ones, x[:37] * ones, x[:5, None] * ones, ones]
    assert_same_bits(result, np.stack(expected))


def test_pointers_compare_and_convert() -> None:
    i = np.arange(7)
    x = random_numbers("int32", (7,))
    result = launch_one(kernels.compare_pointers, 1, x, Out((5, 7), "int1"), BLOCK=7)
    always = np.ones(7, bool)
    assert result.tolist() == np.stack([i < 3, i == 3, ~always, always, always]).tolist()


def test_const_pointers_are_read_only() -> None:
    x = random_numbers("fp32", (7,))
    assert_same_bits(launch_one(kernels.copy_const, 1, x, Out((7,), "fp32"), BLOCK=7), x)
    with pytest.raises(bl.CompilationError, match="const pointer"):
        launch_both(kernels.store_const, 1, x, BLOCK=7)


# ---- order ----


@pytest.mark.parametrize("n", [1, 2, 33, 100])
@pytest.mark.parametrize("name", ["int8", "fp32", "fp64"])
def test_a_load_completes_before_a_later_store(name: str, n: int) -> None:
    x = random_numbers(name, (n,))
    result = launch_one(kernels.shift_in_place, 1, Out((n,), name, x), n, BLOCK=100)
    shifted = np.concatenate([x[:1], x[:-1]])
    assert_same_bits(result, shifted[::-1])


@MODES
@pytest.mark.parametrize("distance", [0, 1, 5, 50, 100])
def test_arguments_that_overlap(distance: int, mode: str) -> None:
    memory = random_numbers("fp32", (200,))
    expected = memory.copy()
    expected[:100] = memory[distance : distance + 100]
    expected[distance : distance + 100] = memory[:100]
    held = Guarded(memory)
    in_mode(kernels.swap_through_two_names, mode)[1](held.array, held.array[distance:], 100, BLOCK=128)
    assert_same_bits(held.array, expected)
    assert held.is_whole()


@MODES
@pytest.mark.parametrize("distance", [0, 1, 5, 50, 100])
def test_arrays_of_which_the_address_is_known(distance: int, mode: str) -> None:
    memory = random_numbers("fp32", (200,))
    expected = memory.copy()
    expected[distance : distance + 100] = memory[:100]
    held = Guarded(memory)
    begin = held.array.ctypes.data
    table = np.array([begin, begin + 4 * distance], np.int64)
    in_mode(kernels.move_through_addresses, mode)[1](table, 100, BLOCK=128)
    assert_same_bits(held.array, expected)
    assert held.is_whole()


@MODES
@pytest.mark.parametrize("is_up", [False, True])
def test_pointers_chosen_at_run_time(is_up: bool, mode: str) -> None:
    memory = random_numbers("fp32", (101,))
    expected = memory.copy()
    if is_up:
        expected[1:] = memory[:-1]
    else:
        expected[:-1] = memory[1:]
    held = Guarded(memory)
    in_mode(kernels.move_between_chosen, mode)[1](held.array, is_up, 100, BLOCK=128)
    assert_same_bits(held.array, expected)
    assert held.is_whole()
