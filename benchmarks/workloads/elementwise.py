"""Element by element: vector add, triad, gelu(x)*y+z, dropout."""

from __future__ import annotations

from typing import Any

import numpy as np

import blocklang as bl
import blocklang.language as tl
from benchmarks.native import bind
from benchmarks.workload import Array, Call, Entry, Work, Workload, into, random_floats

BLOCK = 4096


@bl.jit
def add_kernel(out, x, y, n, BLOCK: bl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out + offsets, tl.load(x + offsets, mask) + tl.load(y + offsets, mask), mask)


class Add(Workload):
    """x + y."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.x, self.y = random_floats(n), random_floats(n, seed=1)
        self.out = np.empty_like(self.x)
        self.work = Work(read=8 * n, written=4 * n)

    def exact(self) -> Array:
        return self.x.astype(np.float64) + self.y

    def blocklang(self) -> Call:
        grid = (bl.cdiv(self.n, BLOCK),)
        return into(self.out, lambda: add_kernel[grid](self.out, self.x, self.y, self.n, BLOCK=BLOCK))

    def numpy(self) -> Call:
        return lambda: np.add(self.x, self.y, out=self.out)

    def torch(self) -> Call:
        import torch

        x, y, out = map(torch.from_numpy, (self.x, self.y, self.out))
        return lambda: torch.add(x, y, out=out)

    def numba(self) -> Call:
        from benchmarks.numba_jit import njit, prange

        @njit
        def add(out: Any, x: Any, y: Any) -> None:
            for i in prange(x.size):
                out[i] = x[i] + y[i]

        return into(self.out, add, self.out, self.x, self.y)

    def jax(self) -> Call:
        import jax

        x, y = map(jax.numpy.asarray, (self.x, self.y))
        add = jax.jit(lambda x, y: x + y)
        return lambda: add(x, y).block_until_ready()

    def c(self) -> Call:
        return into(self.out, bind("elementwise", "add", self.out, self.x, self.y, self.n))


@bl.jit
def triad_kernel(out, x, y, s, n, BLOCK: bl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out + offsets, tl.load(x + offsets, mask) + s * tl.load(y + offsets, mask), mask)


class Triad(Workload):
    """x + s * y, STREAM's third loop."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.x, self.y = random_floats(n), random_floats(n, seed=1)
        self.s = 3.0
        self.out = np.empty_like(self.x)
        self.work = Work(read=8 * n, written=4 * n)

    def exact(self) -> Array:
        return self.x + self.s * self.y.astype(np.float64)

    def blocklang(self) -> Call:
        grid = (bl.cdiv(self.n, BLOCK),)
        return into(
            self.out, lambda: triad_kernel[grid](self.out, self.x, self.y, self.s, self.n, BLOCK=BLOCK)
        )

    def numpy(self) -> Call:
        s = np.float32(self.s)

        def triad() -> None:
            np.multiply(self.y, s, out=self.out)
            np.add(self.out, self.x, out=self.out)

        return into(self.out, triad)

    def torch(self) -> Call:
        import torch

        x, y, out = map(torch.from_numpy, (self.x, self.y, self.out))
        return lambda: torch.add(x, y, alpha=self.s, out=out)

    def numba(self) -> Call:
        from benchmarks.numba_jit import njit, prange

        @njit
        def triad(out: Any, x: Any, y: Any, s: Any) -> None:
            for i in prange(x.size):
                out[i] = x[i] + s * y[i]

        return into(self.out, triad, self.out, self.x, self.y, np.float32(self.s))

    def jax(self) -> Call:
        import jax

        x, y = map(jax.numpy.asarray, (self.x, self.y))
        triad = jax.jit(lambda x, y, s: x + s * y)
        return lambda: triad(x, y, self.s).block_until_ready()

    def c(self) -> Call:
        return into(self.out, bind("elementwise", "triad", self.out, self.x, self.y, self.s, self.n))


@bl.jit
def gelu_kernel(out, x_ptr, y_ptr, z_ptr, n, BLOCK: bl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask)
    inner = 0.7978845608 * (x + 0.044715 * x * x * x)
    gelu = 0.5 * x * (1.0 + tl.tanh(inner))
    result = gelu * tl.load(y_ptr + offsets, mask) + tl.load(z_ptr + offsets, mask)
    tl.store(out + offsets, result, mask)


