"""Every row of the table, in its order, and how the command line chooses among them."""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from benchmarks.fresh import FRESH, FreshEntry
from benchmarks.workload import Entry
from benchmarks.workloads import attention, control, elementwise, folds, launch, memory, order, products, rows
from blocklang.diagnostics import UsageError

_MODULES = (elementwise, rows, products, attention, folds, order, memory, control, launch)

# The rows that are measured in standing processes, by name, by family.
FAMILIES: Mapping[str, tuple[Entry, ...]] = MappingProxyType(
    {module.__name__.rpartition(".")[2]: module.ENTRIES for module in _MODULES}
)
ENTRIES: Mapping[str, Entry] = MappingProxyType(
    {entry.name: entry for entries in FAMILIES.values() for entry in entries}
)
FRESH_FAMILY = "fresh"


def find_entry(name: str) -> Entry:
    """The row with exactly this name."""
    return ENTRIES[name]


def family_of(name: str) -> str:
    for family, entries in FAMILIES.items():
        if any(entry.name == name for entry in entries):
            return family
    return FRESH_FAMILY


def all_names() -> list[str]:
    """Names of all rows, in the order of the table."""
    return [*ENTRIES, *FRESH]


def choose(words: Iterable[str]) -> list[str]:
    """Names of the rows that the words choose, in the order of the table; all of them without a word.

    A word is a row's name (`softmax-4096x1024`), what its kin share (`softmax`), a family (`rows`) or a
    pattern (`matmul-*`). Raises UsageError for a word that chooses nothing.
    """
    chosen: set[str] = set()
    words = tuple(words)
    for word in words:
        found = {name for name in all_names() if _matches(name, word)}
        if not found:
            raise _unknown(word)
        chosen |= found
    return [name for name in all_names() if name in chosen or not words]


def _matches(name: str, word: str) -> bool:
    return word in (name, name.partition("-")[0], family_of(name)) or fnmatch.fnmatchcase(name, word)


def _unknown(word: str) -> UsageError:
    known = sorted({*all_names(), *(name.partition("-")[0] for name in all_names()), *FAMILIES, FRESH_FAMILY})
    close = difflib.get_close_matches(word, known, n=1)
    suggestion = f"did you mean {close[0]}? " if close else ""
    return UsageError(
        f"there is no workload {word!r}",
        help=f"{suggestion}The families: {', '.join([*FAMILIES, FRESH_FAMILY])}; "
        f"the workloads: {', '.join(all_names())}",
    )


def title_of(name: str) -> str:
    """What the table calls the row."""
    row: Entry | FreshEntry = ENTRIES[name] if name in ENTRIES else FRESH[name]
    return row.title
