"""Patterns of access: a stencil, rows by index, transposition, a sparse matrix times a vector."""

from __future__ import annotations

from typing import Any

import numpy as np

import blocklang as bl
import blocklang.language as tl
from benchmarks.native import bind
from benchmarks.workload import Array, Call, Entry, Work, Workload, into, random_floats


@bl.jit
def stencil_kernel(
    out, x_ptr, w0, w1, w2, w3, w4, w5, w6, w7, w8, n_rows, n_cols, ROWS: bl.constexpr, COLS: bl.constexpr
):
    # x has a border of one row and one column on each side.
    rows = tl.program_id(1) * ROWS + tl.arange(0, ROWS)[:, None]
    cols = tl.program_id(0) * COLS + tl.arange(0, COLS)[None, :]
    mask = (rows < n_rows) & (cols < n_cols)
    width = n_cols + 2
    above = x_ptr + rows * width + cols
    here = above + width
    below = here + width
    result = w0 * tl.load(above, mask) + w1 * tl.load(above + 1, mask) + w2 * tl.load(above + 2, mask)
    result += w3 * tl.load(here, mask) + w4 * tl.load(here + 1, mask) + w5 * tl.load(here + 2, mask)
    result += w6 * tl.load(below, mask) + w7 * tl.load(below + 1, mask) + w8 * tl.load(below + 2, mask)
    tl.store(out + rows * n_cols + cols, result, mask)


class Stencil(Workload):
    """Weighted sums of 3x3 neighbours, of an image with a border."""

    tolerance = 1e-5

    def __init__(self, rows: int, cols: int) -> None:
        self.rows, self.cols = rows, cols
        self.x = random_floats(rows + 2, cols + 2)
        self.w = random_floats(3, 3, seed=1)
        self.out = np.empty((rows, cols), np.float32)
        self.work = Work(read=self.x.nbytes, written=self.out.nbytes, operations=17 * rows * cols)

    def _shifted(self, x: Any) -> Any:
        """Every weight with the part of the image that it is for."""
        for i in range(3):
            for j in range(3):
                yield self.w[i, j], x[i : i + self.rows, j : j + self.cols]

    def exact(self) -> Array:
        out = np.zeros((self.rows, self.cols))
        for weight, part in self._shifted(self.x):
            out += float(weight) * part
        return out

    def blocklang(self) -> Call:
        weights = self.w.ravel().tolist()
        grid = (bl.cdiv(self.cols, 1024), bl.cdiv(self.rows, 4))

        def launch() -> None:
            stencil_kernel[grid](self.out, self.x, *weights, self.rows, self.cols, ROWS=4, COLS=1024)

        return into(self.out, launch)

    def numpy(self) -> Call:
        part_of_sum = np.empty_like(self.out)

        def stencil() -> None:
            self.out.fill(0)
            for weight, part in self._shifted(self.x):
                np.multiply(part, weight, out=part_of_sum)
                np.add(self.out, part_of_sum, out=self.out)

        return into(self.out, stencil)

    def torch(self) -> Call:
        import torch

        x, w = torch.from_numpy(self.x)[None, None], torch.from_numpy(self.w)[None, None]
        return lambda: torch.nn.functional.conv2d(x, w)[0, 0]

    def numba(self) -> Call:
        from benchmarks.numba_jit import njit, prange

        @njit
        def stencil(out: Any, x: Any, w: Any) -> None:
            rows, cols = out.shape
            for r in prange(rows):
                for c in range(cols):
                    out[r, c] = (
                        w[0, 0] * x[r, c] + w[0, 1] * x[r, c + 1] + w[0, 2] * x[r, c + 2]
                        + w[1, 0] * x[r + 1, c] + w[1, 1] * x[r + 1, c + 1] + w[1, 2] * x[r + 1, c + 2]
                        + w[2, 0] * x[r + 2, c] + w[2, 1] * x[r + 2, c + 1] + w[2, 2] * x[r + 2, c + 2]
                    )  # fmt: skip

        return into(self.out, stencil, self.out, self.x, self.w)

    def jax(self) -> Call:
        import jax

        x = jax.numpy.asarray(self.x)
        stencil = jax.jit(lambda x: sum(weight * part for weight, part in self._shifted(x)))
        return lambda: stencil(x).block_until_ready()

    def c(self) -> Call:
        return into(self.out, bind("memory", "stencil", self.out, self.x, self.w, self.rows, self.cols))


