"""What a workload is: its inputs, its exact result, what it must at least move and compute, and its peers.

A workload is a subclass of `Workload`. `__init__` takes the sizes and makes the inputs, the same in every
process. A method with the name of a peer (`peers.PEERS`) returns the call that is timed: a function without
arguments that returns the result. A peer without such a method does not take part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Call = Callable[[], Any]

_STRETCH = 1 << 16
_DIFFERENT = 1 << 22


@dataclass(frozen=True)
class Work:
    """The least that any implementation must do, for the share of the machine's limit that it reaches.

    Attributes:
        read: bytes that must come from memory, each counted once.
        written: bytes that must go there.
        operations: arithmetic operations, a fused multiply-add counted as two; 0 if memory is the limit.
        kind: what the operations are, a name in `limits.Limits.operations`.
    """

    read: int
    written: int
    operations: int = 0
    kind: str = "fp32"


class Workload:
    """One computation with fixed inputs.

    Attributes:
        tolerance: the largest error allowed, relative to the exact value where that is above 1.
        is_relative_to_largest: relative to the largest exact value instead: for sums that cancel.
        work: what it must at least do; None where the machine sets no such limit.
    """

    tolerance: float = 1e-6
    is_relative_to_largest: ClassVar[bool] = False
    work: Work | None = None

    def exact(self) -> Array:
        """The result in float64, or in integers where it is one."""
        raise NotImplementedError

    def check(self, result: Any, exact: Array, peer: str) -> None:
        """Compare what a peer computed. Raises AssertionError with the error if it is too large."""
        got = _joined(result)
        assert got.shape == exact.shape, f"shape {got.shape}, expected {exact.shape}"
        if exact.dtype.kind in "iub":
            wrong = int(np.count_nonzero(got != exact))
            assert wrong == 0, f"{wrong} of {exact.size} numbers are wrong"
            return
        got, exact = got.reshape(-1), exact.reshape(-1)
        least = np.abs(exact).max(initial=1) if self.is_relative_to_largest else 1
        largest = 0.0
        for start in range(0, got.size, _STRETCH):  # the temporaries stay in the cache
            part = exact[start : start + _STRETCH]
            error = np.abs(got[start : start + _STRETCH] - part) / np.maximum(np.abs(part), least)
            largest = max(largest, float(error.max()))
        assert largest <= self.tolerance, f"error {largest:.2e}, allowed {self.tolerance:.0e}"


@dataclass(frozen=True)
class Entry:
    """One row of the table: a workload at given sizes.

    Attributes:
        name: what the command line calls it. What stands before its first hyphen is shared by its kin.
        title: what the table calls it.
        make: the class.
        sizes: keyword arguments of the class.
        small: sizes at which every peer takes no time, for the tests: odd ones.
    """

    name: str
    title: str
    make: Callable[..., Workload]
    sizes: Mapping[str, Any] = field(default_factory=dict)
    small: Mapping[str, Any] = field(default_factory=dict)

    @property
    def stem(self) -> str:
        return self.name.partition("-")[0]

    def build(self, *, small: bool) -> Workload:
        return self.make(**(self.small if small else self.sizes))


def _joined(result: Any) -> Array:
    """A result as one array; several arrays are flattened and joined."""
    if isinstance(result, tuple):
        return np.concatenate([np.asarray(part).ravel() for part in result])
    return np.asarray(result)


def into(out: Any, function: Callable[..., object], *arguments: Any) -> Call:
    """The call of a function that writes its result into `out`."""

    def call() -> Any:
        function(*arguments)
        return out

    return call


def random_floats(*shape: int, seed: int = 0) -> NDArray[np.float32]:
    """Normally distributed numbers, the same in every process; large arrays repeat the first 2^22."""
    size = math.prod(shape)
    numbers = np.random.default_rng([seed, *shape]).standard_normal(min(size, _DIFFERENT), dtype=np.float32)
    return np.resize(numbers, shape)
