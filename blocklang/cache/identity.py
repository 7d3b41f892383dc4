"""What compiled an entry: with another compiler, or for another CPU, there is another key.

blocklang's own sources count by their content, so that a developer's edit is another compiler. It takes 3 ms
once per process.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec

import numpy as np

from blocklang.target.host import host_identity

# Rooms that no compiled code depends on.
NO_COMPILERS = frozenset({"cli", "interpreter", "torch", "triton", "tune"})


@functools.cache
def compiler_identity() -> str:
    """A digest of everything besides the kernel that decides what its object code is; the same in every
    process on this machine.
    """
    digest = hashlib.sha256()
    for part in (sys.version, sys.platform, np.__version__, host_identity(), *_llvm()):
        digest.update(part.encode() + b"\0")
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for name, path in sorted(_sources(package)):
        source = _content(path)
        digest.update(f"{name} {len(source)}\0".encode() + source)
    return digest.hexdigest()


def _sources(directory: str, name: str = "") -> Iterator[tuple[str, str]]:
    """Every source file below a directory: its name in the package, and its path."""
    with os.scandir(directory) as found:
        for item in found:
            if item.name.endswith((".py", ".toml")):
                yield name + item.name, item.path
            elif item.is_dir() and item.name != "__pycache__" and name + item.name not in NO_COMPILERS:
                yield from _sources(item.path, f"{name}{item.name}/")


def _content(path: str) -> bytes:
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))  # half the time of `open`
    try:
        return os.read(handle, os.fstat(handle).st_size)
    finally:
        os.close(handle)


def _llvm() -> Iterator[str]:
    """llvmlite's version, and which library file holds LLVM: found without importing it."""
    spec = find_spec("llvmlite")
    if spec is None or spec.origin is None:
        return
    directory = os.path.dirname(spec.origin)
    with open(os.path.join(directory, "_version.py"), encoding="utf-8") as file:
        yield file.read()
    with os.scandir(os.path.join(directory, "binding")) as found:
        for item in found:
            if "llvmlite" in item.name:
                status = item.stat()
                yield f"{item.name} {status.st_size} {status.st_mtime_ns}"
