"""Lanes that part ways: escape times of the Mandelbrot set."""

from __future__ import annotations

from typing import Any

import numpy as np

import blocklang as bl
import blocklang.language as tl
from benchmarks.native import bind
from benchmarks.workload import Array, Call, Entry, Work, Workload, into

LEFT, TOP, EXTENT = -2.0, -1.25, 2.5


@bl.jit
def escape(cx, cy, steps):
    x, y, count = 0.0, 0.0, 0
    while count < steps and x * x + y * y <= 4.0:
        x, y = x * x - y * y + cx, 2.0 * x * y + cy
        count += 1
    return count


@bl.jit
def mandelbrot_kernel(out, left, top, step, n, steps, BLOCK: bl.constexpr):
    row = tl.program_id(1)
    cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    counts = tl.map_elementwise(
        escape, left + step * cols.to(tl.float32), top + step * row.to(tl.float32), steps
    )
    tl.store(out + row * n + cols, counts, cols < n)


class Mandelbrot(Workload):
    """How many steps each point of a square takes to leave the circle of radius 2.

    At the border of the set rounding decides, so a small share of the points may differ from float64.
    """

    ALLOWED = 0.02

    def __init__(self, n: int, steps: int) -> None:
        self.n, self.steps = n, steps
        self.step = EXTENT / n
        self.out = np.empty((n, n), np.int32)
        # Ten operations a step; the points are not alike, so their number is counted.
        self._counts = self._in_numpy(np.float64)
        self.work = Work(0, self.out.nbytes, 10 * int(self._counts.sum()))

    def exact(self) -> Array:
        return self._counts

    def check(self, result: Any, exact: Array, peer: str) -> None:
        share = np.mean(np.asarray(result) != exact)
        assert share <= self.ALLOWED, f"{share:.1%} of the points differ, allowed {self.ALLOWED:.0%}"

    def _in_numpy(self, dtype: Any) -> Array:
        """The points that are still inside move together, and leave the arrays as they leave the circle."""
        places = np.arange(self.n).astype(dtype)
        cx = np.tile(dtype(LEFT) + dtype(self.step) * places, self.n)
        cy = np.repeat(dtype(TOP) + dtype(self.step) * places, self.n)
        x, y = np.zeros_like(cx), np.zeros_like(cy)
        counts = np.zeros(cx.size, np.int32)
        index = np.arange(cx.size)
        for _ in range(self.steps):
            xx, yy = x * x, y * y
            inside = xx + yy <= 4
            if not inside.all():
                index, cx, cy, x, y = (array[inside] for array in (index, cx, cy, x, y))
                xx, yy = xx[inside], yy[inside]
            counts[index] += 1
            y = (x + x) * y + cy
            x = xx - yy + cx
        return counts.reshape(self.n, self.n)

    def blocklang(self) -> Call:
        grid = (bl.cdiv(self.n, 256), self.n)

        def launch() -> None:
            # Products and sums fuse, as they do in C and, by default, in Triton.
            mandelbrot_kernel[grid](
                *(self.out, LEFT, TOP, self.step, self.n, self.steps), BLOCK=256, enable_fp_fusion=True
            )

        return into(self.out, launch)

    def numpy(self) -> Call:
        return lambda: self._in_numpy(np.float32)

    def numba(self) -> Call:
        from benchmarks.numba_jit import njit, prange

        @njit
        def mandelbrot(out: Any, left: Any, top: Any, step: Any, steps: Any) -> None:
            n = out.shape[0]
            for r in prange(n):
                for c in range(n):
                    cx, cy = left + step * np.float32(c), top + step * np.float32(r)
                    x, y, count = np.float32(0), np.float32(0), 0
                    while count < steps and x * x + y * y <= np.float32(4):
                        x, y = x * x - y * y + cx, (x + x) * y + cy
                        count += 1
                    out[r, c] = count

        left, top, step = map(np.float32, (LEFT, TOP, self.step))
        return into(self.out, mandelbrot, self.out, left, top, step, self.steps)

    def jax(self) -> Call:
        import jax

        jnp = jax.numpy

        @jax.jit
        def mandelbrot() -> Any:
            places = jnp.arange(self.n, dtype="float32") * jnp.float32(self.step)
            cx, cy = jnp.float32(LEFT) + places[None, :], jnp.float32(TOP) + places[:, None]

            def step(_: Any, state: Any) -> Any:
                x, y, counts = state
                xx, yy = x * x, y * y
                return xx - yy + cx, (x + x) * y + cy, counts + (xx + yy <= 4)

            zeros = jnp.zeros((self.n, self.n), "float32")
            return jax.lax.fori_loop(0, self.steps, step, (zeros, zeros, zeros.astype("int32")))[2]

        return lambda: mandelbrot().block_until_ready()

    def c(self) -> Call:
        arguments = (self.out, LEFT, TOP, self.step, self.step, self.n, self.steps)
        return into(self.out, bind("control", "mandelbrot", *arguments))


ENTRIES = (
    Entry(
        "mandelbrot",
        "Mandelbrot 1024^2, 256 steps",
        Mandelbrot,
        {"n": 1024, "steps": 256},
        {"n": 70, "steps": 50},
    ),
)
