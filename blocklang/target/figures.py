"""Figures of a device description: numbers with sources, what formulas may name, mappings with aliases.

Not here: the tables that figures stand in (`device`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Generic, TypeVar

from blocklang.target.formulas import FLAG, NUMBER, TEXT, Value

Number = TypeVar("Number", int, float)
Item = TypeVar("Item")


@dataclass(frozen=True)
class Figure(Generic[Number]):
    """One number of a description, and where it is from.

    Attributes:
        value: a count, or a number in base units.
        source: the document that states it; a key of the device's `sources`, or text.
        unverified: True if it was derived, taken from memory, or from a source that nobody read again.
    """

    value: Number
    source: str
    unverified: bool = False


@dataclass(frozen=True)
class Quantity:
    """A name that formulas may use: its kind, what it means, and what it is if a caller does not say."""

    kind: str
    meaning: str
    default: Value | None = None

    def takes(self, value: object) -> bool:
        """True if a value is of this kind; NumPy's numbers are numbers."""
        wanted = {NUMBER: Real, FLAG: bool, TEXT: str}[self.kind]
        return isinstance(value, wanted)


QUANTITIES: Mapping[str, Quantity] = {
    "N": Quantity(NUMBER, "elements per partition"),
    "P": Quantity(NUMBER, "partitions of the operand"),
    "F": Quantity(NUMBER, "elements per partition of a tile that is transposed"),
    "K": Quantity(NUMBER, "how many are kept of N"),
    "N_stationary": Quantity(NUMBER, "columns of the stationary operand"),
    "N_moving": Quantity(NUMBER, "columns of the moving operand"),
    "valid_idx": Quantity(NUMBER, "indices of a gather that count"),
    "elem_per_idx": Quantity(NUMBER, "elements that each index of a gather stands for"),
    "dtype_bytes": Quantity(NUMBER, "bytes of an element"),
    "dtype": Quantity(TEXT, "the element type of all operands, as in IR: f32, bf16, f16, f8e4m3, ..."),
    "op": Quantity(TEXT, "the arithmetic: add, sub, mul, max, ...", ""),
    "op2": Quantity(TEXT, "the second arithmetic of an instruction that has two", ""),
    "psum_inputs": Quantity(NUMBER, "inputs that lie in the accumulator space", 0),
    "psum_outputs": Quantity(NUMBER, "outputs that lie in the accumulator space", 0),
    "contiguous": Quantity(FLAG, "elements of a partition follow one another in every operand", True),
    "zero": Quantity(FLAG, "zeros are written", False),
}


def figure(reads: str, *, required: bool = False, key: str | None = None) -> Any:
    """A dataclass field for a `Figure` of a dimension: 'count', 'share', 'cycles' or one of `UNITS`."""
    metadata = {"reads": reads, "key": key, "required": required}
    return field(metadata=metadata) if required else field(default=None, metadata=metadata)


class Named(Mapping[str, Item]):
    """A frozen mapping whose items answer to their aliases too: `memory["sbuf"]` is `memory["scratch"]`."""

    def __init__(self, items: Mapping[str, Item]) -> None:
        self._items = dict(items)
        self._aliases = {
            alias: name for name, item in items.items() for alias in getattr(item, "aliases", ())
        }

    def __getitem__(self, name: str) -> Item:
        return self._items[self._aliases.get(name, name)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"Named({self._items!r})"
