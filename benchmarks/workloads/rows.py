"""Row by row: softmax, layer norm and its gradient, RMS norm, cross entropy."""

from __future__ import annotations

from typing import Any

import numpy as np

import blocklang as bl
import blocklang.language as tl
from benchmarks.native import bind
from benchmarks.workload import Array, Call, Entry, Work, Workload, into, random_floats

EPS = 1e-5


@bl.jit
def softmax_kernel(out, x_ptr, n_cols, stride, BLOCK: bl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride + cols, mask, other=-float("inf"))
    numerator = tl.exp(x - tl.max(x, axis=0))
    tl.store(out + row * stride + cols, numerator / tl.sum(numerator, axis=0), mask)


class Softmax(Workload):
    """Softmax of every row."""

    def __init__(self, rows: int, cols: int) -> None:
        self.rows, self.cols = rows, cols
        self.x = random_floats(rows, cols)
        self.out = np.empty_like(self.x)
        self.work = Work(read=self.x.nbytes, written=self.x.nbytes)

    def exact(self) -> Array:
        x = self.x.astype(np.float64)
        x = np.exp(x - x.max(axis=1, keepdims=True))
        return x / x.sum(axis=1, keepdims=True)

    def blocklang(self) -> Call:
        block = bl.next_power_of_2(self.cols)
        return into(
            self.out,
            lambda: softmax_kernel[(self.rows,)](self.out, self.x, self.cols, self.cols, BLOCK=block),
        )

    def numpy(self) -> Call:
        def softmax() -> None:
            x, out = self.x, self.out
            np.subtract(x, x.max(axis=1, keepdims=True), out=out)
            np.exp(out, out=out)
            np.divide(out, out.sum(axis=1, keepdims=True), out=out)

        return into(self.out, softmax)

    def torch(self) -> Call:
        import torch

        x, out = map(torch.from_numpy, (self.x, self.out))
        return lambda: torch.softmax(x, 1, out=out)

    def numba(self) -> Call:
        from benchmarks.numba_jit import njit, prange

        @njit
        def softmax(out: Any, x: Any) -> None:
            rows, cols = x.shape
            for r in prange(rows):
                largest = x[r, 0]
                for c in range(cols):
                    largest = max(largest, x[r, c])
                total = np.float32(0)
                for c in range(cols):
                    out[r, c] = np.exp(x[r, c] - largest)
                    total += out[r, c]
                scale = np.float32(1) / total
                for c in range(cols):
                    out[r, c] *= scale

        return into(self.out, softmax, self.out, self.x)

    def jax(self) -> Call:
        import jax

        x = jax.numpy.asarray(self.x)
        softmax = jax.jit(lambda x: jax.nn.softmax(x, axis=1))
        return lambda: softmax(x).block_until_ready()

    def c(self) -> Call:
        return into(self.out, bind("rows", "softmax", self.out, self.x, self.rows, self.cols))


@bl.jit
def layer_norm_kernel(out, x_ptr, w_ptr, b_ptr, n_cols, stride, eps, BLOCK: bl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride + cols, mask, other=0.0)
    mean = tl.sum(x, axis=0) / n_cols
    centred = tl.where(mask, x - mean, 0.0)
    rstd = tl.rsqrt(tl.sum(centred * centred, axis=0) / n_cols + eps)
    w = tl.load(w_ptr + cols, mask)
    b = tl.load(b_ptr + cols, mask)
    tl.store(out + row * stride + cols, centred * rstd * w + b, mask)


