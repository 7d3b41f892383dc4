"""The functions of `torch.cuda` for a device that is the CPU: nothing to wait for, one device, one stream.

What a script asks to choose sizes by is nominal, that of a GPU of compute capability 8.0.
"""

from __future__ import annotations

import os
import platform
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import torch

from blocklang.tune.clock import Event, Stream

CAPABILITY = (8, 0)


def _memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 2**34


def _properties(device: Any = None) -> SimpleNamespace:
    return SimpleNamespace(
        name=_name(),
        major=CAPABILITY[0],
        minor=CAPABILITY[1],
        total_memory=_memory(),
        multi_processor_count=os.cpu_count() or 1,
        warp_size=32,
        max_threads_per_multi_processor=2048,
        regs_per_multiprocessor=65536,
        shared_memory_per_block=49152,
        shared_memory_per_block_optin=166912,
        shared_memory_per_multiprocessor=167936,
        L2_cache_size=32 * 1024 * 1024,
        gcnArchName="",
        is_integrated=True,
    )


def _name(device: Any = None) -> str:
    return f"CPU ({platform.machine()}), by blocklang"


class _Device:
    """The context `torch.cuda.device(0)`."""

    def __init__(self, device: Any = None) -> None:
        self.idx = 0
        self.prev_idx = 0

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


class _TimedEvent(Event):
    """An event that scripts may make with `torch.cuda.Event(enable_timing=True)`."""


class _NoGraph:
    """Refuses to record a graph by name."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise NotImplementedError(
            "torch.cuda.CUDAGraph has no meaning where cuda means the CPU: call the function itself"
        )


@contextmanager
def _on_stream(stream: Any = None) -> Any:
    yield stream


def _nothing(*_: Any, **__: Any) -> None:
    return None


def _zero(*_: Any, **__: Any) -> int:
    return 0


def _seed(seed: int) -> None:
    torch.default_generator.manual_seed(int(seed))  # `torch.manual_seed` calls this one


def functions() -> dict[str, Any]:
    """What replaces the names of `torch.cuda`."""
    waits = (
        "synchronize",
        "empty_cache",
        "init",
        "ipc_collect",
        "set_device",
        "set_stream",
        "set_sync_debug_mode",
    )
    statistics = (
        *("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved"),
        *("memory_cached", "max_memory_cached"),
    )
    resets = ("reset_peak_memory_stats", "reset_max_memory_allocated", "reset_max_memory_cached")
    return {
        **dict.fromkeys((*waits, *resets, "_lazy_init", "_lazy_call"), _nothing),
        **dict.fromkeys((*statistics, "current_device", "utilization"), _zero),
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "is_bf16_supported": lambda including_emulation=True: True,
        "is_current_stream_capturing": lambda: False,
        "device_count": lambda: 1,
        "get_device_name": _name,
        "get_device_capability": lambda device=None: CAPABILITY,
        "get_device_properties": _properties,
        "get_arch_list": lambda: [f"sm_{CAPABILITY[0]}{CAPABILITY[1]}"],
        "mem_get_info": lambda device=None: (_memory(), _memory()),
        "memory_stats": lambda device=None: {},
        "memory_summary": lambda device=None, abbreviated=False: "",
        "current_stream": lambda device=None: Stream(),
        "default_stream": lambda device=None: Stream(),
        "stream": _on_stream,
        "device": _Device,
        "device_of": lambda tensor: nullcontext(),
        "Event": _TimedEvent,
        "Stream": Stream,
        "CUDAGraph": _NoGraph,
        "manual_seed": _seed,
        "manual_seed_all": _seed,
        "seed": torch.seed,
        "seed_all": torch.seed,
        "initial_seed": torch.initial_seed,
        "get_rng_state": lambda device="cuda": torch.get_rng_state(),
        "set_rng_state": lambda state, device="cuda": torch.set_rng_state(state),
    }
