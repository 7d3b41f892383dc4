"""Attention of several heads: softmax(q k^T / sqrt(d)) v, full and causal."""

from __future__ import annotations

from typing import Any

import numpy as np

import blocklang as bl
import blocklang.language as tl
from benchmarks.workload import Array, Call, Entry, Work, Workload, into, random_floats

_TILES = [
    bl.Config({"BLOCK_M": m, "BLOCK_N": n})
    for m, n in ((64, 64), (64, 128), (128, 64), (128, 128), (64, 256))
]


@bl.autotune(configs=_TILES, key=["length", "CAUSAL"])
@bl.jit
def attention_kernel(
    out, q_ptr, k_ptr, v_ptr, scale, length,
    D: bl.constexpr, CAUSAL: bl.constexpr, BLOCK_M: bl.constexpr, BLOCK_N: bl.constexpr,
):  # fmt: skip
    # One program: BLOCK_M queries of one head, against all keys that they may see, BLOCK_N at a time.
    first = tl.program_id(0) * BLOCK_M
    head = tl.program_id(1) * length * D
    rows = first + tl.arange(0, BLOCK_M)
    cols = tl.arange(0, BLOCK_N)
    ds = tl.arange(0, D)
    in_rows = (rows < length)[:, None]
    q = tl.load(q_ptr + head + rows[:, None] * D + ds[None, :], in_rows, other=0.0)
    q *= scale * 1.4426950408889634  # exponentials to base 2
    largest = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    if CAUSAL:
        # Tiles to the left of the diagonal need no mask; those to the right of it are left out.
        unmasked = first // BLOCK_N * BLOCK_N
        end = min(first + BLOCK_M, length)
    else:
        unmasked = length // BLOCK_N * BLOCK_N
        end = length
    for start in range(0, unmasked, BLOCK_N):
        offsets = head + (start + cols)[:, None] * D + ds[None, :]
        scores = tl.dot(q, tl.trans(tl.load(k_ptr + offsets)))
        here = tl.maximum(largest, tl.max(scores, axis=1))
        weights = tl.exp2(scores - here[:, None])
        rescale = tl.exp2(largest - here)
        total = total * rescale + tl.sum(weights, axis=1)
        acc = tl.dot(weights, tl.load(v_ptr + offsets), acc * rescale[:, None])
        largest = here
    for start in range(unmasked, end, BLOCK_N):
        keys = start + cols
        in_keys = (keys < length)[:, None]
        offsets = head + keys[:, None] * D + ds[None, :]
        scores = tl.dot(q, tl.trans(tl.load(k_ptr + offsets, in_keys, other=0.0)))
        seen = (keys < length)[None, :]
        if CAUSAL:
            seen = seen & (keys[None, :] <= rows[:, None])
        scores = tl.where(seen, scores, -float("inf"))
        here = tl.maximum(largest, tl.max(scores, axis=1))
        weights = tl.exp2(scores - here[:, None])
        rescale = tl.exp2(largest - here)
        total = total * rescale + tl.sum(weights, axis=1)
        acc = tl.dot(weights, tl.load(v_ptr + offsets, in_keys, other=0.0), acc * rescale[:, None])
        largest = here
    tl.store(out + head + rows[:, None] * D + ds[None, :], acc / total[:, None], in_rows)


class Attention(Workload):
    """Attention in float32, [heads, length, d]."""

    tolerance = 1e-5

    def __init__(self, heads: int, length: int, d: int, causal: bool) -> None:
        self.heads, self.length, self.d, self.causal = heads, length, d, causal
        self.q, self.k, self.v = (random_floats(heads, length, d, seed=seed) for seed in range(3))
        self.scale = d**-0.5
        self.out = np.empty_like(self.q)
        seen = length * (length + 1) // 2 if causal else length * length
        self.work = Work(3 * self.q.nbytes, self.q.nbytes, 4 * heads * seen * d)

    def exact(self) -> Array:
        q, k, v = (array.astype(np.float64) for array in (self.q, self.k, self.v))
        return self._in_numpy(q, k, v)

    def _in_numpy(self, q: Array, k: Array, v: Array) -> Array:
        out = np.empty_like(q)
        hidden = np.triu(np.ones((self.length, self.length), bool), 1) if self.causal else None
        for head in range(self.heads):
            scores = q[head] @ k[head].T
            scores *= q.dtype.type(self.scale)
            if hidden is not None:
                scores[hidden] = -np.inf
            scores -= scores.max(axis=1, keepdims=True)
            np.exp(scores, out=scores)
            np.matmul(scores, v[head], out=out[head])
            out[head] /= scores.sum(axis=1, keepdims=True)
        return out

    def blocklang(self) -> Call:
        def grid(meta: dict[str, int]) -> tuple[int, int]:
            return bl.cdiv(self.length, meta["BLOCK_M"]), self.heads

        def launch() -> None:
            attention_kernel[grid](
                self.out, self.q, self.k, self.v, self.scale, self.length, D=self.d, CAUSAL=self.causal
            )

        return into(self.out, launch)

    def numpy(self) -> Call:
        return lambda: self._in_numpy(self.q, self.k, self.v)

    def torch(self) -> Call:
        import torch

        q, k, v = (torch.from_numpy(array)[None] for array in (self.q, self.k, self.v))
        attend = torch.nn.functional.scaled_dot_product_attention
        return lambda: attend(q, k, v, is_causal=self.causal)[0]

    def jax(self) -> Call:
        import jax

        @jax.jit
        def attend(q: Any, k: Any, v: Any) -> Any:
            heads_last = (array.transpose(1, 0, 2)[None] for array in (q, k, v))
            out = jax.nn.dot_product_attention(*heads_last, is_causal=self.causal)
            return out[0].transpose(1, 0, 2)

        arrays = [jax.numpy.asarray(array) for array in (self.q, self.k, self.v)]
        return lambda: attend(*arrays).block_until_ready()


def _entry(length: int, causal: bool, small: int) -> Entry:
    kind = "causal" if causal else "full"
    sizes = {"heads": 8, "d": 64, "causal": causal}
    title = f"attention {length} {kind}, 8 heads of 64"
    return Entry(
        *(f"attention-{length}-{kind}", title, Attention),
        *({**sizes, "length": length}, {**sizes, "heads": 2, "length": small}),
    )


ENTRIES = (
    _entry(1024, False, 70),
    _entry(1024, True, 70),
    _entry(4096, False, 128),
    _entry(4096, True, 200),
)
