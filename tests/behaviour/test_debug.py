"""The debug mode: what is wrong is named, in the same words in both modes; what is right stays as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import blocklang as bl
from tests.behaviour import debug_kernels as kernels
from tests.behaviour.rows import MODES, as_mode, row
from tests.numerics.launching import Array, Guarded, assert_same_bits

types = pytest.mark.parametrize


def failure(mode: str, kernel: bl.JITFunction, grid: Any, *arguments: Any, **named: Any) -> str:
    """What a launch in a mode says that is at fault; every array is between canaries."""
    held = [Guarded(a) if isinstance(a, np.ndarray) else a for a in arguments]
    with pytest.raises(bl.CheckError) as caught:
        as_mode(kernel, mode)[grid](
            *(h.array if isinstance(h, Guarded) else h for h in held), debug=True, **named
        )
    assert all(h.is_whole() for h in held if isinstance(h, Guarded)), "something outside was touched"
    assert isinstance(caught.value, bl.InterpreterError) == (mode == "interpreted")
    return str(caught.value)


def both(kernel: bl.JITFunction, grid: Any, *arguments: Any, **named: Any) -> str:
    """What both modes say."""
    said = [failure(mode, kernel, grid, *arguments, **named) for mode in ("compiled", "interpreted")]
    assert said[0] == said[1]
    return said[0]


X = np.arange(10, dtype=np.float32)
OUT = np.zeros(10, np.float32)

# Kernel: the grid, then n; what is said about it, in order.
FAULTS: dict[str, tuple[Any, int, list[str]]] = {
    "tail_without_mask": (
        3,
        10,
        [
            "debug_kernels.py",
            "load out of bounds, lane [2]: element offset 10 from the start of 'x' (float32 of shape (10,)): "
            "4 bytes past the end",
            "v = tl.load(x + i)",
            "    ^^^^^^^^^^^^^^",
            "in program [2, 0, 0]",
            "mask the lanes that are outside of the array",
        ],
    ),
    "store_one_more": (1, 10, ["store out of bounds, lane [10]: element offset 10", "'out'"]),
    "before_the_start": (1, 10, ["lane [0]: element offset -1", "'x'", "4 bytes before the start"]),
    "scalar_past_the_end": (1, 10, ["load out of bounds, element offset 10", "[0, 0, 0]"]),
    "scalar_store": ((2, 3), 10, ["store out of bounds, element offset -1", "'out'", "[0, 0, 0]"]),
    "two_axes": (1, 10, ["lane [1, 0]: element offset 10 "]),
    "walks_too_far": (1, 20, ["lane [10]: element offset 10 ", "'x'", "total += tl.load(at)"]),
    "walks_while": (1, 10, ["element offset 10 ", "total += tl.load(at)"]),
    "chosen_array": (1, 10, ["load out of bounds, lane [10]: element offset 10 "]),
    "into_the_other_array": (1, 10, ["lane [0]: element offset 10 ", "'x'"]),
    "counted": (1, 10, ["atomic out of bounds, lane [5]: element offset 10 ", "'out'", "tl.atomic_add("]),
    "in_an_arm": (1, 10, ["store out of bounds, lane [10]:", "tl.store(out + i, 1.0)"]),
    "block_pointer": (1, 10, ["load out of bounds, lane [10]: element offset 10 ", "tl.load(at)"]),
    "rows_masked_alone": (1, 10, ["lane [0, 10]: element offset 10 ", "'x'"]),
    "masked_backwards": (1, 10, ["lane [10]: element offset 10 ", "'out'"]),
    "masked_by_another_shape": (1, 10, ["lane [5, 0]: element offset 10 ", "'out'"]),
    "in_a_helper": (1, 10, ["lane [10]", "return tl.load(x + at)"]),
}
BLOCKS = {"tail_without_mask": 4, "counted": 8, "two_axes": 10}


@types("name", FAULTS)
@row("Memory", "bounds, races, NaN")
def test_an_access_outside_is_named_in_both_modes(name: str) -> None:
    """File, line and caret; program and lane; the array with its dtype and shape, and what to do."""
    grid, n, words = FAULTS[name]
    said = both(getattr(kernels, name), grid, X, OUT, n, BLOCK=BLOCKS.get(name, 12))
    place = 0
    for word in words:
        assert word in said[place:], f"{word!r} is not in\n{said}"
        place = said.index(word, place)


@MODES
@row("Memory", "bounds, races, NaN")
def test_nothing_is_stored_from_the_access_at_fault_on(mode: str) -> None:
    """A program ends at its fault; those before it, and what it stored before, stand."""
    out = np.zeros(10, np.float32)
    with pytest.raises(bl.CheckError, match="element offset 10 "):
        as_mode(kernels.tail_without_mask, mode)[3](X, out, 10, BLOCK=4, debug=True)
    assert out.tolist() == [*range(8), 0, 0]


@row("Memory", "bounds, races, NaN")
def test_indices_that_were_loaded() -> None:
    """An index that an array holds is checked lane by lane; the array at fault is named."""
    for kernel in (kernels.gathered, kernels.gathered_twice):
        for bad in (-1, 10, 1 << 30, -(1 << 31)):
            indices = np.arange(10, dtype=np.int32)
            indices[7] = bad
            said = both(kernel, 1, X, indices, OUT, 10, BLOCK=16)
            assert f"lane [7]: element offset {bad} " in said
            assert ("'indices'" in said) == (kernel is kernels.gathered_twice)


@types("name", ["int8", "int16", "float16", "float64", "bool"])
@row("Memory", "bounds, races, NaN")
def test_elements_of_every_size(name: str) -> None:
    """The end of an array is counted in its elements, whatever their size."""
    x = np.zeros(33, name)
    said = both(kernels.masked_tail, 5, x, x[:32], 33, BLOCK=8)
    assert (
        f"store out of bounds, lane [0]: element offset 32 from the start of 'out' ({name} of shape (32,))"
        in said
    )
    assert "in program [4, 0, 0]" in said


@row("Memory", "bounds, races, NaN")
def test_views_end_where_their_elements_end() -> None:
    """A view's ends are those of its own elements, not of the memory behind it."""
    whole = np.zeros((6, 8), np.float32)
    for view, words in (
        (whole[1:3, 2:5], "(2, 3)"),
        (whole[::-1], "(6, 8)"),
        (whole[:0], "(0, 8)"),
        (whole[2, 2], "()"),
    ):
        with pytest.raises(bl.CheckError) as caught:
            as_mode(kernels.before_the_start, "compiled")[1](np.asarray(view), OUT, 10, BLOCK=64, debug=True)
        with pytest.raises(bl.CheckError) as again:
            as_mode(kernels.before_the_start, "interpreted")[1](
                np.asarray(view), OUT, 10, BLOCK=64, debug=True
            )
        assert words in str(caught.value)
        assert str(caught.value) == str(again.value)


