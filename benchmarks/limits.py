"""What this machine can do at most: measured by C in the same run as the workloads.

Bandwidth depends on where the data lie, so it is measured at several footprints; a workload is compared with
the smallest that holds its own data.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from benchmarks.native import compile_c
from benchmarks.workload import Work

_MIB = 1 << 20
FOOTPRINTS = (4 * _MIB, 16 * _MIB, 64 * _MIB, 256 * _MIB, 768 * _MIB)
_REPEATS = 5


@dataclass(frozen=True)
class Limits:
    """The machine's limits at one number of threads.

    Attributes:
        operations: operations a second, by their kind.
        read: bytes a second, by footprint in bytes: reading alone.
        triad: the same for a[i] = b[i] + s * c[i], the better of ordinary and streaming stores.
    """

    operations: Mapping[str, float]
    read: Mapping[int, float]
    triad: Mapping[int, float]

    def seconds(self, work: Work) -> float:
        """The least time that the work can take."""
        moved = work.read + work.written
        table = self.triad if work.written * 8 > work.read else self.read
        footprint = next((size for size in table if size >= moved), max(table))
        return max(moved / table[footprint], work.operations / self.operations[work.kind])

    def or_better(self, other: Limits) -> Limits:
        """The higher rate of each."""
        return Limits(
            _higher(self.operations, other.operations),
            _higher(self.read, other.read),
            _higher(self.triad, other.triad),
        )

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Limits:
        read, triad = ({int(size): rate for size, rate in data[key].items()} for key in ("read", "triad"))
        return cls(data["operations"], read, triad)


def _higher(first: Mapping[Any, float], second: Mapping[Any, float]) -> dict[Any, float]:
    return {key: max(first.get(key, 0), second.get(key, 0)) for key in (*first, *second)}


def measure_limits(largest: int) -> Limits:
    """Measure with OpenMP's threads: footprints up to the first that is at least `largest` bytes."""
    library = compile_c("limits")
    peaks = {kind: _best(getattr(library, f"peak_{kind}")) for kind in ("fp32", "int8")}
    sizes = [size for size in FOOTPRINTS if size < largest]
    sizes += [size for size in FOOTPRINTS if size >= largest][:1]
    arrays = np.ones(sizes[-1] // 4, np.float32)  # zeros would all be one page of the system's
    read, triad = {}, {}
    for size in sizes:
        count = ctypes.c_int64(size // 4)
        passes = ctypes.c_int64(max(1, 64 * _MIB // size))
        address = ctypes.c_void_p(arrays.ctypes.data)
        read[size] = _best(library.read_rate, address, count, passes)
        stores = (library.triad_rate, library.streaming_triad_rate)
        triad[size] = max(_best(store, address, count, passes) for store in stores)
    return Limits(peaks, read, triad)


def _best(measure: Any, *arguments: Any) -> float:
    measure.restype = ctypes.c_double
    return float(max(measure(*arguments) for _ in range(_REPEATS)))
