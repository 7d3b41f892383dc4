"""Kernels that look suspicious and are right."""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np

import blocklang as bl
import blocklang.language as tl
from blocklang.testing import uninitialised
from tests.checks.cases import Cases
from tests.checks.faulty import floats

clean = Cases()


@bl.jit
def copy(x, out, n, BLOCK: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n), i < n)


@clean()
def a_masked_tail():
    copy[4](floats(60), floats(60), 60, BLOCK=16)


@clean()
def in_place():
    x = floats(60)
    copy[4](x, x, 60, BLOCK=16)


@clean()
def one_array_read_twice_and_overlapping():
    memory = floats(80)
    add[4](memory[:64], memory[8:72], floats(64), 64, BLOCK=16)


@bl.jit
def add(x, y, out, n, BLOCK: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n) + tl.load(y + i, i < n), i < n)


@clean()
def ping_pong_over_two_launches():
    x, y = floats(64), floats(64)
    for _ in range(3):
        copy[4](x, y, 64, BLOCK=16)
        copy[4](y, x, 64, BLOCK=16)


@clean()
def views_of_one_buffer_that_do_not_meet():
    memory = floats(128)
    copy[4](memory[:64], memory[64:], 64, BLOCK=16)


@bl.jit
def copy_strided(x, out, n, stride, BLOCK: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i * stride, tl.load(x + i * stride, i < n), i < n)


@clean()
def even_and_odd_elements_of_one_buffer():
    memory = floats(128)
    copy_strided[4](memory[::2], memory[1::2], 64, 2, BLOCK=16)


@clean()
def a_reversed_view():
    copy_strided[4](floats(64)[::-1], floats(64)[::-1], 64, -1, BLOCK=16)


@bl.jit
def reverse(x, out, n, BLOCK: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + n - 1 - i, tl.load(x + i, i < n), i < n)


@clean()
def reversed_writes():
    reverse[4](floats(60), floats(60), 60, BLOCK=16)


@bl.jit
def atomic_total(x, out, n, BLOCK: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out, tl.sum(tl.load(x + i, i < n, other=0.0), 0))


@clean()
def a_total_by_atomics():
    atomic_total[4](floats(60), floats(1), 60, BLOCK=16)


@bl.jit
def atomic_extrema(x, low, high, BLOCK: bl.constexpr):
    v = tl.load(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    tl.atomic_min(low, tl.min(v, 0))
    tl.atomic_max(high, tl.max(v, 0), sem="relaxed")


@clean()
def extrema_by_atomics():
    x = np.arange(64, dtype=np.int32)
    atomic_extrema[4](x, np.zeros(1, np.int32), np.zeros(1, np.int32), BLOCK=16)


@bl.jit
def atomic_histogram(index, out, n, BLOCK: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out + tl.load(index + i, i < n, other=0), 1, mask=i < n)


@clean()
def a_histogram_by_atomics():
    atomic_histogram[4](np.arange(60, dtype=np.int32) % 7, np.zeros(7, np.int32), 60, BLOCK=16)


@bl.jit
def histogram_rows(index, out, BLOCK: bl.constexpr, BINS: bl.constexpr):
    pid = tl.program_id(0)
    counts = tl.histogram(tl.load(index + pid * BLOCK + tl.arange(0, BLOCK)), BINS)
    tl.store(out + pid * BINS + tl.arange(0, BINS), counts)


@clean()
def a_histogram_per_program():
    histogram_rows[4](np.arange(64, dtype=np.int32) % 8, np.zeros((4, 8), np.int32), BLOCK=16, BINS=8)


@bl.jit
def locked_total(x, out, lock, BLOCK: bl.constexpr):
    total = tl.sum(tl.load(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)), 0)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(out, tl.load(out) + total)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@clean()
def a_total_behind_a_lock():
    locked_total[4](floats(64), floats(1), np.zeros(1, np.int32), BLOCK=16)


