"""What if the device were another: the launches of one run, timed on a grid of changed descriptions.

    vary = [parse_vary("memory.sbuf.bytes=12MiB,24MiB"), parse_vary("dma.queues=8,16")]
    for point in sweep("trn2", vary, launches):
        print(point.changes, point.seconds, point.bottleneck)

A key is a path through the description file; a memory space answers to its aliases too, and `bytes` of a
space of partitions changes what each of them has. The programs run once, on the host: a description changes
neither results nor counts, only where blocks are and how long things take.
"""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from blocklang.diagnostics import CompilationError, UsageError
from blocklang.emulation.estimate import Run, estimate_launch
from blocklang.emulation.placement import place_blocks
from blocklang.target import Device, device_of, device_text, format_size
from blocklang.target.units import EXAMPLES, parse_quantity

MOST_POINTS = 1000
_DERIVED = {"dma": ("core_bandwidth", "chip_bandwidth", "chip_engines")}


@dataclass(frozen=True)
class Vary:
    """A key of a description, and the values it takes, as they were written."""

    key: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class Launched:
    """A launch to be timed, and how often it took place."""

    kernel: str
    run: Run
    times: int


@dataclass(frozen=True)
class Misfit:
    """A kernel that does not fit, where, and what is said of it."""

    kernel: str
    place: str
    message: str


@dataclass(frozen=True)
class Point:
    """One description.

    Attributes:
        changes: key and value, as they were written.
        seconds: of all launches that fit; None if none does.
        bottleneck: the engine without which most would be gained; "" if nothing fits.
        active: by engine, the share of the time in which it works.
        misfits: the kernels that do not fit.
    """

    changes: Mapping[str, str]
    seconds: float | None
    bottleneck: str
    active: Mapping[str, float]
    misfits: tuple[Misfit, ...]

    def to_dict(self) -> dict[str, Any]:
        """The point in the JSON report."""
        return {
            "changes": dict(self.changes),
            "time_us": None if self.seconds is None else self.seconds * 1e6,
            "bottleneck": self.bottleneck or None,
            "engines": {name: {"active_percent": 100 * share} for name, share in self.active.items()},
            "misfits": [vars(misfit) for misfit in self.misfits],
        }


def parse_vary(text: str) -> Vary:
    """`key=value,value,...` as it stands on a command line.

    Raises:
        UsageError: it does not have this form.
    """
    key, equals, values = text.partition("=")
    found = tuple(v.strip() for v in values.split(","))
    if not equals or not key.strip() or not all(found):
        raise UsageError(
            f"--vary: expected KEY=VALUE,VALUE,..., got {text!r}",
            help="for instance --vary memory.sbuf.bytes=12MiB,24MiB",
        )
    return Vary(key.strip(), found)


def sweep(device: str, vary: Sequence[Vary], launches: Sequence[Launched]) -> Iterator[Point]:
    """Time the launches for every combination of values, the last key changing fastest.

    Args:
        device: a name, or the path of a description file.

    Raises:
        UsageError: there is no such device or key, or a value is wrong.
    """
    points = [dict(zip((v.key for v in vary), row, strict=True)) for row in combinations(vary)]
    devices = [(changes, changed(device, changes)) for changes in points]  # all wrong values at once
    for changes, found in devices:
        yield _point(found, changes, launches)


def combinations(vary: Sequence[Vary]) -> list[tuple[str, ...]]:
    """Every combination of values.

    Raises:
        UsageError: they are too many.
    """
    rows = list(itertools.islice(itertools.product(*(v.values for v in vary)), MOST_POINTS + 1))
    if len(rows) > MOST_POINTS:
        raise UsageError(f"--vary: more than {MOST_POINTS} combinations", help="vary fewer keys at once")
    return rows


