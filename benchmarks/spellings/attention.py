"""Attention of several heads, without a mask of its own: one program a block of queries of a head."""

# mypy: ignore-errors
# ruff: noqa: SIM300 (as people write it)
from __future__ import annotations

import numpy as np

import blocklang as bl
import blocklang.language as tl
from benchmarks.spellings.family import Array, Family, Problem


def make(small: bool) -> Problem:
    heads, n, d = (2, 45, 16) if small else (4, 500, 64)
    random = np.random.default_rng(0)
    q, k, v = (random.standard_normal((heads, n, d)).astype(np.float32) for _ in range(3))
    scores = q.astype(np.float64) @ k.astype(np.float64).swapaxes(1, 2) * d**-0.5
    p = np.exp(scores - scores.max(2, keepdims=True))
    expected = p / p.sum(2, keepdims=True) @ v.astype(np.float64)
    return Problem({"q": q, "k": k, "v": v}, np.empty_like(q), expected, 1e-5)


attention = Family("attention", make)


def _launch(kernel, p: Problem, **blocks: int) -> Array:
    """Launch a kernel that takes the strides of a head, a row and a column, the same for all arrays."""
    heads, n, d = p.out.shape
    chosen = {"BM": 64, "BN": 64} | blocks
    if n < 100:
        chosen = {name: size // 4 for name, size in chosen.items()}
    kernel[(bl.cdiv(n, chosen["BM"]), heads)](
        p.inputs["q"], p.inputs["k"], p.inputs["v"], p.out, d**-0.5, n, n * d, d, 1, D=d, **chosen
    )
    return p.out


@bl.jit
def carried(
    q_ptr, k_ptr, v_ptr, o_ptr, scale, N, sh, sn, sd, D: bl.constexpr, BM: bl.constexpr, BN: bl.constexpr
):
    head = tl.program_id(1) * sh
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols, ds = tl.arange(0, BN), tl.arange(0, D)
    k_ptrs = k_ptr + head + ds[:, None] * sd + cols[None, :] * sn
    v_ptrs = v_ptr + head + cols[:, None] * sn + ds[None, :] * sd
    q = tl.load(q_ptr + head + rows[:, None] * sn + ds[None, :] * sd, mask=rows[:, None] < N, other=0.0)
    m = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for start in range(0, N, BN):
        k = tl.load(k_ptrs, mask=start + cols[None, :] < N, other=0.0)
        s = tl.dot(q, k) * scale
        s = tl.where(start + cols[None, :] < N, s, -float("inf"))
        larger = tl.maximum(m, tl.max(s, 1))
        p = tl.exp(s - larger[:, None])
        alpha = tl.exp(m - larger)
        total = total * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None]
        v = tl.load(v_ptrs, mask=start + cols[:, None] < N, other=0.0)
        acc = tl.dot(p, v, acc)
        m = larger
        k_ptrs += BN * sn
        v_ptrs += BN * sn
    out = o_ptr + head + rows[:, None] * sn + ds[None, :] * sd
    tl.store(out, acc / total[:, None], mask=rows[:, None] < N)


@attention.spelling("carried pointers")
def _(p: Problem) -> Array:
    return _launch(carried, p)


@attention.spelling("odd blocks")
def _(p: Problem) -> Array:
    return _launch(carried, p, BM=63, BN=72)


any_strides = bl.jit(do_not_specialize=["sh", "sn", "sd"])(carried.fn)


@attention.spelling("strides unknown")
def _(p: Problem) -> Array:
    return _launch(any_strides, p)


@bl.jit
def recomputed(
    q_ptr, k_ptr, v_ptr, o_ptr, scale, N, sh, sn, sd, D: bl.constexpr, BM: bl.constexpr, BN: bl.constexpr
):
    q_ptr += tl.program_id(1) * sh
    k_ptr += tl.program_id(1) * sh
    v_ptr += tl.program_id(1) * sh
    o_ptr += tl.program_id(1) * sh
    rows = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    ds = tl.arange(0, D)
    q = tl.load(q_ptr + rows * sn + ds[None, :] * sd, mask=N > rows, other=0.0) * scale
    m = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for start in range(0, N, BN):
        cols = start + tl.arange(0, BN)
        k = tl.load(k_ptr + cols[:, None] * sn + ds[None, :] * sd, mask=N > cols[:, None], other=0.0)
        v = tl.load(v_ptr + cols[:, None] * sn + ds[None, :] * sd, mask=N > cols[:, None], other=0.0)
        s = tl.dot(q, tl.trans(k))
        s = tl.where(N > cols[None, :], s, -float("inf"))
        larger = tl.maximum(m, tl.max(s, 1))
        p = tl.exp(s - larger[:, None])
        alpha = tl.exp(m - larger)
        total = total * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None] + tl.dot(p, v)
        m = larger
    tl.store(o_ptr + rows * sn + ds[None, :] * sd, acc / total[:, None], mask=N > rows)


