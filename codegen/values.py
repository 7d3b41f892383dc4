"""How a value of one lane looks while several lanes run at once.

Inside a loop over lanes a value is
- uniform: the same in every lane, held in a scalar register;
- affine: `base + lane * step`, held as the scalar base and the step; integer arithmetic is modular, so sums
  and products with uniform
  values stay affine exactly (an extension to more bits does not, since it must see the wrap);
- a vector: one register lane each. A vector in which every number of an affine value stands several times
  (`i // 2`) also knows that (`Repeated`): what is loaded from there is loaded once and spread.

Outside such loops every value is uniform.
"""

from __future__ import annotations

from dataclasses import dataclass

from blocklang.ir.types import PointerType, ScalarType, Type


@dataclass(frozen=True, slots=True)
class Repeated:
    """Lane k of a vector is `base + k // times * step`; `times` divides the width."""

    base: str
    step: str
    times: int


@dataclass(frozen=True, slots=True)
class Lane:
    """An emitted value.

    Attributes:
        text: its register or constant; the base if it is affine.
        type: its IR type.
        width: lanes of the vector; 0 if it is held in a scalar.
        step: of affine values, added per lane: a decimal constant or an i64 register (bytes for pointers).
        multiple: of affine 64-bit integers, a power of two that divides the base, which is not negative; 0 if
            that is not known.
        repeated: of vectors, the affine value that they repeat, if they do.
    """

    text: str
    type: Type
    width: int = 0
    step: str = ""
    multiple: int = 0
    repeated: Repeated | None = None

    @property
    def is_uniform(self) -> bool:
        return not self.width and not self.step

    @property
    def is_affine(self) -> bool:
        return bool(self.step)

    @property
    def bits(self) -> int:
        return (
            64
            if isinstance(self.type, PointerType)
            else self.type.bits
            if isinstance(self.type, ScalarType)
            else 0
        )


def is_true(lane: Lane) -> bool:
    """True for the constant mask that holds everywhere."""
    return lane.is_uniform and lane.text in ("true", "1")


def is_false(lane: Lane) -> bool:
    """True for the constant mask that holds nowhere."""
    return lane.is_uniform and lane.text in ("false", "0")
