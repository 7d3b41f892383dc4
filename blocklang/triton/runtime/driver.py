"""`triton.runtime.driver`: the driver of the one device there is, the CPU."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from blocklang.target import current_target
from blocklang.triton.backends.compiler import GPUTarget
from blocklang.triton.backends.driver import DriverBase
from blocklang.tune import clock, do_bench

# What sources ask of a GPU to choose sizes by. Nominal: nothing here is limited by them.
_SHARED_MEMORY = 232448
_REGISTERS = 65536
_LANES = 32


class _Utilities:
    """`driver.active.utils`."""

    @staticmethod
    def get_device_properties(device: int = 0) -> dict[str, int]:
        """What sources choose sizes by: as many multiprocessors as there are CPUs, the rest as of a GPU."""
        return {
            "max_shared_mem": _SHARED_MEMORY,
            "max_num_regs": _REGISTERS,
            "multiprocessor_count": os.cpu_count() or 1,
            "warpSize": _LANES,
            "sm_clock_rate": 2_000_000,
            "mem_clock_rate": 2_000_000,
            "mem_bus_width": 128,
        }


class CpuInterface:
    """What a device module of PyTorch has, for the CPU."""

    Event = clock.Event
    Stream = clock.Stream

    @staticmethod
    def synchronize(device: Any = None) -> None:
        """Wait for every launch: all are over."""

    @staticmethod
    def current_device() -> int:
        """0: there is one."""
        return 0

    @staticmethod
    def device_count() -> int:
        """1."""
        return 1

    @staticmethod
    def current_stream(device: Any = None) -> clock.Stream:
        """The one stream."""
        return clock.Stream()

    @staticmethod
    def empty_cache() -> None:
        """There is no cache of memory."""

    @staticmethod
    def is_available() -> bool:
        """True."""
        return True


@lru_cache(maxsize=1)
def _target() -> GPUTarget:
    return GPUTarget("cpu", current_target().name, 1)


class CpuDriver(DriverBase):
    """The driver: its device is number 0, its streams are all one, and a launch is over when it returns."""

    def __init__(self) -> None:
        self.utils = _Utilities()
        self.get_current_stream: Callable[..., int] = lambda device=None: 0

    @staticmethod
    def is_active() -> bool:
        """True."""
        return True

    def get_current_target(self) -> GPUTarget:
        """The CPU that kernels are compiled for; its backend is "cpu"."""
        return _target()

    def get_current_device(self) -> int:
        """0: there is one."""
        return 0

    def set_current_device(self, device: int) -> None:
        """There is one."""

    def get_active_torch_device(self) -> Any:
        """`torch.device("cpu")`."""
        from blocklang.torch.device import cpu_device

        return cpu_device()

    def get_device_interface(self) -> Any:
        """What `torch.cuda` is for a GPU: events, streams, `synchronize`."""
        return CpuInterface

    def get_device_capability(self, device: Any = 0) -> tuple[int, int]:
        """(0, 0): no GPU of any kind."""
        return (0, 0)

    def get_benchmarker(self) -> Callable[..., Any]:
        """What an autotuner measures with: `triton.testing.do_bench`."""
        return do_bench

    def get_empty_cache_for_benchmark(self) -> bytearray:
        """Memory to clear between two calls, so that the second finds nothing in a cache."""
        return bytearray(32 * 1024 * 1024)

    def clear_cache(self, cache: Any) -> None:
        """Clear it."""
        cache[:] = bytes(len(cache))

    def map_python_to_cpp_type(self, ty: str) -> str:
        """The type in C of an argument."""
        if ty.startswith("*"):
            return "void*"
        sizes = {f"i{bits}": f"int{bits}_t" for bits in (8, 16, 32, 64)}
        sizes |= {f"u{bits}": f"uint{bits}_t" for bits in (8, 16, 32, 64)}
        return {**sizes, "i1": "int8_t", "u1": "uint8_t"}.get(ty, "double")


class DriverConfig:
    """`triton.runtime.driver`: the active driver, which a library may replace."""

    def __init__(self) -> None:
        self._default = CpuDriver()
        self._active: Any = None

    @property
    def default(self) -> CpuDriver:
        """The driver of this machine."""
        return self._default

    @property
    def active(self) -> Any:
        """The driver in use."""
        return self._active or self._default

    def set_active(self, driver: Any) -> None:
        """Use another."""
        self._active = driver

    def reset_active(self) -> None:
        """Use this machine's again."""
        self._active = None


driver = DriverConfig()
