"""How the memory of a launch's arrays overlaps.

The alias class of a launch is the worst over all pairs of arrays of which the kernel writes one:

    disjoint   no byte belongs to both
    same       equal address, strides and element size: in place
    unknown    anything else; strided views that never meet included

Arrays that the kernel only reads may overlap as they like.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from blocklang.runtime.arrays import Array

CLASSES = ("disjoint", "same", "unknown")  # from the best to the worst


def alias_class(arrays: Sequence[tuple[Array, bool]]) -> str:
    """The alias class of a launch, from its arrays and whether the kernel writes each."""
    if not any(is_written for _, is_written in arrays):
        return CLASSES[0]
    worst = 0
    described = [(array, array.byte_range(), is_written) for array, is_written in arrays]
    for (one, span, one_is_written), (other, other_span, other_is_written) in combinations(described, 2):
        meets = span[0] < other_span[1] and other_span[0] < span[1]
        if meets and (one_is_written or other_is_written):
            worst = max(worst, CLASSES.index(_overlap(one, other)))
    return CLASSES[worst]


def _overlap(one: Array, other: Array) -> str:
    """The class of two arrays whose byte ranges meet."""
    if 0 in one.shape or 0 in other.shape:
        return "disjoint"
    same_place = one.address == other.address and one.strides == other.strides
    return "same" if same_place and one.element.bytes == other.element.bytes else "unknown"
