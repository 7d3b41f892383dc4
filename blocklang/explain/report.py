"""The report of one kernel, as data."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Guard:
    """What a faster version of a loop takes for granted, tested once before the loop.

    Attributes:
        conditions: in the kernel's own names; all must hold.
        otherwise: how the access runs where one does not.
    """

    conditions: tuple[str, ...]
    otherwise: str


@dataclass(frozen=True)
class Access:
    """How one load, store or atomic of a line runs, in its fastest version.

    Attributes:
        operation: "load", "store" or "atomic".
        array: the argument it goes through, or "memory" if that is not known.
        element: the type in memory, as IR writes it.
        form: the class: "consecutive", "broadcast", "backwards", "every second", "repeated", "strided",
            "gather", "scatter", "one lane a step" or "scalar".
        lanes: lanes a step.
        step: bytes from lane to lane where that is one known number; else None.
        mask: how its mask is asked; "" if it has none.
        why: why it is not better; "" for what is best.
        loops: how many loops hold it: what is not kept is loaded by each loop that reads it.
        guards: what the fast version needs.
    """

    operation: str
    array: str
    element: str
    form: str
    lanes: int
    step: int | None
    mask: str
    why: str
    loops: int
    guards: tuple[Guard, ...]

    @property
    def is_vector(self) -> bool:
        """True if whole vectors move, or one element for all lanes."""
        return self.form in ("consecutive", "broadcast", "backwards", "every second", "repeated", "scalar")


@dataclass(frozen=True)
class Loop:
    """A loop over lanes.

    Attributes:
        axes: the axes of the loops around it, outermost first, and last the one that lanes run along.
        lanes: lanes a step.
        extent: how far it runs, in the kernel's own names.
        folds: what it folds ("sum", "max", ...).
    """

    axes: tuple[str, ...]
    lanes: int
    extent: str
    folds: tuple[str, ...]


@dataclass(frozen=True)
class Product:
    """A matrix product on packed operands.

    Attributes:
        shape: rows, columns and depth of one block.
        tile: rows and columns of the accumulator that stay in registers.
        packed: of each operand, how it is packed and shared.
        form: how numbers are multiplied and added up: "fma" for one by one, "pairs", "bytes" and "tiles" for
            several bytes at a time.
    """

    shape: tuple[int, int, int]
    tile: tuple[int, int]
    packed: tuple[str, str]
    form: str


@dataclass(frozen=True)
class Kept:
    """A value in memory.

    Attributes:
        name: the user's.
        line: where it is made; 0 if no line of the kernel makes it.
        type: elements and shape.
        bytes: that it takes.
        why: why it is not computed where it is read.
    """

    name: str
    line: int
    type: str
    bytes: int
    why: str


@dataclass(frozen=True)
class Line:
    """One line of the kernel: its number, its text, and what runs for it."""

    number: int
    text: str
    accesses: tuple[Access, ...]
    loops: tuple[Loop, ...]
    products: tuple[Product, ...]


@dataclass(frozen=True)
class Report:
    """Everything that is said of one kernel.

    Attributes:
        kernel: its name.
        file: where its lines stand.
        target: the CPU that it was placed for.
        alias: how its arrays may overlap: "disjoint", "same" or "unknown".
        lines: those with an access, a loop or a product.
        kept: what has a place in memory.
        scratch_bytes: memory of one worker, tiles that programs share included.
    """

    kernel: str
    file: str
    target: str
    alias: str
    lines: tuple[Line, ...]
    kept: tuple[Kept, ...]
    scratch_bytes: int

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)
