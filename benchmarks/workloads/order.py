"""Order: the largest 16 of each row, a sort, a histogram of bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

import blocklang as bl
import blocklang.language as tl
from benchmarks.native import bind
from benchmarks.workload import Array, Call, Entry, Work, Workload, into, random_floats


@bl.jit
def topk_kernel(out, x_ptr, n_cols, K: bl.constexpr, BLOCK: bl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, cols < n_cols, other=-float("inf"))
    tl.store(out + row * K + tl.arange(0, K), tl.topk(x, K))


class TopK(Workload):
    """The k largest of every row, descending."""

    tolerance = 0.0

    def __init__(self, rows: int, cols: int, k: int) -> None:
        self.rows, self.cols, self.k = rows, cols, k
        self.x = random_floats(rows, cols)
        self.out = np.empty((rows, k), np.float32)
        self.work = Work(read=self.x.nbytes, written=self.out.nbytes)

    def exact(self) -> Array:
        return np.sort(self.x, axis=1)[:, ::-1][:, : self.k].astype(np.float64)

    def blocklang(self) -> Call:
        block = bl.next_power_of_2(self.cols)

        def launch() -> None:
            topk_kernel[(self.rows,)](self.out, self.x, self.cols, K=self.k, BLOCK=block)

        return into(self.out, launch)

    def numpy(self) -> Call:
        def topk() -> Array:
            largest = np.partition(self.x, self.cols - self.k, axis=1)[:, self.cols - self.k :]
            largest.sort(axis=1)
            return largest[:, ::-1]

        return topk

    def torch(self) -> Call:
        import torch

        x = torch.from_numpy(self.x)
        return lambda: torch.topk(x, self.k, 1).values

    def jax(self) -> Call:
        import jax

        x = jax.numpy.asarray(self.x)
        topk = jax.jit(lambda x: jax.lax.top_k(x, self.k)[0])
        return lambda: topk(x).block_until_ready()

    def c(self) -> Call:
        return into(self.out, bind("order", "topk", self.out, self.x, self.rows, self.cols, self.k))


@bl.jit
def sort_kernel(out, x_ptr, n, BLOCK: bl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out + offsets, tl.sort(tl.load(x_ptr + offsets, mask, other=float("inf"))), mask)


class Sort(Workload):
    """All numbers, ascending."""

    tolerance = 0.0

    def __init__(self, n: int) -> None:
        self.n = n
        self.x = random_floats(n)
        self.out = np.empty_like(self.x)
        self.work = Work(read=4 * n, written=4 * n)

    def exact(self) -> Array:
        return np.sort(self.x).astype(np.float64)

    def blocklang(self) -> Call:
        block = bl.next_power_of_2(self.n)
        return into(self.out, lambda: sort_kernel[(1,)](self.out, self.x, self.n, BLOCK=block))

    def numpy(self) -> Call:
        return lambda: np.sort(self.x)

    def torch(self) -> Call:
        import torch

        x = torch.from_numpy(self.x)
        return lambda: torch.sort(x).values

    def numba(self) -> Call:
        from benchmarks.numba_jit import njit

        sort = njit(lambda x: np.sort(x))
        return lambda: sort(self.x)

    def jax(self) -> Call:
        import jax

        x = jax.numpy.asarray(self.x)
        sort = jax.jit(jax.numpy.sort)
        return lambda: sort(x).block_until_ready()

    def c(self) -> Call:
        room = np.empty(2 * self.n, np.uint32)
        return into(self.out, bind("order", "sort", self.out, self.x, room, self.n))


@bl.jit
def histogram_kernel(out, x_ptr, n, BLOCK: bl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    counts = tl.histogram(tl.load(x_ptr + offsets, mask, other=0).to(tl.int32), 256, mask)
    tl.atomic_add(out + tl.arange(0, 256), counts, sem="relaxed")


class Histogram(Workload):
    """How often each byte occurs."""

    BLOCK = 1 << 16

    def __init__(self, n: int) -> None:
        self.n = n
        values = np.random.default_rng(0).normal(128, 40, n)
        self.x = np.clip(values, 0, 255).astype(np.uint8)
        self.out = np.empty(256, np.int32)
        self.work = Work(read=n, written=1024)

    def exact(self) -> Array:
        return np.bincount(self.x, minlength=256)

    def blocklang(self) -> Call:
        def launch() -> None:
            self.out.fill(0)
            histogram_kernel[(bl.cdiv(self.n, self.BLOCK),)](self.out, self.x, self.n, BLOCK=self.BLOCK)

        return into(self.out, launch)

    def numpy(self) -> Call:
        return lambda: np.bincount(self.x, minlength=256)

    def torch(self) -> Call:
        import torch

        x = torch.from_numpy(self.x)
        return lambda: torch.bincount(x, minlength=256)

    def numba(self) -> Call:
        from numba import get_num_threads

        from benchmarks.numba_jit import njit, prange

        parts = get_num_threads()

        @njit
        def histogram(x: Any) -> Any:
            counts = np.zeros((parts, 256), np.int32)
            for p in prange(parts):
                for i in range(x.size * p // parts, x.size * (p + 1) // parts):
                    counts[p, x[i]] += 1
            return counts.sum(axis=0)

        return lambda: histogram(self.x)

    def jax(self) -> Call:
        import jax

        x = jax.numpy.asarray(self.x)
        histogram = jax.jit(lambda x: jax.numpy.bincount(x, length=256))
        return lambda: histogram(x).block_until_ready()

    def c(self) -> Call:
        return into(self.out, bind("order", "histogram", self.out, self.x, self.n))


ENTRIES = (
    Entry(
        *("topk", "largest 16 of rows 4096x1024", TopK),
        *({"rows": 4096, "cols": 1024, "k": 16}, {"rows": 5, "cols": 100, "k": 16}),
    ),
    Entry("sort", "sort, 2^20", Sort, {"n": 1 << 20}, {"n": 1000}),
    Entry("histogram", "histogram of 2^24 bytes", Histogram, {"n": 1 << 24}, {"n": 100_001}),
)
