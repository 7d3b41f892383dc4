"""A device as lists: every figure with its place, and the whole as JSON.

Not here: columns and files (`blocklang.cli.device_files`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from blocklang.target.device import Device
from blocklang.target.figures import Figure
from blocklang.target.formulas import Formula
from blocklang.target.units import format_quantity

# The tables of a device file: the attribute that each is, and the dimension of figures under free keys.
TABLES = {
    "constants": "constants",
    "chip": "chip",
    "memory": "memory",
    "caches": "caches",
    "engines": "engines",
    "dma": "transfers",
    "tiles": "tile_limits",
    "sm": "multiprocessor",
}
_FREE = {"throughput": "rate"}


@dataclasses.dataclass(frozen=True)
class PlacedFigure:
    """A figure, its table and key in the file, and its dimension."""

    table: str
    key: str
    figure: Figure[Any]
    reads: str

    @property
    def text(self) -> str:
        """The value with its unit."""
        return format_quantity(self.figure.value, self.reads)


def list_figures(device: Device) -> Iterator[PlacedFigure]:
    """Every figure of a device in the order of its tables."""
    for table, attribute in TABLES.items():
        yield from _figures_in(table, getattr(device, attribute))


def _figures_in(table: str, value: Any) -> Iterator[PlacedFigure]:
    if isinstance(value, Mapping):
        for name, item in value.items():
            if isinstance(item, Figure):
                yield PlacedFigure(table, name, item, _FREE.get(table.rpartition(".")[2], "count"))
            else:
                yield from _figures_in(f"{table}.{name}", item)
    elif dataclasses.is_dataclass(value):
        for each in dataclasses.fields(value):
            item = getattr(value, each.name)
            if isinstance(item, Figure):
                key = each.metadata["key"] or each.name
                yield PlacedFigure(table, key, item, each.metadata["reads"])
            elif isinstance(item, Mapping):
                yield from _figures_in(f"{table}.{each.name}", item)


def source_text(device: Device, source: str) -> str:
    """A source with its document instead of the key; what is no key stays as it is."""
    head, colon, remark = source.partition(":")
    documents = [device.sources.get(part.strip(), part.strip()) for part in head.split(",")]
    return "; ".join(documents) + colon + remark if device.sources else source


def to_dict(device: Device) -> dict[str, Any]:
    """The whole device as JSON: the file's keys, numbers in base units."""
    keys = {attribute: table for table, attribute in TABLES.items()} | {"costs": "cost"}
    whole: dict[str, Any] = _plain(device)
    return {keys.get(name, name): value for name, value in whole.items() if value not in (None, {}, [], "")}


def _plain(value: Any) -> Any:
    if isinstance(value, Formula):
        return value.text
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if dataclasses.is_dataclass(value):
        plain = {
            (each.metadata.get("key") or each.name): _plain(getattr(value, each.name))
            for each in dataclasses.fields(value)
        }
        return {name: item for name, item in plain.items() if item not in (None, {}, [])}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value