@bl.jit
def gather_kernel(out, table, index, n_cols, BLOCK: bl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    source = table + tl.load(index + row).to(tl.int64) * n_cols
    tl.store(out + row * n_cols + cols, tl.load(source + cols, mask), mask)


class GatherRows(Workload):
    """Rows of a table by index, as an embedding does."""

    tolerance = 0.0

    def __init__(self, table: int, rows: int, cols: int) -> None:
        self.rows, self.cols = rows, cols
        self.table = random_floats(table, cols)
        self.index = np.random.default_rng(1).integers(0, table, rows, np.int32)
        self.out = np.empty((rows, cols), np.float32)
        self.work = Work(read=self.out.nbytes, written=self.out.nbytes)

    def exact(self) -> Array:
        return self.table[self.index].astype(np.float64)

    def blocklang(self) -> Call:
        block = bl.next_power_of_2(self.cols)

        def launch() -> None:
            gather_kernel[(self.rows,)](self.out, self.table, self.index, self.cols, BLOCK=block)

        return into(self.out, launch)

    def numpy(self) -> Call:
        return lambda: np.take(self.table, self.index, axis=0, out=self.out, mode="clip")

    def torch(self) -> Call:
        import torch

        table, index, out = map(torch.from_numpy, (self.table, self.index, self.out))
        return lambda: torch.index_select(table, 0, index, out=out)

    def numba(self) -> Call:
        from benchmarks.numba_jit import njit, prange

        @njit
        def gather(out: Any, table: Any, index: Any) -> None:
            for r in prange(index.size):
                row = index[r]
                for c in range(table.shape[1]):
                    out[r, c] = table[row, c]

        return into(self.out, gather, self.out, self.table, self.index)

    def jax(self) -> Call:
        import jax

        table, index = map(jax.numpy.asarray, (self.table, self.index))
        gather = jax.jit(lambda table, index: table[index])
        return lambda: gather(table, index).block_until_ready()

    def c(self) -> Call:
        arguments = (self.out, self.table, self.index, self.rows, self.cols)
        return into(self.out, bind("memory", "gather", *arguments))


@bl.autotune(
    configs=[
        bl.Config({"ROWS": r, "COLS": c}) for r, c in ((32, 32), (64, 64), (128, 64), (64, 16), (16, 64))
    ],
    key=["n"],
)
@bl.jit
def transpose_kernel(out, x_ptr, n, ROWS: bl.constexpr, COLS: bl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.program_id(1) * COLS + tl.arange(0, COLS)
    x = tl.load(x_ptr + rows[:, None] * n + cols[None, :], (rows < n)[:, None] & (cols < n)[None, :])
    tl.store(out + cols[:, None] * n + rows[None, :], tl.trans(x), (cols < n)[:, None] & (rows < n)[None, :])


class Transpose(Workload):
    """The transpose of a square matrix."""

    tolerance = 0.0

    def __init__(self, n: int) -> None:
        self.n = n
        self.x = random_floats(n, n)
        self.out = np.empty_like(self.x)
        self.work = Work(read=self.x.nbytes, written=self.x.nbytes)

    def exact(self) -> Array:
        return self.x.T.astype(np.float64)

    def blocklang(self) -> Call:
        def grid(meta: dict[str, int]) -> tuple[int, int]:
            return bl.cdiv(self.n, meta["ROWS"]), bl.cdiv(self.n, meta["COLS"])

        return into(self.out, lambda: transpose_kernel[grid](self.out, self.x, self.n))

    def numpy(self) -> Call:
        return into(self.out, lambda: np.copyto(self.out, self.x.T))

    def torch(self) -> Call:
        import torch

        x, out = map(torch.from_numpy, (self.x, self.out))
        return lambda: out.copy_(x.T)

    def numba(self) -> Call:
        from benchmarks.numba_jit import njit, prange

        @njit
        def transpose(out: Any, x: Any) -> None:
            n = x.shape[0]
            for tile in prange((n + 63) // 64):
                i = 64 * tile
                for j in range(0, n, 16):
                    for c in range(j, min(j + 16, n)):
                        for r in range(i, min(i + 64, n)):
                            out[c, r] = x[r, c]

        return into(self.out, transpose, self.out, self.x)

    def jax(self) -> Call:
        import jax

        x = jax.numpy.asarray(self.x)
        transpose = jax.jit(lambda x: x.T)
        return lambda: transpose(x).block_until_ready()

    def c(self) -> Call:
        return into(self.out, bind("memory", "transpose", self.out, self.x, self.n))


@bl.jit
def spmv_kernel(out, values, columns, starts, x_ptr, n_rows, ROWS: bl.constexpr, WIDTH: bl.constexpr):
    # WIDTH is at least as many as any row has.
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    in_rows = rows < n_rows
    start = tl.load(starts + rows, in_rows)
    end = tl.load(starts + rows + 1, in_rows)
    places = start[:, None] + tl.arange(0, WIDTH)[None, :]
    mask = places < end[:, None]
    x = tl.load(x_ptr + tl.load(columns + places, mask), mask)
    tl.store(out + rows, tl.sum(tl.load(values + places, mask) * x, axis=1), in_rows)


class SpMV(Workload):
    """A sparse matrix (CSR) with the same number of entries in every row, times a vector."""

    tolerance = 1e-5

    def __init__(self, rows: int, width: int) -> None:
        self.rows, self.width = rows, width
        count = rows * width
        columns = np.random.default_rng(0).integers(0, rows, (rows, width), np.int32)
        self.columns = np.sort(columns, axis=1).ravel()
        self.values = random_floats(count)
        self.starts = np.arange(0, count + 1, width, dtype=np.int32)
        self.x = random_floats(rows, seed=1)
        self.out = np.empty(rows, np.float32)
        self.work = Work(8 * count + 8 * rows, 4 * rows, 2 * count)

    def exact(self) -> Array:
        products = self.values.astype(np.float64) * self.x[self.columns]
        return products.reshape(self.rows, self.width).sum(axis=1)

    def blocklang(self) -> Call:
        grid, width = (bl.cdiv(self.rows, 64),), bl.next_power_of_2(self.width)

        def launch() -> None:
            spmv_kernel[grid](
                self.out, self.values, self.columns, self.starts, self.x, self.rows, ROWS=64, WIDTH=width
            )

        return into(self.out, launch)

    def numpy(self) -> Call:
        starts = self.starts[:-1]
        return lambda: np.add.reduceat(self.values * self.x[self.columns], starts, out=self.out)

    def torch(self) -> Call:
        import warnings

        import torch

        given = map(torch.from_numpy, (self.starts, self.columns, self.values))
        x = torch.from_numpy(self.x)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "in beta state"
            matrix = torch.sparse_csr_tensor(*given, size=(self.rows, self.rows))
        return lambda: matrix @ x

    def numba(self) -> Call:
        from benchmarks.numba_jit import njit, prange

        @njit
        def spmv(out: Any, values: Any, columns: Any, starts: Any, x: Any) -> None:
            for r in prange(out.size):
                total = np.float32(0)
                for i in range(starts[r], starts[r + 1]):
                    total += values[i] * x[columns[i]]
                out[r] = total

        return into(self.out, spmv, self.out, self.values, self.columns, self.starts, self.x)

    def jax(self) -> Call:
        import jax

        @jax.jit
        def spmv(values: Any, columns: Any, x: Any) -> Any:
            return (values * x[columns]).reshape(self.rows, self.width).sum(axis=1)

        arrays = [jax.numpy.asarray(array) for array in (self.values, self.columns, self.x)]
        return lambda: spmv(*arrays).block_until_ready()

    def c(self) -> Call:
        arguments = (self.out, self.values, self.columns, self.starts, self.x, self.rows)
        return into(self.out, bind("memory", "spmv", *arguments))


ENTRIES = (
    Entry("stencil", "3x3 stencil 4096^2", Stencil, {"rows": 4096, "cols": 4096}, {"rows": 17, "cols": 70}),
    Entry(
        *("gather", "gather 8192 rows of 32000x1024", GatherRows),
        *({"table": 32000, "rows": 8192, "cols": 1024}, {"table": 50, "rows": 9, "cols": 70}),
    ),
    Entry("transpose", "transpose 4096^2", Transpose, {"n": 4096}, {"n": 70}),
    Entry(
        "spmv",
        "sparse matrix, 2^18 rows of 16",
        SpMV,
        {"rows": 1 << 18, "width": 16},
        {"rows": 70, "width": 5},
    ),
)
