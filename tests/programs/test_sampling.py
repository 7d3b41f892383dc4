"""Sampling of the next token: softmax with temperature, the k largest, top-p, Gumbel noise from `tl.rand`.

The random numbers are Philox's, so that a test can say which token must be drawn.
"""

# mypy: ignore-errors
from __future__ import annotations

import numpy as np
import pytest

import blocklang.triton as triton
import blocklang.triton.language as tl
from tests.programs.running import close, compiled, in_both_modes, normal


@triton.jit
def softmax_kernel(logits_ptr, temperature_ptr, probs_ptr, V, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(logits_ptr + row * stride + cols, mask=cols < V, other=-float("inf")).to(tl.float32)
    x = x / tl.load(temperature_ptr + row)
    x = x - tl.max(x, axis=0)
    e = tl.exp(x)
    tl.store(probs_ptr + row * V + cols, e / tl.sum(e, axis=0), mask=cols < V)


@triton.jit
def topk_kernel(probs_ptr, values_ptr, indices_ptr, V, K: tl.constexpr, BLOCK: tl.constexpr):
    """The k largest of a row with where they stand: value's bits above the index, in one 64-bit key."""
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    p = tl.load(probs_ptr + row * V + cols, mask=cols < V, other=0.0)
    # The bits of numbers from 0 up are in order; of equals, the first index is the larger key.
    key = (p.to(tl.uint32, bitcast=True).to(tl.uint64) << 32) | (0xFFFFFFFF - cols.to(tl.uint64))
    key = tl.where(cols < V, key, 0)
    best = tl.topk(key, K)
    k = tl.arange(0, K)
    tl.store(values_ptr + row * K + k, (best >> 32).to(tl.uint32).to(tl.float32, bitcast=True))
    tl.store(indices_ptr + row * K + k, (0xFFFFFFFF - (best & 0xFFFFFFFF)).to(tl.int32))


@triton.jit
def top_p_sample_kernel(
    values_ptr, indices_ptr, tokens_ptr, kept_ptr, top_p_ptr, seed, K: tl.constexpr, GREEDY: tl.constexpr
):
    row = tl.program_id(0)
    k = tl.arange(0, K)
    p = tl.load(values_ptr + row * K + k)
    p = p / tl.sum(p, axis=0)
    before = tl.cumsum(p, axis=0) - p
    keep = before < tl.load(top_p_ptr + row)
    tl.store(kept_ptr + row, tl.sum(keep.to(tl.int32), axis=0))
    score = tl.where(keep, tl.log(p), -float("inf"))
    if not GREEDY:
        u = tl.rand(seed, row * K + k)
        u = tl.maximum(u, 1e-7)
        score += -tl.log(-tl.log(u))
    winner = tl.argmax(score, axis=0)
    tl.store(tokens_ptr + row, tl.load(indices_ptr + row * K + winner))


@triton.jit
def streaming_sample_kernel(probs_ptr, tokens_ptr, seed, V, BLOCK: tl.constexpr):
    """Draw from a whole row, chunk by chunk: the largest p / q with q exponential."""
    row = tl.program_id(0)
    best = -float("inf")
    best_index = 0
    for start in range(0, V, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        p = tl.load(probs_ptr + row * V + cols, mask=cols < V, other=0.0)
        q = -tl.log(tl.maximum(tl.rand(seed, row * V + cols), 1e-7))
        score = tl.where(cols < V, p / tl.maximum(q, 1e-10), -float("inf"))
        top, where = tl.max(score, axis=0, return_indices=True)
        if top > best:
            best = top
            best_index = start + where
    tl.store(tokens_ptr + row, best_index)


@triton.jit
def dropout_kernel(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    keep = tl.rand(seed, offsets) > p
    tl.store(out_ptr + offsets, tl.where(keep, x / (1 - p), 0.0), mask=mask)


def philox_uniform(seed, counters):
    """Triton's `tl.rand` in Python integers: Philox4x32-10, the counter in the first word."""
    result = []
    for counter in np.asarray(counters).reshape(-1):
        c = [int(counter) & 0xFFFFFFFF, 0, 0, 0]
        key = [seed & 0xFFFFFFFF, (seed >> 32) & 0xFFFFFFFF]
        for _ in range(10):
            one, other = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = [
                (other >> 32) ^ c[1] ^ key[0], other & 0xFFFFFFFF,
                (one >> 32) ^ c[3] ^ key[1], one & 0xFFFFFFFF,
            ]  # fmt: skip
            key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
        word = c[0] - (1 << 32) if c[0] >> 31 else c[0]
        word = -word - 1 if word < 0 else word
        result.append(np.float32(word) * np.float32(4.6566127342e-10))
    return np.array(result, np.float32).reshape(np.shape(counters))


def launch(mode, logits, temperature, top_p, k, seed, greedy):
    rows, vocabulary = logits.shape
    block = triton.next_power_of_2(vocabulary)
    probs = np.full(logits.shape, np.nan, np.float32)
    values, indices = np.zeros((rows, k), np.float32), np.full((rows, k), -1, np.int32)
    tokens, kept = np.full(rows, -1, np.int32), np.zeros(rows, np.int32)
    mode(softmax_kernel)[(rows,)](
        logits, temperature, probs, vocabulary, logits.strides[0] // logits.itemsize, BLOCK=block
    )
    mode(topk_kernel)[(rows,)](probs, values, indices, vocabulary, K=k, BLOCK=block)
    mode(top_p_sample_kernel)[(rows,)](values, indices, tokens, kept, top_p, seed, K=k, GREEDY=greedy)
    return probs, values, indices, tokens, kept


def case(rows, vocabulary, dtype):
    logits = normal(1, rows, vocabulary, dtype=dtype)
    temperature = np.linspace(0.5, 2, rows, dtype=np.float32)
    return logits, temperature, np.linspace(0.1, 1, rows, dtype=np.float32)


def check(arrays, k, seed, greedy, found):
    logits, temperature, top_p = arrays
    probs, values, indices, tokens, kept = found
    x = logits.astype(np.float64) / temperature[:, None]
    e = np.exp(x - x.max(axis=1, keepdims=True))
    close(probs, e / e.sum(axis=1, keepdims=True))
    order = np.argsort(-probs, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_array_equal(values, np.take_along_axis(probs, order, axis=1))
    p = values.astype(np.float64)
    p /= p.sum(axis=1, keepdims=True)
    before = p.cumsum(axis=1) - p
    # Where a threshold falls between two tokens by less than float32 can tell, either is right.
    near = np.abs(before - top_p[:, None]).min(axis=1) < 1e-5
    keep = before < top_p[:, None]
    np.testing.assert_array_equal(kept[~near], keep.sum(axis=1)[~near])
    score = np.where(keep, np.log(p), -np.inf)
    if not greedy:
        u = np.maximum(philox_uniform(seed, np.arange(p.size).reshape(p.shape)), 1e-7).astype(np.float64)
        score = score - np.log(-np.log(u))
    expected = order[np.arange(len(p)), score.argmax(axis=1)]
    np.testing.assert_array_equal(tokens[~near], expected[~near])


@pytest.mark.parametrize("greedy", [True, False])
@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
@pytest.mark.parametrize(("vocabulary", "k"), [(3001, 64), (33, 16), (1024, 8)])
def test_a_token_of_the_most_likely(vocabulary, k, dtype, greedy):
    arrays = case(9, vocabulary, dtype)
    check(arrays, k, 1234567, greedy, launch(compiled, *arrays, k, 1234567, greedy))


@pytest.mark.parametrize("greedy", [True, False])
def test_both_modes(greedy):
    arrays = case(4, 21, "bf16")
    found = in_both_modes(lambda mode: launch(mode, *arrays, 8, (7 << 40) + 5, greedy))
    check(arrays, 8, (7 << 40) + 5, greedy, found)


def test_draws_follow_the_probabilities():
    p = np.array([0.5, 0.25, 0.125, 0.0625, 0.0625, 0.0], np.float32)
    rows = np.broadcast_to(p, (2000, 6)).copy()
    tokens = np.full(2000, -1, np.int32)
    streaming_sample_kernel[(2000,)](rows, tokens, 99, 6, BLOCK=4)
    frequency = np.bincount(tokens, minlength=6) / 2000
    np.testing.assert_allclose(frequency, p, atol=0.04)
    assert frequency[5] == 0


def test_draws_by_chunks_in_both_modes():
    p = np.abs(normal(1, 3, 37))

    def draw(mode):
        tokens = np.full(3, -1, np.int32)
        mode(streaming_sample_kernel)[(3,)](p, tokens, 5, 37, BLOCK=16)
        return (tokens,)

    (tokens,) = in_both_modes(draw)
    u = np.maximum(philox_uniform(5, np.arange(111).reshape(3, 37)), 1e-7).astype(np.float64)
    np.testing.assert_array_equal(tokens, (p / -np.log(u)).argmax(axis=1))


def test_dropout():
    x = normal(1, 1000)

    def drop(mode):
        out = np.full_like(x, np.nan)
        mode(dropout_kernel)[(triton.cdiv(1000, 256),)](x, out, 1000, 0.25, 123, BLOCK=256)
        return (out,)

    (out,) = in_both_modes(drop)
    keep = philox_uniform(123, np.arange(1000)) > np.float32(0.25)
    np.testing.assert_allclose(out, np.where(keep, x / 0.75, 0), rtol=1e-6)