class LayerNorm(Workload):
    """Layer norm of every row, with weight and bias."""

    tolerance = 1e-5

    def __init__(self, rows: int, cols: int) -> None:
        self.rows, self.cols = rows, cols
        self.x = random_floats(rows, cols)
        self.w, self.b = random_floats(cols, seed=1), random_floats(cols, seed=2)
        self.out = np.empty_like(self.x)
        self.work = Work(read=self.x.nbytes, written=self.x.nbytes)

    def exact(self) -> Array:
        x = self.x.astype(np.float64)
        x -= x.mean(axis=1, keepdims=True)
        return x / np.sqrt((x * x).mean(axis=1, keepdims=True) + EPS) * self.w + self.b

    def blocklang(self) -> Call:
        block = bl.next_power_of_2(self.cols)

        def launch() -> None:
            layer_norm_kernel[(self.rows,)](
                self.out, self.x, self.w, self.b, self.cols, self.cols, EPS, BLOCK=block
            )

        return into(self.out, launch)

    def numpy(self) -> Call:
        def layer_norm() -> None:
            x, out = self.x, self.out
            np.subtract(x, x.mean(axis=1, keepdims=True), out=out)
            variance = np.einsum("ij,ij->i", out, out)[:, None] / np.float32(self.cols)
            np.divide(out, np.sqrt(variance + np.float32(EPS)), out=out)
            np.multiply(out, self.w, out=out)
            np.add(out, self.b, out=out)

        return into(self.out, layer_norm)

    def torch(self) -> Call:
        import torch

        x, w, b = map(torch.from_numpy, (self.x, self.w, self.b))
        return lambda: torch.nn.functional.layer_norm(x, (self.cols,), w, b, EPS)

    def numba(self) -> Call:
        from benchmarks.numba_jit import njit, prange

        @njit
        def layer_norm(out: Any, x: Any, w: Any, b: Any, eps: Any) -> None:
            rows, cols = x.shape
            for r in prange(rows):
                total = np.float32(0)
                for c in range(cols):
                    total += x[r, c]
                mean = total / np.float32(cols)
                squares = np.float32(0)
                for c in range(cols):
                    squares += (x[r, c] - mean) * (x[r, c] - mean)
                scale = np.float32(1) / np.sqrt(squares / np.float32(cols) + eps)
                for c in range(cols):
                    out[r, c] = (x[r, c] - mean) * scale * w[c] + b[c]

        return into(self.out, layer_norm, self.out, self.x, self.w, self.b, np.float32(EPS))

    def jax(self) -> Call:
        import jax

        @jax.jit
        def layer_norm(x: Any, w: Any, b: Any) -> Any:
            x = x - x.mean(axis=1, keepdims=True)
            return x * jax.lax.rsqrt((x * x).mean(axis=1, keepdims=True) + EPS) * w + b

        arrays = [jax.numpy.asarray(array) for array in (self.x, self.w, self.b)]
        return lambda: layer_norm(*arrays).block_until_ready()

    def c(self) -> Call:
        arguments = (self.out, self.x, self.w, self.b, self.rows, self.cols, EPS)
        return into(self.out, bind("rows", "layer_norm", *arguments))


@bl.jit
def layer_norm_backward_kernel(
    dx, partial_dw, partial_db, dy_ptr, x_ptr, w_ptr, mean_ptr, rstd_ptr, n_rows, n_cols, BLOCK: bl.constexpr
):
    # One program goes through every n-th row and keeps its share of the weights' gradients.
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    w = tl.load(w_ptr + cols, mask, other=0.0)
    dw = tl.zeros((BLOCK,), tl.float32)
    db = tl.zeros((BLOCK,), tl.float32)
    for row in range(tl.program_id(0), n_rows, tl.num_programs(0)):
        x = tl.load(x_ptr + row * n_cols + cols, mask, other=0.0)
        dy = tl.load(dy_ptr + row * n_cols + cols, mask, other=0.0)
        rstd = tl.load(rstd_ptr + row)
        normed = tl.where(mask, (x - tl.load(mean_ptr + row)) * rstd, 0.0)
        scaled = w * dy
        c1 = tl.sum(normed * scaled, axis=0) / n_cols
        c2 = tl.sum(scaled, axis=0) / n_cols
        tl.store(dx + row * n_cols + cols, (scaled - (normed * c1 + c2)) * rstd, mask)
        dw += dy * normed
        db += dy
    tl.store(partial_dw + tl.program_id(0) * n_cols + cols, dw, mask)
    tl.store(partial_db + tl.program_id(0) * n_cols + cols, db, mask)


@bl.jit
def add_parts_kernel(
    dw, db, partial_dw, partial_db, n_parts, n_cols, PARTS: bl.constexpr, BLOCK: bl.constexpr
):
    cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    parts = tl.arange(0, PARTS)[:, None]
    mask = (parts < n_parts) & (cols < n_cols)[None, :]
    offsets = parts * n_cols + cols[None, :]
    tl.store(dw + cols, tl.sum(tl.load(partial_dw + offsets, mask, other=0.0), axis=0), cols < n_cols)
    tl.store(db + cols, tl.sum(tl.load(partial_db + offsets, mask, other=0.0), axis=0), cols < n_cols)


