"""Kernels ahead of time: a shared library, its C header, and a wheel that loads it without blocklang.

    prototype   the C function: names, types, what each argument promises
    library     the kernel for every CPU level and alias class, linked with the launcher
    launch.c    the launcher: level, threads, scratch memory
    source      what is generated behind it: the C functions and the table of levels
    header      the C header
    linker      the C compiler that links
    wheel       the Python package
    loading     the module of that package that calls the library; it imports NumPy alone

The C function takes addresses and no extents, so it cannot know whether arrays overlap: it is right for
arrays anywhere, and a second one is for arrays that do not overlap. The Python package, which sees the
extents, chooses.

Not here: command-line options (`blocklang.cli.build`), and any pass: a library holds what `compile_kernel`
gives.
"""

from __future__ import annotations

from blocklang.aot.library import Library, build_library
from blocklang.aot.linker import find_linker
from blocklang.aot.wheel import build_wheel

__all__ = ["Library", "build_library", "build_wheel", "find_linker"]
