"""Launches that are emulated on a device: counted, and timed.

Inside `emulate` a launch runs a counted version of its kernel: the same machine code over the same memory
plan, with counters. Results are those of the plain launch, bit for bit. Counted kernels are compiled when
they are first launched and kept as long as the context, as are times: a launch that does what an earlier one
did has its time.
"""

from __future__ import annotations

import hashlib
import math
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from blocklang.abi import SLOT_BYTES, KernelAbi
from blocklang.emulation.estimate import Estimate, Run, estimate_launch
from blocklang.emulation.placement import Placement, place_blocks
from blocklang.emulation.profile import Profile
from blocklang.ir.types import PointerType
from blocklang.jit.recording import Launch, replace_launches
from blocklang.jit.residence import require_arrays_on
from blocklang.jit.specialisation import slots_of
from blocklang.runtime.arrays import numpy_dtype
from blocklang.runtime.device_memory import check_memory_of
from blocklang.runtime.launch import LoadedKernel
from blocklang.runtime.threads import get_num_threads
from blocklang.target import Device, device_given, format_size

if TYPE_CHECKING:
    from blocklang.compiler import CountedKernel

MOST_COUNTERS = 2**32  # bytes of the counters of a launch
EVENTS = 4000  # instructions of a launch that are kept for its timeline


@contextmanager
def emulate(
    device: Device | str | os.PathLike[str],
    *,
    strict: bool = False,
    events: int = EVENTS,
    only_runs: bool = False,
) -> Iterator[Profile]:
    """Emulate every launch of this process on a device while the context lasts.

        with bl.emulate("trn2") as run:
            kernel[grid](x, y, n)
        print(run)

    Launches give the results that they give without it, and what they move and how long they would take is in
    the profile: `run.seconds`, `run.to_dict()`, `print(run)`, `run.save("run.html")`.

    Args:
        device: a device, its name, or the path of a description file.
        strict: refuse arrays of the host; otherwise they are taken as the device's where they lie.
        events: how many instructions of a launch are kept for its timeline.
        only_runs: keep what was counted, to be timed on devices later, and ask nothing of this one.

    Raises:
        UsageError: there is no such device.
        CompilationError: from a launch whose kernel does not fit the device.
        LaunchError: from a launch with an array of another device, or of the host if this is strict.
        DeviceMemoryError: at the end, if something was written beside an array of the device.
    """
    found = device_given(device)
    emulator = _Emulator(Profile(found), events, only_runs)

    def run(launch: Launch) -> None:
        require_arrays_on(found.name, launch, strict)
        emulator.run(launch)

    with replace_launches(run, measured=False):
        yield emulator.profile
    check_memory_of(found.name)


@dataclass
class _Counted:
    """A counted version in memory, and the plain one that it stands for, kept so that its id stays taken."""

    plain: Any
    kernel: CountedKernel
    loaded: LoadedKernel
    placement: Placement
    estimates: dict[tuple[object, ...], Estimate] = field(default_factory=dict)


class _Emulator:
    def __init__(self, profile: Profile, events: int, only_runs: bool) -> None:
        self.profile = profile
        self.device = profile.device
        self.events = events
        self.only_runs = only_runs
        self._lock = threading.Lock()
        self._versions: dict[int, _Counted] = {}

    def run(self, launch: Launch) -> None:
        with self._lock:
            counted = self._version(launch)
        counters = _counters(launch, counted.kernel.counts.counters)
        slots = launch.slots + slots_of([counters.ctypes.data])
        arrays = launch.arrays if counted.kernel.abi.bounds else None
        counted.loaded.launch(slots, launch.grid, launch.threads or get_num_threads(), arrays)
        run = _run_of(launch, counted.kernel, counters)
        with self._lock:
            self.profile.add(
                launch.function.__name__,
                launch.function.location,
                launch.grid,
                counted.kernel.counts,
                counted.placement.usage,
                counters.sum(axis=0).tolist(),
                None if self.only_runs else self._estimate(counted, run),
                run if self.only_runs else None,
                placement=counted.placement,
                block=None if self.only_runs else counted.kernel.block,
            )

    def _version(self, launch: Launch) -> _Counted:
        from blocklang.compiler import compile_counted  # loads llvmlite

        known = self._versions.get(id(launch.compiled))
        if known is None:
            options = launch.specialisation.switches.compile_options()
            kernel = compile_counted(launch.compiled.source, self.device, options=options)
            placement = _NOWHERE if self.only_runs else place_blocks(kernel.block, self.device)
            loaded = LoadedKernel(kernel.abi, kernel.object_code)
            known = _Counted(launch.compiled, kernel, loaded, placement)
            self._versions[id(launch.compiled)] = known
        return known

    def _estimate(self, counted: _Counted, run: Run) -> Estimate | None:
        if not self.device.is_timed or not len(run.rows):
            return None
        facts = (tuple(run.arguments.items()), run.grid, tuple(run.options.items()))
        key = (*facts, hashlib.blake2b(run.rows.data, digest_size=16).digest())
        known = counted.estimates.get(key)
        if known is None:
            versions = counted.placement.versions
            known = estimate_launch(run, self.device, versions=versions, events=self.events)
            counted.estimates[key] = known
        return known


def _counters(launch: Launch, counters: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """A row of zeros for each program.

    Raises:
        LaunchError: there are more than memory should hold.
    """
    programs = math.prod(launch.grid)
    if (size := 8 * programs * counters) > MOST_COUNTERS:
        most = MOST_COUNTERS // (8 * counters)
        raise launch.function.signature.error(
            f"{programs:,} programs are too many to be emulated: their counters take {format_size(size)}",
            f"launch a part of the grid: at most {most:,} programs of this kernel at once",
        )
    return np.zeros((programs, counters), np.int64)


_NOWHERE = Placement((), (), {})


def _run_of(launch: Launch, kernel: CountedKernel, counters: np.ndarray[Any, Any]) -> Run:
    options = {n: v for n, v in launch.options.items() if n in ("num_warps", "num_stages")}
    arguments = _scalars(kernel.abi, launch.slots)
    return Run(kernel.block, kernel.counts, counters, arguments, launch.grid, options)


def _scalars(abi: KernelAbi, slots: bytes) -> Mapping[str, Any]:
    """The numbers among the arguments of a launch, by name."""
    found = {}
    for number, (name, type_) in enumerate(zip(abi.argument_names, abi.argument_types, strict=True)):
        slot = slots[number * SLOT_BYTES : (number + 1) * SLOT_BYTES]
        if not isinstance(type_, PointerType) and type_.is_integer and slot:
            found[name] = np.frombuffer(slot, numpy_dtype(type_), 1)[0].item()
    return found