@bl.jit
def locked_groups(x, out, locks, GROUPS: bl.constexpr, BLOCK: bl.constexpr):
    pid = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    v = tl.load(x + pid * BLOCK + cols)
    group = pid % GROUPS
    lock, count = locks + group, locks + GROUPS + group
    at = out + group * BLOCK + cols
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    seen = tl.load(count)
    if seen == 0:
        tl.atomic_xchg(count, 1)
    else:
        v += tl.load(at)
    tl.store(at, v)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@clean()
def the_locks_of_layer_norm():
    locked_groups[8](floats(8, 16), uninitialised((3, 16)), np.zeros(6, np.int32), GROUPS=3, BLOCK=16)


@bl.jit
def locked_by_release(out, lock):
    while tl.atomic_cas(lock, 0, 1, sem="acquire") == 1:
        pass
    tl.store(out, tl.load(out) + 1.0)
    tl.atomic_xchg(lock, 0, sem="release")


@clean()
def a_lock_with_acquire_and_release():
    locked_by_release[4](floats(1), np.zeros(1, np.int32))


@bl.jit
def last_one_sums(x, parts, count, out, N: bl.constexpr, BLOCK: bl.constexpr):
    pid = tl.program_id(0)
    tl.store(parts + pid, tl.sum(tl.load(x + pid * BLOCK + tl.arange(0, BLOCK)), 0))
    tl.debug_barrier()
    if tl.atomic_add(count, 1) == N - 1:
        tl.store(out, tl.sum(tl.load(parts + tl.arange(0, N)), 0))


@clean()
def the_last_program_sums():
    last_one_sums[4](floats(64), uninitialised(4), np.zeros(1, np.int32), floats(1), N=4, BLOCK=16)


@bl.jit
def chain(x, flags, out, BLOCK: bl.constexpr):
    pid = tl.program_id(0)
    total = tl.sum(tl.load(x + pid * BLOCK + tl.arange(0, BLOCK)), 0)
    if pid > 0:
        while tl.atomic_add(flags + pid - 1, 0) == 0:
            pass
        total += tl.load(out + pid - 1)
    tl.store(out + pid, total)
    tl.debug_barrier()
    tl.atomic_xchg(flags + pid, 1)


@clean()
def a_chain_of_flags():
    chain[4](floats(64), np.zeros(4, np.int32), uninitialised(4), BLOCK=16)


@bl.jit
def polled_chain(x, flags, out, BLOCK: bl.constexpr):
    pid = tl.program_id(0)
    total = tl.sum(tl.load(x + pid * BLOCK + tl.arange(0, BLOCK)), 0)
    if pid > 0:
        while tl.load(flags + pid - 1, volatile=True) == 0:
            pass
        total += tl.load(out + pid - 1)
    tl.store(out + pid, total)
    tl.debug_barrier()
    tl.store(flags + pid, 1)


@clean()
def a_chain_of_flags_that_are_polled():
    polled_chain[4](floats(64), np.zeros(4, np.int32), uninitialised(4), BLOCK=16)


@bl.jit
def work_queue(x, out, head, n, BLOCK: bl.constexpr):
    item = tl.atomic_add(head, 1)
    while item < n:
        i = item * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i))
        item = tl.atomic_add(head, 1)


@clean()
def a_queue_of_work():
    work_queue[3](floats(64), floats(64), np.zeros(1, np.int32), 4, BLOCK=16)


@bl.jit
def append(x, out, count, BLOCK: bl.constexpr):
    v = tl.load(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    at = tl.atomic_add(count, BLOCK)
    tl.store(out + at + tl.arange(0, BLOCK), v)


@clean()
def places_handed_out_by_an_atomic():
    append[4](floats(64), uninitialised(64), np.zeros(1, np.int32), BLOCK=16)


@bl.jit
def scatter(index, out, BLOCK: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + tl.load(index + i), i)


@clean()
def a_permutation():
    index = np.random.default_rng(0).permutation(64).astype(np.int32)
    scatter[4](index, np.zeros(64, np.int32), BLOCK=16)


@clean()
def one_program_writes_an_element_twice():
    scatter[1](np.zeros(16, np.int32), np.zeros(1, np.int32), BLOCK=16)


@bl.jit
def gather(x, index, out, n, BLOCK: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + tl.load(index + i, i < n, other=-1), i < n), i < n)


