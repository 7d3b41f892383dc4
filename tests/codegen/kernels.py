"""Kernels whose machine code is read; `*_ptr` are pointers to f32, the rest is i32 or constant."""

# mypy: ignore-errors
from __future__ import annotations

import blocklang.language as tl
from blocklang.jit import jit


@jit
def window_product(
    a_ptr, b_ptr, c_ptr, M, N, K, am, ak, bk, bn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
    left = tl.make_block_ptr(a_ptr, (M, K), (am, ak), (i, 0), (BM, BK), (1, 0))
    right = tl.make_block_ptr(b_ptr, (K, N), (bk, bn), (0, j), (BK, BN), (1, 0))
    total = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, K, BK):
        total = tl.dot(tl.load(left, boundary_check=(0, 1)), tl.load(right, boundary_check=(0, 1)), total)
        left, right = tl.advance(left, (0, BK)), tl.advance(right, (BK, 0))
    out = tl.make_block_ptr(c_ptr, (M, N), (N, 1), (i, j), (BM, BN), (1, 0))
    tl.store(out, total, boundary_check=(0, 1))


@jit
def window_descriptors(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    left = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BM, BK])
    right = tl.make_tensor_descriptor(b_ptr, [K, N], [N, 1], [BK, BN])
    out = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BM, BN])
    i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        total = tl.dot(left.load([i, k]), right.load([k, j]), total)
    out.store([i, j], total)


@jit
def renamed(x_ptr, y_ptr, z_ptr, N: tl.constexpr):
    i, both = tl.arange(0, N), tl.arange(0, 2 * N)
    a, b = tl.load(x_ptr + i), tl.load(y_ptr + i)
    tl.store(z_ptr + both, tl.interleave(a, b))
    tl.store(z_ptr + 2 * N + both, tl.cat(a, b))
    tl.store(z_ptr + 4 * N + i, tl.flip(a))
    even, odd = tl.split(tl.reshape(tl.load(x_ptr + both), (N, 2)))
    tl.store(z_ptr + 5 * N + i, even - odd)


@jit
def remainder(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = lanes < n
    value = tl.load(x_ptr + lanes, mask=inside)
    tl.store(out_ptr + lanes, value % 1.25 + 1.25 % value, mask=inside)


@jit
def remainder_f64(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = lanes < n
    value = tl.load(x_ptr + lanes, mask=inside).to(tl.float64)
    tl.store(out_ptr + lanes, value % 1.25 + 1.25 % value, mask=inside)


@jit
def product(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    column = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        depth = k + tl.arange(0, BK)
        in_a = (row[:, None] < M) & (depth[None, :] < K)
        in_b = (depth[:, None] < K) & (column[None, :] < N)
        x = tl.load(a + row[:, None] * K + depth[None, :], mask=in_a, other=0.0)
        y = tl.load(b + depth[:, None] * N + column[None, :], mask=in_b, other=0.0)
        acc = tl.dot(x, y, acc)
    tl.store(c + row[:, None] * N + column[None, :], acc, mask=(row[:, None] < M) & (column[None, :] < N))


@jit
def square_in_place(a, N: tl.constexpr):
    i = tl.arange(0, N)
    place = a + i[:, None] * N + i[None, :]
    tl.store(place, tl.dot(tl.load(place), tl.load(place)))


@jit
def byte_product(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    column = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.int32)
    for k in range(0, K, BK):
        depth = k + tl.arange(0, BK)
        in_a = (row[:, None] < M) & (depth[None, :] < K)
        in_b = (depth[:, None] < K) & (column[None, :] < N)
        x = tl.load(a + row[:, None] * K + depth[None, :], mask=in_a, other=0)
        y = tl.load(b + depth[:, None] * N + column[None, :], mask=in_b, other=0)
        acc = tl.dot(x, y, acc)
    tl.store(c + row[:, None] * N + column[None, :], acc, mask=(row[:, None] < M) & (column[None, :] < N))


@jit
def byte_product_of_turned(a, b, c, start, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.trans(tl.load(a + k[:, None] * M + i[None, :]))
    y = tl.trans(tl.load(b + j[:, None] * K + k[None, :]))
    place = i[:, None] * N + j[None, :]
    tl.store(c + place, tl.load(start + place) + tl.dot(x, y))


@jit
def byte_products(a, b, c, B: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    z, i, j, k = tl.arange(0, B), tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + z[:, None, None] * M * K + i[None, :, None] * K + k[None, None, :])
    y = tl.load(b + z[:, None, None] * K * N + k[None, :, None] * N + j[None, None, :])
    tl.store(c + z[:, None, None] * M * N + i[None, :, None] * N + j[None, None, :], tl.dot(x, y))