@attention.spelling("offsets made anew, K transposed, n > cols")
def _(p: Problem) -> Array:
    return _launch(recomputed, p)


@bl.jit
def wide(
    q_ptr, k_ptr, v_ptr, o_ptr, scale, N, sh, sn, sd, D: bl.constexpr, BM: bl.constexpr, BN: bl.constexpr
):
    head = tl.program_id(1).to(tl.int64) * sh
    rows = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM).to(tl.int64)
    ds = tl.arange(0, D).to(tl.int64)
    q = tl.load(q_ptr + head + rows[:, None] * sn + ds[None, :] * sd, mask=rows[:, None] < N, other=0.0)
    m = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for start in range(0, N, BN):
        cols = start + tl.arange(0, BN).to(tl.int64)
        k = tl.load(k_ptr + head + cols[None, :] * sn + ds[:, None] * sd, mask=cols[None, :] < N, other=0.0)
        s = tl.where(cols[None, :] < N, tl.dot(q, k) * scale, -float("inf"))
        larger = tl.maximum(m, tl.max(s, 1))
        p = tl.exp(s - larger[:, None])
        alpha = tl.exp(m - larger)
        total = total * alpha + tl.sum(p, 1)
        v = tl.load(v_ptr + head + cols[:, None] * sn + ds[None, :] * sd, mask=cols[:, None] < N, other=0.0)
        acc = tl.dot(p, v, acc * alpha[:, None])
        m = larger
    out = o_ptr + head + rows[:, None] * sn + ds[None, :] * sd
    tl.store(out, acc / total[:, None], mask=rows[:, None] < N)


@attention.spelling("int64 offsets")
def _(p: Problem) -> Array:
    return _launch(wide, p)


@bl.jit
def wrapped(
    q_ptr, k_ptr, v_ptr, o_ptr, scale, N, sh, sn, sd, D: bl.constexpr, BM: bl.constexpr, BN: bl.constexpr
):
    head = tl.program_id(1) * sh
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    ds = tl.arange(0, D)
    q = tl.load(q_ptr + head + (rows % N)[:, None] * sn + ds[None, :] * sd)
    m = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for start in range(0, N, BN):
        cols = start + tl.arange(0, BN)
        inside = cols % N
        k = tl.load(k_ptr + head + inside[None, :] * sn + ds[:, None] * sd)
        v = tl.load(v_ptr + head + inside[:, None] * sn + ds[None, :] * sd)
        s = tl.where(cols[None, :] < N, tl.dot(q, k) * scale, -float("inf"))
        larger = tl.maximum(m, tl.max(s, 1))
        p = tl.exp(s - larger[:, None])
        alpha = tl.exp(m - larger)
        total = total * alpha + tl.sum(p, 1)
        acc = tl.dot(p, v, acc * alpha[:, None])
        m = larger
    out = o_ptr + head + rows[:, None] * sn + ds[None, :] * sd
    tl.store(out, acc / total[:, None], mask=rows[:, None] < N)


@attention.spelling("% N")
def _(p: Problem) -> Array:
    return _launch(wrapped, p)


@bl.jit
def window(
    q_ptr, k_ptr, v_ptr, o_ptr, scale, N, sh, sn, sd, D: bl.constexpr, BM: bl.constexpr, BN: bl.constexpr
):
    head = tl.program_id(1) * sh
    first = tl.program_id(0) * BM
    q_window = tl.make_block_ptr(q_ptr + head, (N, D), (sn, sd), (first, 0), (BM, D), (1, 0))
    k_window = tl.make_block_ptr(k_ptr + head, (D, N), (sd, sn), (0, 0), (D, BN), (0, 1))
    v_window = tl.make_block_ptr(v_ptr + head, (N, D), (sn, sd), (0, 0), (BN, D), (1, 0))
    o_window = tl.make_block_ptr(o_ptr + head, (N, D), (sn, sd), (first, 0), (BM, D), (1, 0))
    q = tl.load(q_window, boundary_check=(0,), padding_option="zero")
    m = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for start in range(0, N, BN):
        k = tl.load(k_window, boundary_check=(1,), padding_option="zero")
        s = tl.dot(q, k) * scale
        s = tl.where((start + tl.arange(0, BN))[None, :] < N, s, -float("inf"))
        larger = tl.maximum(m, tl.max(s, 1))
        p = tl.exp(s - larger[:, None])
        alpha = tl.exp(m - larger)
        total = total * alpha + tl.sum(p, 1)
        v = tl.load(v_window, boundary_check=(0,), padding_option="zero")
        acc = tl.dot(p, v, acc * alpha[:, None])
        m = larger
        k_window, v_window = tl.advance(k_window, (0, BN)), tl.advance(v_window, (BN, 0))
    tl.store(o_window, acc / total[:, None], boundary_check=(0,))