@clean()
def a_gather_whose_masked_lanes_have_wild_indices():
    gather[4](floats(8), np.arange(60, dtype=np.int32) % 8, floats(60), 60, BLOCK=16)


@bl.jit
def transpose(x, out, M, N, T: bl.constexpr):
    i = tl.program_id(0) * T + tl.arange(0, T)[:, None]
    j = tl.program_id(1) * T + tl.arange(0, T)[None, :]
    mask = (i < M) & (j < N)
    tl.store(out + j * M + i, tl.load(x + i * N + j, mask), mask)


@clean()
def a_transpose_with_tails():
    transpose[3, 4](floats(20, 30), floats(30, 20), 20, 30, T=8)


@bl.jit
def interleaved_rows(out, n, ROWS: bl.constexpr, BLOCK: bl.constexpr):
    rows = tl.program_id(0) + tl.arange(0, ROWS) * tl.num_programs(0)
    cols = tl.arange(0, BLOCK)
    tl.store(out + rows[:, None] * n + cols[None, :], 1.0, cols[None, :] < n)


@clean()
def rows_that_interleave():
    interleaved_rows[4](floats(16, 10), 10, ROWS=4, BLOCK=16)


@bl.jit
def grid_stride(x, out, n, BLOCK: bl.constexpr):
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        i = start + tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i, i < n) * 2, i < n)


@clean()
def a_loop_that_strides_by_the_grid():
    x = floats(100)
    grid_stride[3](x, x, 100, BLOCK=16)


@bl.jit
def walking_pointer(x, out, n, steps, BLOCK: bl.constexpr):
    row = tl.program_id(0)
    at, to = x + row * n + tl.arange(0, BLOCK), out + row * n + tl.arange(0, BLOCK)
    for step in range(steps):
        mask = step * BLOCK + tl.arange(0, BLOCK) < n
        tl.store(to, tl.load(at, mask) + 1, mask)
        at += BLOCK
        to += BLOCK


@clean()
def pointers_that_walk_past_a_masked_end():
    walking_pointer[3](floats(3, 40), floats(3, 40), 40, 3, BLOCK=16)


@bl.jit
def while_pointer(x, n, BLOCK: bl.constexpr):
    start = tl.program_id(0) * n
    at = start
    while at < start + n:
        i = at + tl.arange(0, BLOCK)
        tl.store(x + i, tl.load(x + i) * 2, i < start + n)
        at += BLOCK


@clean()
def a_while_loop_in_place():
    x = floats(4 * 32)
    while_pointer[4](x, 32, BLOCK=16)


