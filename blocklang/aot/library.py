"""From the Block IR of a kernel to a shared library and its header."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from blocklang.aot.header import write_header
from blocklang.aot.linker import find_linker, link
from blocklang.aot.prototype import Prototype, check_name, describe
from blocklang.aot.source import Version, write_source
from blocklang.compiler import CompiledKernel, CompileOptions, compile_kernel
from blocklang.diagnostics import CompilationError, UsageError
from blocklang.ir.core import Kernel
from blocklang.jit.building import with_alias
from blocklang.ops.events import DevicePrint, Event
from blocklang.target import X86_LEVELS, target_for

HOST = "host"
DEFAULT_LEVELS = X86_LEVELS[1:]
ALIASES = ("disjoint", "unknown")  # in the order of `struct version`


class Library(NamedTuple):
    """What was built.

    Attributes:
        prototype: the C function.
        shared: the shared library.
        header: its C header.
        levels: the CPU levels in it, ascending.
        compiled: the kernel by level and alias class.
    """

    prototype: Prototype
    shared: Path
    header: Path
    levels: tuple[str, ...]
    compiled: Mapping[tuple[str, str], CompiledKernel]


def available_levels() -> tuple[str, ...]:
    """The levels that a library can be built for on this machine."""
    return X86_LEVELS if platform.machine() in ("x86_64", "AMD64") else (HOST,)


def build_library(
    kernel: Kernel,
    directory: Path,
    *,
    name: str,
    levels: Sequence[str],
    options: CompileOptions,
    constants: Mapping[str, Any],
    origin: str,
    document: str | None = None,
) -> Library:
    """Compile a kernel of level block for each level and write lib`name`.so and `name`.h into `directory`.

    Args:
        levels: of `available_levels()`, each once.
        options: how it is compiled; the target is each level's.
        constants, origin, document: for the header; see `Prototype`.

    Raises:
        UsageError: no C compiler, no possible name, or the directory cannot be written.
        CompilationError: the kernel prints, asserts or checks; or cannot be compiled.
        LinkError: the C compiler failed.
    """
    if not sys.platform.startswith("linux"):
        raise UsageError(
            f"libraries are built on Linux only, and this is {sys.platform}",
            help="build in a container or a virtual machine with Linux",
        )
    check_name(name)
    linker = find_linker()
    make_directory(directory)
    _refuse_events(kernel, options)
    ascending = [level for level in (HOST, *X86_LEVELS) if level in levels]
    first = _compile(kernel, name, ascending[0], ALIASES[0], options)
    prototype = describe(name, kernel, first.abi, constants, origin, document)
    compiled = {(ascending[0], ALIASES[0]): first}
    for level in ascending:
        for alias in ALIASES if prototype.may_alias else ALIASES[:1]:
            if (level, alias) not in compiled:
                compiled[level, alias] = _compile(kernel, name, level, alias, options)
    shared, header = directory / f"lib{name}.so", directory / f"{name}.h"
    with tempfile.TemporaryDirectory(prefix="blocklang-") as temporary:
        built = _link(linker, Path(temporary), prototype, ascending, compiled)
        replace_file(shared, built.read_bytes(), 0o755)
    replace_file(header, write_header(prototype, ascending).encode())
    return Library(prototype, shared, header, tuple(ascending), compiled)


def _compile(kernel: Kernel, name: str, level: str, alias: str, options: CompileOptions) -> CompiledKernel:
    symbol = f"{name}__{level}__{alias}".replace("-", "_")
    target = target_for(level)
    return compile_kernel(with_alias(kernel, alias), options=options._replace(target=target), symbol=symbol)


def _link(
    linker: Sequence[str],
    place: Path,
    prototype: Prototype,
    levels: Sequence[str],
    compiled: Mapping[tuple[str, str], CompiledKernel],
) -> Path:
    """The shared library, in a directory of its own."""
    versions, objects = [], []
    aliases = ALIASES if prototype.may_alias else (ALIASES[0], ALIASES[0])
    for level in levels:
        kernels = [compiled[level, alias] for alias in aliases]
        first, second = (each.abi.name for each in kernels)
        scratch = (kernels[0].abi.scratch_bytes, kernels[1].abi.scratch_bytes)
        number = X86_LEVELS.index(level) + 1 if level in X86_LEVELS else 0
        versions.append(Version(level, number, (first, second), scratch))
        for each in dict.fromkeys(kernels):
            objects.append(place / f"{each.abi.name}.o")
            objects[-1].write_bytes(each.object_code)
    source, exported = place / f"{prototype.name}.c", place / "exported.map"
    source.write_text(write_source(prototype, versions), encoding="utf-8")
    names = " ".join(f"{symbol};" for symbol in prototype.symbols)
    exported.write_text(f"{{ global: {names} local: *; }};\n", encoding="utf-8")
    output = place / f"lib{prototype.name}.so"
    link(linker, source, objects, exported, output)
    return output


def _refuse_events(kernel: Kernel, options: CompileOptions) -> None:
    """Refuse what would be printed or raised by the thread that launches."""
    for op in kernel.walk():
        if isinstance(op, DevicePrint):
            raise CompilationError(
                "a print cannot be built ahead of time: the library has nobody to print for it",
                location=op.location,
                help="take it out",
            )
    asserting = (op for op in kernel.walk() if isinstance(op, Event))
    first = next(asserting, None)
    if first is not None or options.checks or options.nan or options.poison:
        raise CompilationError(
            "checks and assertions cannot be built ahead of time: the library has nobody to report to",
            location=kernel.location if first is None else first.location,
            help="build without BLOCKLANG_DEBUG and debug=True, which add them",
        )


def make_directory(directory: Path) -> None:
    """Make sure that the directory is there and files can be made in it. Raises UsageError otherwise."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            pass
    except OSError as error:
        raise UsageError(
            f"cannot write to {directory}: {error.strerror}", help="choose another directory for -o"
        ) from error


def replace_file(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Write a file in one step: a program that has the old one open keeps it."""
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            file.write(content)
        os.chmod(file.name, mode)
        os.replace(file.name, path)
    except OSError as error:
        raise UsageError(
            f"cannot write {path}: {error.strerror}", help="choose another directory for -o"
        ) from error
