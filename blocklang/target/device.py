"""Accelerators as frozen data, read from description files.

A description is a TOML file. Every figure states its source, and `unverified = true` where nobody has read
the source again:

    name = "trn2"
    title = "one NeuronCore of a Trainium 2"

    [memory.scratch]
    hardware = "SBUF"
    partitions = { value = 128, source = "the architecture guide" }
    partition_bytes = { value = "224 KiB", source = "the architecture guide" }

Spaces are `global` (the memory that arrays are in), `scratch` and `accumulator` (on chip). A space has
`bytes`, or `partitions` of `partition_bytes` each; `banks` is how many parts a partition (or the space)
falls into. A size is a number of bytes or a text such as "24 MiB".

Not here: what the emulator does with the figures. No code knows a device by its name.

Invariants: a `Device` is complete; what is missing, unknown or contradictory raised when it was read.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blocklang.diagnostics import UsageError

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

SUFFIX = ".toml"
SPACES = ("global", "scratch", "accumulator")  # `global` and `scratch` are required
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "KB": 10**3, "MB": 10**6, "GB": 10**9}


@dataclass(frozen=True)
class Figure:
    """One number of a description, and where it is from.

    Attributes:
        value: a count, or bytes.
        source: the document that states it.
        unverified: True if it was taken from memory or from a source that nobody read again.
    """

    value: int
    source: str
    unverified: bool = False


@dataclass(frozen=True)
class MemorySpace:
    """One memory space.

    Attributes:
        name: `global`, `scratch` or `accumulator`.
        hardware: what the device's makers call it.
        size: bytes of the whole space; None if it is made of partitions.
        partitions: how many there are; None if the space is one piece.
        partition_bytes: bytes of each partition.
        banks: parts of a partition, or of the whole space, that are accessed one at a time.
    """

    name: str
    hardware: str
    size: Figure | None = None
    partitions: Figure | None = None
    partition_bytes: Figure | None = None
    banks: Figure | None = None

    @property
    def capacity_bytes(self) -> int:
        """Bytes of the whole space."""
        if self.partitions is not None and self.partition_bytes is not None:
            return self.partitions.value * self.partition_bytes.value
        assert self.size is not None
        return self.size.value


@dataclass(frozen=True)
class Device:
    """An accelerator.

    Attributes:
        name: as on the command line.
        title: what it is, for people.
        memory: its spaces, by name.
    """

    name: str
    title: str
    memory: Mapping[str, MemorySpace]

    @property
    def is_timed(self) -> bool:
        """True if the description is enough for a model of time."""
        return False

    @property
    def on_chip(self) -> tuple[str, ...]:
        """The names of the spaces that hold buffers."""
        return tuple(name for name in self.memory if name != "global")


# ---- finding ----


def device_names() -> tuple[str, ...]:
    """The devices that are shipped."""
    names = (entry.name for entry in _shipped().iterdir())
    return tuple(sorted(name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX)))


@functools.cache
def _read_shipped(name: str) -> Device:
    return _parse(_shipped().joinpath(name + SUFFIX), name + SUFFIX)


def _shipped() -> Traversable:
    from importlib import resources  # no launch needs it

    return resources.files("blocklang.target.devices")


def find_device(text: str) -> Device:
    """The device of that name, or the one that a file describes if `text` is a path to a TOML file.

    Raises:
        UsageError: there is no such device or file, or the file is wrong.
    """
    if text in device_names():
        return _read_shipped(text)
    if text.endswith(SUFFIX):
        return read_device(Path(text))
    names = ", ".join(device_names())
    import difflib

    close = difflib.get_close_matches(text, device_names(), n=1)
    guess = f"did you mean {close[0]}? " if close else ""
    raise UsageError(
        f"there is no device {text!r}",
        help=f"{guess}The devices are {names}; your own is the path of a {SUFFIX} file",
    )


def read_device(path: Path) -> Device:
    """The device that a file describes.

    Raises:
        UsageError: the file cannot be read, or a figure is missing, unknown or contradictory.
    """
    return _parse(path, str(path))


def _parse(file: Traversable, name: str) -> Device:
    import tomllib  # no launch needs it

    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UsageError(
            f"there is no file {name}", help="a device is a name or a description file"
        ) from error
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{name} is not a TOML file: {error}") from error
    return _device(_Table(name, "", data))


# ---- reading tables ----


@dataclass(frozen=True)
class _Table:
    """A table of the file with its place, for messages."""

    file: str
    key: str
    data: Mapping[str, Any]

    def path(self, name: str) -> str:
        return f"{self.key}.{name}" if self.key else name

    def error(self, name: str, expected: str, got: object) -> UsageError:
        shown = got if isinstance(got, _Absent) else repr(got)
        return UsageError(f"{self.file}: {self.path(name)}: expected {expected}, got {shown}")

    def get(self, name: str, expected: str) -> Any:
        if name not in self.data:
            raise self.error(name, expected, _ABSENT)
        return self.data[name]

    def text(self, name: str) -> str:
        value = self.get(name, "a text")
        if not isinstance(value, str) or not value.strip():
            raise self.error(name, "a text", value)
        return value

    def table(self, name: str, expected: str) -> _Table:
        value = self.get(name, expected)
        if not isinstance(value, dict):
            raise self.error(name, expected, value)
        return _Table(self.file, self.path(name), value)

    def allow(self, *names: str) -> None:
        """Refuse keys that have no meaning, so that a misspelt one is seen."""
        for name in self.data:
            if name not in names:
                known = ", ".join(names)
                raise UsageError(
                    f"{self.file}: {self.path(name)}: expected one of {known}, got an unknown key"
                )


class _Absent:
    def __str__(self) -> str:
        return "nothing"


_ABSENT = _Absent()


def _device(table: _Table) -> Device:
    table.allow("name", "title", "memory")
    memory = table.table("memory", "a table of memory spaces")
    memory.allow(*SPACES)
    spaces = {name: _space(memory, name) for name in SPACES if name in memory.data or name != "accumulator"}
    return Device(table.text("name"), table.text("title"), spaces)


def _space(memory: _Table, name: str) -> MemorySpace:
    table = memory.table(name, "a memory space")
    table.allow("hardware", "bytes", "partitions", "partition_bytes", "banks")
    space = MemorySpace(
        name,
        table.text("hardware"),
        _figure(table, "bytes", is_size=True),
        _figure(table, "partitions"),
        _figure(table, "partition_bytes", is_size=True),
        _figure(table, "banks"),
    )
    _check_size(table, space)
    return space


def _check_size(table: _Table, space: MemorySpace) -> None:
    """A space has a size, said once or twice the same."""
    if (space.partitions is None) != (space.partition_bytes is None):
        missing = "partitions" if space.partitions is None else "partition_bytes"
        raise table.error(missing, "a figure, as partitions and partition_bytes go together", _ABSENT)
    if space.partitions is None and space.size is None:
        raise table.error("bytes", "a size, or partitions and partition_bytes", _ABSENT)
    if space.size is not None and space.size.value != space.capacity_bytes:
        raise table.error(
            "bytes", f"{space.capacity_bytes}, which is partitions x partition_bytes", space.size.value
        )


def _figure(table: _Table, name: str, *, is_size: bool = False) -> Figure | None:
    """A figure that may be absent."""
    if name not in table.data:
        return None
    figure = table.table(name, "a figure: { value = ..., source = ... }")
    figure.allow("value", "source", "unverified")
    unverified = figure.data.get("unverified", False)
    if not isinstance(unverified, bool):
        raise figure.error("unverified", "true or false", unverified)
    return Figure(_number(figure, is_size), figure.text("source"), unverified)


def _number(figure: _Table, is_size: bool) -> int:
    expected = "a size such as 4096 or '24 MiB'" if is_size else "a whole number of at least 1"
    value = figure.get("value", expected)
    if is_size and isinstance(value, str):
        return _bytes_of(figure, value, expected)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise figure.error("value", expected, value)
    return value


def _bytes_of(figure: _Table, text: str, expected: str) -> int:
    match = re.fullmatch(r"\s*(\d+)\s*([A-Za-z]+)\s*", text)
    if match is None or match[2] not in UNITS or int(match[1]) == 0:
        raise figure.error("value", f"{expected} (units: {', '.join(UNITS)})", text)
    return int(match[1]) * UNITS[match[2]]


def format_size(count: float) -> str:
    """A number of bytes as people read it: 1536 as '1.5 KiB'."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.1f}".removesuffix(".0") + f" {unit}"
        count /= 1024
    raise AssertionError("the last unit takes everything")