class Gelu(Workload):
    """gelu(x) * y + z with the tanh form of gelu."""

    tolerance = 2e-6

    def __init__(self, n: int) -> None:
        self.n = n
        self.x, self.y, self.z = (random_floats(n, seed=seed) for seed in range(3))
        self.out = np.empty_like(self.x)
        self.work = Work(read=12 * n, written=4 * n)

    def exact(self) -> Array:
        x = self.x.astype(np.float64)
        inner = np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)
        return 0.5 * x * (1 + np.tanh(inner)) * self.y + self.z

    def blocklang(self) -> Call:
        grid = (bl.cdiv(self.n, BLOCK),)
        return into(
            self.out,
            lambda: gelu_kernel[grid](self.out, self.x, self.y, self.z, self.n, BLOCK=BLOCK),
        )

    def numpy(self) -> Call:
        one, half, c, k = map(np.float32, (1, 0.5, np.sqrt(2 / np.pi), 0.044715))

        def gelu() -> None:
            x, out = self.x, self.out
            np.multiply(x, x, out=out)
            np.multiply(out, k, out=out)
            np.add(out, one, out=out)
            np.multiply(out, x, out=out)
            np.multiply(out, c, out=out)
            np.tanh(out, out=out)
            np.add(out, one, out=out)
            np.multiply(out, x, out=out)
            np.multiply(out, half, out=out)
            np.multiply(out, self.y, out=out)
            np.add(out, self.z, out=out)

        return into(self.out, gelu)

    def torch(self) -> Call:
        import torch

        x, y, z, out = map(torch.from_numpy, (self.x, self.y, self.z, self.out))
        gelu = torch.nn.functional.gelu
        return lambda: torch.addcmul(z, gelu(x, approximate="tanh"), y, out=out)

    def numba(self) -> Call:
        from benchmarks.numba_jit import njit, prange

        one, half, c, k = map(np.float32, (1, 0.5, np.sqrt(2 / np.pi), 0.044715))

        @njit
        def gelu(out: Any, x: Any, y: Any, z: Any) -> None:
            for i in prange(x.size):
                v = x[i]
                out[i] = half * v * (one + np.tanh(c * (v + k * v * v * v))) * y[i] + z[i]

        return into(self.out, gelu, self.out, self.x, self.y, self.z)

    def jax(self) -> Call:
        import jax

        x, y, z = map(jax.numpy.asarray, (self.x, self.y, self.z))
        gelu = jax.jit(lambda x, y, z: jax.nn.gelu(x, approximate=True) * y + z)
        return lambda: gelu(x, y, z).block_until_ready()

    def c(self) -> Call:
        return into(self.out, bind("elementwise", "gelu", self.out, self.x, self.y, self.z, self.n))


@bl.jit
def dropout_kernel(out, x_ptr, p, seed, n, BLOCK: bl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask)
    keep = tl.rand(seed, offsets) > p
    tl.store(out + offsets, tl.where(keep, x / (1 - p), 0.0), mask)


