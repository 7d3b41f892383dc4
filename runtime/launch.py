"""One launch of one loaded kernel: on the calling thread, or spread over the pool.

How it is decided, from the time that a program of this kernel took in earlier launches:
- a first launch runs one program alone and takes its time;
- if the rest takes less than `WAKE_NS`, waking workers costs more than it saves: the calling thread runs it;
- else the programs are cut into `CHUNKS_PER_THREAD` chunks per thread, none longer than `SIGNALS_NS`
  (so that an interrupt from the keyboard is seen soon).
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping
from time import perf_counter_ns

from blocklang.abi import SLOT_BYTES, KernelAbi
from blocklang.diagnostics import LaunchError
from blocklang.runtime.arena import scratch_address
from blocklang.runtime.arrays import Array
from blocklang.runtime.events import EventLog, Fault
from blocklang.runtime.grids import Grid
from blocklang.runtime.loader import LoadedObject
from blocklang.runtime.pool import Job, shared_pool

WAKE_NS = 100_000
CHUNKS_PER_THREAD = 16
SIGNALS_NS = 20_000_000

_ENTRY = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
)


class LoadedKernel:
    """A compiled kernel in memory, ready to be launched.

    Attributes:
        abi: its arguments and scratch.
        entry: address of its entry.
        program_ns: nanoseconds of one program, from earlier launches; NaN before the first. A C double, as
            native launches keep it up to date too.
    """

    def __init__(self, abi: KernelAbi, object_code: bytes) -> None:
        self.abi = abi
        self._object = LoadedObject(object_code, [abi.name])
        self.entry = self._object.address(abi.name)
        self._call = _ENTRY(self.entry)
        self.program_ns = ctypes.c_double(math.nan)

    def launch(
        self,
        slots: bytes,
        grid: Grid,
        threads: int,
        arrays: Mapping[str, Array] | None = None,
        found: list[Fault] | None = None,
    ) -> None:
        """Run every program of the grid and return when all have ended.

        Args:
            slots: the arguments as `abi` lays them out. What they point to must stay alive until the return.
            grid: three extents, each at least 0.
            threads: how many threads may work.
            arrays: the arrays behind the arguments, by name, for what a check says.
            found: takes what checks found, instead of raising the first.

        Raises:
            LaunchError: there is not enough memory for the blocks of one program.
            DeviceAssertionError: an assertion of a program did not hold.
            CheckError: a check of a program found a fault.
        """
        total = math.prod(grid)
        if total == 0:
            return
        self._reserve_scratch()
        if not self.abi.events:
            self._run(slots, grid, total, threads)
            return
        log = EventLog(self.abi.events, grid, arrays)
        try:
            self._run(slots + log.address.to_bytes(SLOT_BYTES, "little"), grid, total, threads)
        finally:
            log.finish(found)

    def _run(self, slots: bytes, grid: Grid, total: int, threads: int) -> None:
        arguments = ctypes.create_string_buffer(slots, max(len(slots), 1))
        address = ctypes.addressof(arguments)
        begin = 0
        if math.isnan(self.program_ns.value):
            self._run_here(address, grid, 0, 1)
            begin = 1
        expected = self.program_ns.value * (total - begin)
        if expected < WAKE_NS:
            self._run_here(address, grid, begin, total)
        else:
            self._run_on_pool(address, grid, begin, total, threads)

    def _reserve_scratch(self) -> None:
        try:
            scratch_address(self.abi.scratch_bytes)
        except MemoryError:
            from blocklang.target import format_size

            largest = max(self.abi.buffers, key=lambda buffer: buffer.bytes)
            block = largest.type.replace("buffer", "block", 1)
            raise LaunchError(
                f"a program of this kernel keeps {format_size(self.abi.scratch_bytes)} in memory, "
                f"more than there is; the largest block is `{largest.name.removesuffix('_buf')}`, {block}",
                help="use smaller blocks: a larger grid, or a loop over parts",
            ) from None

    def _run_here(self, arguments: int, grid: Grid, begin: int, end: int) -> None:
        if begin == end:
            return
        extents = (ctypes.c_int32 * 3)(*grid)
        scratch = scratch_address(self.abi.scratch_bytes)
        start = perf_counter_ns()
        self._call(arguments, ctypes.addressof(extents), begin, end, scratch)
        self._learn(perf_counter_ns() - start, end - begin)

    def _run_on_pool(self, arguments: int, grid: Grid, begin: int, total: int, threads: int) -> None:
        programs = total - begin
        threads = min(threads, programs)
        chunk = max(1, programs // (threads * CHUNKS_PER_THREAD))
        chunk = max(1, min(chunk, int(SIGNALS_NS / self.program_ns.value)))
        burst = max(1, int(SIGNALS_NS / (self.program_ns.value * chunk)))
        job = Job(self.entry, arguments, grid, begin, total, chunk, burst, self.abi.scratch_bytes)
        start = perf_counter_ns()
        shared_pool().run(job, threads)
        self._learn((perf_counter_ns() - start) * threads, programs)

    def _learn(self, nanoseconds: int, programs: int) -> None:
        """Average a measured time with what was known, so that one disturbed launch is soon forgotten."""
        measured = max(nanoseconds, 1) / programs
        known = self.program_ns.value
        self.program_ns.value = measured if math.isnan(known) else (measured + known) / 2
