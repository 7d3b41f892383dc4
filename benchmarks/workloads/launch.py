"""What a warm launch costs: of nothing, of very little work, and through `autotune`."""

from __future__ import annotations

from typing import Any

import numpy as np

import blocklang as bl
import blocklang.language as tl
from benchmarks.native import bind
from benchmarks.workload import Array, Call, Entry, Workload, into, random_floats


@bl.jit
def empty_kernel():
    pass


class LaunchEmpty(Workload):
    """A call that does nothing."""

    def exact(self) -> Array:
        return np.zeros(())

    def check(self, result: Any, exact: Array, peer: str) -> None:
        """There is no result."""

    def blocklang(self) -> Call:
        return lambda: empty_kernel[(1,)]()

    def numba(self) -> Call:
        import numba

        @numba.njit
        def nothing() -> None:
            pass

        call: Call = nothing
        return call

    def jax(self) -> Call:
        import jax

        nothing = jax.jit(lambda: 0)
        return lambda: nothing().block_until_ready()

    def c(self) -> Call:
        call: Call = bind("launch", "nothing")
        return call


@bl.jit
def add_kernel(out, x, y, n, BLOCK: bl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out + offsets, tl.load(x + offsets, mask) + tl.load(y + offsets, mask), mask)


tuned_add_kernel = bl.autotune(
    configs=[bl.Config({"BLOCK": block}) for block in (256, 512, 1024, 2048)], key=["n"]
)(add_kernel)


class LaunchAdd(Workload):
    """x + y of a thousand numbers: three arrays, one integer, one constant."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.x, self.y = random_floats(n), random_floats(n, seed=1)
        self.out = np.empty_like(self.x)

    def exact(self) -> Array:
        return self.x.astype(np.float64) + self.y

    def blocklang(self) -> Call:
        out, x, y, n = self.out, self.x, self.y, self.n
        grid = (bl.cdiv(n, 1024),)
        return into(out, lambda: add_kernel[grid](out, x, y, n, BLOCK=1024))

    def numpy(self) -> Call:
        out, x, y = self.out, self.x, self.y
        return lambda: np.add(x, y, out=out)

    def torch(self) -> Call:
        import torch

        x, y, out = map(torch.from_numpy, (self.x, self.y, self.out))
        return lambda: torch.add(x, y, out=out)

    def numba(self) -> Call:
        import numba

        @numba.njit(fastmath=True)
        def add(out: Any, x: Any, y: Any) -> None:
            for i in range(x.size):
                out[i] = x[i] + y[i]

        return into(self.out, add, self.out, self.x, self.y)

    def jax(self) -> Call:
        import jax

        x, y = map(jax.numpy.asarray, (self.x, self.y))
        add = jax.jit(lambda x, y: x + y)
        return lambda: add(x, y).block_until_ready()

    def c(self) -> Call:
        return into(self.out, bind("launch", "add_few", self.out, self.x, self.y, self.n))


class LaunchTuned(LaunchAdd):
    """The same through `autotune`, which has chosen already."""

    def blocklang(self) -> Call:
        out, x, y, n = self.out, self.x, self.y, self.n

        def grid(meta: dict[str, int]) -> tuple[int]:
            return (bl.cdiv(n, meta["BLOCK"]),)

        return into(out, lambda: tuned_add_kernel[grid](out, x, y, n))


ENTRIES = (
    Entry("launch-empty", "launch of nothing", LaunchEmpty),
    Entry("launch-add", "launch, 3 arrays of 1 Ki", LaunchAdd, {"n": 1024}, {"n": 100}),
    Entry("launch-tuned", "launch through autotune, 3 arrays of 1 Ki", LaunchTuned, {"n": 1024}, {"n": 100}),
)
