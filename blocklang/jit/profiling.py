"""Launches that count what they move on an emulated device.

Inside `profile_launches` a launch runs a counted version of its kernel: the same machine code over the same
memory plan, with counters. Results are those of the plain launch, bit for bit. Counted kernels are compiled
when they are first launched and kept as long as the context; they run on one thread, as programs share the
counters.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from blocklang.abi import SLOT_BYTES
from blocklang.jit.recording import Launch, replace_launches
from blocklang.jit.specialisation import slots_of
from blocklang.runtime.launch import LoadedKernel
from blocklang.runtime.profile import Profile
from blocklang.target import Device

if TYPE_CHECKING:
    from blocklang.compiler import CountedKernel


@contextmanager
def profile_launches(device: Device) -> Iterator[Profile]:
    """Count what every launch of this process moves on `device` while the context lasts.

    with profile_launches(find_device("trn2")) as profile:
        main()
    print(profile.to_dict())

    A launch raises CompilationError if its kernel does not fit the device.
    """
    profiler = _Profiler(Profile(device))
    with replace_launches(profiler.run):
        yield profiler.profile


@dataclass(frozen=True)
class _Counted:
    """A counted version in memory, and the plain one that it stands for, kept so that its id stays taken."""

    plain: Any
    kernel: CountedKernel
    loaded: LoadedKernel


class _Profiler:
    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self._lock = threading.Lock()
        self._versions: dict[int, _Counted] = {}

    def run(self, launch: Launch) -> None:
        with self._lock:
            counted = self._version(launch)
        counters = np.zeros(counted.kernel.counts.counters, np.int64)
        # A launch in debug mode has the ends of its arrays, too; here nothing is checked.
        given = launch.slots[: counted.kernel.abi.argument_bytes - SLOT_BYTES]
        slots = given + slots_of([counters.ctypes.data])
        counted.loaded.launch(slots, launch.grid, threads=1)
        with self._lock:
            self.profile.add(
                launch.function.__name__,
                launch.function.location,
                launch.grid,
                counted.kernel.counts,
                counted.kernel.usage,
                counters.tolist(),
            )

    def _version(self, launch: Launch) -> _Counted:
        from blocklang.compiler import compile_counted  # loads llvmlite

        known = self._versions.get(id(launch.compiled))
        if known is None:
            kernel = compile_counted(launch.compiled.source, self.profile.device)
            known = _Counted(launch.compiled, kernel, LoadedKernel(kernel.abi, kernel.object_code))
            self._versions[id(launch.compiled)] = known
        return known
