"""Kernels with wrong shapes, block pointers and tensor descriptors; the same arguments as in `kernels`."""

# mypy: ignore-errors
# ruff: noqa
from __future__ import annotations

import blocklang.language as tl

# ---- shapes ----


def join_of_two_types(x, p, n, s, BLOCK: tl.constexpr):
    y = tl.join(tl.load(x + tl.arange(0, BLOCK)), tl.arange(0, BLOCK))


def split_of_three(x, p, n, s, BLOCK: tl.constexpr):
    a, b = tl.split(tl.zeros((BLOCK, 3), tl.float32))


def cat_of_other_extents(x, p, n, s, BLOCK: tl.constexpr):
    y = tl.cat(tl.zeros((4, 8), tl.int32), tl.zeros((4, 6), tl.int32))


def cat_of_other_ranks(x, p, n, s, BLOCK: tl.constexpr):
    y = tl.cat(tl.zeros((4, 8), tl.int32), tl.zeros((4,), tl.int32))


def cat_reordered_2d(x, p, n, s, BLOCK: tl.constexpr):
    y = tl.cat(tl.zeros((4, 8), tl.int32), tl.zeros((4, 8), tl.int32), can_reorder=True)


def flip_of_a_missing_axis(x, p, n, s, BLOCK: tl.constexpr):
    y = tl.flip(tl.arange(0, BLOCK), 1)


# ---- block pointers ----


def block_pointer_lengths(x, p, n, s, BLOCK: tl.constexpr):
    y = tl.make_block_ptr(x, (n, n), (n, 1), (0,), (4, 4), (1, 0))


def block_pointer_order(x, p, n, s, BLOCK: tl.constexpr):
    y = tl.make_block_ptr(x, (n, n), (n, 1), (0, 0), (4, 4), (1, 1))


def block_pointer_base(x, p, n, s, BLOCK: tl.constexpr):
    y = tl.make_block_ptr(x + tl.arange(0, BLOCK), (n,), (1,), (0,), (4,), (0,))


def block_pointer_wide_offset(x, p, n, s, BLOCK: tl.constexpr):
    y = tl.make_block_ptr(x, (n,), (1,), (n.to(tl.int64),), (4,), (0,))


def block_pointer_float_shape(x, p, n, s, BLOCK: tl.constexpr):
    y = tl.make_block_ptr(x, (s,), (1,), (0,), (4,), (0,))


def block_pointer_run_time_block(x, p, n, s, BLOCK: tl.constexpr):
    y = tl.make_block_ptr(x, (n,), (1,), (0,), (n,), (0,))


def block_pointer_mask(x, p, n, s, BLOCK: tl.constexpr):
    q = tl.make_block_ptr(x, (n,), (1,), (0,), (BLOCK,), (0,))
    y = tl.load(q, mask=tl.arange(0, BLOCK) < n)


def block_pointer_store_mask(x, p, n, s, BLOCK: tl.constexpr):
    q = tl.make_block_ptr(x, (n,), (1,), (0,), (BLOCK,), (0,))
    tl.store(q, tl.zeros((BLOCK,), tl.float32), mask=tl.arange(0, BLOCK) < n)


def block_pointer_axis(x, p, n, s, BLOCK: tl.constexpr):
    q = tl.make_block_ptr(x, (n,), (1,), (0,), (BLOCK,), (0,))
    y = tl.load(q, boundary_check=(1,))


def block_pointer_axis_twice(x, p, n, s, BLOCK: tl.constexpr):
    q = tl.make_block_ptr(x, (n,), (1,), (0,), (BLOCK,), (0,))
    y = tl.load(q, boundary_check=(0, 0))


def block_pointer_integer_nan(x, p, n, s, BLOCK: tl.constexpr):
    q = tl.make_block_ptr(p, (n,), (1,), (0,), (BLOCK,), (0,))
    y = tl.load(q, boundary_check=(0,), padding_option="nan")


def block_pointer_padding(x, p, n, s, BLOCK: tl.constexpr):
    q = tl.make_block_ptr(x, (n,), (1,), (0,), (BLOCK,), (0,))
    y = tl.load(q, boundary_check=(0,), padding_option="one")


def block_pointer_other_type(x, p, n, s, BLOCK: tl.constexpr):
    q = tl.make_block_ptr(x, (n,), (1,), (0,), (BLOCK,), (0,))
    tl.store(q, tl.arange(0, BLOCK))