@row("Memory", "bounds, races, NaN")
def test_the_first_program_at_fault_is_named_however_many_threads_run() -> None:
    """Of several programs at fault, the one with the lowest id is raised."""
    x, out = np.zeros(1000, np.float32), np.zeros(100_000, np.float32)
    for threads in (1, 2, 4):
        with pytest.raises(
            bl.CheckError, match=r"lane \[8\]: element offset 1000 (?s:.*)program \[62, 0, 0\]"
        ):
            kernels.tail_without_mask[6250](x, out, 100_000, BLOCK=16, debug=True, num_threads=threads)


@types("how", ["decorator", "launch", "BLOCKLANG_DEBUG", "TRITON_DEBUG"])
@types("interpret", [False, True])
@row("Memory", "bounds, races, NaN")
def test_every_switch_of_the_debug_mode(how: str, interpret: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The decorator, the launch and the environment turn the same checks on."""
    if how.isupper():
        monkeypatch.setenv(how, "1")
    kernel = bl.jit(debug=how == "decorator", interpret=interpret)(kernels.into_the_other_array.fn)
    memory = np.zeros(20, np.float32)
    options = {"debug": True} if how == "launch" else {}
    with pytest.raises(bl.CheckError, match="element offset 10 from the start of 'x'"):
        kernel[1](memory[:10], memory[10:], 10, BLOCK=16, **options)


@row("Memory", "bounds, races, NaN")
def test_without_it_nothing_is_checked() -> None:
    """Compiled code reads what lies behind the array."""
    memory = np.arange(20, dtype=np.float32)
    out = np.zeros(10, np.float32)
    kernels.into_the_other_array[1](memory[:10], out, 10, BLOCK=16)
    assert out.tolist() == list(range(10, 20))


# ---- wrapped addresses ----

WRAPPED: dict[str, tuple[Any, int, str]] = {
    "wrapped_product": (
        1,
        1 << 30,
        "int32 overflow in the address of a load, lane [2]: element offset 2147483648 from the start of 'x' "
        "(float32 of shape (10,)) has wrapped to element offset -2147483648",
    ),
    "wrapped_scalar": (3, 1 << 30, "lane [0]: element offset 4294967296 from"),
    "wrapped_behind_a_mask": (1, 1 << 30, "lane [2]: element offset 2147483648 from"),
    "wrapped_remainder": (1, (1 << 30) + 1, "lane [2]: element offset "),
    "wrapped_shift": (1, 0, "lane [4]: element offset 4294967296 from"),
    "wrapped_in_a_loop": (1, 1 << 30, "lane [0]: element offset 4294967296 from"),
    "wrapped_in_a_while": (1, 1 << 30, "store: element offset 4294967296 from"),
    "wrapped_in_an_arm": (2, 1 << 30, "lane [0]: element offset 4294967296 from"),
    "wrapped_step_of_a_pointer": (1, 1 << 30, "lane [0]: element offset 4294967296 from"),
    "wrapped_between_lanes": (1, 1 << 30, "lane [1]: element offset 4294967297 from"),
    "wrapped_cast": (1, 1 << 30, "lane [1]: element offset 4294967296 from"),
}


@types("name", WRAPPED)
@row("Numbers", "integer wrap")
def test_an_overflow_that_feeds_a_pointer_is_named_in_both_modes(name: str) -> None:
    """Even where the address that it wraps to lies in the array."""
    grid, stride, words = WRAPPED[name]
    x = np.zeros(10, np.float32)
    said = both(getattr(kernels, name), grid, x, OUT, stride, BLOCK=8)
    assert words in said
    assert "int32 overflow in the address of a " in said
    assert ".to(tl.int64)" in said


# ---- no false alarm ----

Arguments = Callable[[int], tuple[Any, ...]]
CLEAN: dict[str, tuple[Any, int]] = {
    "masked_tail": (4, 8),
    "dead_lanes_wrap": (1, 64),
    "walks_beyond": (1, 8),
    "walks_backwards": (1, 8),
    "jumps": (1, 8),
    "in_place": (1, 64),
    "overlapping_tiles": (4, 8),
    "remainders": (4, 8),
    "clamped": (4, 8),
    "hashed": (1, 64),
    "maybe_null": (1, 64),
}


@MODES
@types("name", CLEAN)
@types("n", [1, 7, 8, 29])
@row("Memory", "bounds, races, NaN")
def test_no_false_alarm(name: str, n: int, mode: str) -> None:
    """Suspicious and right: with and without the debug mode the same bits, and no alarm."""
    grid, block = CLEAN[name]
    kernel = as_mode(getattr(kernels, name), mode)
    outcomes = []
    for debug in (False, True):
        x, out = Guarded(np.arange(n, dtype=np.float32) / 3), Guarded(np.zeros(n, np.float32))
        if name == "hashed":
            x = Guarded(np.arange(4, dtype=np.float32))
        kernel[grid](x.array, out.array, n, BLOCK=block, debug=debug)
        assert x.is_whole()
        assert out.is_whole()
        outcomes.append((x.array.copy(), out.array.copy()))
    assert_same_bits(outcomes[0][0], outcomes[1][0])
    assert_same_bits(outcomes[0][1], outcomes[1][1])


VIEWS: dict[str, Callable[[Array], Array]] = {
    "part": lambda w: w[2:6, 3:9],
    "backwards": lambda w: w[::-1, ::-1][:6, :9],
    "every third": lambda w: w[::2, ::3],
    "transposed": lambda w: w[:9, :6].T,
    "one element": lambda w: w[3:4, 4:5],
    "zero stride": lambda w: np.broadcast_to(w[0, :9], (6, 9)),
}


@MODES
@types("view", VIEWS)
@row("Memory", "bounds, races, NaN")
def test_no_false_alarm_for_views(view: str, mode: str) -> None:
    """A right program over views of any strides gives what it gives without checks."""
    x = VIEWS[view](np.arange(600, dtype=np.float32).reshape(20, 30))
    out = np.zeros(x.shape, np.float32)
    as_mode(kernels.strided, mode)[1](x, out, *x.shape, *bl.strides(x), M=16, N=16, debug=True)
    assert_same_bits(out, np.ascontiguousarray(x)[:16, :16])


@MODES
@row("Memory", "bounds, races, NaN")
def test_no_false_alarm_for_arrays_of_other_kinds(mode: str) -> None:
    """Without axes, without elements, far apart, made of an address, in descriptors, in a product."""
    result = np.zeros((), np.float32)
    as_mode(kernels.scalars, mode)[1](np.array(3.0, np.float32), result, debug=True)
    assert result == 6
    empty = np.zeros(0, np.float32)
    as_mode(kernels.masked_tail, mode)[2](empty, empty, 0, BLOCK=8, debug=True)
    x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    as_mode(kernels.made_of_an_integer, mode)[1](x, out, x.ctypes.data, BLOCK=8, debug=True)
    assert_same_bits(out, x)
    out = np.zeros(3, np.float32)
    far = np.lib.stride_tricks.as_strided(np.zeros(1), (1,), (8,)).astype(np.float32)
    as_mode(kernels.long_stride, mode)[1](far, out[:1], 1, 1 << 40, BLOCK=8, debug=True)
    square, target = np.arange(121, dtype=np.float32).reshape(11, 11), np.zeros((11, 11), np.float32)
    as_mode(kernels.descriptor, mode)[1](square, target, 11, BLOCK=4, debug=True)
    assert_same_bits(target, square)
    a, b = np.arange(35, dtype=np.float32).reshape(5, 7), np.arange(63, dtype=np.float32).reshape(7, 9)
    product = np.zeros((5, 9), np.float32)
    as_mode(kernels.matrix_product, mode)[(2, 2)](a, b, product, 5, 9, 7, BM=4, BN=8, BK=4, debug=True)
    assert_same_bits(product, a @ b)


# ---- NaN ----

BIRTHS: dict[str, tuple[list[float], list[float], str]] = {
    "quotient": ([1, 0, 2], [1, 0, 0], "`div` makes a NaN of numbers, lane [1]"),
    "root": ([1, 3, 0.5], [1, 1, 1], "`sqrt` makes a NaN of numbers, lane [2]"),
    "difference_of_infinities": ([1, 2, 3], [1, 1, 1], "`sub` makes a NaN of numbers, lane [1]"),
    "sum_of_infinities": ([1, -1, 5], [0, 0, 1], "`sum` makes a NaN of numbers"),
    "product_in_a_loop": ([1, 0, 1], [3e38, 1e38, 1], ""),
    "padding_in_a_sum": ([1, 2, 3], [4, 5, 6], "`sum` makes a NaN of numbers"),
}


@types("name", BIRTHS)
@row("Memory", "bounds, races, NaN")
def test_a_nan_is_named_where_it_is_made(name: str) -> None:
    """By the operation that has made it of numbers, not where it is seen; in both modes alike."""
    x, y, words = BIRTHS[name]
    kernel = getattr(kernels, name)
    given = np.array(x, np.float32), np.array(y, np.float32)
    said = []
    for mode in ("compiled", "interpreted"):
        text = ""
        try:
            as_mode(kernel, mode)[1](*given, np.zeros(3, np.float32), 3, BLOCK=8, debug="nan")
        except bl.CheckError as error:
            text = str(error)
        said.append(text)
        as_mode(kernel, mode)[1](*given, np.zeros(3, np.float32), 3, BLOCK=8, debug=True)
    assert said[0] == said[1]
    assert (words in said[0]) if words else not said[0]


@MODES
@types("name", ["quotient", "root", "padding", "softmax", "product_in_a_loop"])
@types("value", [1.5, np.nan, np.inf])
@row("Memory", "bounds, races, NaN")
def test_no_false_alarm_for_nan(name: str, value: float, mode: str) -> None:
    """A NaN that was loaded is nobody's fault, nor is one behind a mask."""
    x, y = np.array([2, value, 4], np.float32), np.array([4, 2, 8], np.float32)
    if name in ("padding", "softmax") and np.isinf(value):
        value, x[1] = 3, 3
    outs = [np.zeros(3, np.float32) for _ in range(2)]
    for out, debug in zip(outs, (False, "nan"), strict=True):
        as_mode(getattr(kernels, name), mode)[1](x, y, out, 3, BLOCK=8, debug=debug)
    assert_same_bits(outs[0], outs[1])


# ---- poison ----


@MODES
@types("name", ["float32", "float16", "int32", "int8", "uint16"])
@row("Memory", "masked lanes")
def test_masked_lanes_are_poisoned_on_request(name: str, mode: str) -> None:
    """A kernel that relies on their zeros computes something else, one that asks for zeros the same."""
    x = np.ones(3, name)
    for kernel, debug, changes in (
        (kernels.relies_on_zeros, True, False),
        (kernels.relies_on_zeros, "poison", True),
        (kernels.asks_for_zeros, "poison", False),
        (kernels.asks_for_zeros, "nan, poison", False),
    ):
        out = np.zeros(1, name)
        as_mode(kernel, mode)[1](x, out, 3, BLOCK=16, debug=debug)
        assert (out[0] != 3) == changes, (kernel, debug)


# ---- checked integers ----


@MODES
@types("name", ["int8", "int16", "int32"])
@row("Numbers", "integer wrap")
def test_sanitized_integers_do_not_wrap(name: str, mode: str) -> None:
    """A sum wraps, unless it is asked to be checked: then the first lane that wraps is named."""
    limit = np.iinfo(name).max
    x = np.array([1, limit, 2], name)
    out = np.zeros(3, name)
    kernel = as_mode(kernels.doubled, mode)
    kernel[1](x, out, 3, BLOCK=4)
    assert out.tolist() == [2, -2, 4]
    with pytest.raises(AssertionError, match=rf"lane \[1\]: {name} overflow detected for operation add"):
        kernel[1](x, out, 3, BLOCK=4, sanitize_overflow=True)
    x[1] = limit // 2
    kernel[1](x, out, 3, BLOCK=4, sanitize_overflow=True)
    assert out.tolist() == [2, limit - 1, 4]


# ---- with other switches ----


@MODES
@types("fused", [False, True])
@row("Memory", "bounds, races, NaN")
def test_fused_products_are_checked_as_others(fused: bool, mode: str) -> None:
    """Interpreter mode runs the IR of a kernel that fuses, with the checks of compiled code."""
    x = np.array([1, 2, np.inf], np.float32)
    kernel, options = as_mode(kernels.fused_sum, mode), {"BLOCK": 4, "enable_fp_fusion": fused}
    with pytest.raises(bl.CheckError, match=r"load out of bounds, lane \[3\]: element offset 3 from"):
        kernel[1](x, np.zeros(4, np.float32), 4, debug=True, **options)
    name = "fma" if fused else "sub"
    with pytest.raises(bl.CheckError, match=rf"`{name}` makes a NaN of numbers, lane \[2\]"):
        kernel[1](x, np.zeros(4, np.float32), 3, debug="nan", **options)
    out = np.zeros(4, np.float32)
    kernel[1](x, out, 2, debug="nan,poison", **options)
    assert out.tolist() == [0, 2, 0, 0]


@row("Memory", "bounds, races, NaN")
def test_blocks_and_scalars_that_an_arm_renews() -> None:
    """An `if` that hands on a block of offsets and the scalar that it is made of, both of which may wrap."""
    out = np.zeros(16, np.float32)
    kernels.offsets_that_an_arm_renews[1](np.arange(16, dtype=np.float32), out, 4, BLOCK=8, debug=True)
    assert out.tolist() == list(range(16))
    said = both(kernels.offsets_that_an_arm_renews, 1, X, OUT, 4, BLOCK=8)
    assert "load out of bounds, lane [2]: element offset 10 " in said
