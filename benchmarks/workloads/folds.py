"""Folds and scans: sum, maximum, argmax of rows, running sums."""

from __future__ import annotations

from typing import Any

import numpy as np

import blocklang as bl
import blocklang.language as tl
from benchmarks.native import bind
from benchmarks.workload import Array, Call, Entry, Work, Workload, into, random_floats

BLOCK = 1 << 16


@bl.jit
def sum_parts_kernel(out, x_ptr, n, BLOCK: bl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + tl.program_id(0), tl.sum(tl.load(x_ptr + offsets, offsets < n, other=0.0), axis=0))


@bl.jit
def max_parts_kernel(out, x_ptr, n, BLOCK: bl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, offsets < n, other=-float("inf"))
    tl.store(out + tl.program_id(0), tl.max(x, axis=0))


class Sum(Workload):
    """The sum of all numbers: parts first, then the sum of the parts."""

    tolerance = 1e-3

    def __init__(self, n: int) -> None:
        self.n = n
        self.x = np.abs(random_floats(n))
        self.out = np.empty((), np.float32)
        self.work = Work(read=4 * n, written=0)

    def exact(self) -> Array:
        return np.asarray(self.x.sum(dtype=np.float64))

    def blocklang(self) -> Call:
        count = bl.cdiv(self.n, BLOCK)
        parts, last = np.empty(count, np.float32), bl.next_power_of_2(count)

        def launch() -> None:
            sum_parts_kernel[(count,)](parts, self.x, self.n, BLOCK=BLOCK)
            sum_parts_kernel[(1,)](self.out, parts, count, BLOCK=last)

        return into(self.out, launch)

    def numpy(self) -> Call:
        return lambda: np.sum(self.x, out=self.out)

    def torch(self) -> Call:
        import torch

        x = torch.from_numpy(self.x)
        return lambda: x.sum()

    def numba(self) -> Call:
        from benchmarks.numba_jit import njit, prange

        @njit
        def add_up(x: Any) -> Any:
            total = np.float32(0)
            for i in prange(x.size):
                total += x[i]
            return total

        return lambda: add_up(self.x)

    def jax(self) -> Call:
        import jax

        x = jax.numpy.asarray(self.x)
        add_up = jax.jit(lambda x: x.sum())
        return lambda: add_up(x).block_until_ready()

    def c(self) -> Call:
        return into(self.out, bind("folds", "sum", self.out, self.x, self.n))


class Max(Workload):
    """The largest of all numbers."""

    tolerance = 0.0

    def __init__(self, n: int) -> None:
        self.n = n
        self.x = random_floats(n)
        self.out = np.empty((), np.float32)
        self.work = Work(read=4 * n, written=0)

    def exact(self) -> Array:
        return np.asarray(self.x.max().astype(np.float64))

    def blocklang(self) -> Call:
        count = bl.cdiv(self.n, BLOCK)
        parts, last = np.empty(count, np.float32), bl.next_power_of_2(count)

        def launch() -> None:
            max_parts_kernel[(count,)](parts, self.x, self.n, BLOCK=BLOCK)
            max_parts_kernel[(1,)](self.out, parts, count, BLOCK=last)

        return into(self.out, launch)

    def numpy(self) -> Call:
        return lambda: np.max(self.x, out=self.out)

    def torch(self) -> Call:
        import torch

        x = torch.from_numpy(self.x)
        return lambda: x.max()

    def numba(self) -> Call:
        from benchmarks.numba_jit import njit, prange

        @njit
        def largest_of(x: Any) -> Any:
            largest = x[0]
            for i in prange(x.size):
                largest = max(largest, x[i])
            return largest

        return lambda: largest_of(self.x)

    def jax(self) -> Call:
        import jax

        x = jax.numpy.asarray(self.x)
        largest_of = jax.jit(lambda x: x.max())
        return lambda: largest_of(x).block_until_ready()

    def c(self) -> Call:
        return into(self.out, bind("folds", "maximum", self.out, self.x, self.n))


@bl.jit
def argmax_kernel(out, x_ptr, n_cols, stride, BLOCK: bl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + cols, cols < n_cols, other=-float("inf"))
    tl.store(out + row, tl.argmax(x, axis=0))


class ArgmaxRows(Workload):
    """Where the largest number of every row stands."""

    def __init__(self, rows: int, cols: int) -> None:
        self.rows, self.cols = rows, cols
        self.x = random_floats(rows, cols)
        self.out = np.empty(rows, np.int32)
        self.work = Work(read=self.x.nbytes, written=4 * rows)

    def exact(self) -> Array:
        return self.x.argmax(axis=1)

    def blocklang(self) -> Call:
        block = bl.next_power_of_2(self.cols)

        def launch() -> None:
            argmax_kernel[(self.rows,)](self.out, self.x, self.cols, self.cols, BLOCK=block)

        return into(self.out, launch)

    def numpy(self) -> Call:
        return lambda: np.argmax(self.x, axis=1)

    def torch(self) -> Call:
        import torch

        x = torch.from_numpy(self.x)
        return lambda: torch.argmax(x, 1)

    def numba(self) -> Call:
        from benchmarks.numba_jit import njit, prange

        @njit
        def argmax(out: Any, x: Any) -> None:
            rows, cols = x.shape
            for r in prange(rows):
                largest = x[r, 0]
                for c in range(cols):
                    largest = max(largest, x[r, c])
                at = 0
                while x[r, at] != largest:
                    at += 1
                out[r] = at

        return into(self.out, argmax, self.out, self.x)

    def jax(self) -> Call:
        import jax

        x = jax.numpy.asarray(self.x)
        argmax = jax.jit(lambda x: x.argmax(axis=1))
        return lambda: argmax(x).block_until_ready()

    def c(self) -> Call:
        return into(self.out, bind("folds", "argmax", self.out, self.x, self.rows, self.cols))