class LayerNormBackward(Workload):
    """Gradients of layer norm in its input, weight and bias; mean and 1/deviation come from the forward."""

    tolerance = 5e-4
    PARTS = 16

    def __init__(self, rows: int, cols: int) -> None:
        self.rows, self.cols = rows, cols
        self.x, self.dy = random_floats(rows, cols), random_floats(rows, cols, seed=1)
        self.w = random_floats(cols, seed=2)
        x = self.x.astype(np.float64)
        self.mean = x.mean(axis=1).astype(np.float32)
        self.rstd = (1 / np.sqrt(x.var(axis=1) + EPS)).astype(np.float32)
        self.dx, self.dw, self.db = np.empty_like(self.x), np.empty_like(self.w), np.empty_like(self.w)
        self.out = (self.dx, self.dw, self.db)
        self.work = Work(read=2 * self.x.nbytes, written=self.x.nbytes)

    def exact(self) -> Array:
        dy = self.dy.astype(np.float64)
        rstd = self.rstd[:, None].astype(np.float64)
        normed = (self.x - self.mean[:, None].astype(np.float64)) * rstd
        scaled = self.w * dy
        c1 = (normed * scaled).mean(axis=1, keepdims=True)
        dx = (scaled - normed * c1 - scaled.mean(axis=1, keepdims=True)) * rstd
        return np.concatenate([dx.ravel(), (dy * normed).sum(axis=0), dy.sum(axis=0)])

    def blocklang(self) -> Call:
        block, parts = bl.next_power_of_2(self.cols), self.PARTS
        partial_dw, partial_db = np.empty((2, parts, self.cols), np.float32)

        def launch() -> None:
            layer_norm_backward_kernel[(parts,)](
                self.dx, partial_dw, partial_db, self.dy, self.x, self.w, self.mean, self.rstd,
                self.rows, self.cols, BLOCK=block,
            )  # fmt: skip
            add_parts_kernel[(bl.cdiv(self.cols, 128),)](
                self.dw, self.db, partial_dw, partial_db, parts, self.cols, PARTS=parts, BLOCK=128
            )

        return into(self.out, launch)

    def numpy(self) -> Call:
        rstd, n = self.rstd[:, None], np.float32(self.cols)

        def backward() -> None:
            normed = (self.x - self.mean[:, None]) * rstd
            np.einsum("ij,ij->j", self.dy, normed, out=self.dw)
            np.sum(self.dy, axis=0, out=self.db)
            scaled = self.dy * self.w
            c1 = np.einsum("ij,ij->i", normed, scaled)[:, None] / n
            np.multiply(normed, c1, out=normed)
            np.subtract(scaled, normed, out=self.dx)
            np.subtract(self.dx, scaled.mean(axis=1, keepdims=True), out=self.dx)
            np.multiply(self.dx, rstd, out=self.dx)

        return into(self.out, backward)

    def torch(self) -> Call:
        import torch

        dy, x, w = map(torch.from_numpy, (self.dy, self.x, self.w))
        mean, rstd = (torch.from_numpy(array[:, None]) for array in (self.mean, self.rstd))
        bias = torch.zeros_like(w)
        backward = torch.ops.aten.native_layer_norm_backward
        return lambda: backward(dy, x, [self.cols], mean, rstd, w, bias, [True, True, True])

    def numba(self) -> Call:
        from benchmarks.numba_jit import njit, prange

        parts = self.PARTS

        @njit
        def backward(dx: Any, dw: Any, db: Any, dy: Any, x: Any, w: Any, mean: Any, rstd: Any) -> None:
            rows, cols = x.shape
            partial_dw = np.zeros((parts, cols), np.float32)
            partial_db = np.zeros((parts, cols), np.float32)
            for p in prange(parts):
                for r in range(rows * p // parts, rows * (p + 1) // parts):
                    m, s, c1, c2 = mean[r], rstd[r], np.float32(0), np.float32(0)
                    for c in range(cols):
                        normed, scaled = (x[r, c] - m) * s, w[c] * dy[r, c]
                        c1 += normed * scaled
                        c2 += scaled
                        partial_dw[p, c] += dy[r, c] * normed
                        partial_db[p, c] += dy[r, c]
                    c1 /= np.float32(cols)
                    c2 /= np.float32(cols)
                    for c in range(cols):
                        dx[r, c] = (w[c] * dy[r, c] - (x[r, c] - m) * s * c1 - c2) * s
            for c in range(cols):
                dw[c], db[c] = np.float32(0), np.float32(0)
            for p in range(parts):
                for c in range(cols):
                    dw[c] += partial_dw[p, c]
                    db[c] += partial_db[p, c]

        return into(self.out, backward, *self.out, self.dy, self.x, self.w, self.mean, self.rstd)

    def jax(self) -> Call:
        import jax

        @jax.jit
        def backward(dy: Any, x: Any, w: Any, mean: Any, rstd: Any) -> Any:
            normed = (x - mean) * rstd
            scaled = w * dy
            c1 = (normed * scaled).mean(axis=1, keepdims=True)
            dx = (scaled - normed * c1 - scaled.mean(axis=1, keepdims=True)) * rstd
            return dx, (dy * normed).sum(axis=0), dy.sum(axis=0)

        given = (self.dy, self.x, self.w, self.mean[:, None], self.rstd[:, None])
        arrays = [jax.numpy.asarray(array) for array in given]
        return lambda: jax.block_until_ready(backward(*arrays))

    def c(self) -> Call:
        partial = np.empty((self.PARTS, 2, self.cols), np.float32)
        backward = bind(
            *(
                "rows",
                "layer_norm_backward",
                *self.out,
                partial,
                self.dy,
                self.x,
                self.w,
                self.mean,
                self.rstd,
            ),
            *(self.rows, self.cols, self.PARTS),
        )
        return into(self.out, backward)


@bl.jit
def rms_norm_kernel(out, x_ptr, w_ptr, n_cols, stride, eps, BLOCK: bl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride + cols, mask, other=0.0)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / n_cols + eps)
    tl.store(out + row * stride + cols, x * scale * tl.load(w_ptr + cols, mask), mask)


