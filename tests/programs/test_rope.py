"""Rotary embedding of queries and keys in place, forward and backward: the halves of each head are rotated.

One program per token; heads and half of the head's dimension are padded to powers of two. The backward pass
is the same rotation the other way.
"""

# mypy: ignore-errors
from __future__ import annotations

import numpy as np
import pytest

import blocklang.triton as triton
import blocklang.triton.language as tl
from tests.programs.running import DTYPES, close, compiled, in_both_modes, normal


@triton.jit
def rotate(ptr, offsets, first_mask, second_offsets, second_mask, cos_row, sin_row, BACKWARD: tl.constexpr):
    x1 = tl.load(ptr + offsets, mask=first_mask, other=0).to(sin_row.dtype)
    x2 = tl.load(ptr + second_offsets, mask=second_mask, other=0).to(sin_row.dtype)
    if not BACKWARD:
        y1 = x1 * cos_row - x2 * sin_row
        y2 = x2 * cos_row + x1 * sin_row
    else:
        y1 = x1 * cos_row + x2 * sin_row
        y2 = x2 * cos_row - x1 * sin_row
    tl.store(ptr + offsets, y1, mask=first_mask)
    tl.store(ptr + second_offsets, y2, mask=second_mask)


@triton.jit
def rope_kernel(
    q_ptr, q_row_stride, k_ptr, k_row_stride, cos, cos_row_stride, sin, sin_row_stride, sl,
    bs: tl.constexpr, cos_bs: tl.constexpr,
    n_qh: tl.constexpr, n_kh: tl.constexpr, hd: tl.constexpr,
    pad_n_qh: tl.constexpr, pad_n_kh: tl.constexpr, pad_hd: tl.constexpr,
    BACKWARD_PASS: tl.constexpr = False,
):  # fmt: skip
    pid = tl.program_id(0).to(tl.int64)
    q_ptr = q_ptr + pid * q_row_stride
    k_ptr = k_ptr + pid * k_row_stride

    batch = pid // sl
    row = pid % sl
    if cos_bs == 1:
        cos = cos + row * cos_row_stride
        sin = sin + row * sin_row_stride
    else:
        cos = cos + (batch * sl + row) * cos_row_stride
        sin = sin + (batch * sl + row) * sin_row_stride

    half = tl.arange(0, pad_hd // 2)
    half_mask = half < hd // 2
    cos_row = tl.load(cos + half, mask=half_mask, other=0)
    sin_row = tl.load(sin + half, mask=half_mask, other=0)

    q_heads = tl.arange(0, pad_n_qh)[:, None]
    k_heads = tl.arange(0, pad_n_kh)[:, None]
    q_first = q_heads * hd + half[None, :]
    k_first = k_heads * hd + half[None, :]
    q_mask = (q_heads < n_qh) & (half[None, :] < hd // 2)
    k_mask = (k_heads < n_kh) & (half[None, :] < hd // 2)
    rotate(q_ptr, q_first, q_mask, q_first + (hd // 2), q_mask, cos_row, sin_row, BACKWARD_PASS)
    rotate(k_ptr, k_first, k_mask, k_first + (hd // 2), k_mask, cos_row, sin_row, BACKWARD=BACKWARD_PASS)


def tables(batches, length, head, dtype):
    frequencies = 10000.0 ** (-np.arange(0, head, 2) / head)
    positions = np.arange(length)[None, :] + 3 * np.arange(batches)[:, None]
    angles = positions[:, :, None] * frequencies
    angles = np.concatenate([angles, angles], axis=-1)
    return np.cos(angles).astype(dtype), np.sin(angles).astype(dtype)


def launch(mode, q, k, cos, sin, backward):
    q, k = q.copy(), k.copy()
    batches, length, q_heads, head = q.shape
    k_heads = k.shape[2]
    mode(rope_kernel)[(batches * length,)](
        q, q_heads * head, k, k_heads * head, cos, cos.shape[-1], sin, sin.shape[-1], length,
        batches, cos.shape[0], q_heads, k_heads, head,
        triton.next_power_of_2(q_heads), triton.next_power_of_2(k_heads), triton.next_power_of_2(head),
        BACKWARD_PASS=backward,
    )  # fmt: skip
    return q, k


def reference(x, cos, sin, backward):
    x, cos, sin = (value.astype(np.float64) for value in (x, cos, sin))
    half = x.shape[-1] // 2
    turned = np.concatenate([-x[..., half:], x[..., :half]], axis=-1)
    return x * cos[:, :, None, :] + (-1 if backward else 1) * turned * sin[:, :, None, :]


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize(
    ("batches", "length", "q_heads", "k_heads", "head", "cos_batches"),
    [(2, 5, 4, 2, 64, 1), (3, 7, 6, 3, 20, 3), (1, 1, 1, 1, 2, 1)],
)
def test_rotation(dtype, backward, batches, length, q_heads, k_heads, head, cos_batches):
    q = normal(1, batches, length, q_heads, head, dtype=dtype)
    k = normal(2, batches, length, k_heads, head, dtype=dtype)
    cos, sin = tables(cos_batches, length, head, DTYPES[dtype])
    found = launch(compiled, q, k, cos, sin, backward)
    close(found[0], reference(q, cos, sin, backward), dtype)
    close(found[1], reference(k, cos, sin, backward), dtype)


@pytest.mark.parametrize("backward", [False, True])
def test_both_modes(backward):
    q, k = normal(3, 2, 3, 3, 12, dtype="bf16"), normal(4, 2, 3, 1, 12, dtype="bf16")
    cos, sin = tables(1, 3, 12, np.float32)
    in_both_modes(lambda mode: launch(mode, q, k, cos, sin, backward))


def test_backward_undoes_forward():
    q, k = normal(3, 2, 9, 3, 12), normal(4, 2, 9, 1, 12)
    cos, sin = tables(1, 9, 12, np.float32)
    back = launch(compiled, *launch(compiled, q, k, cos, sin, False), cos, sin, True)
    close(back[0], q)
    close(back[1], k)