def block_pointer_other_shape(x, p, n, s, BLOCK: tl.constexpr):
    q = tl.make_block_ptr(x, (n,), (1,), (0,), (BLOCK,), (0,))
    tl.store(q, tl.zeros((1, BLOCK), tl.float32))


def options_of_block_pointers(x, p, n, s, BLOCK: tl.constexpr):
    y = tl.load(x + tl.arange(0, BLOCK), boundary_check=(0,))


def unused_advance(x, p, n, s, BLOCK: tl.constexpr):
    q = tl.make_block_ptr(x, (n,), (1,), (0,), (BLOCK,), (0,))
    tl.advance(q, (BLOCK,))


def unused_advance_method(x, p, n, s, BLOCK: tl.constexpr):
    q = tl.make_block_ptr(x, (n,), (1,), (0,), (BLOCK,), (0,))
    q.advance((BLOCK,))


def advance_of_a_pointer(x, p, n, s, BLOCK: tl.constexpr):
    q = tl.advance(x, (BLOCK,))


def advance_by_too_many(x, p, n, s, BLOCK: tl.constexpr):
    q = tl.make_block_ptr(x, (n,), (1,), (0,), (BLOCK,), (0,))
    q = tl.advance(q, (0, BLOCK))


def sum_of_a_block_pointer(x, p, n, s, BLOCK: tl.constexpr):
    q = tl.make_block_ptr(x, (n,), (1,), (0,), (BLOCK,), (0,))
    q = q + BLOCK


def other_blocks_in_a_loop(x, p, n, s, BLOCK: tl.constexpr):
    q = tl.make_block_ptr(x, (n,), (1,), (0,), (BLOCK,), (0,))
    for i in range(n):
        q = tl.make_block_ptr(x, (n,), (1,), (i,), (2 * BLOCK,), (0,))


def other_blocks_in_branches(x, p, n, s, BLOCK: tl.constexpr):
    if n > 3:
        q = tl.make_block_ptr(x, (n,), (1,), (0,), (BLOCK,), (0,))
    else:
        q = tl.make_block_ptr(x, (n,), (1,), (0,), (2 * BLOCK,), (0,))
    y = tl.load(q)


# ---- descriptors ----


def descriptor_rank(x, p, n, s, BLOCK: tl.constexpr):
    d = tl.make_tensor_descriptor(x, [n, n, n, n, n, n], [n, n, n, n, n, 1], [1, 1, 1, 1, 1, 4])


def descriptor_last_stride(x, p, n, s, BLOCK: tl.constexpr):
    d = tl.make_tensor_descriptor(x, [n, n], [1, n], [4, 4])


def descriptor_short_rows(x, p, n, s, BLOCK: tl.constexpr):
    d = tl.make_tensor_descriptor(x, [n, n], [n, 1], [4, 3])


def descriptor_strides(x, p, n, s, BLOCK: tl.constexpr):
    d = tl.make_tensor_descriptor(x, [n, n], [1], [4, 4])


def descriptor_block_rank(x, p, n, s, BLOCK: tl.constexpr):
    d = tl.make_tensor_descriptor(x, [n, n], [n, 1], [4])


def descriptor_integer_nan(x, p, n, s, BLOCK: tl.constexpr):
    d = tl.make_tensor_descriptor(p, [n], [1], [4], padding_option="nan")


def descriptor_offsets(x, p, n, s, BLOCK: tl.constexpr):
    d = tl.make_tensor_descriptor(x, [n, n], [n, 1], [4, 4])
    y = d.load([0])


def descriptor_value(x, p, n, s, BLOCK: tl.constexpr):
    d = tl.make_tensor_descriptor(x, [n, n], [n, 1], [4, 4])
    d.store([0, 0], tl.zeros((4, 8), tl.float32))


def descriptor_gather(x, p, n, s, BLOCK: tl.constexpr):
    d = tl.make_tensor_descriptor(x, [n, n], [n, 1], [4, 4])
    y = d.gather(tl.arange(0, 8), 0)


def descriptor_wide_offset(x, p, n, s, BLOCK: tl.constexpr):
    d = tl.make_tensor_descriptor(x, [n], [1], [4])
    y = d.load([n.to(tl.int64)])


def load_of_a_descriptor(x, p, n, s, BLOCK: tl.constexpr):
    y = tl.load(tl.make_tensor_descriptor(x, [n], [1], [4]))


def descriptor_attribute(x, p, n, s, BLOCK: tl.constexpr):
    y = tl.make_tensor_descriptor(x, [n], [1], [4]).stride