@bl.jit
def softmax(out, x, n, stride, BLOCK: bl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    v = tl.load(x + row * stride + cols, cols < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(out + row * stride + cols, e / tl.sum(e, 0), cols < n)


@clean()
def a_softmax_in_place_with_a_stride():
    x = floats(5, 20)
    softmax[5](x, x, 13, 20, BLOCK=16)


@bl.jit
def matmul(a, b, c, M, N, K, T: bl.constexpr):
    rm = (tl.program_id(0) * T + tl.arange(0, T)) % M
    rn = (tl.program_id(1) * T + tl.arange(0, T)) % N
    k = tl.arange(0, T)
    acc = tl.zeros((T, T), tl.float32)
    for start in range(0, K, T):
        inside = start + k < K
        x = tl.load(a + rm[:, None] * K + start + k[None, :], inside[None, :], other=0.0)
        y = tl.load(b + (start + k)[:, None] * N + rn[None, :], inside[:, None], other=0.0)
        acc = tl.dot(x, y, acc)
    i, j = tl.program_id(0) * T + tl.arange(0, T), tl.program_id(1) * T + tl.arange(0, T)
    tl.store(c + i[:, None] * N + j[None, :], acc, (i[:, None] < M) & (j[None, :] < N))


@clean()
def a_product_whose_rows_wrap():
    matmul[2, 3](floats(20, 40), floats(40, 35), uninitialised((20, 35)), 20, 35, 40, T=16)


@bl.jit
def split_k(a, b, c, K: bl.constexpr, T: bl.constexpr):
    i, k = tl.arange(0, T), tl.program_id(0) * K + tl.arange(0, K)
    x = tl.load(a + i[:, None] * (2 * K) + k[None, :])
    y = tl.load(b + k[:, None] * T + i[None, :])
    tl.atomic_add(c + i[:, None] * T + i[None, :], tl.dot(x, y))


@clean()
def a_split_product_by_atomics():
    split_k[2](floats(16, 32), floats(32, 16), np.zeros((16, 16), np.float32), K=16, T=16)


@bl.jit
def halo(x, out, n, BLOCK: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    left = tl.load(x + i - 1, (i > 0) & (i <= n), other=0.0)
    right = tl.load(x + i + 1, i + 1 < n, other=0.0)
    tl.store(out + i, left + right, i < n)


@clean()
def neighbours_read_from_another_array():
    halo[4](floats(60), floats(60), 60, BLOCK=16)


@bl.jit
def only_first(out, BLOCK: bl.constexpr):
    if tl.program_id(0) == 0:
        tl.store(out + tl.arange(0, BLOCK), 1.0)


@clean()
def one_program_alone_stores():
    only_first[4](floats(16), BLOCK=16)


@bl.jit
def only_lane(x, out, BLOCK: bl.constexpr):
    pid = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i), i == pid)


@clean()
def each_program_has_a_lane_of_one_block():
    only_lane[8](floats(8), uninitialised(8), BLOCK=8)


@bl.jit
def twice(x, n, BLOCK: bl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, i < n) + 1, i < n)
    tl.debug_barrier()
    tl.store(x + i, tl.load(x + i, i < n) * 2, i < n)


@clean()
def a_program_reads_what_it_wrote():
    twice[4](floats(60), 60, BLOCK=16)


@bl.jit
def shuffled_in_block(x, scratch, BLOCK: bl.constexpr):
    base = tl.program_id(0) * BLOCK
    i = tl.arange(0, BLOCK)
    tl.store(scratch + base + i, tl.load(x + base + i))
    tl.debug_barrier()
    tl.store(x + base + i, tl.load(scratch + base + BLOCK - 1 - i))


@clean()
def a_block_turned_through_scratch():
    shuffled_in_block[4](floats(64), uninitialised(64), BLOCK=16)


