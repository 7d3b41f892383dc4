"""Kernels over many arrays at once: tuples of pointers, named tuples of parameters, tables of addresses."""

# mypy: ignore-errors
from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

import blocklang.triton as triton
import blocklang.triton.language as tl
from tests.programs.running import close, in_both_modes, normal


@triton.jit
def copy_all_kernel(sources, targets, sizes, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    for t in tl.static_range(len(sources)):
        tl.store(targets[t] + i, tl.load(sources[t] + i, mask=i < sizes[t]), mask=i < sizes[t])


@triton.jit
def adam_kernel(params, grads, states, hyper, sizes, step, BLOCK: tl.constexpr):
    """Each tensor of a list, each with its two moments; `hyper` is a named tuple of numbers."""
    pid = tl.program_id(0)
    i = pid * BLOCK + tl.arange(0, BLOCK)
    for t in tl.static_range(len(params)):
        mask = i < sizes[t]
        m_ptr, v_ptr = states[t]
        p = tl.load(params[t] + i, mask=mask).to(tl.float32)
        g = tl.load(grads[t] + i, mask=mask).to(tl.float32)
        m = tl.load(m_ptr + i, mask=mask)
        v = tl.load(v_ptr + i, mask=mask)
        m = hyper.beta1 * m + (1 - hyper.beta1) * g
        v = hyper.beta2 * v + (1 - hyper.beta2) * g * g
        p = p * (1 - hyper.lr * hyper.decay)
        p -= hyper.lr * m / (tl.sqrt(v) + hyper.eps) / step
        tl.store(m_ptr + i, m, mask=mask)
        tl.store(v_ptr + i, v, mask=mask)
        tl.store(params[t] + i, p, mask=mask)


@triton.jit
def grouped_gemm_kernel(
    a_addresses, b_addresses, c_addresses, sizes, lds, group_size,
    NUM_SM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    tile = tl.program_id(0)
    last_problem_end = 0
    for g in range(group_size):
        gm = tl.load(sizes + g * 3)
        gn = tl.load(sizes + g * 3 + 1)
        gk = tl.load(sizes + g * 3 + 2)
        num_m = tl.cdiv(gm, BLOCK_M)
        num_n = tl.cdiv(gn, BLOCK_N)
        num_tiles = num_m * num_n
        while tile >= last_problem_end and tile < last_problem_end + num_tiles:
            lda = tl.load(lds + g * 3)
            ldb = tl.load(lds + g * 3 + 1)
            ldc = tl.load(lds + g * 3 + 2)
            a_ptr = tl.load(a_addresses + g).to(tl.pointer_type(tl.float32))
            b_ptr = tl.load(b_addresses + g).to(tl.pointer_type(tl.float32))
            c_ptr = tl.load(c_addresses + g).to(tl.pointer_type(tl.float32))
            tile_in_gemm = tile - last_problem_end
            m = tile_in_gemm // num_n * BLOCK_M + tl.arange(0, BLOCK_M)
            n = tile_in_gemm % num_n * BLOCK_N + tl.arange(0, BLOCK_N)
            k = tl.arange(0, BLOCK_K)
            a_ptrs = a_ptr + m[:, None] * lda + k[None, :]
            b_ptrs = b_ptr + k[:, None] * ldb + n[None, :]
            acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
            for kk in range(tl.cdiv(gk, BLOCK_K)):
                tl.multiple_of(a_ptrs, [1, 1])
                inside = kk * BLOCK_K + k < gk
                a = tl.load(a_ptrs, mask=(m < gm)[:, None] & inside[None, :], other=0.0)
                b = tl.load(b_ptrs, mask=inside[:, None] & (n < gn)[None, :], other=0.0)
                acc += tl.dot(a, b)
                a_ptrs += BLOCK_K
                b_ptrs += BLOCK_K * ldb
            tl.store(c_ptr + m[:, None] * ldc + n[None, :], acc, mask=(m < gm)[:, None] & (n < gn)[None, :])
            tile += NUM_SM
        last_problem_end = last_problem_end + num_tiles


def test_arrays_of_several_types_and_sizes():
    sizes = (1, 100, 0, 257)
    types = (np.float32, np.int8, np.float64, np.uint16)
    sources = tuple(np.arange(n).astype(t) for n, t in zip(sizes, types, strict=True))

    def launch(mode):
        targets = tuple(np.zeros_like(s) for s in sources)
        mode(copy_all_kernel)[(triton.cdiv(max(sizes), 64),)](sources, targets, sizes, BLOCK=64)
        return targets

    for found, expected in zip(in_both_modes(launch), sources, strict=True):
        np.testing.assert_array_equal(found, expected)


class Hyper(NamedTuple):
    lr: float
    beta1: float
    beta2: float
    eps: float
    decay: float


@pytest.mark.parametrize("sizes", [(1,), (5, 130, 64)])
def test_adam_over_a_list(sizes):
    hyper = Hyper(0.01, 0.9, 0.999, 1e-8, 0.1)
    kinds = ["fp32", "bf16", "fp32"][: len(sizes)]
    params = [normal(n, n, dtype=d) for n, d in zip(sizes, kinds, strict=True)]
    grads = tuple(normal(n + 1, n, dtype=d) for n, d in zip(sizes, kinds, strict=True))

    def launch(mode):
        now = tuple(p.copy() for p in params)
        states = tuple((normal(n + 2, n), np.abs(normal(n + 3, n))) for n in sizes)
        grid = (triton.cdiv(max(sizes), 32),)
        mode(adam_kernel)[grid](now, grads, states, hyper, sizes, 3.0, BLOCK=32)
        return (*now, *(x for pair in states for x in pair))

    found = in_both_modes(launch)
    for t, n in enumerate(sizes):
        p, g = params[t].astype(np.float64), grads[t].astype(np.float64)
        m = hyper.beta1 * normal(n + 2, n).astype(np.float64) + (1 - hyper.beta1) * g
        v = hyper.beta2 * np.abs(normal(n + 3, n)).astype(np.float64) + (1 - hyper.beta2) * g * g
        p = p * (1 - hyper.lr * hyper.decay) - hyper.lr * m / (np.sqrt(v) + hyper.eps) / 3
        close(found[t], p, kinds[t])
        close(found[len(sizes) + 2 * t], m)
        close(found[len(sizes) + 2 * t + 1], v)


@pytest.mark.parametrize("programs", [1, 3])
def test_grouped_products_by_addresses(programs):
    shapes = [(5, 7, 9), (32, 16, 40), (1, 33, 1), (17, 17, 64)]
    a = [normal(i, m, k) for i, (m, n, k) in enumerate(shapes)]
    b = [normal(i + 9, k, n) for i, (m, n, k) in enumerate(shapes)]

    def addresses(arrays):
        return np.array([x.ctypes.data for x in arrays], np.int64)

    def launch(mode):
        c = [np.full((m, n), np.nan, np.float32) for m, n, k in shapes]
        sizes = np.array(shapes, np.int32)
        lds = np.array([(k, n, n) for m, n, k in shapes], np.int32)
        mode(grouped_gemm_kernel)[(programs,)](
            addresses(a), addresses(b), addresses(c), sizes, lds, len(shapes),
            NUM_SM=programs, BLOCK_M=16, BLOCK_N=16, BLOCK_K=16,
        )  # fmt: skip
        return c

    for found, left, right in zip(in_both_modes(launch), a, b, strict=True):
        close(found, left.astype(np.float64) @ right.astype(np.float64))
