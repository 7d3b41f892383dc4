"""Where kernels written for CUDA look for `libdevice`: the same functions, compiled for the CPU.

What asks for a GPU's parts is refused by name; waiting for the launch before this one has nothing to do.
"""

from __future__ import annotations

from typing import Any

from blocklang.diagnostics import CompilationError
from blocklang.language.extra.cuda import libdevice
from blocklang.language.registry import library_function

__all__ = ["gdc_launch_dependents", "gdc_wait", "libdevice"]

_REFUSED = {
    "num_threads": ("a program has no threads on the CPU", "count lanes with the extents of blocks"),
    "num_warps": (
        "a program has no warps on the CPU",
        "pass `num_warps` as a constexpr if the kernel needs it",
    ),
    "smid": ("a program is not bound to a processor on the CPU", "use `tl.program_id`"),
    "globaltimer": ("compiled code reads no clock", "measure launches, with `blocklang profile`"),
    "convert_custom_float8_sm70": ("it is PTX of one GPU", "write `x.to(dtype)`"),
    "convert_custom_float8_sm80": ("it is PTX of one GPU", "write `x.to(dtype)`"),
}


@library_function
def gdc_wait() -> None:
    """Nothing: a launch starts when the one before it has ended.

    Example:
        tl.extra.cuda.gdc_wait()
    """


@library_function
def gdc_launch_dependents() -> None:
    """Nothing; see `gdc_wait`.

    Example:
        tl.extra.cuda.gdc_launch_dependents()
    """


def __getattr__(name: str) -> Any:
    if name in _REFUSED:
        reason, advice = _REFUSED[name]
        raise CompilationError(f"`tl.extra.cuda.{name}` is not supported: {reason}", help=advice)
    raise AttributeError(f"blocklang.language.extra.cuda has no {name!r}")