class RMSNorm(Workload):
    """RMS norm of every row, with weight."""

    tolerance = 1e-5

    def __init__(self, rows: int, cols: int) -> None:
        self.rows, self.cols = rows, cols
        self.x, self.w = random_floats(rows, cols), random_floats(cols, seed=1)
        self.out = np.empty_like(self.x)
        self.work = Work(read=self.x.nbytes, written=self.x.nbytes)

    def exact(self) -> Array:
        x = self.x.astype(np.float64)
        return x / np.sqrt((x * x).mean(axis=1, keepdims=True) + EPS) * self.w

    def blocklang(self) -> Call:
        block = bl.next_power_of_2(self.cols)

        def launch() -> None:
            rms_norm_kernel[(self.rows,)](self.out, self.x, self.w, self.cols, self.cols, EPS, BLOCK=block)

        return into(self.out, launch)

    def numpy(self) -> Call:
        def rms_norm() -> None:
            squares = np.einsum("ij,ij->i", self.x, self.x)[:, None] / np.float32(self.cols)
            np.divide(self.x, np.sqrt(squares + np.float32(EPS)), out=self.out)
            np.multiply(self.out, self.w, out=self.out)

        return into(self.out, rms_norm)

    def torch(self) -> Call:
        import torch

        x, w = map(torch.from_numpy, (self.x, self.w))
        return lambda: torch.nn.functional.rms_norm(x, (self.cols,), w, EPS)

    def numba(self) -> Call:
        from benchmarks.numba_jit import njit, prange

        @njit
        def rms_norm(out: Any, x: Any, w: Any, eps: Any) -> None:
            rows, cols = x.shape
            for r in prange(rows):
                squares = np.float32(0)
                for c in range(cols):
                    squares += x[r, c] * x[r, c]
                scale = np.float32(1) / np.sqrt(squares / np.float32(cols) + eps)
                for c in range(cols):
                    out[r, c] = x[r, c] * scale * w[c]

        return into(self.out, rms_norm, self.out, self.x, self.w, np.float32(EPS))

    def jax(self) -> Call:
        import jax

        @jax.jit
        def rms_norm(x: Any, w: Any) -> Any:
            return x * jax.lax.rsqrt((x * x).mean(axis=1, keepdims=True) + EPS) * w

        x, w = map(jax.numpy.asarray, (self.x, self.w))
        return lambda: rms_norm(x, w).block_until_ready()

    def c(self) -> Call:
        return into(self.out, bind("rows", "rms_norm", self.out, self.x, self.w, self.rows, self.cols, EPS))


