"""Kernels with one planted fault each.

Lines at fault end in `# here`, those that a race is with in `# before`.
"""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np

import blocklang as bl
import blocklang.language as tl
from blocklang.testing import uninitialised
from tests.checks.cases import Cases

faulty = Cases()


def floats(*shape: int) -> np.ndarray:
    return np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)


# ---- races between programs ----


@bl.jit
def k_one_cell(x, out, BLOCK: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out, tl.sum(tl.load(x + i), 0))  # here before


@faulty("race", "store", "'out'", "element offset 0")
def all_programs_store_one_cell():
    k_one_cell[4](floats(64), floats(1), BLOCK=16)


@bl.jit
def k_sum_without_atomic(x, out, BLOCK: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.load(out)  # here
    tl.store(out, total + tl.sum(tl.load(x + i), 0))  # before here


@faulty("race", "load", "'out'")
def a_sum_that_should_be_atomic():
    k_sum_without_atomic[4](floats(64), floats(1), BLOCK=16)


@bl.jit
def k_shift_left(x, n, BLOCK: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i + 1, i + 1 < n)  # before
    tl.store(x + i, v, i < n)  # here


@faulty("race", "store, lane [0]", "element offset 16", "load in program [0, 0, 0]")
def shift_left_in_place():
    k_shift_left[4](floats(64), 64, BLOCK=16)


@bl.jit
def k_shift_right(x, n, BLOCK: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i - 1, i > 0)  # here
    tl.store(x + i, v, i < n)  # before


@faulty("race", "load, lane [0]", "element offset 15", "store in program [0, 0, 0]")
def shift_right_in_place():
    k_shift_right[4](floats(64), 64, BLOCK=16)


@bl.jit
def k_overlapping_blocks(out, BLOCK: bl.constexpr):
    i = tl.program_id(0) * (BLOCK - 1) + tl.arange(0, BLOCK)
    tl.store(out + i, 1.0)  # here before


@faulty("race", "store, lane [0]", "element offset 15")
def blocks_that_overlap_by_one():
    k_overlapping_blocks[3](floats(64), BLOCK=16)


@bl.jit
def k_missing_tail_mask(out, n, BLOCK: bl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    tl.store(out + row * n + i, 1.0, (row < 2) | (i < n))  # here before


@faulty("race", "store, lane [0]", "element offset 10")
def rows_that_spill_into_the_next():
    k_missing_tail_mask[3](floats(3, 10), 10, BLOCK=16)


@bl.jit
def k_scatter(index, out, BLOCK: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + tl.load(index + i), i)  # here before


@faulty("race", "store, lane [3]", "element offset 5")
def a_scatter_with_one_index_twice():
    index = np.arange(32, dtype=np.int32)
    index[19] = 5
    k_scatter[2](index, np.zeros(32, np.int32), BLOCK=16)


@bl.jit
def k_histogram(index, out, BLOCK: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = out + tl.load(index + i)
    tl.store(at, tl.load(at) + 1)  # here before


@faulty("race", "load, lane [0]", "element offset 0")
def a_histogram_without_atomics():
    k_histogram[2](np.arange(32, dtype=np.int32) % 16, np.zeros(16, np.int32), BLOCK=16)


@bl.jit
def k_transpose_in_place(x, N: bl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, N)
    v = tl.load(x + row * N + i)  # here
    tl.store(x + i * N + row, v)  # before here


@faulty("race", "load", "element offset 8")
def a_transpose_in_place():
    k_transpose_in_place[8](floats(8, 8), N=8)


@bl.jit
def k_column_sum(x, out, N: bl.constexpr, ROWS: bl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, N)
    part = tl.sum(tl.load(x + rows[:, None] * N + cols[None, :]), 0)
    tl.store(out + cols, part)  # here before


@faulty("race", "store, lane [0]", "'out'")
def partial_columns_stored_over_each_other():
    k_column_sum[4](floats(16, 8), floats(8), N=8, ROWS=4)


@bl.jit
def k_tiles(out, n, T: bl.constexpr):
    rows = tl.program_id(0) * T + tl.arange(0, T)
    cols = tl.program_id(1) * (T // 2) + tl.arange(0, T)
    tl.store(out + rows[:, None] * n + cols[None, :], 1.0, cols[None, :] < n)  # here before


@faulty("race", "store, lane [0, 0]", "element offset 4", "program [0, 1, 0]")
def tiles_that_step_by_half():
    k_tiles[2, 4](floats(16, 16), 16, T=8)


@bl.jit
def k_matmul_split_k(a, b, c, K: bl.constexpr, T: bl.constexpr):
    i = tl.arange(0, T)
    k = tl.program_id(0) * K + tl.arange(0, K)
    x = tl.load(a + i[:, None] * (2 * K) + k[None, :])
    y = tl.load(b + k[:, None] * T + i[None, :])
    tl.store(c + i[:, None] * T + i[None, :], tl.dot(x, y))  # here before


@faulty("race", "store, lane [0, 0]", "'c'")
def a_split_product_that_is_stored():
    k_matmul_split_k[2](floats(16, 32), floats(32, 16), floats(16, 16), K=16, T=16)


@bl.jit
def k_loop_race(x, n, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    at = x + i
    for _ in range(n):
        tl.store(at, 1.0)  # here before
        at += BLOCK


@faulty("race", "store, lane [0]", "element offset 0")
def programs_that_all_walk_the_array():
    k_loop_race[2](floats(64), 4, BLOCK=16)


@bl.jit
def k_block_pointer(x, n, BLOCK: bl.constexpr):
    start = tl.program_id(0) * BLOCK // 2
    at = tl.make_block_ptr(x, (n,), (1,), (start,), (BLOCK,), (0,))
    tl.store(at, tl.full((BLOCK,), 1.0, tl.float32), boundary_check=(0,))  # here before


@faulty("race", "store, lane [0]", "element offset 8")
def block_pointers_that_overlap():
    k_block_pointer[3](floats(64), 64, BLOCK=16)


@bl.jit
def k_plain_against_atomic(x, out, BLOCK: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out, 0.0)  # here before
    tl.atomic_add(out, tl.sum(tl.load(x + i), 0))  # before here


@faulty("race", "'out'", "store")
def a_cell_zeroed_by_every_program():
    k_plain_against_atomic[4](floats(64), floats(1), BLOCK=16)


@bl.jit
def k_read_of_atomic(x, out, last, BLOCK: bl.constexpr):
    pid = tl.program_id(0)
    i = pid * BLOCK + tl.arange(0, BLOCK)
    if pid == 3:
        tl.store(last, tl.load(out))  # here
    tl.atomic_add(out, tl.sum(tl.load(x + i), 0))  # before


@faulty("race", "load", "'out'", "an atomic by another program")
def a_total_read_before_all_have_added():
    k_read_of_atomic[4](floats(64), floats(1), floats(1), BLOCK=16)


@bl.jit
def k_relaxed_counter(parts, count, out, N: bl.constexpr):
    pid = tl.program_id(0)
    tl.store(parts + pid, 1.0)  # before
    seen = tl.atomic_add(count, 1, sem="relaxed")
    if seen == N - 1:
        tl.store(out, tl.sum(tl.load(parts + tl.arange(0, N)), 0))  # here


@faulty("race", "load, lane [0]", "'parts'")
def a_counter_that_orders_nothing():
    k_relaxed_counter[4](floats(4), np.zeros(1, np.int32), floats(1), N=4)


@bl.jit
def k_counter_too_early(parts, count, out, N: bl.constexpr):
    pid = tl.program_id(0)
    seen = tl.atomic_add(count, 1)
    tl.store(parts + pid, 1.0)  # before
    if seen == N - 1:
        tl.store(out, tl.sum(tl.load(parts + tl.arange(0, N)), 0))  # here


@faulty("race", "load", "'parts'")
def a_counter_raised_before_the_store():
    k_counter_too_early[4](floats(4), np.zeros(1, np.int32), floats(1), N=4)


@bl.jit
def k_wrong_lock(out, locks):
    lock = locks + tl.program_id(0) % 2
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(out, tl.load(out) + 1.0)  # here before
    tl.atomic_xchg(lock, 0)


@faulty("race", "'out'")
def two_locks_for_one_cell():
    k_wrong_lock[2](floats(1), np.zeros(2, np.int32))


@bl.jit
def k_unlocked_too_early(out, lock):
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    total = tl.load(out)  # here
    tl.atomic_xchg(lock, 0)
    tl.store(out, total + 1.0)  # here before


@faulty("race", "'out'")
def a_lock_that_is_left_before_the_store():
    k_unlocked_too_early[4](floats(1), np.zeros(1, np.int32))


@bl.jit
def k_aliased(x, y, BLOCK: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i))  # here before


@faulty("race", "'x'", "store by another program")
def two_arguments_that_share_memory():
    memory = floats(80)
    k_aliased[4](memory[:64], memory[8:72], BLOCK=16)


@bl.jit
def k_chosen(x, y, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    at = tl.where(i < 8, x + i, y + i)
    tl.store(at, 1.0)  # here before


@faulty("race", "store, lane [")
def a_pointer_chosen_between_arrays():
    k_chosen[2](floats(16), floats(16), BLOCK=16)


@bl.jit
def k_negative_stride(x, n, stride, BLOCK: bl.constexpr):
    i = tl.program_id(0) * BLOCK // 2 + tl.arange(0, BLOCK)
    tl.store(x + i * stride, 1.0, i < n)  # here before


@faulty("race", "store, lane [0]")
def a_reversed_array():
    k_negative_stride[3](floats(64)[::-1], 64, -1, BLOCK=16)


@bl.jit
def k_max_plain(x, out, BLOCK: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = tl.max(tl.load(x + i), 0)
    if m > tl.load(out):  # here
        tl.store(out, m)  # here before


@faulty("race", "'out'")
def a_maximum_without_atomic():
    k_max_plain[4](floats(64), np.zeros(1, np.float32), BLOCK=16)


# ---- bounds and overflow ----


@bl.jit
def k_no_mask(x, out, BLOCK: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i))  # here


@faulty("bounds", "load", "'x'", "past the end")
def a_tail_without_mask():
    k_no_mask[4](floats(60), floats(64), BLOCK=16)


@bl.jit
def k_off_by_one(out, n, BLOCK: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, 1.0, i <= n)  # here


@faulty("bounds", "store out of bounds, lane [12]", "element offset 60")
def a_mask_off_by_one():
    k_off_by_one[4](floats(60), 60, BLOCK=16)


@bl.jit
def k_gather_bounds(x, index, out, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + tl.load(index + i)))  # here


@faulty("bounds", "load out of bounds, lane [7]", "before the start")
def a_negative_index_in_a_gather():
    index = np.arange(16, dtype=np.int32)
    index[7] = -3
    k_gather_bounds[1](floats(16), index, floats(16), BLOCK=16)


@bl.jit
def k_atomic_bounds(index, out, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.atomic_add(out + tl.load(index + i), 1)  # here


@faulty("bounds", "atomic out of bounds, lane [15]", "element offset 15")
def a_histogram_with_too_few_bins():
    k_atomic_bounds[1](np.arange(16, dtype=np.int32), np.zeros(15, np.int32), BLOCK=16)


@bl.jit
def k_rows_bounds(x, rows, cols, T: bl.constexpr):
    i, j = tl.arange(0, T), tl.arange(0, T)
    tl.store(x + i[:, None] * cols + j[None, :], 1.0, j[None, :] < cols)  # here


@faulty("bounds", "store out of bounds, lane [5, 0]", "element offset 50")
def rows_without_a_mask():
    k_rows_bounds[1](floats(5, 10), 5, 10, T=16)


@bl.jit
def k_walk_too_far(x, out, steps, BLOCK: bl.constexpr):
    at = x + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for _ in range(steps):
        total += tl.load(at)  # here
        at += BLOCK
    tl.store(out + tl.arange(0, BLOCK), total)


@faulty("bounds", "load out of bounds, lane [0]", "element offset 64")
def a_loop_with_a_step_too_many():
    k_walk_too_far[1](floats(64), floats(16), 5, BLOCK=16)


@bl.jit
def k_overflow(x, out, stride, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    row = tl.program_id(0) + 65536
    tl.store(out + i, tl.load(x + row * stride + i))  # here


@faulty("overflow", "int32 overflow", "wrapped")
def a_row_offset_that_wraps():
    k_overflow[1](floats(16), floats(16), 65536, BLOCK=16)


# ---- unwritten elements ----


@bl.jit
def k_copy(x, out, n, BLOCK: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n), i < n)  # here


@faulty("unwritten", "lane [0]", "element offset 0", "'x'")
def an_array_that_nobody_wrote():
    k_copy[4](uninitialised(64), floats(64), 64, BLOCK=16)


@faulty("unwritten", "lane [4]", "element offset 20", "program [1, 0, 0]")
def the_second_half_of_what_the_host_wrote():
    x = uninitialised(64)
    x[:20] = 1
    k_copy[4](x, floats(64), 64, BLOCK=16)


@faulty("unwritten", "lane [2]", "element offset 50")
def a_tail_that_the_first_launch_left_out():
    middle = uninitialised(64, np.int16)
    k_copy[4](np.ones(64, np.int16), middle, 50, BLOCK=16)
    k_copy[4](middle, np.ones(64, np.int16), 64, BLOCK=16)


@bl.jit
def k_accumulate(x, out, n, BLOCK: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.load(out + i, i < n)  # here
    tl.store(out + i, total + tl.load(x + i, i < n), i < n)


@faulty("unwritten", "'out'", "lane [0]")
def an_accumulator_that_was_not_zeroed():
    k_accumulate[4](floats(60), uninitialised(60), 60, BLOCK=16)


@bl.jit
def k_atomic_unwritten(out, BLOCK: bl.constexpr):
    tl.atomic_add(out + tl.arange(0, BLOCK), 1.0)  # here


@faulty("unwritten", "'out'", "lane [0]")
def an_atomic_sum_that_was_not_zeroed():
    k_atomic_unwritten[2](uninitialised(16), BLOCK=16)


@bl.jit
def k_gather_unwritten(x, index, out, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + tl.load(index + i)))  # here


@faulty("unwritten", "lane [9]", "element offset 15")
def a_gather_of_one_unwritten_element():
    x = uninitialised((4, 4))
    x.reshape(-1)[:15] = 1
    index = np.zeros(16, np.int32)
    index[9] = 15
    k_gather_unwritten[1](x, index, floats(16), BLOCK=16)


# ---- alignment and hints ----


@faulty("misaligned", "load", "'x'", "multiple of 4")
def an_array_that_starts_at_an_odd_byte():
    memory = np.zeros(65 * 4, np.uint8)
    x = memory[1 : 1 + 64 * 4].view(np.float32)
    k_copy[4](x, floats(64), 64, BLOCK=16)


@bl.jit
def k_cast_pointer(x, out, offset, BLOCK: bl.constexpr):
    at = (x + offset).to(tl.pointer_type(tl.int32))
    tl.store(out + tl.arange(0, BLOCK), tl.load(at + tl.arange(0, BLOCK)))  # here


@faulty("misaligned", "load", "multiple of 4")
def bytes_read_as_words_from_an_odd_offset():
    k_cast_pointer[1](np.zeros(80, np.int8), np.zeros(16, np.int32), 2, BLOCK=16)


@bl.jit
def k_multiple_of(x, out, stride, BLOCK: bl.constexpr):
    stride = tl.multiple_of(stride, 8)  # here
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + stride + i))


@faulty("hint", "multiple_of", "20 is no multiple of 8")
def a_stride_that_is_no_multiple():
    k_multiple_of[1](floats(64), floats(16), 20, BLOCK=16)


@bl.jit
def k_multiple_of_block(x, out, start, BLOCK: bl.constexpr):
    i = tl.multiple_of(start + tl.arange(0, BLOCK), 16)  # here
    tl.store(out + tl.arange(0, BLOCK), tl.load(x + i))


@faulty("hint", "multiple_of", "lane [0]", "20 is no multiple of 16")
def a_block_that_starts_between_multiples():
    k_multiple_of_block[1](floats(64), floats(16), 20, BLOCK=16)


@bl.jit
def k_contiguous(x, out, step, BLOCK: bl.constexpr):
    i = tl.max_contiguous(tl.arange(0, BLOCK) * step, BLOCK)  # here
    tl.store(out + tl.arange(0, BLOCK), tl.load(x + i))


@faulty("hint", "max_contiguous", "lane [1]", "2 does not follow")
def every_second_element_said_to_be_contiguous():
    k_contiguous[1](floats(64), floats(16), 2, BLOCK=16)


@bl.jit
def k_constancy(x, out, BLOCK: bl.constexpr):
    i = tl.max_constancy(tl.arange(0, BLOCK) // 4, 8)  # here
    tl.store(out + tl.arange(0, BLOCK), tl.load(x + i))


@faulty("hint", "max_constancy", "lane [4]", "1 is not the element before")
def runs_of_four_said_to_be_of_eight():
    k_constancy[1](floats(64), floats(16), BLOCK=16)


@bl.jit
def k_assume(x, n):
    tl.assume(n > 8)  # here
    tl.store(x, n)


@faulty("hint", "assume", "false")
def an_assumption_that_does_not_hold():
    k_assume[1](np.zeros(1, np.int32), 5)


# ---- numbers and assertions ----


@bl.jit
def k_nan_log(x, out, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.log(tl.load(x + i) - 3.0))  # here


@faulty("nan", "`log` makes a NaN", "lane [0]")
def the_logarithm_of_negative_numbers():
    k_nan_log[1](floats(16), floats(16), BLOCK=16)


@bl.jit
def k_nan_mean(x, out, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i, i < 0, other=0.0)
    total = tl.sum(v, 0)
    tl.store(out, total / total)  # here


@faulty("nan", "makes a NaN")
def the_mean_of_an_empty_row():
    k_nan_mean[1](floats(16), floats(16), BLOCK=16)


@bl.jit
def k_assert(x, out, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    tl.device_assert(v >= 0, "negative")  # here
    tl.store(out + i, v)


@faulty("assertion", "negative", "lane [5]")
def an_assertion():
    x = floats(16)
    x[5] = -1
    k_assert[1](x, floats(16), BLOCK=16)
