"""Programs that work in place or use an array as scratch: what was stored is loaded, in program order."""

# mypy: ignore-errors
from __future__ import annotations

import numpy as np
import pytest

import blocklang.triton as triton
import blocklang.triton.language as tl
from tests.programs.running import close, in_both_modes, normal


@triton.jit
def reverse_in_place_kernel(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(x_ptr + n - 1 - i, x, mask=i < n)


@triton.jit
def rotate_in_place_kernel(x_ptr, n, BLOCK: tl.constexpr):
    """By one to the right, chunk by chunk, the element that falls out carried along."""
    carried = tl.load(x_ptr + n - 1)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        last = tl.load(x_ptr + tl.minimum(start + BLOCK, n) - 1)
        x = tl.load(x_ptr + i, mask=i < n)
        tl.store(x_ptr + i + 1, x, mask=i < tl.minimum(start + BLOCK, n) - 1)
        tl.store(x_ptr + start, carried)
        carried = last


@triton.jit
def transpose_through_scratch_kernel(x_ptr, scratch_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    m, n = tl.arange(0, M), tl.arange(0, N)
    tl.store(scratch_ptr + n[None, :] * M + m[:, None], tl.load(x_ptr + m[:, None] * N + n[None, :]))
    tl.debug_barrier()
    y = tl.load(scratch_ptr + n[:, None] * M + m[None, :])
    tl.store(scratch_ptr + n[:, None] * M + m[None, :], y * 2)
    tl.store(out_ptr + n[:, None] * M + m[None, :], tl.load(scratch_ptr + n[:, None] * M + m[None, :]) + y)


@triton.jit
def bitonic_in_memory_kernel(x_ptr, n_log2: tl.constexpr, BLOCK: tl.constexpr):
    """A bitonic sort whose partners meet in memory."""
    i = tl.arange(0, BLOCK)
    for stage in tl.static_range(1, n_log2 + 1):
        for step in tl.static_range(stage):
            other = i ^ (1 << (stage - 1 - step))
            mine, theirs = tl.load(x_ptr + i), tl.load(x_ptr + other)
            ascending = (i & (1 << stage)) == 0
            wants_small = (i < other) == ascending
            kept = tl.where(wants_small, tl.minimum(mine, theirs), tl.maximum(mine, theirs))
            tl.debug_barrier()
            tl.store(x_ptr + i, kept)
            tl.debug_barrier()


@triton.jit
def ping_pong_kernel(a_ptr, b_ptr, n, steps, BLOCK: tl.constexpr):
    """A stencil that goes from one array to the other and back; the pointers change places in the loop."""
    i = tl.arange(0, BLOCK)
    inside = (i > 0) & (i < n - 1)
    source, target = a_ptr, b_ptr
    for _ in range(steps):
        left = tl.load(source + i - 1, mask=inside, other=0.0)
        here = tl.load(source + i, mask=i < n, other=0.0)
        right = tl.load(source + i + 1, mask=inside, other=0.0)
        tl.store(target + i, tl.where(inside, 0.25 * left + 0.5 * here + 0.25 * right, here), mask=i < n)
        source, target = target, source


@triton.jit
def choose(flag, a_ptr, b_ptr):
    if flag > 0:
        result = a_ptr
    else:
        result = b_ptr
    return result


@triton.jit
def chosen_pointers_kernel(flags_ptr, a_ptr, b_ptr, n, BLOCK: tl.constexpr):
    """Each flag says which of two arrays is added to the other."""
    i = tl.arange(0, BLOCK)
    for k in range(4):
        flag = tl.load(flags_ptr + k)
        source, target = choose(flag, a_ptr, b_ptr), choose(-flag, a_ptr, b_ptr)
        total = tl.load(target + i, mask=i < n) + tl.load(source + i, mask=i < n)
        tl.store(target + i, total, mask=i < n)


@triton.jit
def prefix_in_place_kernel(x_ptr, n, BLOCK: tl.constexpr):
    """Hillis and Steele's sums in memory: each step reads what the one before has written."""
    i = tl.arange(0, BLOCK)
    distance = 1
    while distance < n:
        x = tl.load(x_ptr + i, mask=i < n, other=0)
        before = tl.load(x_ptr + i - distance, mask=(i >= distance) & (i < n), other=0)
        tl.store(x_ptr + i, x + before, mask=i < n)
        distance *= 2


@pytest.mark.parametrize("n", [1, 2, 33, 64])
def test_reversed_and_rotated_in_place(n):
    x = normal(n, n)

    def launch(mode):
        reversed_, rotated = x.copy(), x.copy()
        mode(reverse_in_place_kernel)[(1,)](reversed_, n, BLOCK=64)
        mode(rotate_in_place_kernel)[(1,)](rotated, n, BLOCK=16)
        return reversed_, rotated

    reversed_, rotated = in_both_modes(launch)
    np.testing.assert_array_equal(reversed_, x[::-1])
    np.testing.assert_array_equal(rotated, np.roll(x, 1))


@pytest.mark.parametrize("same", [False, True])
def test_transposed_through_scratch(same):
    x = normal(1, 16, 32)

    def launch(mode):
        scratch = np.zeros((32, 16), np.float32)
        out = scratch if same else np.zeros((32, 16), np.float32)
        mode(transpose_through_scratch_kernel)[(1,)](x, scratch, out, M=16, N=32)
        return (out,)

    np.testing.assert_array_equal(in_both_modes(launch)[0], x.T * 3)


def test_sorted_in_memory():
    x = normal(1, 128)

    def launch(mode):
        y = x.copy()
        mode(bitonic_in_memory_kernel)[(1,)](y, n_log2=7, BLOCK=128)
        return (y,)

    np.testing.assert_array_equal(in_both_modes(launch)[0], np.sort(x))


@pytest.mark.parametrize("steps", [0, 1, 5])
def test_two_arrays_that_change_places(steps):
    x = normal(1, 50)

    def launch(mode):
        a, b = x.copy(), np.full_like(x, np.nan)
        mode(ping_pong_kernel)[(1,)](a, b, 50, steps, BLOCK=64)
        return (b if steps % 2 else a,)

    expected = x.astype(np.float64)
    for _ in range(steps):
        inner = 0.25 * expected[:-2] + 0.5 * expected[1:-1] + 0.25 * expected[2:]
        expected = np.concatenate([expected[:1], inner, expected[-1:]])
    close(in_both_modes(launch)[0], expected)


@pytest.mark.parametrize("overlap", [None, 0, 1, 7])
def test_pointers_chosen_by_data(overlap):
    memory, flags = normal(1, 100), np.array([1, -1, -1, 1], np.int32)

    def views(memory):
        return (
            (memory[:40], memory[50:90]) if overlap is None else (memory[:40], memory[overlap : overlap + 40])
        )

    def launch(mode):
        mine = memory.copy()
        mode(chosen_pointers_kernel)[(1,)](flags, *views(mine), 40, BLOCK=64)
        return (mine,)

    expected = memory.copy()
    a, b = views(expected)
    for flag in flags:
        source, target = (a, b) if flag > 0 else (b, a)
        target[:] = target + source.copy()
    np.testing.assert_array_equal(in_both_modes(launch)[0], expected)


@pytest.mark.parametrize("n", [1, 2, 45, 128])
def test_sums_in_place(n):
    x = np.arange(n, dtype=np.int32) ** 2 - 7

    def launch(mode):
        y = x.copy()
        mode(prefix_in_place_kernel)[(1,)](y, n, BLOCK=128)
        return (y,)

    np.testing.assert_array_equal(in_both_modes(launch)[0], x.cumsum())