def _point(device: Device, changes: Mapping[str, str], launches: Sequence[Launched]) -> Point:
    seconds, busy, saved = 0.0, dict[str, float](), dict[str, float]()
    misfits: dict[str, Misfit] = {}
    fits = 0
    for launched in launches:
        try:
            placement = place_blocks(launched.run.kernel, device)
            found = estimate_launch(launched.run, device, versions=placement.versions)
        except CompilationError as error:
            place = str(error.location) if error.location is not None else ""
            misfits.setdefault(launched.kernel, Misfit(launched.kernel, place, error.message))
            continue
        fits += 1
        seconds += launched.times * found.seconds
        for engine, amount in found.busy.items():
            busy[engine] = busy.get(engine, 0.0) + launched.times * amount
        for engine, rest in found.counterfactuals.items():
            saved[engine] = saved.get(engine, 0.0) + launched.times * (found.seconds - rest)
    active = {name: amount / seconds for name, amount in sorted(busy.items()) if seconds and amount}
    bottleneck = max(saved, key=saved.__getitem__, default="")
    return Point(changes, seconds if fits else None, bottleneck, active, tuple(misfits.values()))


# ---- changed descriptions ----


def changed(device: str, changes: Mapping[str, str]) -> Device:
    """A device with other figures.

    Raises:
        UsageError: the description has no such key, or the value does not fit it.
    """
    data = tomllib.loads(device_text(device))
    for key, value in changes.items():
        _change(data, key, value, device)
    return device_of(data, f"{device} with {', '.join(f'{k}={v}' for k, v in changes.items())}")


def _change(data: dict[str, Any], key: str, value: str, device: str) -> None:
    table: Any = data
    *path, last = key.split(".")
    for depth, name in enumerate(path):
        name = _space_named(table, name) if depth == 1 and path[0] == "memory" else name
        table = _item(table, name, key, device)
    for derived in _DERIVED.get(path[0] if path else "", ()):
        if derived != last:
            table.pop(derived, None)  # it follows from what changes
    if last == "bytes" and "partition_bytes" in table:
        before = _size(str(table["partition_bytes"]["value"]), key)
        share = _share(value, table["partitions"]["value"], key)
        _set(table["partition_bytes"], f"{share} B")
        if "banks" in table and (table["banks"]["value"] * share) % before == 0:  # of the size they had
            _set(table["banks"], str(table["banks"]["value"] * share // before))
        if "bytes" not in table:
            return
    _set(_item(table, last, key, device), value)


def _space_named(spaces: Mapping[str, Any], name: str) -> str:
    """The space of that name or alias."""
    return next((n for n, s in spaces.items() if name in s.get("aliases", ())), name)


def _item(table: Any, name: str, key: str, device: str) -> Any:
    if not isinstance(table, dict) or name not in table or not isinstance(table[name], dict):
        keys = [n for n, v in table.items() if isinstance(v, dict)] if isinstance(table, dict) else []
        raise UsageError(
            f"--vary {key}: {device} has no {name!r} there",
            help=f"it has {', '.join(keys)}" if keys else f"see `blocklang devices show {device}`",
        )
    return table[name]


def _set(figure: Any, value: str) -> None:
    figure["value"] = _number(value)
    figure.pop("unverified", None)
    figure["source"] = "varied from the description"


def _number(text: str) -> Any:
    """A number as TOML would have it; a text with a unit stays one."""
    for parse in (int, float):
        try:
            return parse(text)
        except ValueError:
            continue
    return text


def _size(text: str, key: str) -> int:
    """A size in bytes."""
    size = int(text) if text.isdecimal() else parse_quantity(text, "size")
    if size is None:
        raise UsageError(f"--vary {key}: expected {EXAMPLES['size']}, got {text!r}")
    return int(size)


def _share(text: str, parts: int, key: str) -> int:
    """A part of a size."""
    size = _size(text, key)
    if size % parts or size <= 0:
        raise UsageError(
            f"--vary {key}: {text} do not divide into {parts} partitions",
            help=f"for instance {format_size(max(1, size // parts) * parts)}",
        )
    return size // parts
