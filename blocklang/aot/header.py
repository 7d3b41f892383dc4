"""The C header of a library, with everything that a caller must know in its comments."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence

from blocklang.aot.prototype import Argument, Prototype
from blocklang.aot.source import parameters

# Guarded, as a program may use several such libraries.
_STATUS = """\
#ifndef BLOCKLANG_STATUS
#define BLOCKLANG_STATUS
enum {
    BLOCKLANG_OK = 0,
    BLOCKLANG_ERROR_GRID = 1,     /* an extent is negative, or there are more than 2^63 - 1 programs */
    BLOCKLANG_ERROR_ARGUMENT = 2, /* an address or number is not the multiple that is asked for below */
    BLOCKLANG_ERROR_THREADS = 3,  /* num_threads is negative */
    BLOCKLANG_ERROR_MEMORY = 4,   /* not enough memory for the blocks of one program; nothing has run */
    BLOCKLANG_ERROR_CPU = 5       /* no code for this CPU, or for what BLOCKLANG_CPU names */
};
#endif"""

_HOLDS = {"f16": "bits of IEEE binary16", "bf16": "bits of bfloat16 (the upper half of a float)"}


def write_header(prototype: Prototype, levels: Sequence[str]) -> str:
    """The text of NAME.h."""
    return "\n".join(_lines(prototype, levels)) + "\n"


def _lines(prototype: Prototype, levels: Sequence[str]) -> Iterator[str]:
    name = prototype.name
    given = parameters(prototype, [argument.c_name for argument in prototype.arguments])
    guard = f"BLOCKLANG_{name.upper()}_H"
    yield f"/* {name}: made by `blocklang build` from {prototype.origin}. */"
    yield f"#ifndef {guard}"
    yield f"#define {guard}"
    yield ""
    yield "#include <stdbool.h>"
    yield "#include <stdint.h>"
    yield ""
    yield _STATUS
    yield ""
    for constant, value in prototype.constants.items():
        yield f"#define {name.upper()}_{constant} {int(value)}"
    yield ""
    yield "#ifdef __cplusplus"
    yield 'extern "C" {'
    yield "#endif"
    yield ""
    yield from _comment(_description(prototype))
    yield f"int {name}({given});"
    yield ""
    if prototype.may_alias:
        yield from _comment(_RESTRICT.format(name=name).splitlines())
        yield f"int {name}_restrict({given});"
        yield ""
    yield from _comment([f"What a status that {name} returned means, in English. Never NULL."])
    yield f"const char *{name}_strerror(int status);"
    yield ""
    yield from _comment(_LEVEL.format(levels=", ".join(levels)).splitlines())
    yield f"const char *{name}_cpu_level(void);"
    yield ""
    yield "#ifdef __cplusplus"
    yield "}"
    yield "#endif"
    yield "#endif"


_RESTRICT = """\
{name} for arrays of which none that is written overlaps another, in no byte; what else happens is undefined.
Everything else is as for {name}. It can be faster, since what was read need not be read again."""
_LEVEL = """\
The CPU level whose code runs, NULL if there is none for this CPU. It is chosen once, when the library is
loaded: the best that the CPU has of {levels}.
BLOCKLANG_CPU=x86-64-v2 in the environment then forbids all above x86-64-v2."""


def _description(prototype: Prototype) -> Iterator[str]:
    yield f"Run {prototype.origin.partition(' ')[0]} for every program of a grid; return when all have ended."
    yield ""
    if prototype.document:
        yield from inspect.cleandoc(prototype.document).splitlines()
        yield ""
    yield "grid_x, grid_y, grid_z: how many programs there are along each axis, each at least 0; 0 runs none."
    for argument in prototype.arguments:
        yield _describe(argument)
    yield "num_threads: the most threads that work, the calling one included; 0: one per CPU that the thread"
    yield "    may use. Threads live for the call; a short launch starts none."
    yield ""
    yield "Returns BLOCKLANG_OK or another status above. Addresses are not checked otherwise: what the kernel"
    yield "reads and writes for this grid must be there. May be called by several threads at once."
    if prototype.may_alias:
        yield f"Arrays may overlap; if none that is written does, {prototype.name}_restrict gives the same."


def _describe(argument: Argument) -> str:
    """One argument in a line."""
    kind = _HOLDS.get(argument.type.name, "")
    if argument.type.is_float8:
        kind = f"bits of {argument.type}"
    value = f" ({kind})" if kind else ""
    of = f", a multiple of {argument.divisible}" if argument.divisible > 1 else ""
    if not argument.is_array:
        return f"{argument.c_name}: a number{value}{of}."
    what = "is written, and may be read" if argument.is_written else "is only read"
    return (
        f"{argument.c_name}: address of the first element{value} of an array that {what};\n"
        f"    a multiple of {argument.alignment}."
    )


def _comment(lines: Iterator[str] | Sequence[str]) -> Iterator[str]:
    """A C comment of these lines."""
    text = "\n".join(lines).replace("*/", "* /").splitlines()
    yield "/**"
    for line in text:
        yield f" * {line}".rstrip()
    yield " */"
