"""`@jit`: a Python function that is specialised, compiled once per specialisation, and launched on a grid.

    parameters       what a kernel's signature says; binding the arguments of a launch to it
    specialisation   what code is compiled for: types and facts of the arguments, values of constants
    aliasing         how the memory of the arrays overlaps
    writing          which arguments a kernel writes
    capture          the globals and closure variables that a kernel reads
    options          the keywords of a launch that are not the kernel's
    function         `JITFunction`: the cache of compiled kernels and the launch
    interface        what can be launched: kernels, and what wraps one
    interpreting     a launch in interpreter mode
    identity         what a kernel is, as a digest that is the same in every process
    shelf            its compiled forms on disk; `stored` is their description
    building         its frontend and compiler, imported when something has to be compiled
    native           warm launches without Python: tables for the native launcher
    recording        what was launched, for tools
    checking         launches that look for everything that is wrong with a kernel
    emulating        launches that are counted and timed on a device that is not here
    emulated_process the same for all launches of a process, if BLOCKLANG_DEVICE is set

The language is `blocklang.language`, the compiler `blocklang.compiler`, threads and arrays are
`blocklang.runtime`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from blocklang.jit.function import JITFunction, jit
from blocklang.jit.interface import KernelInterface, MockTensor
from blocklang.jit.recording import Launch, record_launches
from blocklang.jit.specialisation import Specialisation
from blocklang.lazy import on_demand

if TYPE_CHECKING:
    from blocklang.jit.checking import check_launches
    from blocklang.jit.emulating import emulate

__all__ = [
    "JITFunction",
    "KernelInterface",
    "Launch",
    "MockTensor",
    "Specialisation",
    "check_launches",
    "emulate",
    "jit",
    "record_launches",
]

__getattr__ = on_demand(
    __name__,
    {"check_launches": "blocklang.jit.checking", "emulate": "blocklang.jit.emulating"},
)

if os.environ.get("BLOCKLANG_DEVICE"):
    from blocklang.jit.emulated_process import emulate_process

    emulate_process()
