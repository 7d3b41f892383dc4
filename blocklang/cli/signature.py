"""What the command line says of a kernel's arguments: `--sig "*fp32,i32"` and `-D BLOCK=1024`.

A type is a dtype or `*` and a dtype, in Triton's spelling (`fp32`, `i32`), NumPy's (`float32`, `int32`) or
that of the IR (`f32`). `*const fp32` is an array that the kernel only reads. A `:16` behind a type promises
that the address or the number is a multiple of 16, as it is for most launches.
"""

from __future__ import annotations

import ast
import difflib
import re
from dataclasses import dataclass

from blocklang.diagnostics import Location, UsageError
from blocklang.ir.types import SCALARS, PointerType, ScalarType
from blocklang.language.dtypes import type_from_ir


def _spellings() -> dict[str, ScalarType]:
    """Every spelling of every dtype."""
    spellings = dict(SCALARS)
    spellings |= {f"{t.kind}{t.bits}": t for t in SCALARS.values() if t.kind in ("int", "uint")}
    spellings |= {"bool": SCALARS["i1"], "int1": SCALARS["i1"], "bfloat16": SCALARS["bf16"]}
    for bits in (16, 32, 64):
        spellings |= dict.fromkeys((f"fp{bits}", f"float{bits}"), SCALARS[f"f{bits}"])
    spellings |= {f"fp{name.removeprefix('f')}": t for name, t in SCALARS.items() if name.startswith("f8")}
    return spellings


DTYPES = _spellings()
# One spelling of each, for messages.
LISTED = "i1 i8 i16 i32 i64 u8 u16 u32 u64 fp8e4nv fp8e5 fp16 bf16 fp32 fp64"


@dataclass(frozen=True)
class ArgumentType:
    """The type of one run-time argument, and what its value is known to be divisible by."""

    type: ScalarType | PointerType
    divisible: int = 1


_ENTRY = re.compile(r"\s*(?P<star>\*\s*(?P<const>const\s+)?)?(?P<dtype>\w*)\s*(?::\s*(?P<hint>\w*))?\s*$")


def parse_signature(text: str) -> list[ArgumentType]:
    """Read `--sig`. Raises UsageError with a caret under the entry at fault."""
    if not text.strip():
        return []
    entries: list[ArgumentType] = []
    start = 0
    for part in text.split(","):
        entries.append(_parse_entry(part, text, start))
        start += len(part) + 1
    return entries


def _parse_entry(part: str, text: str, start: int) -> ArgumentType:
    match = _ENTRY.match(part)
    if not part.strip():
        raise _fault("expected a type between the commas, got nothing", text, start, len(part), _HELP)
    if match is None:
        raise _fault(f"expected a type, got {part.strip()!r}", text, start, len(part), _HELP)
    if match["dtype"] not in DTYPES:
        close = difflib.get_close_matches(match["dtype"], LISTED.split(), n=1)
        help = f"did you mean {close[0]}? The dtypes are {LISTED}" if close else _HELP
        at = start + match.start("dtype")
        message = f"expected a dtype, got {_quoted(match['dtype'])}"
        raise _fault(message, text, at, len(match["dtype"]), help)
    if match["hint"] not in (None, "16"):
        message = f"expected 16 behind the colon, got {_quoted(match['hint'])}"
        help = "`:16` promises an address or number divisible by 16; nothing else can be promised"
        raise _fault(message, text, start + match.start("hint"), len(match["hint"]), help)
    dtype = DTYPES[match["dtype"]]
    type_ = PointerType(dtype, const=match["const"] is not None) if match["star"] else dtype
    return ArgumentType(type_, 16 if match["hint"] else 1)


_HELP = f"write dtypes ({LISTED}), with * in front for an array: --sig '*fp32,*fp32,i32'"


def _quoted(text: str) -> str:
    return repr(text) if text else "nothing"


def _fault(message: str, text: str, at: int, length: int, help: str) -> UsageError:
    # A caret needs at least one column; blanks around an entry are not at fault.
    stripped = text[at : at + length]
    at += len(stripped) - len(stripped.lstrip())
    width = max(len(stripped.strip()), 1)
    return UsageError(message, location=Location("--sig", 1, at, 1, at + width), source=text, help=help)


def parse_definition(text: str) -> tuple[str, object]:
    """Read one `-D NAME=VALUE`: a Python literal or a dtype. Raises UsageError if it is neither."""
    name, equals, value = text.partition("=")
    name, value = name.strip(), value.strip()
    if not equals or not name.isidentifier() or not value:
        raise UsageError(f"expected NAME=VALUE behind -D, got {text!r}", help="for instance -D BLOCK=1024")
    bare = value.removeprefix("tl.")
    if bare in DTYPES:
        return name, type_from_ir(DTYPES[bare])
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError) as error:
        help = (
            f"write a number, True, False, None, a quoted string, a tuple of these or a dtype: -D {name}=1024"
        )
        raise UsageError(f"expected a value for {name}, got {value!r}", help=help) from error


def parse_definitions(texts: tuple[str, ...]) -> dict[str, object]:
    """Read all -D options. Raises UsageError if one is malformed or a name is given twice."""
    definitions: dict[str, object] = {}
    for text in texts:
        name, value = parse_definition(text)
        if name in definitions:
            raise UsageError(f"-D {name} is given twice", help="keep one of them")
        definitions[name] = value
    return definitions
