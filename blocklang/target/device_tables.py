"""The tables of a device file with their places, so that a wrong figure is answered with line and key.

TOML readers keep no positions: `line_of` finds a key again in the text.

Not here: which tables and keys there are (`device_file`).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from blocklang.diagnostics import UsageError
from blocklang.target.figures import Figure
from blocklang.target.units import EXAMPLES, UNITS, parse_quantity

GUIDE = "docs/device_files.md says what each key means; `blocklang devices show trn2` is an example"
_HEADER = re.compile(r"\s*(\[\[?)\s*([^\]\s]+)\s*\]")
EXPECTED = {
    "count": "a whole number of at least 1",
    "cycles": "a number of cycles",
    "number": "a number",
    "share": "a share between 0 and 1",
    "error": "a relative error, such as -0.05",
    **EXAMPLES,
}


def line_of(text: str, key: str) -> int:
    """The line of a key such as `memory.scratch.banks.value` or `cost[3].cycles`.

    Where the key does not stand, that of the innermost table or key around it; 0 if there is none.
    """
    found = deepest = 0
    table = ""
    counts: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            table = header[2]
            if header[1] == "[[":
                counts[table] = counts.get(table, -1) + 1
                table = f"{table}[{counts[table]}]"
            here = table
        elif "=" in line and not line.lstrip().startswith("#"):
            name = line.split("=", 1)[0].strip().strip("\"'")
            here = f"{table}.{name}" if table else name
        else:
            continue
        if (key == here or key.startswith((f"{here}.", f"{here}["))) and len(here) > deepest:
            found, deepest = number, len(here)
    return found


class _Absent:
    def __str__(self) -> str:
        return "nothing"


ABSENT = _Absent()


@dataclass(frozen=True)
class Table:
    """A table of the file with its place, for messages."""

    file: str
    text_of_file: str
    key: str
    data: Mapping[str, Any]

    def path(self, name: str) -> str:
        return f"{self.key}.{name}" if self.key else name

    def error(self, name: str, expected: str, got: object, help: str | None = None) -> UsageError:
        """What a wrong or missing value is answered."""
        shown = got if isinstance(got, _Absent | _Words) else repr(got)
        path = self.path(name) if name else self.key
        line = line_of(self.text_of_file, path)
        place = f"{self.file}:{line}" if line else self.file
        return UsageError(f"{place}: {path}: expected {expected}, got {shown}", help=help or GUIDE)

    def get(self, name: str, expected: str, help: str | None = None) -> Any:
        if name not in self.data:
            raise self.error(name, expected, ABSENT, help)
        return self.data[name]

    def text(self, name: str, default: str | None = None) -> str:
        if default is not None and name not in self.data:
            return default
        value = self.get(name, "a text")
        if not isinstance(value, str) or not value.strip():
            raise self.error(name, "a text", value)
        return value

    def one_of(self, name: str, choices: Iterable[str], default: str | None = None) -> str:
        """A text that is one of some."""
        value = self.text(name, default)
        known = list(choices)
        if value not in known:
            raise self.error(name, f"one of {', '.join(known)}", value, guess(value, known))
        return value

    def texts(self, name: str, default: tuple[str, ...] | None = None) -> tuple[str, ...]:
        """A list of texts."""
        if default is not None and name not in self.data:
            return default
        value = self.get(name, "a list of texts")
        if not isinstance(value, list) or not value or not all(isinstance(each, str) for each in value):
            raise self.error(name, "a list of texts", value)
        return tuple(value)

    def flag(self, name: str) -> bool:
        value = self.data.get(name, False)
        if not isinstance(value, bool):
            raise self.error(name, "true or false", value)
        return value

    def table(self, name: str, expected: str = "a table", help: str | None = None) -> Table:
        value = self.get(name, expected, help)
        if not isinstance(value, dict):
            raise self.error(name, expected, value, help)
        return Table(self.file, self.text_of_file, self.path(name), value)

    def tables(self, name: str) -> list[Table]:
        """The tables of an array `[[name]]`; none if it is absent."""
        value = self.data.get(name, [])
        if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
            raise self.error(name, f"tables [[{name}]]", value)
        return [
            Table(self.file, self.text_of_file, f"{self.path(name)}[{number}]", each)
            for number, each in enumerate(value)
        ]

    def allow(self, *names: str) -> None:
        """Refuse keys that have no meaning, so that a misspelt one is seen."""
        for name in self.data:
            if name not in names:
                raise self.error(name, f"one of {', '.join(names)}", UNKNOWN, guess(name, names))

    def figure(self, name: str, reads: str) -> Figure[Any]:
        """A figure with its source; `reads` is its dimension."""
        table = self.table(name, _FIGURE, _example(name, reads))
        table.allow("value", "source", "unverified")
        unverified = table.flag("unverified")
        value = table.number("value", reads)
        table.get("source", "a text", 'say where the value is from: source = "the data sheet, page 3"')
        return Figure(value, table.text("source"), unverified)

    def number(self, name: str, reads: str) -> float:
        """A number of a dimension, in base units."""
        expected = EXPECTED[reads]
        value = self.get(name, expected)
        if reads in UNITS and isinstance(value, str):
            parsed = parse_quantity(value, reads)
            if parsed is None or parsed <= 0:
                raise self.error(name, expected, value, f"the units are {', '.join(UNITS[reads])}")
            return parsed
        if isinstance(value, bool) or not isinstance(value, int | float) or not _fits(value, reads):
            text = isinstance(value, int | float) and reads in UNITS
            raise self.error(name, expected, value, "write the unit, in quotes" if text else None)
        return value


_FIGURE = "a figure: { value = ..., source = ... }"
_SAMPLES = {"size": '"24 MiB"', "frequency": '"2.4 GHz"', "bandwidth": '"23 B/ns"', "time": '"1300 ns"'}


def _example(name: str, reads: str) -> str:
    """What to write for a figure."""
    sample = _SAMPLES.get(reads, '"79 TFLOPS"' if reads == "rate" else "0.5" if reads == "share" else "8")
    return (
        f'for instance {name} = {{ value = {sample}, source = "where it is from" }}; '
        "with unverified = true if you guess"
    )


def _fits(value: float, reads: str) -> bool:
    """A bare number: a count or bytes are whole; what has another unit must say it."""
    if reads in ("count", "size"):
        return isinstance(value, int) and value >= 1
    if reads == "share":
        return 0 <= value <= 1
    if reads == "error":
        return -1 < value < float("inf")
    return reads in ("cycles", "number") and 0 <= value < float("inf")


class _Words(str):
    """What was found, in words instead of quotes."""


UNKNOWN = _Words("an unknown key")


def words(text: str) -> object:
    """What was found, to be shown without quotes."""
    return _Words(text)


def guess(name: str, known: Iterable[str]) -> str | None:
    """Help for a misspelt name; None if nothing is near."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean {close[0]}?" if close else None
