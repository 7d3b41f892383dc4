"""The rows about memory: what is touched, in which order, in arrays of every kind, in both modes."""

from __future__ import annotations

import ctypes
import gc
import mmap
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import blocklang as bl
from tests.behaviour import memory_kernels as kernels
from tests.behaviour.rows import MODES, array, as_mode, launch, row
from tests.numerics.launching import Array, Guarded, Out, assert_same_bits, is_untouched
from tests.numerics.values import ALL, NUMPY_DTYPES, numbers, random_numbers

types = pytest.mark.parametrize
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="mprotect")


class Fenced:
    """An array that ends, and begins, at a page which nobody may touch: an access there ends the process."""

    def __init__(self, contents: Array, at_end: bool = True) -> None:
        page = mmap.PAGESIZE
        inner = -(-max(contents.nbytes, 1) // page) * page
        self._map = mmap.mmap(-1, inner + 2 * page)
        self._bytes = np.frombuffer(self._map, np.uint8)
        start = page + (inner - contents.nbytes if at_end else 0)
        self.array: Array = self._bytes[start : start + contents.nbytes].view(contents.dtype)
        self.array[...] = contents
        address = self._bytes.ctypes.data
        self._fences = [(address, page), (address + page + inner, page)]
        for fence in self._fences:
            self._protect(fence, 0)

    def _protect(self, fence: tuple[int, int], rights: int) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.mprotect(ctypes.c_void_p(fence[0]), ctypes.c_size_t(fence[1]), rights) == 0

    def open(self) -> None:
        for fence in self._fences:
            self._protect(fence, 3)


# ---- masked lanes ----


@POSIX
@MODES
@types("name", ["int1", "bf16", "int32", "fp64"])
@types("n", [1, 13, 100])
@row("Memory", "masked lanes")
def test_masked_lanes_never_touch_the_next_page(name: str, n: int, mode: str) -> None:
    """Arrays end where memory ends (and begin where it begins): ragged, backward, strided and
    gathered accesses."""
    x = random_numbers(name, (n,))
    indices = np.random.default_rng(n).permutation(np.arange(-64, 192, dtype=np.int32))
    source, target = Fenced(x), Fenced(np.zeros(n, x.dtype))
    front_source, front_target = Fenced(x, at_end=False), Fenced(np.zeros(n, x.dtype), at_end=False)
    try:
        for a, b in ((source, target), (front_source, front_target)):
            for kernel in (kernels.copy, kernels.copy_backwards):
                b.array[...] = 0
                as_mode(kernel, mode)[1](a.array, b.array, n, BLOCK=112)
                assert_same_bits(b.array, x)
            b.array[...] = 0
            as_mode(kernels.copy_every_second, mode)[1](a.array, b.array, n, BLOCK=112)
            assert_same_bits(b.array[::2], x[::2])
            b.array[...] = 0
            as_mode(kernels.copy_gathered, mode)[1](a.array, b.array, indices, n, BLOCK=256)
            assert_same_bits(b.array, x)
    finally:
        for fenced in (source, target, front_source, front_target):
            fenced.open()


@POSIX
@MODES
@types(("rows", "columns"), [(1, 1), (3, 5), (5, 33), (16, 16), (7, 64)])
@row("Memory", "masked lanes")
def test_masked_rows_and_columns_never_touch_the_next_page(rows: int, columns: int, mode: str) -> None:
    """Blocks of two axes that are larger than the matrix, along both."""
    x = random_numbers("fp32", (rows * columns,))
    source, target = Fenced(x), Fenced(np.zeros_like(x))
    try:
        as_mode(kernels.copy_rows, mode)[1](source.array, target.array, rows, columns, M=16, N=64)
        assert_same_bits(target.array, x)
    finally:
        source.open()
        target.open()


@MODES
@types("distance", [1 << 20, 1 << 40, -(1 << 40), (1 << 62) + 5])
@types("name", ["int8", "fp32", "fp64"])
@row("Memory", "masked lanes")
def test_masked_lanes_may_point_anywhere(name: str, distance: int, mode: str) -> None:
    """A wild address under a mask is no access, and reads 0 or `other`."""
    x = random_numbers(name, (16,))
    out = launch(mode, kernels.far_away, x, Out((3, 16), name), distance, BLOCK=16)
    assert (out[:2] == 0).all()
    assert (out[2] == 7).all()


@MODES
@types("name", ALL)
@types(("n", "block"), [(1, 1), (33, 40), (100, 100)])
@row("Memory", "masked lanes")
def test_masked_lanes_read_zero_or_other(name: str, n: int, block: int, mode: str) -> None:
    """Without `other` 0 (not what was in a register), and `other=0` is an `other`; numbers and
    blocks as `other`.

    The debug mode poisons masked lanes on request: `test_debug`."""
    x = np.resize(numbers(name), n)
    out = launch(mode, kernels.others, x, Out((4, n), name), n, BLOCK=block, OTHER=1)
    live = np.arange(n) % 2 == 0
    zero, one = np.zeros(n, x.dtype), np.ones(n, x.dtype)
    for k, other in enumerate((zero, zero, one, x[::-1])):
        assert_same_bits(out[k], np.where(live, x, other), f"row {k}")


# ---- aliasing ----


@MODES
@types("shift", [0, 1, 2, 7, 40, -1, -3])
@types("name", ["int8", "fp32", "fp64"])
@row("Memory", "aliasing")
def test_a_block_is_loaded_before_a_later_store(name: str, shift: int, mode: str) -> None:
    """Two arguments over one memory, any distance apart: as if each load had been taken first, in
    program order."""
    n = 37
    memory = random_numbers(name, (200,))
    held = Guarded(memory)
    x, out = held.array[60 : 60 + n + 2], held.array[60 + shift : 60 + shift + n + 2]
    wanted = memory.copy()
    wx, wout = wanted[60 : 60 + n + 2], wanted[60 + shift : 60 + shift + n + 2]
    wout[1 : n + 1] = wx[:n].copy()
    wout[: n - 1] = wx[2 : n + 1].copy()
    as_mode(kernels.moved, mode)[1](x, out, n, BLOCK=64)
    assert_same_bits(held.array, wanted)
    assert held.is_whole()


@MODES
@types("n", [1, 2, 33, 64])
@row("Memory", "aliasing")
def test_blocks_turn_round_in_place(n: int, mode: str) -> None:
    """x[i] = x[n - 1 - i] and x = x.T, in one array: no lane sees what another has stored."""
    x = np.arange(n, dtype=np.int32)
    as_mode(kernels.reversed_in_place, mode)[1](x, n, BLOCK=64)
    assert x.tolist() == list(range(n))[::-1]
    square = random_numbers("fp32", (n, n))
    held = square.copy()
    as_mode(kernels.transposed_in_place, mode)[1](held, N=n)
    assert_same_bits(held, np.ascontiguousarray(square.T))


@MODES
@types(("a", "b", "c"), [(0, 0, 0), (0, 0, 5), (0, 5, 0), (5, 0, 0), (0, 3, 6), (0, 100, 0), (0, 100, 200)])
@row("Memory", "aliasing")
def test_overlapping_arguments_are_detected_at_launch(a: int, b: int, c: int, mode: str) -> None:
    """One kernel launched with arrays that are apart, the same and half overlapping: right each time."""
    n = 50
    memory = np.arange(300, dtype=np.float32) * 1.5
    wanted = memory.copy()
    x, y = memory[a : a + n].copy(), memory[b : b + n].copy()
    wanted[c : c + n] = x + y
    wanted[a : a + n] = x - y
    as_mode(kernels.added_in_place, mode)[1](*(memory[s : s + n] for s in (a, b, c)), n, BLOCK=64)
    assert_same_bits(memory, wanted)


@MODES
@types("n", [1, 5, 64])
@row("Memory", "aliasing")
def test_a_load_sees_the_store_before_it(n: int, mode: str) -> None:
    """Program order holds the other way too."""
    x, out = np.arange(n, dtype=np.int32), np.zeros(n, np.int32)
    as_mode(kernels.read_back, mode)[1](x, out, n, BLOCK=64)
    assert out.tolist() == x.tolist() == [2 * v for v in range(n)][::-1]


# ---- arrays ----

VIEWS: dict[str, Callable[[Array], Array]] = {
    "contiguous": lambda w: w[:6, :9],
    "fortran": lambda w: np.asfortranarray(w[:6, :9]),
    "rows backwards": lambda w: w[5::-1, :9],
    "both backwards": lambda w: w[::-1, ::-1][:6, :9],
    "every third": lambda w: w[::2, ::3][:6, :9],
    "zero stride": lambda w: np.broadcast_to(w[0, :9], (6, 9)),
    "zero strides": lambda w: np.broadcast_to(w[0, 0], (6, 9)),
    "transposed": lambda w: w[:9, :6].T,
    "one row": lambda w: w[:1, :9],
    "one column": lambda w: w[:6, 3:4],
}


@MODES
@types("view", VIEWS)
@types("name", ["int1", "int8", "bf16", "int32", "fp64"])
@row("Memory", "arrays")
def test_arrays_of_any_stride(name: str, view: str, mode: str) -> None:
    """The pointer is element [0, 0]; strides may be negative, zero, or those of another axis."""
    whole = random_numbers(name, (20, 30))
    x = VIEWS[view](whole)
    m, n = x.shape
    out = np.zeros((m, n), x.dtype)
    as_mode(kernels.strided, mode)[1](x, out, m, n, *bl.strides(x), M=8, N=16)
    assert_same_bits(out, np.ascontiguousarray(x))
    if x.flags.writeable and 0 not in x.strides:
        other = random_numbers(name, (m, n), 9)
        as_mode(kernels.into_strided, mode)[1](other, x, m, n, *bl.strides(x), M=8, N=16)
        assert_same_bits(np.ascontiguousarray(x), other)


@MODES
@types("name", ALL)
@row("Memory", "arrays")
def test_unaligned_arrays_and_arrays_without_axes(name: str, mode: str) -> None:
    """Any byte may be the first one; a 0-d array is its one element."""
    x = np.resize(numbers(name), 40)
    for by in (1, 2, 3, 5):
        out = launch(mode, kernels.copy, x, Out((40,), name), 40, BLOCK=48, misaligned=by)
        assert_same_bits(out, x)
    scalar, result = np.array(3).astype(x.dtype), np.zeros((), x.dtype)
    as_mode(kernels.double_scalar, mode)[1](scalar, result)
    assert result == scalar + scalar if name != "int1" else not result


@MODES
@row("Memory", "arrays")
def test_empty_arrays_and_slices_of_them(mode: str) -> None:
    """An array of no elements may be passed, if no lane touches it."""
    empty = np.zeros(0, np.float32)
    out = np.full(4, 5, np.float32)
    as_mode(kernels.copy, mode)[1](empty, out, 0, BLOCK=4)
    assert (out == 5).all()
    as_mode(kernels.copy, mode)[1](np.zeros((3, 0, 2), np.float32), out[:0], 0, BLOCK=4)


@MODES
@row("Memory", "arrays")
def test_read_only_arrays_are_read_and_never_written(mode: str) -> None:
    """A load takes them; a store to one is refused by its name, before anything has changed."""
    x, out = np.arange(8, dtype=np.int32), np.zeros(8, np.int32)
    x.flags.writeable = False
    as_mode(kernels.copy, mode)[1](x, out, 8, BLOCK=8)
    assert (out == x).all()
    for target in (x, np.broadcast_to(np.int32(3), (8,)), np.frombuffer(b"\1\2\3\4" * 8, np.int32)):
        before = target.copy()
        with pytest.raises(bl.LaunchError, match="'out' is a read-only array"):
            as_mode(kernels.copy, mode)[1](out, target, 8, BLOCK=8)
        assert (target == before).all()


@MODES
@row("Memory", "arrays")
def test_arrays_are_kept_alive_during_a_launch(mode: str) -> None:
    """An argument that nobody else holds lives until the launch has ended, whatever another thread
    collects."""
    stop = threading.Event()

    def collect() -> None:
        while not stop.is_set():
            gc.collect()
            np.full(20_000, -1.0)

    thread = threading.Thread(target=collect)
    thread.start()
    try:
        kernel = as_mode(kernels.slow_sum, mode)
        for _ in range(2):
            out = np.zeros(1)
            kernel[1](np.ones(20_000), out, 20_000, BLOCK=1000)
            assert out[0] == 20_000
    finally:
        stop.set()
        thread.join()


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "byte order": (lambda: np.zeros(4, np.dtype(np.float32).newbyteorder()), "byte order"),
    "object": (lambda: np.zeros(4, object), "object"),
    "records": (lambda: np.zeros(4, [("a", "f4"), ("b", "i4")]), "structured|record|fields|void"),
    "complex": (lambda: np.zeros(4, np.complex64), "complex"),
    "text": (lambda: np.zeros(4, "U3"), "str|U3|text"),
    "dates": (lambda: np.zeros(4, "M8[s]"), "datetime"),
    "long double": (lambda: np.zeros(4, np.longdouble), "longdouble|float128|long"),
    "masked array": (lambda: np.ma.zeros(4), "mask"),
    "list": (lambda: [1.0, 2.0], "list"),
}


