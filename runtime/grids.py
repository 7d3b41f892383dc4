"""How many programs a launch runs: the grid as a user writes it, normalised to three extents.

The callable form is the caller's to call: it needs the names of the arguments.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable

from blocklang.diagnostics import LaunchError

MAXIMUM_EXTENT = 2**31 - 1
MAXIMUM_PROGRAMS = 2**63 - 1

Grid = tuple[int, int, int]


def normalise_grid(grid: object) -> Grid:
    """Three extents from an integer, or a tuple or list of one to three.

    Raises:
        LaunchError: it is anything else, or an extent is negative or too large.
    """
    if type(grid) is tuple or isinstance(grid, (tuple, list)):
        extents = [_extent(value, grid) for value in grid]
    elif isinstance(grid, Iterable) and not hasattr(grid, "__index__"):
        raise _not_a_grid(grid)
    else:
        extents = [_extent(grid, grid)]
    if not 1 <= len(extents) <= 3:
        raise LaunchError(
            f"a grid has one to three extents, this one has {len(extents)}: {grid!r}",
            help="write `kernel[(x,)]`, `kernel[(x, y)]` or `kernel[(x, y, z)]`",
        )
    if math.prod(extents) > MAXIMUM_PROGRAMS:
        raise LaunchError(f"the grid {grid!r} has more than 2^63 - 1 programs")
    x, y, z = [*extents, 1, 1][:3]
    return (x, y, z)


def _extent(value: object, grid: object) -> int:
    try:
        extent = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise _not_a_grid(grid) from None
    if extent < 0:
        raise LaunchError(
            f"the grid {grid!r} has a negative extent",
            help="an extent of 0 launches no program; -1 means nothing",
        )
    if extent > MAXIMUM_EXTENT:
        raise LaunchError(
            f"the grid {grid!r} has an extent over 2^31 - 1, more than program_id, an i32, can tell",
            help="spread the programs over two or three axes, or let each program do more",
        )
    return extent


def _not_a_grid(grid: object) -> LaunchError:
    text = repr(grid)
    shown = text if len(text) < 60 else type(grid).__name__
    return LaunchError(
        f"the grid must be an integer or one to three integers, not {shown}",
        help="write `kernel[(x,)](...)`, or `kernel[lambda meta: (bl.cdiv(n, meta['BLOCK']),)](...)`",
    )
