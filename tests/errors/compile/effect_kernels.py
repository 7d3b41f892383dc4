"""Kernels with atomics, prints and assertions that cannot be compiled. Arguments as in `kernels`."""

# mypy: ignore-errors
# ruff: noqa
from __future__ import annotations

import blocklang.language as tl


def print_with_an_end(x, p, n, s, BLOCK: tl.constexpr):
    print("n is", n, end="")


def device_print_without_a_string(x, p, n, s, BLOCK: tl.constexpr):
    tl.device_print(n)


def device_assert_with_a_number(x, p, n, s, BLOCK: tl.constexpr):
    tl.device_assert(n > 0, n)


def atomic_on_a_number(x, p, n, s, BLOCK: tl.constexpr):
    tl.atomic_add(n, 1)


def atomic_of_a_larger_shape(x, p, n, s, BLOCK: tl.constexpr):
    tl.atomic_add(p, tl.arange(0, BLOCK))


def atomic_with_a_mask_of_another_shape(x, p, n, s, BLOCK: tl.constexpr):
    tl.atomic_add(p + tl.arange(0, BLOCK), 1, mask=tl.arange(0, 32) < n)


def atomic_or_of_floats(x, p, n, s, BLOCK: tl.constexpr):
    tl.atomic_or(x, 1)


def atomic_max_of_half_floats(x, p, n, s, BLOCK: tl.constexpr):
    tl.atomic_max(x.to(tl.pointer_type(tl.float16)), 1)


def atomic_add_of_small_integers(x, p, n, s, BLOCK: tl.constexpr):
    tl.atomic_add(p.to(tl.pointer_type(tl.int16)), 1)


def atomic_add_of_bools(x, p, n, s, BLOCK: tl.constexpr):
    tl.atomic_add(p.to(tl.pointer_type(tl.int1)), 1)


def atomic_cas_of_bytes(x, p, n, s, BLOCK: tl.constexpr):
    tl.atomic_cas(p.to(tl.pointer_type(tl.int8)), 0, 1)


def atomic_with_unknown_sem(x, p, n, s, BLOCK: tl.constexpr):
    tl.atomic_add(p, 1, sem="seq_cst")


def atomic_with_unknown_scope(x, p, n, s, BLOCK: tl.constexpr):
    tl.atomic_cas(p, 0, 1, scope="warp")


def described_atomic_max_of_half_floats(x, p, n, s, BLOCK: tl.constexpr):
    d = tl.make_tensor_descriptor(x.to(tl.pointer_type(tl.float16)), [n], [1], [BLOCK])
    d.atomic_max([0], tl.zeros([BLOCK], tl.float16))


def described_atomic_of_another_shape(x, p, n, s, BLOCK: tl.constexpr):
    d = tl.make_tensor_descriptor(x, [n], [1], [BLOCK])
    d.atomic_add([0], 1.0)


def described_atomic_with_too_many_offsets(x, p, n, s, BLOCK: tl.constexpr):
    d = tl.make_tensor_descriptor(x, [n], [1], [BLOCK])
    d.atomic_add([0, 0], tl.zeros([BLOCK], tl.float32))