@attention.spelling("block pointers")
def _(p: Problem) -> Array:
    return _launch(window, p)


@bl.jit
def described(
    q_ptr, k_ptr, v_ptr, o_ptr, scale, N, sh, sn, sd, D: bl.constexpr, BM: bl.constexpr, BN: bl.constexpr
):
    head = tl.program_id(1) * sh
    queries = tl.make_tensor_descriptor(q_ptr + head, [N, D], [D, 1], [BM, D])
    keys = tl.make_tensor_descriptor(k_ptr + head, [N, D], [D, 1], [BN, D])
    values = tl.make_tensor_descriptor(v_ptr + head, [N, D], [D, 1], [BN, D])
    out = tl.make_tensor_descriptor(o_ptr + head, [N, D], [D, 1], [BM, D])
    first = tl.program_id(0) * BM
    q = queries.load([first, 0])
    m = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for start in range(0, N, BN):
        s = tl.dot(q, keys.load([start, 0]).T) * scale
        s = tl.where((start + tl.arange(0, BN))[None, :] < N, s, -float("inf"))
        larger = tl.maximum(m, tl.max(s, 1))
        p = tl.exp(s - larger[:, None])
        alpha = tl.exp(m - larger)
        total = total * alpha + tl.sum(p, 1)
        acc = tl.dot(p, values.load([start, 0]), acc * alpha[:, None])
        m = larger
    out.store([first, 0], acc / total[:, None])


@attention.spelling("descriptors")
def _(p: Problem) -> Array:
    return _launch(described, p)


@bl.jit
def powers_of_two(
    q_ptr, k_ptr, v_ptr, o_ptr, scale, N, sh, sn, sd, D: bl.constexpr, BM: bl.constexpr, BN: bl.constexpr
):
    head = tl.program_id(1) * sh
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    ds = tl.arange(0, D)
    q = tl.load(q_ptr + head + rows[:, None] * sn + ds[None, :] * sd, mask=rows[:, None] < N, other=0.0)
    q *= scale * 1.4426950408889634
    m = tl.full((BM,), -1.0e30, tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    start = 0
    while start < N:
        cols = start + tl.arange(0, BN)
        inside = cols < N
        k = tl.load(k_ptr + head + cols[None, :] * sn + ds[:, None] * sd, mask=inside[None, :], other=0.0)
        s = tl.dot(q, k) + tl.where(inside, 0.0, -1.0e6)[None, :]
        larger = tl.maximum(m, tl.max(s, 1))
        p = tl.exp2(s - larger[:, None])
        alpha = tl.exp2(m - larger)
        total = tl.fma(total, alpha, tl.sum(p, 1))
        v = tl.load(v_ptr + head + cols[:, None] * sn + ds[None, :] * sd, mask=inside[:, None], other=0.0)
        acc = tl.dot(p, v, acc * alpha[:, None])
        m = larger
        start += BN
    out = o_ptr + head + rows[:, None] * sn + ds[None, :] * sd
    tl.store(out, acc / total[:, None], mask=rows[:, None] < N)


@attention.spelling("while, powers of two, mask added")
def _(p: Problem) -> Array:
    return _launch(powers_of_two, p)


@attention.spelling("result over the queries")
def _(p: Problem) -> Array:
    heads, n, d = p.out.shape
    small = n < 100
    q = p.inputs["q"]
    blocks = {"BM": 16, "BN": 16} if small else {"BM": 64, "BN": 64}
    grid = (bl.cdiv(n, blocks["BM"]), heads)
    carried[grid](q, p.inputs["k"], p.inputs["v"], q, d**-0.5, n, n * d, d, 1, D=d, **blocks)
    return q
