"""`blocklang build`: a kernel as a shared library with a C header, and as a wheel."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import TYPE_CHECKING

import click

from blocklang.cli.kernels import find_function, specialise
from blocklang.cli.scripts import KernelReference
from blocklang.cli.signature import parse_definitions, parse_signature
from blocklang.cli.stages import definition_option, signature_option
from blocklang.diagnostics import Location, UsageError

if TYPE_CHECKING:
    from blocklang.aot import Library


@click.command()
@click.argument("file", metavar="FILE[:KERNEL]")
@signature_option
@definition_option
@click.option(
    "-o",
    "directory",
    required=True,
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Write the files into this directory; it is made if it is missing.",
)
@click.option("--name", help="Name of the C function, the library and the package; the kernel's by default.")
@click.option(
    "--levels",
    metavar="LEVELS",
    help="CPU levels in the library: x86-64-v2,x86-64-v3,x86-64-v4 by default, also x86-64. The best that a "
    "machine has is chosen when the library is loaded.",
)
@click.option("--wheel", is_flag=True, help="Also a wheel: a Python package that needs NumPy alone.")
@click.option(
    "--wheel-version", default="0.1.0", show_default=True, metavar="VERSION", help="The version of the wheel."
)
@click.option("--asm", is_flag=True, help="Also the assembly of every level, NAME.LEVEL.s.")
def build(
    file: str,
    signature: str | None,
    definitions: tuple[str, ...],
    directory: Path,
    name: str | None,
    levels: str | None,
    wheel: bool,
    wheel_version: str,
    asm: bool,
) -> None:
    """Compile a kernel ahead of time: libNAME.so and NAME.h, for programs without blocklang.

    The C function takes the grid, the arguments and a number of threads; the header says what each must hold.
    The library has the kernel for several CPU levels; BLOCKLANG_CPU=x86-64-v2 forces a lower one where it is
    used. The C compiler of the system links it (CC names another), or the package ziglang.

    \b
      blocklang build kernels.py:add --sig '*fp32,*fp32,*fp32,i32' -D BLOCK=1024 -o build
      blocklang build kernels.py:add --sig '*fp32,*fp32,*fp32,i32' -D BLOCK=1024 -o build --wheel
      gcc main.c -Ibuild -Lbuild -ladd -Wl,-rpath,'$ORIGIN/build'
    """
    types = None if signature is None else parse_signature(signature)
    constants = parse_definitions(definitions)
    chosen = parse_levels(levels)
    reference = KernelReference.parse(file)
    function = find_function(reference)
    specialisation = specialise(function, types, constants, remedy="write them")
    # A default that --sig leaves out is an argument too, of which nothing more is known than its type.
    told = specialisation.signature.split(",")
    texts = told[: len(types or ())] + [each.partition(":")[0] for each in told[len(types or ()) :]]
    specialisation = function.specialise(texts, constants)

    from blocklang.aot.library import build_library  # loads LLVM
    from blocklang.aot.wheel import build_wheel, check_package, check_wheel_tools

    if wheel:
        check_wheel_tools(wheel_version)
        check_package(name or function.__name__)
    library = build_library(
        function.block_ir(specialisation),
        directory,
        name=name or function.__name__,
        levels=chosen,
        options=specialisation.switches.compile_options(),
        constants=specialisation.constants,
        origin=f"{function.__name__} of {reference.path.name}, --sig '{specialisation.signature}'",
        document=function.fn.__doc__,
    )
    files = [library.shared, library.header]
    if asm:
        files += write_assembly(library, directory)
    if wheel:
        files.append(build_wheel(library, directory, wheel_version))
    for path in files:
        click.echo(f"{path}  {path.stat().st_size:,} bytes")
    click.echo(f"levels: {', '.join(library.levels)}")


def write_assembly(library: Library, directory: Path) -> list[Path]:
    """The assembly of each level, for arrays that lie anywhere where that makes a difference."""
    from blocklang.aot.library import ALIASES, replace_file

    alias = ALIASES[1] if library.prototype.may_alias else ALIASES[0]
    paths = []
    for level in library.levels:
        paths.append(directory / f"{library.prototype.name}.{level}.s")
        replace_file(paths[-1], library.compiled[level, alias].assembly.encode())
    return paths


def parse_levels(text: str | None) -> tuple[str, ...]:
    """Read `--levels`. Raises UsageError with a caret under the level at fault."""
    from blocklang.aot.library import DEFAULT_LEVELS, available_levels

    available = available_levels()
    if text is None:
        return DEFAULT_LEVELS if DEFAULT_LEVELS[0] in available else available
    levels: list[str] = []
    start = 0
    for part in text.split(","):
        level = part.strip()
        at = start + len(part) - len(part.lstrip())
        start += len(part) + 1
        if level in available and level not in levels:
            levels.append(level)
            continue
        location = Location("--levels", 1, at, 1, at + max(len(level), 1))
        if level in levels:
            raise UsageError(
                f"{level} is given twice", location=location, source=text, help="keep one of them"
            )
        close = difflib.get_close_matches(level, available, n=1)
        guess = f"did you mean {close[0]}? " if close else ""
        raise UsageError(
            f"expected a CPU level, got {level!r}" if level else "expected a CPU level, got nothing",
            location=location,
            source=text,
            help=f"{guess}The levels here are {', '.join(available)}",
        )
    return tuple(levels)
