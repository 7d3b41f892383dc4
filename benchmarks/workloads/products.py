"""Products of matrices: float32, 16-bit floats and int8, batched, and with int8 weights."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

import blocklang as bl
import blocklang.language as tl
from benchmarks.native import bind
from benchmarks.workload import Array, Call, Entry, Work, Workload, into, random_floats

_TILES = [
    bl.Config({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP_M": 8})
    for m, n, k in ((128, 128, 64), (128, 128, 128), (128, 256, 64), (64, 128, 128), (256, 128, 64))
]


@bl.jit
def untuned_matmul_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    stride_cm,
    stride_cn,
    ACC: bl.constexpr,
    BLOCK_M: bl.constexpr,
    BLOCK_N: bl.constexpr,
    BLOCK_K: bl.constexpr,
    GROUP_M: bl.constexpr,
):
    # Grouped program ids: neighbours share rows of A and columns of B in the cache.
    pid = tl.program_id(0)
    blocks_m = tl.cdiv(M, BLOCK_M)
    blocks_n = tl.cdiv(N, BLOCK_N)
    per_group = GROUP_M * blocks_n
    first_m = (pid // per_group) * GROUP_M
    group_m = min(blocks_m - first_m, GROUP_M)
    pid_m = first_m + (pid % per_group) % group_m
    pid_n = (pid % per_group) // group_m

    rows = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    cols = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    ks = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rows[:, None] * stride_am + ks[None, :] * stride_ak
    b_ptrs = b_ptr + ks[:, None] * stride_bk + cols[None, :] * stride_bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=ACC)
    for step in range(tl.cdiv(K, BLOCK_K)):
        left = K - step * BLOCK_K
        a = tl.load(a_ptrs, mask=ks[None, :] < left, other=0)
        b = tl.load(b_ptrs, mask=ks[:, None] < left, other=0)
        acc = tl.dot(a, b, acc, out_dtype=ACC)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk

    rows = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    c_ptrs = c_ptr + rows[:, None] * stride_cm + cols[None, :] * stride_cn
    tl.store(c_ptrs, acc, mask=(rows[:, None] < M) & (cols[None, :] < N))


matmul_kernel = bl.autotune(configs=_TILES, key=["M", "N", "K"])(untuned_matmul_kernel)


def _launch_matmul(a: Array, b: Array, c: Array, acc: Any) -> None:
    (m, k), (_, n) = a.shape, b.shape

    def grid(meta: dict[str, int]) -> tuple[int]:
        return (bl.cdiv(m, meta["BLOCK_M"]) * bl.cdiv(n, meta["BLOCK_N"]),)

    matmul_kernel[grid](a, b, c, m, n, k, *bl.strides(a), *bl.strides(b), *bl.strides(c), ACC=acc)


class Matmul(Workload):
    """a @ b in float32."""

    is_relative_to_largest = True

    def __init__(self, m: int, n: int, k: int) -> None:
        self.a, self.b = random_floats(m, k), random_floats(k, n, seed=1)
        self.out = np.empty((m, n), np.float32)
        self.tolerance = k * 2.0**-24
        self.work = Work(4 * (m * k + k * n), 4 * m * n, 2 * m * n * k)

    def exact(self) -> Array:
        return self.a.astype(np.float64) @ self.b.astype(np.float64)

    def blocklang(self) -> Call:
        return into(self.out, lambda: _launch_matmul(self.a, self.b, self.out, tl.float32))

    def numpy(self) -> Call:
        return lambda: np.matmul(self.a, self.b, out=self.out)

    def torch(self) -> Call:
        import torch

        a, b, out = map(torch.from_numpy, (self.a, self.b, self.out))
        return lambda: torch.mm(a, b, out=out)

    def numba(self) -> Call:
        from benchmarks.numba_jit import njit, prange

        @njit
        def matmul(c: Any, a: Any, b: Any) -> None:
            for i in prange(a.shape[0]):
                c[i, :] = 0
                for k in range(a.shape[1]):
                    for j in range(b.shape[1]):
                        c[i, j] += a[i, k] * b[k, j]

        return into(self.out, matmul, self.out, self.a, self.b)

    def jax(self) -> Call:
        import jax

        a, b = map(jax.numpy.asarray, (self.a, self.b))
        matmul = jax.jit(lambda a, b: a @ b)
        return lambda: matmul(a, b).block_until_ready()


class UntunedMatmul(Matmul):
    """The same by one kernel with fixed tiles, for its compile time."""

    def blocklang(self) -> Call:
        (m, k), (_, n) = self.a.shape, self.b.shape
        strides = (*bl.strides(self.a), *bl.strides(self.b), *bl.strides(self.out))
        grid = (bl.cdiv(m, 128) * bl.cdiv(n, 128),)

        def launch() -> None:
            untuned_matmul_kernel[grid](
                self.a, self.b, self.out, m, n, k, *strides,
                ACC=tl.float32, BLOCK_M=128, BLOCK_N=128, BLOCK_K=64, GROUP_M=8,
            )  # fmt: skip

        return into(self.out, launch)


class HalfMatmul(Workload):
    """a @ b of a 16-bit float type, with sums and the result in float32.

    PyTorch's product has the operands' type, so it is widened afterwards, and only as exact as that type.
    """

    is_relative_to_largest = True

    def __init__(self, m: int, n: int, k: int, dtype: str) -> None:
        self.dtype = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
        self.a, self.b = (random_floats(*shape, seed=m).astype(self.dtype) for shape in ((m, k), (k, n)))
        self.out = np.empty((m, n), np.float32)
        self.tolerance = 2.0**-8 if dtype == "bfloat16" else 2.0**-10
        self.work = Work(2 * (m * k + k * n), 4 * m * n, 2 * m * n * k)

    def exact(self) -> Array:
        return self.a.astype(np.float64) @ self.b.astype(np.float64)

    def blocklang(self) -> Call:
        return into(self.out, lambda: _launch_matmul(self.a, self.b, self.out, tl.float32))

    def numpy(self) -> Call:
        return lambda: np.matmul(self.a.astype(np.float32), self.b.astype(np.float32), out=self.out)

    def torch(self) -> Call:
        import torch

        dtype = getattr(torch, self.dtype.name)
        a, b = (torch.from_numpy(array.view(np.int16)).view(dtype) for array in (self.a, self.b))
        return lambda: (a @ b).float()

    def jax(self) -> Call:
        import jax

        a, b = map(jax.numpy.asarray, (self.a, self.b))
        matmul = jax.jit(lambda a, b: jax.lax.dot(a, b, preferred_element_type="float32"))
        return lambda: matmul(a, b).block_until_ready()


class ByteMatmul(Workload):
    """a @ b of int8 with int32 sums."""

    def __init__(self, m: int, n: int, k: int) -> None:
        random = np.random.default_rng(0)
        self.a = random.integers(-128, 128, (m, k), np.int8)
        self.b = random.integers(-128, 128, (k, n), np.int8)
        self.out = np.empty((m, n), np.int32)
        self.work = Work(m * k + k * n, 4 * m * n, 2 * m * n * k, "int8")

    def exact(self) -> Array:
        return (self.a.astype(np.float64) @ self.b.astype(np.float64)).astype(np.int64)

    def blocklang(self) -> Call:
        return into(self.out, lambda: _launch_matmul(self.a, self.b, self.out, tl.int32))

    def numpy(self) -> Call:
        """By BLAS in float32, which is exact while no sum passes 2^24."""
        assert self.a.shape[1] <= 1024
        return lambda: (self.a.astype(np.float32) @ self.b.astype(np.float32)).astype(np.int32)

    def torch(self) -> Call:
        import torch

        a, b = map(torch.from_numpy, (self.a, self.b))
        return lambda: torch._int_mm(a, b)

    def jax(self) -> Call:
        import jax

        a, b = map(jax.numpy.asarray, (self.a, self.b))
        matmul = jax.jit(lambda a, b: jax.lax.dot(a, b, preferred_element_type="int32"))
        return lambda: matmul(a, b).block_until_ready()

    def c(self) -> Call:
        (m, k), (_, n) = self.a.shape, self.b.shape
        packed = np.empty((bl.cdiv(n, 32) * 32, k + k % 2), np.int16)
        return into(self.out, bind("products", "matmul_int8", self.out, self.a, self.b, packed, m, n, k))


@bl.jit
def batched_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, BLOCK_M: bl.constexpr, BLOCK_N: bl.constexpr, BLOCK_K: bl.constexpr
):
    # Contiguous matrices; one program computes one block of one product.
    batch = tl.program_id(2)
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    ks = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + batch * M * K + rows[:, None] * K + ks[None, :]
    b_ptrs = b_ptr + batch * K * N + ks[:, None] * N + cols[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs, (rows < M)[:, None] & (ks < K - k)[None, :], other=0.0)
        b = tl.load(b_ptrs, (ks < K - k)[:, None] & (cols < N)[None, :], other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * N
    c_ptrs = c_ptr + batch * M * N + rows[:, None] * N + cols[None, :]
    tl.store(c_ptrs, acc, (rows < M)[:, None] & (cols < N)[None, :])


class BatchedMatmul(Workload):
    """Products of a batch of float32 matrices."""

    is_relative_to_largest = True

    def __init__(self, batch: int, n: int) -> None:
        self.batch, self.n = batch, n
        self.a, self.b = random_floats(batch, n, n), random_floats(batch, n, n, seed=1)
        self.out = np.empty_like(self.a)
        self.tolerance = n * 2.0**-24
        self.work = Work(8 * batch * n * n, 4 * batch * n * n, 2 * batch * n**3)

    def exact(self) -> Array:
        return self.a.astype(np.float64) @ self.b.astype(np.float64)

    def blocklang(self) -> Call:
        n, blocks = self.n, bl.cdiv(self.n, 128)

        def launch() -> None:
            batched_kernel[(blocks, blocks, self.batch)](
                self.a, self.b, self.out, n, n, n, BLOCK_M=128, BLOCK_N=128, BLOCK_K=128
            )

        return into(self.out, launch)

    def numpy(self) -> Call:
        return lambda: np.matmul(self.a, self.b, out=self.out)

    def torch(self) -> Call:
        import torch

        a, b, out = map(torch.from_numpy, (self.a, self.b, self.out))
        return lambda: torch.bmm(a, b, out=out)

    def jax(self) -> Call:
        import jax

        a, b = map(jax.numpy.asarray, (self.a, self.b))
        matmul = jax.jit(lambda a, b: a @ b)
        return lambda: matmul(a, b).block_until_ready()


@bl.autotune(configs=_TILES, key=["M", "N", "K"])
@bl.jit
def weights_kernel(
    out, x_ptr, w_ptr, scale_ptr, M, N, K,
    BLOCK_M: bl.constexpr, BLOCK_N: bl.constexpr, BLOCK_K: bl.constexpr, GROUP_M: bl.constexpr,
):  # fmt: skip
    # Contiguous matrices. The weights become float32 as they are read; the scale waits for the sum.
    pid = tl.program_id(0)
    blocks_m = tl.cdiv(M, BLOCK_M)
    blocks_n = tl.cdiv(N, BLOCK_N)
    pid_m, pid_n = tl.swizzle2d(pid // blocks_n, pid % blocks_n, blocks_m, blocks_n, GROUP_M)
    rows = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    ks = tl.arange(0, BLOCK_K)
    x_ptrs = x_ptr + rows[:, None] * K + ks[None, :]
    w_ptrs = w_ptr + ks[:, None] * N + cols[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        x = tl.load(x_ptrs, (rows < M)[:, None] & (ks < K - k)[None, :], other=0.0)
        w = tl.load(w_ptrs, (ks < K - k)[:, None] & (cols < N)[None, :], other=0)
        acc = tl.dot(x, w.to(tl.float32), acc)
        x_ptrs += BLOCK_K
        w_ptrs += BLOCK_K * N
    acc *= tl.load(scale_ptr + cols, cols < N)[None, :]
    tl.store(out + rows[:, None] * N + cols[None, :], acc, (rows < M)[:, None] & (cols < N)[None, :])


class WeightsMatmul(Workload):
    """x @ (w * scale): float32 activations, int8 weights, a scale for each column."""

    is_relative_to_largest = True

    def __init__(self, m: int, n: int, k: int) -> None:
        self.m, self.n, self.k = m, n, k
        self.x = random_floats(m, k)
        self.w = np.random.default_rng(0).integers(-128, 128, (k, n), np.int8)
        self.scale = (np.abs(random_floats(n)) + 0.1) / 128
        self.out = np.empty((m, n), np.float32)
        self.tolerance = k * 2.0**-24
        self.work = Work(4 * m * k + k * n, 4 * m * n, 2 * m * n * k)

    def exact(self) -> Array:
        return self.x.astype(np.float64) @ self.w.astype(np.float64) * self.scale

    def blocklang(self) -> Call:
        def grid(meta: dict[str, int]) -> tuple[int]:
            return (bl.cdiv(self.m, meta["BLOCK_M"]) * bl.cdiv(self.n, meta["BLOCK_N"]),)

        def launch() -> None:
            weights_kernel[grid](self.out, self.x, self.w, self.scale, self.m, self.n, self.k)

        return into(self.out, launch)

    def numpy(self) -> Call:
        def matmul() -> None:
            np.matmul(self.x, self.w.astype(np.float32), out=self.out)
            np.multiply(self.out, self.scale, out=self.out)

        return into(self.out, matmul)

    def torch(self) -> Call:
        import torch

        x, w, scale = map(torch.from_numpy, (self.x, self.w, self.scale))
        return lambda: (x @ w.float()).mul_(scale)

    def jax(self) -> Call:
        import jax

        x, w, scale = map(jax.numpy.asarray, (self.x, self.w, self.scale))
        matmul = jax.jit(lambda x, w, scale: (x @ w.astype("float32")) * scale)
        return lambda: matmul(x, w, scale).block_until_ready()


@bl.jit
def gemv_kernel(out, w_ptr, scale_ptr, x_ptr, n_rows, n_cols, ROWS: bl.constexpr, BLOCK: bl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    in_rows = rows < n_rows
    cols = tl.arange(0, BLOCK)
    acc = tl.zeros((ROWS, BLOCK), tl.float32)
    for start in range(0, n_cols, BLOCK):
        in_cols = cols < n_cols - start
        mask = in_rows[:, None] & in_cols[None, :]
        w = tl.load(w_ptr + rows[:, None] * n_cols + start + cols[None, :], mask, other=0)
        acc += w.to(tl.float32) * tl.load(x_ptr + start + cols, in_cols, other=0.0)[None, :]
    sums = tl.sum(acc, axis=1) * tl.load(scale_ptr + rows, in_rows)
    tl.store(out + rows, sums, in_rows)


class WeightsGemv(Workload):
    """(w * scale) @ x: int8 weights, a scale for each row."""

    is_relative_to_largest = True

    def __init__(self, rows: int, cols: int) -> None:
        self.rows, self.cols = rows, cols
        self.w = np.random.default_rng(0).integers(-128, 128, (rows, cols), np.int8)
        self.scale = (np.abs(random_floats(rows)) + 0.1) / 128
        self.x = random_floats(cols)
        self.out = np.empty(rows, np.float32)
        self.tolerance = cols * 2.0**-24
        self.work = Work(rows * cols, 4 * rows, 2 * rows * cols)

    def exact(self) -> Array:
        return self.w.astype(np.float64) @ self.x * self.scale

    def blocklang(self) -> Call:
        grid = (bl.cdiv(self.rows, 16),)

        def launch() -> None:
            gemv_kernel[grid](self.out, self.w, self.scale, self.x, self.rows, self.cols, ROWS=16, BLOCK=128)

        return into(self.out, launch)

    def numpy(self) -> Call:
        def gemv() -> None:
            np.matmul(self.w.astype(np.float32), self.x, out=self.out)
            np.multiply(self.out, self.scale, out=self.out)

        return into(self.out, gemv)

    def torch(self) -> Call:
        import torch

        w, scale, x = map(torch.from_numpy, (self.w, self.scale, self.x))
        return lambda: (w.float() @ x).mul_(scale)

    def numba(self) -> Call:
        from benchmarks.numba_jit import njit, prange

        @njit
        def gemv(out: Any, w: Any, scale: Any, x: Any) -> None:
            rows, cols = w.shape
            for r in prange(rows):
                total = np.float32(0)
                for c in range(cols):
                    total += np.float32(w[r, c]) * x[c]
                out[r] = total * scale[r]

        return into(self.out, gemv, self.out, self.w, self.scale, self.x)

    def jax(self) -> Call:
        import jax

        w, scale, x = map(jax.numpy.asarray, (self.w, self.scale, self.x))
        gemv = jax.jit(lambda w, scale, x: (w.astype("float32") @ x) * scale)
        return lambda: gemv(w, scale, x).block_until_ready()

    def c(self) -> Call:
        arguments = (self.out, self.w, self.scale, self.x, self.rows, self.cols)
        return into(self.out, bind("products", "gemv_int8", *arguments))


def _square(n: int) -> dict[str, int]:
    return {"m": n, "n": n, "k": n}


_ODD = {"m": 33, "n": 65, "k": 17}

ENTRIES = (
    Entry("matmul-512", "matmul 512", Matmul, _square(512), _ODD),
    Entry("matmul-1024", "matmul 1024", Matmul, _square(1024), _square(64)),
    Entry("matmul-2048", "matmul 2048", Matmul, _square(2048), {"m": 1, "n": 40, "k": 70}),
    Entry(
        *("matmul-fp16", "matmul 1024, fp16 to fp32", HalfMatmul),
        *({**_square(1024), "dtype": "float16"}, {**_ODD, "dtype": "float16"}),
    ),
    Entry(
        *("matmul-bf16", "matmul 1024, bf16 to fp32", HalfMatmul),
        *({**_square(1024), "dtype": "bfloat16"}, {**_ODD, "dtype": "bfloat16"}),
    ),
    Entry(
        "matmul-int8", "matmul 1024, int8 to int32", ByteMatmul, _square(1024), {"m": 32, "n": 48, "k": 16}
    ),
    Entry(
        "matmul-batched", "matmul 64 x 256^3", BatchedMatmul, {"batch": 64, "n": 256}, {"batch": 3, "n": 33}
    ),
    Entry(
        *("int8_weights-matmul", "int8 weights, matmul 512x2048x2048", WeightsMatmul),
        *({"m": 512, "n": 2048, "k": 2048}, _ODD),
    ),
    Entry(
        *("int8_weights-gemv", "int8 weights, gemv 4096^2", WeightsGemv),
        *({"rows": 4096, "cols": 4096}, {"rows": 33, "cols": 70}),
    ),
)
