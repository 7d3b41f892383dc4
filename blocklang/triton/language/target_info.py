"""`triton.language.target_info`: what a kernel is compiled for. It is always the CPU."""

from __future__ import annotations

from typing import Any

from blocklang.triton.backends.compiler import GPUTarget
from blocklang.triton.forwarding import forward


def current_target() -> GPUTarget:
    """The target that kernels are compiled for."""
    from blocklang.triton.runtime.driver import driver

    target: GPUTarget = driver.active.get_current_target()
    return target


_here = forward(__name__, "blocklang.language:target_info")[0]


def __getattr__(name: str) -> Any:
    return _here(name)