@MODES
@types("kind", REFUSED)
@row("Memory", "arrays")
def test_arrays_that_cannot_be_read_are_refused_by_name(kind: str, mode: str) -> None:
    """The message names the argument and what is wrong with it; nothing is converted or copied silently."""
    make, word = REFUSED[kind]
    out = np.zeros(4, np.float32)
    with pytest.raises((bl.LaunchError, bl.CompilationError), match=f"(?s)(?=.*x)(?=.*(?:{word}))"):
        as_mode(kernels.copy, mode)[1](make(), out, 4, BLOCK=4)
    assert (out == 0).all()


# ---- gathers, axes of 1, modulo ----


@MODES
@types("depth", [1, 2, 3, 5])
@types("name", ["int8", "int32", "uint64"])
@row("Memory", "gather of a gather, size-1 axes, modulo in offsets")
def test_gathers_of_gathers(name: str, depth: int, mode: str) -> None:
    """Offsets that were loaded through offsets that were loaded, and a scatter to where a gather
    came from."""
    n = 77
    indices = np.random.default_rng(4).permutation(n).astype(NUMPY_DTYPES[name])
    x = random_numbers("fp32", (n,))
    out = launch(mode, kernels.chain_of_gathers, x, indices, Out((n,), "fp32"), n, BLOCK=80, DEPTH=depth)
    at = np.arange(n)
    for _ in range(depth):
        at = indices[at]
    assert_same_bits(out, x[at])
    back = launch(mode, kernels.scatter_of_a_gather, x, indices, Out((n,), "fp32"), n, BLOCK=80)
    expected = np.empty_like(x)
    expected[indices] = x[indices] + np.arange(n, dtype=np.float32)
    assert_same_bits(back, expected)


