"""A fuzz case: a kernel of Block IR as text, its arguments and its grid; all that a run needs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from blocklang.interpreter.dtypes import memory_dtype_of
from blocklang.ir.float8 import FLOAT8
from blocklang.ir.types import SCALARS, ScalarType

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Memory:
    """One allocation, which one or several pointer arguments reach.

    Attributes:
        element: name of the element type.
        count: how many elements.
        fill: "special" (with the special values of the type), "small" (near 0), "ramp" (0, 1, ...).
        seed: of the random fill.
        misaligned: bytes by which the start misses the alignment of the element.
    """

    element: str
    count: int
    fill: str = "special"
    seed: int = 0
    misaligned: int = 0

    @property
    def type(self) -> ScalarType:
        return SCALARS[self.element]

    def contents(self) -> Bytes:
        """The bytes before the launch."""
        values = fill_values(self.type, self.count, self.fill, self.seed)
        return np.ascontiguousarray(values).view(np.uint8).reshape(-1).copy()


@dataclass(frozen=True)
class Pointer:
    """An argument that points to element `offset` of memory number `memory`."""

    memory: int
    offset: int = 0


Argument = Pointer | int | float | bool


@dataclass(frozen=True)
class Case:
    """A launch.

    Attributes:
        kernel: text of level block.
        arguments: one for each argument of the kernel.
        memories: what the pointers among them point into.
        grid: one to three extents.
        source: the kernel in Python, if that is what it was made from.
        constants: the compile-time arguments of the source.
        choices: the decisions that made the case.
    """

    kernel: str
    arguments: tuple[Argument, ...]
    memories: tuple[Memory, ...]
    grid: tuple[int, ...] = (1,)
    source: str = ""
    constants: tuple[tuple[str, int], ...] = ()
    choices: tuple[int, ...] = field(default=(), repr=False, compare=False)


_SPECIAL_FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, -1.5, np.nan, np.inf, -np.inf, 2.5, 3.5, 100.0, -0.1)


def special_values(type_: ScalarType) -> list[Any]:
    """Numbers at the edges of a type: limits, zeros, subnormals, halves, infinities, NaN."""
    if type_.bits == 1:
        return [False, True]
    if type_.is_integer:
        near = {
            0,
            1,
            2,
            3,
            7,
            type_.bits - 1,
            type_.bits,
            type_.minimum,
            type_.minimum + 1,
            type_.maximum,
            type_.maximum - 1,
        }
        return sorted(near | ({-1, -2, -7} if type_.is_signed else set()))
    limits = {name: (form.decode(1), form.decode(form.largest)) for name, form in FLOAT8.items()}
    limits |= {
        "f16": (2.0**-24, 65504.0),
        "bf16": (2.0**-133, float.fromhex("0x1.fep127")),
        "f32": (2.0**-149, float.fromhex("0x1.fffffep127")),
        "f64": (2.0**-1074, float.fromhex("0x1.fffffffffffffp1023")),
    }
    smallest, largest = limits[type_.name]
    ends = [smallest, -smallest, smallest * 37, largest, -largest, largest / 4]
    return [*_SPECIAL_FLOATS, *ends, *(x for x in (2.0**31, -(2.0**31), 2.0**63) if abs(x) < largest)]


def fill_values(type_: ScalarType, count: int, fill: str, seed: int) -> npt.NDArray[Any]:
    """`count` elements in the dtype that they have in memory."""
    rng = np.random.default_rng([seed, count, type_.bits])
    dtype = memory_dtype_of(type_)
    if type_.bits == 1:
        return np.asarray(rng.choice(np.array([0, 1], np.uint8), count))
    if type_.is_float8 and fill == "special":
        return np.frombuffer(rng.bytes(count), dtype)
    if fill == "ramp":
        return np.asarray((np.arange(count) % 101).astype(dtype))
    if fill == "small":
        low = -9 if type_.kind != "uint" else 0
        numbers = rng.integers(low, 10, count)
        return np.asarray((numbers / 4 if type_.is_float else numbers).astype(dtype))
    specials = np.array(special_values(type_), object)
    with np.errstate(all="ignore"):
        if type_.is_float:
            plain = (rng.standard_normal(count) * 10.0 ** rng.integers(-6, 7, count)).astype(dtype)
        else:
            plain = np.frombuffer(rng.bytes(count * dtype.itemsize), dtype)
        edges = np.array(
            [specials[i] for i in rng.integers(0, len(specials), count)],
            np.float64 if type_.is_float else dtype,
        ).astype(dtype)
    return np.where(rng.random(count) < 0.3, edges, plain)
