"""The C compiler that links a library: the system's, or the one in the package `ziglang`."""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from blocklang.diagnostics import BlocklangError, UsageError

NAMES = ("cc", "gcc", "clang")
_SHOWN_LINES = 12  # of what a failing compiler says: the first one is the cause


class LinkError(BlocklangError):
    """The C compiler failed."""


def find_linker() -> list[str]:
    """The command of a C compiler: `CC` from the environment, cc, gcc or clang, else ziglang's.

    Raises:
        UsageError: there is none.
    """
    named = shlex.split(os.environ.get("CC", ""))
    if named:
        if shutil.which(named[0]) is None:
            raise UsageError(
                f"there is no C compiler {named[0]!r}, which CC names", help="correct CC, or unset it"
            )
        return named
    for name in NAMES:
        found = shutil.which(name)
        if found is not None:
            return [found]
    if importlib.util.find_spec("ziglang") is not None:
        return [sys.executable, "-m", "ziglang", "cc"]
    raise UsageError(
        f"found no C compiler to link with: neither {', '.join(NAMES)} nor the package ziglang",
        help="install one (Debian: apt install gcc), or pip install 'blocklang[build]', which brings ziglang",
    )


def link(command: Sequence[str], source: Path, objects: Sequence[Path], exported: Path, output: Path) -> None:
    """Compile the C source and link it with the objects to a shared library.

    Args:
        command: the C compiler.
        exported: a linker script that says which symbols are visible.

    Raises:
        LinkError: it failed; the message has what it printed.
    """
    full = [
        *command,
        *("-std=gnu11", "-O2", "-fPIC", "-shared", "-pthread", "-Wall"),
        *("-o", str(output), str(source), *map(str, objects)),
        f"-Wl,--version-script={exported}",
        f"-Wl,-soname,{output.name}",
        "-Wl,-z,defs",
        "-lm",
    ]
    try:
        done = subprocess.run(full, capture_output=True, text=True, errors="replace")
    except OSError as error:
        raise LinkError(f"cannot run {command[0]}: {error.strerror}", help=_REMEDY) from error
    if done.returncode != 0:
        said = "\n".join((done.stderr or done.stdout).strip().splitlines()[:_SHOWN_LINES])
        raise LinkError(f"{shlex.join(command)} failed with status {done.returncode}:\n{said}", help=_REMEDY)


_REMEDY = "try another C compiler: CC=clang blocklang build ..., or pip install 'blocklang[build]'"
