"""The product of two matrices, one program a block of the result."""

# mypy: ignore-errors
# ruff: noqa: PIE808, SIM300 (as people write it)
from __future__ import annotations

import numpy as np

import blocklang as bl
import blocklang.language as tl
from benchmarks.spellings.family import Array, Family, Problem

BLOCKS = {"BM": 64, "BN": 128, "BK": 64}
SMALL = 100  # problems with fewer rows get small blocks


def make(small: bool) -> Problem:
    m, n, k = (45, 68, 52) if small else (500, 504, 500)
    random = np.random.default_rng(0)
    a = random.standard_normal((m, k)).astype(np.float32)
    b = random.standard_normal((k, n)).astype(np.float32)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    return Problem({"a": a, "b": b}, np.empty((m, n), np.float32), expected, 1e-5)


matmul = Family("matmul", make)


def _grid(p: Problem, **blocks: int) -> tuple[tuple[int, int], dict[str, int]]:
    """The grid, and the blocks: those of the family but for the ones given."""
    chosen = BLOCKS | blocks
    m, n = p.out.shape
    if m < SMALL:
        chosen = {name: size // 4 for name, size in chosen.items()}
    return (bl.cdiv(m, chosen["BM"]), bl.cdiv(n, chosen["BN"])), chosen


def _sizes(p: Problem) -> tuple[int, int, int]:
    return (*p.out.shape, p.inputs["a"].shape[1])


def _launch(kernel, p: Problem, **blocks: int) -> Array:
    """Launch a kernel that takes all strides."""
    m, n, k = _sizes(p)
    grid, chosen = _grid(p, **blocks)
    kernel[grid](p.inputs["a"], p.inputs["b"], p.out, m, n, k, k, 1, n, 1, n, 1, **chosen)
    return p.out


@bl.jit
def carried(a, b, c, M, N, K, am, ak, bk, bn, cm, cn, BM: bl.constexpr, BN: bl.constexpr, BK: bl.constexpr):
    rows = (tl.program_id(0) * BM + tl.arange(0, BM)) % M
    cols = (tl.program_id(1) * BN + tl.arange(0, BN)) % N
    ks = tl.arange(0, BK)
    a_ptrs = a + rows[:, None] * am + ks[None, :] * ak
    b_ptrs = b + ks[:, None] * bk + cols[None, :] * bn
    acc = tl.zeros((BM, BN), tl.float32)
    for step in range(tl.cdiv(K, BK)):
        x = tl.load(a_ptrs, mask=ks[None, :] < K - step * BK, other=0.0)
        y = tl.load(b_ptrs, mask=ks[:, None] < K - step * BK, other=0.0)
        acc = tl.dot(x, y, acc)
        a_ptrs += BK * ak
        b_ptrs += BK * bk
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(c + rows[:, None] * cm + cols[None, :] * cn, acc, mask=mask)


@matmul.spelling("carried pointers, % M")
def _(p: Problem) -> Array:
    return _launch(carried, p)


@matmul.spelling("odd blocks")
def _(p: Problem) -> Array:
    return _launch(carried, p, BM=72, BN=126, BK=63)


any_strides = bl.jit(do_not_specialize=["am", "ak", "bk", "bn", "cm", "cn"])(carried.fn)


@matmul.spelling("strides unknown")
def _(p: Problem) -> Array:
    return _launch(any_strides, p)


@bl.jit
def recomputed(
    a, b, c, M, N, K, am, ak, bk, bn, cm, cn, BM: bl.constexpr, BN: bl.constexpr, BK: bl.constexpr
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        ks = k + tl.arange(0, BK)
        in_a = (rows[:, None] < M) & (ks[None, :] < K)
        in_b = (ks[:, None] < K) & (cols[None, :] < N)
        x = tl.load(a + rows[:, None] * am + ks[None, :] * ak, mask=in_a, other=0.0)
        y = tl.load(b + ks[:, None] * bk + cols[None, :] * bn, mask=in_b, other=0.0)
        acc += tl.dot(x, y)
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(c + rows[:, None] * cm + cols[None, :] * cn, acc, mask=mask)


@matmul.spelling("offsets made anew, all masks")
def _(p: Problem) -> Array:
    return _launch(recomputed, p)


@bl.jit
def swapped(a, b, c, M, N, K, am, ak, bk, bn, cm, cn, BM: bl.constexpr, BN: bl.constexpr, BK: bl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    cols = tl.program_id(1) * BN + tl.arange(0, BN)[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for step in range(0, tl.cdiv(K, BK)):
        ks = tl.arange(0, BK) + step * BK
        x = tl.load(a + (ks[None, :] * ak + rows * am), mask=(K > ks[None, :]) & (M > rows), other=0.0)
        y = tl.load(b + (cols * bn + ks[:, None] * bk), mask=(N > cols) & (K > ks[:, None]), other=0.0)
        acc = tl.dot(x, y, acc)
    tl.store(c + (cols * cn + rows * cm), acc, mask=(N > cols) & (M > rows))


@matmul.spelling("masks and sums the other way round")
def _(p: Problem) -> Array:
    return _launch(swapped, p)


@bl.jit
def wide(a, b, c, M, N, K, am, ak, bk, bn, cm, cn, BM: bl.constexpr, BN: bl.constexpr, BK: bl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM).to(tl.int64)
    cols = tl.program_id(1).to(tl.int64) * BN + tl.arange(0, BN).to(tl.int64)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        ks = k + tl.arange(0, BK).to(tl.int64)
        in_a = (rows[:, None] < M) & (ks[None, :] < K)
        in_b = (ks[:, None] < K) & (cols[None, :] < N)
        x = tl.load(a + rows[:, None] * am + ks[None, :] * ak, mask=in_a, other=0.0)
        y = tl.load(b + ks[:, None] * bk + cols[None, :] * bn, mask=in_b, other=0.0)
        acc = tl.dot(x, y, acc)
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(c + rows[:, None] * cm + cols[None, :] * cn, acc, mask=mask)


@matmul.spelling("int64 offsets")
def _(p: Problem) -> Array:
    return _launch(wide, p)


@bl.jit
def transposed(
    a, b, c, M, N, K, am, ak, bk, bn, cm, cn, BM: bl.constexpr, BN: bl.constexpr, BK: bl.constexpr
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    ks = tl.arange(0, BK)
    a_ptrs = a + rows[:, None] * am + ks[None, :] * ak
    b_ptrs = b + cols[:, None] * bn + ks[None, :] * bk
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a_ptrs, mask=(rows[:, None] < M) & (k + ks[None, :] < K), other=0.0)
        y = tl.load(b_ptrs, mask=(cols[:, None] < N) & (k + ks[None, :] < K), other=0.0)
        acc = tl.dot(x, tl.trans(y), acc)
        a_ptrs += BK * ak
        b_ptrs += BK * bk
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(c + rows[:, None] * cm + cols[None, :] * cn, acc, mask=mask)


@matmul.spelling("B by its transpose")
def _(p: Problem) -> Array:
    return _launch(transposed, p)


@bl.jit
def window(a, b, c, M, N, K, am, ak, bk, bn, cm, cn, BM: bl.constexpr, BN: bl.constexpr, BK: bl.constexpr):
    i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
    left = tl.make_block_ptr(a, (M, K), (am, ak), (i, 0), (BM, BK), (1, 0))
    right = tl.make_block_ptr(b, (K, N), (bk, bn), (0, j), (BK, BN), (1, 0))
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, K, BK):
        x = tl.load(left, boundary_check=(0, 1))
        y = tl.load(right, boundary_check=(0, 1))
        acc = tl.dot(x, y, acc)
        left, right = tl.advance(left, (0, BK)), tl.advance(right, (BK, 0))
    out = tl.make_block_ptr(c, (M, N), (cm, cn), (i, j), (BM, BN), (1, 0))
    tl.store(out, acc, boundary_check=(0, 1))


@matmul.spelling("block pointers")
def _(p: Problem) -> Array:
    return _launch(window, p)


@bl.jit
def described(a, b, c, M, N, K, BM: bl.constexpr, BN: bl.constexpr, BK: bl.constexpr):
    left = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    right = tl.make_tensor_descriptor(b, [K, N], [N, 1], [BK, BN])
    out = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(left.load([i, k]), right.load([k, j]), acc)
    out.store([i, j], acc)


@matmul.spelling("descriptors")
def _(p: Problem) -> Array:
    grid, blocks = _grid(p)
    described[grid](p.inputs["a"], p.inputs["b"], p.out, *_sizes(p), **blocks)
    return p.out


@bl.jit
def grouped(
    a, b, c, M, N, K, am, ak, bk, bn, cm, cn,
    BM: bl.constexpr, BN: bl.constexpr, BK: bl.constexpr, GROUP: bl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0)
    blocks_m, blocks_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    first = pid // (GROUP * blocks_n) * GROUP
    height = min(blocks_m - first, GROUP)
    rows = (first + (pid % (GROUP * blocks_n)) % height) * BM + tl.arange(0, BM)
    cols = ((pid % (GROUP * blocks_n)) // height) * BN + tl.arange(0, BN)
    ks = tl.arange(0, BK)
    a_ptrs = a + (rows % M)[:, None] * am + ks[None, :] * ak
    b_ptrs = b + ks[:, None] * bk + (cols % N)[None, :] * bn
    acc = tl.zeros((BM, BN), tl.float32)
    left = K
    while left > 0:
        x = tl.load(a_ptrs, mask=ks[None, :] < left, other=0.0)
        y = tl.load(b_ptrs, mask=ks[:, None] < left, other=0.0)
        acc = tl.dot(x, y, acc)
        a_ptrs += BK * ak
        b_ptrs += BK * bk
        left -= BK
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(c + rows[:, None] * cm + cols[None, :] * cn, acc, mask=mask)


@matmul.spelling("groups of programs, while")
def _(p: Problem) -> Array:
    m, n, k = _sizes(p)
    (down, across), blocks = _grid(p)
    grouped[(down * across,)](
        p.inputs["a"], p.inputs["b"], p.out, m, n, k, k, 1, n, 1, n, 1, GROUP=3, **blocks
    )
    return p.out


@bl.jit
def in_place(a, b, c, M, N, K, am, ak, bk, bn, cm, cn, BM: bl.constexpr, BN: bl.constexpr, BK: bl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    ks = tl.arange(0, BK)
    inside = (rows[:, None] < M) & (cols[None, :] < N)
    c_ptrs = c + rows[:, None] * cm + cols[None, :] * cn
    tl.store(c_ptrs, tl.zeros((BM, BN), tl.float32), mask=inside)
    acc = tl.load(c_ptrs, mask=inside, other=0.0)
    for k in range(0, K, BK):
        depth = k + ks
        in_a = (rows[:, None] < M) & (depth[None, :] < K)
        in_b = (depth[:, None] < K) & (cols[None, :] < N)
        x = tl.load(a + rows[:, None] * am + depth[None, :] * ak, mask=in_a, other=0.0)
        y = tl.load(b + depth[:, None] * bk + cols[None, :] * bn, mask=in_b, other=0.0)
        acc = tl.dot(x, y, acc)
    tl.store(c_ptrs, acc, mask=inside)


@matmul.spelling("added to C in place")
def _(p: Problem) -> Array:
    return _launch(in_place, p)