@bl.jit
def chosen(x, y, BLOCK: bl.constexpr):
    pid = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    at = tl.where(i < BLOCK // 2, x + i, y + i) + pid * BLOCK
    tl.store(at, tl.load(at) + 1)


@clean()
def a_pointer_chosen_between_arrays():
    chosen[2](floats(32), floats(32), BLOCK=16)


@bl.jit
def through_block_pointers(x, out, M, N, T: bl.constexpr):
    at = tl.make_block_ptr(x, (M, N), (N, 1), (tl.program_id(0) * T, 0), (T, T), (1, 0))
    to = tl.make_block_ptr(out, (M, N), (N, 1), (tl.program_id(0) * T, 0), (T, T), (1, 0))
    for _ in range(0, N, T):
        tl.store(to, tl.load(at, boundary_check=(0, 1)), boundary_check=(0, 1))
        at, to = tl.advance(at, (0, T)), tl.advance(to, (0, T))


@clean()
def block_pointers_with_tails():
    through_block_pointers[2](floats(13, 21), uninitialised((13, 21)), 13, 21, T=8)


@bl.jit
def bytes_as_words(x, out, BLOCK: bl.constexpr):
    at = (x + 4).to(tl.pointer_type(tl.int32))
    tl.store(out + tl.arange(0, BLOCK), tl.load(at + tl.arange(0, BLOCK)))


@clean()
def bytes_read_as_words():
    bytes_as_words[1](np.zeros(80, np.int8), np.zeros(16, np.int32), BLOCK=16)


@bl.jit
def hints(x, out, start, stride, BLOCK: bl.constexpr):
    stride = tl.multiple_of(stride, 16)
    i = tl.max_contiguous(tl.multiple_of(start + tl.arange(0, BLOCK), BLOCK), BLOCK)
    rows = tl.max_constancy(tl.arange(0, BLOCK) // 8, 8)
    tl.assume(start >= 0)
    at = tl.multiple_of(x + i, 16)
    tl.store(out + i - start, tl.load(at) + rows + stride)


@clean()
def hints_that_hold():
    memory = np.zeros(80, np.float32)
    x = memory[-(memory.ctypes.data // 4) % 16 :][:64]
    hints[1](x, floats(16), 32, 48, BLOCK=16)


@bl.jit
def padded_max(x, out, n, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i, i < n, other=-float("inf"))
    tl.store(out, tl.max(v, 0))


@clean()
def padding_of_infinity():
    padded_max[1](floats(10), floats(1), 10, BLOCK=16)


@bl.jit
def rows_of_padding(x, out, n, ROWS: bl.constexpr, BLOCK: bl.constexpr):
    rows, cols = tl.arange(0, ROWS)[:, None], tl.arange(0, BLOCK)[None, :]
    v = tl.where(rows < n, tl.load(x + rows * BLOCK + cols, rows < n, other=0.0), -float("inf"))
    e = tl.exp(v - tl.max(v, 1)[:, None])
    tl.store(out + rows * BLOCK + cols, e, rows < n)


@clean()
def padding_whose_nan_goes_nowhere():
    rows_of_padding[1](floats(3, 16), floats(3, 16), 3, ROWS=4, BLOCK=16)


@bl.jit
def clamped_rows(x, out, M, T: bl.constexpr):
    i = tl.program_id(0) * T + tl.arange(0, T)
    wrapped = tl.max_contiguous(tl.multiple_of(i % M, T), T)
    clamped = tl.max_contiguous(tl.multiple_of(tl.where(i < M, i, 0), T), T)
    tl.store(out + i, tl.load(x + wrapped) + tl.load(x + clamped), i < M)


@clean()
def hints_of_rows_behind_the_end():
    clamped_rows[2](floats(21), floats(21), 21, T=16)


@clean()
def numbers_that_are_nan_before():
    x = np.full(64, np.nan, np.float32)
    add[4](x, floats(64), floats(64), 64, BLOCK=16)


@clean()
def a_watched_array_written_by_the_host():
    x = uninitialised(64, np.int8)
    x[...] = np.arange(64) * 4 - 128  # among them the bits that unwritten elements have
    copy[4](x, np.zeros(64, np.int8), 64, BLOCK=16)


@clean()
def a_watched_array_written_by_a_launch():
    middle = uninitialised(64, np.float16)
    copy[4](np.ones(64, np.float16), middle, 64, BLOCK=16)
    copy[4](middle, np.ones(64, np.float16), 64, BLOCK=16)


@clean()
def the_written_part_of_a_watched_array():
    x = uninitialised((2, 64))
    x[0] = 1
    copy[4](x[0], x[1], 64, BLOCK=16)
    copy[4](x[1], x[0], 64, BLOCK=16)


@bl.jit
def reduce_rows(x, out, n, BLOCK: bl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        total += tl.load(x + row * n + i, i < n, other=0.0)
    tl.store(out + row, tl.sum(total, 0))


@clean()
def neighbouring_results_of_rows():
    reduce_rows[7](floats(7, 50), uninitialised(7), 50, BLOCK=16)


@bl.jit
def cumulative(x, n, BLOCK: bl.constexpr):
    i = tl.arange(0, BLOCK)
    at = x + tl.program_id(0) * n + i
    tl.store(at, tl.cumsum(tl.load(at, i < n, other=0.0), 0), i < n)


@clean()
def running_sums_in_place():
    cumulative[4](floats(4, 13), 13, BLOCK=16)


@bl.jit
def three_axes(out, A, B, C, T: bl.constexpr):
    z, y, x = tl.program_id(2), tl.program_id(1), tl.program_id(0)
    i = x * T + tl.arange(0, T)
    tl.store(out + (z * B + y) * C + i, z + y + x, (i < C) & (z < A))


@clean()
def a_grid_of_three_axes():
    three_axes[3, 4, 5](np.zeros((5, 4, 20), np.int32), 5, 4, 20, T=8)