@MODES
@types("period", [1, 2, 3, 4, 7, 8, 16, 50, 200])
@types("n", [1, 40, 100])
@row("Memory", "gather of a gather, size-1 axes, modulo in offsets")
def test_modulo_and_quotients_in_offsets(period: int, n: int, mode: str) -> None:
    """Periods that divide the vector, that do not, of 1, and longer than the block; constant and at
    run time."""
    x = random_numbers("int32", (256,))
    out = launch(mode, kernels.modulo_offsets, x, Out((4, n), "int32"), n, period, BLOCK=100, PERIOD=period)
    i = np.arange(n)
    expected = (i % period, i % period, i // period, (i + 3) % period * period // period)
    for k, at in enumerate(expected):
        assert_same_bits(out[k], x[at], f"row {k}")


@MODES
@types(("a", "b"), [(1, 1), (1, 7), (7, 1), (1, 64), (33, 1)])
@row("Memory", "gather of a gather, size-1 axes, modulo in offsets")
def test_axes_of_extent_1(a: int, b: int, mode: str) -> None:
    """A row, a column or one element is a block like every other."""
    x = random_numbers("int32", (a, b))
    out = launch(mode, kernels.ones, x, Out((3, a, b), "int32"), a, A=a, B=b)
    with np.errstate(all="ignore"):
        total = x.sum(1, keepdims=True, dtype=np.int32)
        assert_same_bits(out[0], x + total + x.max(0, keepdims=True))
    assert_same_bits(out[1].reshape(b, a), np.ascontiguousarray(x.T))
    assert_same_bits(out[2], x)


# ---- bounds ----


@row("Memory", "bounds, races, NaN")
def test_an_access_out_of_bounds_names_line_program_lane_array_and_shape() -> None:
    """The interpreter says where, which program and lane, and which array, and nothing has been stored.

    Compiled code does with `debug=True`: `test_debug`."""
    x, out = np.zeros((2, 5), np.float32), np.zeros(20, np.float32)
    with pytest.raises(bl.InterpreterError) as caught:
        as_mode(kernels.out_of_bounds, "interpreted")[5](x, out, 20, BLOCK=4)
    said = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
    for word in ("memory_kernels.py", "tl.load(x + i)", "lane [2]", "'x'", "(2, 5)", "program [2, 0, 0]"):
        assert word in said, word
    y = np.zeros(3, np.int32)
    with pytest.raises(bl.InterpreterError, match=r"store out of bounds, lane \[3\]"):
        as_mode(kernels.stores_out_of_bounds, "interpreted")[1](y, 3, BLOCK=8)
    assert (y == 0).all()


@MODES
@types("n", [1, 8, 9, 30])
@types("debug", [False, True])
@row("Memory", "bounds, races, NaN")
def test_no_false_alarm_for_masked_lanes_and_walking_pointers(n: int, debug: bool, mode: str) -> None:
    """A pointer may stand outside of its array, as long as only masked lanes are there."""
    x, out = np.ones(n, np.float32), np.zeros(8, np.float32)
    as_mode(kernels.walking_pointer, mode)[1](x, out, n, BLOCK=8, debug=debug)
    assert out.sum() == n
    with np.errstate(all="raise"):
        y = array([np.nan, np.inf, 0.0], np.float32)
        copied = np.zeros(3, np.float32)
        as_mode(kernels.copy, mode)[1](y, copied, 3, BLOCK=8, debug=debug)
    assert_same_bits(copied, y)
    assert not is_untouched(copied).any()
