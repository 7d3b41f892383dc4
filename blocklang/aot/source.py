"""The C source of a library: `launch.c`, the table of levels, and the functions that users call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import resources
from typing import NamedTuple

from blocklang.abi import SLOT_BYTES
from blocklang.aot.prototype import Prototype


class Version(NamedTuple):
    """The kernel for one CPU level.

    Attributes:
        level: the level's name, "host" for the CPU that compiled it.
        number: n of x86-64-vn; 0 for "host".
        entries: the symbols for arrays that do not overlap, and for arrays anywhere.
        scratch_bytes: of each.
    """

    level: str
    number: int
    entries: tuple[str, str]
    scratch_bytes: tuple[int, int]


def parameters(prototype: Prototype) -> str:
    """The parameter list of the C function, in two lines."""
    grid = ", ".join(f"int32_t grid_{axis}" for axis in "xyz")
    given = [f"{each.c_type}{each.c_name}" for each in prototype.arguments]
    return f"{grid},\n    {', '.join([*given, 'int32_t num_threads'])}"


def write_source(prototype: Prototype, versions: Sequence[Version]) -> str:
    """One translation unit: the launcher and what calls it."""
    launcher = resources.files("blocklang.aot").joinpath("launch.c").read_text(encoding="utf-8")
    return launcher + "\n" + "\n".join(_generated(prototype, versions)) + "\n"


def _generated(prototype: Prototype, versions: Sequence[Version]) -> Iterator[str]:
    for symbol in sorted({symbol for version in versions for symbol in version.entries}):
        yield f"entry {symbol};"
    yield ""
    yield "static const struct version versions[] = {"
    for each in versions:
        entries, scratch = ", ".join(each.entries), ", ".join(map(str, each.scratch_bytes))
        yield f'    {{"{each.level}", {each.number}, {{{entries}}}, {{{scratch}}}}},'
    yield "};"
    yield ""
    yield "__attribute__((constructor)) static void choose_at_load(void)"
    yield "{"
    yield f"    chosen = choose(versions, {len(versions)});"
    yield "}"
    yield ""
    yield from _call(prototype, prototype.name, alias=1)
    if prototype.may_alias:
        yield from _call(prototype, f"{prototype.name}_restrict", alias=0)
    yield f"const char *{prototype.name}_strerror(int status) {{ return status_text(status); }}"
    yield ""
    yield f"const char *{prototype.name}_cpu_level(void) {{ return chosen ? chosen->level : NULL; }}"


def _call(prototype: Prototype, name: str, alias: int) -> Iterator[str]:
    """A function that checks what was promised, fills the slots and launches."""
    yield f"int {name}({parameters(prototype)})"
    yield "{"
    for each in prototype.arguments:
        if each.alignment > 1:
            value = f"(uintptr_t){each.c_name}" if each.is_array else each.c_name
            yield f"    if ({value} % {each.alignment} != 0)"
            yield "        return BLOCKLANG_ERROR_ARGUMENT;"
    count = max(len(prototype.arguments), 1)
    yield f"    unsigned char slots[{SLOT_BYTES * count}] __attribute__((aligned({SLOT_BYTES}))) = {{0}};"
    for slot, each in enumerate(prototype.arguments):
        yield f"    memcpy(slots + {SLOT_BYTES * slot}, &{each.c_name}, sizeof {each.c_name});"
    yield "    const int32_t grid[3] = {grid_x, grid_y, grid_z};"
    yield f"    return launch({alias}, slots, grid, num_threads);"
    yield "}"
    yield ""
