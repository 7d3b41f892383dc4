"""`tl.target_info`: what kernels ask about the machine. They are compiled for the CPU."""

from __future__ import annotations

from typing import Any

from blocklang.language.constexpr import static_int
from blocklang.language.registry import library_function


@library_function
def is_cuda() -> bool:
    """False: kernels run on the CPU.

    Example:
        FAST: tl.constexpr = tl.target_info.is_cuda()
    """
    return False


@library_function
def is_hip() -> bool:
    """False: kernels run on the CPU.

    Example:
        FAST: tl.constexpr = tl.target_info.is_hip()
    """
    return False


@library_function
def is_hip_cdna3() -> bool:
    """False: kernels run on the CPU.

    Example:
        FAST: tl.constexpr = tl.target_info.is_hip_cdna3()
    """
    return False


@library_function
def is_hip_cdna4() -> bool:
    """False: kernels run on the CPU.

    Example:
        FAST: tl.constexpr = tl.target_info.is_hip_cdna4()
    """
    return False


@library_function
def cuda_capability_geq(major: Any, minor: Any = 0) -> bool:
    """False: the CPU has no compute capability.

    Args:
        major, minor: a version.

    Example:
        FAST: tl.constexpr = tl.target_info.cuda_capability_geq(9, 0)
    """
    static_int(major, "major")
    static_int(minor, "minor")
    return False
