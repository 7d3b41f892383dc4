"""From random decisions to a fuzz case: a kernel, its arguments, and the alias class that holds."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from blocklang.diagnostics import CompilationError, Location
from blocklang.interpreter.address_space import AddressSpace
from blocklang.interpreter.dtypes import ADDRESS, Array, dtype_of
from blocklang.interpreter.evaluation import Machine
from blocklang.interpreter.run import grid_extents, program_index
from blocklang.ir.core import Kernel, Value
from blocklang.ir.verifier import verify
from tests.fuzz.addresses import ArrayPlan, Pointing
from tests.fuzz.cases import Argument, Case, Memory, Pointer
from tests.fuzz.choices import Choices
from tests.fuzz.execution import InvalidCase
from tests.fuzz.sources import DTYPES, SourceWriter, build
from tests.fuzz.statements import Statements

_PITCH = 1 << 40  # between the arrays of a dry run
_REACH = 1 << 16  # elements before or behind a pointer that a kernel may use
_NEAR = 1 << 15  # bytes around a base within which lanes that are masked off in the dry run count too
_GRIDS = ((1,), (2,), (1,), (2, 2), (1,), (3,), (2, 1, 2))


class _Reach(AddressSpace):
    """Global memory that notes which addresses are used, and reads as 0."""

    def __init__(self) -> None:
        super().__init__([])
        self.ranges: dict[int, tuple[int, int]] = {}

    def _note(self, addresses: Array, live: Array | None, size: int) -> None:
        if live is not None:  # with other data other lanes may be live
            addresses, live = np.broadcast_arrays(addresses, live)
            distance = (addresses % np.uint64(_PITCH)).astype(np.int64) - _PITCH // 2
            addresses = addresses[live | (np.abs(distance) < _NEAR)]
        for base in np.unique(addresses // np.uint64(_PITCH)):
            of_base = addresses[addresses // np.uint64(_PITCH) == base]
            low, high = int(of_base.min()), int(of_base.max()) + size
            known = self.ranges.get(int(base), (low, high))
            self.ranges[int(base)] = (min(low, known[0]), max(high, known[1]))

    def load(self, addresses: Array, live: Array | None, dtype: np.dtype[Any], location: Location) -> Array:
        self._note(addresses, live, dtype.itemsize)
        shape = addresses.shape if live is None else np.broadcast_shapes(addresses.shape, live.shape)
        return np.zeros(shape, dtype)

    def store(self, addresses: Array, values: Array, live: Array | None, location: Location) -> None:
        self._note(addresses, live, values.dtype.itemsize)


def _reach(
    kernel: Kernel, arguments: Sequence[Any], bases: Sequence[int], grid: Sequence[int]
) -> list[tuple[int, int]]:
    """Per array, the bytes relative to its base that a launch uses.

    Raises:
        InvalidCase: an address is far from every array.
    """
    memory = _Reach()
    extents = grid_extents(grid)
    with np.errstate(all="ignore"):
        for linear in range(int(np.prod(extents))):
            Machine(memory, program_index(linear, extents), extents).run(kernel.body, arguments)
    found = []
    for base in bases:
        key = base // _PITCH
        low, high = memory.ranges.pop(key, (base, base))
        found.append((low - base, high - base))
    if memory.ranges:
        raise InvalidCase("an access lies far from every array")
    return found


@dataclass
class Built:
    """A kernel and what its arguments shall be.

    Attributes:
        kernel: of level block.
        arrays: the memories, in need of a size.
        pointers: for the pointers among the arguments.
        numbers: for the others.
    """

    kernel: Kernel
    arrays: list[ArrayPlan]
    pointers: list[Pointing]
    numbers: dict[Value, Any]


def _case(built: Built, grid: tuple[int, ...], alias: str) -> Case:
    kernel = built.kernel
    if alias:
        kernel.attributes["alias"] = alias
    verify(kernel)
    places = {p.value: p for p in built.pointers}
    bases = [(i + 1) * _PITCH + _PITCH // 2 for i in range(len(built.arrays))]
    dry: list[Array] = []
    for value in kernel.args:
        if value in places:
            place = places[value]
            element = built.arrays[place.array].element
            dry.append(np.array(bases[place.array] + place.offset * element.bytes, ADDRESS))
        else:
            with np.errstate(all="ignore"):
                dry.append(np.asarray(built.numbers[value]).astype(dtype_of(value.type)))
    reach = _reach(kernel, dry, bases, grid)
    memories, starts = [], []
    for plan, (low, high) in zip(built.arrays, reach, strict=True):
        size = plan.element.bytes
        furthest = max(p.offset for p in built.pointers if built.arrays[p.array] is plan)
        before, behind = -(low // size) if low < 0 else 0, max(-(-high // size), plan.count + furthest)
        if max(before, behind) > _REACH:
            raise InvalidCase("an access lies far from its array")
        memories.append(Memory(plan.element.name, before + behind, plan.fill, plan.seed, plan.misaligned))
        starts.append(before)
    arguments: list[Argument] = []
    for value in kernel.args:
        if value in places:
            arguments.append(Pointer(places[value].array, starts[places[value].array] + places[value].offset))
        else:
            arguments.append(built.numbers[value])
    return Case(str(kernel), tuple(arguments), tuple(memories), grid)


def alias_classes(built: Built) -> list[str]:
    """The values of the kernel attribute `alias` that are true of a launch; "" stands for none."""
    offsets: dict[int, list[int]] = {}
    for pointing in built.pointers:
        offsets.setdefault(pointing.array, []).append(pointing.offset)
    if all(len(o) == 1 for o in offsets.values()):
        return ["disjoint", "", "same", "unknown", "disjoint"]
    if all(len(set(o)) == 1 for o in offsets.values()):
        return ["same", "", "unknown"]
    return ["unknown", ""]


def make_case(source: random.Random | Sequence[int]) -> Case:
    """A random case of Block IR, or the one that a record of choices makes.

    Raises:
        InvalidCase: the kernel reaches too far; another must be tried.
    """
    choices = Choices(source)
    grid = choices.pick(_GRIDS)
    statements = Statements(choices)
    statements.run()
    built = Built(statements.kernel, statements.arrays, statements.pointers, statements.numbers)
    alias = choices.pick(alias_classes(built))
    return replace(_case(built, grid, alias), choices=tuple(choices.taken))


def make_source_case(source: random.Random | Sequence[int]) -> Case:
    """A random case of Python source, or the one that a record of choices makes.

    Raises:
        InvalidCase: the kernel reaches too far, or is one that the language refuses.
    """
    choices = Choices(source)
    grid = choices.pick(_GRIDS)
    writer = SourceWriter(choices)
    text = writer.text()
    try:
        kernel = build(writer, text)
    except CompilationError as error:
        raise InvalidCase(str(error)) from error
    arrays = [
        ArrayPlan(DTYPES[a.dtype], 8, choices.pick(["small", "special", "ramp"]), choices.below(1000), 0)
        for a in writer.arrays
    ]
    pointers = [Pointing(value, i, 0) for i, value in enumerate(kernel.args[: len(arrays)])]
    numbers = {v: n for v, (_, n) in zip(kernel.args[len(arrays) :], writer.scalars.values(), strict=True)}
    built = Built(kernel, arrays, pointers, numbers)
    case = _case(built, grid, choices.pick(alias_classes(built)))
    constants = (("M", writer.rows), ("N", writer.columns))
    return replace(case, source=text, constants=constants, choices=tuple(choices.taken))