@bl.jit
def cross_entropy_kernel(out, x_ptr, labels, n_cols, BLOCK: bl.constexpr):
    # One pass over the row: the sum is rescaled whenever the maximum grows.
    row = tl.program_id(0)
    row_ptr = x_ptr + row.to(tl.int64) * n_cols
    cols = tl.arange(0, BLOCK)
    largest = -float("inf")
    total = 0.0
    for start in range(0, n_cols, BLOCK):
        x = tl.load(row_ptr + start + cols, cols < n_cols - start, other=-float("inf"))
        here = tl.maximum(largest, tl.max(x, axis=0))
        total = total * tl.exp(largest - here) + tl.sum(tl.exp(x - here), axis=0)
        largest = here
    tl.store(out + row, tl.log(total) + largest - tl.load(row_ptr + tl.load(labels + row)))


class CrossEntropy(Workload):
    """The loss of every row: log of the sum of exponentials, less the label's logit."""

    tolerance = 1e-5

    def __init__(self, rows: int, cols: int) -> None:
        self.rows, self.cols = rows, cols
        self.x = random_floats(rows, cols)
        self.labels = np.random.default_rng(1).integers(0, cols, rows, dtype=np.int32)
        self.out = np.empty(rows, np.float32)
        self.work = Work(read=self.x.nbytes, written=0)

    def exact(self) -> Array:
        losses = np.empty(self.rows)
        for row, label in enumerate(self.labels):
            x = self.x[row].astype(np.float64)
            losses[row] = np.log(np.exp(x).sum()) - x[label]
        return losses

    def blocklang(self) -> Call:
        def launch() -> None:
            cross_entropy_kernel[(self.rows,)](self.out, self.x, self.labels, self.cols, BLOCK=8192)

        return into(self.out, launch)

    def numpy(self) -> Call:
        rows = np.arange(self.rows)
        exponentials = np.empty_like(self.x)

        def cross_entropy() -> Array:
            largest = self.x.max(axis=1)
            np.subtract(self.x, largest[:, None], out=exponentials)
            np.exp(exponentials, out=exponentials)
            losses: Array = np.log(exponentials.sum(axis=1)) + largest - self.x[rows, self.labels]
            return losses

        return cross_entropy

    def torch(self) -> Call:
        import torch

        x, labels = torch.from_numpy(self.x), torch.from_numpy(self.labels).long()
        return lambda: torch.nn.functional.cross_entropy(x, labels, reduction="none")

    def numba(self) -> Call:
        from benchmarks.numba_jit import njit, prange

        @njit
        def cross_entropy(out: Any, x: Any, labels: Any) -> None:
            rows, cols = x.shape
            for r in prange(rows):
                largest = x[r, 0]
                for c in range(cols):
                    largest = max(largest, x[r, c])
                total = np.float32(0)
                for c in range(cols):
                    total += np.exp(x[r, c] - largest)
                out[r] = np.log(total) + largest - x[r, labels[r]]

        return into(self.out, cross_entropy, self.out, self.x, self.labels)

    def jax(self) -> Call:
        import jax

        @jax.jit
        def cross_entropy(x: Any, labels: Any) -> Any:
            chosen = jax.numpy.take_along_axis(x, labels[:, None], axis=1)[:, 0]
            return jax.nn.logsumexp(x, axis=1) - chosen

        x, labels = map(jax.numpy.asarray, (self.x, self.labels))
        return lambda: cross_entropy(x, labels).block_until_ready()

    def c(self) -> Call:
        arguments = (self.out, self.x, self.labels, self.rows, self.cols)
        return into(self.out, bind("rows", "cross_entropy", *arguments))


_ROWS = {"rows": 4096, "cols": 1024}
_SMALL = {"rows": 5, "cols": 37}

ENTRIES = (
    Entry("softmax-4096x1024", "softmax 4096x1024", Softmax, _ROWS, _SMALL),
    Entry(
        "softmax-1823x781", "softmax 1823x781", Softmax, {"rows": 1823, "cols": 781}, {"rows": 3, "cols": 64}
    ),
    Entry("layernorm-forward", "layer norm 4096x1024", LayerNorm, _ROWS, _SMALL),
    Entry("layernorm-backward", "layer norm's gradient 4096x1024", LayerNormBackward, _ROWS, _SMALL),
    Entry("rmsnorm", "RMS norm 4096x1024", RMSNorm, _ROWS, _SMALL),
    Entry(
        *("cross_entropy", "cross entropy 4096x32000", CrossEntropy),
        *({"rows": 4096, "cols": 32000}, {"rows": 5, "cols": 3000}),
    ),
)