@bl.jit
def cumsum_kernel(out, x_ptr, carries, ready, n, BLOCK: bl.constexpr):
    # One pass: a program waits for the carry of the one before it, which has started earlier.
    pid = tl.program_id(0)
    offsets = pid * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask, other=0.0)
    total = tl.sum(x, axis=0)
    carry = 0.0
    if pid > 0:
        while tl.atomic_add(ready + pid - 1, 0, sem="acquire") == 0:
            pass
        carry = tl.load(carries + pid - 1)
    tl.store(carries + pid, carry + total)
    tl.atomic_xchg(ready + pid, 1, sem="release")
    tl.store(out + offsets, tl.cumsum(x, axis=0) + carry, mask)


class Cumsum(Workload):
    """Running sums of all numbers."""

    tolerance = 1e-4
    is_relative_to_largest = True
    BLOCK = 4096

    def __init__(self, n: int) -> None:
        self.n = n
        self.x = random_floats(n)
        self.out = np.empty_like(self.x)
        self.work = Work(read=4 * n, written=4 * n)

    def exact(self) -> Array:
        return np.cumsum(self.x, dtype=np.float64)

    def blocklang(self) -> Call:
        count = bl.cdiv(self.n, self.BLOCK)
        carries, ready = np.empty(count, np.float32), np.empty(count, np.int32)

        def launch() -> None:
            ready.fill(0)
            cumsum_kernel[(count,)](self.out, self.x, carries, ready, self.n, BLOCK=self.BLOCK)

        return into(self.out, launch)

    def numpy(self) -> Call:
        return lambda: np.cumsum(self.x, out=self.out)

    def torch(self) -> Call:
        import torch

        x, out = map(torch.from_numpy, (self.x, self.out))
        return lambda: torch.cumsum(x, 0, out=out)

    def numba(self) -> Call:
        from numba import get_num_threads

        from benchmarks.numba_jit import njit, prange

        parts = get_num_threads()

        @njit
        def cumsum(out: Any, x: Any) -> None:
            n = x.size
            sums = np.zeros(parts, np.float32)
            for p in prange(parts - 1):
                total = np.float32(0)
                for i in range(n * p // parts, n * (p + 1) // parts):
                    total += x[i]
                sums[p] = total
            for p in prange(parts):
                carry = np.float32(0)
                for q in range(p):
                    carry += sums[q]
                for i in range(n * p // parts, n * (p + 1) // parts):
                    carry += x[i]
                    out[i] = carry

        return into(self.out, cumsum, self.out, self.x)

    def jax(self) -> Call:
        import jax

        x = jax.numpy.asarray(self.x)
        cumsum = jax.jit(jax.numpy.cumsum)
        return lambda: cumsum(x).block_until_ready()

    def c(self) -> Call:
        return into(self.out, bind("folds", "cumsum", self.out, self.x, self.n))


@bl.jit
def cumsum_rows_kernel(out, x_ptr, n_cols, stride, BLOCK: bl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride + cols, mask, other=0.0)
    tl.store(out + row * stride + cols, tl.cumsum(x, axis=0), mask)


class CumsumRows(Workload):
    """Running sums of every row."""

    tolerance = 1e-5
    is_relative_to_largest = True

    def __init__(self, rows: int, cols: int) -> None:
        self.rows, self.cols = rows, cols
        self.x = random_floats(rows, cols)
        self.out = np.empty_like(self.x)
        self.work = Work(read=self.x.nbytes, written=self.x.nbytes)

    def exact(self) -> Array:
        return np.cumsum(self.x, axis=1, dtype=np.float64)

    def blocklang(self) -> Call:
        block = bl.next_power_of_2(self.cols)

        def launch() -> None:
            cumsum_rows_kernel[(self.rows,)](self.out, self.x, self.cols, self.cols, BLOCK=block)

        return into(self.out, launch)

    def numpy(self) -> Call:
        return lambda: np.cumsum(self.x, axis=1, out=self.out)

    def torch(self) -> Call:
        import torch

        x, out = map(torch.from_numpy, (self.x, self.out))
        return lambda: torch.cumsum(x, 1, out=out)

    def numba(self) -> Call:
        from benchmarks.numba_jit import njit, prange

        @njit
        def cumsum(out: Any, x: Any) -> None:
            rows, cols = x.shape
            for r in prange(rows):
                total = np.float32(0)
                for c in range(cols):
                    total += x[r, c]
                    out[r, c] = total

        return into(self.out, cumsum, self.out, self.x)

    def jax(self) -> Call:
        import jax

        x = jax.numpy.asarray(self.x)
        cumsum = jax.jit(lambda x: jax.numpy.cumsum(x, axis=1))
        return lambda: cumsum(x).block_until_ready()

    def c(self) -> Call:
        return into(self.out, bind("folds", "cumsum_rows", self.out, self.x, self.rows, self.cols))


_ROWS = {"rows": 4096, "cols": 1024}
_SMALL = {"rows": 5, "cols": 37}

ENTRIES = (
    Entry("sum-64M", "sum, 2^26", Sum, {"n": 1 << 26}, {"n": 100_001}),
    Entry("max-64M", "max, 2^26", Max, {"n": 1 << 26}, {"n": 100_001}),
    Entry("argmax", "argmax of rows 4096x1024", ArgmaxRows, _ROWS, _SMALL),
    Entry("cumsum-16M", "running sums, 2^24", Cumsum, {"n": 1 << 24}, {"n": 10_001}),
    Entry("cumsum-rows", "running sums of rows 4096x1024", CumsumRows, _ROWS, _SMALL),
)