class Dropout(Workload):
    """Dropout by Philox 4x32-10 with the element's index as counter, as Triton's tutorial has it.

    Ours, Numba and C give the same numbers. NumPy (its own Philox), PyTorch and JAX draw from their own
    generators, as their users do: of these, only the share that is kept and the values are checked.
    """

    OTHER_GENERATORS = ("numpy", "torch", "jax")
    P = 0.25
    SEED = 1234

    def __init__(self, n: int) -> None:
        self.n = n
        self.x = random_floats(n)
        self.x[self.x == 0] = 1
        self.out = np.empty_like(self.x)
        self.work = Work(read=4 * n, written=4 * n)

    def exact(self) -> Array:
        kept = np.empty(self.n, bool)
        for start in range(0, self.n, 1 << 20):
            counters = np.arange(start, min(start + (1 << 20), self.n), dtype=np.uint64)
            kept[start : start + counters.size] = _philox_uniforms(counters, self.SEED) > np.float32(self.P)
        return np.where(kept, self.x / (1.0 - self.P), 0.0)

    def check(self, result: Any, exact: Array, peer: str) -> None:
        if peer not in self.OTHER_GENERATORS:
            super().check(result, exact, peer)
            return
        got = np.asarray(result)
        kept = got != 0
        scaled = self.x[kept] / (1 - self.P)
        assert np.allclose(got[kept], scaled, rtol=1e-6), "a kept number is not scaled"
        allowed = 5 * np.sqrt(self.P * (1 - self.P) / self.n)
        assert abs(kept.mean() - (1 - self.P)) <= allowed, f"{kept.mean():.3f} of the numbers are kept"

    def blocklang(self) -> Call:
        grid = (bl.cdiv(self.n, BLOCK),)
        return into(
            self.out,
            lambda: dropout_kernel[grid](self.out, self.x, self.P, self.SEED, self.n, BLOCK=BLOCK),
        )

    def numpy(self) -> Call:
        generator = np.random.Generator(np.random.Philox(self.SEED))
        uniform, p, scale = np.empty_like(self.x), np.float32(self.P), np.float32(1 / (1 - self.P))

        def dropout() -> None:
            generator.random(dtype=np.float32, out=uniform)
            np.multiply(self.x, scale, out=self.out)
            np.multiply(self.out, uniform > p, out=self.out)

        return into(self.out, dropout)

    def torch(self) -> Call:
        import torch

        x = torch.from_numpy(self.x)
        return lambda: torch.nn.functional.dropout(x, self.P)

    def numba(self) -> Call:
        from benchmarks.numba_jit import njit, prange

        @njit
        def dropout(out: Any, x: Any, p: Any, scale: Any, seed: Any) -> None:
            for i in prange(x.size):
                c0, c1, c2, c3 = np.uint32(i), np.uint32(0), np.uint32(0), np.uint32(0)
                k0, k1 = np.uint32(seed), np.uint32(0)
                for _ in range(10):
                    a = np.uint64(0xD2511F53) * np.uint64(c0)
                    b = np.uint64(0xCD9E8D57) * np.uint64(c2)
                    c0 = np.uint32(np.uint32(b >> np.uint64(32)) ^ c1 ^ k0)
                    c2 = np.uint32(np.uint32(a >> np.uint64(32)) ^ c3 ^ k1)
                    c1, c3 = np.uint32(b), np.uint32(a)
                    k0 = np.uint32(k0 + np.uint32(0x9E3779B9))
                    k1 = np.uint32(k1 + np.uint32(0xBB67AE85))
                word = np.int32(c0)
                if word < 0:
                    word = np.int32(~word)
                uniform = np.float32(word) * np.float32(4.6566127342e-10)
                out[i] = x[i] * scale if uniform > p else np.float32(0)

        p, scale = np.float32(self.P), np.float32(1 / (1 - self.P))
        return into(self.out, dropout, self.out, self.x, p, scale, self.SEED)

    def jax(self) -> Call:
        import jax

        @jax.jit
        def dropout(key: Any, x: Any) -> Any:
            kept = jax.random.bernoulli(key, 1 - self.P, x.shape)
            return jax.numpy.where(kept, x / (1 - self.P), 0)

        key, x = jax.random.key(self.SEED), jax.numpy.asarray(self.x)
        return lambda: dropout(key, x).block_until_ready()

    def c(self) -> Call:
        arguments = (self.out, self.x, self.P, self.SEED, self.n)
        return into(self.out, bind("elementwise", "dropout", *arguments))


def _philox_uniforms(counters: Array, seed: int) -> Array:
    """Uniform float32 of [0, 1): Philox 4x32-10 at these counters (uint64 below 2^32), seed below 2^32."""
    low, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    c0 = counters
    c1, c2, c3 = (np.zeros_like(counters) for _ in range(3))
    k0, k1 = seed, 0
    for _ in range(10):
        a, b = np.uint64(0xD2511F53) * c0, np.uint64(0xCD9E8D57) * c2
        c0, c2 = (b >> shift) ^ c1 ^ np.uint64(k0), (a >> shift) ^ c3 ^ np.uint64(k1)
        c1, c3 = b & low, a & low
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    words = c0.astype(np.uint32).view(np.int32)
    return np.where(words < 0, ~words, words).astype(np.float32) * np.float32(4.6566127342e-10)


ENTRIES = (
    Entry("add-16M", "vector add, 2^24", Add, {"n": 1 << 24}, {"n": 10_001}),
    Entry("add-64M", "vector add, 2^26", Add, {"n": 1 << 26}, {"n": 4095}),
    Entry("triad-16M", "triad, 2^24", Triad, {"n": 1 << 24}, {"n": 10_001}),
    Entry("triad-64M", "triad, 2^26", Triad, {"n": 1 << 26}, {"n": 4095}),
    Entry("gelu-16M", "gelu(x)*y+z, 2^24", Gelu, {"n": 1 << 24}, {"n": 10_001}),
    Entry("dropout-16M", "dropout with Philox, 2^24", Dropout, {"n": 1 << 24}, {"n": 10_001}),
)
