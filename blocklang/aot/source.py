"""The C source of a library: `launch.c`, the table of levels, and the functions that users call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import resources
from typing import NamedTuple

from blocklang.abi import LAUNCH_NUMBER, SCRATCH_ALIGNMENT, SLOT_BYTES
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


def parameters(prototype: Prototype, names: Sequence[str]) -> str:
    """The parameter list of the C function, in two lines.

    Args:
        names: of the arguments.
    """
    grid = ", ".join(f"int32_t grid_{axis}" for axis in "xyz")
    given = [f"{each.c_type}{name}" for each, name in zip(prototype.arguments, names, strict=True)]
    return f"{grid},\n    {', '.join([*given, 'int32_t num_threads'])}"


def write_source(prototype: Prototype, versions: Sequence[Version]) -> str:
    """One translation unit: the launcher and what calls it."""
    launcher = resources.files("blocklang.aot").joinpath("launch.c").read_text(encoding="utf-8")
    return launcher + "\n" + "\n".join(_generated(prototype, versions)) + "\n"


def _generated(prototype: Prototype, versions: Sequence[Version]) -> Iterator[str]:
    for symbol in sorted({symbol for version in versions for symbol in version.entries}):
        yield f"entry {symbol};"
    yield ""
    yield "static const struct version blocklang_versions[] = {"
    for each in versions:
        entries, scratch = ", ".join(each.entries), ", ".join(map(str, each.scratch_bytes))
        yield f'    {{"{each.level}", {each.number}, {{{entries}}}, {{{scratch}}}}},'
    yield "};"
    yield ""
    yield f"_Static_assert(ALIGNMENT == {SCRATCH_ALIGNMENT} && ALIGNMENT == {-LAUNCH_NUMBER},"
    yield '               "the layout of blocklang/abi.py");'
    yield ""
    yield "__attribute__((constructor)) static void blocklang_choose_at_load(void)"
    yield "{"
    yield f"    blocklang_chosen = blocklang_choose(blocklang_versions, {len(versions)});"
    yield "}"
    yield ""
    yield from _call(prototype, prototype.name, "blocklang_call_anywhere", alias=1)
    if prototype.may_alias:
        yield from _call(prototype, f"{prototype.name}_restrict", "blocklang_call_apart", alias=0)
    yield f'const char *blocklang_text_of(int status) __asm__("{prototype.name}_strerror");'
    yield "const char *blocklang_text_of(int status) { return blocklang_status_text(status); }"
    yield ""
    yield f'const char *blocklang_name_of_level(void) __asm__("{prototype.name}_cpu_level");'
    yield "const char *blocklang_name_of_level(void)"
    yield "{"
    yield "    return blocklang_chosen ? blocklang_chosen->level : NULL;"
    yield "}"


def _call(prototype: Prototype, symbol: str, name: str, alias: int) -> Iterator[str]:
    """A function that checks what was promised, fills the slots and launches.

    In this source it is called `name`, and its arguments a0, a1, ...: a user's names cannot be in the way.
    """
    names = [f"a{slot}" for slot in range(len(prototype.arguments))]
    given = parameters(prototype, names)
    yield f'int {name}({given}) __asm__("{symbol}");'
    yield f"int {name}({given})"
    yield "{"
    for each, argument in zip(names, prototype.arguments, strict=True):
        if argument.alignment > 1:
            value = f"(uintptr_t){each}" if argument.is_array else each
            yield f"    if ({value} % {argument.alignment} != 0)"
            yield "        return BLOCKLANG_ERROR_ARGUMENT;"
    size = SLOT_BYTES * max(len(names), 1)
    yield f"    unsigned char slots[{size}] __attribute__((aligned({SLOT_BYTES}))) = {{0}};"
    for slot, each in enumerate(names):
        yield f"    memcpy(slots + {SLOT_BYTES * slot}, &{each}, sizeof {each});"
    yield "    const int32_t grid[3] = {grid_x, grid_y, grid_z};"
    yield f"    return blocklang_launch({alias}, slots, grid, num_threads);"
    yield "}"
    yield ""
