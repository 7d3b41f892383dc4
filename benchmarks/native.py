"""The C peer: files of `benchmarks/c`, compiled by gcc at run time and called through ctypes.

Objects are kept in a directory of the user's cache, by the text that they come from and the CPU that they are
for.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

COMPILER = "gcc"
SOURCES = Path(__file__).with_name("c")
# The arithmetic may be reordered and errno stays unset, so that loops become vectors; as wide ones as there
# are, which gcc avoids on some CPUs (with 64 bytes softmax is 1.2, int8 gemv 1.9 times as fast as with 32).
_WIDE = ("-mprefer-vector-width=512",) if platform.machine() in ("x86_64", "AMD64") else ()
FLAGS = ("-O3", "-march=native", *_WIDE, "-fopenmp", "-ffast-math", "-fPIC")
# Linked without -ffast-math: with it, gcc before 13 adds code that makes the process that loads the library
# flush subnormals, in everything that it computes from then on.
LINK_FLAGS = ("-shared", "-fopenmp")


def compile_c(name: str) -> ctypes.CDLL:
    """The library made from `benchmarks/c/NAME.c`. Raises RuntimeError with gcc's messages."""
    source = SOURCES / f"{name}.c"
    text = b"".join(path.read_bytes() for path in sorted(SOURCES.glob("*.h")))
    key = hashlib.sha256(
        b"\0".join([text, source.read_bytes(), _compiler(), *map(str.encode, FLAGS + LINK_FLAGS)])
    )
    directory = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "blocklang-benchmarks"
    library = directory / f"{name}-{key.hexdigest()[:16]}.so"
    if not library.exists():
        directory.mkdir(parents=True, exist_ok=True)
        compile_file(source, library)
    return ctypes.CDLL(str(library))


def absence_of_compiler() -> str | None:
    """Why nothing can be compiled; None if it can."""
    if shutil.which(COMPILER) is None:
        return f"no {COMPILER} on the path"
    try:
        compile_c("launch")
    except RuntimeError as error:
        # On some systems gcc is another compiler, without OpenMP.
        return f"{COMPILER} cannot compile: {str(error).splitlines()[1]}"
    return None


def compiler_version() -> str:
    done = subprocess.run([COMPILER, "-dumpfullversion"], capture_output=True, text=True)
    return f"{COMPILER} {done.stdout.strip()}"


def compile_file(source: Path, library: Path) -> None:
    """Compile one file; the library appears whole or not at all."""
    with tempfile.TemporaryDirectory(dir=library.parent) as directory:
        objects, made = Path(directory) / "made.o", Path(directory) / "made.so"
        for command in (
            [COMPILER, *FLAGS, "-c", str(source), "-o", str(objects)],
            [COMPILER, *LINK_FLAGS, str(objects), "-o", str(made), "-lm"],
        ):
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError(f"{' '.join(command)}\n{done.stderr or 'no message'}")
        made.replace(library)


@functools.cache
def _compiler() -> bytes:
    """What `-march=native` means here: the compiler's own answer."""
    command = [COMPILER, "-march=native", "-Q", "--help=target", "--version"]
    return subprocess.run(command, capture_output=True).stdout


def bind(library: str, function: str, *arguments: Any) -> Any:
    """A call of a C function with these arguments: arrays by address, integers as int64, floats as float."""
    entry = getattr(compile_c(library), function)
    entry.restype = None
    converted = [_convert(argument) for argument in arguments]
    return functools.partial(entry, *converted)


def _convert(argument: NDArray[Any] | int | float) -> Any:
    if isinstance(argument, np.ndarray):
        assert argument.flags.c_contiguous
        return argument.ctypes.data_as(ctypes.c_void_p)  # which keeps the array alive
    return ctypes.c_float(argument) if isinstance(argument, float) else ctypes.c_int64(argument)
