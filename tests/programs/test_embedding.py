"""Embedding: rows gathered by token, and the gradient scattered back with atomic additions."""

# mypy: ignore-errors
from __future__ import annotations

import numpy as np
import pytest

import blocklang.triton as triton
import blocklang.triton.language as tl
from tests.programs.running import close, compiled, in_both_modes, normal


@triton.jit
def embedding_forward_kernel(
    embeddings_ptr, indices_ptr, output_ptr, n_elements, embedding_dim: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask_m = offs_m < n_elements
    mask_n = offs_n < embedding_dim
    indices = tl.load(indices_ptr + offs_m, mask=mask_m, other=0)
    rows = tl.load(
        embeddings_ptr + indices[:, None] * embedding_dim + offs_n[None, :],
        mask=mask_m[:, None] & mask_n[None, :], other=0.0,
    )  # fmt: skip
    tl.store(
        output_ptr + offs_m[:, None] * embedding_dim + offs_n[None, :], rows,
        mask=mask_m[:, None] & mask_n[None, :],
    )  # fmt: skip


@triton.jit
def embedding_backward_kernel(
    grad_output_ptr, grad_weight_ptr, indices_ptr, n_elements, padding_idx, embedding_dim: tl.constexpr,
    HAS_PADDING_IDX: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask_m = offs_m < n_elements
    mask_n = offs_n < embedding_dim
    indices = tl.load(indices_ptr + offs_m, mask=mask_m, other=0)
    if HAS_PADDING_IDX:
        mask_m = mask_m & (indices != padding_idx)
    grad = tl.load(
        grad_output_ptr + offs_m[:, None] * embedding_dim + offs_n[None, :],
        mask=mask_m[:, None] & mask_n[None, :], other=0.0,
    ).to(grad_weight_ptr.dtype.element_ty)  # fmt: skip
    tl.atomic_add(
        grad_weight_ptr + indices[:, None] * embedding_dim + offs_n[None, :], grad,
        mask=mask_m[:, None] & mask_n[None, :],
    )  # fmt: skip


@triton.jit
def scale_by_frequency_kernel(grad_ptr, counts_ptr, embedding_dim, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < embedding_dim
    count = tl.load(counts_ptr + row)
    scale = 1.0 / tl.maximum(count, 1)
    grad = tl.load(grad_ptr + row * embedding_dim + cols, mask=mask)
    tl.store(grad_ptr + row * embedding_dim + cols, grad * scale, mask=mask)


@triton.jit
def count_indices_kernel(indices_ptr, counts_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    index = tl.load(indices_ptr + i, mask=i < n, other=0)
    tl.atomic_add(counts_ptr + index, 1, mask=i < n)


def launch(mode, table, indices, grad, grad_dtype, padding, block_m, block_n):
    n, dim = indices.size, table.shape[1]
    grid = (triton.cdiv(n, block_m), triton.cdiv(dim, block_n))
    out = np.full((n, dim), 77, table.dtype)
    mode(embedding_forward_kernel)[grid](
        table, indices, out, n, embedding_dim=dim, BLOCK_M=block_m, BLOCK_N=block_n
    )
    weight = np.zeros(table.shape, grad_dtype)
    mode(embedding_backward_kernel)[grid](
        grad, weight, indices, n, padding, embedding_dim=dim, HAS_PADDING_IDX=padding is not None,
        BLOCK_M=block_m, BLOCK_N=block_n,
    )  # fmt: skip
    counts = np.zeros(table.shape[0], np.int32)
    mode(count_indices_kernel)[(triton.cdiv(n, block_m),)](indices, counts, n, BLOCK=block_m)
    scaled = weight.copy()
    mode(scale_by_frequency_kernel)[(table.shape[0],)](scaled, counts, dim, BLOCK=triton.next_power_of_2(dim))
    return out, weight, counts, scaled


def check(table, indices, grad, padding, dtype, found):
    out, weight, counts, scaled = found
    np.testing.assert_array_equal(out, table[indices])
    expected = np.zeros(table.shape)
    kept = np.ones(indices.size, bool) if padding is None else indices != padding
    np.add.at(expected, indices[kept], grad.astype(np.float64)[kept])
    np.testing.assert_array_equal(counts, np.bincount(indices, minlength=len(table)))
    close(weight, expected, dtype)
    close(scaled, expected / np.maximum(counts, 1)[:, None], dtype)


@pytest.mark.parametrize("padding", [None, 3])
@pytest.mark.parametrize("dtype", ["fp32", "fp16", "bf16"])
@pytest.mark.parametrize(("tokens", "rows", "dim"), [(300, 17, 40), (1, 4, 1), (65, 1000, 130)])
def test_gather_and_its_gradient(tokens, rows, dim, dtype, padding):
    table = normal(1, rows, dim, dtype=dtype)
    indices = np.random.default_rng(2).integers(0, rows, tokens)
    # Eighths add up without rounding: no order of the additions may be seen.
    grad = np.random.default_rng(3).integers(-8, 8, (tokens, dim)).astype(table.dtype) / table.dtype.type(8)
    grad = grad.astype(table.dtype)
    found = launch(compiled, table, indices, grad, table.dtype, padding, 16, 32)
    check(table, indices, grad, padding, dtype, found)


@pytest.mark.parametrize("dtype", ["fp32", "fp16", "bf16"])
@pytest.mark.parametrize("padding", [None, 0])
def test_both_modes(dtype, padding):
    table = normal(1, 5, 9, dtype=dtype)
    indices = np.random.default_rng(2).integers(0, 5, 21).astype(np.int32)
    grad = np.random.default_rng(3).integers(-3, 3, (21, 9)).astype(table.dtype)
    check(
        table, indices, grad, padding, dtype,
        in_both_modes(lambda mode: launch(mode, table, indices, grad, table.dtype, padding, 4, 8)),
    )  # fmt: skip
